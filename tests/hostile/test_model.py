"""Complete GGUF models with a valid header but invalid settings or tensors: rejected with a one-line error."""

import math
import os
import struct

import numpy as np
import pytest
import torch

import clearhead
from clearhead.formats.gguf import model as gguf_model
from clearhead.formats.gguf.architectures import ARCHITECTURES
from clearhead.formats.gguf.file import GGUFFile
from clearhead.formats.saved import Saved
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

SIZES = {"n_vocab": 257, "n_context": 8, "n_block": 1, "n_head": 2, "d_model": 8}
LLAMA = {**SIZES, "qk_norm": False}
CONFIGS = {
    "gpt2": preset("gpt2", **SIZES),
    "llama": preset(
        "modern", **LLAMA, rope_scaling={"kind": "llama3", "factor": 8.0, "original_context": 16}
    ),
    "qwen2": preset("modern", **LLAMA, qkv_bias=True, rope_scaling={"kind": "linear", "factor": 2.0}),
    "qwen3": preset("modern", **SIZES),
    "gptneox": preset("gpt2", **SIZES, position="rotary", feedforward="gelu", parallel=True),
    "olmo2": preset("modern", **SIZES, qk_norm_joint=True, pre_norm=False, post_norm=True, tied=False),
    "smollm3": preset("modern", **{**LLAMA, "n_block": 4}, unrotated_blocks=[3]),
    "gemma3": preset(
        "modern",
        **SIZES,
        feedforward="geglu",
        embedding_scale=8**0.5,
        post_norm=True,
        window=3,
        local_blocks=[0],
        local_rotary_base=500.0,
    ),
    "gemma2": preset(
        "modern",
        **LLAMA,
        feedforward="geglu",
        embedding_scale=8**0.5,
        post_norm=True,
        window=3,
        local_blocks=[0],
        score_cap=50.0,
        logit_cap=30.0,
    ),
}
U32, I64, F64, BOOL, STRING, ARRAY = 4, 11, 12, 7, 8, 9
F32 = 0


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def packed(value):
    """Return a value's type and its bytes."""
    if isinstance(value, bool):
        return BOOL, struct.pack("<?", value)
    if isinstance(value, int):
        return (U32, struct.pack("<I", value)) if 0 <= value < 2**32 else (I64, struct.pack("<q", value))
    if isinstance(value, float):
        return F64, struct.pack("<d", value)
    if isinstance(value, str):
        return STRING, string(value)
    parts = [packed(each) for each in (value.tolist() if isinstance(value, np.ndarray) else value)]
    kind = parts[0][0] if parts else STRING
    return ARRAY, struct.pack("<IQ", kind, len(parts)) + b"".join(data for _, data in parts)


