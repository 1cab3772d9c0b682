"""Models of every family saved by transformers load here with the same logits, and load there again."""

import json

import pytest
import torch
import transformers

import clearhead
from clearhead.errors import UserError
from clearhead.text.tokenizer import Tokenizer

SIZES = {
    "vocab_size": 257,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "bos_token_id": 256,
    "eos_token_id": 256,
    "pad_token_id": 256,
}
GROUPED = {**SIZES, "num_key_value_heads": 2}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 50_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
GEMMA = {**GROUPED, "head_dim": 16, "query_pre_attn_scalar": 24, "sliding_window": 5}
GPT2 = {"vocab_size": 257, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "eos_token_id": 256}

CASES = {
    "gpt2": ("GPT2", GPT2),
    "gpt2, relu, untied": ("GPT2", {**GPT2, "activation_function": "relu", "tie_word_embeddings": False}),
    "llama": ("Llama", GROUPED),
    "llama, tied, biased": (
        "Llama",
        {**SIZES, "tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True},
    ),
    "llama 3": ("Llama", {**GROUPED, "head_dim": 16, "rope_parameters": LLAMA3}),
    "llama, linear": (
        "Llama",
        {**GROUPED, "rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}},
    ),
    "mistral": ("Mistral", {**GROUPED, "sliding_window": None, "head_dim": 16}),
    "mistral, window": ("Mistral", {**GROUPED, "sliding_window": 6}),
    "qwen2": ("Qwen2", GROUPED),
    "qwen2, window": (
        "Qwen2",
        {**GROUPED, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
    ),
    "qwen3": ("Qwen3", {**GROUPED, "head_dim": 16, "tie_word_embeddings": True}),
    "neox": ("GPTNeoX", {**SIZES, "rotary_pct": 0.25, "hidden_dropout": 0.1}),
    "neox, sequential": (
        "GPTNeoX",
        {**SIZES, "use_parallel_residual": False, "attention_bias": False, "hidden_act": "gelu_new"},
    ),
    "gemma 3": (
        "Gemma3",
        {**GEMMA, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
    ),
    "gemma 3, scaled RoPE": (
        "Gemma3",
        {
            **GEMMA,
            "layer_types": ["sliding_attention", "full_attention", "full_attention"],
            "rope_parameters": {
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
                "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
            },
        },
    ),
}
# Small caps, which change the numbers of a small model.
CAPS = {"attn_logit_softcapping": 0.5, "final_logit_softcapping": 0.7, "query_pre_attn_scalar": 24}
CASES |= {
    "gemma 2": ("Gemma2", {**GEMMA, **CAPS}),
    "gemma 2, one cap, untied": (
        "Gemma2",
        {
            **GEMMA,
            **CAPS,
            "final_logit_softcapping": None,
            "layer_types": ["full_attention", "sliding_attention", "full_attention"],
            "tie_word_embeddings": False,
            "attention_bias": True,
        },
    ),
}
NEO = {
    "vocab_size": 257,
    "hidden_size": 32,
    "num_layers": 3,
    "num_heads": 4,
    "max_position_embeddings": 64,
    "window_size": 5,
    "attention_types": [[["global", "local"], 1], [["local"], 1]],
    "bos_token_id": 256,
    "eos_token_id": 256,
}
OPT = {**SIZES, "ffn_dim": 48, "word_embed_proj_dim": 32}
CASES |= {
    "phi 3": ("Phi3", GROUPED),
    "phi 3, window": ("Phi3", {**SIZES, "sliding_window": 6}),
    "phi 4": (
        "Phi3",
        {
            **GROUPED,
            "tie_word_embeddings": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.75},
        },
    ),
    "gpt neo": ("GPTNeo", NEO),
    "gpt neo, untied": ("GPTNeo", {**NEO, "tie_word_embeddings": False, "intermediate_size": 40}),
    "opt": ("OPT", OPT),
    "opt, without biases": ("OPT", {**OPT, "enable_bias": False, "tie_word_embeddings": False}),
}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 16}
MSCALE = {"mscale": 0.7, "mscale_all_dim": 0.4, "beta_fast": 4, "beta_slow": 0.5}
CASES |= {
    "llama, yarn": ("Llama", {**GROUPED, "rope_parameters": YARN}),
    "qwen2, yarn": ("Qwen2", {**GROUPED, "rope_parameters": {**YARN, **MSCALE}}),
    "qwen3, yarn": (
        "Qwen3",
        {**GROUPED, "rope_parameters": {**YARN, "attention_factor": 1.3, "beta_fast": 8}},
    ),
    "neox, yarn": (
        "GPTNeoX",
        {**SIZES, "rope_parameters": {**YARN, "partial_rotary_factor": 0.5}},
    ),
    "smollm3": ("SmolLM3", {**GROUPED, "num_hidden_layers": 4}),
    "smollm3, window": (
        "SmolLM3",
        {
            **GROUPED,
            "no_rope_layers": [1, 0, 0],
            "use_sliding_window": True,
            "sliding_window": 5,
            "rope_parameters": YARN,
        },
    ),
    "olmo 2": ("Olmo2", SIZES),
    "olmo 2, grouped": ("Olmo2", {**GROUPED, "attention_bias": True, "tie_word_embeddings": True}),
}
TEXT = "The chicken didn't cross the road"


@pytest.fixture(params=CASES)
def theirs(request):
    name, settings = CASES[request.param]
    torch.manual_seed(0)
    suffix = "TextConfig" if name == "Gemma3" else "Config"
    config = getattr(transformers, f"{name}{suffix}")(**settings)
    model = getattr(transformers, f"{name}{'LMHeadModel' if name == 'GPT2' else 'ForCausalLM'}")(
        config
    ).eval()
    model.set_attn_implementation("eager")  # others ignore the cap of Gemma 2's scores
    for parameter in model.parameters():  # so that a mixed-up bias or gain is detected
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return model


@pytest.fixture
def folder(theirs, tmp_path):
    theirs.save_pretrained(tmp_path / "theirs")
    Tokenizer.train("byte", []).save(tmp_path / "theirs", 64)
    return tmp_path / "theirs"


@torch.no_grad()
def test_logits_and_greedy_tokens_match_and_round_trip(theirs, folder, tmp_path):
    model = clearhead.load(folder, device="cpu")
    ids = torch.tensor([model.tokenizer.encode(TEXT)])
    expected = theirs(ids).logits[0]
    assert torch.allclose(model.logits(TEXT), expected, rtol=0, atol=1e-4)

    trace = model.inspect(TEXT)
    assert trace.verify() <= 1e-5
    found = trace.attribute(65)
    logits = trace.read("logits" if model.config.logit_cap is None else "logits_raw")
    assert abs(found.total - logits[-1, 65].item()) <= 1e-5 * found.values.abs().sum().item()
    why = trace.block[model.config.n_block - 1].head[1].why(20, 17)
    score = trace.read(f"block.{model.config.n_block - 1}.head.1.scores", rows=20, columns=17)
    assert abs(why.total - score.item()) <= 1e-5 * why.values.abs().sum().item()

    mask = torch.ones_like(ids)
    written = theirs.generate(ids, attention_mask=mask, max_new_tokens=25, do_sample=False)[0, ids.shape[1] :]
    ours = []
    for _ in range(25):
        ours.append(
            int(
                model.network(torch.cat((ids[0], torch.tensor(ours, dtype=torch.long)))[None])[0, -1].argmax()
            )
        )
        if ours[-1] == 256:
            break
    assert ours == written.tolist()
    assert model.generate(TEXT, tokens=25, temperature=0) == model.tokenizer.decode(written.tolist())

    model.save(tmp_path / "ours")
    again = clearhead.load(tmp_path / "ours", device="cpu")
    assert again.config == model.config
    for (name, one), other in zip(model.network.named_parameters(), again.network.parameters(), strict=True):
        assert torch.equal(one, other), name
    there = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "ours", attn_implementation="eager")
    assert torch.allclose(there(ids).logits[0], expected, rtol=0, atol=1e-4)


@torch.no_grad()
def test_attention_weights_match_transformers(theirs, folder):
    model = clearhead.load(folder, device="cpu")
    theirs.set_attn_implementation("eager")
    weights = theirs(torch.tensor([model.tokenizer.encode(TEXT)]), output_attentions=True).attentions
    trace = model.inspect(TEXT)
    for i, expected in enumerate(weights):
        assert torch.allclose(trace.weights(i), expected[0], atol=1e-5)


@torch.no_grad()
def test_sharded_files_and_half_precision_load(theirs, folder, tmp_path):
    theirs.save_pretrained(tmp_path / "shards", max_shard_size="20KB")
    Tokenizer.train("byte", []).save(tmp_path / "shards", 64)
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 1
    model = clearhead.load(tmp_path / "shards", device="cpu")
    assert torch.equal(model.logits(TEXT), clearhead.load(folder, device="cpu").logits(TEXT))
    half = clearhead.load(folder, device="cpu", dtype="bfloat16")
    assert half.network.embedding.weight.dtype == torch.bfloat16


def test_tensor_names_without_prefix_load(tmp_path):
    """The oldest files on the Hugging Face Hub have such names."""
    from safetensors.torch import load_file, save_file

    torch.manual_seed(0)
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2)).eval()
    theirs.save_pretrained(tmp_path)
    Tokenizer.train("byte", []).save(tmp_path, 64)
    whole = clearhead.load(tmp_path, device="cpu").logits(TEXT)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file(
        {name.removeprefix("transformer."): t for name, t in tensors.items()}, tmp_path / "model.safetensors"
    )
    assert torch.equal(clearhead.load(tmp_path, device="cpu").logits(TEXT), whole)


