"""Train the built-in model `stories` and write it to the package: the model and a few snapshots, in float16.

Usage: python -m tools.train_stories [--steps 25000 | --minutes 3] [--device cuda] [--out FOLDER]. Prints one JSON
line: the loss on stories that it was not trained on, its size, the best head for each role, and three samples.

It is trained on generated text only, which is the same for the same seed: stories; single sentences and endings
of stories, so that a text may start anywhere; the lectures' sentences; lists of words said twice, from which
induction heads form; and habits, in which the verb after a pronoun depends on its antecedent ("Lily and Tom were in
the park. She skated, and he ran."), from which heads form that attend from pronouns to antecedents. The tokenizer
has one token for every word of these texts, and spells all others in bytes.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

from clearhead.files import write_json, write_text
from clearhead.formats import folder as model_folder
from clearhead.formats.builtin import place
from clearhead.formats.opening import SNAPSHOTS
from clearhead.labs.heads import heads
from clearhead.language_model import LanguageModel, load
from clearhead.runs.preparation import PreparedText
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.runs.run_folder import METRICS, RUN, RunFolder, read_metrics
from clearhead.runs.saved_run import SavedRun
from clearhead.text.corpus import Document, measure
from clearhead.text.stories import (
    ANIMALS,
    BOYS,
    FARM_ANIMALS,
    GIRLS,
    GOODS,
    PLACES,
    THINGS,
    TOYS,
    WILD_ANIMALS,
    choose,
    parses,
    sentences,
    story,
)
from clearhead.text.token_cache import tokenize
from clearhead.text.tokenizer import Tokenizer

SEED, VALIDATION_SEED = 20, 21  # `labs.heads` scores on stories of seed 1
VALIDATION_STORIES = 2000
TOKENIZER_STORIES = 3000  # contain every word of the grammar
LARGEST = 10_000_000  # bytes of the folder
MOST_METRICS = 600  # steps whose metrics are kept
SNAPSHOT_SHARES = (1 / 250, 1 / 40, 1 / 8)  # of the steps

# For each story, how many of the other lines there are.
ENDINGS, LECTURES, LISTS, HABITS = 0.1, 0.02, 0.3, 0.6
MADE_UP = 0.15  # of the words in a list
LONGEST_LIST = 30  # words

LECTURE_SENTENCES = (
    "The chicken didn't cross the road because it was too tired.",
    "The chicken didn't cross the road because it was too wide.",
    "I'm scared of bats.",
    "I swing bats.",
    "The quick brown fox jumps over the lazy dog.",
    "The cat gets fed.",
    "The dog gets fed.",
)
ONCE = "Once upon a time, a "
WILL = "{} had a secret child, a {}, and had written in {} will that {} belongings will belong to {}."

# What each child, animal and thing always does.
HABITS_OF = (
    (GIRLS, "sang painted danced read skated swam knitted baked drew juggled"),
    (BOYS, "whistled fished cooked jumped wrote climbed rowed dug sailed ran"),
    (FARM_ANIMALS, "purred clucked barked quacked butted bleated grunted hopped"),
    (WILD_ANIMALS, "sneaked croaked curled squeaked dived hooted chattered crawled"),
    (TOYS, "bounced floated opened boomed flew nodded slid blared"),
    (GOODS, "dried warmed ticked shrank glowed softened steamed dripped"),
)
HABIT_OF = {noun: verb for nouns, verbs in HABITS_OF for noun, verb in zip(nouns, verbs.split(), strict=True)}
# {a} and {b} are the two, in either order; {A} and {B} their pronouns; {x} and {y} what they do.
PAIRS = (
    "{a} and {b} were in the {place}. {A} {x}, and {B} {y}.",
    "{a} saw {b} near the {place}. {A} {x} while {B} {y}.",
    "One {morning}, {a} met {b}. {B} {y}. {A} {x} too.",
    "{a} was near the {place} with {b}. {A} {x} because {B} {y}.",
)


@dataclass(frozen=True)
class Corpus:
    """The generated text, and the tokenizer for it."""

    training: list[Document]
    validation: list[Document]
    tokenizer: Tokenizer


def make_corpus(stories: int, seed: int = SEED, validation: int = VALIDATION_STORIES) -> Corpus:
    """The text of this many stories, and the other lines in proportion."""
    words = list_words(seed)
    lines: dict[str, tuple[float, Callable[[int, int], str]]] = {
        "endings": (ENDINGS, _ending),
        "lectures": (LECTURES, _lecture_sentence),
        "lists": (LISTS, partial(_list_twice, words)),
        "habits": (HABITS, _habits),
    }
    training = [Document.of(f"story {i}", text) for i, text in enumerate(_generate(_story, seed, stories))]
    # All lines of a kind are one document: so only stories follow an end of document, and a text that is
    # generated without a prompt is a story.
    for name, (share, make) in lines.items():
        text = "\n".join(_generate(make, seed, max(1, round(share * stories))))
        training.append(Document.of(name, text))
    unseen = [
        Document.of(f"story {i}", text)
        for i, text in enumerate(_generate(_story, VALIDATION_SEED, validation))
    ]
    return Corpus(training, unseen, train_tokenizer(words, seed))


def list_words(seed: int = SEED) -> list[str]:
    """Every word of the stories and of the lectures' sentences."""
    texts = [ONCE, *HABIT_OF.values(), *_tokenizer_texts(seed)]
    texts += [re.sub(r"{\w+}", "", line) for line in PAIRS]
    return sorted({word for text in texts for word in re.findall(r"[A-Za-z]+", text)})


