"""Recent lessons. A lesson keeps gradients, and after its step also copies of the weights and the optimizer state."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from clearhead.language_model import LanguageModel
from clearhead.lessons.lesson import Lesson
from clearhead.lessons.text_lesson import learn
from clearhead.server.errors import APIError

MAX_LESSONS = 4
MAX_KEPT = 2**26  # parameters of the models of all lessons but the newest
MAX_PARAMETERS = 400_000_000  # a step takes about six times the memory of the weights
MAX_TOKENS = 1024
LessonKey = tuple[str, tuple[int, ...], int]  # a model, token ids, and the number of the step


class LessonCache:
    """The most recently used lessons, as many as fit."""

    def __init__(self) -> None:
        self.lessons: OrderedDict[LessonKey, Lesson] = OrderedDict()

    def get(
        self,
        name: str,
        model: LanguageModel,
        ids: list[int],
        number: int = 1,
        watch: Callable[[], object] = lambda: None,
    ) -> Lesson:
        """The lesson of a step on these tokens, from the cache or computed from the latest earlier step in it."""
        key = name, tuple(ids), number
        if key not in self.lessons:
            size = model.transformer("a lesson").config.n_parameter
            if size > MAX_PARAMETERS:
                message = (
                    f"the model has {size:,} parameters; the limit for a training step is {MAX_PARAMETERS:,}"
                )
                raise APIError(400, "too_many_parameters", message, "model", count=size, most=MAX_PARAMETERS)
            if len(ids) > MAX_TOKENS:
                message = f"the text has {len(ids)} tokens; the limit is {MAX_TOKENS}"
                raise APIError(
                    400, "context_length_exceeded", message, "text", count=len(ids), most=MAX_TOKENS
                )
            lesson = self._newest(key)
            self._make_room(size)
            lesson = lesson or learn(model, ids)
            while lesson.number < number:
                watch()
                lesson = lesson.step()
            self.lessons[key] = lesson
        self.lessons.move_to_end(key)
        return self.lessons[key]

    def discard(self, name: str) -> None:
        """Drop the lessons of a model: they keep its weights in memory."""
        for key in [key for key in self.lessons if key[0] == name]:
            del self.lessons[key]

    def _newest(self, key: LessonKey) -> Lesson | None:
        """The newest of the earlier steps on the same tokens."""
        name, ids, number = key
        earlier = [known for known in self.lessons if known[:2] == (name, ids) and known[2] < number]
        return self.lessons[max(earlier)] if earlier else None

    def _make_room(self, size: int) -> None:
        """Drop the least recently used lessons before another one of this size is computed."""
        while self.lessons and (len(self.lessons) >= MAX_LESSONS or size + self._size > MAX_KEPT):
            self.lessons.popitem(last=False)

    @property
    def _size(self) -> int:
        return sum(lesson.network.config.n_parameter for lesson in self.lessons.values())
