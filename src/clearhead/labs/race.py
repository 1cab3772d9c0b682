"""A race: networks of several kinds learn one text for the same minutes, and are judged by its end."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clearhead.errors import UserError
from clearhead.files import home
from clearhead.labs.lab import Lines, Part, Result, Table, Value
from clearhead.language_model import LanguageModel, load
from clearhead.model.config import check_kind
from clearhead.networks import KINDS
from clearhead.runs.counting import count_text
from clearhead.runs.preparation import PreparedText, prepare_text
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.runs.sizes import fitting_context
from clearhead.text.batches import windows_for_evaluation
from clearhead.text.corpus import Document, documents
from clearhead.text.token_cache import tokenize
from clearhead.text.tokens import Tokens
from clearhead.training.position_loss import PositionLoss, bits_per_byte, measure_positions

RACERS = ("ngram", "lstm", "transformer")
CONTEXT = 128  # tokens of a window, unless said
LONGEST = 1024  # of a saved model that can look back further
MOST_LOGITS = 2**24  # numbers that are made at once
SHIFTS = 4  # times that the text's end is cut into windows, each time elsewhere: early places are few
PROMPT = 60  # characters of the text's end that all write on from, unless said
TOKENS, MOST_TOKENS = 60, 10_000  # that each writes
RACE, BY_POSITION, SAMPLES = "racers", "loss by position in the window", "samples"  # parts of the result

Follow = Callable[[str, Run], object]
Tell = Callable[[str], object]


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
    """Race networks of several kinds: `race("my.txt", minutes=2)`. `figure` draws what it gives.

    Each of the `kinds` learns the text for so many minutes; saved `models`, by name, run beside them as they
    are. All are judged by the text's end, or by `validation`, and write so many `tokens` on from the prompt.
    The other settings are those of `train`. What one should know of a run comes as warnings.
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
    return run(list(documents(given)), request, kinds, models, prompt, tokens)


def run(
    texts: Sequence[Document],
    request: TrainingRequest,
    kinds: Sequence[str] = RACERS,
    models: Sequence[str] = (),
    prompt: str | None = None,
    n_written: int = TOKENS,
    follow: Follow | None = None,
    tell: Tell = lambda _: None,
) -> Result:
    """The same for documents at hand. `follow` takes a run's steps, `tell` hears what is being done."""
    if request.minutes is None:
        raise UserError("minutes = None: expected how long each may train, the same for all, such as 3")
    _check_names(kinds, models)
    if type(n_written) is not int or not 1 <= n_written <= MOST_TOKENS:
        raise UserError(f"tokens = {n_written!r}: expected a whole number from 1 to {MOST_TOKENS}")
    tell("the text is made ready")
    text = prepare_text(texts, request, home() / "tokens")
    track = Track.lay(text, prompt, n_written)
    saved = [track.enter(name, request.device) for name in models]  # before any time goes into training
    context = request.context or min(CONTEXT, fitting_context(text.tokens))
    if len(text.tokens) < 2 * context:
        raise UserError(f"the text has {len(text.tokens)} tokens to learn from: a race needs {2 * context}")
    request = replace(request, context=context)
    racers = []
    for kind in kinds:
        tell(kind)
        model, learned = _learn(kind, texts, request, text, follow or _follow)
        before = int(text.tokens[len(text.tokens) - 1 :][0])
        racers.append(track.judge(Entry(kind, model, text.validation, before, context, SHIFTS), learned))
    for entry in saved:
        tell(entry.name)
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
    found: dict[str, Value | bool] = {
        "best": racers[0].name,
        "its bits per byte": racers[0].bits_per_byte,
        "tokens to learn from": len(text.tokens),
        "bytes to be judged by": track.n_bytes,
    }
    parts: list[Part] = [_standings(racers), _by_position(racers), _samples(racers, track.prompt)]
    return Result("race", settings, found, parts)


def _check_names(kinds: Sequence[str], models: Sequence[str]) -> None:
    for kind in kinds:
        check_kind("kind", kind, KINDS)
    names = [*kinds, *models]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"{twice[0]} was named twice: each races once, under its own name")
    if not names:
        raise UserError("nobody races: name a kind, or a model")


def _learn(
    kind: str, texts: Sequence[Document], request: TrainingRequest, text: PreparedText, follow: Follow
) -> tuple[LanguageModel, Learned]:
    """By counting, or step by step for the request's minutes."""
    if kind == "ngram":
        counted = count_text(texts, replace(request, kind=kind, context=None), text=text)
        return counted.model, Learned(counted.seconds, counted.seconds, len(text.tokens))
    run = Run(texts, replace(request, kind=kind), text=text)
    follow(kind, run)
    n_token = run.trainer.step * run.plan.recipe.batch_size * run.plan.context
    return run.model, Learned(run.seconds, run.trained, n_token)


def _follow(name: str, run: Run) -> None:
    words = run.plan.warnings(len(run.tokens))
    for _ in run:
        pass
    for word in [*words, *run.notes, *run.hindsight()]:
        warnings.warn(f"{name}: {word}", stacklevel=5)  # as if from where `race` was called


