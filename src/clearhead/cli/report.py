"""`clearhead report`: what a model does with text that it has not seen, and what it copies."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from clearhead.cli.console import err, out, plural, print_json, read_texts
from clearhead.cli.options import DEVICE, MODEL
from clearhead.cli.progress import Show, live_line
from clearhead.cli.tables import emphasized_table, show_token

if TYPE_CHECKING:
    from clearhead.evaluation.model_report import ModelReport


def report(
    model: Path = MODEL,
    text: list[str] = typer.Argument(
        None,
        metavar="MODEL|TEXT",
        help="More models to compare, and a text that none was trained on. [default: their held-out text]",
    ),
    html: Path = typer.Option(
        None,
        "--html",
        metavar="FILE",
        help="Where to write the page. [default: report.html in the run's folder, or MODEL-report.html here]",
    ),
    device: str = DEVICE,
    json: bool = typer.Option(
        False, "--json", help="Print all figures as JSON; the page is written only with --html."
    ),
) -> None:
    """Report how good a model is, and what would help.

    Prints a summary and writes a page to open in a browser: bits per byte compared with other models, gzip and xz,
    calibration, surprises, copied text, minimal pairs, samples, the roles of heads, and whether the run overfits.
    Several models are compared on the same text.

    \b
    For example:
      clearhead report runs/my
      clearhead report runs/my other.txt --html my.html
      clearhead report runs/my runs/other --json
    """
    from clearhead.evaluation.reporting import report as make_report
    from clearhead.evaluation.reporting import reports as make_reports
    from clearhead.export.report_page import check_count, check_report_file, save_report
    from clearhead.formats.opening import is_model

    more = list(takewhile(is_model, text or []))
    models, texts = [model, *map(Path, more)], (text or [])[len(more) :]
    check_count(len(models))
    page = None if json and html is None else html or _default_page(models)
    if page is not None:
        check_report_file(page)
    read = read_texts(texts) if texts else None
    with live_line() as show:
        activity = _Activity(show)
        watching = (device, activity.begin, activity.count)
        found = make_reports(models, read, *watching) if more else [make_report(model, read, *watching)]
    if page is not None:
        save_report(found, page)
    if json:
        figures = [each.to_dict() for each in found]
        print_json(figures if more else figures[0])
    elif more:
        _compare(found)
    else:
        _show(found[0])
    if page is not None:
        (err if json else out).print(f"\nwrote {page}")


class _Activity:
    """Shows what is being done, and on a terminal also how much of it is done."""

    def __init__(self, show: Show) -> None:
        self.show, self.doing, self.line = show, "", ""

    def begin(self, doing: str) -> None:
        if self.line and err.is_terminal:
            err.print(self.line)  # above the live line
        self.doing, self.line = doing, f"{doing} …"
        self.show(self.line, True)

    def count(self, done: int, total: int, unit: str) -> None:
        self.line = f"{self.doing} … {done:,} of {total:,} {unit}"
        self.show(self.line, False)


def _default_page(models: list[Path]) -> Path:
    """In the run's folder, if there is only one model and it is a run; otherwise in the working folder."""
    from clearhead.formats.opening import name_of
    from clearhead.runs.run_folder import is_run

    if len(models) == 1 and is_run(models[0]):
        return models[0] / "report.html"
    return Path(f"{'-'.join(name_of(each) for each in models)}-report.html")


def _compare(found: list[ModelReport]) -> None:
    from clearhead.export.report_summary import best_columns, side_by_side

    out.print(f"on {found[0].text}; the best figure in a row is bold\n")
    out.print(
        emphasized_table(["", *(each.model for each in found)], side_by_side(found), best_columns(found))
    )
    for each in found:
        if each.evidence is not None and (advice := each.evidence.advice()):
            out.print(f"\nwhat would help {each.model}")
            for one in advice:
                out.print(f"  {one.what}: {one.because}")


def _others(found: ModelReport) -> list[str]:
    """The bits per byte of other models and programs."""
    others = {each.name: each.bits_per_byte for each in found.baselines} | found.compressed
    return [f"{name} {bits:.4f}" for name, bits in others.items()]


def _show(found: ModelReport) -> None:
    from clearhead.evaluation.baselines import compression_note

    rows = {
        "text": f"{found.text}, {len(found.losses.ids):,} tokens measured",
        "loss": f"{found.losses.loss:.4f} nats per token",
        "bits per byte": "   ".join([f"{found.bits_per_byte:.4f}", *_others(found)]),
        **({"note": note} if (note := compression_note(found.bytes)) else {}),
        "calibration": f"expected error {found.calibration.expected_error:.1%}; "
        f"the most likely token is right {found.calibration.accuracy:.1%} of the time",
    }
    if found.copied is not None and found.copied_by_people is not None:
        own, human = (plural(each.longest, "token") for each in (found.copied, found.copied_by_people))
        rows["copied"] = (
            f"{found.copied.share:.1%} of what it writes, in passages of {found.copied.n} or more tokens from its "
            f"training text (longest: {own}); {found.copied_by_people.share:.1%} of the held-out text (longest: "
            f"{human})"
        )
    if found.scores is not None:
        low, high = found.scores.groups[0].interval
        rows["minimal pairs"] = f"{found.scores.groups[0].accuracy:.1%} ({low:.1%} – {high:.1%}); chance 50%"
    if found.evidence is not None:
        verdict, reason = "yes" if found.evidence.overfits else "no", found.evidence.reason
        rows["overfits"] = f"{verdict}: {reason}" if reason else verdict
    width = max(map(len, rows))
    for name, row in rows.items():
        out.print(f"{name:<{width}}  {row}")
    if found.evidence is not None and (advice := found.evidence.advice()):
        out.print("\nwhat would help")
        for one in advice:
            out.print(f"  {one.what}: {one.because}")
    out.print("\nlargest surprises")
    for each in found.surprises[:5]:
        texts = (each.before, each.token, each.after, each.expected)
        before, token, after, expected = (show_token(one) for one in texts)
        out.print(
            f"{each.loss:6.2f}  …{before}[{token}]{after}   expected {expected} ({each.confidence:.0%})"
        )
