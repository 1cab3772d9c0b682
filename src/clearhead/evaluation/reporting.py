"""Reporting: what a model does with a text that it has not seen, what it writes, and what it copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clearhead.errors import UserError
from clearhead.evaluation.baselines import Baseline, compressed_bits, measure_ngram, measure_pretrained
from clearhead.evaluation.calibration import Calibration
from clearhead.evaluation.copied_text import CopiedText, find_copies, run_length
from clearhead.evaluation.model_report import ModelReport, Surprise, WrittenSample
from clearhead.evaluation.overfitting import TrainingEvidence
from clearhead.evaluation.run_summary import RunSummary
from clearhead.evaluation.run_text import ReportText, held_out_text, new_stories, shared_text, training_tokens
from clearhead.evaluation.scores import Scores, score
from clearhead.evaluation.token_losses import TokenLosses, measure_tokens
from clearhead.formats.opening import find_run
from clearhead.generate.detokenizer import Generated
from clearhead.generate.generation import run_request
from clearhead.labs.heads import REPEATED, STORIES, HeadScores, heads
from clearhead.language_model import LanguageModel, load
from clearhead.networks import describe_shape, need_causal
from clearhead.runs.run_folder import is_run
from clearhead.runs.run_metrics import read_metrics
from clearhead.text.corpus import Document, readable_documents
from clearhead.text.tokens import Tokens
from clearhead.training.position_loss import bits_per_byte

AT_ONCE = 2**20  # tokens to count
SURPRISES = 10
BEFORE, AFTER = 60, 25  # characters of context shown around a surprise
PASSAGE = 700  # bytes around the largest surprise, approximately
COPIED_SAMPLES, COPIED_TOKENS = 16, 200  # in which copies are counted
TEMPERATURES, SAMPLE = (0.3, 0.7, 1.0), 500  # bytes, approximately

ReportTexts = str | Path | Sequence[str | Path | Document]
OnActivity = Callable[[str], object]
OnProgress = Callable[[int, int, str], object]


def report(
    model: str | Path,
    text: ReportTexts | None = None,
    device: str | None = None,
    on_message: OnActivity = lambda _: None,
    on_progress: OnProgress = lambda *_: None,
) -> ModelReport:
    """Report on a model: `report("runs/my")` on the held-out text, or `report("runs/my", "other.txt")`.

    The built-in model is measured on new stories. `on_message` receives the name of each activity. During long
    ones, `on_progress` receives the number done, the total, and the unit, such as tokens.
    """
    return report_model(_load(model, device), find_run(model), text, device, on_message, on_progress)


def report_model(
    model: LanguageModel,
    folder: Path,
    text: ReportTexts | None = None,
    device: str | None = None,
    on_message: OnActivity = lambda _: None,
    on_progress: OnProgress = lambda *_: None,
) -> ModelReport:
    """Report on a loaded model; `folder` contains its run, if it has one."""
    need_causal(model.config)
    text = new_stories(folder) if text is None else text
    if text is not None:
        name, documents = _documents(text)
    elif found := held_out_text(folder, model.tokenizer):
        name, documents = "the run's held-out text", _parts(found)
    else:
        message = f"{model.name} contains no held-out text: name a text that it was not trained on"
        raise UserError(message, "no_held_out_text", name=model.name)
    read = ReportText.read(name, documents, model.tokenizer)
    return _measure(model, folder, read, device, on_message, on_progress)


def reports(
    models: Sequence[str | Path],
    text: ReportTexts | None = None,
    device: str | None = None,
    on_message: OnActivity = lambda _: None,
    on_progress: OnProgress = lambda *_: None,
) -> list[ModelReport]:
    """Report on several models, all on the same text: `reports(["runs/a", "runs/b"])`.

    By default, this is the end of the text that they hold out, or new stories if one is the built-in model and none
    holds out a text; models that hold out nothing are measured on it too.
    """
    if isinstance(models, str | Path) or not models:
        raise UserError(f"models = {models!r}: expected a list of models, such as ['runs/a', 'runs/b']")
    loaded = [_load(each, device) for each in models]
    names = [each.name for each in loaded]
    for given, model in zip(models, loaded, strict=True):
        model.name = str(given) if names.count(model.name) > 1 else model.name
    if len({each.name for each in loaded}) < len(loaded):
        raise UserError("a model was named twice: name each model once")
    name, documents = _held_out_by_all(models, loaded) if text is None else _documents(text)
    found = []
    for given, model in zip(models, loaded, strict=True):
        on_message(model.name)
        read = ReportText.read(name, documents, model.tokenizer)
        found.append(_measure(model, find_run(given), read, device, on_message, on_progress))
    return found


def _held_out_by_all(
    models: Sequence[str | Path], loaded: Sequence[LanguageModel]
) -> tuple[str, list[Document]]:
    """The text held out by all of the models that are runs, or new stories, and its name."""
    held_out = {
        model.name: found
        for given, model in zip(models, loaded, strict=True)
        if (found := held_out_text(find_run(given), model.tokenizer))
    }
    listed = " and ".join(held_out)
    if not held_out:
        for given in models:
            if (stories := new_stories(find_run(given))) is not None:
                return _documents(stories)
        raise UserError("none of the models holds out a text: name one that they were not trained on")
    texts = shared_text(list(held_out.values()))
    if texts is None:
        raise UserError(f"{listed} hold out different texts: name a text that none of them was trained on")
    return f"the held-out text of {listed}", _parts(texts)


def _parts(texts: Sequence[str]) -> list[Document]:
    """The documents of a held-out text."""
    return [Document.of(f"part {i}", each) for i, each in enumerate(texts)]


def _load(model: str | Path, device: str | None) -> LanguageModel:
    loaded = load(model, device)
    need_causal(loaded.config)
    return loaded


def _documents(text: ReportTexts) -> tuple[str, list[Document]]:
    """The texts and their names."""
    given = [text] if isinstance(text, str | Path) else list(text)
    files = [each for each in given if not isinstance(each, Document)]
    found = [each for each in given if isinstance(each, Document)]
    found += readable_documents(files) if files else []
    return ", ".join(dict.fromkeys(each.name for each in found)), found


def _measure(
    model: LanguageModel,
    folder: Path,
    text: ReportText,
    device: str | None,
    on_message: OnActivity,
    on_progress: OnProgress,
) -> ModelReport:
    """Report on the model; `folder` contains its run, if it has one."""
    if not len(text.tokens):
        raise UserError(f"{text.name} is too short: expected at least two tokens")
    on_message(f"measuring {len(text.tokens):,} tokens of {text.name}")
    tokenizer, ids = model.tokenizer, text.tokens[:]
    losses = measure_tokens(model, text.tokens, text.before)
    training = training_tokens(folder, tokenizer)
    counts = _count(text.tokens if training is None else training, model.config.n_vocab)
    content = tokenizer.decode(ids.tolist()).encode()
    # The text may be longer than what was measured.
    bits = bits_per_byte(losses.loss * len(ids), len(content))
    baselines = _baselines(model, text, training, len(content), device, on_message)
    on_message("generating texts")
    n_sample = round(SAMPLE * len(ids) / len(content))
    plan = [(n_sample, temperature, 1) for temperature in TEMPERATURES]
    if training is not None:
        plan.append((COPIED_TOKENS, 1.0, COPIED_SAMPLES))
    *written, last = _write(model, text, plan, on_progress)
    copied, by_people, longest = None, None, ""
    if training is None:
        written.append(last)
    else:
        on_message("searching the training text for copies")
        copied, by_people, longest = _copies(model, text, last, training, len(content))
    samples = [WrittenSample(each, str(one)) for each, [one] in zip(TEMPERATURES, written, strict=True)]
    surprises = losses.surprises(SURPRISES, tokenizer.end_ids)
    on_message("scoring minimal pairs")
    scores = _score(model, on_progress)
    on_message("scoring heads")
    found_heads = _heads(model, on_progress)
    return ModelReport(
        model=model.name,
        shape=describe_shape(model.config),
        parameters=model.config.n_parameter,
        text=text.name,
        bytes=len(content),
        losses=losses,
        bits_per_byte=bits,
        compressed=compressed_bits(content),
        baselines=baselines,
        calibration=Calibration.of(losses.confidence, losses.predicted == losses.ids),
        by_frequency=losses.by_frequency(counts),
        counted_in_training=training is not None,
        surprises=[_surprise(model, text, losses, i) for i in surprises],
        passage=_passage(model, losses, surprises[0], round(PASSAGE * len(ids) / len(content))),
        copied=copied,
        copied_by_people=by_people,
        longest_copy=longest,
        evidence=_evidence(folder, model, losses, training, bits, baselines),
        run=RunSummary.of(folder),
        samples=samples,
        scores=scores,
        heads=found_heads,
    )


def _count(tokens: Tokens, n_vocab: int) -> NDArray[np.int64]:
    """How often each id occurs."""
    counts = np.zeros(n_vocab, np.int64)
    for start in range(0, len(tokens), AT_ONCE):
        counts += np.bincount(tokens[start : start + AT_ONCE], minlength=n_vocab)
    return counts


def _baselines(
    model: LanguageModel,
    text: ReportText,
    training: Tokens | None,
    n_bytes: int,
    device: str | None,
    on_message: OnActivity,
) -> list[Baseline]:
    found = []
    if training is not None and model.config.kind != "ngram" and model.tokenizer.end_id is not None:
        on_message("counting n-grams")
        found.append(measure_ngram(model, text, training, n_bytes))
    other = measure_pretrained(model, text.documents(model.tokenizer), on_message, device)
    return found if other is None else [*found, other]


def _write(
    model: LanguageModel, text: ReportText, plan: Sequence[tuple[int, float, int]], on_progress: OnProgress
) -> list[list[Generated]]:
    """The texts that the model writes without a prompt; if it needs one, the prompt is the token before the text.

    Each entry of the plan, a number of tokens, a temperature and a number of samples, yields a list of texts.
    """
    tokenizer, found = model.tokenizer, []
    prompt = None if tokenizer.start_ids or tokenizer.end_id is not None else [text.before]
    done, total = 0, sum(tokens for tokens, *_ in plan)
    for tokens, temperature, samples in plan:
        request = model.request(prompt, tokens, samples=samples, temperature=temperature, seed=1)
        steps = []
        for pieces in run_request(model.network, tokenizer, request):
            steps.append(pieces)
            on_progress(done + len(steps), total, "tokens")
        found.append([Generated.concatenate(pieces) for pieces in zip(*steps, strict=True)])
        done += tokens
    on_progress(total, total, "tokens")
    return found


def _copies(
    model: LanguageModel, text: ReportText, written: Sequence[Generated], training: Tokens, n_bytes: int
) -> tuple[CopiedText, CopiedText, str]:
    """What is copied in generated text and in an equal amount of human-written text, and the longest generated copy."""
    tokenizer, ids = model.tokenizer, text.tokens[:]
    n = run_length(n_bytes / len(ids))
    samples = [[i for i in each.ids if i not in tokenizer.end_ids] for each in written]
    human, at = [], 0
    for sample in samples:
        part = ids[at : at + len(sample)]
        at += len(sample)
        human.append(part[~np.isin(part, tokenizer.end_ids)])
    found = find_copies(samples, training, n)
    longest = ""
    if found.text is not None and found.start is not None:
        longest = tokenizer.decode(samples[found.text][found.start : found.start + found.longest])
    return found, find_copies(human, training, n), longest


def _surprise(model: LanguageModel, text: ReportText, losses: TokenLosses, i: int) -> Surprise:
    tokenizer, place = model.tokenizer, int(losses.places[i])
    token, expected = tokenizer.pieces([int(losses.ids[i]), int(losses.predicted[i])])
    # A token has at least one character or is part of one.
    before = tokenizer.decode(text.tokens[max(0, place - BEFORE) : place].tolist())[-BEFORE:]
    after = tokenizer.decode(text.tokens[place + 1 : place + 1 + AFTER].tolist())[:AFTER]
    return Surprise(before, token, after, float(losses.losses[i]), expected, float(losses.confidence[i]))


def _passage(model: LanguageModel, losses: TokenLosses, i: int, count: int) -> list[tuple[str, float]]:
    """About `count` measured tokens around this one, as far as they are contiguous."""
    near = slice(max(0, i - count // 2), i + count // 2 + 1)
    # As long as places rise by one from token to token, they differ from the indices by a constant.
    joined = (losses.places - np.arange(len(losses.places)))[near] == losses.places[i] - i
    pieces = model.tokenizer.pieces(losses.ids[near][joined].tolist())
    return list(zip(pieces, losses.losses[near][joined].tolist(), strict=True))


def _evidence(
    folder: Path,
    model: LanguageModel,
    losses: TokenLosses,
    training: Tokens | None,
    bits: float,
    baselines: Sequence[Baseline],
) -> TrainingEvidence | None:
    """What the run's metrics and its training text say."""
    if not is_run(folder):
        return None
    records = read_metrics(folder)
    listed = [(each["step"], each["validation"]) for each in records if each.get("validation") is not None]
    if not records or training is None:
        return None
    sample = measure_tokens(model, training.part(1), int(training[:1][0]), most=len(losses.ids))
    return TrainingEvidence(
        listed,
        int(records[-1].get("tokens", 0)),
        len(training),
        model.config.n_parameter,
        losses.loss,
        sample.loss,
        bits,
        next((each.bits_per_byte for each in baselines if not each.own), None),
    )


def _score(model: LanguageModel, on_progress: OnProgress) -> Scores | None:
    """None if the model can read none of the pairs."""
    try:
        return score(model, report=lambda done, total: on_progress(done, total, "sentences"))
    except UserError:
        return None


def _heads(model: LanguageModel, on_progress: OnProgress) -> HeadScores | None:
    """None for a network without heads, or with a context that is too short."""
    done, total = count(), REPEATED + STORIES
    try:
        found = heads(model, check=lambda: on_progress(next(done), total, "texts"))
        on_progress(total, total, "texts")
        return found
    except UserError:
        return None
