"""A report on one model, or on several side by side, as one HTML file without scripts."""

from __future__ import annotations

from pathlib import Path

from clearhead.errors import UserError
from clearhead.evaluation.copied_text import CopiedText
from clearhead.evaluation.model_report import ModelReport, Surprise
from clearhead.export import report_figures as figures
from clearhead.export.inline import PAGE_HEAD, hash_source
from clearhead.export.report_charts import heat_map
from clearhead.export.report_figures import ModelReports
from clearhead.export.report_parts import ROLES, inline, paragraph, passage, plain, raw_table, section, table
from clearhead.export.report_summary import comparison, tiles
from clearhead.export.site import check_file
from clearhead.files import disk_errors, open_regular, write_text
from clearhead.summary_table import TableCell, plural
from clearhead.version import __version__

MARK = '<meta name="generator" content="clearhead report">'  # tells a report from other files
STYLE = Path(__file__).with_name("report.css")
SHADE, SHADES = 2.0, 5  # nats per shade of a token, and the number of shades
PAIRS = ("", "category", "items", "right", "95% interval", "right per byte", "chance", "bits per byte")


def save_report(reports: ModelReport | ModelReports, path: Path) -> None:
    """Write the page; only an earlier report is overwritten."""
    check_report_file(path)
    page = report_page([reports] if isinstance(reports, ModelReport) else reports)
    with disk_errors(path.parent, f"{path} was not saved"):
        write_text(path, page)


def check_report_file(path: Path) -> None:
    """Raise an error if a report cannot be written to this file, or another file is there."""
    check_file(path)
    if path.exists():
        with open_regular(path, "a report") as file:
            if MARK.encode() not in file.read(2000):
                raise UserError(f"{path} exists and is not a report: choose another file name")


def check_count(models: int) -> None:
    """Raise an error if a page cannot show this many models."""
    if not 1 <= models <= len(ROLES):
        raise UserError(f"a report on {models} models: expected 1 to {len(ROLES)}")


def report_page(reports: ModelReports) -> str:
    check_count(len(reports))
    if wrong := next((each for each in reports if not isinstance(each, ModelReport)), None):
        raise UserError(f"expected a report, as returned by report(…), not a {type(wrong).__name__}")
    style = STYLE.read_text(encoding="utf-8").strip()
    name = " and ".join(each.model for each in reports)
    head = PAGE_HEAD.format(
        policy=f"default-src 'none'; style-src '{hash_source(style)}'; base-uri 'none'; form-action 'none'",
        title=f"{inline(name)} · report · clearhead",
    )
    body = [
        f"<header><h1>{inline(name)}</h1>{''.join(_about(each, len(reports) > 1) for each in reports)}</header>",
        _summary(reports),
        section("What would help most", "".join(_advice(each, reports) for each in reports)),
        section("How well it predicts" if len(reports) == 1 else "How well they predict", _prediction(reports)),
        section("Largest surprises", "".join(map(_surprises, reports))),
        section("What it writes" if len(reports) == 1 else "What they write", _writing(reports)),
        section("Minimal pairs", "".join(map(_pairs, reports))),
        section("Heads by role", "".join(_heads(each, role) for each, role in zip(reports, ROLES, strict=False))),
        section("The run" if len(reports) == 1 else "The runs", _runs(reports)),
    ]  # fmt: skip
    foot = f"<footer>clearhead {inline(__version__)}. The docs explain every figure: docs/report.md.</footer>"
    return (
        f"{head}{MARK}\n<style>{style}</style>\n</head>\n<body>\n<main>{''.join(body)}</main>\n{foot}\n"
        "</body>\n</html>\n"
    )


def _about(report: ModelReport, several: bool) -> str:
    name = f"{report.model}: " if several else ""
    text = f"{name}{report.shape}. Measured on {report.text}, {len(report.losses.ids):,} tokens."
    return paragraph(text, "muted model")


def _summary(reports: ModelReports) -> str:
    return (
        tiles(reports[0])
        if len(reports) == 1
        else section("Summary", f'<div class="card">{comparison(reports)}</div>')
    )


def _advice(report: ModelReport, reports: ModelReports) -> str:
    heading = f"<h3>{inline(report.model)}</h3>" if len(reports) > 1 else ""
    if report.evidence is None:
        return heading + paragraph("Unknown: this requires a run whose training text is still available.")
    listed = report.evidence.advice()
    if not listed:
        return heading + paragraph(
            "It does not overfit, and its losses suggest nothing that would clearly help."
        )
    items = "".join(f"<li><b>{inline(each.what)}</b>: {inline(each.because)}</li>" for each in listed)
    return f'{heading}<ol class="advice">{items}</ol>'


def _prediction(reports: ModelReports) -> str:
    drawn = (figures.beside_others, figures.by_frequency, figures.by_position, figures.calibration)
    return f'<div class="grid">{"".join(draw(reports) for draw in drawn)}</div>'


