"""No command imports or runs anything from the working folder, which here is a run's and a model's folder too."""

import importlib.metadata
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from clearhead.cli.app import app

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="the planted programs are shell scripts"),
]

PROGRAMS = (
    *("python", "python3", "pip", "uv", "node", "npm", "git", "sh", "env", "cc", "gcc", "clang", "latex"),
    *("uname", "ps", "ldconfig", "xdg-open", "which", "nvidia-smi", "lscpu", "clearhead", "torchrun"),
)
COMMAND = Path(sys.executable).with_name("clearhead")
SIZES = ("--blocks", "1", "--width", "16", "--heads", "1", "--context", "16", "--tokenizer", "char")
SMALL = ("--steps", "2", "--device", "cpu", *SIZES)
# Each command, and whether it succeeds: without an index, pip finds no package.
COMMANDS = {
    "doctor": True,
    f"train story.txt {' '.join(SMALL)} --snapshots 2 --out runs/a": True,
    f"train story.txt {' '.join(SMALL)} --bidirectional --out runs/b": True,
    f"train story.txt {' '.join(SMALL)} --tensorboard --wandb stories --out runs/c": True,
    "runs": True,
    "models": True,
    "generate runs/a Once --tokens 3": True,
    "chat .": True,
    "fill runs/b Once___a": True,
    "eval runs/a story.txt": True,
    "score stories --pairs 1": True,
    "report runs/a": True,
    "inspect stories Once --figure picture.svg": True,
    "learn stories Once_upon_a_time": True,
    "race story.txt --minutes 0.01 --kind ngram": True,
    "demo --minutes 0.02 --no-browser": True,
    "words story.txt --near the": True,
    "lecture 001.4": True,
    "lab position": True,
    "class new lessons --seed 7": True,
    "class grade lessons": True,
    "export stories exported --to huggingface": True,
    "publish site stories --text Once --no-labs": True,
    "pull smollm2": False,
    "slurm -- story.txt --out runs/d": True,
}
SERVERS = ("serve stories", "explore stories --no-browser")


@pytest.fixture
def folder(tmp_path, model_folder, story_text):
    """A model's folder with a planted module of every name and some programs; each leaves a trace if it runs."""
    folder = shutil.copytree(model_folder, tmp_path / "work")
    (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}\n{% endfor %}")
    (folder / "story.txt").write_text(story_text[:4000])
    os.mkfifo(folder / "matplotlibrc")  # whoever reads it waits forever
    (folder / ".numba_config.yaml").write_text("cache_dir: numba-cache\n")
    (folder / "uv.toml").write_text('index-url = "http://127.0.0.1:9/"\n')
    trace = tmp_path / "trace"
    for name in (".git/objects", ".git/refs"):
        (folder / name).mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git/config").write_text(f"[core]\nfsmonitor = echo fsmonitor >> '{trace}'\n")
    names = {"clearhead", "sitecustomize", "usercustomize", "evil", *sys.stdlib_module_names}
    for name in names | importlib.metadata.packages_distributions().keys():
        plant_module(folder, name, trace)
    for name in PROGRAMS:
        plant_program(folder, name, trace)
    return folder


def plant_module(folder, name, trace):
    if re.fullmatch(r"\w+", name):
        (folder / f"{name}.py").write_text(f"open({str(trace)!r}, 'a').write('{name}.py ')\n")


def plant_program(folder, name, trace):
    path = folder / name
    path.write_text(f"#!/bin/sh\necho {name} >> '{trace}'\n")
    path.chmod(0o755)


def surroundings(folder):
    return {
        **{name: os.environ[name] for name in ("CLEARHEAD_HOME", "HOME", "OMP_NUM_THREADS")},
        "PATH": os.pathsep.join(["", ".", str(folder), os.environ["PATH"], ""]),
        "PIP_NO_INDEX": "1",
        "WANDB_MODE": "offline",
    }


def check_untouched(folder, ran):
    trace = folder.parent / "trace"
    assert not trace.exists(), f"{ran} ran {trace.read_text()}"
    assert not (folder / "numba-cache").exists(), ran


