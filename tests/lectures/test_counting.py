"""A counted n-gram: probabilities are relative frequencies."""

import pytest

from clearhead.lectures.counting import count_sentence

TEXT = "a b\na c\nb a b"


@pytest.mark.parametrize(
    ("sentence", "order", "probabilities"),
    [
        ("a b", 1, [3 / 7, 3 / 7]),
        ("a b", 2, [2 / 3, 2 / 3]),
        ("b a b", 2, [1 / 3, 1.0, 2 / 3]),
        ("b a b", None, [1 / 3, 1.0, 1.0]),
        ("c a", 2, [0.0, 0.0]),
    ],
)
def test_probabilities_are_relative_frequencies(sentence, order, probabilities):
    counted = count_sentence(TEXT, sentence, order)
    assert [each.probability for each in counted] == pytest.approx(probabilities)
    product = 1.0
    for each, probability in zip(counted, probabilities, strict=True):
        product *= probability
        assert each.product == pytest.approx(product)


def test_past_is_what_the_model_knows():
    assert [each.past for each in count_sentence(TEXT, "b a b", 1)] == ["", "", ""]
    assert [each.past for each in count_sentence(TEXT, "b a b", 2)] == ["start", "b", "a"]
    assert [each.past for each in count_sentence(TEXT, "b a b", None)] == ["start", "start b", "start b a"]
