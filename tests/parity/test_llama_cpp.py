"""Exported GGUF files: read by gguf's own reader, loaded here again, and run by llama.cpp itself."""

import json
import math

import gguf
import numpy as np
import pytest
import torch

import clearhead
from clearhead.errors import UserError
from clearhead.language_model import LanguageModel
from clearhead.model.config import Config, preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

xllamacpp = pytest.importorskip(
    "xllamacpp", reason="xllamacpp (llama.cpp) is not installed: pip install '.[dev]'"
)

SIZES = {"n_vocab": 257, "n_context": 128, "n_block": 2, "n_head": 2, "d_model": 64}
LLAMA = {"qk_norm": False, "n_kv_head": 1}
GEMMA = {
    "n_block": 7,
    "feedforward": "geglu",
    "n_kv_head": 1,
    "post_norm": True,
    "embedding_scale": 8.0,
    "window": 8,
    "local_blocks": [0, 1, 2, 3, 4, 6],
    "local_rotary_base": 10_000.0,
    "rotary_base": 1_000_000.0,
}
LLAMA3 = {
    "kind": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_context": 64,
}
CASES = {
    "gpt2": ("gpt2", preset("gpt2", **SIZES)),
    "gpt2, untied": ("gpt2", preset("gpt2", **SIZES, tied=False)),
    "modern": ("qwen3", preset("modern", **SIZES)),
    "modern, wide heads": (
        "qwen3",
        preset("modern", **{**SIZES, "n_kv_head": 1, "d_head": 64, "tied": False}),
    ),
    "llama": ("llama", preset("modern", **{**SIZES, **LLAMA})),
    "llama 3": ("llama", preset("modern", **{**SIZES, **LLAMA, "rope_scaling": LLAMA3})),
    "llama, linear": (
        "llama",
        preset("modern", **{**SIZES, **LLAMA, "rope_scaling": {"kind": "linear", "factor": 4.0}}),
    ),
    "qwen2": ("qwen2", preset("modern", **{**SIZES, **LLAMA, "qkv_bias": True, "rotary_base": 500_000.0})),
    "neox": (
        "gptneox",
        preset(
            "gpt2",
            **SIZES,
            feedforward="gelu",
            position="rotary",
            rotary_dim=8,
            parallel=True,
            tied=False,
        ),
    ),
    "gemma 3": ("gemma3", preset("modern", **{**SIZES, **GEMMA})),
}
GEMMA2 = {
    "n_block": 3,
    "qk_norm": False,
    "feedforward": "geglu",
    "n_kv_head": 1,
    "post_norm": True,
    "embedding_scale": 8.0,
    "window": 8,
    "local_blocks": [0, 2],
    "score_cap": 0.5,  # small, so that it changes the numbers of a small model
    "logit_cap": 1.5,
}
CASES["gemma 2"] = ("gemma2", preset("modern", **{**SIZES, **GEMMA2}))
YARN = {
    "kind": "yarn",
    "factor": 4.0,
    "high_freq_factor": 32.0,
    "original_context": 32,
    "attention_factor": 1 + math.log(4) / 10,
}
OLMO = {"qk_norm_joint": True, "pre_norm": False, "post_norm": True, "tied": False, "n_kv_head": 1}
CASES |= {
    "llama, yarn": ("llama", preset("modern", **{**SIZES, **LLAMA, "rope_scaling": YARN})),
    "qwen3, yarn": ("qwen3", preset("modern", **{**SIZES, "rope_scaling": YARN})),
    "smollm3": ("smollm3", preset("modern", **{**SIZES, **LLAMA, "n_block": 5, "unrotated_blocks": [3]})),
    "olmo 2": ("olmo2", preset("modern", **{**SIZES, **OLMO})),
}
PROMPT = "The chicken didn't cross the road because it was"


def make(config: Config, tokenizer: Tokenizer | None = None) -> LanguageModel:
    torch.manual_seed(0)
    network = Transformer(config)
    for parameter in network.parameters():  # so that a mixed-up bias or gain is detected
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return LanguageModel(network, tokenizer or Tokenizer.train("byte", []))


def unwanted(tokenizer: Tokenizer) -> list[int]:
    """Tokens that are partial characters, which llama.cpp does not report individually, and the end token."""
    pieces = tokenizer.pieces(range(tokenizer.n_vocab))
    return [
        i for i, piece in enumerate(pieces) if not piece.isascii() or "\\x" in piece or i == tokenizer.end_id
    ]


