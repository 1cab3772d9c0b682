"""The labs there are. Described here, so that listing them loads none."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from clearhead.errors import UserError, guess
from clearhead.labs.lab import Lab, Result, Setting, Watch

if TYPE_CHECKING:
    from clearhead.language_model import LanguageModel

KING = "Once there was a king named Albert. He was old and tired, and the people of the land loved King"
WILL = "Damian had a secret child, a girl, and had written in his will that his belongings will belong to"

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
            name="any-one",
            title="Was any digit a 1?",
            says="A 1, and then a hundred 0s: was there a 1? A recurrent network must carry the news from "
            "state to state; attention looks straight back at it; an n-gram has forgotten it. Trained on "
            "short sequences, where the news has not far to go, a recurrent network may carry it on through "
            "200. Trained on 101 digits alone, it learns nothing, and attention learns it all: what "
            "attention buys is that the long case can be learned. This attention knows no positions, so "
            "that lengths it has not seen are nothing new to it. The one sequence without a 1 counts for "
            "half of what is right, all others for the other half: a network that learned nothing lies "
            "somewhere around a half. Around each line lie its seeds.",
            question="Why does the network that can carry the news through 200 digits not learn to do so "
            "from 101?",
            settings=(
                Setting(
                    "trained",
                    "both",
                    "on 5 to 20 digits, on 101, or both in turn",
                    choices=("both", "short", "long"),
                ),
                Setting("seeds", 3, "how often all is done, from other first weights", 1, 10),
                Setting("steps", 300, "of training", 1, 2000),
                Setting("batch", 16, "sequences a step", 2, 128),
                Setting("width", 32, "features of each network", 2, 128),
            ),
            home="clearhead.labs.any_one",
            long=True,
        ),
        Lab(
            name="matrix",
            title="One head, as loops and as matrices",
            says="The same head twice: word by word in loops, as one would explain it, and as four matrix "
            "products, as one computes it. The numbers are the same but for rounding; the time is not, and "
            "the more words there are, the further apart the two lie.",
            question="How much longer do the loops take when there are twice as many words, and how much "
            "longer the matrices? Why?",
            settings=(
                Setting("longest", 64, "the most words", 2, 256),
                Setting("width", 32, "features of each word, and of the head", 1, 256),
                Setting("repeats", 3, "times each is run; the fastest counts", 1, 20),
                Setting("seed", 0, "of the random numbers", 0, 2**31),
            ),
            home="clearhead.labs.matrix",
        ),
        Lab(
            name="position",
            title="What a word's place is good for",
            says="A sentence goes through a small transformer, and then once more with its words shuffled. "
            "Attention alone knows no order: without position information each word gets the very same "
            "vector wherever it stands, and the sentence is a bag of words. With position information the "
            "vectors change. The weights are random; no training could change the first half.",
            question="Why does a causal model know something about order even without position information? "
            "Which word would keep its vector if it stayed in its place?",
            settings=(
                Setting("sentence", "The dog bit the man and the man cried", "its words"),
                Setting("position", "learned", "what is added", choices=("learned", "sinusoidal", "rotary")),
                Setting("causal", False, "whether a word sees only those before it"),
                Setting("seed", 0, "of the weights and the shuffling", 0, 2**31),
            ),
            home="clearhead.labs.position",
        ),
        Lab(
            name="window",
            title="Writing through a window",
            says="A model that sees eight tokens writes on: from w1 … w8 comes w9, from w2 … w9 comes w10, "
            "and so on. What has left the window is as if it had never been said: the text is the same "
            "whatever stood there. With the whole text in sight, the same model may write something else.",
            question="How wide must the window be before the model knows the king's name again?",
            settings=(
                Setting("prompt", KING, "what the model goes on from", longest=1000),
                Setting("context", 8, "tokens in sight", 1, 256),
                Setting("tokens", 10, "to write", 1, 100),
            ),
            home="clearhead.labs.window",
            model="smollm2",
        ),
        Lab(
            name="blank",
            title="Which words decide the blank",
            says="Damian's will: which earlier words make the model say a word in the blank? Two answers. "
            "Attribution splits the word's logit exactly over what the heads at the end bring from each "
            "token; it sees the last step alone. Ablation silences each token's vector where it enters, and "
            "measures what becomes of the word's log-probability; it sees every way that leads there.",
            question="Heads at the end bring little from some tokens that are badly missed. What might those "
            "do for the others? And which words decide if the blank is his?",
            settings=(
                Setting("sentence", WILL, "up to the blank", longest=1000),
                Setting("word", "her", "for the blank; its first token counts", longest=40),
            ),
            home="clearhead.labs.blank",
            model="smollm2",
        ),
        Lab(
            name="senses",
            title="One word, two senses",
            says="I'm scared of bats; I swing bats. A static vector is the same in both. In a transformer a "
            "word begins with its static vector, and block by block takes in the words before it: its "
            "vectors are contextual. So are the states of a recurrent network. How far two lie apart depends "
            "on more than the sense, so two of the same sense are the measure. Two small networks, an LSTM "
            "and a transformer, learn a few hundred words here, from sentences in which what comes after the "
            "word depends on its sense; those that are shown they have not read. Such a network knows no "
            "more of bats than which of its words go with which. In the model, stage 0 is the embedding, "
            "then comes the input of each block, then the end.",
            question="At which block do the two senses part? Take sentences of your own in which the word "
            "that tells the sense comes after: what happens in a model that only looks back?",
            settings=(
                Setting(
                    "word", "bats", "bats or bank, or another one with sentences of your own", longest=40
                ),
                Setting("one", "", "sentences of one sense, a / between them", longest=2000),
                Setting("other", "", "sentences of the other sense, a / between them", longest=2000),
                Setting("seeds", 3, "how often small networks learn here; 0 leaves that out", 0, 10),
                Setting("steps", 200, "of training", 1, 2000),
            ),
            home="clearhead.labs.senses",
            model="smollm2",
            alone=True,
            long=True,
        ),
        Lab(
            name="pronoun",
            title="Which word is it?",
            says="The chicken didn't cross the road because it was too tired, or too wide. The lecture's "
            "picture shows the word it looking at what it stands for. In a model that only looks back, it "
            "cannot have seen the adjective: its attention is the same in both sentences. The adjective is "
            "the first that can know, and it does: all heads together, tired looks more at the chicken and "
            "wide more at the road. Then two small transformers learn from sentences of our stories, which "
            "know the truth. They fill in blanks, and a pronoun is a blank too: at it, and again at the end, "
            "they are to say the noun that is meant. In the one that sees both ways the picture comes out: "
            "the pronoun looks at its noun, and put in its place, that of the other sentence turns the "
            "answer round. In the one that looks back it is the same in both sentences and guesses; only the "
            "end can know. The two nouns of a sentence that tests them were never read together.",
            question="Why is the model that looks back never right more than half of the time at it? Switch "
            "asked off, so that blanks are all that is filled in: does it look at its noun then? And what "
            "does a probe still read there?",
            settings=(
                Setting("before", "The chicken didn't cross the road because it was too", "what is the same"),
                Setting("first", "tired", "the word that means the one", longest=40),
                Setting("second", "wide", "the word that means the other", longest=40),
                Setting("one", "chicken", "what the first word means", longest=40),
                Setting("other", "road", "what the second word means", longest=40),
                Setting("pronoun", "it", "the word that stands for one of them", longest=40),
                Setting("seeds", 3, "how often two models learn from stories; 0 leaves that out", 0, 10),
                Setting("steps", 300, "of training", 1, 2000),
                Setting("asked", True, "whether the pronoun's noun is asked for, and not blanks alone"),
            ),
            home="clearhead.labs.pronoun",
            model="smollm2",
            alone=True,
            long=True,
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
            home="clearhead.labs.neighbors",
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
    raise UserError(f"there is no lab {name!r}; there are {', '.join(LABS)}{guess(name, LABS)}")


def lab(
    name: str, model: LanguageModel | str | None = None, watch: Watch | None = None, **settings: Any
) -> Result:
    """Run a lab: `lab("attention", sequence="0010", boost=10.0)`. `figure` draws what it gives.

    A lab that looks into a model takes one by name, or as it is; without, its usual one, or none where that
    was not pulled and the lab has more to show. One that trains calls `watch` between its steps.
    """
    found = find_lab(name)
    given = found.check(settings)
    if found.long:
        given["watch"] = watch or (lambda: None)
    missing = model is None and found.alone and not _is_here(found.model)
    if found.model is not None:
        given["model"] = None if missing else _load(model or found.model)
    elif model is not None:
        raise UserError(f"{name} looks into no model: leave model out")
    run: Callable[..., Result] = import_module(found.home).run
    result = run(**given)
    if missing:
        result.found[f"{found.model}, which was not looked into"] = f"clearhead pull {found.model}"
    return result


def _is_here(name: str | None) -> bool:
    from clearhead.formats.pulled import find

    return name is not None and find(name) is not None


def _load(model: LanguageModel | str) -> LanguageModel:
    from clearhead.language_model import load

    return load(model) if isinstance(model, str) else model
