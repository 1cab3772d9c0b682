"""The labs there are. Described here, so that listing them loads none."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from clearhead.errors import UserError
from clearhead.labs.lab import Lab, Result, Setting, Watch

if TYPE_CHECKING:
    from clearhead.language_model import LanguageModel

LABS = {
    lab.name: lab
    for lab in (
        Lab(
            name="attention",
            title="Attention, number by number",
            says="The lecture's sequence of 0s and 1s, where 0 is [1, 0] and 1 is [0, 1]. A query is "
            "compared with every key, the scores become weights, and the weights mix the values. With "
            "keys ten times as long, almost all of the weight goes to the 1.",
            question="Which boost gives the 1 as much weight as all the 0s together? Does that depend on how "
            "many 0s there are?",
            settings=(
                Setting("sequence", "0010", "the digits, each 0 or 1", longest=64),
                Setting("query", "1", "the digit that is looked for", choices=("0", "1")),
                Setting("boost", 1.0, "how long the keys are", 0.0, 100.0),
                Setting("base", "e", "of the softmax; 3 is the lecture's shortcut", choices=("e", "3")),
            ),
            home="clearhead.labs.attention",
        ),
        Lab(
            name="scale",
            title="Why divide by √d_k",
            says="Queries and keys of random numbers: the longer the vectors, the further apart their "
            "products lie, as √d. Undivided, softmax then gives nearly everything to one word, and hardly "
            "learns any more; divided by √d_k, the weights stay as they were.",
            question="How large is d when the largest weight passes a half? What would happen to learning?",
            settings=(
                Setting("words", 16, "how many are looked at", 2, 256),
                Setting("widest", 1024, "the largest d", 2, 4096),
                Setting("samples", 200, "queries of each width", 10, 2000),
                Setting("seed", 0, "of the random numbers", 0, 2**31),
            ),
            home="clearhead.labs.scale",
        ),
        Lab(
            name="neighbours",
            title="Cat and dog: words in like surroundings",
            says="I have to make sure that the cat gets fed; I forgot to make sure that the dog gets fed. "
            "A skip-gram learns to guess the words around each word of our stories, and so words in like "
            "surroundings get like vectors: nearest to cat are the other animals, the dog among them.",
            question="Which words are nearest to anna, or to red? With a window of 10, is "
            "what could stand in the cat's place still what is nearest to it?",
            settings=(
                Setting("word", "cat", "whose neighbours are shown; one of the stories' words", longest=40),
                Setting("count", 15, "neighbours shown", 1, 100),
                Setting("stories", 2000, "how many are learned from", 500, 20_000),
                Setting("window", 2, "how far the farthest neighbour may be", 1, 20),
                Setting("width", 50, "numbers a vector", 2, 300),
                Setting("epochs", 10, "times through the stories", 1, 50),
                Setting("seed", 0, "of the vectors at the start, and of what is drawn", 0, 2**31),
            ),
            home="clearhead.labs.neighbours",
            long=True,
        ),
        Lab(
            name="stream",
            title="A head moves information between streams",
            says="Random tokens, said twice: only by looking back can what comes next be known. Two blocks "
            "learn it from scratch. A head of the first (which sees four positions) tells each token which "
            "one stood before it; heads of the second find the token that came after the same one then, and "
            "bring it here. The loss falls when both are there. Without one of them, its twin does what it "
            "can; without all of them the job is lost.",
            question="Which forms first, the head that looks at the token before, or the one that looks at "
            "what came after? What does the loss do until both are there?",
            settings=(
                Setting("heads", 2, "of each block", 1, 8),
                Setting("steps", 600, "of training", 1, 5000),
                Setting("seed", 0, "of the weights and the tokens", 0, 2**31),
            ),
            home="clearhead.labs.stream",
            long=True,
        ),
    )
}


def find_lab(name: str) -> Lab:
    if name in LABS:
        return LABS[name]
    near = get_close_matches(name, LABS, 1, 0.6)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(LABS)}"
    raise UserError(f"there is no lab {name!r}: {hint}")


def lab(
    name: str, model: LanguageModel | str | None = None, watch: Watch | None = None, **settings: Any
) -> Result:
    """Run a lab: `lab("attention", sequence="0010", boost=10.0)`. `figure` draws what it gives.

    A lab that looks into a model takes one by name, or as it is; without, its usual one. One that trains
    calls `watch` between its steps.
    """
    found = find_lab(name)
    given = found.check(settings)
    if found.long:
        given["watch"] = watch or (lambda: None)
    if found.model is not None:
        given["model"] = _load(model or found.model)
    elif model is not None:
        raise UserError(f"{name} looks into no model: leave model out")
    run: Callable[..., Result] = import_module(found.home).run
    return run(**given)


def _load(model: LanguageModel | str) -> LanguageModel:
    from clearhead.language_model import load

    return load(model) if isinstance(model, str) else model
