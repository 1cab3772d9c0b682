"""Token cache: the correct stream, stored once, never partially written."""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from clearhead.errors import UserError
from clearhead.text.corpus import Document, documents
from clearhead.text.token_cache import MANIFEST, tokenize
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokens import Tokens

BYTE = Tokenizer.train("byte", [])
TWO = [Document.of("one", "it was"), Document.of("two", "été")]
END = BYTE.end_id
STREAM = [END, *b"it was", END, *"été".encode(), END]


def whole(tokens: Tokens) -> list[int]:
    return [int(i) for i in tokens[:]]


@pytest.mark.parametrize("shard_size", [1, 3, 7, len(STREAM), 2**26])
def test_documents_are_surrounded_by_end_tokens(tmp_path: Path, shard_size: int) -> None:
    tokens = tokenize(TWO, BYTE, tmp_path, shard_size)
    assert whole(tokens) == STREAM
    assert len(tokens) == len(STREAM)
    assert tokens.n_bytes == 11
    [folder] = tmp_path.iterdir()
    shards = sorted(folder.glob("tokens-*.npy"))
    assert len(shards) == -(-len(STREAM) // shard_size)
    assert np.concatenate([np.load(shard) for shard in shards]).tolist() == STREAM
    assert np.load(shards[0]).dtype == np.uint16


def test_large_vocabulary_uses_four_bytes_per_token(tmp_path: Path) -> None:
    text = "".join(map(chr, range(0x10000, 0x10000 + 2**16)))
    tokens = tokenize([Document.of("all", text)], Tokenizer.train("char", [text]), tmp_path)
    assert whole(tokens) == [2**16, *range(2**16), 2**16]


def test_long_file_encodes_to_the_ids_of_its_text(tmp_path: Path) -> None:
    text = "It wasn't tired;  the road\r\n\n was 12 miles wide, \u00a0dit-elle à l'été.\t" * 4_000
    (tmp_path / "long.txt").write_text(text, encoding="utf-8", newline="")
    for kind in ("char", "bpe"):
        tokenizer = Tokenizer.train(kind, [text[:10_000]], 300 if kind == "bpe" else None)
        tokens = tokenize(documents([tmp_path / "long.txt"]), tokenizer, tmp_path / "cache", 2**18)
        assert np.array_equal(tokens[:], [tokenizer.end_id, *tokenizer.encode(text), tokenizer.end_id])
        assert tokens.n_bytes == len(text.encode())


def test_cached_tokens_are_reused(tmp_path: Path) -> None:
    tokenize(TWO, BYTE, tmp_path)
    [folder] = tmp_path.iterdir()
    before = {path.name: path.stat().st_ino for path in folder.iterdir()}
    assert whole(tokenize(TWO, BYTE, tmp_path)) == STREAM
    assert {path.name: path.stat().st_ino for path in folder.iterdir()} == before


def test_any_flipped_bit_of_the_tokens_is_repaired(tmp_path: Path) -> None:
    """Some bits of each shard with the end of its header, and of the manifest."""
    tokenize(TWO, BYTE, tmp_path, 5)
    [folder] = tmp_path.iterdir()
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        begin = 0 if path.name == MANIFEST else 100  # before it are the header's lengths and spaces
        for bit in range(8 * begin, 8 * len(content), 97):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            path.write_bytes(flipped)
            assert whole(tokenize(TWO, BYTE, tmp_path, 5)) == STREAM, (path.name, bit)


def test_different_text_or_tokenizer_gets_a_separate_entry(tmp_path: Path) -> None:
    tokenize(TWO, BYTE, tmp_path)
    tokenize(TWO[::-1], BYTE, tmp_path)
    tokenize(TWO, Tokenizer.train("char", ["it was été"]), tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("damage", ["cut", "longer", "empty", "missing", "no manifest", "manifest", "dtype"])
def test_damaged_entry_is_rebuilt(tmp_path: Path, damage: str) -> None:
    tokenize(TWO, BYTE, tmp_path, 5)
    [folder] = tmp_path.iterdir()
    shard, manifest = folder / "tokens-00001.npy", folder / MANIFEST
    content = shard.read_bytes()
    match damage:
        case "cut":
            shard.write_bytes(content[:-1])
        case "longer":
            shard.write_bytes(content + b"x")
        case "empty":
            shard.write_bytes(b"")
        case "missing":
            shard.unlink()
        case "no manifest":
            manifest.unlink()
        case "manifest":
            manifest.write_text(manifest.read_text()[:-5])
        case "dtype":
            np.save(shard, np.load(shard).astype(np.uint32))
    assert whole(tokenize(TWO, BYTE, tmp_path, 5)) == STREAM
    assert list(tmp_path.iterdir()) == [folder]


def test_user_errors_leave_nothing_behind(tmp_path: Path) -> None:
    tokenizer = Tokenizer.train("char", ["it was"])
    with pytest.raises(
        UserError, match=r"two: 'é' \(U\+00E9 .*\) at character 0 is not among the 6 characters"
    ):
        tokenize(TWO, tokenizer, tmp_path)
    far = "it " * 500_000 + "é"
    with pytest.raises(UserError, match=r"far: 'é' .* at character 1500000 is not"):
        tokenize([Document.of("far", far)], tokenizer, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_text_that_changes_while_being_read_is_not_cached(tmp_path: Path) -> None:
    texts = iter(["it was", "it wasn't"])
    with pytest.raises(UserError, match="changed while it was being read"):
        tokenize([Document("log", lambda: [next(texts)])], BYTE, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_full_disk_raises_a_user_error(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="the limit is set by a Unix system call")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(
            UserError, match=r"not enough space in .*, which need up to 2\.0 MB: free some space"
        ):
            tokenize([Document.of("long", "it " * 333_333)], BYTE, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_created_raises_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"tokens cannot be stored in .*file"):
        tokenize(TWO, BYTE, tmp_path / "file")


ENDLESS = """
import itertools, sys
from pathlib import Path
from clearhead.text.corpus import Document
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.token_cache import tokenize
reads = itertools.count()
def read():
    if next(reads) == 0:
        return ["it was"]
    print("writing", flush=True)
    return itertools.cycle(["it was " * 9999])
tokenize([Document("endless", read)], Tokenizer.train("byte", []), Path(sys.argv[1]), 1000)
"""


@pytest.mark.skipif(os.name == "nt", reason="dead processes are not detected on Windows")
def test_leftovers_of_a_killed_process_are_ignored_and_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ENDLESS, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while not list(tmp_path.glob(".*/tokens-00003.npy")):
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    assert len(list(tmp_path.iterdir())) == 1
    alive = tmp_path / f".{socket.gethostname()}-{os.getppid()}-01234567"
    elsewhere = tmp_path / ".some-other-machine-999999999-01234567"
    alive.mkdir()
    elsewhere.mkdir()
    assert whole(tokenize([Document.of("x", "it was")], BYTE, tmp_path)) == [END, *b"it was", END]
    left = {path.name for path in tmp_path.iterdir() if path.name.startswith(".")}
    assert left == {alive.name, elsewhere.name}


def test_slower_of_two_writers_uses_the_existing_entry(tmp_path: Path) -> None:
    def read() -> list[str]:
        # The slow call tokenizes on its second read; the fast call starts and finishes during it.
        calls.append(1)
        if len(calls) == 2:
            tokenize([Document.of("x", "it was")], BYTE, tmp_path)
            [folder] = [path for path in tmp_path.iterdir() if not path.name.startswith(".")]
            folders.append((folder, folder.stat().st_ino))
        return ["it was"]

    calls: list[int] = []
    folders: list[tuple[Path, int]] = []
    assert whole(tokenize([Document("x", read)], BYTE, tmp_path)) == [END, *b"it was", END]
    [(folder, inode)] = folders
    assert list(tmp_path.iterdir()) == [folder]
    assert folder.stat().st_ino == inode


ONE_OF_MANY = """
import sys
from pathlib import Path
from clearhead.text.corpus import Document
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.token_cache import tokenize
documents = [Document.of("x", "it was " * 50_000)]
sys.stdin.readline()
print(len(tokenize(documents, Tokenizer.train("byte", []), Path(sys.argv[1]), 10_000)))
"""


def test_concurrent_processes_agree(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ONE_OF_MANY, str(tmp_path)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(3)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    assert [int(process.communicate(timeout=300)[0]) for process in processes] == [350_002] * 3
    [folder] = tmp_path.iterdir()
    assert sum(json.loads((folder / MANIFEST).read_text())["shards"]) == 350_002


def test_share_has_end_tokens_only_for_selected_documents(tmp_path: Path) -> None:
    texts = [Document.of(str(number), f"number {number}") for number in range(100)]
    tokens = tokenize(texts, BYTE, tmp_path, share=0.25)
    ids = whole(tokens)
    assert (ids[0], ids[-1]) == (END, END)
    taken = "".join("|" if i == END else chr(i) for i in ids)[1:-1].split("|")
    assert len(taken) == pytest.approx(25, abs=3)
    assert set(taken) < {f"number {number}" for number in range(100)}
    assert tokens.n_bytes is None
    assert whole(tokenize(texts, BYTE, tmp_path, share=0.25)) == ids
    assert len(tokenize(texts, BYTE, tmp_path)) > 3 * len(ids)
    assert len(list(tmp_path.iterdir())) == 2


def test_mismatched_text_hash_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="changed while it was being read"):
        tokenize(TWO, BYTE, tmp_path, text_sha256="0" * 64)
    assert list(tmp_path.iterdir()) == []


def test_documents_are_told_apart_and_an_old_cache_is_rebuilt(tmp_path):
    tokenizer = Tokenizer.train("byte", [])
    one, two = Document.of("a", "first"), Document.of("b", "second\n<|endoftext|>\nthird")
    assert not tokenize([one], tokenizer, tmp_path).are_documents
    tokens = tokenize([one, two], tokenizer, tmp_path)
    assert tokens.are_documents
    ends = np.flatnonzero(tokens.document_starts(0, len(tokens))).tolist()
    assert ends == np.flatnonzero(tokens[:] == tokenizer.end_id).tolist()
    parts = [tokenizer.decode(tokens[a + 1 : b].tolist()) for a, b in itertools.pairwise(ends)]
    assert parts == ["first", "second", "third"]
    for path in tmp_path.glob("*/tokens.json"):  # as written before documents were told apart
        manifest = json.loads(path.read_text())
        del manifest["separator"]
        path.write_text(json.dumps(manifest))
    again = tokenize([one, two], tokenizer, tmp_path)
    assert again.are_documents
    assert (again[:] == tokens[:]).all()