def test_no_command_uses_the_working_folder(folder):
    for command, succeeds in COMMANDS.items():
        if command.startswith(
            "class grade"
        ):  # the solutions serve as a submission, which runs in its own process
            shutil.copy(
                folder / "lessons/solutions/everyone.ipynb", folder / "lessons/submissions/anna.ipynb"
            )
        done = subprocess.run(
            [COMMAND, *command.split()],
            cwd=folder,
            env=surroundings(folder),
            input="hello\n",
            capture_output=True,
            text=True,
            timeout=300,
        )
        check_untouched(folder, command)
        assert (done.returncode == 0) == succeeds, f"{command}: {done.stderr[-500:]}"
        if not succeeds:
            assert "pip cannot find the package" in done.stderr
        if command.startswith("class grade"):
            assert "\nanna," in (folder / "lessons/grades.csv").read_text()


def test_wandb_settings_in_the_working_folder_are_refused(tmp_path, story_text):
    """They can name the host to which the API key is sent."""
    (tmp_path / "story.txt").write_text(story_text[:4000])
    (tmp_path / "wandb").mkdir()
    (tmp_path / "wandb/settings").write_text("[default]\nbase_url = http://127.0.0.1:9\n")
    command = [COMMAND, "train", "story.txt", *SMALL, "--wandb", "stories"]
    done = subprocess.run(command, cwd=tmp_path, env=surroundings(tmp_path), capture_output=True, text=True)
    assert done.returncode == 2
    assert "W&B would read wandb/settings in the working folder" in " ".join(done.stderr.split())
    assert not (tmp_path / "runs").exists()


def test_every_command_is_walked_through():
    named = {each.name for each in app.registered_commands} | {each.name for each in app.registered_groups}
    assert named == {each.split()[0] for each in (*COMMANDS, *SERVERS)}


def test_neither_a_server_nor_its_training_runs_use_the_working_folder(folder):
    log = folder.parent / "log"
    for command in SERVERS:
        with (
            log.open("wb") as output,
            subprocess.Popen(
                [COMMAND, *command.split(), "--device", "cpu"],
                cwd=folder,
                env=surroundings(folder),
                stderr=output,
                stdout=output,
            ) as process,
        ):
            try:
                found = wait_for(
                    lambda: re.search(r"(http://\S+)/\?token=(\S+)", log.read_text()), process, log
                )
                if command.startswith("explore"):
                    train(found[1], found[2], folder)
            finally:
                interrupt(process)
        check_untouched(folder, command)


def wait_for(holds, process, log):
    until = time.monotonic() + 300
    while not (found := holds()):
        assert time.monotonic() < until
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    return found


def interrupt(process):
    """Stop a server, which prints its address shortly before it handles signals."""
    for _ in range(12):
        process.send_signal(signal.SIGINT)
        try:
            process.wait(5)
            return
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    raise AssertionError("the server did not stop within a minute")


def train(address, token, folder):
    """Start a training run on the page, and wait until it is finished."""
    headers = {"Authorization": f"Bearer {token}"}
    sizes = {"blocks": 1, "width": 16, "heads": 1, "context": 16, "tokenizer": "char", "snapshots": 0}
    body = {"name": "paged", "text": (folder / "story.txt").read_text(), "steps": 2, **sizes}
    with httpx.Client(base_url=address, headers=headers, trust_env=False, timeout=60) as client:
        assert client.post("/api/train", json=body).status_code < 300
        until = time.monotonic() + 300
        while (
            not (run := folder / "runs/paged/run.json").exists()
            or not json.loads(run.read_text())["finished"]
        ):
            assert time.monotonic() < until
            check_untouched(folder, "training on the page")
            log = next((folder / "runs").glob("paged/*.log"), None)
            assert log is None or "Error" not in log.read_text()
            time.sleep(0.1)


def test_python_m_clearhead_uses_only_what_python_itself_imports(folder, tmp_path):
    """`python -m` puts the working folder first and imports a few modules before Clearhead can remove it."""
    (tmp_path / "empty.py").write_text("import sys\nprint(*sys.modules)\n")
    own = subprocess.run(
        [sys.executable, "-m", "empty"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    for name in {"clearhead", *(each.partition(".")[0] for each in own.stdout.split())}:
        (folder / f"{name}.py").unlink(missing_ok=True)
    for command in ("doctor", f"train story.txt {' '.join(SMALL)} --out runs/c"):
        subprocess.run(
            [sys.executable, "-m", "clearhead", *command.split()],
            cwd=folder,
            env=surroundings(folder),
            check=True,
            timeout=300,
        )
        check_untouched(folder, command)
