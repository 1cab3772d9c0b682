"""The CUDA decoder matches the plain decoder. Without a GPU, its kernels run in Triton's interpreter."""

import gc
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from clearhead.errors import UserError
from clearhead.generate import cuda_decoder
from clearhead.generate.cuda_decoder import DecoderPool, cache_size, can_generate, cannot_decode, is_plain
from clearhead.generate.cuda_step import CudaWeights
from clearhead.generate.decoder import TransformerDecoder
from clearhead.generate.generation import run_request
from clearhead.generate.request import GenerationRequest
from clearhead.generate.sampler import Sampler
from clearhead.generate.sampling import Sampling
from clearhead.text.tokenizer import Tokenizer

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton comes only with PyTorch for CUDA"
)
LIKE_GEMMA = {"post_norm": True, "window": 3, "local_blocks": [0], "feedforward": "geglu"}
PARTLY_ROTARY = {"parallel": True, "position": "rotary", "rotary_dim": 4}


def run_interpreted(monkeypatch, *cases):
    if not torch.cuda.is_available():
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    script = str(Path(__file__).with_name("interpreted.py"))
    done = subprocess.run([sys.executable, script, json.dumps(cases)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_triton
def test_cuda_decoder_matches_plain_decoder(monkeypatch):
    cases = [
        ("gpt2", 1, {"temperature": 0.0}, {}, "library"),
        ("modern", 1, {"temperature": 0.9, "top_p": 0.8}, {"n_kv_head": 2}, "library"),
        ("modern", 3, {"temperature": 1.5, "top_k": 20}, {"n_kv_head": 1, "tied": False}, "own"),
        ("lecture", 5, {"temperature": 0.7, "min_p": 0.05}, {}, "library"),
        ("lecture", 1, {"temperature": 1.0}, PARTLY_ROTARY, "library"),
        ("modern", 2, {"temperature": 1.2, "top_k": 100, "top_p": 0.7}, LIKE_GEMMA, "library"),
        ("gpt2", 2, {"temperature": 1.0, "top_p": 0.97}, {"n_vocab": 3000}, "own"),
    ]
    for case, (plain, quick) in zip(cases, run_interpreted(monkeypatch, *cases), strict=True):
        assert quick == plain, case


@needs_triton
def test_kernels_sample_as_the_cpu_does(monkeypatch):
    settings = [
        {},
        {"temperature": 0.0},
        *({"top_k": k} for k in (1, 2, 63, 64, 65, 500, 2999)),
        {"top_p": 0.9},
        {"top_k": 30, "top_p": 0.6},
        {"top_k": 300, "top_p": 0.99, "temperature": 2.0},
        {"min_p": 0.2},
        {"min_p": 1e-9},
    ]
    cases = [("sample", n_vocab, each) for n_vocab in (300, 3000) for each in settings]
    for case, (plain, quick) in zip(cases, run_interpreted(monkeypatch, *cases), strict=True):
        # Of tokens that are equally probable, `top_p` keeps all on the device, and some on the CPU.
        rows = [i for i in range(6) if "top_p" not in case[2] or i not in (1, 2, 5)]
        assert [quick[i] for i in rows] == [plain[i] for i in rows], case


@needs_triton
def test_captured_steps_serve_the_same_texts(monkeypatch):
    asked = [
        ([7, 8, 9], 4, {"temperature": 0.0}),
        ([1, 2], 7, {"temperature": 0.8, "top_p": 0.9}),
        ([3], 3, {"temperature": 0.8, "repetition_penalty": 1.3}),  # its logits go to the CPU
        ([5, 6, 7, 8], 5, {"temperature": 1.1, "top_k": 40}),
    ]
    [[plain, quick]] = run_interpreted(monkeypatch, ("serve", 3, asked))
    assert (plain[1], quick[1]) == ("TransformerBatchDecoder", "CudaBatchDecoder")
    assert quick[0] == plain[0]


class Recorded:
    """A `CudaDecoder` that decodes without CUDA graphs, on the CPU, and records what is asked of it."""

    made = 0

    def __init__(self, weights, samples, size):
        type(self).made += 1
        self.weights, self.samples, self.size, self.bytes = weights, samples, size, 100
        self.device, self.prepared, self.steps = torch.device("cpu"), [], 0

    def prepare(self, filtered):
        self.prepared.append(filtered)

    def prefill(self, network, prompt, sampling, uniforms):
        self.decoder, self.sampling, self.uniforms = (
            TransformerDecoder(network, self.samples),
            sampling,
            uniforms,
        )
        self.sampled = []
        self._pick(self.decoder.prefill(torch.tensor([list(prompt)] * self.samples)))

    def decode_one(self):
        self.steps += 1
        self._pick(self.decoder.decode_one(torch.tensor(self.sampled[-1])[:, None]))

    def _pick(self, logits):
        ids = []
        for row, uniforms in zip(logits, self.uniforms, strict=True):
            sampler = Sampler(self.sampling, Tokenizer.train("byte", []), len(row))
            uniform = uniforms[len(self.sampled)]
            sampler.uniforms = lambda _, uniform=uniform: uniform[None]
            ids.append(sampler._choose(row))
        self.sampled.append(ids)

    def fetch(self, start, count):
        return lambda: self.sampled[start : start + count]


class Refusing(Recorded):
    def prepare(self, filtered):
        raise RuntimeError("CUDA error: the device said no\nand more")


@pytest.fixture
def on_device(monkeypatch):
    """Let requests take the fast path, with recorded decoders in a pool of their own."""

    def use(kind=Recorded, **limits):
        pool = DecoderPool(kind, **{"most_bytes": 1000, **limits})
        monkeypatch.setattr(cuda_decoder, "cannot_run", lambda _: None)
        for name in ("generate_tokens", "can_generate"):
            plain = getattr(cuda_decoder, name)
            monkeypatch.setattr(cuda_decoder, name, lambda *a, plain=plain: plain(*a, pool))
        return pool

    return use


def write(network, tokenizer, tokens=70, samples=1, prompt=(1, 2, 3), **settings):
    request = GenerationRequest(tuple(prompt), tokens, Sampling(**settings), 3, samples=samples)
    pieces = list(run_request(network, tokenizer, request))
    return ["".join(each) for each in zip(*pieces, strict=True)], [each.ids for each in pieces[-1]]


@pytest.mark.parametrize(
    "settings", [{}, {"samples": 3}, {"temperature": 0.0}, {"top_k": 5}, {"top_p": 0.9}, {"tokens": 200}]
)
def test_text_is_that_of_the_plain_path(make, tokenizer, on_device, settings):
    network = make("modern", n_context=100)  # shorter than 200 tokens: decoding continues without graphs
    plain = write(network, tokenizer, **settings)
    pool = on_device()
    assert write(network, tokenizer, **settings) == plain
    [(_, decoder)] = pool.idle
    assert decoder.steps > 15


def test_decoders_are_kept_and_bounded(make, tokenizer, on_device):
    pool, network, Recorded.made = on_device(most=2), make("modern"), 0
    first = write(network, tokenizer)
    assert write(network, tokenizer) == first
    assert Recorded.made == 1
    assert first[0][0].startswith(write(network, tokenizer, tokens=5)[0][0])
    assert Recorded.made == 1  # few tokens too, once there is a graph
    for samples in (2, 3, 4):
        write(network, tokenizer, samples=samples)
    assert [decoder.samples for _, decoder in pool.idle] == [3, 4]
    pool.most_bytes = 150
    write(network, tokenizer, samples=2)
    assert len(pool.idle) == 1
    pool.idle[0][1].decoder = None  # the recorded one uses the network
    del network
    gc.collect()
    assert len(pool.weights) == 0


def test_new_weights_need_a_new_decoder(make, tokenizer, on_device):
    pool, network = on_device(), make("modern")
    before = write(network, tokenizer, temperature=0.0)
    kept = pool.idle[0][1]
    with torch.no_grad():
        network.unembedding.weight.mul_(-1)  # in place, as a training step does: the same decoder sees it
    assert write(network, tokenizer, temperature=0.0) != before
    assert pool.idle[0][1] is kept
    network.double().float()
    write(network, tokenizer, temperature=0.0)
    assert [decoder is kept for _, decoder in pool.idle] == [False]


def test_weights_in_the_layout_of_the_kernels_follow_the_network(make):
    network = make("modern")
    weights = CudaWeights(network)
    matrix = weights.blocks[0].projections.matrix[0]
    with torch.no_grad():
        network.blocks[0].attention.value.weight.data.fill_(7.0)
    weights.refresh()
    assert matrix[-32:].eq(7.0).all()
    assert weights.belong_to(network)


def test_a_device_that_refuses_is_asked_once(make, tokenizer, on_device):
    network = make("modern")
    plain = write(network, tokenizer, samples=2, temperature=1.0)
    on_device(Refusing)
    with pytest.warns(
        UserWarning, match=r"^generating slowly, without CUDA graphs: CUDA error: the device said no$"
    ):
        assert write(network, tokenizer, samples=2, temperature=1.0) == plain
    assert (
        write(network, tokenizer, samples=2, temperature=1.0) == plain
    )  # no second warning: it would be an error


def test_two_streams_at_once_have_decoders_of_their_own(make, tokenizer, on_device):
    on_device()
    network = make("modern")
    alone = write(network, tokenizer)[0][0]
    request = GenerationRequest((1, 2, 3), 70, Sampling(), 3)
    one, other = run_request(network, tokenizer, request), run_request(network, tokenizer, request)
    texts = [
        "".join(piece for (piece,) in parts) for parts in zip(*zip(one, other, strict=True), strict=True)
    ]
    assert texts == [alone, alone]


def test_what_the_kernels_cannot_decode(make):
    assert cannot_decode(make("modern")) is None
    assert cannot_decode(make("local and global, like Gemma")) is None
    assert "caps its scores" in cannot_decode(make("capped, like Gemma 2"))
    assert "bidirectional" in cannot_decode(make("modern", causal=False))
    assert "trained" in cannot_decode(make("modern").train())
    watched = make("modern")
    watched.blocks[0].register_forward_hook(lambda *_: None)
    assert "hook" in cannot_decode(watched)
    adapted = make("modern")
    adapted.blocks[0].attention.query = type("Adapter", (nn.Linear,), {})(32, 32)
    assert "Adapter" in cannot_decode(adapted)
    mixed = make("modern")
    mixed.final_norm.bfloat16()
    assert "float32" in cannot_decode(mixed)


def test_only_plain_sampling_is_supported():
    assert is_plain(Sampling(temperature=0.3, top_k=7, top_p=0.9, min_p=0.1))
    for more in (
        {"presence_penalty": 0.9},
        {"repetition_penalty": 1.1},
        {"regex": "a+"},
        {"log_probabilities": 1},
    ):
        assert not is_plain(Sampling(**more))


def test_cpu_takes_the_plain_path(make):
    assert not can_generate(make("modern"), Sampling(), 4, 100, 1)
    assert not can_generate(None, Sampling(), 4, 100, 1)


def test_caches_have_few_sizes(make):
    network = make("modern", n_context=3000)
    assert [cache_size(network, n) for n in (1, 512, 513, 1025, 2049, 3000)] == [
        512,
        512,
        1024,
        2048,
        3000,
        3000,
    ]


def test_uniforms_are_the_same_drawn_one_by_one_together_or_ahead():
    tokenizer = Tokenizer.train("byte", [])
    one, other, third = (Sampler(Sampling(), tokenizer, tokenizer.n_vocab, seed=3) for _ in range(3))
    each = [one.uniforms(1).item() for _ in range(100)]
    assert other.uniforms(100).tolist() == each
    assert [third.draw() for _ in range(100)] == each
    assert len(set(each)) == 100


def test_sampling_on_the_cpu_goes_on_where_the_device_stopped():
    tokenizer = Tokenizer.train("byte", [])
    logits = torch.randn(tokenizer.n_vocab)
    one, other = (Sampler(Sampling(), tokenizer, tokenizer.n_vocab, seed=3) for _ in range(2))
    expected = [one.sample(logits).id for _ in range(40)]
    other.peek(4)
    other.draw()
    assert [other.sample(logits).id for _ in range(39)] == expected[1:]


def test_accepted_end_token_ends_the_text():
    tokenizer = Tokenizer.train("byte", [])
    sampler, end = Sampler(Sampling(), tokenizer, tokenizer.n_vocab), tokenizer.end_ids[0]
    assert [sampler.accept(i).last for i in (5, end, 7)] == [False, True, True]
    assert sampler.accept(9).id == end


def test_infinite_logits_are_the_users_error(make, tokenizer, on_device):
    class Broken(Recorded):
        def fetch(self, start, count):
            return lambda: [[-1]] * count

    on_device(Broken)
    with pytest.raises(UserError, match="load the model in float32"):
        write(make("modern"), tokenizer)
