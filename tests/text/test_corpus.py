"""Documents: how sources are resolved and texts are split at safe boundaries, and one-line errors."""

import gzip
import io
import lzma
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.errors import UserError
from clearhead.text import corpus
from clearhead.text.corpus import (
    PIECE,
    STRETCH,
    Document,
    cut,
    documents,
    measure,
    readable,
    readable_documents,
    thin,
)
from clearhead.text.sources import BLOCK
from clearhead.text.tokenizer import Tokenizer


def read(*sources: str | Path) -> list[str]:
    return ["".join(document.pieces()) for document in documents(sources)]


def refused(sources: Sequence[str | Path], match: str) -> None:
    with pytest.raises(UserError, match=match) as caught:
        read(*sources)
    assert "\n" not in str(caught.value)


def test_file_is_a_document_that_can_be_reread(tmp_path: Path) -> None:
    path = tmp_path / "novel"
    path.write_bytes(b"\xef\xbb\xbfIt was\r\n\xc3\xa9t\xc3\xa9.\r\n\xef\xbb\xbf")
    [document] = documents([path])
    assert document.name == str(path)
    assert "".join(document.pieces()) == "It was\r\nété.\r\n\ufeff"
    assert "".join(document.pieces()) == "It was\r\nété.\r\n\ufeff"


def test_folder_yields_its_text_files_in_order(tmp_path: Path) -> None:
    for name in [
        "b/2.txt",
        "b/10.MD",
        "a.text",
        "c.txt",
        ".hidden.txt",
        ".git/x.txt",
        "picture.png",
        "d.tar.gz",
    ]:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"packed"))
    (tmp_path / "e.txt.xz").write_bytes(lzma.compress(b"packed too"))
    assert read(tmp_path) == ["a.text", "b/10.MD", "b/2.txt", "packed", "c.txt", "packed too"]


