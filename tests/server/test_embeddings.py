import pytest
import torch

from clearhead.inspect.word_senses import map_senses


def post(client, route, **body):
    response = client.post(f"/api/{route}", json={"model": "small", **body})
    return response.status_code, response.json()


def test_senses_match_python(client, server):
    sentences = ["a cat sat", "", "the cat ran to a cat", "no such word"]
    status, found = post(client, "senses", word="cat", sentences=sentences)
    assert status == 200, found
    kept = [sentences[0], sentences[2], sentences[3]]
    expected = map_senses([server.model.inspect(each) for each in kept], "cat")
    assert [(each["sentence"], each["position"]) for each in found["occurrences"]] == [
        ([0, 2, 3][text], at) for text, at in expected.places
    ]
    assert {each["piece"] for each in found["occurrences"]} == {"t"}  # the word's last token
    assert found["stages"][0] == "embedding"
    assert found["stages"][-1] == "final"
    torch.testing.assert_close(torch.tensor(found["cosines"]), expected.cosines, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(torch.tensor(found["points"]), expected.points, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"word": "dog", "sentences": ["a cat"]}, "does not occur"),
        ({"word": "cat", "sentences": ["", ""]}, "empty"),
        ({"word": "cat", "sentences": ["cat " * 2000]}, "the limit is 4096"),
    ],
)
def test_invalid_senses_requests_are_rejected(client, body, message):
    status, found = post(client, "senses", **body)
    assert status == 400
    assert message in found["error"]["message"]


def test_nearest_neighbors_of_a_vector(client, server):
    model = server.model
    status, found = post(client, "neighbors", text="abc", position=1, count=3)
    assert status == 200, found
    assert found["neighbors"][0]["text"] == "b"
    assert found["neighbors"][0]["cosine"] == pytest.approx(1, abs=1e-4)
    # The vector of "a", moved along the direction from "a" to "c", is nearest to "c".
    status, found = post(client, "neighbors", text="a", position=0, along={"start": "a", "end": "c"}, count=1)
    assert [each["text"] for each in found["neighbors"]] == ["c"]
    trace = model.inspect("abc")
    status, found = post(client, "neighbors", text="abc", stage="final", count=2)
    cosines = torch.nn.functional.cosine_similarity(
        model.network.unembedding.weight, trace["final"][-1][None], dim=-1
    )
    assert found["neighbors"][0]["id"] == cosines.argmax().item()
    assert post(client, "neighbors", text="abc", stage="middle")[0] == 400
    assert post(client, "neighbors", text="abc", along={"start": "ab", "end": "c"})[0] == 400
