"""What the fuzz bench mutates: valid files of every kind, and the functions that read them."""

from __future__ import annotations

import gzip
import lzma
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from clearhead.errors import UserError
from clearhead.files import SEAL, read_json, write_json
from clearhead.formats import arpa, folder, word2vec
from clearhead.formats.gguf.file import GGUFFile
from clearhead.formats.gguf.model import MetadataWriter
from clearhead.formats.gguf.tokenizer import read_tokenizer, write_tokenizer
from clearhead.formats.saved import Saved
from clearhead.formats.shards import WEIGHTS
from clearhead.language_model import load
from clearhead.model.config import Config, preset
from clearhead.model.transformer import Transformer
from clearhead.runs.checkpoint import newest_checkpoint, read_checkpoint
from clearhead.runs.listing import describe_run
from clearhead.runs.plan import Plan
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run_folder import CHECKPOINTS, RunFolder
from clearhead.runs.run_metrics import read_metrics
from clearhead.runs.saved_run import SavedRun
from clearhead.runs.teacher_folders import RUN
from clearhead.text.chat import render
from clearhead.text.corpus import documents, measure
from clearhead.text.stories import stories
from clearhead.text.token_cache import tokenize
from clearhead.text.tokenizer import Tokenizer

SHAPE: dict[str, Any] = {"n_vocab": 257, "n_context": 16, "n_block": 1, "n_head": 2, "d_model": 16}
LLAMA: dict[str, Any] = {**SHAPE, "qk_norm": False}
LOCAL: dict[str, Any] = {"window": 3, "local_blocks": [0]}
LINEAR = {"kind": "linear", "factor": 2.0}
FAMILIES: dict[str, Config] = {
    "gpt2": preset("gpt2", **SHAPE),
    "llama": preset("modern", **LLAMA, rope_scaling={"kind": "llama3", "factor": 8.0}),
    "mistral": preset("modern", **LLAMA, **LOCAL),
    "qwen2": preset("modern", **LLAMA, **LOCAL, qkv_bias=True),
    "qwen3": preset("modern", **SHAPE),
    "gpt_neox": preset("lecture", **SHAPE, position="rotary", parallel=True, rope_scaling=LINEAR),
    "gemma3_text": preset(
        "modern",
        **SHAPE,
        **LOCAL,
        feedforward="geglu",
        embedding_scale=4.0,
        post_norm=True,
        local_rotary_base=500.0,
    ),
    "gemma2": preset(
        "modern",
        **LLAMA,
        feedforward="geglu",
        embedding_scale=4.0,
        post_norm=True,
        **LOCAL,
        score_cap=50.0,
        logit_cap=30.0,
    ),
    "phi3": preset("modern", **LLAMA, rotary_dim=2),
    "gpt_neo": preset("gpt2", **SHAPE, d_k=1, qkv_bias=False, **LOCAL),
    "opt": preset("lecture", **SHAPE, qkv_bias=False, output_bias=False, feedforward_bias=False),
    "smollm3": preset("modern", **LLAMA, unrotated_blocks=[0]),
    "olmo2": preset("modern", **SHAPE, qk_norm_joint=True, pre_norm=False, post_norm=True),
    "clearhead": preset("modern", **SHAPE, causal=False, rope_scaling=LINEAR),
}
KINDS = ("char", "byte", "bpe", "word")
CHAT = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}{% endfor %}{% if add_generation_prompt %}a"
)
CHAT += "{% endif %}"
BOMB, MEMBER = 2**28, 2**22  # bytes of text in an archive, and in each of the members it consists of


@dataclass
class Target:
    """A valid file, how often it is chosen, the bytes to mutate, and the function that reads it."""

    kind: str
    path: Path
    read: Callable[[], Any]
    begin: int = 0
    end: int = 0
    weight: int = 10
    hostile: bool = False  # rejected even without a change
    valid: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.valid = self.path.read_bytes()
        self.end = self.end or len(self.valid)
        try:
            self.read()  # checks that the file is valid, and warms up imports
        except UserError:
            if not self.hostile:
                raise


def make_targets(place: Path) -> Iterator[Target]:
    yield from _gguf(place / "model.gguf")
    for name, config in FAMILIES.items():
        yield from _family(place / name, name, config)
    for kind in KINDS:
        yield from _tokenizer(place / f"tokenizer-{kind}", kind)
    yield from _run(place)
    yield from _ngrams(place)
    yield from _texts(place)


def make_gguf(path: Path) -> None:
    """Write a small file with a tokenizer and one tensor of each of several types."""
    tokenizer = Tokenizer.train("bpe", ["a cat and a hat and a bat"] * 3, 270)
    writer = MetadataWriter(path, "llama")
    for key, value in write_tokenizer(tokenizer, 280).items():
        writer.add(key, value)
    numbers = np.random.default_rng(0).standard_normal((4, 256), dtype=np.float32)
    for kind in ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_1", "Q8_0", "TQ2_0"):
        number = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(f"blk.0.{kind}", gguf.quants.quantize(numbers, number), raw_dtype=number)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gguf(path: Path) -> Iterator[Target]:
    make_gguf(path)
    with GGUFFile.open(path) as header:
        end = min(info.offset for info in header.tensors.values())

    def read() -> None:
        with GGUFFile.open(path) as file:
            for name in file.tensors:
                file.read(name)
            read_tokenizer(file.metadata)

    # Counts and the first keys; the whole header, mostly vocabulary; tensor names, shapes and offsets.
    yield Target("gguf", path, read, 0, 512, 25)
    yield Target("gguf", path, read, 0, end, 50)
    yield Target("gguf", path, read, end - 512, end, 25)


