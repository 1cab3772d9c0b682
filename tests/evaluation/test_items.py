"""Items are recognized by their fields, and a bad row is a one-line error that names the file and the line."""

import json

import pytest

from clearhead.errors import UserError
from clearhead.evaluation.item_file import read_items, write_items
from clearhead.evaluation.items import EvaluationItem, item_of


@pytest.mark.parametrize(
    ("row", "item"),
    [
        ({"good": "a", "bad": "b"}, EvaluationItem("pair", "", ("a", "b"))),
        ({"sentence_good": "a", "sentence_bad": "b", "n": 1}, EvaluationItem("pair", "", ("a", "b"))),
        ({"context": "c", "good": "a", "bad": "b"}, EvaluationItem("pair", "c", ("a", "b"))),
        ({"context": "c", "choices": ["x", "y"], "answer": 1}, EvaluationItem("choice", "c", ("x", "y"), 1)),
        ({"context": "", "choices": ["x", "y"], "answer": "x"}, EvaluationItem("choice", "", ("x", "y"), 0)),
        (
            {"context": "c", "choices": '["2", "1"]', "answer": "1"},
            EvaluationItem("choice", "c", ("2", "1"), 1),
        ),
        (
            {"context": "c", "choice_1": "y", "choice_0": "x", "choice_2": "", "answer": "1"},
            EvaluationItem("choice", "c", ("x", "y"), 1),
        ),
        (
            {"context": "c", "choices": ["2", "1", "0"], "answer": 1},
            EvaluationItem("choice", "c", ("2", "1", "0"), 1),
        ),
        (
            {"context": "c", "choices": ["2", "3", "4"], "answer": "4"},
            EvaluationItem("choice", "c", ("2", "3", "4"), 2),
        ),
        (
            {"context": "c", "choices": ["2", "3", "4"], "answer": 2},
            EvaluationItem("choice", "c", ("2", "3", "4"), 2),
        ),
        ({"context": "c", "target": "t", "category": 7}, EvaluationItem("cloze", "c", ("t",), 0, "7")),
    ],
)
def test_fields_decide_the_kind(row, item):
    assert item_of(row) == item
    assert item_of(item.to_row()) == item


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"good": "a"}, "its fields are good: expected good and bad, or context, choices and answer"),
        ({"good": "a", "bad": "a"}, "good and bad are the same text"),
        ({"good": "a", "bad": 3}, "bad is 3: expected a non-empty string"),
        ({"choices": ["x", "y"], "answer": 0}, "there is no context"),
        ({"context": "c", "choices": ["x"], "answer": 0}, "there is only one choice: expected at least 2"),
        ({"context": "c", "choices": "x y", "answer": 0}, "expected a JSON list of strings"),
        ({"context": "c", "choices": ["x", "y"], "answer": 2}, "answer is 2: expected a number from 0 to 1"),
        ({"context": "c", "choices": ["x", "y"], "answer": True}, "answer is True"),
        ({"context": "c", "choices": ["x", "x"], "answer": 1}, "is the answer and occurs twice"),
        (
            {"context": "c", "choices": ["1", "2", "0"], "answer": "1"},
            "answer is '1', the text of choice 0 and the index of another: write the index as a JSON number",
        ),
        ({"context": "c", "choices": ["5", "7"], "answer": 7}, "answer is 7: expected a number from 0 to 1"),
        ({"context": ["c"], "target": "t"}, r"context is \['c'\]: expected a string"),
        ({"context": "c", "target": ""}, "target is '': expected a non-empty string"),
        ({"context": "c", "choices": [], "answer": 0}, "there are no choices"),
        ({"context": "c", "choices": ["", "x"], "answer": 0}, "expected a list of non-empty strings"),
    ],
)
def test_bad_rows_are_rejected(row, message):
    with pytest.raises(UserError, match=message):
        item_of(row)


def test_files_of_each_format_give_the_same_items(tmp_path):
    rows = [
        {"context": "One, two", "choices": ["three", "four"], "answer": 0, "topic": "counting"},
        {"context": 'She said "no"', "choices": ["to me", "to you", "twice"], "answer": 2, "topic": "speech"},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n\n" for row in rows))
    table = [
        "context,choice_0,choice_1,choice_2,answer,topic",
        '"One, two",three,four,,0,counting',
        '"She said ""no""",to me,to you,twice,twice,speech',
    ]
    (tmp_path / "a.csv").write_text("\n".join(table) + "\n")
    expected = [(each["context"], tuple(each["choices"]), each["answer"], each["topic"]) for each in rows]
    for name in ("a.jsonl", "a.csv"):
        items = read_items([tmp_path / name], "topic")
        assert [(each.context, each.options, each.answer, each.category) for each in items] == expected
        assert items[1].place == f"{tmp_path / name}, line 3"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"good": "a", "bad": "b"}\n{"good": "a"}\n', "a.jsonl, line 2: its fields are good"),
        ("a.jsonl", '{"good": "a", "bad": "b"}\n\n[1]\n', "a.jsonl, line 3: this is not a JSON object"),
        ("a.jsonl", "\n", "a.jsonl contains no items"),
        (
            "a.csv",
            "context,choice_0,choice_1,answer\nx,a,b,1\nx,1,2,1\n",
            "a.csv, line 3: answer is '1', the text of choice 0 and the index of another",
        ),
        ("a.csv", "good,bad\na,b\nc\n", "a.csv, line 3: its fields are good"),
        ("a.txt", "x", "has the suffix .txt: expected one of .jsonl"),
    ],
)
def test_bad_files_are_refused(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=message):
        read_items([tmp_path / name])


def test_category_that_no_item_has_is_refused(tmp_path):
    write_items(tmp_path / "a.jsonl", [EvaluationItem("pair", "", ("a", "b"))])
    with pytest.raises(UserError, match="category = 'topic': no item has that field"):
        read_items([tmp_path / "a.jsonl"], "topic")


def test_written_items_are_read_back_and_never_replaced(tmp_path):
    items = [
        EvaluationItem("pair", "é", ("a", "b"), category="x"),
        EvaluationItem("cloze", "", ("t",)),
        EvaluationItem("choice", "c", ("x", "y"), 1),
    ]
    path = tmp_path / "a.jsonl"
    write_items(path, items)
    read = read_items([path])
    assert [each.to_row() for each in read] == [each.to_row() for each in items]
    with pytest.raises(UserError, match="already exists"):
        write_items(path, items)
