"""A race: networks of several kinds learn one text for the same minutes, and are judged by its end."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from clearhead.errors import UserError
from clearhead.files import home
from clearhead.labs.lab import Lines, Result, Table, Value
from clearhead.language_model import LanguageModel, load
from clearhead.model.kinds import KINDS
from clearhead.runs.counting import count_text
from clearhead.runs.preparation import PreparedText, prepare_text
from clearhead.runs.request import Request
from clearhead.runs.run import Run
from clearhead.runs.sizes import fitting_context
from clearhead.text.batches import windows_for_evaluation
from clearhead.text.corpus import Document
from clearhead.text.tokens import Tokens, tokenize
from clearhead.training.position_loss import PositionLoss, bits_per_byte, measure_positions

RACERS = ("ngram", "lstm", "transformer")
CONTEXT = 128  # tokens of a window, unless said
LONGEST = 1024  # of a saved model that can look back further
MOST_LOGITS = 2**24  # numbers that are made at once
PROMPT = 60  # characters of the text's end that all write on from, unless said


@dataclass(frozen=True)
class Racer:
    """What came of one of them. What it does not have, such as a speed of training, is None."""

    name: str
    kind: str
    parameters: int
    bits_per_byte: float
    loss: float  # nats a token of its own
    context: int  # tokens of the windows in which it was judged
    seconds: float | None  # of training
    tokens_read: int | None
    learned_a_second: float | None  # tokens
    written_a_second: float  # tokens
    sample: str
    by_position: list[tuple[float, float]]  # in bits a byte


@dataclass(frozen=True)
class Race:
    """The racers, the best first."""

    minutes: float
    tokenizer: str
    n_vocab: int
    tokens: int  # to learn from
    validation_tokens: int
    validation_bytes: int
    prompt: str
    racers: list[Racer]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def result(self) -> Result:
        """The figures as they are drawn."""
        columns = ["bits per byte", "parameters", "learned tokens/s", "written tokens/s"]
        values: list[list[Value]] = [
            [
                each.bits_per_byte,
                f"{each.parameters:,}",
                None if each.learned_a_second is None else f"{each.learned_a_second:,.0f}",
                f"{each.written_a_second:,.0f}",
            ]
            for each in self.racers
        ]
        places = sorted({x for each in self.racers for x, _ in each.by_position})
        lines = {each.name: [dict(each.by_position).get(x) for x in places] for each in self.racers}
        names = [each.name for each in self.racers]
        by_position = Lines(
            "loss by position in the window",
            "tokens of the window that are read",
            "bits per byte",
            places,
            lines,
            logarithmic=True,
        )
        return Result(
            "race", {"minutes": self.minutes}, {}, [Table("race", names, columns, values), by_position]
        )


def race(
    texts: Sequence[Document],
    request: Request,
    kinds: Sequence[str] = RACERS,
    models: Sequence[str] = (),
    prompt: str | None = None,
    sample: int = 60,
    follow: Callable[[str, Run], object] = lambda _, run: [None for _ in run],
    tell: Callable[[str], object] = lambda _: None,
) -> Race:
    """Each kind learns for the request's minutes; saved models run as they are, with tokenizers of their own.

    `follow` takes a run's steps, `tell` hears what is being done.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise UserError(f"kind = {kind!r}: expected one of {', '.join(KINDS)}")
    names = [*kinds, *models]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"{twice[0]} was named twice: each races once, under its own name")
    if not names:
        raise UserError("nobody races: name a kind, or a model")
    tell("the text is made ready")
    text = prepare_text(texts, request, home() / "tokens")
    track = Track.lay(text, prompt, sample)
    saved = [track.enter(name, request.device) for name in models]  # before any time goes into training
    context = request.context or min(CONTEXT, fitting_context(text.tokens))
    racers = []
    for kind in kinds:
        tell(kind)
        if kind == "ngram":
            counted = count_text(texts, replace(request, kind=kind, context=None), text=text)
            model, learned = counted.model, Learned(counted.seconds, counted.seconds, len(text.tokens))
        else:
            run = Run(texts, replace(request, kind=kind, context=context), text=text)
            follow(kind, run)
            n_token = run.trainer.step * run.plan.recipe.batch_size * run.plan.context
            model, learned = run.model, Learned(run.seconds, run.trained, n_token)
        entry = Entry(kind, model, text.validation, int(text.tokens[len(text.tokens) - 1 :][0]), context)
        racers.append(track.judge(entry, learned))
    for entry in saved:
        tell(entry.name)
        racers.append(track.judge(entry))
    return Race(
        request.minutes or 0.0,
        text.tokenizer.kind,
        text.tokenizer.n_vocab,
        len(text.tokens),
        len(text.validation),
        track.n_bytes,
        track.prompt,
        sorted(racers, key=lambda each: each.bits_per_byte),
    )


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
        losses = _measure(entry)
        scale = bits_per_byte(losses.tokens, self.n_bytes)  # from nats a token
        began = time.perf_counter()
        written = entry.model.generate(self.prompt, self.sample, seed=0)
        writing = time.perf_counter() - began
        return Racer(
            name=entry.name,
            kind=entry.model.config.kind,
            parameters=entry.model.config.n_parameter,
            bits_per_byte=bits_per_byte(losses.total, self.n_bytes),
            loss=losses.total / losses.tokens,
            context=entry.context,
            seconds=learned.seconds if learned else None,
            tokens_read=learned.tokens if learned else None,
            learned_a_second=learned.tokens / learned.training if learned else None,
            written_a_second=len(written.ids) / writing,
            sample=str(written),
            by_position=[(place, scale * loss) for place, loss in losses.bins()],
        )


def _measure(entry: Entry) -> PositionLoss:
    rows = max(1, MOST_LOGITS // (entry.context * entry.model.config.n_vocab))
    windows = windows_for_evaluation(entry.tokens, entry.context, rows, entry.before)
    return measure_positions(entry.model.network, windows, entry.context)
