"""The analysis routes return the same results as a trace in Python."""

import pytest
import torch

TEXT, OTHER = "The duck was tired", "The duck was asleep"
KINDS = ("lecture", "gpt2", "modern")


@pytest.fixture(scope="module", params=KINDS)
def kind(request, registry_of_kinds, running_server):
    with running_server(registry_of_kinds) as server, server.client() as client:
        yield request.param, registry_of_kinds.model(request.param), client


def ask(kind, route, **more):
    name, _, client = kind
    response = client.post(f"/api/{route}", json={"model": name, "text": TEXT, **more})
    assert response.status_code == 200, response.text
    return response.json()


def post_invalid(kind, route, **more):
    name, _, client = kind
    response = client.post(f"/api/{route}", json={"model": name, "text": TEXT, **more})
    assert response.status_code == 400, response.text
    return response.json()["error"]["message"]


def test_compare_two_texts(kind):
    name, model, _ = kind
    other = {"model": name, "text": OTHER}
    found = ask(kind, "compare", other=other)
    expected = model.inspect(TEXT).compare(model.inspect(OTHER))
    assert [tuple(pair) for pair in found["pairs"]] == expected.pairs
    distances = {each["site"]: each["distance"] for each in found["distances"]}
    assert set(distances) == set(expected.one.sites())
    for site in ("block.0.head.1.weights", "block.1.input", "logits", "embedding", "block.1.hidden"):
        assert distances[site] == pytest.approx(expected.distance(site), rel=1e-3, abs=1e-6)
    parts = [ask(kind, "compare", other=other, blocks=[i, i + 1])["distances"] for i in range(2)]
    assert {each["site"]: each["distance"] for part in parts for each in part} == pytest.approx(distances)
    assert "no token in common" in post_invalid(kind, "compare", other={"model": name, "text": "zz"})
    assert "blocks 1 to 9" in post_invalid(kind, "compare", other=other, blocks=[1, 9])


def test_compare_with_an_edited_model(kind):
    name, _, client = kind
    other = {"model": name, "text": TEXT, "edits": [{"site": "block.0.head.0.output", "value": 0}]}
    found = {each["site"]: each["distance"] for each in ask(kind, "compare", other=other)["distances"]}
    assert found["embedding"] == found["block.0.input"] == 0
    assert found["block.0.head.0.output"] > 0
    assert found["block.1.input"] > 0
    missing = client.post(
        "/api/compare", json={"model": name, "text": TEXT, "other": {"model": "no", "text": TEXT}}
    )
    assert missing.status_code == 404


@pytest.mark.parametrize("over", ["head", "position"])
def test_ablation_effects_match_sweep(kind, over):
    _, model, _ = kind
    trace, token = model.inspect(TEXT), 101

    def measure(each):
        return each.logits[-1].log_softmax(-1)[token].item()

    found = ask(kind, "effects", token=token, over=over)
    assert found["before"] == pytest.approx(measure(trace), abs=1e-4)
    expected = trace.sweep("head" if over == "head" else "block × position", measure)
    torch.testing.assert_close(torch.tensor(found["after"]), expected, atol=1e-3, rtol=1e-3)
    only = ask(kind, "effects", token=token, over=over, blocks=[1, 2])
    assert only["after"] == [pytest.approx(found["after"][1], abs=1e-3)]


def test_patching_effects_match_edit(kind):
    _, model, _ = kind
    token, other = 101, TEXT.replace("tired", "happy")
    found = ask(kind, "effects", token=token, source=other)
    alone = model.inspect(TEXT).edit({"block.1.head.0.output": model.inspect(other)})
    assert found["after"][1][0] == pytest.approx(alone.logits[-1].log_softmax(-1)[token].item(), abs=1e-3)
    assert "tokens" in post_invalid(kind, "effects", token=token, source="short")
    assert "does not exist" in post_invalid(kind, "effects", token=10**6)


def test_attribution_along_a_path_matches_the_trace(kind):
    _, model, _ = kind
    trace, token = model.inspect(TEXT), 101
    found = ask(kind, "attribute", token=token)
    expected = trace.attribute(token)
    assert found["total"] == pytest.approx(trace.logits[-1, token].item(), abs=1e-3)
    assert found["position"] == len(trace) - 1
    assert {each["name"]: each["value"] for each in found["parts"]} == pytest.approx(
        dict(zip(expected.names, expected.values.tolist(), strict=True)), abs=1e-4
    )
    sizes = [abs(each["value"]) for each in found["parts"]]
    assert sizes == sorted(sizes, reverse=True)
    for head in found["heads"]:
        name = f"block.{head['block']}.head.{head['head']}.output"
        assert sum(head["values"]) == pytest.approx(expected[name], abs=1e-3)
    further = ask(kind, "attribute", token=token, through=[{"block": 1, "head": 0, "source": 3}], heads=0)
    assert (further["position"], further["heads"]) == (3, [])
    brought = next(each for each in found["heads"] if (each["block"], each["head"]) == (1, 0))["values"][3]
    assert further["total"] == pytest.approx(brought, abs=1e-3)
    assert "not before this readout" in post_invalid(
        kind, "attribute", token=token, through=[{"block": 0, "head": 0, "source": 3}] * 2
    )