@dataclass(frozen=True)
class Racer:
    """What came of one of them. What it does not have, such as a speed of learning, is None."""

    name: str
    parameters: int
    bits_per_byte: float
    seconds: float | None  # of training, with all that belongs to it
    tokens_read: int | None
    learned_a_second: float | None  # tokens
    written_a_second: float  # tokens
    sample: str
    by_position: list[tuple[float, float]]  # in bits a byte


def _standings(racers: list[Racer]) -> Table:
    """The best first."""
    columns = ["bits per byte", "parameters", "seconds", "tokens read", "learned/s", "written/s"]
    values: list[list[Value]] = [
        [
            each.bits_per_byte,
            each.parameters,
            None if each.seconds is None else round(each.seconds, 1),
            each.tokens_read,
            None if each.learned_a_second is None else round(each.learned_a_second),
            round(each.written_a_second),
        ]
        for each in racers
    ]
    return Table(RACE, [each.name for each in racers], columns, values)


def _by_position(racers: list[Racer]) -> Lines:
    places = sorted({x for each in racers for x, _ in each.by_position})
    lines = {each.name: [dict(each.by_position).get(x) for x in places] for each in racers}
    return Lines(
        BY_POSITION, "tokens of the window that are read", "bits per byte", places, lines, logarithmic=True
    )


def _samples(racers: list[Racer], prompt: str) -> Table:
    texts: list[list[Value]] = [[each.sample] for each in racers]
    return Table(SAMPLES, [each.name for each in racers], [f"after {prompt!r}"], texts)


@dataclass(frozen=True)
class Learned:
    """How one of them was trained."""

    seconds: float  # in all, with planning and validation
    training: float  # seconds of it in steps; of an n-gram, all
    tokens: int  # that it read


@dataclass(frozen=True)
class Entry:
    """Who is to be judged, and the end of the text as its tokens."""

    name: str
    model: LanguageModel
    tokens: Tokens
    before: int  # the token that goes before the first
    context: int
    shifts: int = 1  # a saved model may be large, and read slowly

    def measure(self, shift: int = 0) -> PositionLoss:
        """Of windows of which the first begins so many tokens after the first token."""
        rows = max(1, MOST_LOGITS // (self.context * self.model.config.n_vocab))
        before = int(self.tokens[shift - 1 : shift][0]) if shift else self.before
        windows = windows_for_evaluation(self.tokens.part(shift), self.context, rows, before)
        return measure_positions(self.model.network, windows, self.context)


@dataclass(frozen=True)
class Track:
    """What all are judged by: the end of the text, which nobody learned from."""

    text: str
    n_bytes: int
    prompt: str
    sample: int  # tokens

    @classmethod
    def lay(cls, text: PreparedText, prompt: str | None, sample: int) -> Track:
        end = text.tokenizer.decode(text.validation[:].tolist())
        if prompt is None:
            first = end.find(" ") + 1 if " " in end[:PROMPT] else 0  # not amid a word
            prompt = end[first : first + PROMPT].rpartition(" ")[0] or end[:PROMPT]
        text.tokenizer.encode(prompt)  # which is refused before training, not after it
        if not prompt:
            raise UserError("the prompt is empty: expected some words to write on from")
        return cls(end, max(1, len(end.encode())), prompt, sample)

    def enter(self, name: str, device: str | None) -> Entry:
        """A saved model, if it can read the end of the text."""
        model = load(name, device)
        if not model.config.causal:
            raise UserError(
                f"{name} sees both ways and fills in blanks: it cannot race, which is to write on"
            )
        model.tokenizer.encode(self.prompt)
        with tempfile.TemporaryDirectory(prefix="clearhead-") as cache:
            tokens = tokenize([Document.of("the text's end", self.text)], model.tokenizer, Path(cache))
            ids = Tokens.of(tokens[1:])  # reading starts at the first end token
        start = model.tokenizer.start_ids
        before = start[-1] if start else model.tokenizer.end_id
        return Entry(name, model, ids, before, min(LONGEST, model.config.n_context))

    def judge(self, entry: Entry, learned: Learned | None = None) -> Racer:
        shifts = range(0, min(entry.context, len(entry.tokens)), -(-entry.context // entry.shifts))
        losses, *more = [entry.measure(shift) for shift in shifts]
        scale = bits_per_byte(losses.tokens, self.n_bytes)  # from nats a token
        began = time.perf_counter()
        written = entry.model.generate(self.prompt, self.sample, seed=0)
        writing = time.perf_counter() - began
        return Racer(
            name=entry.name,
            parameters=entry.model.config.n_parameter,
            bits_per_byte=bits_per_byte(losses.total, self.n_bytes),
            seconds=learned.seconds if learned else None,
            tokens_read=learned.tokens if learned else None,
            learned_a_second=learned.tokens / learned.training if learned else None,
            written_a_second=len(written.ids) / writing,
            sample=str(written),
            by_position=[(place, scale * loss) for place, loss in sum(more, losses).bins()],
        )
