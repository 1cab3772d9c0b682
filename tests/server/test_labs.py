"""The lab routes."""

import pytest

import clearhead
from clearhead.labs.catalog import LABS


def test_list_labs(client):
    listed = client.get("/api/labs").json()["labs"]
    assert [each["name"] for each in listed] == list(LABS)
    boost = listed[0]["settings"][2]
    assert (boost["name"], boost["kind"], boost["default"], boost["most"]) == ("boost", "number", 1.0, 100.0)


def test_lab_matches_python(client):
    response = client.post("/api/lab", json={"name": "attention", "settings": {"boost": 10}})
    assert response.status_code == 200, response.text
    expected = clearhead.lab("attention", boost=10).to_dict()
    assert response.json()["parts"] == expected["parts"]
    assert {each["name"]: each["value"] for each in response.json()["findings"]} == expected["findings"]
    curves = client.post("/api/lab", json={"name": "scale", "settings": {"widest": 8, "samples": 10}}).json()
    assert [part["kind"] for part in curves["parts"]] == ["lines"] * 3


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"name": "atention"}, "did you mean 'attention'"),
        ({"name": "attention", "settings": {"boost": 1000}}, "0 to 100"),
        ({"name": "attention", "settings": {"color": "red"}}, "has no setting color"),
        ({"name": "attention", "settings": {"sequence": "2"}}, "expected digits 0 and 1"),
        ({"name": "attention", "model": "small"}, "inspects no model"),
    ],
)
def test_invalid_lab_requests_are_rejected(client, body, message):
    response = client.post("/api/lab", json=body)
    assert response.status_code == 400
    assert message in response.json()["error"]["message"]
