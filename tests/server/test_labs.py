"""The labs, over the wire."""

import pytest

import clearhead
from clearhead.labs.catalog import LABS


def test_all_are_listed(client):
    listed = client.get("/api/labs").json()["labs"]
    assert [each["name"] for each in listed] == list(LABS)
    boost = listed[0]["settings"][2]
    assert (boost["name"], boost["kind"], boost["default"], boost["most"]) == ("boost", "number", 1.0, 100.0)


def test_a_lab_gives_what_it_gives_in_python(client):
    answer = client.post("/api/lab", json={"name": "attention", "settings": {"boost": 10}})
    assert answer.status_code == 200, answer.text
    expected = clearhead.lab("attention", boost=10).to_dict()
    assert answer.json()["parts"] == expected["parts"]
    assert {each["name"]: each["value"] for each in answer.json()["found"]} == expected["found"]
    curves = client.post("/api/lab", json={"name": "scale", "settings": {"widest": 8, "samples": 10}}).json()
    assert [part["kind"] for part in curves["parts"]] == ["lines"] * 3


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"name": "atention"}, "did you mean 'attention'"),
        ({"name": "attention", "settings": {"boost": 1000}}, "0 to 100"),
        ({"name": "attention", "settings": {"colour": "red"}}, "has no setting colour"),
        ({"name": "attention", "settings": {"sequence": "2"}}, "expected digits 0 and 1"),
        ({"name": "attention", "model": "small"}, "inspects no model"),
    ],
)
def test_what_cannot_be_run_is_told(client, body, said):
    answer = client.post("/api/lab", json=body)
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]
