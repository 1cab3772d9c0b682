"""What a pronoun refers to: attention in a model, and in two small ones trained on sentences with known answers."""

from __future__ import annotations

from dataclasses import asdict

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.extras import require
from clearhead.inspect.state_trace import need_heads
from clearhead.inspect.trace import Trace
from clearhead.labs.antecedents import SentenceBatch, lecture
from clearhead.labs.lab import Findings, Lines, Result, ResultPart, Table, Value, Watch
from clearhead.labs.pronoun_readers import Measures, look_from, make_network, measure, train
from clearhead.labs.small_networks import one_thread
from clearhead.language_model import LanguageModel
from clearhead.model.transformer import Transformer

KINDS = {"bidirectional": False, "causal": True}  # whether each is causal
COLUMNS = {
    "right_at_it": "accuracy at the pronoun",
    "right_at_end": "accuracy at the end",
    "looks": "attention",
    "looks_right": "correct side",
    "apart": "difference",
    "flipped": "flipped",
    "probe": "probe",
}
FOUND = {
    "right_at_it": "accuracy at the pronoun",
    "right_at_end": "accuracy at the end",
    "looks": "attention to the antecedent minus that to the other noun",
    "flipped": "answers flipped by patching the pronoun's vector",
    "probe": "accuracy of a probe at the pronoun",
}


def run(
    before: str,
    first: str,
    second: str,
    one: str,
    other: str,
    pronoun: str,
    seeds: int,
    steps: int,
    asked: bool,
    model: LanguageModel | None,
    watch: Watch,
) -> Result:
    """Without seeds, nothing is trained; without a model, only the results of training are shown."""
    findings: Findings = {}
    parts: list[ResultPart] = []
    if model is not None:
        words, sides = (first.strip(), second.strip()), (one.strip(), other.strip())
        findings, parts = _look_into(model, before.rstrip(), words, sides, pronoun.strip())
    elif not seeds:
        raise UserError("seeds = 0 and no model: expected at least one seed or a model")
    if seeds:
        require("probes", "the pronoun lab with seeds")
        with one_thread():
            learned, drawn = _learn(seeds, steps, asked, watch)
        findings, parts = findings | learned, parts + drawn
    settings = {
        "before": before,
        "first": first,
        "second": second,
        "one": one,
        "other": other,
        "pronoun": pronoun,
        "seeds": seeds,
        "steps": steps,
        "asked": asked,
    }
    return Result("pronoun", settings, findings, parts)


def _look_into(
    model: LanguageModel, before: str, words: tuple[str, str], sides: tuple[str, str], pronoun: str
) -> tuple[Findings, list[ResultPart]]:
    """The attention of all heads, summed, from the last word and from the pronoun to each noun."""
    config = model.transformer("a pronoun with attention").config
    if words[0] == words[1]:
        raise UserError(f"`first` and `second` are both {words[0]!r}: expected two different words")
    texts = [f"{before} {word}." for word in words]
    from_word = [_looks(model, text, word, sides) for text, word in zip(texts, words, strict=True)]
    from_pronoun = [_looks(model, text, pronoun, sides) for text in texts]
    leans = [(looks[:, 0] - looks[:, 1]) for looks in from_word]  # by block
    apart = (from_pronoun[0] - from_pronoun[1]).abs().max().item()
    one, other = sides
    findings: Findings = {
        f"{word}: attention to {one} minus {other}": lean.sum().item()
        for word, lean in zip(words, leans, strict=True)
    }
    findings[f"largest difference at {pronoun} between the two sentences"] = apart
    rows = [f"{pronoun}, then {word}" for word in words]
    columns = [f"to {side}" for side in sides] + ["difference"]
    return findings, [
        Table("from the last word", list(words), columns, _summed(from_word)),
        Table("from the pronoun", rows, columns, _summed(from_pronoun)),
        Lines(
            f"attention to {one} minus {other}",
            "block",
            "weight, summed over heads",
            [float(i) for i in range(config.n_block)],
            {word: lean.tolist() for word, lean in zip(words, leans, strict=True)},
        ),
    ]


