"""Sentences of our stories in which `it` may be either of two nouns."""

from clearhead.labs.antecedents import LECTURE, SentenceBatch, lecture, sentences, vocabulary
from clearhead.text.stories import parses


def told(sentence):
    return " ".join(sentence.words).replace(" .", ".")


def test_sentences_are_the_stories_own():
    learned, tested = sentences()
    assert len(learned) > 1000
    assert len(tested) > 100
    for each in [*learned[:50], *tested[:50], *lecture()]:
        assert parses(told(each)), told(each)
        assert each.meant in each.nouns


def test_no_two_nouns_that_are_tested_are_read_together():
    learned, tested = sentences()
    read = {each.nouns for each in learned}
    assert not read & {each.nouns for each in tested}
    assert LECTURE not in read
    # Each noun alone has been.
    assert {noun for each in tested for noun in each.nouns} <= {noun for pair in read for noun in pair}


def test_twins_differ_in_the_adjective_and_in_what_is_meant():
    tested = sentences()[1]
    for one, other in zip(tested[::2], tested[1::2], strict=True):
        assert one.before == other.before
        assert one.words[-2] != other.words[-2]
        assert (one.meant, other.meant) == one.nouns


def test_a_batch_knows_the_places():
    batch = SentenceBatch.of(lecture())
    words = [[vocabulary()[i] for i in row] for row in batch.ids.tolist()]
    assert " ".join(words[0]).strip() == "The chicken didn't cross the road because it was too tired ."
    assert [row[i] for row, i in zip(words, batch.pronouns.tolist(), strict=True)] == ["it", "it"]
    assert [row[i] for row, i in zip(words, batch.ends.tolist(), strict=True)] == [".", "."]
    assert [vocabulary()[i] for i in batch.answers.tolist()] == ["chicken", "road"]
