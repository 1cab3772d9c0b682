"""`clearhead slurm`: its script runs in bash, with programs that stand in for Slurm's."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TRAIN = ["text.txt", "--out", "runs/my run", "--steps", "300", "--tokenizer", "char", "--device", "cpu"]
SIZES = ["--blocks", "1", "--width", "32", "--heads", "1", "--context", "32", "--batch", "4"]
# Two tasks; one that ends with an error makes srun end with its code.
SRUN = """#!/bin/bash
for id in 0 1; do SLURM_PROCID=$id SLURM_LOCALID=$id SLURM_NTASKS=2 "$@" & echo $! >> tasks; done
code=0; for task in $(jobs -p); do wait $task || code=$?; done; exit $code
"""
SCONTROL = """#!/bin/bash
if [ "$1" = show ]; then echo localhost; echo other; else echo "$@" >> requeued; fi
"""


def test_script_names_what_was_asked_for(clearhead):
    options = ["--nodes", "2", "--processes", "8", "--hours", "1.5", "--partition", "gpu"]
    script = clearhead("slurm", *options, "--", *TRAIN).out
    for line in (
        "nodes=2",
        "ntasks-per-node=8",
        "gpus-per-node=8",
        "time=1:30:00",
        "signal=USR1@120",
        "requeue",
    ):
        assert f"#SBATCH --{line}\n" in script
    assert "#SBATCH --partition=gpu\n" in script
    assert " train text.txt --out 'runs/my run' " in script
    assert script.count("--resume") == 1
    assert "gpus" not in clearhead("slurm", "--cpu", "--", *TRAIN).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["my.txt", "--out", "a", "--stepz", "5"], "No such option: --stepz; did you mean '--steps'?"),
        (["my.txt"], "have no --out"),
        (["-", "--out", "a"], "name a file"),
        (["my.txt", "--out", "a", "--kind", "ngram"], "in one pass"),
    ],
)
def test_arguments_of_train_are_checked(arguments, said, refused):
    assert said in refused("slurm", "--", *arguments)


def test_names_cannot_add_lines(refused):
    assert "expected letters" in refused("slurm", "--account", "a\n#SBATCH --x", "--", *TRAIN)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="requires bash and SIGUSR1")
def test_job_requeues_itself_until_the_run_is_finished(clearhead, tmp_path, story_text):
    (tmp_path / "text.txt").write_text(story_text)
    for name, program in {"srun": SRUN, "scontrol": SCONTROL}.items():
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(program)
        path.chmod(0o755)
    script = tmp_path / "job.sh"
    script.write_text(clearhead("slurm", "--cpu", "--processes", "2", "--", *TRAIN, *SIZES).out)
    run, requeued = tmp_path / "runs" / "my run", tmp_path / "requeued"

    def start(job):
        environment = {
            **os.environ,
            "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "SLURM_JOB_ID": job,
            "SLURM_JOB_NODELIST": "localhost",
            "CLEARHEAD_HOME": str(tmp_path / "home"),
            "OMP_NUM_THREADS": "1",
        }
        return subprocess.Popen(
            ["bash", str(script)], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
        )

    with start(str(os.getpid())) as job:
        until = time.monotonic() + 300
        while not (run / "metrics.jsonl").exists():
            assert job.poll() is None, job.communicate()
            assert time.monotonic() < until
            time.sleep(0.02)
        for task in (tmp_path / "tasks").read_text().split():
            os.kill(int(task), signal.SIGUSR1)
        _, said = job.communicate(timeout=300)
        assert job.returncode == 0, said
    assert said.count("run the same command with --resume") == 1
    assert requeued.read_text() == f"requeue {os.getpid()}\n"
    assert json.loads((run / "run.json").read_text())["finished"] is False
    with start(str(os.getpid() + 1)) as job:
        _, said = job.communicate(timeout=300)
        assert job.returncode == 0, said
    assert re.search(r"resuming after step \d+", said)
    assert json.loads((run / "run.json").read_text())["finished"] is True
    assert len(requeued.read_text().splitlines()) == 1


def test_script_is_valid_bash(clearhead, tmp_path):
    script = Path(tmp_path, "job.sh")
    script.write_text(clearhead("slurm", "--", *TRAIN).out)
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
