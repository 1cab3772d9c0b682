"""Runs with several real processes on one machine match a single process's losses, even if resumed by fewer or more."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import clearhead as ch
from clearhead.errors import UserError
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.runs.run_metrics import read_metrics
from clearhead.text.stories import stories
from clearhead.text.tokenizer import Tokenizer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc").exists(), reason="requires /proc to find a process's children"),
]

STEPS = 24
SETTINGS = ["--steps", str(STEPS), "--batch", "8", "--context", "32", "--dropout", "0", "--device", "cpu"]
SETTINGS += ["--checkpoint-every", "4", "--dtype", "float32"]
SIZES = ["--width", "32", "--blocks", "2", "--heads", "2"]
KINDS = {"averaged": [], "sharded": ["--recipe", "classic", "--sharded"]}
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] + '\n' + message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="module")
def start(forked):
    """Start a run with several processes, in the environment that torchrun would set up."""

    def start(
        text: Path, out: Path, processes: int, *more: str, real: int | None = None
    ) -> list[subprocess.Popen]:
        """`real` is a rank that is not forked, so that it can be stopped by a signal."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(processes)}
        ranks = [{**shared, "RANK": str(i), "LOCAL_RANK": str(i)} for i in range(processes)]
        return [
            start_process(
                [*([sys.executable] if number == real else forked), "-m"],
                *(text, out, *more),
                **(rank if processes > 1 else {}),
            )
            for number, rank in enumerate(ranks)
        ]

    return start


