"""`clearhead train`: train a model on your own text."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from clearhead.cli.completion import choose, complete_models
from clearhead.cli.config import typed_again
from clearhead.cli.console import err, plural, print_json
from clearhead.cli.options import DEVICE, PRESET, SEED, TEXT, TOKENIZER, VALIDATION, VOCAB
from clearhead.cli.progress import TerminalObserver, print_notes
from clearhead.runs.teacher_folders import MOST_TEACHERS

if TYPE_CHECKING:
    from clearhead.runs.reports import Reports
    from clearhead.runs.request import TrainingRequest
    from clearhead.runs.run import Run
    from clearhead.runs.training import Outcome
    from clearhead.runtime.process_group import ProcessGroup


DRAWING = 0.5  # seconds reserved for drawing the loss curve at the end


def train(
    typed: typer.Context,
    text: list[str] = TEXT,
    out: Path = typer.Option(
        None, "--out", "-o", help="Folder for the model. [default: in runs/, named after the text]"
    ),
    minutes: float = typer.Option(
        None, help="Training time in minutes; the rest is chosen to fit. [default: 3]"
    ),
    steps: int = typer.Option(None, help="Train for this many steps instead."),
    start: str = typer.Option(
        None,
        "--from",
        metavar="MODEL",
        help="Fine-tune from a model: a folder, a GGUF file, or the name of a pulled model.",
        autocompletion=complete_models,
    ),
    lora: int = typer.Option(
        None, metavar="RANK", help="Train only low-rank adapters (LoRA) of this rank, merged at the end."
    ),
    teachers: int = typer.Option(
        None,
        min=0,
        max=MOST_TEACHERS,
        metavar="N",
        help="Train N models first and distill them into one (0: never). [default: if the text would otherwise be "
        "repeated too often]",
    ),
    from_teachers: list[str] = typer.Option(
        None,
        metavar="MODEL",
        help="Distill: learn from the predictions of this model, or of those in this folder or matching a quoted "
        "pattern, and in part from the text (may be repeated).",
        autocompletion=complete_models,
    ),
    keep_teachers: bool = typer.Option(
        True,
        "--keep-teachers/--discard-teachers",
        help="Keep the teachers that the run trains, or delete them once it is finished.",
    ),
    kind: str = typer.Option(
        "transformer",
        help="Network: transformer, elman, gru, lstm, or ngram.",
        autocompletion=choose("transformer", "elman", "gru", "lstm", "ngram"),
    ),
    order: int = typer.Option(None, help="Order of an n-gram model. [default: 5]"),
    preset: str = PRESET,
    blocks: int = typer.Option(None, help="Number of blocks."),
    heads: int = typer.Option(None, help="Heads per block."),
    kv_heads: int = typer.Option(None, help="Key-value heads (grouped-query attention)."),
    width: int = typer.Option(None, help="Features of the residual stream."),
    context: int = typer.Option(None, help="Context length in tokens."),
    tokenizer: str = TOKENIZER,
    vocab: int = VOCAB,
    batch: int = typer.Option(None, help="Windows of text per step."),
    accumulation: int = typer.Option(
        1, help="Gradient accumulation: process a batch in this many parts to save memory."
    ),
    dropout: float = typer.Option(None, help="Dropout on the residual stream during training."),
    bidirectional: bool = typer.Option(
        False,
        "--bidirectional",
        help="Train a masked language model, which fills in blanks (clearhead fill).",
    ),
    recipe: str = typer.Option(
        "fast",
        help="fast, or classic: nanoGPT's recipe, for comparison.",
        autocompletion=choose("fast", "classic"),
    ),
    optimizer: str = typer.Option(
        None,
        help="muon or adamw. [default: muon with fast; adamw with classic and --from]",
        autocompletion=choose("muon", "adamw"),
    ),
    learning_rate: float = typer.Option(None, help="Learning rate for matrices."),
    validation: list[str] = VALIDATION,
    seed: int = SEED,
    sharded: bool = typer.Option(False, "--sharded", help="Shard weights across processes (FSDP2)."),
    compiled: bool = typer.Option(
        None, "--compile/--no-compile", help="Compile the blocks for CUDA. [default: if the run is long]"
    ),
    dtype: str = typer.Option(
        None,
        help="float32 or bfloat16, for matrix products. [default: the faster one]",
        autocompletion=choose("float32", "bfloat16"),
    ),
    deterministic: bool = typer.Option(
        False, "--deterministic", help="Train deterministically on CUDA too, at some cost in speed."
    ),
    device: str = DEVICE,
    resume: bool = typer.Option(
        False, "--resume", help="Resume a stopped run, or extend a finished one by --minutes or --steps."
    ),
    checkpoint_every: int = typer.Option(
        None, min=1, help="Steps between checkpoints. [default: about one checkpoint per minute]"
    ),
    snapshots: int = typer.Option(
        0, min=0, help="Save this many snapshots of the model, at increasing intervals."
    ),
    tensorboard: bool = typer.Option(
        False, "--tensorboard", help="Log to TensorBoard, in the model's folder."
    ),
    wandb: str = typer.Option(None, metavar="PROJECT", help="Log to this Weights & Biases project."),
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Train a model on your text. Ctrl-C stops early and saves the model; --resume continues. After a finished
    run, --resume --minutes 6 trains for six minutes more, on the text as it is now.

    \b
    For example:
      clearhead train my.txt --minutes 3
      clearhead train books/ --preset lecture --blocks 4 --width 128
      clearhead train my.txt --from smollm2 --lora 8
    """
    began = time.perf_counter()  # before importing torch, which takes a while
    from clearhead.runs.reports import Reports, check_working_folder
    from clearhead.runs.request import TrainingRequest
    from clearhead.runtime.device import pick_device
    from clearhead.runtime.process_group import ProcessGroup

    if wandb is not None:
        check_working_folder()
    reports = Reports(tensorboard, wandb)
    group = ProcessGroup.join(pick_device(device))
    err.quiet = not group.is_main
    request = TrainingRequest(
        minutes=minutes,
        steps=steps,
        start=start,
        lora=lora,
        teachers=teachers,
        from_teachers=from_teachers or None,
        keep_teachers=keep_teachers,
        kind=kind,
        order=order,
        preset=preset,
        blocks=blocks,
        heads=heads,
        kv_heads=kv_heads,
        width=width,
        context=context,
        tokenizer=tokenizer,
        vocab=vocab,
        batch=batch,
        accumulation=accumulation,
        dropout=dropout,
        bidirectional=bidirectional,
        recipe=recipe,
        optimizer=optimizer,
        learning_rate=learning_rate,
        validation=read_validation(validation),
        seed=seed,
        sharded=sharded,
        compiled=compiled,
        dtype=dtype,
        deterministic=deterministic,
        device=device,
    )
    if request.kind == "ngram":
        unsupported = {"checkpoint_every": checkpoint_every, "snapshots": snapshots, "resume": resume}
        _count(text, out, request, json, group=group, reports=reports, **unsupported)
        return
    options: dict[str, Any] = {
        "checkpoint_every": checkpoint_every,
        "snapshots": snapshots,
        "began": began,
        "after": DRAWING,
        "command": [*sys.argv, *typed_again(typed)],
    }
    with group.report_lost():
        options["extend"] = resume and not group.restarted
        options["extend_again"] = "CLEARHEAD_EXTEND" in os.environ  # set by the server
        _train(text, out, request, resume or group.restarted, group, reports, json, options)
        group.shutdown()


