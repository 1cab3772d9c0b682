"""A grammar of sentences that know in which sense a word stands."""

import re
from itertools import islice

from clearhead.labs.sense_readers import _tokenizer
from clearhead.labs.sense_sentences import SENSES, write_sentences


def test_the_examples_are_never_written():
    examples = [each for senses in SENSES.values() for sense in senses for each in sense.examples]
    assert len(examples) == 16
    written = list(islice(write_sentences(0), 5000))
    assert not [text for text in written for example in examples if text.startswith(example + " ")]


def test_a_seed_writes_the_same_again():
    assert list(islice(write_sentences(1), 20)) == list(islice(write_sentences(1), 20))
    assert list(islice(write_sentences(1), 20)) != list(islice(write_sentences(2), 20))


def test_each_word_has_both_senses_and_nothing_is_left_unfilled():
    written = list(islice(write_sentences(0), 2000))
    assert not [text for text in written if re.search(r"[{}|]", text)]
    for word, senses in SENSES.items():
        for sense in senses:
            endings = [each.strip() for each in re.findall(r"[{|]([^{|}]+)", sense.ending)]
            assert any(f" {word} " in text and text.endswith(f"{endings[0]}.") for text in written)


def test_every_word_of_the_examples_is_a_token():
    for senses in SENSES.values():
        for sense in senses:
            for text in sense.examples:
                words = re.findall(r"'m|\w+", text)
                assert len(_tokenizer().encode(text)) == len(words), text