def ask_llama_cpp(
    path, prompt: str | list[int], tokenizer: Tokenizer, count: int
) -> tuple[list[int], list[float]]:
    """Return the greedy continuation and the log-probability of each of its tokens."""
    settings = xllamacpp.CommonParams()
    settings.model.path = str(path)
    settings.n_ctx, settings.n_parallel, settings.warmup = 128, 1, False
    settings.cpuparams.n_threads = 1
    answers = []
    request = {"prompt": prompt, "n_predict": count, "temperature": 0, "n_probs": 1}
    request["logit_bias"] = [[i, False] for i in unwanted(tokenizer)]
    xllamacpp.Server(settings).handle_completions(request, answers.append)
    said = answers[0]["choices"][0]["logprobs"]["content"]
    return [each["id"] for each in said], [each["logprob"] for each in said]


@torch.no_grad()
def continue_greedily(model: LanguageModel, ids: list[int], count: int) -> tuple[list[int], list[float]]:
    written, certain = list(ids), []
    for _ in range(count):
        logits = model.network(torch.tensor([written]))[0, -1]
        certainty = logits.log_softmax(-1)  # over all tokens, as llama.cpp reports it
        logits[unwanted(model.tokenizer)] = -torch.inf
        written.append(int(logits.argmax()))
        certain.append(certainty[written[-1]].item())
    return written[len(ids) :], certain


@pytest.mark.parametrize("case", CASES)
def test_llama_cpp_generates_the_same_tokens(case, tmp_path):
    kind, config = CASES[case]
    model, path = make(config), tmp_path / "model.gguf"
    model.export(path, "gguf", "F32")
    again = clearhead.load(path, "cpu")
    assert again.config == config
    for (name, one), other in zip(model.network.named_parameters(), again.network.parameters(), strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-7), name

    reader = gguf.GGUFReader(path)
    assert reader.fields["general.architecture"].contents() == kind
    vectors = next(tensor for tensor in reader.tensors if tensor.name == "token_embd.weight")
    assert np.array_equal(vectors.data, model.network.embedding.weight.detach().numpy())

    ids = model.tokenizer.encode(PROMPT)
    ours, certain = continue_greedily(again, ids, 16)
    theirs, their_certain = ask_llama_cpp(path, ids, model.tokenizer, 16)
    # llama.cpp looks up GELU in a half-precision table and stores keys and values in half precision. So two
    # tokens that are almost equally likely may swap ranks; after that, the texts differ.
    same = next(
        (i for i, (one, other) in enumerate(zip(theirs, ours, strict=True)) if one != other), len(ours)
    )
    assert same >= 2
    assert their_certain[: same + 1] == pytest.approx(certain[: same + 1], abs=2e-2)


@pytest.mark.parametrize("numbers", ["F16", "Q8_0"])
def test_lower_precision_exports(numbers, tmp_path):
    model, path = make(CASES["modern"][1]), tmp_path / "model.gguf"
    model.export(path, "gguf", numbers)
    again = clearhead.load(path, "cpu")
    kinds = {tensor.name: tensor.tensor_type.name for tensor in gguf.GGUFReader(path).tensors}
    assert kinds["blk.0.ffn_up.weight"] == numbers
    assert kinds["blk.0.attn_norm.weight"] == "F32"
    exact = model.network.blocks[0].feedforward.first.weight
    error = (again.network.blocks[0].feedforward.first.weight - exact).abs().max() / exact.abs().max()
    assert 0 < error < 0.01
    ids = model.tokenizer.encode(PROMPT)
    assert ask_llama_cpp(path, ids, model.tokenizer, 3)[0] == continue_greedily(again, ids, 3)[0]


def test_bpe_tokenizer_is_exported(tmp_path):
    pieces = ["The chicken didn't cross the road because it was too tired. 1 23 456\n\n  ok 漢字 🙂"] * 4
    tokenizer = Tokenizer.train("bpe", pieces, 300)
    config = preset("modern", **{**SIZES, "n_vocab": tokenizer.n_vocab})
    model, path = make(config, tokenizer), tmp_path / "model.gguf"
    model.export(path, "gguf", "F32")
    again = clearhead.load(path, "cpu")
    text = "The road's tired 1234 chickens\n\n  漢字🙂 were"
    assert again.tokenizer.encode(text) == tokenizer.encode(text)
    assert again.tokenizer.end_id == tokenizer.end_id
    assert (
        ask_llama_cpp(path, text, tokenizer, 4)[0] == continue_greedily(again, tokenizer.encode(text), 4)[0]
    )