@pytest.fixture(scope="module")
def start_torchrun():
    """Start a run with two processes, using torchrun itself."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    return partial(start_process, launch)


def start_process(launch: list[str], text: Path, out: Path, *more: str, **variables: str) -> subprocess.Popen:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CLEARHEAD_HOME": str(text.parent / "home")}
    settings = SETTINGS if "--from" in more else [*SETTINGS, *SIZES]
    return subprocess.Popen(
        [*launch, "clearhead", "train", str(text), "--out", str(out), *settings, *more],
        env={**environment, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(processes: list[subprocess.Popen]) -> str:
    """Wait for all processes to succeed, and return their stderr."""
    said = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), said
    return "".join(said)


def workers_of(process: subprocess.Popen) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def kill(processes: list[subprocess.Popen]) -> None:
    """Kill all processes at once with SIGKILL."""
    for process in processes:
        process.kill()
    for process in processes:
        process.communicate()


def wait_for_step(out: Path, step: int) -> None:
    until = time.monotonic() + 120
    while len(read_metrics(out)) < step:
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture(scope="module")
def text(story_text, tmp_path_factory):
    path = tmp_path_factory.mktemp("workers") / "stories.txt"
    path.write_text(story_text, encoding="utf-8")
    return path


@pytest.fixture(scope="module", params=KINDS)
def alone(request, start, text):
    """The kind of run, and the folder of a single-process run."""
    out = text.parent / f"alone-{request.param}"
    if not out.exists():
        finish(start(text, out, 1, *KINDS[request.param]))
    return request.param, out


@pytest.fixture(scope="module")
def averaged_alone(start, text):
    """A run of a single process."""
    out = text.parent / "alone-averaged"
    if not out.exists():
        finish(start(text, out, 1))


def check_same(one: Path, other: Path) -> None:
    ours, theirs = read_metrics(one), read_metrics(other)
    assert [line["step"] for line in theirs] == list(range(1, STEPS + 1))
    for mine, yours in zip(ours, theirs, strict=True):
        assert mine.keys() == yours.keys()
        for name in ("loss", "validation", "gradient_norm"):
            assert yours.get(name, 0) == pytest.approx(mine.get(name, 0), abs=1e-5)
    weights = load_file(other / "model.safetensors")
    for name, tensor in load_file(one / "model.safetensors").items():
        assert (weights[name] - tensor).abs().max() < 1e-3


def test_two_killed_processes_resumed_by_one_match_one_process(alone, start, text):
    kind, one = alone
    out = text.parent / f"two-{kind}"
    processes = start(text, out, 2, *KINDS[kind])
    wait_for_step(out, 10)
    kill(processes)
    names = {path.name for path in next(out.glob("checkpoints/step-*")).iterdir()}
    assert any(name.startswith("shard-00002") for name in names) == (kind == "sharded")
    assert "resuming after step" in finish(start(text, out, 1, *KINDS[kind], "--resume"))
    check_same(one, out)
    assert json.loads((out / "run.json").read_text())["processes"] == [1, 2]
    check_lessons(ch.runs(out.parent)[out.name], kind)


def check_lessons(run, kind):
    """The steps of two processes, computed in one."""
    if kind == "sharded":
        with pytest.raises(
            UserError, match="was sharded across processes: its steps cannot be repeated here"
        ):
            run.lesson(3)
        return
    for step in (1, 4):
        lesson = run.lesson(step, device="cpu")
        for name, found in (("loss", lesson.loss), ("gradient_norm", lesson.gradient_norm)):
            assert found == pytest.approx(run.metrics[name][step - 1], rel=1e-5)
    update = lesson.update("block.1.W_1")
    assert update.change.abs().max() > 0


def check_ended(processes: list[subprocess.Popen], lost: int) -> None:
    """The other processes end within 30 seconds, each with one line that names the rank."""
    until = time.monotonic() + 30
    for number, process in enumerate(processes):
        if number == lost:
            continue
        _, said = process.communicate(timeout=max(1, until - time.monotonic()))
        assert process.returncode == 2, said
        lines = [line for line in said.splitlines() if line.startswith("clearhead: ")]
        assert lines == [
            f"clearhead: rank {lost} ended or does not answer, so this process stops too: resume the run"
        ]


def resume_and_compare(start, text: Path, out: Path, processes: int) -> None:
    assert "resuming after step" in finish(start(text, out, processes, "--resume"))
    ours, theirs = read_metrics(text.parent / "alone-averaged"), read_metrics(out)
    assert [line["loss"] for line in theirs] == pytest.approx([line["loss"] for line in ours], abs=1e-5)


@pytest.mark.usefixtures("averaged_alone")
@pytest.mark.parametrize("lost", [0, 1])
def test_killed_process_is_named_by_the_others_and_more_processes_resume(lost, start, text):
    out = text.parent / f"killed-{lost}"
    processes = start(text, out, 2)
    wait_for_step(out, 10)
    processes[lost].kill()
    check_ended(processes, lost)
    processes[lost].communicate()
    resume_and_compare(start, text, out, 4)


@pytest.mark.usefixtures("averaged_alone")
def test_hanging_process_is_named_by_the_others_and_fewer_processes_resume(start, text):
    out, lost = text.parent / "hangs", 3
    processes = start(text, out, 4, real=lost)
    wait_for_step(out, 6)
    processes[lost].send_signal(signal.SIGSTOP)
    check_ended(processes, lost)
    kill([processes[lost]])
    resume_and_compare(start, text, out, 2)


@pytest.mark.usefixtures("averaged_alone")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_signal_to_one_process_makes_all_save_and_exit(number, start, text):
    out = text.parent / f"signaled-{number}"
    processes = start(text, out, 2, "--checkpoint-every", "1000")
    wait_for_step(out, 3)
    processes[1].send_signal(number)
    said = finish(processes)
    assert said.count("run the same command with --resume to continue") == 1
    done = len(read_metrics(out))
    assert 3 <= done < STEPS
    assert f"resuming after step {done}\n" in finish(start(text, out, 1, "--resume"))
    check_same(text.parent / "alone-averaged", out)


def test_one_terminated_process_resumed_by_two_matches_one_process(alone, start, text):
    kind, one = alone
    out = text.parent / f"one-{kind}"
    [process] = start(text, out, 1, *KINDS[kind])
    wait_for_step(out, 10)
    process.terminate()
    finish([process])
    said = finish(start(text, out, 2, *KINDS[kind], "--resume"))
    assert "2 processes" in said
    assert said.count("resuming after step") == 1  # only rank 0 prints
    check_same(one, out)
    assert ch.load(out).generate("Once", tokens=3)


def test_teachers_and_student_of_two_processes_resume_to_the_same_weights(start, text):
    """Each process has its own token noise, so one process would not end with the same weights."""
    whole, out = text.parent / "taught", text.parent / "taught-again"
    finish(start(text, whole, 2, "--teachers", "2"))
    for place in (out / "teachers" / "2", out):
        processes = start(text, out, 2, "--teachers", "2", *(["--resume"] if out.exists() else []))
        wait_for_step(place, 10)
        kill(processes)
    said = finish(start(text, out, 2, "--teachers", "2", "--resume"))
    assert "student of 2 teachers" in said
    for place in ("", "teachers/1", "teachers/2"):
        one, other = (load_file(each / place / "model.safetensors") for each in (whole, out))
        assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())


@pytest.fixture(scope="module")
def notes(tmp_path_factory):
    """Short notes, others to validate on, and a recipe without token noise, which differs between ranks."""
    folder = tmp_path_factory.mktemp("notes")
    for number, story in enumerate(islice(stories(), 60)):
        path = folder / ("held-out" if number < 7 else "notes") / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(story.text[: 15 + 9 * (number % 7)], encoding="utf-8")
    return folder / "notes", sorted((folder / "held-out").iterdir()), ["--recipe", "classic"]


@pytest.fixture(scope="module")
def conversations(tmp_path_factory):
    """A file of conversations, others to validate on, and the option that names a model with a chat template."""
    folder = tmp_path_factory.mktemp("conversations")
    lines = []
    for a, b in np.ndindex(8, 8):
        question = {"role": "user", "content": f"{a} + {b}?"}
        reply = {"role": "assistant", "content": f"{a + b}" + "!" * (b % 3)}
        lines.append(json.dumps({"messages": [question, reply] * (1 + a % 2)}))
    for number, line in enumerate(lines[:7]):
        (folder / f"held-out-{number}.jsonl").write_text(line + "\n", encoding="utf-8")
    (folder / "conversations.jsonl").write_text("\n".join(lines[7:]) + "\n", encoding="utf-8")
    plain = Tokenizer.train("byte", [])
    plain._inner.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    tokenizer = Tokenizer(plain._inner, {**plain.config, "chat_template": TEMPLATE})
    config = preset("modern", n_vocab=tokenizer.n_vocab, n_context=32, n_block=2, n_head=2, d_model=32)
    torch.manual_seed(0)
    LanguageModel(Transformer(config), tokenizer).save(folder / "model")
    start = ["--from", str(folder / "model")]
    return folder / "conversations.jsonl", sorted(folder.glob("held-out-*")), start


@pytest.mark.parametrize(
    ("what", "kind"), [("notes", "averaged"), ("notes", "sharded"), ("conversations", "averaged")]
)
def test_documents_stay_apart_in_two_processes(what, kind, start, request):
    """Several documents share each window: the losses are those of one process, and of each document alone."""
    text, held_out, options = request.getfixturevalue(what)
    options = [*options, *(option for path in held_out for option in ("--validation", str(path)))]
    if kind == "sharded":
        options += ["--sharded", "--optimizer", "adamw"]
    runs = [text.parent / f"{kind}-{processes}" for processes in (1, 2)]
    for processes, out in enumerate(runs, 1):
        finish(start(text, out, processes, *options))
    check_same(*runs)
    model = ch.load(runs[1], "cpu")
    alone = [model.evaluate(path) for path in held_out]
    expected = np.average([each.loss for each in alone], weights=[each.tokens for each in alone])
    assert read_metrics(runs[1])[-1]["validation"] == pytest.approx(expected, abs=1e-4)


def test_error_on_rank_0_stops_all_ranks_with_a_one_line_message(start_torchrun, text):
    process = start_torchrun(text, text.parent / "bad", "--batch", "7")
    _, said = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "a batch of 7 cannot be divided equally among 2 processes" in said
    assert "clearhead/runs" not in said  # the only traceback is torchrun's
    assert not (text.parent / "bad").exists()


def test_dying_process_stops_the_others_and_leaves_checkpoints(start_torchrun, text):
    out = text.parent / "dies"
    process = start_torchrun(text, out, "--steps", "5000")
    wait_for_step(out, 10)
    os.kill(workers_of(process)[-1], signal.SIGKILL)
    _, said = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "internal error" not in said
    assert json.loads((out / "run.json").read_text(encoding="utf-8"))["finished"] is False
    assert list(out.glob("checkpoints/step-*"))
