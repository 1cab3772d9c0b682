"""A grammar that generates sentences with words in a known sense."""

import re
from itertools import islice

from clearhead.labs.sense_readers import _tokenizer
from clearhead.labs.sense_sentences import SENSES, write_sentences


def test_examples_are_never_generated():
    examples = [each for senses in SENSES.values() for sense in senses for each in sense.examples]
    assert len(examples) == 16
    written = list(islice(write_sentences(0), 5000))
    assert not [text for text in written for example in examples if text.startswith(example + " ")]


def test_same_seed_generates_the_same_sentences():
    assert list(islice(write_sentences(1), 20)) == list(islice(write_sentences(1), 20))
    assert list(islice(write_sentences(1), 20)) != list(islice(write_sentences(2), 20))


def test_both_senses_of_each_word_are_generated_without_placeholders():
    written = list(islice(write_sentences(0), 2000))
    assert not [text for text in written if re.search(r"[{}|]", text)]
    for word, senses in SENSES.items():
        for sense in senses:
            endings = [each.strip() for each in re.findall(r"[{|]([^{|}]+)", sense.ending)]
            assert any(f" {word} " in text and text.endswith(f"{endings[0]}.") for text in written)


def test_every_word_of_the_examples_is_one_token():
    for senses in SENSES.values():
        for sense in senses:
            for text in sense.examples:
                words = re.findall(r"'m|\w+", text)
                assert len(_tokenizer().encode(text)) == len(words), text