def _looks(model: LanguageModel, text: str, word: str, sides: tuple[str, str]) -> Tensor:
    """The attention from a word's last token to each noun, summed over the heads of each block: blocks × 2."""
    trace = need_heads(model.inspect(text), "the pronoun lab")
    looking, places = trace.positions_of(word)[-1], [trace.positions_of(side)[0] for side in sides]
    if trace.config.causal and looking < max(places):
        raise UserError(
            f"{sides[places[1] == max(places)]!r} comes after the query position, which cannot attend to it"
        )
    found = [trace.weights(i)[:, looking, places].sum(0) for i in range(trace.config.n_block)]
    return torch.stack(found).cpu()


def _summed(looks: list[Tensor]) -> list[list[Value]]:
    return [[*each.sum(0).tolist(), (each[:, 0] - each[:, 1]).sum().item()] for each in looks]


def _learn(seeds: int, steps: int, asked: bool, watch: Watch) -> tuple[Findings, list[ResultPart]]:
    """Both kinds start from the same weights and see the same sentences; only the mask differs."""
    courses: dict[str, list[dict[int, Measures]]] = {
        kind: [] for kind in KINDS
    }  # by seed, at each evaluation
    pictures: dict[str, Transformer] = {}
    for seed in range(seeds):
        for kind, causal in KINDS.items():
            network = make_network(causal, seed)
            pictures.setdefault(kind, network)
            stops = train(network, steps, seed, asked, watch)
            courses[kind].append({step: measure(network, probe=step == steps) for step in stops})
    last = {kind: [course[steps] for course in of_seeds] for kind, of_seeds in courses.items()}
    findings: Findings = {}
    for kind, measures in last.items():
        for name, says in FOUND.items():
            findings[f"{kind}: {says}"] = _mean([getattr(each, name) for each in measures])
        findings[f"{kind}: largest difference at the pronoun between paired sentences"] = max(
            each.apart for each in measures
        )
    rows = [(f"{kind}, seed {i}", each) for kind, of_seeds in last.items() for i, each in enumerate(of_seeds)]
    return findings, [
        _draw_courses(courses),
        Table(
            "what is encoded at the pronoun, in stories",
            [name for name, _ in rows],
            list(COLUMNS.values()),
            [[asdict(each)[name] for name in COLUMNS] for _, each in rows],
        ),
        _draw_looks(pictures),
    ]


def _draw_courses(courses: dict[str, list[dict[int, Measures]]]) -> Lines:
    """Accuracy during training: the mean over seeds, with the lowest and highest."""
    steps = list(next(iter(courses.values()))[0])
    lines: dict[str, list[float | None]] = {}
    spread: dict[str, list[tuple[float, float]]] = {}
    for kind, of_seeds in courses.items():
        for name in ("right_at_it", "right_at_end"):
            values = [[getattr(course[step], name) for course in of_seeds] for step in steps]
            line = f"{kind}, {FOUND[name].removeprefix('accuracy ')}"
            lines[line] = [_mean(each) for each in values]
            spread[line] = [(min(each), max(each)) for each in values]
    x = [float(step) for step in steps]
    return Lines("predicts the antecedent", "steps", "accuracy", x, lines, spread)


@torch.no_grad()
def _draw_looks(networks: dict[str, Transformer]) -> Table:
    """The lecture's picture: attention from the pronoun in both sentences, summed over heads, for the first seed."""
    sentences, rows, values = lecture(), [], []
    batch = SentenceBatch.of(sentences)
    for kind, network in networks.items():
        looks = look_from(Trace(network, batch.ids, [[]] * len(batch), single=False), batch)
        rows += [f"{kind}: {each.words[-2]}" for each in sentences]
        values += [[round(weight, 2) for weight in row[: len(sentences[0].words)].tolist()] for row in looks]
    return Table(
        "attention from it, summed over heads",
        rows,
        [*sentences[0].words[:-2], "adjective", "."],
        values,
        shaded=True,
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
