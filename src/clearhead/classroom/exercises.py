"""The twelve exercises, in the order of the notebook."""

from __future__ import annotations

from clearhead.classroom import lecture_000, lecture_001, lecture_002
from clearhead.classroom.exercise import Exercise

EXERCISES: tuple[Exercise, ...] = (*lecture_000.EXERCISES, *lecture_001.EXERCISES, *lecture_002.EXERCISES)
LECTURES = {
    "000": "From static to contextual embeddings, and the transformer block",
    "001": "Transformers by worked numbers",
    "002": "One attention head, by matrices",
}
MOST_POINTS = sum(exercise.points for exercise in EXERCISES)
