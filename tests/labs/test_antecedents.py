"""Sentences from the stories in which `it` can refer to either of two nouns."""

from clearhead.labs.antecedents import LECTURE, SentenceBatch, lecture, sentences, vocabulary
from clearhead.text.stories import parses


def told(sentence):
    return " ".join(sentence.words).replace(" .", ".")


def test_sentences_match_the_story_grammar():
    learned, tested = sentences()
    assert len(learned) > 1000
    assert len(tested) > 100
    for each in [*learned[:50], *tested[:50], *lecture()]:
        assert parses(told(each)), told(each)
        assert each.meant in each.nouns


def test_tested_noun_pairs_do_not_occur_in_training():
    learned, tested = sentences()
    read = {each.nouns for each in learned}
    assert not read & {each.nouns for each in tested}
    assert LECTURE not in read
    # Each noun by itself does occur in training.
    assert {noun for each in tested for noun in each.nouns} <= {noun for pair in read for noun in pair}


def test_twin_sentences_differ_in_adjective_and_antecedent():
    tested = sentences()[1]
    for one, other in zip(tested[::2], tested[1::2], strict=True):
        assert one.before == other.before
        assert one.words[-2] != other.words[-2]
        assert (one.meant, other.meant) == one.nouns


def test_batch_records_pronoun_and_end_positions():
    batch = SentenceBatch.of(lecture())
    words = [[vocabulary()[i] for i in row] for row in batch.ids.tolist()]
    assert " ".join(words[0]).strip() == "The chicken didn't cross the road because it was too tired ."
    assert [row[i] for row, i in zip(words, batch.pronouns.tolist(), strict=True)] == ["it", "it"]
    assert [row[i] for row, i in zip(words, batch.ends.tolist(), strict=True)] == [".", "."]
    assert [vocabulary()[i] for i in batch.answers.tolist()] == ["chicken", "road"]
