"""Every site against a plain float64 implementation of the same model."""

import math

import pytest
import torch

from clearhead.errors import UserError
from clearhead.inspect.sites import MATRICES, all_sites
from clearhead.inspect.trace import Trace
from clearhead.model.config import PRESETS, Config
from clearhead.model.transformer import Transformer
from tests.shapes import GEMMA2

SIZES = {"n_vocab": 11, "n_context": 9, "n_block": 2, "n_head": 4, "d_model": 24}
CHOICES = PRESETS | {
    "shared keys": {**PRESETS["modern"], "n_kv_head": 2},
    "shared keys, gpt2": {**PRESETS["gpt2"], "n_kv_head": 1},
    "bidirectional": {**PRESETS["modern"], "causal": False, "n_kv_head": 2},
    "sinusoidal, untied": {**PRESETS["lecture"], "position": "sinusoidal", "tied": False},
    "wide heads": {**PRESETS["modern"], "d_head": 10},
    "parallel, partly rotated": {
        **PRESETS["gpt2"],
        "position": "rotary",
        "rotary_dim": 4,
        "parallel": True,
        "tied": False,
    },
    "post-norm, partly local": {
        **PRESETS["modern"],
        "feedforward": "geglu",
        "n_kv_head": 2,
        "post_norm": True,
        "embedding_scale": 5.0,
        "window": 3,
        "local_blocks": [0],
        "local_rotary_base": 100.0,
        "rope_scaling": {"kind": "linear", "factor": 8.0},
        "d_k": 10,
    },
    "post-norm, with means": {**PRESETS["lecture"], "post_norm": True},
    "capped, partly local": {**GEMMA2, "n_kv_head": 2},
    "capped scores": {**PRESETS["lecture"], "score_cap": 0.8},
    "capped logits": {**PRESETS["modern"], "logit_cap": 1.5, "causal": False},
    "stretched": {
        **PRESETS["modern"],
        "d_head": 16,
        "rope_scaling": {
            "kind": "llama3",
            "factor": 4.0,
            "low_freq_factor": 0.5,
            "high_freq_factor": 2.0,
            "original_context": 40,
        },
    },
}
# Slow tests, because the other choices cover the features of these.
SLOW = {"gpt2", "shared keys", "shared keys, gpt2", "wide heads", "post-norm, with means"}
IDS = torch.tensor([3, 1, 4, 1, 5, 9, 2])
HEAD_NAMES = (
    "query_raw",
    "key_raw",
    "query",
    "key",
    "value",
    "scores",
    "scaled",
    "masked",
    "weights",
    "mixed",
)


def make(choice: str) -> Transformer:
    torch.manual_seed(0)
    network = Transformer(Config.from_json({**SIZES, **CHOICES[choice]})).eval()
    for parameter in network.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    return network


def inspect(network: Transformer, ids: torch.Tensor = IDS, **more: object) -> Trace:
    with torch.no_grad():
        return Trace(network, ids[None], [[str(int(i)) for i in ids]], **more)


