"""The CUDA decoder matches the plain decoder. Without a GPU, its kernels run in Triton's interpreter."""

import importlib.util
import json
import subprocess
import sys

import pytest
import torch

from clearhead.generate.cuda_decoder import is_plain, supports
from clearhead.generate.sampler import Sampler
from clearhead.generate.sampling import Sampling
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton comes only with PyTorch for CUDA"
)

# Runs in a separate process: whether kernels are interpreted is decided when they are imported.
TOGETHER = """
import itertools, json, sys, torch
from clearhead.generate import cuda_decoder
from clearhead.generate.decoder import TransformerDecoder
from clearhead.generate.generation import generate_tokens
from clearhead.generate.sampler import make_samplers
from clearhead.generate.sampling import Sampling
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

name, samples, settings, shape = json.loads(sys.argv[1])
torch.manual_seed(0)
sizes = {"n_vocab": 300, "n_context": 64, "n_block": 2, "n_head": 4, "d_model": 48, "d_head": 12}
network = Transformer(preset(name, **{**sizes, **shape})).eval()
network.to("cuda" if torch.cuda.is_available() else "cpu")
for parameter in network.parameters():
    parameter.data = parameter.data + 0.05 * torch.randn(parameter.shape).to(parameter)
tokenizer, prompt, sampling = Tokenizer.train("byte", []), [7, 8, 9, 200, 11], Sampling(**settings)
make = lambda: make_samplers(sampling, tokenizer, 300, prompt, 5, samples)
plain = generate_tokens(TransformerDecoder(network, samples), prompt, make())
quick = cuda_decoder.generate_tokens(network, prompt, sampling, make(), 40)
print(json.dumps([[[d.id for d in step] for step in itertools.islice(way, 40)] for way in (plain, quick)]))
"""


@needs_triton
@pytest.mark.parametrize(
    ("name", "samples", "settings", "shape"),
    [
        ("gpt2", 1, {"temperature": 0.0}, {}),
        ("modern", 1, {"temperature": 0.0}, {"n_kv_head": 2}),
        ("modern", 3, {"temperature": 1.5, "top_k": 20}, {"n_kv_head": 1, "tied": False}),
        ("lecture", 17, {"temperature": 0.7, "min_p": 0.05}, {}),
    ],
)
def test_cuda_decoder_matches_plain_decoder(name, samples, settings, shape, monkeypatch):
    if not torch.cuda.is_available():
        monkeypatch.setenv("TRITON_INTERPRET", "1")
    asked = json.dumps([name, samples, settings, shape])
    done = subprocess.run([sys.executable, "-c", TOGETHER, asked], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    plain, quick = json.loads(done.stdout)
    assert quick == plain


def test_only_plain_sampling_is_supported():
    assert is_plain(Sampling(temperature=0.3, top_k=7, min_p=0.1))
    for more in ({"top_p": 0.9}, {"repetition_penalty": 1.1}, {"regex": "a+"}, {"log_probabilities": 1}):
        assert not is_plain(Sampling(**more))


def test_cpu_is_not_supported():
    config = preset("modern", n_vocab=50, n_context=128, n_block=1, n_head=1, d_model=8)
    assert not supports(Transformer(config), Sampling(), 4, 100, 1)  # the network is on the CPU
    assert not supports(None, Sampling(), 4, 100, 1)


def test_batched_uniforms_match_uniforms_drawn_one_by_one():
    tokenizer = Tokenizer.train("byte", [])
    one, other = (Sampler(Sampling(), tokenizer, tokenizer.n_vocab, seed=3) for _ in range(2))
    each = [one.uniforms(1).item() for _ in range(100)]
    assert other.uniforms(100).tolist() == each
    assert len(set(each)) == 100


def test_accepted_end_token_ends_the_text():
    tokenizer = Tokenizer.train("byte", [])
    sampler, end = Sampler(Sampling(), tokenizer, tokenizer.n_vocab), tokenizer.end_ids[0]
    assert [sampler.accept(i).last for i in (5, end, 7)] == [False, True, True]
    assert sampler.accept(9).id == end