@torch.no_grad()
def test_each_cap_of_gemma_2_changes_the_logits(tmp_path):
    torch.manual_seed(0)
    theirs = transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**{**GEMMA, **CAPS}))
    for parameter in theirs.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    theirs.save_pretrained(tmp_path)
    Tokenizer.train("byte", []).save(tmp_path, 64)
    config = json.loads((tmp_path / "config.json").read_text())
    capped = clearhead.load(tmp_path, device="cpu").logits(TEXT)
    assert capped.abs().max() < CAPS["final_logit_softcapping"]
    for name in ("attn_logit_softcapping", "final_logit_softcapping"):
        (tmp_path / "config.json").write_text(json.dumps({**config, name: None}))
        assert not torch.allclose(clearhead.load(tmp_path, device="cpu").logits(TEXT), capped, atol=1e-3), (
            name
        )


@torch.no_grad()
def test_even_numbered_blocks_of_gemma_2_without_layer_types_are_local(tmp_path):
    theirs = transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**GEMMA))
    theirs.save_pretrained(tmp_path)
    Tokenizer.train("byte", []).save(tmp_path, 64)
    config = json.loads((tmp_path / "config.json").read_text())
    for name in ("layer_types", "attn_logit_softcapping", "final_logit_softcapping"):
        del config[name]
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = clearhead.load(tmp_path, device="cpu").config
    assert (found.local_blocks, found.window) == ((0, 2), 5)
    assert (found.score_cap, found.logit_cap) == (50, 30)


