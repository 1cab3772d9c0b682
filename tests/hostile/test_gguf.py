"""GGUF files made to hang, crash, exhaust memory or mislead: rejected at once with one line naming the file."""

import contextlib
import os
import pickle
import resource
import struct
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.errors import UserError
from clearhead.formats.gguf.file import GGUFFile
from clearhead.formats.gguf.tokenizer import read_tokenizer

U32, STRING, ARRAY = 4, 8, 9
F32, Q8_0 = 0, 8


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    return string(key) + struct.pack("<I", kind) + value


def tensor(name="w", dims=(4,), kind=F32, offset=0):
    return string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def gguf(entries=(), tensors=(), data=b"", version=3, n_key=None, n_tensor=None, alignment=32):
    counts = (
        len(tensors) if n_tensor is None else n_tensor,
        len(entries) if n_key is None else n_key,
    )
    head = b"GGUF" + struct.pack("<IQQ", version, *counts) + b"".join(entries) + b"".join(tensors)
    return head + b"\0" * (-len(head) % alignment) + data


ENTRIES = (
    entry("general.architecture", STRING, string("llama")),
    entry("general.alignment", U32, struct.pack("<I", 32)),
    entry("words", ARRAY, struct.pack("<IQ", STRING, 2) + string("the") + string("cat")),
    entry("numbers", ARRAY, struct.pack("<IQ", U32, 3) + struct.pack("<3I", 1, 2, 3)),
)
VALID = gguf(
    ENTRIES, (tensor(), tensor("v", (32, 2), Q8_0, 32)), struct.pack("<4f", 1, 2, 3, 4) + b"\0" * (16 + 68)
)


def refuse(path, match):
    """Check that opening fails fast, with a matching one-line error that names the file and a remedy."""
    start = time.process_time()
    with pytest.raises(UserError, match=match) as refusal:
        GGUFFile.open(path)
    assert time.process_time() - start < 30
    message = str(refusal.value)
    assert "\n" not in message
    assert str(path) in message
    assert ";" in message  # the remedy
    assert len(message) < 600
    return message