class Reference:
    """All sites by name, in float64, computed position by position where that is simplest."""

    def __init__(self, network: Transformer, ids: torch.Tensor) -> None:
        self.c, self.T = network.config, len(ids)
        self.w = {name: tensor.double() for name, tensor in network.state_dict().items()}
        self.sites: dict[str, torch.Tensor] = {}
        x = self.start(ids)
        for i in range(self.c.n_block):
            x = self.feedforward(i, self.attention(i, x))
        final = self.norm(x, "final_norm", "final")
        logits = final @ self.w["unembedding.weight"].T
        if self.c.logit_cap is not None:
            self.sites["logits_raw"] = logits
            logits = self.cap(logits, self.c.logit_cap)
        self.sites["logits"] = logits
        self.sites["probabilities"] = logits.exp() / logits.exp().sum(1, keepdim=True)

    def cap(self, values, limit):
        powers = (2 * values / limit).exp()
        return limit * (powers - 1) / (powers + 1)

    def linear(self, x, name):
        out = x @ self.w[f"{name}.weight"].T
        return out + self.w[f"{name}.bias"] if f"{name}.bias" in self.w else out

    def norm(self, x, name, site=None):
        gain, shift = self.w[f"{name}.gain"], self.w.get(f"{name}.shift")
        rows, means, scales = [], [], []
        for row in x:
            mean = row.sum() / len(row) if shift is not None else torch.zeros(()).double()
            scale = (((row - mean) ** 2).sum() / len(row) + self.c.norm_epsilon).sqrt()
            out = gain * (row - mean) / scale
            rows.append(out if shift is None else out + shift)
            means.append(mean)
            scales.append(scale)
        if site is not None:
            self.sites[site], self.sites[f"{site}.scale"] = torch.stack(rows), torch.stack(scales)
            if shift is not None:
                self.sites[f"{site}.mean"] = torch.stack(means)
        return torch.stack(rows)

    def start(self, ids):
        x = self.sites["embedding"] = self.w["embedding.weight"][ids] * self.c.embedding_scale
        if self.c.position == "learned":
            self.sites["position"] = self.w["position.weight"][: self.T]
        elif self.c.position == "sinusoidal":
            table = torch.zeros(self.T, self.c.d_model).double()
            for t in range(self.T):
                for f in range(0, self.c.d_model, 2):
                    angle = t / 10_000 ** (f / self.c.d_model)
                    table[t, f], table[t, f + 1] = math.sin(angle), math.cos(angle)
            self.sites["position"] = table
        return x + self.sites["position"] if "position" in self.sites else x

    def frequency(self, i, f):
        """Return the rotation in radians per position of pair f in block i."""
        local = i in self.c.local_blocks and self.c.local_rotary_base
        frequency = (local or self.c.rotary_base) ** (-2 * f / self.c.rotary_dim)
        scaling = None if local else self.c.rope_scaling
        if scaling is None:
            return frequency
        if scaling.kind == "linear":
            return frequency / scaling.factor
        wavelength = 2 * math.pi / frequency
        if wavelength < scaling.original_context / scaling.high_freq_factor:
            return frequency
        if wavelength > scaling.original_context / scaling.low_freq_factor:
            return frequency / scaling.factor
        smooth = (scaling.original_context / wavelength - scaling.low_freq_factor) / (
            scaling.high_freq_factor - scaling.low_freq_factor
        )
        return (1 - smooth) * frequency / scaling.factor + smooth * frequency

    def turn(self, vector, place, i):
        if self.c.position != "rotary":
            return vector
        half, rotated = self.c.rotary_dim // 2, vector.clone()
        for f in range(half):
            angle = place * self.frequency(i, f)
            a, b = vector[f], vector[f + half]
            rotated[f] = a * math.cos(angle) - b * math.sin(angle)
            rotated[f + half] = b * math.cos(angle) + a * math.sin(angle)
        return rotated

    def attention(self, i, x):
        c, at, of = self.c, f"block.{i}", f"blocks.{i}"
        self.sites[f"{at}.input"] = x
        t1 = self.norm(x, f"{of}.norm", f"{at}.normed")
        queries, keys, values = (
            self.linear(t1, f"{of}.attention.{role}") for role in ("query", "key", "value")
        )
        total = torch.zeros_like(x)
        for j in range(c.n_head):
            k = j // (c.n_head // c.n_kv_head)
            own, shared = (slice(c.d_head * n, c.d_head * (n + 1)) for n in (j, k))
            query_raw, key_raw, value = queries[:, own], keys[:, shared], values[:, shared]
            query, key = query_raw, key_raw
            if c.qk_norm:
                query = self.norm(query, f"{of}.attention.query_norm")
                key = self.norm(key, f"{of}.attention.key_norm")
                self.sites[f"{at}.head.{j}.query_normed"] = query
                self.sites[f"{at}.head.{j}.key_normed"] = key
            query = torch.stack([self.turn(query[t], t, i) for t in range(self.T)])
            key = torch.stack([self.turn(key[t], t, i) for t in range(self.T)])
            scores = torch.stack([torch.stack([q @ k for k in key]) for q in query])
            scaled = scores / math.sqrt(c.d_k)
            masked = scaled.clone()
            if c.score_cap is not None:
                masked = self.cap(scaled, c.score_cap)
                self.sites[f"{at}.head.{j}.capped"] = masked.clone()
            if c.causal:
                for row in range(self.T):
                    masked[row, row + 1 :] = -math.inf
                    if i in c.local_blocks:
                        masked[row, : max(0, row - c.window + 1)] = -math.inf
            weights = masked.exp() / masked.exp().sum(1, keepdim=True)
            mixed = weights @ value
            steps = (query_raw, key_raw, query, key, value, scores, scaled, masked, weights, mixed)
            for name, step in zip(HEAD_NAMES, steps, strict=True):
                self.sites[f"{at}.head.{j}.{name}"] = step
            output = mixed @ self.w[f"{of}.attention.output.weight"].T[own]
            self.sites[f"{at}.head.{j}.output"] = output
            self.sites[f"{at}.kv_head.{k}.key"], self.sites[f"{at}.kv_head.{k}.value"] = key, value
            total = total + output
        total = total + self.w.get(f"{of}.attention.output.bias", 0.0)
        self.sites[f"{at}.attention"] = total
        if c.post_norm:
            total = self.norm(total, f"{of}.attention_norm", f"{at}.attention_normed")
        if not c.parallel:
            self.sites[f"{at}.middle"] = total + x
        return total + x

    def feedforward(self, i, middle):
        at, of = f"block.{i}", f"blocks.{i}.feedforward"
        t4 = self.norm(
            self.sites[f"{at}.input"] if self.c.parallel else middle, f"blocks.{i}.norm2", f"{at}.normed2"
        )
        first = self.linear(t4, f"{of}.first")
        if self.c.gated:
            gate = self.sites[f"{at}.hidden_gate"] = self.linear(t4, f"{of}.gate")
            self.sites[f"{at}.hidden_up"] = first
            hidden = (
                self.gelu(gate) if self.c.feedforward == "geglu" else gate / (1 + (-gate).exp())
            ) * first
        else:
            self.sites[f"{at}.hidden_raw"] = first
            hidden = first.clamp(min=0)
            if self.c.feedforward == "gelu_tanh":
                hidden = self.gelu(first)
        self.sites[f"{at}.hidden"] = hidden
        t5 = self.sites[f"{at}.feedforward"] = self.linear(hidden, f"{of}.second")
        if self.c.post_norm:
            t5 = self.norm(t5, f"blocks.{i}.feedforward_norm", f"{at}.feedforward_normed")
        self.sites[f"{at}.output"] = t5 + middle
        return t5 + middle

    def gelu(self, x):
        return x / 2 * (1 + torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3)))


