"""Everything that is measured on a GPU, in one run of under ten minutes. Prints a JSON line for each figure.

    python -m bench.gpu                            all sections that need no text
    python -m bench.gpu --text plays.txt           `plays` as well
    python -m bench.gpu --only equal steps         some sections
    python -m bench.gpu --skip peer tune           all but some

equal         greedy tokens in float32 that equal those of decoding without the kernels, before the first difference
distribution  bfloat16: divergence from float32 of the kernels' logits, and of those computed without the kernels
steps         tokens per second for 1 and 64 sequences: steps alone, and the first three calls as a whole
profile       microseconds per kernel
tune          the same for other divisions of the work among programs
serve         64 streams from one engine: tokens per second overall and while all run, and seconds until the first token
peer          transformers, one by one and with its own continuous batching
train         GPT-2 124M, tokens per second
plays         wall-clock time and loss of a second of training, with a cold and a warm compilation cache

Models have random weights in the shapes of GPT-2 124M and SmolLM2-135M; prompts have 32 tokens. A section that fails
prints its error, and the next one runs. Without CUDA, the kernels are not used. --short makes everything small.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from bench.generate import SHORT, SIZES, _transformers
from bench.train import BENCHMARKS, measure_gpt2, measure_runs
from bench.train import SHORT as SHORT_RUN
from clearhead.generate.cuda_decoder import CudaDecoder, cannot_run
from clearhead.generate.cuda_step import CudaWeights, Tuning
from clearhead.generate.decoder import TransformerDecoder
from clearhead.generate.engine import Engine
from clearhead.generate.generation import generate_tokens, run_request
from clearhead.generate.request import Event, GenerationRequest, Handle
from clearhead.generate.sampler import make_samplers
from clearhead.generate.sampling import Sampling
from clearhead.model.config import Config, preset
from clearhead.model.transformer import Transformer
from clearhead.runtime.device import pick_device
from clearhead.text.tokenizer import Tokenizer

Figures = dict[str, Any]
SMOLLM2 = {"n_block": 30, "n_head": 9, "n_kv_head": 3, "d_model": 576, "d_hidden": 1536, "n_context": 2048}
SHORT_SMOLLM2 = {"n_block": 2, "n_head": 3, "n_kv_head": 1, "d_model": 48, "d_hidden": 64, "n_context": 128}
SAMPLING = Sampling(temperature=1.0, top_k=50)
TUNINGS: dict[int, list[dict[str, Any]]] = {
    1: [
        {},
        *({"outputs": outputs} for outputs in (2, 8)),
        {"warps": 2, "head_outputs": 8},
        *({"head_outputs": outputs} for outputs in (2, 8)),
        *({"parts": parts} for parts in (2, 8)),
        *({"tile_of_one": tile} for tile in ((32, 4), (64, 2), (128, 4))),
        *({"chunk": chunk} for chunk in (512, 2048)),
        {"scan_warps": 8},
        {"early": False},
    ],
    64: [
        {},
        *(
            {"chunk": chunk, "scan_warps": warps}
            for chunk, warps in ((1024, 8), (2048, 4), (2048, 8), (4096, 8))
        ),
        *({"tile": tile} for tile in ((16, 2), (32, 1), (32, 4), (64, 2), (64, 4))),
        *({"inputs": inputs} for inputs in (384, 512, 1024)),
        *({"stages": stages} for stages in (3, 5)),
        {"products": "library"},
        {"early": False},
    ],
}


class Bench:
    def __init__(self, device: torch.device, short: bool, text: str | None) -> None:
        self.device, self.short, self.text = device, short, text
        self.tokens, self.batches = (8, (1, 4)) if short else (512, (1, 64))
        self.dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        self.reason = cannot_run(device)
        self.tokenizer = Tokenizer.train("byte", [])
        self.tokenizer.end_ids = ()  # so that every text reaches its full length

    def config(self, name: str) -> Config:
        if name == "gpt2":
            return preset("gpt2", **(SHORT if self.short else SIZES))
        sizes = {**SHORT_SMOLLM2, "n_vocab": 512} if self.short else {**SMOLLM2, "n_vocab": 49152}
        return preset("modern", **sizes, qk_norm=False, norm_epsilon=1e-5)

    def network(self, name: str, dtype: torch.dtype | None = None) -> tuple[Transformer, tuple[int, ...]]:
        torch.manual_seed(0)
        network = Transformer(self.config(name)).to(self.device, dtype or self.dtype).eval()
        prompt = torch.randint(network.config.n_vocab, (32,), generator=torch.Generator().manual_seed(1))
        return network, tuple(prompt.tolist())

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def seconds(self, work: Callable[[], object]) -> float:
        self.wait()
        start = time.perf_counter()
        work()
        self.wait()
        return time.perf_counter() - start

    def generate(
        self, network: Transformer, prompt: tuple[int, ...], samples: int, sampling: Sampling = SAMPLING
    ) -> list[tuple[int, ...]]:
        """Generate as `clearhead generate` does, and return the ids of each sample."""
        request = GenerationRequest(prompt, self.tokens, sampling, samples=samples)
        pieces = list(run_request(network, self.tokenizer, request))
        return [tuple(i for piece in each for i in piece.ids) for each in zip(*pieces, strict=True)]

    def equal(self) -> Iterator[Figures]:
        greedy = Sampling(temperature=0.0)
        for name in ("gpt2", "smollm2"):
            for samples in (1, 4):
                network, prompt = self.network(name, torch.float32)
                samplers = make_samplers(greedy, self.tokenizer, network.config.n_vocab, prompt, 0, samples)
                steps = generate_tokens(TransformerDecoder(network, samples), prompt, samplers)
                plain = [next(steps)[0].id for _ in range(self.tokens)]
                quick = list(self.generate(network, prompt, samples, greedy)[0])
                same = [a == b for a, b in zip(plain, quick, strict=False)]
                first = same.index(False) if False in same else len(same)
                yield {"model": name, "samples": samples, "equal": first, "of": len(quick)}

    @torch.inference_mode()
    def distribution(self) -> Iterator[Figures]:
        if self.reason is not None:
            return
        for name in ("gpt2", "smollm2"):
            for samples in (1, 8):
                network, prompt = self.network(name)
                exact = Transformer(network.config).to(self.device).eval()
                exact.load_state_dict(network.state_dict())
                decoder = self.begin(network, prompt, samples, SAMPLING, self.tokens)
                logits = []
                for _ in range(self.tokens - 1):
                    decoder.decode_one()
                    logits.append(decoder.step.logits[0].clone())
                ids = torch.tensor(
                    [*prompt, *decoder.sampled[0, : self.tokens - 1].tolist()], device=self.device
                )
                rest = slice(len(prompt), None)
                expected = exact(ids[None])[0, rest].log_softmax(-1)
                ways = {"kernels": torch.stack(logits), "plain": network(ids[None])[0, rest].float()}
                yield {
                    "model": name,
                    "samples": samples,
                    **{way: _divergence(expected, each) for way, each in ways.items()},
                }

    def begin(
        self,
        network: Transformer,
        prompt: tuple[int, ...],
        samples: int,
        sampling: Sampling,
        tokens: int,
        tuning: Tuning | None = None,
    ) -> CudaDecoder:
        """Return a new decoder that has processed the prompt."""
        decoder = CudaDecoder(CudaWeights(network), samples, len(prompt) + tokens, tuning)
        decoder.prepare(sampling != Sampling(sampling.temperature))
        uniforms = torch.rand(
            samples, tokens, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
        )
        decoder.prefill(network, prompt, sampling, uniforms)
        return decoder

    def step_seconds(
        self, network: Transformer, prompt: tuple[int, ...], samples: int, tuning: Tuning | None = None
    ) -> float:
        """The mean time of a captured step over the whole text."""
        decoder = self.begin(network, prompt, samples, SAMPLING, self.tokens, tuning)

        def run() -> None:
            for _ in range(self.tokens - 1):
                decoder.decode_one()

        seconds = self.seconds(run)
        assert -1 not in decoder.fetch(self.tokens - 1, 1)()[0], "a logit is not finite"
        return seconds / (self.tokens - 1)

    def steps(self) -> Iterator[Figures]:
        for name in ("gpt2", "smollm2"):
            for samples in self.batches:
                network, prompt = self.network(name)
                figures: Figures = {"model": name, "batch": samples}
                for call in ("first", "second", "third"):
                    seconds = self.seconds(lambda: self.generate(network, prompt, samples))  # noqa: B023
                    figures[f"{call} call"] = round(samples * self.tokens / seconds, 1)
                if self.reason is None:
                    seconds = self.step_seconds(network, prompt, samples)
                    figures |= {"steps": round(samples / seconds, 1), "step_us": round(1e6 * seconds, 1)}
                yield figures

    def profile(self) -> Iterator[Figures]:
        if self.reason is not None:
            return
        for samples in self.batches:
            network, prompt = self.network("gpt2")
            decoder = self.begin(network, prompt, samples, SAMPLING, self.tokens)
            for _ in range(self.tokens // 2):
                decoder.decode_one()
            self.wait()
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiled:
                for _ in range(10):
                    decoder.decode_one()
                self.wait()
            rows = sorted(profiled.key_averages(), key=lambda row: -row.self_device_time_total)[:12]
            kernels = {
                row.key[:60]: [row.count // 10, round(row.self_device_time_total / row.count, 2)]
                for row in rows
            }
            yield {"batch": samples, "launches and microseconds each": kernels}

    def tune(self) -> Iterator[Figures]:
        if self.reason is not None:
            return
        for samples, choices in TUNINGS.items():
            network, prompt = self.network("gpt2")
            for choice in choices:
                try:
                    seconds = self.step_seconds(network, prompt, samples, replace(Tuning(), **choice))
                    yield {"batch": samples, **choice, "step_us": round(1e6 * seconds, 1)}
                except RuntimeError as error:
                    yield {"batch": samples, **choice, "error": str(error)[:200]}

    def serve(self) -> Iterator[Figures]:
        for name in ("gpt2", "smollm2"):
            network, prompt = self.network(name)
            streams = self.batches[1]
            started = time.perf_counter()
            with Engine(network, self.tokenizer, slots=streams + 1, queue=streams + 1) as engine:
                figures: Figures = {"model": name, "streams": streams}
                figures["setup_seconds"] = round(time.perf_counter() - started, 2)
                figures["decoder"] = type(engine._scheduler.decoder).__name__
                for load in ("first", "second"):
                    figures |= {
                        f"{load} {key}": value for key, value in self.load(engine, prompt, streams).items()
                    }
            yield figures

    def load(self, engine: Engine, prompt: tuple[int, ...], streams: int) -> Figures:
        """All streams at once, and one more request while they run. Steady: while all streams run."""
        asked: list[float] = []
        times: list[list[float]] = []  # of each request's tokens

        def submit(tokens: int) -> Handle:
            heard: list[float] = []

            def on_event(_: Event) -> None:
                heard.append(time.perf_counter())

            times.append(heard)
            asked.append(time.perf_counter())
            return engine.submit(GenerationRequest(prompt, tokens, SAMPLING, len(times)), on_event)

        def wait(done: Callable[[], bool]) -> None:
            while not done():  # waiting for each event would take time from the engine's thread
                time.sleep(0.001)

        handles = [submit(self.tokens) for _ in range(streams)]
        wait(lambda: len(times[0]) >= self.tokens // 4 or handles[0].done)
        handles.append(submit(8))
        wait(lambda: all(handle.done for handle in handles))
        for handle in handles:
            handle.texts()  # raises the error of a failed request
        everything = [each for heard in times for each in heard]
        seconds = max(everything) - asked[0]
        first = [heard[0] - start for heard, start in zip(times, asked, strict=True)]
        begin, end = max(heard[0] for heard in times[:streams]), min(heard[-1] for heard in times[:streams])
        steady = sum(begin < each <= end for each in everything)
        return {
            "tokens_per_second": round(len(everything) / seconds, 1),
            "steady_tokens_per_second": round(steady / (end - begin), 1),
            "median_first_token": round(statistics.median(first[:streams]), 4),
            "last_first_token": round(max(first[:streams]), 4),
            "late_first_token": round(first[streams], 4),
        }

    def peer(self) -> Iterator[Figures]:
        network, prompt = self.network("gpt2")
        sizes = SHORT if self.short else SIZES
        for samples in self.batches:
            theirs = _transformers(sizes, self.device, self.dtype, list(prompt), samples, self.tokens)
            if theirs is None:
                return
            theirs()
            yield {"transformers": round(samples * self.tokens / self.seconds(theirs), 1), "batch": samples}
        del network
        if self.device.type == "cuda":
            yield self.continuous(sizes, prompt)

    def continuous(self, sizes: dict[str, int], prompt: tuple[int, ...]) -> Figures:
        from transformers import GenerationConfig

        from bench.peers import transformers_gpt2

        model = transformers_gpt2(sizes).to(self.device, self.dtype).eval()
        model.set_attn_implementation("sdpa")
        settings = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=self.tokens, do_sample=True, top_k=50, eos_token_id=-1, pad_token_id=0
        )
        streams = self.batches[1]
        prompts = [list(prompt)] * streams

        def run() -> None:
            model.generate_batch(inputs=prompts, generation_config=settings, progress_bar=False)

        run()
        return {
            "transformers continuous": round(streams * self.tokens / self.seconds(run), 1),
            "batch": streams,
        }

    def train(self) -> Iterator[Figures]:
        yield measure_gpt2(64, self.short)

    def plays(self) -> Iterator[Figures]:
        if self.text is not None:
            yield measure_runs(
                self.text, SHORT_RUN if self.short else BENCHMARKS["plays"], 1 if self.short else 2
            )


SECTIONS = ("equal", "distribution", "steps", "profile", "serve", "tune", "peer", "train", "plays")


def _divergence(expected: torch.Tensor, logits: torch.Tensor) -> float:
    """The mean Kullback-Leibler divergence from the expected log-probabilities, in nats."""
    found = logits.log_softmax(-1)
    return float((expected.exp() * (expected - found)).sum(-1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--skip", nargs="*", choices=SECTIONS, default=())
    parser.add_argument("--text", help="a text for `plays`")
    parser.add_argument("--device")
    parser.add_argument("--short", action="store_true")
    args = parser.parse_args()
    bench = Bench(pick_device(args.device), args.short, args.text)
    name = torch.cuda.get_device_name() if bench.device.type == "cuda" else "CPU"
    print(
        json.dumps({"device": name, "torch": torch.__version__, "no kernels because": bench.reason}),
        flush=True,
    )
    for section in SECTIONS:
        if section not in args.only or section in args.skip:
            continue
        start = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                for figures in getattr(bench, section)():
                    print(json.dumps({"section": section, **figures}), flush=True)
            except Exception as error:
                print(
                    json.dumps({"section": section, "error": f"{type(error).__name__}: {error}"[:500]}),
                    flush=True,
                )
        messages = sorted({str(each.message).splitlines()[0][:200] for each in caught})
        seconds = round(time.perf_counter() - start, 1)
        print(json.dumps({"section": section, "seconds": seconds, "warnings": messages}), flush=True)


if __name__ == "__main__":
    main()
