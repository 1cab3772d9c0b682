"""The catalog of labs. Described here, so that listing them imports none."""

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
            description="The lecture's sequence of 0s and 1s, where 0 is [1, 0] and 1 is [0, 1]. A query is compared "
            "with every key, the scores become weights, and the weights mix the values. With keys ten "
            "times as long, almost all of the weight goes to the 1.",
            question="Which boost gives the 1 as much weight as all the 0s together? Does it depend on how "
            "many 0s there are?",
            settings=(
                Setting("sequence", "0010", "the digits, each 0 or 1", longest=64),
                Setting("query", "1", "the digit to look for", choices=("0", "1")),
                Setting("boost", 1.0, "scale of the keys", 0.0, 100.0),
                Setting("base", "e", "base of the softmax; 3 is the lecture's shortcut", choices=("e", "3")),
            ),
            home="clearhead.labs.attention",
        ),
        Lab(
            name="any-one",
            title="Was any digit a 1?",
            description="A 1, and then a hundred 0s: was there a 1? A recurrent network must carry the information "
            "from state to state; attention looks straight back at it; an n-gram model has forgotten it. "
            "Trained on short sequences, a recurrent network may carry the information through 200 "
            "digits. Trained on 101 digits only, it learns nothing, and attention learns everything: the "
            "advantage of attention is that the long case can be learned. This attention has no "
            "positions, so unseen lengths are nothing new to it. The one sequence without a 1 counts for "
            "half of the accuracy, all others for the other half: a network that has learned nothing "
            "scores about one half. The band around each line shows the range over seeds.",
            question="Why does a network that can carry information through 200 digits not learn to do so "
            "from 101?",
            settings=(
                Setting(
                    "trained",
                    "both",
                    "on 5 to 20 digits, on 101, or on both in turn",
                    choices=("both", "short", "long"),
                ),
                Setting("seeds", 3, "repetitions with other initial weights", 1, 10),
                Setting("steps", 300, "training steps", 1, 2000),
                Setting("batch", 16, "sequences per step", 2, 128),
                Setting("width", 32, "features of each network", 2, 128),
            ),
            home="clearhead.labs.any_one",
            long=True,
        ),
        Lab(
            name="matrix",
            title="One head, as loops and as matrices",
            description="The same head twice: token by token in loops, as one would explain it, and as four matrix "
            "products, as one computes it. The numbers agree up to rounding; the time does not, and the "
            "gap grows with the number of tokens.",
            question="How much longer do the loops take for twice as many tokens, and how much "
            "longer the matrices? Why?",
            settings=(
                Setting("longest", 64, "largest number of tokens", 2, 256),
                Setting("width", 32, "features of each token, and of the head", 1, 256),
                Setting("repeats", 3, "runs of each; the fastest counts", 1, 20),
                Setting("seed", 0, "seed of the random numbers", 0, 2**31),
            ),
            home="clearhead.labs.matrix",
        ),
        Lab(
            name="position",
            title="What positions are good for",
            description="A sentence goes through a small transformer, and then once more with its words shuffled. "
            "Attention alone knows no order: without positions, each word gets exactly the same vector "
            "wherever it stands, and the sentence is a bag of words. With positions, the vectors change. "
            "The weights are random; training could not change the first result.",
            question="Why does a causal model know something about order even without positions? "
            "Which word would keep its vector if it stayed in its place?",
            settings=(
                Setting("sentence", "The dog bit the man and the man cried", "its words"),
                Setting(
                    "position", "learned", "kind of positions", choices=("learned", "sinusoidal", "rotary")
                ),
                Setting("causal", False, "whether a word attends only to those before it"),
                Setting("seed", 0, "seed of the weights and the shuffling", 0, 2**31),
            ),
            home="clearhead.labs.position",
        ),
        Lab(
            name="window",
            title="Generating through a window",
            description="A model with a context of eight tokens generates text: w1 … w8 give w9, w2 … w9 give w10, "
            "and so on. What has left the window has no influence: the text is the same whatever stood "
            "there. With the whole text in its context, the same model may generate something else.",
            question="How wide must the window be for the model to know the king's name again?",
            settings=(
                Setting("prompt", KING, "the prompt", longest=1000),
                Setting("context", 8, "context in tokens", 1, 256),
                Setting("tokens", 10, "tokens to generate", 1, 100),
            ),
            home="clearhead.labs.window",
            model="smollm2",
        ),
        Lab(
            name="blank",
            title="Which words determine the blank",
            description="Damian's will: which earlier words make the model predict a word in the blank? Two answers. "
            "Attribution splits the word's logit exactly into what the heads at the last position move "
            "there from each token; it sees the last step only. Ablation zeroes each token's vector at "
            "the input and measures the effect on the word's log-probability; it sees every path.",
            question="The heads at the end move little from some tokens whose ablation has a large effect. What might "
            "those tokens do for the others? And which words determine whether the blank is his?",
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
            description="I'm scared of bats; I swing bats. A static vector is the same in both. In a transformer a "
            "word starts from its static vector and, block by block, takes in the words before it: its "
            "vectors are contextual. So are the states of a recurrent network. The distance between two "
            "vectors depends on more than the sense, so pairs of the same sense are the baseline. Two "
            "small networks, an LSTM and a transformer, learn a few hundred words here, from sentences in"
            " which what follows the word depends on its sense; the sentences shown are not among them. "
            "Such a network knows no more about bats than which of its words go together. In the model, "
            "stage 0 is the embedding, followed by the input of each block and the output.",
            question="At which block do the two senses separate? Try your own sentences, in which the word "
            "that reveals the sense comes later: what happens in a causal model?",
            settings=(
                Setting("word", "bats", "bats or bank, or another one with your own sentences", longest=40),
                Setting("one", "", "sentences of one sense, separated by /", longest=2000),
                Setting("other", "", "sentences of the other sense, separated by /", longest=2000),
                Setting("seeds", 3, "small networks trained per kind; 0 skips this", 0, 10),
                Setting("steps", 200, "training steps", 1, 2000),
            ),
            home="clearhead.labs.senses",
            model="smollm2",
            alone=True,
            long=True,
        ),
        Lab(
            name="pronoun",
            title="What does “it” refer to?",
            description="The chicken didn't cross the road because it was too tired, or too wide. The lecture's "
            "picture shows “it” attending to its antecedent. In a causal model, “it” cannot have seen the"
            " adjective: its attention is the same in both sentences. The adjective is the first token "
            "that can know, and it does: over all heads, “tired” attends more to the chicken and “wide” "
            "more to the road. Then two small transformers learn from sentences of the stories, whose "
            "antecedents are known. They fill in blanks, and a pronoun is a blank too: at “it”, and again"
            " at the end, they predict the antecedent. In the bidirectional one, the lecture's picture "
            "appears: the pronoun attends to its noun, and patching in its vector from the other sentence"
            " flips the answer. In the causal one, “it” has the same vector in both sentences and can "
            "only guess; only the end can know. The two nouns of a test sentence never occurred together "
            "in training.",
            question="Why is the causal model never right more than half of the time at “it”? Switch "
            "asked off, so that only blanks are filled in: does “it” attend to its noun then? And what "
            "does a probe still find there?",
            settings=(
                Setting("before", "The chicken didn't cross the road because it was too", "the common part"),
                Setting("first", "tired", "the word that selects one noun", longest=40),
                Setting("second", "wide", "the word that selects the other", longest=40),
                Setting("one", "chicken", "the noun selected by the first word", longest=40),
                Setting("other", "road", "the noun selected by the second word", longest=40),
                Setting("pronoun", "it", "the pronoun", longest=40),
                Setting("seeds", 3, "pairs of models trained on stories; 0 skips this", 0, 10),
                Setting("steps", 300, "training steps", 1, 2000),
                Setting("asked", True, "whether to train on the antecedent too, and not on blanks alone"),
            ),
            home="clearhead.labs.pronoun",
            model="smollm2",
            alone=True,
            long=True,
        ),
        Lab(
            name="scale",
            title="Why divide by √d_k",
            description="Random queries and keys: the longer the vectors, the larger the spread of their dot "
            "products, in proportion to √d. Undivided, the softmax gives nearly all weight to one token, "
            "and its gradient vanishes; divided by √d_k, the weights keep their distribution.",
            question="How large is d when the largest weight exceeds one half? What would happen to learning?",
            settings=(
                Setting("keys", 16, "number of keys", 2, 256),
                Setting("widest", 1024, "the largest d", 2, 4096),
                Setting("samples", 200, "queries per width", 10, 2000),
                Setting("seed", 0, "seed of the random numbers", 0, 2**31),
            ),
            home="clearhead.labs.scale",
        ),
        Lab(
            name="neighbors",
            title="Cat and dog: similar contexts, similar vectors",
            description="I have to make sure that the cat gets fed; I forgot to make sure that the dog gets fed. A "
            "skip-gram model learns to predict the words around each word of the stories, so words in "
            "similar contexts get similar vectors: nearest to cat are the other animals, the dog among "
            "them.",
            question="Which words are nearest to anna, or to red? With a window of 10, are the words "
            "that could replace cat still the nearest?",
            settings=(
                Setting(
                    "word", "cat", "the word whose neighbors are shown; one of the stories' words", longest=40
                ),
                Setting("count", 15, "number of neighbors shown", 1, 100),
                Setting("stories", 2000, "number of stories to train on", 500, 20_000),
                Setting("window", 2, "maximum distance to a neighbor", 1, 20),
                Setting("width", 50, "features per vector", 2, 300),
                Setting("epochs", 10, "passes over the stories", 1, 50),
                Setting("seed", 0, "seed of the initial vectors and the sampling", 0, 2**31),
            ),
            home="clearhead.labs.neighbors",
            long=True,
        ),
        Lab(
            name="stream",
            title="A head moves information between residual streams",
            description="Random tokens, repeated once: only attention to the first occurrence can predict the second."
            " Two blocks learn it from scratch. A head of the first (which sees four positions) tells "
            "each token which one precedes it; heads of the second find the token that followed the same "
            "one before, and bring it here. The loss falls once both exist. If one is ablated, another "
            "takes over in part; if all are, the ability is lost.",
            question="Which forms first, the previous-token head or the induction "
            "head? What does the loss do until both exist?",
            settings=(
                Setting("heads", 2, "heads of each block", 1, 8),
                Setting("steps", 600, "training steps", 1, 5000),
                Setting("seed", 0, "seed of the weights and the tokens", 0, 2**31),
            ),
            home="clearhead.labs.stream",
            long=True,
        ),
    )
}