def _surprises(report: ModelReport) -> str:
    """The tokens with the highest loss in their context, and the passage around the first, shaded by loss."""
    rows = [
        [f"{each.loss:.2f}", f'<span class="context">{_in_context(each)}</span>', _expected(each)]
        for each in report.surprises
    ]
    caption = f"{report.model}: the tokens with the highest loss, in nats"
    shaded = "".join(
        f'<span class="loss-{min(SHADES, int(loss / SHADE))}" title="{loss:.2f} nats">{plain(piece)}</span>'
        for piece, loss in report.passage
    )
    return (
        f'<div class="card">{raw_table(caption, ["loss", "in context", "expected"], rows)}</div>'
        f"<figure><figcaption><h3>Around the largest surprise</h3>"
        f"{paragraph('The redder a token, the less likely the model found it.')}</figcaption>"
        f'<p class="text passage">{shaded}</p></figure>'
    )


def _in_context(each: Surprise) -> str:
    return f"…{inline(each.before)}<mark>{_token(each.token)}</mark>{inline(each.after)}…"


def _expected(each: Surprise) -> str:
    return f'<span class="context">{_token(each.expected)}</span> ({each.confidence:.0%})'


def _token(token: str) -> str:
    """A token, made visible if it is only a space."""
    return inline(token if token.strip() else token.replace(" ", "␣"))


def _writing(reports: ModelReports) -> str:
    parts = []
    for report in reports:
        name = f"{report.model}, temperature" if len(reports) > 1 else "Temperature"
        for each in report.samples:
            text = f'<p class="text">{passage(each.text)}</p>'
            parts.append(f'<div class="card"><h3>{inline(f"{name} {each.temperature:g}")}</h3>{text}</div>')
        if report.longest_copy:
            of = f" of {report.model}" if len(reports) > 1 else ""
            about = paragraph(_length(report.copied), "muted")
            parts.append(
                f'<div class="card"><h3>{inline(f"The longest copied passage{of}")}</h3>{about}'
                f'<p class="text">{passage(report.longest_copy)}</p></div>'
            )
    return f'<div class="grid">{figures.copied(reports)}{"".join(parts)}</div>'


def _length(copied: CopiedText | None) -> str:
    """How long the longest copied passage is, and whether it counts as copied."""
    also = "It also occurs, token for token, in the training text."
    if copied is None or copied.longest >= copied.n:
        return also
    length = plural(copied.longest, "token")
    return f"{also} It has {length}, too few to count as copied: a passage needs {copied.n:,}."


def _pairs(report: ModelReport) -> str:
    if report.scores is None:
        return paragraph(
            f"{report.model} lacks some characters of the pairs, or its context is too short for them."
        )
    rows: list[list[TableCell]] = [list(group.row()[1:]) for group in report.scores.groups]
    caption = f"{report.model}: how often the right one of two sentences is more likely"
    return f'<div class="card">{table(caption, PAIRS[1:], rows)}</div>'


def _heads(report: ModelReport, role: str) -> str:
    """The best head for each role, and the score of every head."""
    found = report.heads
    if found is None:
        return ""
    rows: list[list[TableCell]] = []
    maps = []
    for kind, scores in found.kinds.items():
        block, head, best = found.best(kind)
        uniform = found.chance.get(kind)
        named = f"block {block}, head {head}" if uniform is None or best > uniform else "none above uniform"
        rows.append([kind, named, best, uniform])
        said = f"{kind}: the score of each head; the highest is {best:.2f}, block {block}, head {head}"
        maps.append(f"<div>{inline(kind)}{heat_map(said, scores.tolist(), role)}</div>")
    caption = f"{report.model}: mean attention to the token that the role names"
    headings = ["role", "best head", "highest score", "uniform attention"]
    about = "Each cell is a head, and each row a block: the stronger the color, the higher the score."
    return (
        f'<div class="card">{table(caption, headings, rows)}</div>'
        f'<figure><figcaption>{paragraph(about)}</figcaption><div class="maps">{"".join(maps)}</div></figure>'
    )


def _runs(reports: ModelReports) -> str:
    """The loss curves, and the settings side by side."""
    runs = [(each.model, each.run.settings) for each in reports if each.run is not None]
    if not runs:
        return ""
    names = dict.fromkeys(name for _, settings in runs for name in settings)
    rows: list[list[TableCell]] = [
        [name, *(_setting(settings.get(name)) for _, settings in runs)] for name in names
    ]
    settings = table("Settings", ["", *(model for model, _ in runs)], rows)
    return f'<div class="grid">{figures.loss_curve(reports)}<div class="card">{settings}</div></div>'


def _setting(value: TableCell) -> TableCell:
    return f"{value:g}" if isinstance(value, float) else value
