"""The catalog of labs, described here so that listing them imports none of their modules."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from clearhead.errors import UserError, guess
from clearhead.labs.lab import Lab, Result, Setting, Watch

if TYPE_CHECKING:
    from clearhead.language_model import LanguageModel

ELLA = "Ella lived near the village. She had a trumpet, and it was green. One day, Ella lost her"
WILL = "Damian had a secret child, a girl, and had written in his will that his belongings will belong to"

LABS = {
    lab.name: lab
    for lab in (
        Lab(
            name="attention",
            title="Attention, number by number",
            description="A sequence of digits, where 0 is the vector [1, 0] and 1 is [0, 1]. A query is compared "
            "with every key, the scores become weights, and the weights mix the values. The more 0s there are, the "
            "less weight is left for the 1. Set boost to 10, so that the keys are ten times as long, "
            "and almost all of the weight goes to the 1. A matrix W between key and query, k W q, determines which "
            "keys match the query; whether it is applied to the key or to the query, the score is the same.",
            question="Which boost gives the 1 as much weight as all the 0s together? Does it depend on how "
            "many 0s there are?",
            settings=(
                Setting("sequence", "0010", "the digits, each 0 or 1", longest=2000),
                Setting("query", "1", "the digit to look for", choices=("0", "1")),
                Setting("boost", 1.0, "factor by which the keys are multiplied", 0.0, 100.0),
                Setting(
                    "base",
                    "e",
                    "base of the powers in the softmax: e as usual, or 3, which is easier to compute by hand",
                    choices=("e", "3"),
                ),
                Setting(
                    "matrix", "1 0 / 0 1", "W in the scores k W q; a slash separates its rows", longest=60
                ),
            ),
            home="clearhead.labs.attention",
        ),
        Lab(
            name="any-one",
            title="Was any digit a 1?",
            description="A 1, and then a hundred 0s: was there a 1? A recurrent network must carry the information "
            "from state to state; attention looks straight back at it; an n-gram model has forgotten it. "
            "Trained on short sequences, a recurrent network carries the information through 200 digits with some "
            "seeds and loses it with others. Trained only on 101 digits, it stays near chance, while attention "
            "learns the task: the advantage of attention is that the long case can be learned. This attention "
            "has no positions, so unseen lengths are nothing new to it. The one sequence without a 1 counts for "
            "half of the accuracy, all others for the other half: a network that has learned nothing "
            "scores about one half. The band around each line shows the range over seeds.",
            question="For how many seeds is each network, trained on short sequences, always right at 200 digits? Why "
            "can training on 101 digits fail even if a network is able to carry the information that far?",
            settings=(
                Setting(
                    "trained",
                    "both",
                    "train on 5 to 20 digits, on 101, or on each in turn",
                    choices=("both", "short", "long"),
                ),
                Setting("seeds", 3, "repetitions with different initial weights", 1, 10),
                Setting("steps", 300, "training steps of each network", 1, 2000),
                Setting("batch", 16, "sequences per step", 2, 128),
                Setting("width", 32, "features of each network", 2, 128),
            ),
            home="clearhead.labs.any_one",
            long=True,
        ),
        Lab(
            name="matrix",
            title="One head, as loops and as matrices",
            description="The same head twice: token by token in loops, the way it is explained, and as five matrix "
            "products, the way it is computed (three projections, queries times keys, weights times values). "
            "The numbers agree up to rounding; the times do not, and the gap grows with the number of tokens.",
            question="How much longer do the loops take for twice as many tokens, and how much "
            "longer do the matrices take? Why?",
            settings=(
                Setting("longest", 64, "largest number of tokens", 2, 256),
                Setting("width", 32, "features of each token, and of the head", 1, 256),
                Setting("repeats", 3, "runs of each, of which the fastest is reported", 1, 20),
                Setting("seed", 0, "seed of the random numbers", 0, 2**31),
            ),
            home="clearhead.labs.matrix",
        ),
        Lab(
            name="position",
            title="What positions are good for",
            description="A sentence goes through a small transformer, and then once more with its words shuffled. "
            "Attention alone has no notion of order: if every word attends to all words and there are no positions, "
            "each word gets the same vector wherever it occurs, and the sentence is a bag of words. The weights are "
            "random, but no training could change that. With positions, the vectors change. In a causal model "
            "they change even without positions, because a word attends only to itself and to the words before "
            "it, and shuffling changes which words those are.",
            question="Switch causal on: how can a causal model tell two orders apart without positions? "
            "At which position does a word keep its vector, however the others are shuffled?",
            settings=(
                Setting(
                    "sentence",
                    "The dog bit the man and the man cried",
                    "the sentence whose words are shuffled",
                ),
                Setting(
                    "position",
                    "learned",
                    "position encoding to compare with none",
                    choices=("learned", "sinusoidal", "rotary"),
                ),
                Setting("causal", False, "whether a word attends only to itself and the words before it"),
                Setting("seed", 0, "seed of the weights and the shuffling", 0, 2**31),
            ),
            home="clearhead.labs.position",
        ),
        Lab(
            name="window",
            title="Generating through a window",
            description="A model with a context of eight tokens generates text: w1 … w8 give w9, w2 … w9 give w10, "
            "and so on, where w1 is the first token in the first window. Tokens that have left the window have no "
            "influence: with any others in their place, the text would be the same. As a check, they are reversed, "
            "and nothing changes. With the whole text in its context, the same model may generate something else.",
            question="How wide must the window be for the model to recall what Ella lost?",
            settings=(
                Setting("prompt", ELLA, "the text that the model continues", longest=1000, is_prompt=True),
                Setting("context", 8, "width of the window: how many tokens the model sees", 1, 256),
                Setting("tokens", 10, "how many tokens the model generates", 1, 100),
            ),
            home="clearhead.labs.window",
            model="stories",
        ),
        Lab(
            name="blank",
            title="Which words determine the blank",
            description="A sentence breaks off before a blank: which earlier word decides what the model predicts "
            "there? The answer is the first column: each token is left out in turn, and the model predicts the blank "
            "without it, so every path through the model counts. Attribution, in the second column, answers a "
            "narrower question: it splits the word's logit exactly into what the heads at the last position move "
            "there from each token, and misses what a token did earlier, through other tokens. Where the two "
            "disagree, trust the first. The last token always matters: without it, the sentence continues differently.",
            question="Which word decides that the blank is “her”? Replace it in the sentence so that “him” becomes "
            "likely. Then set word to “his”: does the same word decide? Why does leaving out some tokens matter "
            "little, although they contribute directly?",
            settings=(
                Setting("sentence", WILL, "the text before the blank", longest=1000, is_prompt=True),
                Setting(
                    "word",
                    "her",
                    "the word whose prediction to explain; only its first token is used",
                    longest=40,
                ),
                Setting("other", "his", "another word, listed among the candidates", longest=40),
            ),
            home="clearhead.labs.blank",
            model="stories",
        ),
        Lab(
            name="senses",
            title="One word, two senses",
            description="“I'm scared of bats”; “I swing bats.” A static vector is the same in both. In a transformer, "
            "a word starts from its static vector and, block by block, takes in the words before it: its "
            "vectors are contextual. So are the states of a recurrent network. The distance between two "
            "vectors depends on more than the sense, so pairs of the same sense are the baseline. Two "
            "small networks, an LSTM and a transformer, learn a few hundred words here, from sentences in"
            " which what follows the word depends on its sense; the sentences shown are not among them. "
            "Such a network knows no more about bats than which of its words go together. In the model, "
            "stage 0 is the embedding; the next stages are the inputs of the blocks, and the last is the output.",
            question="At which block do the two senses separate? Write sentences in which the word "
            "that reveals the sense comes later: what happens in a causal model?",
            settings=(
                Setting("word", "bats", "bats or bank, or any word with your own sentences", longest=40),
                Setting("one", "", "sentences that use the word in one sense, separated by /", longest=2000),
                Setting(
                    "other", "", "sentences that use it in the other sense, separated by /", longest=2000
                ),
                Setting("seeds", 3, "small networks trained per kind; 0 for none", 0, 10),
                Setting("steps", 200, "training steps of each small network", 1, 2000),
            ),
            home="clearhead.labs.senses",
            model="smollm2",
            alone=True,
            long=True,
        ),
        Lab(
            name="pronoun",
            title="What does “it” refer to?",
            description="“The chicken didn't cross the road because it was too tired”, or “too wide”. A "
            "well-known picture shows “it” attending to its antecedent. In a causal model, “it” cannot have seen the"
            " adjective: its attention is the same in both sentences. The adjective is the first token "
            "that can know, and it does: over all heads, “tired” attends more to the chicken and “wide” "
            "more to the road. Then two small transformers are trained on sentences from the stories with "
            "known antecedents. They fill in blanks, and a pronoun is a blank too: at “it”, and again"
            " at the end, they predict the antecedent. In the bidirectional one, that picture "
            "appears: the pronoun attends to its noun, and patching in its vector from the other sentence"
            " flips the answer. In the causal one, “it” has the same vector in both sentences, so there "
            "the model can only guess; only at the end can it know. The two nouns of a test sentence never "
            "occurred together in training.",
            question="Why is the causal model never right more than half of the time at “it”? Switch "
            "asked off, so that only blanks are filled in: does “it” attend to its noun then? And what "
            "does a probe still find there?",
            settings=(
                Setting(
                    "before",
                    "The chicken didn't cross the road because it was too",
                    "the beginning of both sentences",
                ),
                Setting("first", "tired", "the word that selects one noun", longest=40),
                Setting("second", "wide", "the word that selects the other noun", longest=40),
                Setting("one", "chicken", "the noun selected by the first word", longest=40),
                Setting("other", "road", "the noun selected by the second word", longest=40),
                Setting("pronoun", "it", "the word that refers to one of the nouns", longest=40),
                Setting("seeds", 3, "pairs of models trained on stories; 0 for none", 0, 10),
                Setting("steps", 300, "training steps of each model", 1, 2000),
                Setting("asked", True, "whether to train on the antecedent too, not only on blanks"),
            ),
            home="clearhead.labs.pronoun",
            model="stories",
            alone=True,
            long=True,
        ),
        Lab(
            name="scale",
            title="Why divide by √d_k",
            description="Random queries and keys: the longer the vectors, the larger the spread of their dot "
            "products, in proportion to √d. Without division, the softmax gives nearly all the weight to one "
            "token, and its gradient vanishes; with the scores divided by √d_k, the weights keep their "
            "distribution.",
            question="How large is d when the largest weight exceeds one half? How would that affect training?",
            settings=(
                Setting("keys", 16, "how many keys a query is compared with", 2, 256),
                Setting("widest", 1024, "the largest dimension d of the vectors", 2, 4096),
                Setting("samples", 200, "random queries for each d", 10, 2000),
                Setting("seed", 0, "seed of the random numbers", 0, 2**31),
            ),
            home="clearhead.labs.scale",
        ),
        Lab(
            name="neighbors",
            title="Cat and dog: similar contexts, similar vectors",
            description="“I have to make sure that the cat gets fed”; “I forgot to make sure that the dog gets "
            "fed.” A skip-gram model learns to predict the words around each word in the stories, so words in "
            "similar contexts get similar vectors: nearest to “cat” are the other animals, “dog” "
            "among them.",
            question="Which words are nearest to “anna”, or to “red”? With a window of 10, are the words "
            "that could replace “cat” still the nearest?",
            settings=(
                Setting(
                    "word",
                    "cat",
                    "the word whose neighbors are shown; it must occur in the stories",
                    longest=40,
                ),
                Setting("count", 15, "how many neighbors are shown", 1, 100),
                Setting("stories", 2000, "how many stories the model learns from", 500, 20_000),
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
            " Two blocks learn to do so from scratch. A head in the first (which sees four positions) tells "
            "each token which token precedes it; heads in the second find the token that followed the "
            "current one the first time, and copy it. The loss falls once both kinds of head exist. If one of "
            "the second block's heads is ablated, another takes over in part; if all are, the ability is lost.",
            question="Which forms first, the previous-token head or the induction "
            "head? What does the loss do until both exist?",
            settings=(
                Setting("heads", 2, "attention heads in each of the two blocks", 1, 8),
                Setting("steps", 600, "training steps of the network", 1, 5000),
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

    A lab that inspects a model takes it by name or as an object. The default is the lab's own model, or none if
    that model is not installed and the lab can run without one. A lab that trains calls `watch` between steps.
    """
    lab = find_lab(name)
    given = lab.check(settings)
    if lab.long:
        given["watch"] = watch or (lambda: None)
    missing = model is None and lab.alone and not _is_here(lab.model)
    inspected = None
    if lab.model is not None:
        inspected = given["model"] = None if missing else _load(model or lab.model)
    elif model is not None:
        raise UserError(f"{name} inspects no model: omit model")
    run: Callable[..., Result] = import_module(lab.home).run
    result = run(**given)
    if missing:
        result.findings[f"{lab.model} is not installed; to pull it"] = f"clearhead pull {lab.model}"
    if inspected is not None:
        result.findings["model"] = inspected.name
    return result


def _is_here(name: str | None) -> bool:
    from clearhead.formats import builtin, pulled

    return name is not None and (builtin.find(name) or pulled.find(name)) is not None


def _load(model: LanguageModel | str) -> LanguageModel:
    from clearhead.language_model import load

    return load(model) if isinstance(model, str) else model
