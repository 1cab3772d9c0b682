"""`clearhead words`: train word vectors on a text, or query them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from clearhead.cli.console import clock, err, out, print_json, read_texts
from clearhead.errors import UserError

if TYPE_CHECKING:
    from clearhead.word_vectors import WordVectors

PLAIN_LINES = 10  # progress lines without a terminal


def words(
    text: list[str] = typer.Argument(
        ...,
        metavar="TEXT",
        help="Text to train on: files, folders, glob patterns, or -; .gz and .xz too. Or a file of vectors to query.",
    ),
    save: Path = typer.Option(
        None, "--out", "-o", help="File for the vectors: .bin, .txt or .vec. [default: in runs/]"
    ),
    near: list[str] = typer.Option(
        None, metavar="WORD", help="Show the words nearest to this one (may be repeated)."
    ),
    analogy: tuple[str, str, str] = typer.Option(
        None, metavar="A B C", help="Show the words nearest to A - B + C; for example, king man woman."
    ),
    count: int = typer.Option(10, min=1, help="Number of words to show."),
    width: int = typer.Option(None, help="Features per vector. [default: 100]"),
    window: int = typer.Option(None, help="Maximum distance to a neighbor. [default: 5]"),
    negative: int = typer.Option(None, help="Negative samples per pair. [default: 5]"),
    min_count: int = typer.Option(
        None, help="Leave out words that occur fewer times than this. [default: 5]"
    ),
    sample: float = typer.Option(
        None,
        help="Subsampling threshold: occurrences of words more frequent than this are randomly skipped. "
        "[default: 0.001]",
    ),
    epochs: int = typer.Option(None, help="Passes over the text. [default: 5]"),
    learning_rate: float = typer.Option(
        None, help="Initial learning rate; it decays to almost 0. [default: 0.025]"
    ),
    seed: int = typer.Option(
        None, help="With --workers 1, the same seed gives the same vectors. [default: 0]"
    ),
    workers: int = typer.Option(None, help="Threads. [default: one per core]"),
    json: bool = typer.Option(False, "--json", help="Print the answers, or the result of training, as JSON."),
) -> None:
    """Train word vectors on a text, or query those in a file.

    Uses skip-gram with negative sampling.

    \b
    For example:
      clearhead words my.txt --near cat
      clearhead words austen.txt --out austen.bin
      clearhead words austen.bin --analogy king man woman
    """
    given = {
        "width": width,
        "window": window,
        "negative": negative,
        "min_count": min_count,
        "sample": sample,
        "epochs": epochs,
        "learning_rate": learning_rate,
        "seed": seed,
        "workers": workers,
    }
    settings = {name: value for name, value in given.items() if value is not None}
    vectors, report = _load(text, save, settings) or _train(text, save, settings)
    asked = _ask(vectors, near or [], analogy, count)
    if json:
        print_json({**report, "words": len(vectors), "width": vectors.width, **asked})
        return
    if not asked:
        out.print(f"{report['file']}: {len(vectors):,} words, {vectors.width} features each")
        return
    for word, found in asked.get("nearest", {}).items():
        _print(word, found)
    if found := asked.get("analogy"):
        _print(f"{analogy[0]} - {analogy[1]} + {analogy[2]}", found)


def _load(
    text: list[str], save: Path | None, settings: dict[str, Any]
) -> tuple[WordVectors, dict[str, Any]] | None:
    """The vectors, if the arguments name a file of vectors."""
    from clearhead.formats.word2vec import recognize

    files = [name for name in text if name != "-" and recognize(Path(name))]
    if not files:
        return None
    if len(text) > 1 or settings:
        option = f"--{next(iter(settings)).replace('_', '-')}" if settings else "other files"
        raise UserError(
            f"{files[0]} contains word vectors and cannot be combined with {option}: "
            f"to query the vectors, omit {option}"
        )
    from clearhead.word_vectors import load_words

    vectors = load_words(files[0])
    if save is not None:
        _check_free(save)
        vectors.save(save)
    return vectors, {"file": str(save or files[0])}


def _train(
    text: list[str], save: Path | None, settings: dict[str, Any]
) -> tuple[WordVectors, dict[str, Any]]:
    import time

    from clearhead.classics.skip_gram import Settings, SkipGramProgress
    from clearhead.cli.progress import live_line
    from clearhead.cli.train import name_after
    from clearhead.word_vectors import learn_words

    how = Settings(**settings)
    path = save or Path("runs", f"{name_after(text[0])}.bin")
    _check_free(path)
    texts = read_texts(text)
    start, past = time.monotonic(), [SkipGramProgress(0, 1, 0)]
    with live_line() as show:

        def show_progress(progress: SkipGramProgress) -> None:
            share, before = progress.words / progress.of, past[-1].words / past[-1].of
            took = clock(time.monotonic() - start)
            line = f"{share:4.0%} of {progress.of:,} words processed, {progress.pairs:,} pairs, {took}"
            show(line, int(share * PLAIN_LINES) > int(before * PLAIN_LINES))
            past[:] = [progress]

        vectors = learn_words(texts, how, show_progress)
    vectors.save(path)
    err.print(f"saved to {path}")
    seconds = round(time.monotonic() - start, 2)
    return vectors, {"file": str(path), "pairs": past[-1].pairs, "seconds": seconds}


def _check_free(path: Path) -> None:
    from clearhead.formats.word2vec import check_ending

    check_ending(path)
    if path.exists():
        raise UserError(f"{path} already exists: choose another name with --out, or move it elsewhere")


def _ask(
    vectors: WordVectors, near: list[str], analogy: tuple[str, str, str] | None, count: int
) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    if near:
        asked["nearest"] = _nearest(vectors, near, count)
    if analogy:
        asked["analogy"] = _named(vectors.analogy(*analogy, count=count))
    return asked


def _nearest(vectors: WordVectors, near: list[str], count: int) -> dict[str, list[dict[str, Any]]]:
    """The words nearest to each word. Unknown words are reported; if all are unknown, an error is raised."""
    found: dict[str, list[dict[str, Any]]] = {}
    unknown: list[UserError] = []
    for word in near:
        try:
            found[word] = _named(vectors.nearest(word, count))
        except UserError as error:
            unknown.append(error)
    if not found:
        raise unknown[0]
    for each in unknown:
        err.print(f"clearhead: {each}")
    return found


def _named(found: list[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"word": word, "cosine": cosine} for word, cosine in found]


def _print(heading: str, found: list[dict[str, Any]]) -> None:
    out.print(heading)
    longest = max((len(each["word"]) for each in found), default=0)
    for each in found:
        out.print(f"  {each['word']:<{longest}}  {each['cosine']:.3f}")
