"""The report of the server is that of Python."""

from pathlib import Path

import pytest

from clearhead.evaluation import reporting
from clearhead.finite import finite
from clearhead.text.corpus import Document


def test_a_report_on_a_given_text(client, server, story_text, monkeypatch):
    monkeypatch.setattr(reporting, "SAMPLE", 50)
    text = story_text[:600]
    answer = client.post("/api/report", json={"model": "small", "text": text}).json()
    expected = reporting.report_model(server.model, Path(), [Document.of("text", text)])
    only_here = {"text_kind", "passage", "counted_in_training"}
    figures = {name: value for name, value in answer.items() if name not in only_here}
    assert figures == finite(expected.to_dict())
    assert (answer["text_kind"], answer["counted_in_training"]) == ("given", False)
    assert [tuple(each) for each in answer["passage"]] == expected.passage
    assert client.get("/api/report/progress").json() == {"doing": ""}


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"model": "small"}, 400, "contains no held-out text: name a text"),
        ({"model": "small", "text": ""}, 400, "text"),
        ({"model": "missing", "text": "a"}, 404, "does not exist"),
    ],
)
def test_impossible_reports_are_refused(client, body, status, message):
    response = client.post("/api/report", json=body)
    assert response.status_code == status
    assert message in response.json()["error"]["message"]
