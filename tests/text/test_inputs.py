"""Accepted text inputs, and errors for everything else."""

import pytest
import torch

from clearhead.errors import UserError
from clearhead.text.corpus import Document
from clearhead.text.inputs import encode_prompt, encode_text, read_documents, split_texts
from clearhead.text.tokenizer import Tokenizer

BYTE = Tokenizer.train("byte", [])


@pytest.mark.parametrize("given", ["hi", [104, 105], (104, 105), torch.tensor([104, 105])], ids=repr)
def test_text_is_a_str_or_token_ids(given):
    assert encode_text(given, BYTE, 257) == [104, 105]
    assert encode_prompt(given, BYTE, 257) == [104, 105]


def test_missing_prompt_starts_a_new_document():
    assert encode_prompt(None, BYTE, 257) == [BYTE.end_id]


def test_model_may_have_more_ids_than_its_tokenizer():
    assert encode_text([299], BYTE, 300) == [299]
    with pytest.raises(UserError, match="id 300 does not exist: ids range from 0 to 299"):
        encode_text([1, 300], BYTE, 300)
    with pytest.raises(UserError, match="id -1 does not exist"):
        encode_text([-1], BYTE, 300)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "the prompt is empty: expected at least one character"),
        (3, "the prompt has type int: expected a str"),
        ([], "the prompt has type list: expected a str"),
        ([True], "the prompt has type list"),
        (b"hi", "the prompt has type bytes"),
    ],
)
def test_other_inputs_are_rejected(given, words):
    with pytest.raises(UserError, match=words):
        encode_prompt(given, BYTE, 257)


def test_single_and_multiple_texts_are_distinguished():
    assert split_texts("hi") == (["hi"], True)
    assert split_texts([104, 105]) == ([[104, 105]], True)
    assert split_texts(["hi", [104]]) == (["hi", [104]], False)
    assert split_texts(torch.tensor([[1, 2], [3, 4]])) == ([[1, 2], [3, 4]], False)
    for given in ([], None, 3):
        with pytest.raises(UserError, match="expected a str, ids, or a list of texts"):
            split_texts(given)
    with pytest.raises(UserError, match=r"one of the texts is \[\]: expected a str, or ids"):
        split_texts(["hi", []])


def test_text_that_names_a_file_is_read_from_it(tmp_path):
    def texts(given):
        return ["".join(document.pieces()) for document in read_documents(given)]

    path = tmp_path / "my.txt"
    path.write_text("The cat sat.")
    assert texts(path) == texts(str(path)) == texts("The cat sat.") == ["The cat sat."]
    assert texts([Document.of("one", "A"), Document.of("other", "B")]) == ["A", "B"]
    for text in ("See a.txt", "It ends.\nb.txt", "x" * 2000 + ".txt"):
        assert texts(text) == [text]
    with pytest.raises(UserError, match=r"no such file: missing\.txt; pass the path of an existing file"):
        read_documents("missing.txt")