def _family(path: Path, name: str, config: Config) -> Iterator[Target]:
    """A small model without Clearhead's own file, whose hashes would cause every change to be rejected."""
    folder.save(path, Saved(Transformer(config), Tokenizer.train("byte", []), None))
    (path / folder.OURS).unlink()
    assert folder.read_label(path).family.model_type == name
    weights = path / WEIGHTS
    header = 8 + struct.unpack("<Q", weights.read_bytes()[:8])[0]
    yield Target("config", path / folder.CONFIG, lambda: folder.load(path), weight=10)
    yield Target("safetensors", weights, lambda: folder.load(path), 0, header, 4)


def _tokenizer(path: Path, kind: str) -> Iterator[Target]:
    tokenizer = Tokenizer.train(
        kind, ["a cat and a hat and a bat\n"] * 9, 300 if kind in ("bpe", "word") else None
    )
    tokenizer.save(path, 64)

    def read() -> None:
        found = Tokenizer.load(path)
        found.decode(found.encode("a cat"))

    for name in ("tokenizer.json", "tokenizer_config.json"):
        yield Target("tokenizer", path / name, read, weight=5)


def _run(place: Path) -> Iterator[Target]:
    text = place / "run.txt"
    text.write_text("\n".join(story.text for story in islice(stories(), 20)))
    sizes: dict[str, Any] = {"blocks": 1, "width": 16, "heads": 1, "context": 16, "batch": 2}
    request = TrainingRequest(steps=4, tokenizer="char", device="cpu", **sizes)
    texts, path, cache = list(documents([text])), place / "run", place / "tokens"
    with SavedRun.open(path, texts, request, cache=cache, snapshots=2) as saved:  # type: ignore[union-attr]
        for _ in saved:
            pass
        tokenizer = saved.run.tokenizer
        saved.run.model.save(path, overwrite=True)
        saved.finish()
    for name in (RUN, folder.OURS):  # their hashes would cause every change to be rejected
        document = read_json(path / name)
        document.pop(SEAL)
        document.pop("metrics_sha256", None)
        write_json(path / name, document)

    def read() -> None:
        describe_run(path)
        read_metrics(path)
        Plan.from_json((RunFolder(path, held=False).settings() or {})["plan"])
        newest = newest_checkpoint(path / CHECKPOINTS)
        read_checkpoint(newest) if newest is not None else None

    for name in (RUN, RUN, "metrics.jsonl"):
        yield Target("run", path / name, read, weight=20)
    checkpoint = newest_checkpoint(path / CHECKPOINTS)
    assert checkpoint is not None
    for file in sorted(checkpoint.iterdir()):
        yield Target("run", file, read, weight=5)
    yield Target("run", path / folder.OURS, lambda: load(path, "cpu"))
    for name in (WEIGHTS, folder.CONFIG, "tokenizer.json"):
        snapshot = path / "snapshots" / "step-000000001" / name
        yield Target("snapshot", snapshot, lambda: load(path, "cpu", step=1))
    tokens = tokenize(texts, tokenizer, cache)[:]

    def reopen() -> None:
        if not np.array_equal(tokenize(texts, tokenizer, cache)[:], tokens):
            raise AssertionError("damaged tokens were used")

    for file in sorted(next(iter(cache.iterdir())).iterdir()):
        yield Target("token cache", file, reopen)


def _ngrams(place: Path) -> Iterator[Target]:
    for name, data in {"model.arpa": ARPA.encode(), "model.arpa.gz": gzip.compress(ARPA.encode())}.items():
        path = place / name
        path.write_bytes(data)
        yield Target("arpa", path, lambda path=path: arpa.load(path), weight=20)  # type: ignore[misc]
    vectors = np.random.default_rng(0).standard_normal((5, 4), dtype=np.float32)
    for name in ("words.bin", "words.txt"):
        file = place / name
        word2vec.save(file, ["the", "cat", "sat", "on", "mat"], vectors)
        yield Target("word2vec", file, lambda file=file: word2vec.load(file), weight=20)  # type: ignore[misc]


ARPA = """\\data\\
ngram 1=4
ngram 2=3

\\1-grams:
-1.0\t<s>\t-0.3
-0.7\t</s>
-0.6\tcat\t-0.2
-0.5\tsat\t-0.1

\\2-grams:
-0.3\t<s> cat
-0.4\tcat sat
-0.5\tsat </s>

\\end\\
"""


def _texts(place: Path) -> Iterator[Target]:
    text = "\n".join(story.text for story in islice(stories(), 40)).encode()
    packed = {"text.gz": gzip.compress(text), "text.xz": lzma.compress(text), "text.txt": text}
    for name, data in packed.items():
        path = place / name
        path.write_bytes(data)
        yield Target("text", path, lambda path=path: measure(list(documents([path]))), weight=20)  # type: ignore[misc]
    bomb = place / "bomb"
    template = place / "chat.jinja"
    template.write_text(CHAT)
    messages = [{"role": "user", "content": "hello"}]

    def fill() -> None:
        try:
            source = template.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise UserError("not text") from None
        render(source, messages)

    yield Target("template", template, fill, weight=1)
    for pack in (gzip.compress, lzma.compress):
        for content in (b"a cat sat\n", b"\0"):
            with bomb.open("wb") as file:
                file.write(pack(content * (MEMBER // len(content))) * (BOMB // MEMBER))
            path = bomb.rename(place / f"bomb-{pack.__module__}-{content[0]}")
            yield Target("bomb", path, lambda path=path: measure(list(documents([path]))), 0, 64, 1, True)  # type: ignore[misc]
