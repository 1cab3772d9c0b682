"""Files of llama2.c open with transformers' logits, and with the ids of its tokenizer."""

import struct

import pytest
import torch
import transformers

import clearhead
from clearhead.errors import UserError
from clearhead.formats.llama2c_tokenizer import read_tokenizer

N_VOCAB = 300
SIZES = {
    "vocab_size": N_VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
}
ROLES = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj")
FEEDFORWARD = ("mlp.gate_proj", "mlp.down_proj", "mlp.up_proj")
TEXT = "the cat the hat"


def interleave(name, tensor):
    """llama2.c rotates adjacent features; transformers rotates feature i with i + D/2."""
    if not name.endswith(("q_proj.weight", "k_proj.weight")):
        return tensor
    return tensor.view(-1, 2, 4, 32).transpose(1, 2).reshape(tensor.shape)


def write_model(path, model, version):
    """Write a transformers model as llama2.c does."""
    tensors = {name: interleave(name, tensor) for name, tensor in model.state_dict().items()}
    tied = model.config.tie_word_embeddings
    blocks = [f"model.layers.{i}." for i in range(2)]
    norms = [
        [f"{b}{name}.weight" for b in blocks] for name in ("input_layernorm", "post_attention_layernorm")
    ]
    attention = [f"{b}{role}.weight" for role in ROLES for b in blocks]
    rest = [f"{b}{role}.weight" for role in FEEDFORWARD for b in blocks]
    embedding, final = "model.embed_tokens.weight", "model.norm.weight"
    numbers = (32, 48, 2, 4, 2, N_VOCAB if tied or version else -N_VOCAB, 64)
    if version:
        head = b"24ka" + struct.pack("<i7iB", version, *numbers, tied)
        names = [*norms[0], *norms[1], final, embedding, *attention, *rest]
        parts = [head.ljust(256, b"\0"), *(tensors[name].numpy().tobytes() for name in names)]
    else:
        names = [embedding, *norms[0], *attention, *norms[1], *rest, final]
        angles = bytes(2 * 4 * 64 * 4)
        parts = [struct.pack("<7i", *numbers), *(tensors[name].numpy().tobytes() for name in names), angles]
    parts += [] if tied else [tensors["lm_head.weight"].numpy().tobytes()]
    path.write_bytes(b"".join(parts))


def pieces():
    """A SentencePiece vocabulary: special tokens, bytes, characters, and pieces with their scores."""
    letters = [" ", *"theca"]
    merged = ["th", "the", " the", "at", " c", " cat", "he"]
    named = ["<unk>", "\n<s>\n", "\n</s>\n", *(f"<0x{i:02X}>" for i in range(256)), *merged, *letters]
    return [*named, *(f"x{i}" for i in range(N_VOCAB - len(named)))]


def write_tokenizer(path):
    data = [struct.pack("<I", 8)]
    for i, piece in enumerate(pieces()):
        data.append(struct.pack("<fI", -float(i), len(piece.encode())) + piece.encode())
    path.write_bytes(b"".join(data))


@pytest.fixture
def folder(tmp_path):
    write_tokenizer(tmp_path / "tokenizer.bin")
    return tmp_path


def make(tied):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**SIZES, tie_word_embeddings=tied)
    model = transformers.LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize(("version", "tied"), [(0, True), (0, False), (1, True), (1, False)])
@torch.no_grad()
def test_logits_match_transformers(version, tied, folder):
    theirs = make(tied)
    write_model(folder / "model.bin", theirs, version)
    model = clearhead.load(folder / "model.bin", "cpu")
    ids = model.tokenizer.start_ids + model.tokenizer.encode(TEXT)
    expected = theirs(torch.tensor([ids])).logits[0]
    assert torch.allclose(model.logits(TEXT), expected, rtol=0, atol=1e-4)
    model.export(folder / "out")
    assert torch.equal(clearhead.load(folder / "out", "cpu").logits(TEXT), model.logits(TEXT))


