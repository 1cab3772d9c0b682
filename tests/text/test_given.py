"""Accepted text inputs, and errors for everything else."""

import pytest
import torch

from clearhead.errors import UserError
from clearhead.text.given import read_given, read_prompt, read_several
from clearhead.text.tokenizer import Tokenizer

BYTE = Tokenizer.train("byte", [])


@pytest.mark.parametrize("given", ["hi", [104, 105], (104, 105), torch.tensor([104, 105])], ids=repr)
def test_text_is_a_str_or_token_ids(given):
    assert read_given(given, BYTE, 257) == [104, 105]
    assert read_prompt(given, BYTE, 257) == [104, 105]


def test_missing_prompt_starts_a_new_document():
    assert read_prompt(None, BYTE, 257) == [BYTE.end_id]


def test_model_may_have_more_ids_than_its_tokenizer():
    assert read_given([299], BYTE, 300) == [299]
    with pytest.raises(UserError, match="id 300 does not exist: there are ids 0 to 299"):
        read_given([1, 300], BYTE, 300)
    with pytest.raises(UserError, match="id -1 does not exist"):
        read_given([-1], BYTE, 300)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "the prompt is empty: expected at least one character"),
        (3, "the prompt is a int: expected a str"),
        ([], "the prompt is a list: expected a str"),
        ([True], "the prompt is a list"),
        (b"hi", "the prompt is a bytes"),
    ],
)
def test_other_inputs_are_rejected(given, words):
    with pytest.raises(UserError, match=words):
        read_prompt(given, BYTE, 257)


def test_single_and_multiple_texts_are_distinguished():
    assert read_several("hi") == (["hi"], True)
    assert read_several([104, 105]) == ([[104, 105]], True)
    assert read_several(["hi", [104]]) == (["hi", [104]], False)
    assert read_several(torch.tensor([[1, 2], [3, 4]])) == ([[1, 2], [3, 4]], False)
    for given in ([], None, 3):
        with pytest.raises(UserError, match="expected a str, ids, or a list of texts"):
            read_several(given)
    with pytest.raises(UserError, match=r"one of the texts is '\[\]': expected a str, or ids"):
        read_several(["hi", []])