def test_pattern_yields_every_matching_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    for name in ["b.py", "a.py", "a.txt", "deep/c.py", "d[1].txt"]:
        (tmp_path / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    assert read("**/*.py") == ["a.py", "b.py", "deep/c.py"]
    assert read(str(tmp_path / "?.txt"), "b.py") == ["a.txt", "b.py"]
    assert read("d[1].txt") == ["d[1].txt"]


def test_compressed_files_are_detected_by_content(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(gzip.compress(b"one ") + gzip.compress(b"two"))
    (tmp_path / "b.gz").write_bytes(lzma.compress(b"three"))
    (tmp_path / "c.xz").write_bytes(b"four")
    assert read(tmp_path) == ["one two", "three", "four"]


def test_standard_input_can_be_reread() -> None:
    [document] = documents(["-"], io.BytesIO("été\n".encode()))
    assert document.name == "standard input"
    assert ["".join(document.pieces()) for _ in range(2)] == ["été\n"] * 2


def test_standard_input_copy_is_deleted_with_its_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    [document] = documents(["-"], io.BytesIO(b"it"))
    assert len(list(tmp_path.iterdir())) == 1
    del document
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in its file system")
def test_named_pipe_can_be_reread(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("it was",))
    writer.start()
    [document] = documents([pipe])
    writer.join()
    assert ["".join(document.pieces()) for _ in range(2)] == ["it was"] * 2


def test_long_file_is_split_before_whitespace(tmp_path: Path) -> None:
    text = "Éa  bc\n\nd, " * (PIECE // 3)
    (tmp_path / "long.txt").write_text(text, encoding="utf-8", newline="")
    [document] = documents([tmp_path])
    pieces = list(document.pieces())
    assert "".join(pieces) == text
    assert len(pieces) > 2
    assert all(len(piece) <= 2 * PIECE for piece in pieces)
    assert all(piece[0].isspace() and not before[-1].isspace() for before, piece in pairwise(pieces))


@pytest.mark.parametrize("character", ["x", " ", "漢"])
def test_file_without_split_points_is_split_anywhere(character: str) -> None:
    text = character * (3 * PIECE + 1)
    document = Document("long", lambda: (text[i : i + 50_000] for i in range(0, len(text), 50_000)))
    pieces = list(document.pieces())
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= PIECE + 50_000


ODD = "ab1'st .,\n\r\t\u00a0\u2003\x1c\x85é漢🐔"
BPE = Tokenizer.train("bpe", ["a b's  't1 ab. \n\n \tba\r\n 1a, ''s \u00a0\u2003a " * 20, ODD * 5], 330)


@given(text=st.text(st.sampled_from(ODD)), length=st.integers(0, 5))
@settings(max_examples=200)
def test_split_text_encodes_to_the_same_ids(text: str, length: int) -> None:
    parts = list(cut(text, length))
    assert "".join(parts) == text
    assert [i for part in parts for i in BPE.encode(part)] == BPE.encode(text)


def test_hash_covers_text_and_document_boundaries(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(gzip.compress(b"it was"))
    plain = measure([Document.of("x", "it was")])[0]
    assert measure(documents([tmp_path]))[0] == plain
    assert measure([Document("y", lambda: ["it", " w", "as"])])[0] == plain
    others = [["it w", "as"], ["it was", "it was"], ["it was "], ["It was"]]
    assert len({plain, *(measure(Document.of("x", text) for text in texts)[0] for texts in others)}) == 5


def test_missing_sources_are_named_in_the_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    refused([], "no text was given")
    refused([tmp_path / "a.txt", tmp_path / "b.txt"], "no such file: .*b.txt")
    refused([tmp_path / "a.txt" / "b.txt"], "no such file: .*b.txt")
    refused([tmp_path / "*.md"], "no file matches .*md")
    refused(["It was a dark\nand stormy night. " * 500], "cannot be read: File name too long")
    refused(["It was\nb.txt"], r"no such file: 'It was\\nb.txt'")
    refused(["nul\0"], "no such file")
    refused(["-"], "is not available here")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "x.png").write_bytes(b"x")
    refused([tmp_path / "empty"], "the folder .*empty has no text files")
    (tmp_path / "empty" / "config.json").touch()
    refused([tmp_path / "empty"], "the folder .*empty is a model, not a text")


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0), lzma.compress(b"")])
def test_empty_file_is_rejected(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    refused([tmp_path], "a.txt is empty")


def test_text_that_is_not_utf8_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\x89PNG"[1:] + b"ab\0c")
    refused([path], "a.txt is not text: its byte 5 is NUL")
    path.write_bytes("été".encode("latin-1"))
    refused(
        [path], "a.txt is not UTF-8: byte 0 is 0xe9; convert it, for example with iconv -f LATIN1 -t UTF-8 "
    )
    path.write_bytes("it was é".encode()[:-1])
    refused([path], "ends in the middle of a character, .*remove its last byte$")
    path.write_bytes("it was 𝄞".encode()[:-1])
    refused([path], "remove its last 3 bytes$")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("text", ["été 𝄞", "x" * (2**20 - 1) + "𝄞" * 3])
def test_text_with_a_byte_order_mark_is_decoded(tmp_path: Path, encoding: str, text: str) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    assert read(tmp_path) == [text]
    assert ["".join(each.pieces()) for each in documents(["-"], io.BytesIO(text.encode(encoding)))] == [text]


def test_big_endian_text_is_decoded(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("\ufeffété".encode("utf-16-be"))
    (tmp_path / "b.txt").write_bytes("\ufeffété".encode("utf-32-be"))
    assert read(tmp_path) == ["été", "été"]


def test_damaged_utf16_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffabc".encode("utf-16-le")[:-1])
    refused([path], "ends in the middle of a character, .*remove its last byte$")
    path.write_bytes("\ufeffabc".encode("utf-16-le") + b"\0\xdc")
    refused([path], "a.txt is damaged UTF-16: copy it again from its source, or save it as UTF-8")
    path.write_bytes("\ufeffa\0c".encode("utf-16-le"))
    refused([path], "a.txt is not text: it contains NUL")


def test_unreadable_files_among_others_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Text.")
    (tmp_path / "b.txt").write_bytes(b"x" * 2**21 + "été".encode("latin-1"))
    (tmp_path / "c.txt.gz").write_bytes(b"\x1f\x8b\x08\x00broken")
    (tmp_path / "d.txt").touch()
    kept, messages = readable(list(documents([tmp_path])))
    assert [Path(each.name).name for each in kept] == ["a.txt"]
    assert len(messages) == 3
    assert messages[0].startswith(
        f"skipped {tmp_path / 'b.txt'}, which is not UTF-8: byte {2**21} is 0xe9; convert it"
    )
    assert messages[1].startswith(
        f"skipped {tmp_path / 'c.txt.gz'}, which is a damaged or truncated archive: "
    )
    assert messages[2] == f"skipped {tmp_path / 'd.txt'}: empty"


def test_only_the_first_unreadable_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "z.txt").write_text("Text.")
    for i in range(6):
        (tmp_path / f"{i}.txt").write_bytes(b"\xff")
    with pytest.warns(UserWarning, match="skipped") as caught:
        assert len(readable_documents([tmp_path])) == 1
    messages = [str(each.message) for each in caught]
    assert ["0.txt" in messages[0], "1.txt" in messages[1], "2.txt" in messages[2]] == [True] * 3
    assert messages[3:] == ["skipped 3 more files that cannot be read"]


def test_files_of_which_none_is_readable_are_one_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "b.txt").touch()
    with pytest.raises(UserError, match=r"^all 2 files are empty: give others$"):
        readable(list(documents([tmp_path])))
    (tmp_path / "b.txt").write_bytes(b"\xff")
    with pytest.raises(
        UserError, match=r"^none of the 2 files contains readable text: .*b\.txt is not UTF-8"
    ):
        readable(list(documents([tmp_path])))


