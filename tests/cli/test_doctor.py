"""`clearhead doctor`: what is installed, what is missing, and an exit code that shows whether it matters."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from clearhead import doctor
from clearhead.extras import EXTRAS


@pytest.fixture
def findings(clearhead):
    def look(code=0):
        result = clearhead("doctor", "--json")
        assert (result.code, result.err) == (code, "")
        return {each["name"]: each for each in json.loads(result.out)["findings"]}

    return look


def test_environment_is_reported(findings, clearhead):
    import torch

    found = findings()
    assert found["torch"]["message"] == torch.__version__
    assert (
        f"{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} cores"
        in (found["processor"]["message"])
    )
    out = clearhead("doctor").out
    assert all(name in out for name in found)
    assert "Everything required is installed." in out


def test_models_and_runs_are_counted(findings, copied_model, home):
    Path("runs/begun").mkdir(parents=True)
    Path("runs/begun/run.json").touch()
    copied_model.rename("runs/austen")
    (home / "models").mkdir()
    (home / "models" / "other.gguf").touch()
    found = findings()
    assert found["runs/"]["message"].startswith("1 run, 1 model; ")
    assert found["home"]["message"].startswith(f"{home}; 1 model; ")


def test_missing_extras_are_optional(findings, monkeypatch, clearhead):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    found = findings()["probes"]
    assert (found["state"], found["do"]) == ("missing", "pip install 'clearhead[probes]'")
    assert found["message"] == "scikit-learn is not installed; needed for ch.probe and the pronoun lab"
    assert re.search(r"Missing, but optional: .*probes", clearhead("doctor").out)


def test_every_extra_is_listed(findings):
    assert {name for name, found in findings().items() if found["group"] == "extras"} == EXTRAS.keys()


def test_unbuilt_page_is_reported_as_missing(findings, monkeypatch):
    monkeypatch.setattr("clearhead.doctor.has_site", lambda: False)
    found = findings()["page"]
    assert (found["state"], "npm" in found["do"]) == ("missing", True)


def test_broken_torch_is_reported(findings, monkeypatch, clearhead):
    monkeypatch.setitem(sys.modules, "torch", None)
    found = findings(code=1)["torch"]
    assert (found["state"], "torch" in found["do"]) == ("broken", True)
    assert "Broken: torch." in clearhead("doctor").out


def test_missing_required_package_is_reported(findings, monkeypatch):
    monkeypatch.setattr("importlib.metadata.requires", lambda _: ["no-such-one>=2", "some; extra == 'dev'"])
    assert findings(code=1)["packages"]["message"] == "missing: no-such-one"


def test_generation_on_a_gpu_is_reported_with_the_reason_if_it_is_slow(monkeypatch):
    assert (
        doctor._look_at_generation(torch.device("cpu")).message
        == "without CUDA graphs, which need a CUDA GPU"
    )
    cuda = torch.device("cuda")
    monkeypatch.setattr("clearhead.generate.cuda_decoder.importlib.util.find_spec", lambda _: None)
    found = doctor._look_at_generation(cuda)
    assert (found.state, found.do) == ("missing", "pip install triton")
    assert found.message == "slow, without CUDA graphs: Triton is not installed"
    monkeypatch.setattr("clearhead.generate.cuda_decoder.importlib.util.find_spec", lambda _: "found")
    monkeypatch.setattr("clearhead.generate.cuda_decoder.can_compile", lambda _: True)
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda _: (9, 0))
    found = doctor._look_at_generation(cuda)
    assert found.state == "fine"
    assert "one CUDA graph per token" in found.message


def test_models_without_cuda_graphs_are_named(copied_model, monkeypatch):
    Path("runs").mkdir()
    copied_model.rename("runs/austen")
    assert list(doctor._look_at_models()) == []
    monkeypatch.setattr("clearhead.generate.cuda_decoder.MAX_VOCAB", 10)
    [found] = doctor._look_at_models()
    assert "runs/austen (the vocabulary has more than 10 tokens)" in found.message.split("; ")


def test_defaults_file_is_checked(findings):
    assert findings()["clearhead.toml"]["state"] == "fine"
    Path("clearhead.toml").write_text("[train]\nminutes = 3\n")
    assert findings()["clearhead.toml"]["message"] == "clearhead.toml, with defaults for train"
    Path("clearhead.toml").write_text("[train]\nminuts = 3\n")
    found = findings(code=1)["clearhead.toml"]
    assert (found["state"], "did you mean 'minutes'?" in found["message"]) == ("broken", True)


def test_low_disk_space_is_reported(findings, clearhead, monkeypatch):
    monkeypatch.setattr(doctor, "LITTLE_ROOM", 2**70)
    assert findings()["runs/"]["state"] == "missing"
    assert "Low on disk space or not writable: runs/, home." in clearhead("doctor").out


def test_cpu_features_and_memory_are_parsed(tmp_path):
    told = tmp_path / "cpuinfo"
    told.write_text("flags\t\t: fpu avx2 amx_tile avx512_bf16\n")
    assert doctor._features(told) == ["AVX2", "AVX-512 bfloat16", "AMX"]
    told.write_text("MemTotal:       24576000 kB\nMemAvailable:   12288000 kB\n")
    assert doctor._memory(told) == "24.6 GB, 12.3 GB free"


def test_nothing_is_written(clearhead, tree):
    before = tree()
    assert clearhead("doctor").code == 0
    assert tree() == before


@pytest.mark.clock
def test_doctor_takes_little_longer_than_importing_torch():
    def seconds(*arguments):
        taken = []
        for _ in range(3):
            began = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            taken.append(time.perf_counter() - began)
        return min(taken)

    assert seconds("-m", "clearhead", "doctor") < 2 * seconds("-c", "import torch") + 1
