"""A race: networks of several kinds train on one text for the same amount of time and are evaluated on its end."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clearhead.errors import UserError
from clearhead.files import home
from clearhead.labs.lab import Lines, Result, ResultPart, Table, Value
from clearhead.language_model import LanguageModel, load
from clearhead.model.config import check_kind
from clearhead.networks import KINDS
from clearhead.runs.counting import count_text
from clearhead.runs.preparation import PreparedText, prepare_text
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.runs.sizes import fitting_context
from clearhead.runs.summary import summarize
from clearhead.text.corpus import Document, readable_documents
from clearhead.text.evaluation_windows import windows_for_evaluation
from clearhead.text.start_token import StartToken, split_opening
from clearhead.text.token_cache import tokenize
from clearhead.text.tokens import Tokens
from clearhead.training.position_loss import PositionLoss, bits_per_byte, measure_positions

RACERS = ("ngram", "lstm", "transformer")
CONTEXT = 128  # default window in tokens
LONGEST = 1024  # window of a saved model with a longer context
MOST_LOGITS = 2**24  # logits computed at once
SHIFTS = 4  # ways to split the end of the text into windows; one alone has few early positions
PROMPT = 60  # default prompt: characters from the end of the text
TOKENS, MOST_TOKENS = 60, 10_000  # tokens that each competitor generates
RACE, BY_POSITION, SAMPLES = "racers", "loss by position in the window", "samples"  # parts of the result

Follow = Callable[[str, Run], object]
OnMessage = Callable[[str], object]


def race(
    sources: str | Path | Sequence[str | Path],
    minutes: float = 1.0,
    kinds: Sequence[str] = RACERS,
    models: Sequence[str] = (),
    *,
    context: int | None = None,
    tokenizer: str | None = None,
    vocab: int | None = None,
    validation: float | str | Path | Sequence[str | Path] | None = None,
    prompt: str | None = None,
    tokens: int = TOKENS,
    seed: int = 0,
    device: str | None = None,
) -> Result:
    """Race networks of several kinds: `race("my.txt", minutes=2)`. `figure` draws its result.

    Each of the `kinds` trains on the text for this many minutes; saved `models`, by name, are compared as
    they are. All are evaluated on the end of the text, or on `validation`, and continue the prompt by
    `tokens` tokens. Other settings are those of `train`. Notes about a run are issued as warnings.
    """
    request = TrainingRequest(
        minutes=minutes,
        context=context,
        tokenizer=tokenizer,
        vocab=vocab,
        validation=validation,
        seed=seed,
        device=device,
    )
    given = [sources] if isinstance(sources, str | Path) else sources
    return run(readable_documents(given), request, kinds, models, prompt, tokens)


def run(
    texts: Sequence[Document],
    request: TrainingRequest,
    kinds: Sequence[str] = RACERS,
    models: Sequence[str] = (),
    prompt: str | None = None,
    n_written: int = TOKENS,
    follow: Follow | None = None,
    on_message: OnMessage = lambda _: None,
) -> Result:
    """Like `race`, for documents in memory. `follow` consumes a run's steps; `on_message` receives messages."""
    if request.minutes is None:
        raise UserError("minutes = None: expected the training time of each kind, such as 3")
    _check_names(kinds, models)
    if type(n_written) is not int or not 1 <= n_written <= MOST_TOKENS:
        raise UserError(f"tokens = {n_written!r}: expected an integer from 1 to {MOST_TOKENS}")
    on_message("preparing the text")
    text = prepare_text(texts, request, home() / "tokens")
    track = Track.lay(text, prompt, n_written)
    saved = [track.enter(name, request.device) for name in models]  # before any time is spent on training
    context = request.context or min(CONTEXT, fitting_context(text.tokens))
    if len(text.tokens) < 2 * context:
        raise UserError(f"the text has {len(text.tokens)} tokens for training: a race needs {2 * context}")
    request = replace(request, context=context)
    racers = []
    for kind in kinds:
        on_message(kind)
        model, learned = _learn(kind, texts, request, text, follow or _follow)
        before = int(text.tokens[len(text.tokens) - 1 :][0])
        racers.append(track.judge(Entry(kind, model, text.validation, before, context, SHIFTS), learned))
    for entry in saved:
        on_message(entry.name)
        racers.append(track.judge(entry))
    racers.sort(key=lambda each: each.bits_per_byte)
    settings = {
        "minutes": request.minutes,
        "kinds": list(kinds),
        "models": list(models),
        "context": context,
        "tokenizer": text.tokenizer.kind,
        "vocab": text.tokenizer.n_vocab,
        "prompt": track.prompt,
        "tokens": n_written,
        "seed": request.seed,
    }
    findings: dict[str, Value | bool] = {
        "best": racers[0].name,
        "its bits per byte": racers[0].bits_per_byte,
        "training tokens": len(text.tokens),
        "evaluation bytes": track.n_bytes,
    }
    parts: list[ResultPart] = [_standings(racers), _by_position(racers), _samples(racers, track.prompt)]
    return Result("race", settings, findings, parts)


def _check_names(kinds: Sequence[str], models: Sequence[str]) -> None:
    for kind in kinds:
        check_kind("kind", kind, KINDS)
    names = [*kinds, *models]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"{twice[0]} was named twice: each competitor needs its own name")
    if not names:
        raise UserError("there are no competitors: name a kind or a model")