def test_older_setting_names_load(tmp_path):
    """Files from before transformers 5 have rope_theta and rope_local_base_freq, and no layer_types."""
    torch.manual_seed(0)
    settings = {**GEMMA, "num_hidden_layers": 7}
    theirs = transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(**settings)).eval()
    theirs.save_pretrained(tmp_path)
    Tokenizer.train("byte", []).save(tmp_path, 64)
    config = json.loads((tmp_path / "config.json").read_text())
    for name in ("rope_parameters", "layer_types", "_sliding_window_pattern"):
        config.pop(name, None)
    config |= {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "sliding_window_pattern": 6}
    (tmp_path / "config.json").write_text(json.dumps(config))
    model = clearhead.load(tmp_path, device="cpu")
    assert model.config.local_blocks == (0, 1, 2, 3, 4, 6)
    with torch.no_grad():
        expected = theirs(torch.tensor([model.tokenizer.encode(TEXT)])).logits[0]
    assert torch.allclose(model.logits(TEXT), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "settings", "changes", "message"),
    [
        ("OPT", OPT, {"do_layer_norm_before": False}, "do_layer_norm_before = False, which is not supported"),
        ("OPT", OPT, {"word_embed_proj_dim": 16}, "word_embed_proj_dim = 16, which is not supported"),
        ("Phi3", SIZES, {"rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4}}, "'longrope'"),
        ("Phi3", SIZES, {"rope_parameters": {"rope_type": "yarn", "factor": 2.0}}, "means 'longrope'"),
        ("SmolLM3", SIZES, {"no_rope_layers": [1]}, "expected 0 or 1 for each of 3 blocks"),
        (
            "SmolLM3",
            SIZES,
            {"no_rope_layers": None, "no_rope_layer_interval": 0},
            "no_rope_layer_interval = 0",
        ),
        ("Gemma2", GEMMA, {"attn_logit_softcapping": 0}, "score_cap = 0: expected a number between 0 and"),
        ("Gemma2", GEMMA, {"hidden_activation": "gelu"}, "hidden_activation = 'gelu', which is not"),
        ("Gemma2", GEMMA, {"use_bidirectional_attention": True}, "use_bidirectional_attention = True"),
        ("Phi3", SIZES, {"rope_parameters": {"partial_rotary_factor": 2}}, "partial_rotary_factor = 2"),
        ("GPTNeo", NEO, {"attention_layers": ["global"]}, "the kinds of 1 blocks, but num_layers is 3"),
        (
            "GPTNeo",
            NEO,
            {"attention_layers": ["global", "dense", "x"]},
            "other than lists of global and local",
        ),
    ],
)
def test_unsupported_settings_of_a_family_are_rejected(kind, settings, changes, message, tmp_path):
    config = getattr(transformers, f"{kind}Config")(**settings)
    getattr(transformers, f"{kind}ForCausalLM")(config).save_pretrained(tmp_path)
    Tokenizer.train("byte", []).save(tmp_path, 64)
    clearhead.load(tmp_path, "cpu")
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(UserError, match=message):
        clearhead.load(tmp_path, "cpu")


@pytest.fixture
def small(tmp_path):
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**GROUPED)).save_pretrained(tmp_path)
    Tokenizer.train("byte", []).save(tmp_path, 64)
    return tmp_path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": 2}, r"has model\.layers\.2\..*, but its settings specify 2 blocks"),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 0}}, "rotary_base = 0"),
        ({"quantization_config": {"quant_method": "gptq"}}, "quantized"),
        ({"model_type": "mixtral"}, "mixtral"),
        (
            {"rope_parameters": {"rope_type": "yarn", "factor": 2.0, "truncate": False}},
            "truncate = False, which is not supported",
        ),
        ({"rope_parameters": {"rope_type": "yarn", "factor": "2"}}, "factor = '2'"),
        ({"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}, "'dynamic', which is not supported"),
    ],
)
def test_mismatched_and_unsupported_configs_are_rejected(changes, message, small):
    config = json.loads((small / "config.json").read_text())
    (small / "config.json").write_text(json.dumps({**config, **changes}))
    with pytest.raises(UserError, match=message):
        clearhead.load(small, "cpu")


def test_integer_weights_and_sentencepiece_tokenizers_are_rejected(small):
    from safetensors.torch import load_file, save_file

    tensors = load_file(small / "model.safetensors")
    tensors["model.embed_tokens.weight"] = tensors["model.embed_tokens.weight"].to(torch.int8)
    save_file(tensors, small / "model.safetensors")
    with pytest.raises(UserError, match=r"model.embed_tokens.weight is I8, expected floats"):
        clearhead.load(small, "cpu")
    (small / "tokenizer.json").rename(small / "tokenizer.model")
    with pytest.raises(UserError, match=r"tokenizer\.model but no"):
        Tokenizer.load(small)


def test_torch_device_and_dtype_objects_are_accepted(small):
    model = clearhead.load(small, torch.device("cpu"), torch.bfloat16)
    assert model.network.embedding.weight.dtype == torch.bfloat16
    for name in (None, 5, b"x"):
        with pytest.raises(UserError, match="is not the name of a model"):
            clearhead.load(name)
    with pytest.raises(UserError, match="did you mean 'smollm2'"):
        clearhead.load("SmolLM")
