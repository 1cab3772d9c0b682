"""What the fuzz bench mutates besides Clearhead's own files: models, adapters, items and documents made elsewhere."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from bench.fuzz_targets import LLAMA, Target
from clearhead.evaluation.item_file import read_items
from clearhead.evaluation.minimal_pairs import minimal_pairs
from clearhead.formats import folder, peft
from clearhead.formats.saved import Saved
from clearhead.language_model import load
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.corpus import documents, measure
from clearhead.text.tokenizer import Tokenizer

BLOCKS, HEADS, WIDTH, HIDDEN, CONTEXT = 2, 2, 8, 12, 4
CHARACTERS = "\n abcdefghij"
PAGE = "<html><head/><body><h1>The road</h1><p>A <b>cat</b> sat.</p><ul><li>a<li>b</ul><table><tr><td>a<td>b</table>"
CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="book.opf"/></rootfiles></container>'
)
BOOK = (
    '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.html"/></manifest>'
    '<spine><itemref idref="a"/></spine></package>'
)


def make_imports(place: Path) -> Iterator[Target]:
    yield from _llama2c(place / "llama2c")
    yield from _nanogpt(place / "nanogpt")
    yield from _adapter(place / "adapter")
    yield from _merges(place / "merges")
    yield from _items(place)
    yield from _documents(place)


def _llama2c(place: Path) -> Iterator[Target]:
    """Both versions of a model, and its tokenizer."""
    place.mkdir()
    pieces = ["<unk>", "\n<s>\n", "\n</s>\n", *(f"<0x{i:02X}>" for i in range(256)), "th", "the", *" theca"]
    tokenizer = place / "tokenizer.bin"
    rows = (struct.pack("<fI", -i, len(piece)) + piece.encode() for i, piece in enumerate(pieces))
    tokenizer.write_bytes(struct.pack("<I", 8) + b"".join(rows))
    n = len(pieces)
    sizes = (WIDTH, HIDDEN, BLOCKS, HEADS, HEADS, n, CONTEXT)
    block = 2 * WIDTH + 4 * WIDTH**2 + 3 * WIDTH * HIDDEN
    numbers = np.random.default_rng(0).standard_normal(
        n * WIDTH + BLOCKS * block + WIDTH + CONTEXT * WIDTH // HEADS, dtype=np.float32
    )
    first, second = place / "first.bin", place / "second.bin"
    first.write_bytes(struct.pack("<7i", *sizes) + numbers.tobytes())
    head = b"24ka" + struct.pack("<i7iB", 1, *sizes, True)
    second.write_bytes(head.ljust(256, b"\0") + numbers[: -CONTEXT * WIDTH // HEADS].tobytes())
    for path in (first, second):
        yield Target("llama2.c", path, lambda path=path: load(path, "cpu"), 0, 64, 10)  # type: ignore[misc]
    yield Target("llama2.c", tokenizer, lambda: load(first, "cpu"), weight=20)


def _nanogpt(place: Path) -> Iterator[Target]:
    """A checkpoint, and the characters of its dataset."""
    place.mkdir()
    tensors = {"transformer.wte": (len(CHARACTERS), WIDTH), "transformer.wpe": (CONTEXT, WIDTH)}
    for i in range(BLOCKS):
        block = f"transformer.h.{i}."
        tensors |= {f"{block}attn.c_attn": (3 * WIDTH, WIDTH), f"{block}attn.c_proj": (WIDTH, WIDTH)}
        tensors |= {f"{block}mlp.c_fc": (4 * WIDTH, WIDTH), f"{block}mlp.c_proj": (WIDTH, 4 * WIDTH)}
        tensors |= {f"{block}ln_1": (WIDTH,), f"{block}ln_2": (WIDTH,)}  # type: ignore[dict-item]
    tensors |= {"transformer.ln_f": (WIDTH,)}  # type: ignore[dict-item]
    sizes = {"n_layer": BLOCKS, "n_head": HEADS, "n_embd": WIDTH, "block_size": CONTEXT}
    checkpoint = place / "ckpt.pt"
    torch.save(
        {
            "model": {f"{name}.weight": torch.ones(shape) for name, shape in tensors.items()},
            "model_args": {**sizes, "vocab_size": len(CHARACTERS), "bias": False, "dropout": 0.0},
            "config": {"dataset": "shakespeare_char"},
        },
        checkpoint,
    )
    characters = place / "meta.pkl"
    characters.write_bytes(pickle.dumps({"stoi": {each: i for i, each in enumerate(CHARACTERS)}}))
    with zipfile.ZipFile(checkpoint) as archive:
        start = archive.infolist()[1].header_offset  # after the pickle
        contents = archive.start_dir
    # The pickle, whose checksum torch does not verify; the table of contents; the whole file.
    for begin, end in ((0, start), (contents, 0), (0, 0)):
        yield Target("nanogpt", checkpoint, lambda: load(checkpoint, "cpu"), begin, end, 10)
    yield Target("nanogpt", characters, lambda: load(checkpoint, "cpu"), weight=20)
    values = place / "values.pkl"
    with zipfile.ZipFile(checkpoint) as archive:
        values.write_bytes(archive.read(archive.infolist()[0]))

    def read() -> None:
        """Put the pickle into an archive in which its checksum is right."""
        with zipfile.ZipFile(checkpoint) as archive:
            members = {each: archive.read(each) for each in archive.namelist()}
        packed = place / "packed.pt"
        with zipfile.ZipFile(packed, "w") as archive:
            for i, (name, data) in enumerate(members.items()):
                archive.writestr(name, data if i else values.read_bytes())
        load(packed, "cpu")

    yield Target("nanogpt", values, read, weight=60)


def _adapter(place: Path) -> Iterator[Target]:
    base = place / "base"
    folder.save(base, Saved(Transformer(preset("modern", **LLAMA)), Tokenizer.train("byte", []), None))
    (base / folder.OURS).unlink()
    settings, weights = place / peft.SETTINGS, place / peft.WEIGHTS
    about: dict[str, Any] = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "alpha_pattern": {"q_proj": 2}}
    settings.write_text(json.dumps({**about, "base_model_name_or_path": str(base)}))
    name = "base_model.model.model.layers.0.self_attn.q_proj"
    save_file(
        {f"{name}.lora_A.weight": torch.ones(2, 16), f"{name}.lora_B.weight": torch.ones(16, 2)}, weights
    )
    for path in (settings, weights):
        yield Target("adapter", path, lambda: load(place, "cpu"), weight=20)


def _merges(place: Path) -> Iterator[Target]:
    place.mkdir()
    model = json.loads(Tokenizer.train("bpe", ["a cat and a hat and a bat\n"] * 9, 300).to_json())["model"]
    (place / "vocab.json").write_text(json.dumps({**model["vocab"], "<|endoftext|>": 299}))
    (place / "merges.txt").write_text("\n".join(["#version: 0.2", *map(" ".join, model["merges"])]))

    def read() -> None:
        found = Tokenizer.load(place)
        found.decode(found.encode("a cat"))

    for name in ("vocab.json", "merges.txt"):
        yield Target("merges", place / name, read, weight=10)


def _items(place: Path) -> Iterator[Target]:
    items = minimal_pairs(pairs=2)
    rows = [json.dumps(each.to_row()) for each in items]
    rows.append(json.dumps({"context": "a", "choices": ["b", "c"], "answer": 1, "category": 3}))
    rows.append(json.dumps({"context": "a", "target": "b"}))
    cells = ["context,choice_0,choice_1,answer", *('"the cat",sat,"ran ""fast""",1' for _ in range(20))]
    for name, lines in {"items.jsonl": rows, "items.csv": cells}.items():
        path = place / name
        path.write_text("\n".join(lines))
        yield Target("items", path, lambda path=path: read_items([path]), weight=20)  # type: ignore[misc]


def _documents(place: Path) -> Iterator[Target]:
    import docx

    word, book = io.BytesIO(), io.BytesIO()
    written = docx.Document()
    written.add_paragraph("A cat sat.")
    written.add_table(1, 2).cell(0, 0).text = "a"
    written.save(word)
    with zipfile.ZipFile(book, "w") as archive:
        for name, text in {"META-INF/container.xml": CONTAINER, "book.opf": BOOK, "a.html": PAGE}.items():
            archive.writestr(name, text)
    column = "name,body\n" + 'x,"a cat, sat"\n' * 20
    files = {"page.html": PAGE.encode(), "book.epub": book.getvalue(), "note.docx": word.getvalue()}
    for name, data in {**files, "posts.csv": column.encode()}.items():
        path = place / name
        path.write_bytes(data)
        asked = f"{path}:body" if name == "posts.csv" else path
        yield Target("document", path, lambda asked=asked: measure(list(documents([asked]))), weight=10)  # type: ignore[misc]