def error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    finite = expected.isfinite()
    assert torch.equal(actual.isfinite(), finite)
    return ((actual[finite] - expected[finite]).norm() / expected[finite].norm()).item()


@pytest.mark.parametrize("choice", CHOICES)
def test_every_site_matches_the_formulas(choice):
    network = make(choice)
    trace, expected = inspect(network), Reference(network, IDS).sites
    assert set(trace.sites()) == set(expected)
    assert [str(site) for site in all_sites(network.config)] == trace.sites()
    for name, value in expected.items():
        actual = trace[name]
        assert actual.shape == value.shape, name
        assert error(actual, value) <= 1e-5, name


@pytest.mark.parametrize("choice", CHOICES)
def test_trace_matches_the_model(choice):
    network = make(choice)
    trace = inspect(network)
    assert torch.equal(trace.logits, network(IDS[None])[0])
    assert trace.verify() <= 1e-5


def test_verify_detects_a_difference():
    trace = inspect(make("modern"))
    trace.stream.middles[1] += 0.01 * torch.randn_like(trace.stream.middles[1])
    assert trace.verify() > 1e-4


@pytest.mark.parametrize(
    ("choice", "side"),
    [
        *(
            pytest.param(choice, "left", marks=pytest.mark.slow if choice in SLOW else ())
            for choice in CHOICES
        ),
        ("modern", "right"),
    ],
)
def test_padded_sequence_equals_the_text_alone(choice, side):
    network, short = make(choice), IDS[:4]
    ids, real = torch.zeros(2, 7, dtype=torch.long), torch.ones(2, 7, dtype=torch.bool)
    own = slice(3, 7) if side == "left" else slice(0, 4)
    ids[0], ids[1, own] = IDS, short
    real[1] = False
    real[1, own] = True
    with torch.no_grad():
        both = Trace(network, ids, [["?"] * 7] * 2, real, single=False)
    alone = [inspect(network), inspect(network, short)]
    assert both.verify() <= 1e-5
    for name in both.sites():
        actual = both[name]
        kept = actual[1, own]
        if name.split(".")[-1] in MATRICES:
            kept = kept[:, own]
        for part, expected in ((actual[0], alone[0][name]), (kept, alone[1][name])):
            assert error(part, expected) <= 1e-5, name


@pytest.mark.parametrize("name", ["scores", "scaled", "masked", "weights", "mixed", "query", "output"])
def test_selected_rows_and_columns_match_the_full_matrix(name):
    head = inspect(make("shared keys")).block[1].head[2]
    whole = head.read(name)
    for rows in (slice(2, 5), [0, 6], 3, slice(None, None, 2), [-1]):
        picked = [rows] if isinstance(rows, int) else rows
        assert torch.allclose(head.read(name, rows=rows), whole[picked], atol=1e-6)
        assert torch.allclose(head.read(name, rows=rows, columns=[1, 0]), whole[picked][:, [1, 0]], atol=1e-6)