def write(path, metadata, tensors):
    """Write a valid file with these values and F32 tensors; a tensor given as a shape becomes a hole in the file."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        kind, data = packed(value)
        head += string(key) + struct.pack("<I", kind) + data
    end, places = 0, []
    for name, tensor in tensors.items():
        shape = tensor if isinstance(tensor, tuple) else tuple(tensor.shape)
        head += string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], F32, end)
        places.append(end)
        end += 4 * math.prod(shape)
        end += -end % 32
    start = len(head) + -len(head) % 32
    with path.open("wb") as file:
        file.write(head)
        for place, tensor in zip(places, tensors.values(), strict=True):
            if not isinstance(tensor, tuple):
                file.seek(start + place)
                file.write(tensor.contiguous().numpy().tobytes())
        file.truncate(start + end)


@pytest.fixture(scope="session")
def sound(tmp_path_factory):
    """The metadata and tensors of a model of each architecture."""
    place, tokenizer, found = tmp_path_factory.mktemp("gguf"), Tokenizer.train("byte", []), {}
    torch.manual_seed(0)
    assert CONFIGS.keys() == ARCHITECTURES.keys()
    for kind, config in CONFIGS.items():
        path = place / f"{kind}.gguf"
        gguf_model.save(path, Saved(Transformer(config), tokenizer, None), "F32")
        with GGUFFile.open(path) as file:
            found[kind] = dict(file.metadata), {name: file.read(name) for name in file.tensors}
        assert found[kind][0]["general.architecture"] == kind
    return found


@pytest.fixture
def path(tmp_path):
    return tmp_path / "hostile.gguf"


@pytest.mark.parametrize("kind", CONFIGS)
def test_valid_models_load(kind, sound, path):
    write(path, *sound[kind])
    assert clearhead.load(path, "cpu").config == CONFIGS[kind]


ODD = (
    0,
    -1,
    1000,
    10**9,
    2**63 - 1,
    2.5,
    float("nan"),
    float("inf"),
    -0.5,
    True,
    "4\n",
    [],
    [4, 4],
    ["x"],
    list(range(2000)),
)


@pytest.mark.parametrize("kind", CONFIGS)
def test_odd_value_of_any_setting_loads_or_is_rejected(kind, sound, path, load_or_refuse):
    metadata, tensors = sound[kind]
    # The vocabulary is slow to write and read, and is not a setting of the architecture.
    brief = {key: value for key, value in metadata.items() if not key.startswith("tokenizer.")}
    write(path, brief, tensors)
    assert not load_or_refuse(path)  # only because there is no tokenizer
    refused = 0
    for key in brief:
        if key.startswith(f"{kind}."):
            for value in ODD:
                write(path, {**brief, key: value}, tensors)
                load_or_refuse(path)
                refused += 1
    assert refused >= 5 * len(ODD)


LIES = {
    "no heads": ("llama", {"llama.attention.head_count": 0}, "0 heads"),
    "too many key-value heads": ("llama", {"llama.attention.head_count_kv": 3}, "2 heads cannot share 3"),
    "10^9 heads": ("llama", {"llama.attention.head_count": 10**9}, "n_head = 1000000000"),
    "10^9 blocks": ("llama", {"llama.block_count": 10**9}, "n_block = 1000000000"),
    "10^9 blocks, local": ("gemma3", {"gemma3.block_count": 10**9}, "n_block = 1000000000"),
    "1000 blocks": ("llama", {"llama.block_count": 1000}, "too few for the"),
    "2 blocks": ("llama", {"llama.block_count": 2}, "too few for the"),
    "an array of heads": ("llama", {"llama.attention.head_count": [2, 2]}, "expected a single number"),
    "NaN as epsilon": (
        "llama",
        {"llama.attention.layer_norm_rms_epsilon": math.nan},
        "norm_epsilon = nan",
    ),
    "an epsilon of 0": ("llama", {"llama.attention.layer_norm_rms_epsilon": 0.0}, "norm_epsilon = 0.0"),
    "a cap of zero": ("gemma2", {"gemma2.attn_logit_softcapping": 0.0}, "score_cap = 0.0"),
    "an infinite cap": ("gemma2", {"gemma2.final_logit_softcapping": 1e39}, "logit_cap = inf"),
    "a cap that is a string": (
        "gemma2",
        {"gemma2.final_logit_softcapping": "30"},
        "expected a single number",
    ),
    "a negative window": ("gemma3", {"gemma3.attention.sliding_window": -1}, "window = -1"),
    "an array of windows": (
        "gemma3",
        {"gemma3.attention.sliding_window": list(range(2000))},
        "expected a single value",
    ),
    "an array of bases": ("gemma3", {"gemma3.rope.freq_base_swa": [1.0, 2.0]}, "expected a single value"),
    "an array of scaling types": (
        "qwen2",
        {"qwen2.rope.scaling.type": ["linear"] * 2},
        "expected a single value",
    ),
    "NaN rotary dimensions": ("gptneox", {"gptneox.rope.dimension_count": math.nan}, "rotary_pct = nan"),
    "too many rotary dimensions": ("gptneox", {"gptneox.rope.dimension_count": 10**9}, "rotary_pct"),
    "an unknown scaling type": ("qwen2", {"qwen2.rope.scaling.type": "yarn\n"}, "rope.scaling.type"),
    "an original context that is a string": (
        "llama",
        {"llama.rope.scaling.original_context_length": "x"},
        "does not fit",
    ),
    "an excessive base": ("llama", {"llama.rope.freq_base": 1e300}, "rotary_base"),
    "no width": ("llama", {"llama.embedding_length": None}, "a width of None"),
    "no blocks": ("llama", {"llama.block_count": None}, "has no 'num_hidden_layers'"),
    "another architecture": ("llama", {"general.architecture": "evil\n" * 1000}, "expected one of"),
    "an array of architectures": ("llama", {"general.architecture": ["llama"]}, "expected one of"),
    "another's settings": ("llama", {"general.architecture": "qwen3"}, "heads and a width"),
}


@pytest.mark.parametrize("name", LIES)
def test_invalid_settings_are_rejected(name, sound, path, refuse):
    kind, lies, match = LIES[name]
    metadata, tensors = sound[kind]
    metadata = {key: value for key, value in {**metadata, **lies}.items() if value is not None}
    write(path, metadata, tensors)
    refuse(path, match)


def embedding(tensors):
    return tensors["token_embd.weight"]


TENSORS = {
    "no embedding": (lambda t: {"token_embd.weight": None}, "no token_embd.weight"),
    "a transposed embedding": (
        lambda t: {"token_embd.weight": embedding(t).T},
        "257 tokens, but .* only 8",
    ),
    "a flattened embedding": (lambda t: {"token_embd.weight": embedding(t).flatten()}, "token|too few"),
    "one token too few": (lambda t: {"token_embd.weight": embedding(t)[:-1]}, "257 tokens, but .* only 256"),
    "an embedding of 4 dimensions": (
        lambda t: {"token_embd.weight": embedding(t)[:, None, None]},
        "embed_tokens.weight is 257×1×1×8, but its settings require 257×8",
    ),
    "no queries": (lambda t: {"blk.0.attn_q.weight": None, "more": torch.ones(64)}, "has no"),
    "reshaped keys": (
        lambda t: {"blk.0.attn_k.weight": t["blk.0.attn_k.weight"].reshape(4, 16)},
        "k_proj.weight is 4×16",
    ),
    "a transposed feed-forward": (
        lambda t: {"blk.0.ffn_up.weight": t["blk.0.ffn_up.weight"].T},
        "up_proj.weight is 8×32",
    ),
    "frequencies of another size": (lambda t: {"rope_freqs.weight": torch.ones(3)}, "does not fit its heads"),
    "frequencies of 4 GB": (lambda t: {"rope_freqs.weight": (2**30,)}, "does not fit its heads"),
    "frequencies of zero": (
        lambda t: {"rope_freqs.weight": torch.zeros(2)},
        "rope_scaling|differently from Llama 3",
    ),
    "NaN frequencies": (lambda t: {"rope_freqs.weight": torch.tensor([1, math.nan])}, "finite"),
    "frequencies unlike Llama 3's": (
        lambda t: {"rope_freqs.weight": torch.tensor([3.0, 2.0])},
        "differently from Llama 3",
    ),
    "an infinite norm": (lambda t: {"output_norm.weight": torch.full((8,), math.inf)}, "finite"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_invalid_tensors_are_rejected(name, sound, path, refuse):
    change, match = TENSORS[name]
    metadata, tensors = sound["llama"]
    tensors = {name: tensor for name, tensor in {**tensors, **change(tensors)}.items() if tensor is not None}
    write(path, metadata, tensors)
    refuse(path, match)


def test_model_larger_than_memory_is_rejected(sound, path, refuse):
    metadata, tensors = sound["qwen3"]
    metadata = {**metadata, "qwen3.embedding_length": 2**19, "qwen3.attention.key_length": 4}
    write(path, metadata, {**tensors, "token_embd.weight": (2**21, 2**19), "more": (2**30,)})
    refuse(path, "GB of memory, but this machine has")


def test_inconsistent_vocabulary_is_rejected(sound, path, refuse):
    metadata, tensors = sound["llama"]
    tokens = metadata["tokenizer.ggml.tokens"]
    write(path, {**metadata, "tokenizer.ggml.tokens": [*tokens, "more"]}, tensors)
    refuse(path, "tokenizer.ggml.token_type")
    longer = {"tokenizer.ggml.tokens": [*tokens, "more"], "tokenizer.ggml.token_type": [1] * 258}
    write(path, {**metadata, **longer}, tensors)
    refuse(path, "has 258 tokens, but its model has only 257")
    write(path, {**metadata, "tokenizer.ggml.eos_token_id": 257}, tensors)
    refuse(path, "expected a token id below 257")


def test_folder_with_a_pipe_as_the_model_is_rejected(tmp_path, refuse):
    os.mkfifo(tmp_path / "model.gguf")
    refuse(tmp_path, "is a pipe or device", tmp_path / "model.gguf")