def test_invalid_byte_offset_is_counted_across_blocks(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * (2**20 - 1) + "é".encode() + b"ok" * 9 + b"\xff")
    refused([path], f"byte {2**20 + 1 + 18} is 0xff")
    path.write_bytes(b"x" * (2**20 - 1) + b"\xc3" + b"a")
    refused([path], f"byte {2**20 - 1} is 0xc3")
    path.write_bytes(b"x" * 2**20 + b"\0")
    refused([path], f"byte {2**20} is NUL")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_damaged_archive_is_rejected(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    packed = pack(os.urandom(500).hex().encode())
    flipped = bytearray(packed)
    flipped[len(packed) // 2] ^= 0xFF
    for content in [packed[:-30], packed[: len(packed) // 2], packed[:8], bytes(flipped)]:
        (tmp_path / "a.txt").write_bytes(content)
        refused([tmp_path], "a.txt is a damaged or truncated archive")


@pytest.fixture
def nobody() -> Iterator[Path]:
    """A folder for a non-root user: root ignores file permissions, so root drops privileges for the test."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if was_root:
            os.seteuid(0)
        shutil.rmtree(folder)


@pytest.mark.skipif(os.name == "nt", reason="Windows denies access in other ways")
def test_unreadable_file_is_rejected(nobody: Path) -> None:
    path = nobody / "a.txt"
    path.write_text("a")
    path.chmod(0)
    refused([path], "a.txt cannot be read: Permission denied")
    folder = nobody / "closed"
    folder.mkdir(mode=0)
    refused([folder], "closed cannot be read: Permission denied")
    refused([folder / "x.txt"], "x.txt cannot be read: Permission denied")
    folder.chmod(0o700)


LONG = "some words, " * 200_000


@pytest.mark.parametrize("share", [1.0, 0.5, 0.25, 0.06])
def test_share_of_a_long_document_takes_every_nth_chunk(share: float) -> None:
    taken = list(thin(Document.of("long", LONG).pieces(), 0, share))
    assert all(LONG[start : start + len(stretch)] == stretch for start, stretch in taken)
    length = sum(len(stretch) for _, stretch in taken)
    assert abs(length - share * len(LONG)) <= (0 if share == 1 else STRETCH + 20)
    starts = [start for start, _ in taken]
    assert starts == sorted(starts)
    if share < 1:
        gaps = [b - a for a, b in pairwise(starts)]
        assert max(gaps) <= (1 / share + 1) * (STRETCH + 20)


@pytest.mark.parametrize("share", [0.5, 0.25, 0.06])
def test_share_of_many_short_documents_takes_every_nth_document(share: float) -> None:
    taken = [number for number in range(1000) if list(thin(["a short one"], number, share))]
    assert len(taken) == pytest.approx(1000 * share, abs=3)
    assert max(b - a for a, b in pairwise(taken)) <= 3 / share


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_archive_that_expands_too_much_is_refused(pack, tmp_path):
    path = tmp_path / "bomb"
    path.write_bytes(pack(b"a" * (2**25 + 2**20)))
    with pytest.raises(UserError, match="expands to more than 200 times its size"):
        measure(list(documents([path])))


@pytest.mark.parametrize("name", ["gzip", "lzma"])
def test_only_the_beginning_of_an_archive_is_expanded_to_refuse_it(name, tmp_path, monkeypatch):
    """What follows does not make up for it: the file as a whole expands to less than 200 times its size."""
    pack = {"gzip": gzip.compress, "lzma": partial(lzma.compress, preset=1)}[name]
    path = tmp_path / "bomb"
    path.write_bytes(pack(b"a " * 2**24 + b"a " * 2**23) + pack(os.urandom(2**19).hex().encode()))
    assert 200 * path.stat().st_size > 2**26
    sizes = []
    with pytest.raises(UserError, match="expands to more than 200 times its size"):
        sizes.extend(map(len, next(iter(documents([path]))).read()))
    assert sum(sizes) <= 2**25 + BLOCK


WORDS = st.lists(st.sampled_from(["a", "cat", " ", "\n", "\t", "\u00a0", "\u2028", "\x1c"]), max_size=30).map(
    "".join
)


@given(WORDS, st.integers(1, 30))
def test_text_is_split_at_the_last_place_where_whitespace_begins(text, length):
    """A plain search finds the same split: before the last whitespace that follows a non-space character."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "PIECE", length)
        pieces = list(Document.of("a", text).pieces()) if text else []
    assert "".join(pieces) == text
    if len(text) >= length:
        ends = [i for i in range(1, len(text)) if text[i] in " \t\r\n" and not text[i - 1].isspace()]
        assert len(pieces[0]) == (ends[-1] if ends else len(text))
