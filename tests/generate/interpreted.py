"""Run by `test_cuda_decoder.py` in a separate process: what the kernels sample, and what decoding without them samples.

Whether Triton interprets kernels is decided when they are imported. Reads cases as JSON, prints the tokens as JSON.
"""

import itertools
import json
import sys

import torch
import triton.language as tl
from triton.runtime import interpreter

from clearhead.generate import cuda_batch_decoder, cuda_decoder, cuda_sampling
from clearhead.generate import scheduler as scheduler_module
from clearhead.generate.cuda_step import CudaWeights, Tuning, is_filtered
from clearhead.generate.decoder import TransformerDecoder
from clearhead.generate.generation import generate_tokens
from clearhead.generate.request import GenerationRequest, Handle
from clearhead.generate.sampler import Sampler, make_samplers
from clearhead.generate.sampling import Sampling
from clearhead.generate.scheduler import Scheduler
from clearhead.model.config import PRESETS, Config
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

PROMPT, TOKENS = [7, 8, 9, 200, 11], 6
SIZES = {"n_vocab": 300, "n_context": 64, "n_block": 2, "n_head": 4, "d_model": 48, "d_head": 12}


def patch_interpreter():
    """Make the interpreter usable: patch Triton's language once instead of before every call, which takes longer than
    the kernels, and convert arrays of one element to integers in a way that NumPy 2.4 still allows.
    """
    for function in (tl.sigmoid, cuda_sampling.pick):  # Triton's own functions, and ours
        kept = interpreter._patch_lang(function.fn)
    tl.tensor.__index__ = lambda self: self.handle.data.item()
    kept.restore = lambda: None
    interpreter._patch_lang = lambda _: kept


def compare(name, samples, settings, shape, products):
    torch.manual_seed(0)
    network = Transformer(Config.from_json({**PRESETS[name], **SIZES, **shape})).eval()
    network.to("cuda" if torch.cuda.is_available() else "cpu")
    for parameter in network.parameters():
        parameter.data = parameter.data + 0.05 * torch.randn(parameter.shape).to(parameter)
    tokenizer, sampling = Tokenizer.train("byte", []), Sampling(**settings)

    def make():
        return make_samplers(sampling, tokenizer, network.config.n_vocab, PROMPT, 5, samples)

    def build(weights, count, size):
        tuning = Tuning(64, 256, tile_of_one=(16, 4), tile=(16, 2), inputs=64, products=products)
        return cuda_decoder.CudaDecoder(weights, count, size, tuning)

    pool = cuda_decoder.DecoderPool(build)
    plain = generate_tokens(TransformerDecoder(network, samples), PROMPT, make())
    quick = cuda_decoder.generate_tokens(network, PROMPT, sampling, make(), TOKENS, pool)
    return [[[d.id for d in step] for step in itertools.islice(way, TOKENS)] for way in (plain, quick)]


def sample(n_vocab, settings):
    """Tokens sampled from several kinds of logits, on the CPU and by the kernels."""
    network = Transformer(Config.from_json({**PRESETS["modern"], **SIZES, "n_vocab": n_vocab})).eval()
    network.to("cuda" if torch.cuda.is_available() else "cpu")
    tokenizer, sampling = Tokenizer.train("byte", []), Sampling(**settings)
    logits = 2 * torch.randn(6, n_vocab, generator=torch.Generator().manual_seed(3))
    logits[1] = logits[1].round()  # many ties
    logits[2] = 1.5  # nothing but ties
    logits[3, ::2] = float("-inf")
    logits[4, ::3], logits[4, 7] = -1e30, 1e30
    logits[5] *= 1e-30
    samplers = [Sampler(sampling, tokenizer, n_vocab, seed=seed) for seed in range(len(logits))]
    decoder = cuda_decoder.CudaDecoder(CudaWeights(network), len(logits), 8)
    decoder.uniforms[:, 0] = torch.cat([sampler.uniforms(1) for sampler in samplers])
    decoder._write_rows(0, sampling)
    decoder.step.logits.copy_(logits)
    decoder.step.sample(is_filtered(sampling))
    others = [Sampler(sampling, tokenizer, n_vocab, seed=seed) for seed in range(len(logits))]
    plain = [other.sample(row).id for other, row in zip(others, logits, strict=True)]
    return plain, decoder.sampled[:, 0].tolist()


def serve(slots, asked):
    """The texts of requests that arrive together, by captured steps and without them."""
    torch.manual_seed(0)
    network = Transformer(Config.from_json({**PRESETS["modern"], **SIZES})).eval()
    network.to("cuda" if torch.cuda.is_available() else "cpu")
    for parameter in network.parameters():
        parameter.data = parameter.data + 0.05 * torch.randn(parameter.shape).to(parameter)
    tokenizer = Tokenizer.train("byte", [])
    requests = [
        GenerationRequest(tuple(prompt), tokens, Sampling(**settings), seed)
        for seed, (prompt, tokens, settings) in enumerate(asked)
    ]

    make = scheduler_module.make_cuda_batch_decoder

    def run(captured):
        scheduler_module.make_cuda_batch_decoder = make if captured else lambda *_: None
        scheduler = Scheduler(network, tokenizer, slots)
        handles = [Handle(request) for request in requests]
        for handle in handles:
            scheduler.add(handle)
        while scheduler.has_work:
            scheduler.step()
        return [text.ids for handle in handles for text in handle.texts()], type(scheduler.decoder).__name__

    cuda_batch_decoder.cannot_run = lambda _: None  # the interpreter can
    return run(False), run(True)


if __name__ == "__main__":
    if not torch.cuda.is_available():
        patch_interpreter()
    ways = {"serve": serve, "sample": sample}
    answers = [
        ways[case[0]](*case[1:]) if case[0] in ways else compare(*case) for case in json.loads(sys.argv[1])
    ]
    sys.stdout.write(json.dumps(answers))