def _learn(
    kind: str, texts: Sequence[Document], request: TrainingRequest, text: PreparedText, follow: Follow
) -> tuple[LanguageModel, Learned]:
    """Train by counting, or by gradient descent for the requested minutes."""
    if kind == "ngram":
        counted = count_text(texts, replace(request, kind=kind, minutes=None, context=None), text=text)
        return counted.model, Learned(counted.seconds, counted.seconds, len(text.tokens))
    run = Run(texts, replace(request, kind=kind), text=text)
    follow(kind, run)
    n_token = run.trainer.step * run.plan.recipe.batch_size * run.plan.context
    return run.model, Learned(run.seconds, run.trained, n_token)


def _follow(name: str, run: Run) -> None:
    planned = run.plan.warnings(len(run.tokens))
    for _ in run:
        pass
    for message in [*planned, *run.notes, *summarize(run)]:
        warnings.warn(f"{name}: {message}", stacklevel=5)  # attributed to the caller of `race`


@dataclass(frozen=True)
class Racer:
    """The result of one competitor. None where a figure does not apply."""

    name: str
    parameters: int
    bits_per_byte: float
    seconds: float | None  # of training, everything included
    tokens_read: int | None
    learned_per_second: float | None  # tokens
    written_per_second: float  # tokens
    sample: str
    by_position: list[tuple[float, float]]  # in bits per byte


def _standings(racers: list[Racer]) -> Table:
    """The competitors' results, best first."""
    columns = ["bits per byte", "parameters", "seconds", "tokens read", "learned/s", "written/s"]
    values: list[list[Value]] = [
        [
            each.bits_per_byte,
            each.parameters,
            None if each.seconds is None else round(each.seconds, 1),
            each.tokens_read,
            None if each.learned_per_second is None else round(each.learned_per_second),
            round(each.written_per_second),
        ]
        for each in racers
    ]
    return Table(RACE, [each.name for each in racers], columns, values)


def _by_position(racers: list[Racer]) -> Lines:
    places = sorted({x for each in racers for x, _ in each.by_position})
    lines = {each.name: [dict(each.by_position).get(x) for x in places] for each in racers}
    return Lines(BY_POSITION, "tokens of context", "bits per byte", places, lines, logarithmic=True)


def _samples(racers: list[Racer], prompt: str) -> Table:
    texts: list[list[Value]] = [[each.sample] for each in racers]
    return Table(SAMPLES, [each.name for each in racers], [f"after {prompt!r}"], texts)


@dataclass(frozen=True)
class Learned:
    """How a competitor was trained."""

    seconds: float  # in total, including planning and validation
    training: float  # seconds spent in training steps; for an n-gram model, equal to `seconds`
    tokens: int  # processed


@dataclass(frozen=True)
class Entry:
    """A competitor, and the end of the text in its tokens."""

    name: str
    model: LanguageModel
    tokens: Tokens
    before: int  # the token before the first
    context: int
    shifts: int = 1  # a saved model may be large and slow

    def measure(self, shift: int = 0) -> PositionLoss:
        """The losses over windows, the first of which starts at this offset."""
        rows = max(1, MOST_LOGITS // (self.context * self.model.config.n_vocab))
        before = int(self.tokens[shift - 1 : shift][0]) if shift else self.before
        tokens = self.tokens.part(shift)
        start = StartToken.of(self.model.tokenizer, tokens)
        windows = windows_for_evaluation(tokens, self.context, rows, before, start=start)
        return measure_positions(self.model.network, windows, self.context)


@dataclass(frozen=True)
class Track:
    """What all competitors are evaluated on: the end of the text, which is not used for training."""

    text: str
    n_bytes: int
    prompt: str
    sample: int  # tokens

    @classmethod
    def lay(cls, text: PreparedText, prompt: str | None, sample: int) -> Track:
        end = text.tokenizer.decode(text.validation[:].tolist())
        if prompt is None:
            first = end.find(" ") + 1 if " " in end[:PROMPT] else 0  # not within a word
            prompt = end[first : first + PROMPT].rpartition(" ")[0] or end[:PROMPT]
        text.tokenizer.encode(prompt)  # raises before training, not after
        if not prompt:
            raise UserError("the prompt is empty: expected some words to continue")
        return cls(end, max(1, len(end.encode())), prompt, sample)

    def enter(self, name: str, device: str | None) -> Entry:
        """The entry of a saved model. Raises `UserError` if the model cannot generate or encode the text."""
        model = load(name, device)
        if not model.config.causal:
            raise UserError(f"{name} is bidirectional: it cannot race, since it cannot generate")
        model.tokenizer.encode(self.prompt)
        with tempfile.TemporaryDirectory(prefix="clearhead-") as cache:
            tokens = tokenize([Document.of("the text's end", self.text)], model.tokenizer, Path(cache))
            targets, before = split_opening(tokens, model.tokenizer)
            ids = Tokens.of(targets[:])
        return Entry(name, model, ids, before, min(LONGEST, model.config.n_context))

    def judge(self, entry: Entry, learned: Learned | None = None) -> Racer:
        shifts = range(0, min(entry.context, len(entry.tokens)), -(-entry.context // entry.shifts))
        losses, *more = [entry.measure(shift) for shift in shifts]
        scale = bits_per_byte(losses.tokens, self.n_bytes)  # converts nats per token to bits per byte
        began = time.perf_counter()
        written = entry.model.generate(self.prompt, self.sample, seed=0)
        writing = time.perf_counter() - began
        return Racer(
            name=entry.name,
            parameters=entry.model.config.n_parameter,
            bits_per_byte=bits_per_byte(losses.total, self.n_bytes),
            seconds=learned.seconds if learned else None,
            tokens_read=learned.tokens if learned else None,
            learned_per_second=learned.tokens / learned.training if learned else None,
            written_per_second=len(written.ids) / writing,
            sample=str(written),
            by_position=[(place, scale * loss) for place, loss in sum(more, losses).bins()],
        )