def _count(text: list[str], out: Path | None, request: TrainingRequest, json: bool, **options: Any) -> None:
    """Train an n-gram model by counting, without training steps."""
    from clearhead.runs.training import train_ngram
    from clearhead.text.corpus import documents

    outcome = train_ngram(
        out or choose_folder(name_after(text[0]), resume=False),
        lambda: list(documents(text, sys.stdin.buffer)),
        request,
        TerminalObserver(),
        **options,
    )
    if outcome.error is not None:
        err.print(f"clearhead: {outcome.error}")
    err.print(f"saved to {outcome.folder}; try: clearhead generate {outcome.folder}")
    if json:
        model = outcome.counted.model
        summary = {"parameters": model.config.n_parameter, "config": model.config.to_json()}
        summary.update(model.training or {})
        print_json({"out": str(outcome.folder), **summary, "seconds": outcome.counted.seconds})


def _train(
    text: list[str],
    out: Path | None,
    request: TrainingRequest,
    resume: bool,
    group: ProcessGroup,
    reports: Reports,
    json: bool,
    options: dict[str, Any],
) -> None:
    """Train in this process, alone or as part of a group."""
    from clearhead.runs.run_folder import is_run
    from clearhead.runs.teaching import has_teachers
    from clearhead.runs.training import train_network
    from clearhead.text.corpus import Document, documents

    folder = group.broadcast(out or choose_folder(name_after(text[0]), resume))

    def read_texts() -> list[Document]:
        texts = list(documents(text, sys.stdin.buffer if group.world_size == 1 else None))
        if resume and not (is_run(folder) or has_teachers(folder)) and group.is_main:
            err.print(f"there is no run in {folder} to resume: starting one")
        return texts

    outcome = train_network(
        folder,
        read_texts,
        request,
        TerminalObserver(),
        resume=resume,
        group=group,
        reports=reports,
        **options,
    )
    if outcome is None:
        if request.minutes or request.steps:
            more = ", and a repeated command does not extend it: give another --minutes or --steps, or"
        else:
            more = "; to extend it, add --minutes or --steps;"
        err.print(f"the run in {folder} is finished{more} try: clearhead generate {folder}")
        if json and group.is_main:
            print_json({"out": str(folder), "finished": True})
    elif group.is_main:
        show_outcome(outcome, json)