def find_lab(name: str) -> Lab:
    if name in LABS:
        return LABS[name]
    raise UserError(f"there is no lab {name!r}; the labs are {', '.join(LABS)}{guess(name, LABS)}")


def lab(
    name: str, model: LanguageModel | str | None = None, watch: Watch | None = None, **settings: Any
) -> Result:
    """Run a lab: `lab("attention", sequence="0010", boost=10.0)`. `figure` draws its result.

    A lab that inspects a model takes it by name or as an object; by default its usual one, or none if that is
    not installed and the lab can run without one. A lab that trains calls `watch` between steps.
    """
    lab = find_lab(name)
    given = lab.check(settings)
    if lab.long:
        given["watch"] = watch or (lambda: None)
    missing = model is None and lab.alone and not _is_here(lab.model)
    if lab.model is not None:
        given["model"] = None if missing else _load(model or lab.model)
    elif model is not None:
        raise UserError(f"{name} inspects no model: omit model")
    run: Callable[..., Result] = import_module(lab.home).run
    result = run(**given)
    if missing:
        result.findings[f"{lab.model}, which is not installed"] = f"clearhead pull {lab.model}"
    return result


def _is_here(name: str | None) -> bool:
    from clearhead.formats.pulled import find

    return name is not None and find(name) is not None


def _load(model: LanguageModel | str) -> LanguageModel:
    from clearhead.language_model import load

    return load(model) if isinstance(model, str) else model