def test_reading_a_head_computes_only_that_head():
    """Reading a head multiplies by that head's matrices only."""
    trace = inspect(make("shared keys"))
    steps = trace.steps(1, [2])
    assert steps.weights.shape == (1, 1, 7, 7)
    assert steps.query_raw.shape == steps.key_raw.shape == (1, 1, 7, 6)
    assert "head_output" not in vars(steps)


def test_attributes_match_site_names():
    trace = inspect(make("lecture"))
    assert torch.equal(trace.block[1].head[3].weights, trace["block.1.head.3.weights"])
    assert torch.equal(trace.block[0].normed_scale, trace["block.0.normed.scale"])
    assert torch.equal(trace.block[0].kv_head[1].key, trace["block.0.kv_head.1.key"])
    assert "hidden_raw" in dir(trace.block[0])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("block.2.input", "blocks 0 to 1"),
        ("block.0.head.4.weights", "heads 0 to 3"),
        ("block.0.kv_head.4.key", "kv_heads 0 to 3"),
        ("block.0.head.1.weight", "did you mean 'weights'"),
        ("block.0.hidden_gate", "hidden_raw"),
        ("block.0.head.0.hidden", "query_raw, key_raw"),
        ("logit", "did you mean 'logits'"),
        ("blocks[0]", "such as block.0.head.0.weights"),
        ("", "such as"),
    ],
)
def test_unknown_site_error_lists_the_valid_names(name, words):
    with pytest.raises(UserError) as caught:
        inspect(make("lecture"))[name]
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_rows_and_columns_raise():
    trace = inspect(make("lecture"))
    with pytest.raises(UserError, match="row 7 does not exist: there are rows 0 to 6"):
        trace.read("block.0.head.0.weights", rows=7)
    with pytest.raises(UserError, match="columns 0 to 23"):
        trace.read("block.0.input", columns=[24])


def test_trace_stores_little_besides_the_residual_stream():
    trace = inspect(make("modern"))
    tensors = [*trace.stream.inputs, *trace.stream.middles, trace.stream.last]
    assert all(tensor.shape == (1, 7, 24) for tensor in tensors)
    assert len(tensors) == 2 * 2 + 1
    trace["block.1.head.0.weights"]
    kept = [value for value in vars(trace).values() if isinstance(value, torch.Tensor)]
    assert sum(tensor.numel() for tensor in kept) <= 7 * (11 + 2)  # logits, ids, positions


def test_gradients_flow_on_request():
    network = make("modern")
    trace = Trace(network, IDS[None], [["?"] * 7])
    trace["block.1.head.0.weights"][6, 0].backward()
    assert network.blocks[0].feedforward.second.weight.grad.abs().sum() > 0
    assert not inspect(network).logits.requires_grad


def test_watch_callback_can_stop_the_run():
    network, seen = make("modern"), []

    def watch():
        seen.append(None)
        if len(seen) == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError), torch.no_grad():
        Trace(network, IDS[None], [["a"] * len(IDS)], watch=watch)
    assert len(seen) == 2


def test_trace_is_shown_briefly():
    trace = Trace(make("modern"), IDS[None], [["<b>", *"abcdef"]], tokenizer=None, model_name="mine")
    assert repr(trace) == f"Trace('<b>abcdef': 7 positions, {len(trace.sites())} sites)"
    assert repr(trace.edit({"block.0.head.0.output": 0})).endswith("sites, 1 edit)")
    shown = trace._repr_html_()
    assert "&lt;b&gt;abcdef" in shown
    assert "<b>" not in shown
    best = int(trace.logits[-1].argmax())
    probability = trace.logits[-1].softmax(-1).max().item()
    assert f"&#x27;{best}&#x27; {probability:.1%}" in shown
    batch = Trace(make("modern"), IDS[None].repeat(2, 1), [["a"] * 7] * 2, single=False)
    assert "2 texts" in batch._repr_html_()
    assert "next token" not in batch._repr_html_()


def test_notebooks_find_no_html_in_blocks_and_heads():
    trace = inspect(make("modern"))
    for view in (trace.block[0], trace.block[0].head[0]):
        assert not hasattr(view, "_repr_html_")