def show_outcome(outcome: Outcome, json: bool = False) -> None:
    """Report how a run ended, and where the model is."""
    run, folder, training = outcome.run, outcome.folder, outcome.run.model.training
    assert training is not None
    print_notes(run)
    if outcome.error is not None:
        err.print(f"clearhead: {outcome.error}")
    if not outcome.finished:
        of = "" if outcome.phase is None else f" of {outcome.phase}"
        err.print(
            f"stopped after {plural(training['steps_done'], 'step')}{of}; "
            "run the same command with --resume to continue"
        )
    for message in outcome.summary:
        err.print(re.sub(r"`(\w+)=(\w+)`", r"--\1 \2", message))  # `teachers=0` in Python
    if outcome.phase is None:
        err.print(f"saved to {folder}; try: clearhead {_suggest_use(run, folder)}")
    if json:
        print_json({"out": str(folder), **_summary(run, training), "seconds": run.seconds})


def _suggest_use(run: Run, folder: Path | None) -> str:
    """A command to try the model with: `chat` if it was trained on conversations."""
    if not run.plan.config.causal:
        return f'fill {folder} "Once ___ a time"'
    if not run.tokens.all_count:
        return f"chat {folder}"
    able = isinstance(run.tokenizer.config.get("chat_template"), str)
    return f"generate {folder}" + (f", or clearhead chat {folder}" if able else "")


def choose_folder(name: str, resume: bool) -> Path:
    """A new folder; to resume, the existing run with the highest number."""
    from clearhead.runs.run_folder import is_run
    from clearhead.runs.teaching import has_teachers

    free = free_folder(Path("runs"), name)
    taken = [Path("runs", name), *sorted(Path("runs").glob(f"{name}-*"), key=_number)]
    begun = [folder for folder in taken if is_run(folder) or has_teachers(folder)]
    there = [folder for folder in begun if _number(folder) <= _number(free)]
    return there[-1] if resume and there else free


def _number(folder: Path) -> int:
    """2 for runs/name-2; 1 for runs/name."""
    last = folder.name.rpartition("-")[2]
    return int(last) if last.isdigit() and "-" in folder.name else 1


def free_folder(parent: Path, name: str) -> Path:
    """runs/name, or the first of runs/name-2, runs/name-3, … that does not exist."""
    return next(
        folder
        for i in range(1, 1_000_000)
        if not (folder := parent / (name if i == 1 else f"{name}-{i}")).exists()
    )


def name_after(source: str) -> str:
    """A folder name for a model trained on this text, without glob characters or leading or trailing dashes."""
    return re.sub(r"[^\w-]", "", Path(source).name.split(".")[0]).strip("-") or "text"


def _summary(run: Run, training: dict[str, Any]) -> dict[str, Any]:
    return {"parameters": run.plan.config.n_parameter, "config": run.plan.config.to_json(), **training}


def read_validation(given: list[str] | None) -> float | list[str] | None:
    """A number is a fraction of the text; anything else names files."""
    if not given:
        return None
    if len(given) == 1 and not Path(given[0]).exists():
        try:
            return float(given[0])
        except ValueError:
            pass
    return given