@pytest.mark.parametrize(
    ("config", "kind", "message"),
    [
        (
            preset("lecture", **SIZES),
            "byte",
            "gelu_tanh in the feed-forward network, but this model uses relu",
        ),
        (
            preset("modern", **SIZES, causal=False),
            "byte",
            "this model cannot be exported: no architecture outside Clearhead",
        ),
        (
            preset("modern", **SIZES, window=4, local_blocks=[0]),
            "byte",
            "some blocks of this model are local",
        ),
        (
            preset("modern", **{**SIZES, **LLAMA, "window": 4, "local_blocks": [0, 1]}),
            "byte",
            "some blocks of this model are local",
        ),
        (preset("modern", **{**SIZES, "n_vocab": 4}), "char", "char"),
        (
            preset("modern", **{**SIZES, **GEMMA, "d_k": 5}),
            "byte",
            "llama.cpp divides scores by √32",
        ),
        (
            preset("modern", **{**SIZES, **LLAMA, "unrotated_blocks": [0]}),
            "byte",
            "llama.cpp's blocks without positions are",
        ),
        (
            preset("modern", **{**SIZES, **LLAMA, "rope_scaling": {**YARN, "attention_factor": 1.5}}),
            "byte",
            "YaRN has different factors",
        ),
        (preset("modern", **{**SIZES, **OLMO, "tied": True}), "byte", "olmo2 has a separate unembedding"),
        (preset("modern", **{**SIZES, **GEMMA, "local_blocks": [1]}), "byte", "llama.cpp's local blocks are"),
        (
            preset("modern", **{**SIZES, **GEMMA2, "local_blocks": [1]}),
            "byte",
            "llama.cpp's local blocks are",
        ),
        (preset("modern", **{**SIZES, **GEMMA2, "score_cap": None}), "byte", "gemma2 caps both"),
        (
            preset("modern", **{**SIZES, **GEMMA2, "tied": False}),
            "byte",
            "gemma2 has no separate unembedding",
        ),
        (preset("modern", **SIZES, score_cap=50.0), "byte", "this model cannot be exported"),
    ],
)
def test_unsupported_models_are_rejected_with_a_reason(config, kind, message, tmp_path):
    model = make(config, Tokenizer.train(kind, ["abc"]))
    with pytest.raises(UserError, match=message):
        model.export(tmp_path / "model.gguf", "gguf")
    assert not list(tmp_path.iterdir())


def test_unsupported_models_are_not_exported_as_a_folder(tmp_path):
    model = make(preset("modern", **SIZES, causal=False), Tokenizer.train("byte", []))
    with pytest.raises(UserError, match="this model cannot be exported: no architecture outside Clearhead"):
        model.export(tmp_path / "folder")
    assert not list(tmp_path.iterdir())


def test_invalid_export_requests_are_rejected(tmp_path):
    model = make(CASES["gpt2"][1])
    with pytest.raises(UserError, match="expected huggingface or gguf"):
        model.export(tmp_path / "x", "onnx")
    with pytest.raises(UserError, match="choose one of F32, F16, Q8_0"):
        model.export(tmp_path / "x.gguf", "gguf", "Q2_K")
    (tmp_path / "x.gguf").write_text("mine")
    with pytest.raises(UserError, match="already exists"):
        model.export(tmp_path / "x.gguf", "GGUF")
    with pytest.raises(UserError, match="applies to gguf only"):
        model.export(tmp_path / "x", numbers="F16")
    with pytest.raises(UserError, match="is not empty"):
        model.export(tmp_path)
    model.export(tmp_path / "new" / "z.gguf")
    assert gguf.GGUFReader(tmp_path / "new" / "z.gguf").fields["general.name"].contents() == "z"
    with pytest.raises(UserError, match="no chat template"):
        model.chat_text([{"role": "user", "content": "hi"}])
    large = make(CASES["gpt2"][1])
    large.network.embedding.weight.data[0, 0] = 1e6
    with pytest.raises(UserError, match="F16 cannot represent"):
        large.export(tmp_path / "y.gguf", "gguf")
    assert not (tmp_path / "y.gguf").exists()
    json.dumps(model.config.to_json())
