import re
from collections import Counter
from itertools import islice
from random import Random

import pytest

from clearhead.text.stories import (
    ANIMALS,
    BOYS,
    CONTAINERS,
    FAMILIES,
    GIRLS,
    SCENES,
    THINGS,
    Pronoun,
    Span,
    parses,
    sentences,
    stories,
    story,
)

BARRIERS = {word for family in FAMILIES for kind in family for word in kind.get("barrier", ())}
PRONOUN = re.compile(r"\b(he|she|it|him|her|his)\b", re.IGNORECASE)
ANTECEDENTS = {
    **dict.fromkeys(("he", "him", "his"), BOYS),
    **dict.fromkeys(("she", "her"), GIRLS),
    "it": (*ANIMALS, *THINGS, *CONTAINERS, *BARRIERS),
}
WINOGRAD = re.compile(r"The (\w+) (?:didn't|couldn't) (?:\w+|fit in) the (\w+) because (it) was too (\w+)\.")
OF_THE_FIRST_NOUN = {"tired", "sleepy", "weak", "hungry", "scared"}
OF_THE_SECOND_NOUN = {"icy", "muddy", "wide", "deep", "high", "steep", "dark", "narrow", "small"}


@pytest.fixture(scope="module")
def many():
    return [story(0, number) for number in range(2000)]


@pytest.fixture(scope="module")
def every_sentence(many):
    return [sentence for one in many for sentence in sentences(one.text)]


def cut(text, span):
    return text[span.start : span.stop]


def test_a_story_is_a_pure_function_of_seed_and_number():
    assert story(3, 5) == story(3, 5)
    assert list(islice(stories(3), 4)) == [story(3, number) for number in range(4)]
    assert len({story(seed, number).text for seed in (0, 1, -1) for number in range(3)}) == 9


def test_the_first_story_is_the_same_on_every_machine():
    assert story(0, 0).text == (
        "One evening, Zoe went to the meadow. Her friend Finn was there too. A little mouse came to her. "
        '"Look at the little mouse!" said Finn. The mouse didn\'t cross the river because it was too deep. '
        "So Zoe showed the mouse another way. Zoe and Finn played with the mouse until dinner."
    )
    assert story(0, 0).pronouns[0] == Pronoun(Span(37, 40), antecedent=Span(13, 16))


def test_story_is_a_paragraph_of_five_to_nine_sentences(many):
    for one in many:
        assert 5 <= len(sentences(one.text)) <= 9
        assert 30 <= len(one.text.split()) <= 90
        assert re.fullmatch(r"""[A-Za-z ,.!?"']+""", one.text)
        assert one.text == " ".join(one.text.split())


def test_every_generated_sentence_parses(every_sentence):
    assert [sentence for sentence in every_sentence if not parses(sentence)] == []


def test_every_pronoun_is_recorded_once_with_its_latest_antecedent(many):
    for one in many:
        found = [match.span() for match in PRONOUN.finditer(one.text)]
        assert [(pronoun.span.start, pronoun.span.stop) for pronoun in one.pronouns] == found
        for pronoun in one.pronouns:
            noun = cut(one.text, pronoun.antecedent)
            assert noun in ANTECEDENTS[cut(one.text, pronoun.span).lower()]
            before = one.text[: pronoun.span.start]
            last = [match.start() for match in re.finditer(rf"\b{noun}\b", before)][-1]
            assert pronoun.antecedent.start == last


def test_a_story_has_at_most_one_boy_and_one_girl(many):
    for one in many:
        words = set(re.findall(r"\w+", one.text))
        assert len(words & set(BOYS)) <= 1
        assert len(words & set(GIRLS)) <= 1


def test_it_has_one_possible_antecedent_outside_because_clauses(many):
    for one in many:
        reasons = {match.start(3) for match in WINOGRAD.finditer(one.text)}
        for pronoun in one.pronouns:
            if cut(one.text, pronoun.span).lower() == "it" and pronoun.span.start not in reasons:
                words = set(re.findall(r"\w+", one.text[: pronoun.span.start]))
                assert words & {*ANIMALS, *THINGS, *CONTAINERS} == {cut(one.text, pronoun.antecedent)}


def test_because_clause_determines_the_antecedent_of_it(many):
    readings = Counter()
    for one in many:
        antecedents = {pronoun.span.start: pronoun.antecedent for pronoun in one.pronouns}
        for match in WINOGRAD.finditer(one.text):
            first, second, _, adjective = match.groups()
            if adjective in {"big", "large"}:
                noun = first if first in THINGS else second
            else:
                assert adjective in OF_THE_FIRST_NOUN | OF_THE_SECOND_NOUN
                noun = first if adjective in OF_THE_FIRST_NOUN else second
            assert cut(one.text, antecedents[match.start(3)]) == noun
            readings[noun == first] += 1
    assert readings.total() > len(many) / 3
    assert 0.45 < readings[True] / readings.total() < 0.55


