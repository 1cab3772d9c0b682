"""Read GGUF files written by gguf's own writer."""

import gc
import threading

import gguf
import numpy as np
import pytest
import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from clearhead.errors import UserError
from clearhead.formats.gguf import file as gguf_file
from clearhead.formats.gguf.file import GGUFFile, TensorInfo

KINDS = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0")
DRAWN = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ1_S", "IQ2_XXS", "IQ3_S", "IQ4_NL", "IQ4_XS", "MXFP4")


def write(path, tensors=(), metadata=(), alignment=None):
    """`tensors` holds (name, kind, rows of bytes or numbers); `metadata` holds (writer method, key, value)."""
    writer = gguf.GGUFWriter(path, "llama")
    if alignment:
        writer.add_custom_alignment(alignment)
    for verb, key, value in metadata:
        getattr(writer, f"add_{verb}")(key, value)
    for name, kind, data in tensors:
        writer.add_tensor(name, data, raw_dtype=GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def drawn_rows(kind, rows, blocks):
    """Return random blocks in which every float16 field is finite and small."""
    _, n_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    raw = np.random.default_rng(1).integers(0, 256, (rows * blocks, n_bytes), dtype=np.uint8)
    return (raw & 0x3B).reshape(rows, blocks * n_bytes)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.gguf"


def test_metadata_of_every_type_is_read(path):
    metadata = [
        ("uint8", "a.u8", 200),
        ("int8", "a.i8", -100),
        ("uint16", "a.u16", 60_000),
        ("int16", "a.i16", -30_000),
        ("uint32", "a.u32", 4_000_000_000),
        ("int32", "a.i32", -2_000_000_000),
        ("float32", "a.f32", 0.5),
        ("bool", "a.yes", True),
        ("string", "a.text", "Grüße ▁ 👋"),
        ("uint64", "a.u64", 2**63 + 1),
        ("int64", "a.i64", -(2**62)),
        ("float64", "a.f64", 0.1),
    ]
    write(path, metadata=[*metadata, ("array", "a.words", ["", "the", "Ġcat"]), ("array", "a.n", [1, 2, 3])])
    file = GGUFFile.open(path)
    assert {key: file.metadata[key] for _, key, _ in metadata} == {key: value for _, key, value in metadata}
    assert file.metadata["a.yes"] is True
    assert file.metadata["a.words"] == ["", "the", "Ġcat"]
    assert file.metadata["a.n"].tolist() == [1, 2, 3]
    assert file.tensors == {}


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_match_gguf(path, kind):
    packed = gguf.quants.quantize(numbers(5, 256), GGMLQuantizationType[kind])
    write(path, [("other", "F32", numbers(3)), ("w", kind, packed)])
    with GGUFFile.open(path) as file:
        assert file.tensors["w"].shape == (5, 256)
        assert file.tensors["w"].kind == kind
        assert file.tensors["w"].n_bytes == packed.nbytes
        read = file.read("w")
    assert read.dtype == torch.float32
    assert np.array_equal(read.numpy(), gguf.quants.dequantize(packed, GGMLQuantizationType[kind]))


@pytest.mark.parametrize("kind", DRAWN)
def test_random_blocks_match_gguf(path, kind):
    packed = drawn_rows(kind, rows=6, blocks=2)
    write(path, [("w", kind, packed)])
    expected = gguf.quants.dequantize(packed, GGMLQuantizationType[kind])
    assert np.array_equal(GGUFFile.open(path).read("w").numpy(), expected)


@pytest.mark.parametrize("kind", ["F32", "F16", "Q8_0", "Q6_K"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_chunked_reads_match_for_every_dtype(path, monkeypatch, kind, dtype):
    packed = (
        drawn_rows(kind, 7, 3)
        if kind == "Q6_K"
        else gguf.quants.quantize(numbers(7, 96), GGMLQuantizationType[kind])
    )
    write(path, [("w", kind, packed)])
    whole = GGUFFile.open(path).read("w", dtype)
    monkeypatch.setattr(gguf_file, "CHUNK", 64)
    expected = torch.from_numpy(gguf.quants.dequantize(packed, GGMLQuantizationType[kind])).to(dtype)
    assert whole.dtype == dtype
    assert torch.equal(whole, expected)
    assert torch.equal(GGUFFile.open(path).read("w", dtype), expected)


def test_shapes_are_outermost_first(path):
    write(path, [("w", "F32", numbers(2, 3, 4, 5)), ("v", "F32", numbers(7))])
    file = GGUFFile.open(path)
    assert file.tensors["w"].shape == (2, 3, 4, 5)
    assert torch.equal(file.read("w"), torch.from_numpy(numbers(2, 3, 4, 5)))
    assert file.read("v").shape == (7,)


def test_tensor_offset_points_to_its_data(path):
    write(path, [("a", "F32", numbers(3)), ("b", "F32", numbers(2, seed=1))], alignment=64)
    file = GGUFFile.open(path)
    b = file.tensors["b"]
    assert isinstance(b, TensorInfo)
    assert b.offset == file.tensors["a"].offset + 64
    assert path.read_bytes()[b.offset :][: b.n_bytes] == numbers(2, seed=1).tobytes()


def test_version_2_files_are_read(path):
    write(path, [("w", "F32", numbers(3))], [("string", "a.text", "yes")])
    raw = bytearray(path.read_bytes())
    raw[4] = 2
    path.write_bytes(raw)
    file = GGUFFile.open(path)
    assert file.metadata["a.text"] == "yes"
    assert file.read("w").tolist() == numbers(3).tolist()


def test_reading_uses_little_extra_memory(path):
    # tracemalloc sees numpy's allocations; torch's are the result and two chunk buffers.
    import tracemalloc

    packed = drawn_rows("Q2_K", rows=4096, blocks=8)
    write(path, [("w", "Q2_K", packed)])
    file = GGUFFile.open(path)
    file.read("w")
    tracemalloc.start()
    file.read("w")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 4096 * 2048 * 4 == 2**25  # size of the result in bytes; a full float copy would double it
    assert peak < 2**25


def test_tensors_can_be_read_concurrently(path):
    wanted = {f"w{i}": numbers(300, 64, seed=i) for i in range(8)}
    write(path, [(name, "F32", data) for name, data in wanted.items()])
    file = GGUFFile.open(path)
    wrong = []

    def read(name):
        for _ in range(20):
            if not torch.equal(file.read(name), torch.from_numpy(wanted[name])):
                wrong.append(name)

    threads = [threading.Thread(target=read, args=(name,)) for name in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_file_closes_on_garbage_collection_or_context_exit(path):
    write(path, [("w", "F32", numbers(3))])
    file = GGUFFile.open(path)
    handle = file._file
    del file
    gc.collect()
    assert handle.closed
    with GGUFFile.open(path) as file:
        pass
    assert file._file.closed


@pytest.mark.parametrize("kind", ["I32", "F64"])
def test_unsupported_type_is_rejected_only_when_read(path, kind):
    data = np.arange(4, dtype=np.int32 if kind == "I32" else np.float64)
    write(path, [("counts", kind, data), ("w", "F32", numbers(3))])
    file = GGUFFile.open(path)
    assert file.read("w").shape == (3,)
    with pytest.raises(UserError, match=f"'counts' is of type {kind}.*Q8_0") as refusal:
        file.read("counts")
    assert str(path) in str(refusal.value)


def test_missing_tensor_is_named_in_the_error(path):
    write(path, [("w", "F32", numbers(3))])
    with pytest.raises(UserError, match=r"model\.gguf has no tensor 'v'"):
        GGUFFile.open(path).read("v")


def test_values_too_large_for_the_dtype_are_rejected(path):
    write(path, [("w", "F32", np.array([1.0, 1e6], np.float32))])
    file = GGUFFile.open(path)
    assert file.read("w", torch.bfloat16)[0] == 1
    with pytest.raises(UserError, match=r"'w' has numbers from 1 to 1e\+06, expected .* float16"):
        file.read("w", torch.float16)


def test_file_truncated_while_open_is_rejected(path):
    write(path, [("w", "F32", numbers(1000))])
    file = GGUFFile.open(path)
    with path.open("r+b") as other:
        other.truncate(file.tensors["w"].offset + 100)
    with pytest.raises(UserError, match="ends 3900 bytes too early in tensor 'w'"):
        file.read("w")
