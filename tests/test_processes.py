"""Modules and programs in the working folder are not used, and every process is started without them."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import clearhead
from clearhead import processes

SOURCE = Path(clearhead.__file__).parent
STARTS = ("run", "Popen", "call", "check_call", "check_output", "create_subprocess_exec")
FORBIDDEN = (
    *("os.system", "os.popen", "os.execv", "os.execvp", "os.spawnv", "os.posix_spawn", "pty.spawn"),
    *("shutil.which", "asyncio.create_subprocess_shell", "subprocess.getoutput", "runpy.run_module"),
)
NOT_IMPORTED = ("multiprocessing", "concurrent.futures.process", "torch.multiprocessing")


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A working folder with a module and programs, which is on the PATH and on the import path in every way."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json.py").write_text("raise SystemExit")
    for name in ("uv", "npm", "git"):
        shutil.copy("/bin/true", tmp_path / name)
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", "bin", str(tmp_path), os.environ["PATH"]]))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", str(tmp_path), "/nowhere"]))
    monkeypatch.setattr(sys, "path", ["", ".", str(tmp_path), *sys.path])
    return tmp_path


def test_programs_in_the_working_folder_are_not_found(planted, tmp_path_factory, monkeypatch):
    assert processes.find_program("uv") != str(planted / "uv")
    elsewhere = tmp_path_factory.mktemp("bin") / "uv"
    shutil.copy("/bin/true", elsewhere)
    monkeypatch.setenv("PATH", str(elsewhere.parent), prepend=os.pathsep)
    assert processes.find_program("uv") == str(elsewhere)
    assert processes.find_program("missing") is None


def test_other_programs_do_not_see_the_working_folder(planted):
    environment = processes.environment(EXTRA="1")
    path = environment["PATH"].split(os.pathsep)
    assert all(map(os.path.isabs, path))
    assert str(planted) not in path
    assert environment["PYTHONPATH"] == "/nowhere"
    assert environment["PYTHONSAFEPATH"] == environment["EXTRA"] == "1"


def test_empty_path_is_not_passed_on(planted, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert processes.environment()["PATH"] == os.defpath


def test_import_path_omits_the_working_folder(planted):
    assert not {"", ".", str(planted)} & {*processes.import_path()}
    assert processes.python("json")[:3] == [sys.executable, "-P", "-m"]


def test_clearhead_itself_may_be_in_the_working_folder_and_comes_last(monkeypatch):
    monkeypatch.chdir(SOURCE.parent)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert processes.import_path()[-1] == str(SOURCE.parent)
    assert processes.import_path().count(str(SOURCE.parent)) == 1


def test_installed_packages_may_be_in_the_working_folder(monkeypatch):
    monkeypatch.chdir(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert processes.find_program(Path(sys.executable).name) is not None


def test_every_process_is_started_without_the_working_folder():
    """The environment is that of `processes`, and the program is Python, or found by `find_program`."""
    starts = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {getattr(node, "module", None), *(each.name for each in node.names)}
                assert not names.intersection(NOT_IMPORTED), path
                if isinstance(node, ast.ImportFrom):  # so that the calls below can be recognized
                    assert node.module not in ("subprocess", "shutil", "asyncio.subprocess"), path
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            assert name not in FORBIDDEN, path
            if name.startswith(("subprocess.", "asyncio.create_subprocess")):
                assert name.rpartition(".")[2] in STARTS, path
                given = {each.arg: ast.unparse(each.value) for each in node.keywords}
                assert given["env"].startswith(("environment(", "python_environment(", "_environment(")), path
                assert "shell" not in given, path
                starts.append(path.name)
    assert sorted(starts) == ["chat.py", "execution.py", "pulled.py", "training_process.py"]


def test_git_is_not_run_by_wandb(planted, monkeypatch):
    """In the working folder, git would run programs that are named in .git/config."""
    monkeypatch.delenv("WANDB_DISABLE_GIT", raising=False)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    processes.shield()
    assert os.environ["WANDB_DISABLE_GIT"] == "true"


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "10000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "ACTIVE"}, None)],
)
def test_waiting_threads_of_a_command_spin_for_a_shorter_time(given, expected):
    """PyTorch reads the variable when it is imported, so it must not be imported before the variable is set."""
    asked = (
        "import atexit, os, sys; from clearhead.cli import main; loaded = 'torch' in sys.modules; "
        "atexit.register(lambda: print(os.environ.get('GOMP_SPINCOUNT'), loaded)); main()"
    )
    others = {name: value for name, value in os.environ.items() if "GOMP" not in name and "WAIT" not in name}
    command = [sys.executable, "-c", asked, "--version"]
    done = subprocess.run(
        command, env=others | given, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.splitlines()[-1] == f"{expected} False"