def peak():
    """Return this process's peak memory in MB. Linux reports kB, macOS bytes."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


@pytest.fixture
def hostile(tmp_path):
    def write(data, match):
        path = tmp_path / "hostile.gguf"
        path.write_bytes(data)
        return refuse(path, match)

    return write


def test_valid_file_loads(tmp_path):
    path = tmp_path / "valid.gguf"
    path.write_bytes(VALID)
    file = GGUFFile.open(path)
    assert file.metadata["words"] == ["the", "cat"]
    assert file.read("w").tolist() == [1, 2, 3, 4]
    assert file.read("v").shape == (2, 32)


def test_file_truncated_at_any_length_is_rejected(tmp_path):
    path = tmp_path / "cut.gguf"
    for length in range(len(VALID)):
        path.write_bytes(VALID[:length])
        refuse(path, "begins with|ends at|claims")


@pytest.mark.parametrize("n", [10**18, 2**63, 2**64 - 1, 2**16 + 1])
def test_excessive_counts_are_rejected(hostile, n):
    hostile(gguf(n_key=n, data=VALID), f"claims {n} keys, expected at most")
    hostile(gguf(n_tensor=n, data=VALID), f"claims {n} tensors, expected at most")


@pytest.mark.parametrize("n", [2**63, 2**64 - 1, 2**40, 10_000])
def test_strings_longer_than_the_file_are_rejected(hostile, n):
    claim = struct.pack("<Q", n)
    hostile(gguf([claim + b"key"], data=VALID), "a key")
    hostile(gguf([entry("key", STRING, claim + b"value")], data=VALID), "the value of 'key'")
    hostile(gguf([entry("key", ARRAY, struct.pack("<IQ", STRING, 1) + claim)], data=VALID), "'key'")
    hostile(gguf(tensors=[claim + b"name"], data=VALID), "a tensor name")


@pytest.mark.parametrize("n", [10**18, 2**61, 2**64 - 1])
def test_arrays_longer_than_the_file_are_rejected(hostile, n):
    for kind in (0, U32, 12):
        hostile(gguf([entry("key", ARRAY, struct.pack("<IQ", kind, n))], data=VALID), "ends at byte")
    hostile(gguf([entry("key", ARRAY, struct.pack("<IQ", STRING, n))], data=VALID), f"array of {n} strings")


@pytest.mark.parametrize("kind", [0, 7, U32, STRING])
def test_short_file_that_hangs_the_gguf_reader_is_rejected(hostile, kind):
    """A single key: an array that claims an impossible number of elements and contains none."""
    few = gguf([entry("k", ARRAY, struct.pack("<IQ", kind, 2**60))], alignment=1)
    assert len(few) == 49
    hostile(few, "'k'")
    hostile(few[:43], "'k'")


def test_nested_arrays_are_rejected(hostile):
    depth = 5000
    nested = struct.pack("<IQ", ARRAY, 1) * depth + struct.pack("<IQ", U32, 0)
    hostile(gguf([entry("deep", ARRAY, nested)]), "'deep' is an array of arrays")


def test_duplicate_names_are_rejected(hostile):
    twice = [entry("key", U32, b"\0" * 4)] * 2
    hostile(gguf(twice), "key 'key' occurs twice")
    hostile(gguf(tensors=[tensor(), tensor(offset=32)], data=b"\0" * 64), "tensor 'w' occurs twice")


def test_empty_or_non_utf8_names_are_rejected(hostile):
    hostile(gguf([entry("", U32, b"\0" * 4)], data=VALID), "has a key of length 0")
    hostile(gguf([entry(b"\xff\xfe", U32, b"\0" * 4)]), "a key is not UTF-8 at byte 32")
    hostile(
        gguf([entry("words", ARRAY, struct.pack("<IQ", STRING, 1) + string(b"\xc3"))]), "string 0 of 'words'"
    )


def test_error_messages_escape_and_shorten_names(hostile):
    bad = "a\n\x1b[31m" + "x" * 900
    message = hostile(gguf([entry(bad, 99, b"\0" * 4)]), "type 99")
    assert message.isprintable()


@pytest.mark.parametrize("kind", [13, 99, 2**32 - 1])
def test_unknown_value_types_are_rejected(hostile, kind):
    hostile(gguf([entry("key", kind, b"\0" * 8)]), f"'key' has the value type {kind}")
    hostile(gguf([entry("key", ARRAY, struct.pack("<IQ", kind, 1))], data=VALID), f"type {kind}")


def test_invalid_boolean_is_rejected(hostile):
    hostile(gguf([entry("key", 7, b"\2")]), "'key' has the boolean value 2")


@pytest.mark.parametrize("alignment", [0, 3, 24, 2**17, 2**31])
def test_invalid_alignment_is_rejected(hostile, alignment):
    entries = [entry("general.alignment", U32, struct.pack("<I", alignment))]
    hostile(gguf(entries), f"general.alignment is {alignment}, expected a power of two")


def test_non_numeric_alignment_is_rejected(hostile):
    hostile(gguf([entry("general.alignment", STRING, string("32"))]), "general.alignment is '32'")
    numbers = entry("general.alignment", ARRAY, struct.pack("<IQI", U32, 1, 32))
    hostile(gguf([numbers]), "general.alignment is array")


def test_misplaced_tensors_are_rejected(hostile):
    hostile(gguf(tensors=[tensor(offset=8)], data=b"\0" * 64), "'w' is at 8, expected a multiple")
    hostile(gguf(tensors=[tensor(offset=64)], data=b"\0" * 64), "'w' .* ends at byte")
    hostile(gguf(tensors=[tensor(offset=2**64 - 32)], data=b"\0" * 64), "'w' .* ends at byte")
    both = [tensor("a", (9,)), tensor("b", offset=32)]
    hostile(gguf(tensors=both, data=b"\0" * 64), "'b' begins at byte .* where 'a' ends")
    hostile(gguf(tensors=[tensor("a"), tensor("b")], data=b"\0" * 64), "'b' begins at byte")


@pytest.mark.parametrize("dims", [(2**63, 2), (2**32, 2**32), (2**62, 2**62, 2**62, 2**62), (2**64 - 1,) * 4])
def test_overflowing_dimensions_are_rejected(hostile, dims):
    hostile(gguf(tensors=[tensor(dims=dims)], data=b"\0" * 64), "'w' .* ends at byte")


def test_invalid_shapes_are_rejected(hostile):
    hostile(gguf(tensors=[tensor(dims=(1,) * 5)], data=b"\0" * 64), "has 5 dimensions, expected at most 4")
    n = struct.pack("<I", 2**32 - 1)
    hostile(gguf(tensors=[string("w") + n], data=VALID), "has 4294967295 dimensions")
    hostile(gguf(tensors=[tensor(dims=(4, 0))], data=b"\0" * 64), "is 0×4, expected no dimension of 0")
    hostile(
        gguf(tensors=[tensor(dims=(33,), kind=Q8_0)], data=b"\0" * 64), "rows of 33, .* Q8_0's block size 32"
    )


@pytest.mark.parametrize("kind", [4, 31, 1000, 2**32 - 1])
def test_unknown_tensor_types_are_rejected(hostile, kind):
    hostile(gguf(tensors=[tensor(kind=kind)], data=b"\0" * 64), f"'w' has the unknown type {kind}")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("kind", [F32, Q8_0])
def test_non_finite_weights_are_rejected(tmp_path, bad, kind):
    if kind == F32:
        info, data = tensor(), struct.pack("<4f", 1, bad, 2, 3)
    else:
        info, data = tensor(dims=(32,), kind=Q8_0), struct.pack("<e", bad) + b"\1" * 32
    path = tmp_path / "nan.gguf"
    path.write_bytes(gguf(tensors=[info], data=data))
    file = GGUFFile.open(path)
    with pytest.raises(UserError, match=r"tensor 'w' has numbers from .* expected finite") as refusal:
        file.read("w")
    assert str(path) in str(refusal.value)


def test_unsupported_versions_are_rejected(hostile):
    hostile(gguf(version=1), "GGUF version 1, expected 2 or 3")
    hostile(gguf(version=4), "GGUF version 4, expected 2 or 3")
    hostile(gguf(version=3 << 24), "big-endian")


def test_non_gguf_files_are_rejected(hostile):
    hostile(b"", "begins with b'', expected b'GGUF'")

    class Attack:
        def __reduce__(self):
            return os.mkdir, ("executed",)

    hostile(pickle.dumps(Attack()), "not a GGUF file")
    assert not Path("executed").exists()


def test_paths_that_are_not_regular_files_are_rejected(tmp_path):
    refuse(tmp_path / "absent.gguf", "no such file")
    refuse(tmp_path, "is a folder, expected a GGUF file")
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)
    refuse(pipe, "is a pipe or device")
    link = tmp_path / "link.gguf"
    link.symlink_to("/dev/zero")
    refuse(link, "is a pipe or device")
    loop = tmp_path / "loop.gguf"
    loop.symlink_to(loop)
    refuse(loop, "cannot be read")
    with pytest.raises(UserError, match="no such file"):
        GGUFFile.open("model\0.gguf")


def test_largest_headers_take_little_time_and_memory(tmp_path):
    """Headers at the limits and just beyond them take little time and memory."""
    path = tmp_path / "large.gguf"
    before = peak()
    words = string("👋" * 6) * 2**20
    path.write_bytes(gguf([entry("words", ARRAY, struct.pack("<IQ", STRING, 2**20) + words)]))
    refuse(path, "a header of more than 33554432 bytes")
    words = string("👋") * 2**20
    path.write_bytes(gguf([entry("words", ARRAY, struct.pack("<IQ", STRING, 2**20) + words)]))
    start = time.process_time()
    assert len(GGUFFile.open(path).metadata["words"]) == 2**20
    assert time.process_time() - start < 30
    half = [entry(f"words{i}", ARRAY, struct.pack("<IQ", STRING, 2**19) + bytes(8) * 2**19) for i in range(3)]
    path.write_bytes(gguf(half))
    refuse(path, "'words2' is an array of 524288 strings, expected at most 1048576")
    # About 100 MB of this is the test's own data above.
    assert peak() - before < 350


def test_sparse_file_of_a_terabyte_is_rejected(tmp_path):
    path = tmp_path / "sparse.gguf"
    path.write_bytes(gguf([entry("key", STRING, struct.pack("<Q", 2**39))]))
    os.truncate(path, 2**40)
    refuse(path, "the value of 'key' claims 549755813888 bytes, expected at most 1048576")


@settings(max_examples=200)
@given(data=st.data())
def test_mutated_file_is_read_or_rejected(tmp_path, data):
    """Bytes are changed, inserted and deleted: the result is a file or a UserError, nothing else."""
    mutated = bytearray(VALID)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(mutated) - 1))
        kind = data.draw(st.sampled_from(("flip", "insert", "delete")))
        if kind == "flip":
            mutated[at] = data.draw(st.integers(0, 255))
        elif kind == "insert":
            mutated[at:at] = data.draw(st.binary(min_size=1, max_size=9))
        else:
            del mutated[at : at + data.draw(st.integers(1, 9))]
    path = tmp_path / "mutated.gguf"
    path.write_bytes(mutated)
    with contextlib.suppress(UserError), GGUFFile.open(path) as file:
        for name in file.tensors:
            file.read(name)
        read_tokenizer(file.metadata)