def test_ids_are_those_of_the_best_scored_merges(folder):
    tokenizer = read_tokenizer(folder / "tokenizer.bin", N_VOCAB)
    place = {piece: i for i, piece in enumerate(pieces())}
    assert tokenizer.start_ids == [1]
    assert tokenizer.encode("the cat!") == [place[" the"], place[" cat"], 3 + ord("!")]
    assert tokenizer.decode(tokenizer.encode("the cat! é")) == "the cat! é"
    assert set(tokenizer.end_ids) == {1, 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-1], "does not have the 300 tokens"),
        (lambda data: data + b"x", "more than 300"),
        (lambda data: data[:4] + struct.pack("<fI", 0, 2**31) + data[12:], "truncated"),
        (lambda data: data.replace(b"the", b"\xff\xff\xff", 1), "does not have"),
        (lambda data: data.replace(b" cat", b" the", 1), "twice"),
    ],
)
def test_invalid_tokenizer_is_rejected(change, message, folder):
    write_model(folder / "model.bin", make(True), 0)
    path = folder / "tokenizer.bin"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UserError, match=message):
        clearhead.load(folder / "model.bin", "cpu")


def test_very_large_vocabulary_is_rejected_unread(folder):
    """A model may have only two features, so a small file can have millions of tokens."""
    n = 2**19
    sizes = (2, 1, 1, 1, 1, n, 1)  # width, hidden size, blocks, heads, and context
    count = 2 * n + 2 + 4 * 4 + 2 + 3 * 2 + 2 + 2
    (folder / "model.bin").write_bytes(struct.pack("<7i", *sizes) + bytes(4 * count))
    (folder / "tokenizer.bin").write_bytes(b"\0" * 4 + b"\0" * 8 * n)
    with pytest.raises(UserError, match="has 524288 tokens, expected at most 327680"):
        clearhead.load(folder / "model.bin")


def test_incomplete_or_quantized_files_are_rejected(folder):
    path = folder / "model.bin"
    write_model(path, make(True), 1)
    data = path.read_bytes()
    path.write_bytes(data[:-4])
    size = f"{len(data) - 4:,} bytes, and its header implies {len(data):,}"
    with pytest.raises(UserError, match=f"is a llama2.c model, but truncated: it has {size}"):
        clearhead.load(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(UserError, match="model, but too long: it has"):
        clearhead.load(path)
    path.write_bytes(data[:4] + struct.pack("<i", 2) + data[8:])
    with pytest.raises(UserError, match="export the model again with --version 0 or 1"):
        clearhead.load(path)
    path.write_bytes(data[:40])
    with pytest.raises(UserError, match="truncated: it has 40 bytes, and its header alone has 256"):
        clearhead.load(path)
    path.write_bytes(data[:4] + struct.pack("<i", 3) + data[8:])
    with pytest.raises(UserError, match="expected 0 or 1"):
        clearhead.load(path)
    write_model(path, make(True), 0)
    (folder / "tokenizer.bin").unlink()
    with pytest.raises(
        UserError, match=r"no tokenizer beside it: copy llama2.c's tokenizer.bin or tok300.bin"
    ):
        clearhead.load(path)
    data = path.read_bytes()
    for length in (28, len(data) - 4):
        path.write_bytes(data[:length])
        size = f"{length:,} bytes, and its header implies {len(data):,}"
        with pytest.raises(UserError, match=f"is a llama2.c model, but truncated: it has {size}"):
            clearhead.load(path)
    for other in (data[:20], data + b"\0", b"\0" * 100, b"70000 300\nthe " + b"a" * 100):
        path.write_bytes(other)
        with pytest.raises(UserError, match="is not a GGUF or ARPA file"):
            clearhead.load(path)


def test_weights_that_are_not_numbers_are_rejected(folder):
    path = folder / "model.bin"
    write_model(path, make(True), 0)
    data = bytearray(path.read_bytes())
    data[28:32] = struct.pack("<f", float("nan"))
    path.write_bytes(data)
    with pytest.raises(UserError, match="non-finite"):
        clearhead.load(path)