def test_attribution_against_a_token_matches_the_trace(kind):
    _, model, _ = kind
    trace, token, other = model.inspect(TEXT), 101, 103
    found = ask(kind, "attribute", token=token, against=other)
    expected = trace.attribute(token, against=other)
    difference = trace.logits[-1, token] - trace.logits[-1, other]
    assert found["total"] == pytest.approx(difference.item(), abs=1e-3)
    assert {each["name"]: each["value"] for each in found["parts"]} == pytest.approx(
        dict(zip(expected.names, expected.values.tolist(), strict=True)), abs=1e-4
    )
    for head in found["heads"]:
        name = f"block.{head['block']}.head.{head['head']}.output"
        assert sum(head["values"]) == pytest.approx(expected[name], abs=1e-3)
    hop = {"block": 1, "head": 0, "source": 3}
    further = ask(kind, "attribute", token=token, against=other, through=[hop])
    along = trace.attribute(token, through=[(1, 0, 3)], against=other)
    assert further["total"] == pytest.approx(along.total, abs=1e-3)
    assert ask(kind, "attribute", token=token, against=None) == ask(kind, "attribute", token=token)
    assert "does not exist" in post_invalid(kind, "attribute", token=token, against=10**6)


def test_score_contributions_sum_to_the_score(kind):
    _, model, _ = kind
    view = model.inspect(TEXT).block[1].head[0]
    found = ask(kind, "why", block=1, head=0, query_position=-1, key_position=2, count=5)
    expected = view.why(-1, 2)
    assert found["score"] == pytest.approx(view.scores[-1, 2].item(), abs=1e-3)
    assert sum(each["value"] for each in found["query"]) == pytest.approx(found["score"], abs=1e-3)
    assert sum(each["value"] for each in found["key"]) == pytest.approx(found["score"], abs=1e-3)
    largest = [(each["name"], each["value"]) for each in found["key"]]
    assert largest == [(name, pytest.approx(value, abs=1e-4)) for name, value in expected.by_key.top(99)]
    assert [(each["query"], each["key"]) for each in found["pairs"]] == [pair[:2] for pair in expected.top(5)]
    apart = ask(kind, "why", block=1, head=0, query_position=-1, key_position=2, against_position=1)
    difference = (view.scores[-1, 2] - view.scores[-1, 1]).item()
    assert apart["score"] == pytest.approx(difference, abs=1e-3)
    assert "block 7" in post_invalid(kind, "why", block=7, head=0, query_position=0, key_position=0)


def test_logit_lens_matches_the_trace(kind):
    _, model, _ = kind
    trace = model.inspect(TEXT)
    found = ask(kind, "lens", token=101)["tokens"]
    assert (len(found), len(found[0])) == (2, len(trace))
    for block in range(2):
        probabilities = trace.lens()[block].softmax(-1)
        for row in range(len(trace)):
            cell = found[block][row]
            assert cell["probability"] == pytest.approx(probabilities[row].max().item(), abs=1e-4)
            assert cell["text"] == trace.token_texts([int(probabilities[row].argmax())])[0]
            assert cell["chosen"] == pytest.approx(probabilities[row, 101].item(), abs=1e-5)
    some = ask(kind, "lens", rows=[2, 4])["tokens"]
    assert [[each["text"] for each in row] for row in some] == [
        [each["text"] for each in row[2:4]] for row in found
    ]
    assert "rows 0 to 99" in post_invalid(kind, "lens", rows=[0, 99])


def test_logit_lens_of_some_rows_keeps_the_positions_of_edits(kind):
    edits = [{"site": "final", "scale": 2.0, "at": [3]}]
    found = ask(kind, "lens", edits=edits)["tokens"]
    some = ask(kind, "lens", rows=[2, 4], edits=edits)["tokens"]
    for row, expected in zip(some, found, strict=True):
        probabilities = [cell["probability"] for cell in expected[2:4]]
        assert [cell["probability"] for cell in row] == pytest.approx(probabilities, abs=1e-5)