def test_story_has_at_most_one_noun_of_each_kind(many):
    for one in many:
        words = set(re.findall(r"\w+", one.text))
        for nouns in (ANIMALS, THINGS, CONTAINERS, BARRIERS):
            assert len(words & set(nouns)) <= 1


def test_five_thousand_stories_are_distinct():
    assert len({one.text for one in islice(stories(7), 5000)}) == 5000


def test_the_vocabulary_is_small(many):
    words = {word for one in many for word in re.findall(r"[A-Za-z']+", one.text)}
    assert 150 <= len(words) <= 250


def test_every_template_is_used(every_sentence):
    def shape(template):
        return re.compile(re.sub(r"\\\{.*?\\\}", r"[\\w ]+", re.escape(template)))

    written = "\n".join(every_sentence)
    assert [one for scene in SCENES.values() for one in scene if not shape(one).search(written)] == []


@pytest.mark.parametrize(
    "sentence",
    [
        "The chicken didn't cross the road because it was too tired.",
        "The chicken didn't cross the road because it was too wide.",
        "The kite didn't fit in the box because it was too big.",
        "The kite didn't fit in the box because it was too small.",
        "Then she saw an owl with the umbrella.",
        '"Where is my kite?" asked Anna.',
        "Tom gave it back to her.",
    ],
)
def test_sentence_in_the_grammar_parses(sentence):
    assert parses(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "",
        "The road was too hungry.",
        "The chicken didn't cross the road because it was too deep.",
        "The chicken didn't climb the road because it was too wide.",
        "The road didn't cross the chicken because it was too wide.",
        "The chicken didn't cross the road because he was too tired.",
        "The chicken didn't cross the road because it was too",
        "The chicken didn't cross the road because it was too tired",
        "the chicken didn't cross the road because it was too tired.",
        "The chicken didn't crossed the road because it was too tired.",
        "The chicken didn't cross the the road because it was too tired.",
        "The kite didn't fit in the box because it was too hungry.",
        "One morning, Anna lost his kite.",
        "One morning, Tom lost her kite.",
        "One morning, anna lost her kite.",
        "Tom gave it back to him.",
        "Her friend Anna came to help her.",
        "Anna thanked Tom for her help.",
        "Anna was happy, and Tom was glad too.",
        "Then Anna carried the hungry dog.",
        "Once a boy named Anna lived near the park.",
        "Then she saw a owl with the kite.",
        "Then she saw an dog with the kite.",
        "She had an red kite.",
        '"Where is my kite?" asked Anna',
        '"Where is my kite? asked Anna.',
        "Where is my kite?",
        " She had a red kite.",
        "She had a red kite. ",
        "She had a red kite.\n",
        "She had a red kite. She had a red kite.",
        "She had a a red kite.",
        "She have a red kite.",
        "She had red a kite.",
    ],
)
def test_a_sentence_outside_the_grammar_does_not_parse(sentence):
    assert not parses(sentence)


def dropped(words, index, _):
    return words[:index] + words[index + 1 :]


def doubled(words, index, _):
    return words[: index + 1] + words[index:]


def swapped(words, index, random):
    other = random.choice([position for position in range(len(words)) if words[position] != words[index]])
    words = list(words)
    words[index], words[other] = words[other], words[index]
    return words


@pytest.mark.parametrize("damage", [dropped, doubled, swapped])
def test_corrupted_sentence_rarely_parses(every_sentence, damage):
    random = Random(0)
    damaged = []
    for sentence in every_sentence[:4000]:
        words = sentence.split()
        damaged.append(" ".join(damage(words, random.randrange(len(words)), random)))
    assert sum(parses(sentence) for sentence in damaged) < 0.05 * len(damaged)


def test_splitting_inverts_joining_sentences(many, every_sentence):
    for one in many:
        assert " ".join(sentences(one.text)) == one.text
    assert sentences(" ".join(every_sentence[:500])) == every_sentence[:500]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("She ran. He", ["She ran.", "He"]),
        ('"Where?" asked Tom. "Here!" said Mia.', ['"Where?" asked Tom.', '"Here!" said Mia.']),
        ('"Wait! I am here," said Mia. She ran.', ['"Wait! I am here," said Mia.', "She ran."]),
        ('Tom said, "I am here." Mia ran.', ['Tom said, "I am here."', "Mia ran."]),
        ('"Where is my\nShe ran. He ran.\n', ['"Where is my', "She ran.", "He ran."]),
    ],
)
def test_other_text_is_split_into_sentences(text, expected):
    assert sentences(text) == expected
