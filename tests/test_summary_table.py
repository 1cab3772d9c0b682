"""Tables that describe an object in `repr` and in notebooks."""

from clearhead.summary_table import html_table, plural, text_table


def test_text_table_aligns_words_left_and_numbers_right():
    rows = [("my", 1000, 1.5), ("another", 7, None)]
    assert text_table(("run", "steps", "loss"), rows).splitlines() == [
        "run      steps    loss",
        "my       1,000  1.5000",
        "another      7",
    ]
    assert text_table((), [("a", "x"), ("bc", "y")]) == "a   x\nbc  y"


def test_html_table_escapes_everything():
    hostile = "<script>&\"'"
    table = html_table((hostile,), [(hostile,)], hostile)
    assert "<script" not in table
    assert table.count("&lt;script&gt;&amp;&quot;&#x27;") == 3


def test_html_table_without_headings_names_its_rows():
    assert html_table((), [("steps", 1000)]) == (
        '<table><tbody><tr><th style="text-align: left">steps</th>'
        '<td style="text-align: left">1,000</td></tr></tbody></table>'
    )


def test_plural():
    assert [plural(count, "step") for count in (0, 1, 2000)] == ["0 steps", "1 step", "2,000 steps"]
