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
from clearhead.generate.cuda_step import Tuning
from clearhead.generate.decoder import TransformerDecoder
from clearhead.generate.generation import generate_tokens
from clearhead.generate.request import GenerationRequest, Handle
from clearhead.generate.sampler import make_samplers
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
        return cuda_decoder.CudaDecoder(weights, count, size, Tuning(64, 256, parts=2, products=products))

    pool = cuda_decoder.DecoderPool(build)
    plain = generate_tokens(TransformerDecoder(network, samples), PROMPT, make())
    quick = cuda_decoder.generate_tokens(network, PROMPT, sampling, make(), TOKENS, pool)
    return [[[d.id for d in step] for step in itertools.islice(way, TOKENS)] for way in (plain, quick)]


def serve(slots, asked):
    """The texts of requests that arrive together, by captured steps and without them."""
    torch.manual_seed(0)
    network = Transformer(Config.from_json({**PRESETS["modern"], **SIZES})).eval()
    for parameter in network.parameters():
        parameter.data = parameter.data + 0.05 * torch.randn(parameter.shape).to(parameter)
    tokenizer = Tokenizer.train("byte", [])
    requests = [
        GenerationRequest(tuple(prompt), tokens, Sampling(**settings), seed)
        for seed, (prompt, tokens, settings) in enumerate(asked)
    ]

    def run():
        scheduler = Scheduler(network, tokenizer, slots)
        handles = [Handle(request) for request in requests]
        for handle in handles:
            scheduler.add(handle)
        while scheduler.has_work:
            scheduler.step()
        return [text.ids for handle in handles for text in handle.texts()], type(scheduler.decoder).__name__

    plain = run()
    cuda_batch_decoder.cannot_run = lambda _: None  # the interpreter can
    return plain, run()


if __name__ == "__main__":
    if not torch.cuda.is_available():
        patch_interpreter()
    cases = json.loads(sys.argv[1])
    sys.stdout.write(
        json.dumps([serve(*case[1:]) if case[0] == "serve" else compare(*case) for case in cases])
    )
