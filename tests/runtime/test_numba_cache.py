"""The compiled functions on disk: used again, and compiled again if a file is damaged."""

import importlib.util

import pytest

pytest.importorskip("numba", reason="numba is not installed: pip install '.[numba]'")

SOURCE = """
from clearhead.runtime.numba_cache import compiled

@compiled()
def total(n):
    found = 0
    for i in range(n):
        found += i * i
    return found
"""


@pytest.fixture
def use(tmp_path, monkeypatch):
    """Call the function as a new process would, and return whether it was found on disk."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", "")
    path = tmp_path / "module.py"
    path.write_text(SOURCE)

    def use():
        spec = importlib.util.spec_from_file_location("module", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert module.total(10) == 285
        return bool(module.total.stats.cache_hits)

    return use


def test_function_is_compiled_once(use):
    assert [use(), use()] == [False, True]


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("place", [0.01, 0.5, 0.99])
def test_damaged_file_is_written_again(suffix, place, use, tmp_path):
    use()
    [path] = tmp_path.glob(f"__pycache__/*.{suffix}")
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 1
    path.write_bytes(data)
    assert [use(), use()] == [False, True]


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_truncated_file_is_written_again(suffix, use, tmp_path):
    use()
    [path] = tmp_path.glob(f"__pycache__/*.{suffix}")
    path.write_bytes(path.read_bytes()[:-20])
    assert [use(), use()] == [False, True]
