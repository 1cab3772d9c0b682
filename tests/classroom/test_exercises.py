"""The exercises: each solution passes its own tests, a typical mistake does not, and the data differs by student."""

import pytest

from bench.classroom import MISTAKES
from clearhead.classroom.answers import plain, same
from clearhead.classroom.exercise import make_variant
from clearhead.classroom.exercises import EXERCISES, LECTURES, MOST_POINTS

BY_NAME = {exercise.name: exercise for exercise in EXERCISES}


def run(variant, *sources):
    names = variant.namespace()
    for source in sources:
        exec(source, names)
    return names


def test_twelve_exercises_across_three_lectures():
    assert len(EXERCISES) == len(BY_NAME) == 12
    assert [*dict.fromkeys(exercise.lecture for exercise in EXERCISES)] == [*LECTURES]
    assert MOST_POINTS == 36


@pytest.mark.parametrize("name", BY_NAME)
def test_solution_passes_visible_and_hidden_tests(name, variants):
    variant = next(each for each in variants if each.exercise.name == name)
    exercise = variant.exercise
    run(variant, variant.data_code(), exercise.solution, exercise.visible, variant.hidden_code())


@pytest.mark.parametrize("name", BY_NAME)
def test_typical_mistake_fails_the_hidden_tests(name, variants):
    variant = next(each for each in variants if each.exercise.name == name)
    exercise = variant.exercise
    wrong = exercise.solution.replace(*MISTAKES[name])
    wrong += ")" * (wrong.count("(") - wrong.count(")"))
    assert wrong != exercise.solution
    with pytest.raises(AssertionError, match="wrong"):
        run(variant, variant.data_code(), wrong, variant.hidden_code())


@pytest.mark.parametrize("exercise", EXERCISES, ids=BY_NAME)
def test_untouched_answer_fails_the_visible_tests(exercise, variants):
    variant = variants[EXERCISES.index(exercise)]
    with pytest.raises((AssertionError, AttributeError, TypeError, ValueError)):
        run(variant, variant.data_code(), exercise.starter, exercise.visible)


@pytest.mark.parametrize("exercise", EXERCISES, ids=BY_NAME)
def test_data_and_hidden_inputs_differ_by_student_and_seed(exercise):
    variants = [make_variant(exercise, *who) for who in ((1, "anna"), (1, "ben"), (2, "anna"))]
    again = make_variant(exercise, 1, "anna")
    assert again.data_code() == variants[0].data_code()
    assert again.hidden_seed == variants[0].hidden_seed
    assert len({variant.data_code() for variant in variants}) > 1
    assert len({variant.hidden_seed for variant in variants}) == 3
    if exercise.is_function:
        cases = [plain([list(case) for case in variant.cases()]) for variant in variants]
        assert cases[0] != cases[1]


def test_no_two_exercises_share_a_variable(variants):
    """All cells of a notebook share one namespace, and Otter runs all tests at the notebook's end."""
    names = [name for variant in variants for name in (*variant.data, variant.exercise.asks)]
    assert len(names) == len(set(names))


def test_answers_to_the_lecture_numbers():
    """With the lecture's digits and base, the result is [1/2, 1/2]."""
    names = {"digits": [0, 0, 1, 0], "base": 3}
    exec(BY_NAME["query-and-keys"].solution, names)
    assert names["query_result"] == [1 / 2, 1 / 2]
    names = {"n_zeros": 3, "wanted_weight": 0.99986}
    exec(BY_NAME["boosted-keys"].solution, names)
    assert names["boost"] == pytest.approx(10, abs=0.05)


def test_one_head_matches_the_model_for_another_head(variants):
    """The visible test compares with the model's own numbers; this one does so for a head other than the student's."""
    variant = next(each for each in variants if each.exercise.name == "one-head")
    data = "head_text, head_block, head_number = 'Once a girl named Mia lived near the lake.', 2, 3"
    run(variant, data, variant.exercise.solution, variant.exercise.visible)


def test_explained_weight_is_part_of_the_score(variants):
    variant = next(each for each in variants if each.exercise.name == "explain-this-weight")
    names = run(variant, variant.exercise.solution)
    query, key = variant.data["query_position"], variant.data["key_position"]
    assert names["head"].weights[query, key] > 0.4
    total = names["head"].why(query, key).total
    assert same(total, names["head"].scores[query, key])
