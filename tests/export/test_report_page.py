"""A report's page: its numbers, compared with the report's; untrusted texts; and what a browser shows."""

import base64
import hashlib
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import torch

import clearhead as ch
from clearhead.cli import run
from clearhead.errors import UserError
from clearhead.evaluation.baselines import Baseline
from clearhead.evaluation.calibration import Calibration
from clearhead.evaluation.copied_text import CopiedText
from clearhead.evaluation.model_report import ModelReport, Surprise, WrittenSample
from clearhead.evaluation.overfitting import TrainingEvidence
from clearhead.evaluation.run_summary import RunSummary
from clearhead.evaluation.token_losses import TokenLosses
from clearhead.export.report_charts import HEIGHT, LEFT, WIDTH
from clearhead.export.report_page import check_report_file, report_page
from clearhead.export.report_summary import best_columns, side_by_side
from clearhead.labs.heads import HeadScores

SITE_STYLE = Path(__file__).parents[2] / "web" / "src" / "style.css"
HOSTILE = "<script>alert('1')</script>&amp;\"\x00\n"
VOID = {"meta", "br", "circle", "rect", "line", "polyline"}


class Page(HTMLParser):
    """The tables by caption, the texts, and the pictures of a page. Raises an error if its tags do not match."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tables, self.pictures, self.tags, self.text = [], {}, [], [], ""
        self.feed(page)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        assert not any(name.startswith("on") or name in ("src", "href", "style") for name in given)
        self.tags.append(tag)
        if tag == "table":
            self.rows = []
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th", "caption"):
            self.cell = ""
            assert tag != "th" or given["scope"] in ("col", "row")
        elif tag == "svg":
            assert given["role"] == "img"
            self.pictures.append((given["aria-label"], []))
        elif tag in ("polyline", "circle"):
            self.pictures[-1][1].append(given)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "caption":
            self.caption = self.cell
        elif tag in ("td", "th"):
            self.rows[-1].append(self.cell)
        elif tag == "table":
            self.tables[self.caption] = self.rows

    def handle_data(self, data):
        self.cell = getattr(self, "cell", "") + data
        if self.open and self.open[-1] != "style":
            self.text += data


@pytest.fixture
def report():
    """A report with a text that must not be read as markup wherever a text can appear."""
    ids, losses = np.array([1, 2, 1, 0]), np.array([0.5, 2.0, 1.0, 4.5])
    measured = TokenLosses(np.arange(4), ids, losses, np.arange(4), ids, np.array([0.5, 0.5, 0.9, 0.9]))
    return ModelReport(
        model="my",
        shape="a small network",
        parameters=1234,
        text=HOSTILE,
        bytes=5000,
        losses=measured,
        bits_per_byte=1.5,
        compressed={"gzip": 2.5, "xz": 2.25},
        baselines=[Baseline("5-gram", 2.0, HOSTILE, own=True)],
        calibration=Calibration.of(measured.confidence, np.array([True, False, True, True])),
        by_frequency=measured.by_frequency(np.array([0, 5, 50])),
        counted_in_training=True,
        surprises=[Surprise(HOSTILE, HOSTILE, HOSTILE, 4.5, HOSTILE, 0.25)],
        passage=[(HOSTILE, 4.5), ("b", 0.1)],
        copied=CopiedText(5, 1000, 125, 12, 0, 3),
        copied_by_people=CopiedText(5, 1000, 10, 6, 0, 3),
        longest_copy=HOSTILE,
        evidence=TrainingEvidence([(10, 2.0), (20, 3.0)], 1000, 100, 1234, 3.0, 1.5),
        run=RunSummary({"text": HOSTILE, "steps": 20}, [(1, 5.0), (20, 1.0)], [(10, 2.0), (20, 3.0)]),
        samples=[WrittenSample(0.7, HOSTILE + "\n\n\nend")],
        scores=None,
        heads=None,
    )


def test_numbers_on_the_page_are_those_of_the_report(report):
    page = Page(report_page([report]))
    assert page.tables["Bits per byte"][1:] == [
        ["my", "1.5000", "a small network"],
        ["5-gram", "2.0000", page.tables["Bits per byte"][2][2]],
        ["gzip", "2.5000", "compresses the text alone"],
        ["xz", "2.2500", "compresses the text alone"],
    ]
    assert page.tables["Loss by token frequency"][1:] == [
        ["my", "0", "1", "4.5000"],
        ["my", "1 to 9", "2", "0.7500"],
        ["my", "10 to 99", "1", "2.0000"],
    ]
    assert page.tables["Calibration"][1:] == [
        ["my", "50% to 60%", "2", "50.0%", "50.0%"],
        ["my", "90% to 100%", "2", "90.0%", "100.0%"],
    ]
    assert page.tables["Copied text"][1:] == [
        ["my", "12.5%", "1,000", "5", "12"],
        ["held-out text", "1.0%", "1,000", "5", "6"],
    ]
    assert page.tables["Validation loss"][1:] == [["my", "10", "2.0000"], ["my", "20", "3.0000"]]
    positions = [[float(cell) for cell in row[1:]] for row in page.tables["Loss by position"][1:]]
    assert positions == [[1, 0.5], [2, 2], [3.5, 2.75]]
    assert "its validation loss was 2.0000 at step 10 and 3.0000 at the end" in page.text
    assert "50% lower" in page.text


def test_headers_of_a_short_compressed_text_are_noted(report):
    note = "The text has only 1,999 bytes, so the headers of gzip and xz are a large part of their figures."
    assert note in Page(report_page([replace(report, bytes=1999)])).text
    assert "headers of gzip" not in Page(report_page([replace(report, bytes=2000)])).text


def test_a_longest_passage_that_is_too_short_to_count_says_so(report):
    assert "too few to count as copied" not in Page(report_page([report])).text
    short = replace(report, copied=CopiedText(15, 1000, 0, 12, 0, 3))
    page = Page(report_page([short]))
    assert "It has 12 tokens, too few to count as copied: a passage needs 15." in page.text
    assert page.tables["Copied text"][1] == ["my", "0.0%", "1,000", "15", "12"]


def test_points_are_drawn_where_their_values_are(report):
    found = dict(Page(report_page([report])).pictures)
    first, second = ((float(one["cx"]), float(one["cy"])) for one in found["Calibration"] if "cx" in one)
    assert first == pytest.approx(((LEFT + WIDTH - 22) / 2, (10 + HEIGHT - 42) / 2), abs=0.1)  # 50%, 50%
    assert second == pytest.approx((LEFT + 0.9 * (WIDTH - 22 - LEFT), 10), abs=0.1)  # 90%, 100%
    assert len([one for one in found["Loss by training step"] if "points" in one]) == 2


def test_numbers_that_are_not_finite_are_left_out_of_charts(report):
    nan = float("nan")
    run = replace(
        report.run, training=[(1, 5.0), (2, nan), (3, float("inf")), (4, 1.0)], validation=[(2, nan)]
    )
    broken = replace(report, run=run, baselines=[Baseline("5-gram", nan, "", own=True)])
    page = report_page([broken])
    assert not re.search(r'(points|cx|cy|width|height)="[^"]*(nan|inf)', page)
    (line,) = re.findall(r'<polyline class="line [^"]*faint" points="([^"]*)"', page)
    assert len(line.split()) == 2
    nothing = replace(report, run=replace(run, training=[(1, nan)], validation=[]))
    assert "There is nothing to draw: the values are not finite." in Page(report_page([nothing])).text


def test_text_cannot_become_markup_and_nothing_is_loaded(report):
    written = report_page([report, replace(report, model=HOSTILE, evidence=None)])
    page = Page(written)
    assert "script" not in page.tags
    assert page.text.count("<script>alert('1')</script>&amp;\"\\x00") > 12
    assert "\x00" not in written
    assert not re.search(r"https?:|url\(|@import", written)
    [style] = re.findall(r"<style>(.*?)</style>", written, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in written


def test_models_side_by_side(report):
    other = replace(report, model="other", bits_per_byte=1.25, baselines=[])
    page = Page(report_page([report, other]))
    rows = next(rows for rows in page.tables.values() if rows[0] == ["", "my", "other"] and len(rows) > 6)
    assert ["bits per byte", "1.5000", "1.2500"] in rows
    assert '<td class="best">1.2500</td>' in report_page([report, other])
    better = replace(report.losses, losses=report.losses.losses / 2)
    columns = best_columns([report, replace(other, losses=better)])
    names = [name for name, *_ in side_by_side([report, other])]
    assert dict(zip(names, columns, strict=True)) == {
        "bits per byte": 2,
        "loss": 2,
        "perplexity": 2,
        "next token right": None,
        "calibration error": None,
        "copied": None,
        "overfits": None,
    }
    # The loss per token of other tokens cannot be compared.
    retokenized = replace(better, ids=report.losses.ids[::-1].copy())
    assert best_columns([report, replace(other, losses=retokenized)])[:3] == [2, None, None]
    assert [row[0] for row in page.tables["Bits per byte"][1:]] == [
        "my",
        "other",
        "5-gram of my",
        "gzip",
        "xz",
    ]
    shared = Page(report_page([report, replace(other, baselines=report.baselines)]))
    assert [row[0] for row in shared.tables["Bits per byte"][1:]] == ["my", "other", "5-gram", "gzip", "xz"]
    apart = replace(other, baselines=[replace(report.baselines[0], bits_per_byte=2.1)])
    named = [row[0] for row in Page(report_page([report, apart])).tables["Bits per byte"][1:]]
    assert named[2:4] == ["5-gram of my", "5-gram of other"]
    position = page.tables["Loss by position"]
    assert position[0][2] == "bits per byte"
    assert float(position[1][2]) == pytest.approx(0.5 * 1.5 / report.losses.loss, abs=1e-4)
    lines = [one["class"] for one in dict(page.pictures)["Calibration"] if "points" in one]
    assert lines == ["line model-0", "line model-1"]
    with pytest.raises(UserError, match="a report on 5 models: expected 1 to 4"):
        report_page([report] * 5)


def test_a_head_below_uniform_attention_has_no_role(report):
    low, high = torch.full((2, 2), 0.01), torch.tensor([[0.1, 0.9], [0.2, 0.3]])
    chance = {"previous": 0.05, "first": 0.05}
    page = Page(report_page([replace(report, heads=HeadScores(high, low, low, low, low, chance))]))
    [rows] = (rows for caption, rows in page.tables.items() if "the role names" in caption)
    named = {row[0]: row[1] for row in rows}
    assert (named["previous"], named["first"]) == ("block 0, head 1", "none above uniform")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in its file system")
def test_pipe_in_place_of_the_report_is_refused(tmp_path):
    os.mkfifo(tmp_path / "report.html")
    with pytest.raises(UserError, match="a pipe or device, expected a report"):
        check_report_file(tmp_path / "report.html")


def test_only_a_report_is_overwritten(report, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("<p>My own page</p>")
    with pytest.raises(UserError, match="exists and is not a report: choose another file"):
        ch.save_html(report, path)
    assert path.read_text() == "<p>My own page</p>"
    for _ in range(2):
        ch.save_html([report], tmp_path / "own.html")
    assert Page((tmp_path / "own.html").read_text()).tables
    with pytest.raises(UserError, match="a saved report has no views"):
        ch.save_html(report, path, views=["flow"])


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1366, 390])
def test_page_fits_into_the_window(report, browser, tmp_path, width, scheme):
    path, said = tmp_path / "report.html", []
    ch.save_html([report, replace(report, model="a model with a long name " * 3)], path)
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.on("console", lambda message: said.append(message.text))
    page.goto(path.as_uri())
    for each in page.locator("summary").all():
        each.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(251, 250, 247)", "dark": "rgb(21, 23, 27)"}[scheme]
    assert said == []  # the policy allows the styles
    page.close()


@pytest.mark.slow
def test_report_command_writes_the_page(story_text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.txt").write_text(story_text[:1500])
    assert run(["report", "stories", "other.txt", "--device", "cpu"]) == 0
    assert "wrote stories-report.html" in capsys.readouterr().out
    page = Page((tmp_path / "stories-report.html").read_text())
    loss = ch.load("stories", "cpu").evaluate(tmp_path / "other.txt").bits_per_byte
    assert float(page.tables["Bits per byte"][1][1]) == pytest.approx(loss, abs=1e-4)
    assert sum(label.startswith("induction:") for label, _ in page.pictures) == 1
    (tmp_path / "mine.html").write_text("mine")
    assert run(["report", "stories", "other.txt", "--html", "mine.html"]) == 2
    assert "mine.html exists and is not a report" in capsys.readouterr().err


def test_colors_are_those_of_the_page():
    """In the same order: light, then dark."""
    color = re.compile(r"^ *(--\w+): (#\w+);", re.MULTILINE)
    styles = (files("clearhead.export") / "report.css", SITE_STYLE)
    report, site = (color.findall(style.read_text(encoding="utf-8")) for style in styles)
    assert len(report) == 24
    assert report == site[: len(report)]