def train_tokenizer(words: Sequence[str], seed: int = SEED) -> Tokenizer:
    """A word tokenizer. Every word is a token with and without a space before it, and with a capital."""
    forms = {form for word in words for form in (word, word.capitalize())}
    lists = 2 * [f"{form} {form}" for form in sorted(forms)]  # words that occur only once are no tokens
    return Tokenizer.train("word", [*_tokenizer_texts(seed), *lists])


@cache
def _tokenizer_texts(seed: int) -> tuple[str, ...]:
    stories = (story(seed, number).text for number in range(TOKENIZER_STORIES))
    return (*stories, *(_lecture_sentence(seed, number) for number in range(TOKENIZER_STORIES // 10)))


def _generate(make: Callable[[int, int], str], seed: int, count: int) -> list[str]:
    """The texts with numbers 0 to count, generated on all cores."""
    if count < 5000:
        return [make(seed, number) for number in range(count)]
    with ProcessPoolExecutor() as pool:
        return list(pool.map(partial(make, seed), range(count), chunksize=1000))


def _random(what: str, seed: int, number: int) -> Random:
    return Random(f"{what} {seed} {number}")


def _story(seed: int, number: int) -> str:
    return story(seed, number).text


def _ending(seed: int, number: int) -> str:
    """A sentence of a story, or the story from there on; some are beginnings, "Once upon a time"."""
    random = _random("ending", seed, number)
    parts = sentences(story(seed + 1000, number).text)
    if parts[0].startswith("Once a ") and random.random() < 0.5:
        return " ".join(parts).replace("Once a ", ONCE, 1)
    start = int(random.random() * len(parts))
    return parts[start] if random.random() < 0.5 else " ".join(parts[start:])


def _lecture_sentence(seed: int, number: int) -> str:
    random = _random("lecture", seed, number)
    if random.random() < 0.6:
        return choose(LECTURE_SENTENCES, random)
    names, his = choose(((("Damian", *BOYS), "his"), (GIRLS, "her")), random)
    girl, her = choose((("girl", "her"), ("boy", "him")), random)
    return WILL.format(choose(names, random), girl, his, his, her)


def _habits(seed: int, number: int) -> str:
    """A line about two, or a story with habits in it."""
    random = _random("habit", seed, number)
    return _pair_line(random) if random.random() < 0.4 else _story_with_habits(seed, number, random)


def _pair_line(random: Random) -> str:
    """Two of a girl, a boy, and an animal or a thing, and what each does."""
    three = {
        "she": choose(GIRLS, random),
        "he": choose(BOYS, random),
        "it": choose((*ANIMALS, *THINGS), random),
    }
    A, B = random.sample(sorted(three), 2)
    a, b = (f"the {three[each]}" if each == "it" else three[each] for each in (A, B))
    line = choose(PAIRS, random).format(
        a=a,
        b=b,
        A=A,
        B=B,
        x=HABIT_OF[three[A]],
        y=HABIT_OF[three[B]],
        place=choose(PLACES, random),
        morning=choose(("afternoon", "day", "evening", "morning"), random),
    )
    return re.sub(r"(^|\. )([a-z])", lambda found: found[1] + found[2].upper(), line)


def _story_with_habits(seed: int, number: int, random: Random) -> str:
    """A story in which those mentioned do what they always do, once each, at random places."""
    told, done = "", set[str]()
    for sentence in sentences(story(seed + 2000, number).text):
        told = f"{told} {sentence}" if told else sentence
        who = {pronoun: noun for pronoun, noun in _unambiguous(told).items() if noun not in done}
        if not who or random.random() < 0.4:
            continue
        pronoun = choose(tuple(sorted(who)), random)
        done.add(who[pronoun])
        verb = HABIT_OF[who[pronoun]]
        if told.endswith("."):
            simple = not re.search(r" and | because |\"", sentence)
            link = choose((". ", ", and ", " because ") if simple else (". ",), random)
            told = f"{told[:-1]}{link}{pronoun.capitalize() if link == '. ' else pronoun} {verb}."
        else:
            told = f"{told} {pronoun.capitalize()} {verb}."
    return told


def _unambiguous(text: str) -> dict[str, str]:
    """The pronouns that can refer to one thing only in this text, and what they refer to."""
    words = set(re.findall(r"[A-Za-z]+", text))
    nouns = {"she": words & {*GIRLS}, "he": words & {*BOYS}, "it": words & {*ANIMALS, *THINGS}}
    return {pronoun: next(iter(found)) for pronoun, found in nouns.items() if len(found) == 1}


def _list_twice(words: Sequence[str], seed: int, number: int) -> str:
    random = _random("list", seed, number)
    length = 3 + int(random.random() * (LONGEST_LIST - 2))
    once = " ".join(_list_word(tuple(words), random) for _ in range(length))
    return f"{once} {once}"


def _list_word(words: tuple[str, ...], random: Random) -> str:
    word = _made_up(random) if random.random() < MADE_UP else choose(words, random)
    return word.capitalize() if random.random() < 0.3 else word


def _made_up(random: Random) -> str:
    """One to four characters, mostly letters; so the model also learns to copy what it spells in bytes."""
    return "".join(
        chr(
            0x61 + int(random.random() * 26) if random.random() < 0.7 else 0x21 + int(random.random() * 0x7DF)
        )
        for _ in range(1 + int(random.random() * 4))
    )


def train(corpus: Corpus, request: TrainingRequest, folder: Path, cache: Path, command: list[str]) -> Run:
    """Train in a run folder, with snapshots."""
    sha256, _ = measure(corpus.training)
    tokens = tokenize(corpus.training, corpus.tokenizer, cache, text_sha256=sha256)
    validation = tokenize(corpus.validation, corpus.tokenizer, cache).part(1)
    text = PreparedText(sha256, 1.0, corpus.tokenizer, tokens, validation)
    run_folder = RunFolder(folder)
    run = Run(corpus.training, request, text=text)
    run_folder.begin(run, command)
    with SavedRun(run_folder, run, command) as saved:
        for progress in saved:
            step = progress.record.step
            if step in {max(1, round(share * progress.steps)) for share in SNAPSHOT_SHARES}:
                run_folder.save_snapshot(run.model, step)
            if progress.validation is not None:
                print(f"step {step} of {progress.steps}: {progress.validation:.4f}", file=sys.stderr)
        run.model.save(folder, overwrite=True)
        saved.finish()
    return run


def pack(run_folder: Path, out: Path) -> int:
    """Write the run as package data, in float16; return its size in bytes."""
    staged = out.with_name(f".{out.name}.new")
    shutil.rmtree(staged, ignore_errors=True)
    for source in [run_folder, *sorted((run_folder / SNAPSHOTS).glob("step-*"))]:
        saved = model_folder.load(source)
        saved.network.half()
        model_folder.save(staged / source.relative_to(run_folder), saved)
    write_json(staged / RUN, json.loads((run_folder / RUN).read_text(encoding="utf-8")))
    records = read_metrics(run_folder)
    every = -(-len(records) // MOST_METRICS)
    kept = [
        each for each in records if each["step"] % every == 0 or "validation" in each or each["step"] == 1
    ]
    write_text(staged / METRICS, "".join(json.dumps(_rounded(each)) + "\n" for each in kept))
    size = sum(path.stat().st_size for path in staged.rglob("*") if path.is_file())
    if size > LARGEST:
        raise SystemExit(f"{staged} has {size} bytes, expected at most {LARGEST}: choose a smaller width")
    shutil.rmtree(out, ignore_errors=True)
    staged.rename(out)
    return size


def _rounded(record: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 5) if isinstance(value, float) else value for name, value in record.items()}


def describe(model: LanguageModel, validation: list[Document], samples: int = 40) -> dict[str, Any]:
    """What the model is worth: loss, fluency, roles of its heads, samples."""
    evaluation = evaluate(model, validation)
    scores = heads(model)
    best = {kind: scores.best(kind) for kind in scores.kinds}
    stories = [str(text).strip() for text in model.generate(tokens=120, samples=samples, seed=1)]
    return {
        **evaluation,
        **measure_fluency(stories),
        "heads": {
            kind: {
                "block": block,
                "head": head,
                "score": round(score, 3),
                "chance": round(scores.chance[kind], 3),
            }
            for kind, (block, head, score) in best.items()
        },
        "samples": stories[:3],
    }


def evaluate(model: LanguageModel, texts: list[Document]) -> dict[str, float | None]:
    found = model.evaluate(texts, batch_size=64)
    bits = found.bits_per_byte
    return {
        "validation_loss": round(found.loss, 4),
        "bits_per_byte": None if bits is None else round(bits, 4),
    }


def measure_fluency(stories: Sequence[str]) -> dict[str, float]:
    """The share of sentences that the grammar can generate, and of stories about the same one or two children."""
    told = [sentence for text in stories for sentence in sentences(text)]
    children = [set(re.findall(r"[A-Z][a-z]+", text)) & {*GIRLS, *BOYS} for text in stories]
    return {
        "parsed": round(sum(map(parses, told)) / max(1, len(told)), 3),
        "same_names": round(sum(1 <= len(names) <= 2 for names in children) / max(1, len(children)), 3),
    }


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    time = parser.add_mutually_exclusive_group()
    time.add_argument("--steps", type=int, help="training steps (default: 25000)")
    time.add_argument("--minutes", type=float, help="training time instead of steps")
    parser.add_argument("--device", help="cpu or cuda (default: the best there is)")
    parser.add_argument("--out", type=Path, default=place("stories"), help="folder to write (replaced)")
    parser.add_argument("--stories", type=int, default=400_000, help="stories to train on")
    parser.add_argument(
        "--validation", type=int, default=VALIDATION_STORIES, help="other stories to measure the loss on"
    )
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--context", type=int, default=128, help="tokens; the longest story has about 100")
    parser.add_argument("--batch", type=int, default=64, help="windows of a step")
    parser.add_argument("--seed", type=int, default=0, help="of the training")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    given = options(arguments)
    steps = 25000 if given.steps is None and given.minutes is None else given.steps
    sizes = {name: getattr(given, name) for name in ("blocks", "heads", "width", "context", "batch")}
    request = TrainingRequest(
        minutes=given.minutes,
        steps=steps,
        preset="lecture",
        tokenizer="word",
        seed=given.seed,
        device=given.device,
        **sizes,
    )
    corpus = make_corpus(given.stories, validation=given.validation)
    time = f"--minutes {given.minutes:g}" if steps is None else f"--steps {steps}"
    command = ["python", "-m", "tools.train_stories", *time.split()]
    with tempfile.TemporaryDirectory(prefix="stories-") as temporary:
        run = train(corpus, request, Path(temporary, "run"), Path(temporary, "tokens"), command)
        size = pack(Path(temporary, "run"), given.out)
    model = load(given.out, "cpu")  # in float32, as users do
    return {
        "model": "stories",
        "parameters": model.config.n_parameter,
        "tokens_in_vocabulary": model.tokenizer.n_vocab,
        "bytes": size,
        "steps": run.trainer.step,
        "seconds": round(run.seconds, 1),
        **describe(model, corpus.validation),
    }


if __name__ == "__main__":
    print(json.dumps(main()))
