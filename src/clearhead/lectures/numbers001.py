"""The numbers of lecture 001. Vectors are rows; 0 is [1, 0] and 1 is [0, 1]."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from clearhead.labs.attention import BOOST, ZEROS
from clearhead.labs.lab import Findings, Lines, ResultPart, Table
from clearhead.lectures.counting import count_sentence
from clearhead.lectures.inputs import inputs_of
from clearhead.lectures.stop import StopNumbers
from clearhead.lectures.tiny_rnn import attended, probe_accuracy, probe_sequences, train_rnn
from clearhead.lectures.tiny_rnn import run_rnn as run_tiny_rnn
from clearhead.lectures.worked import embed, matrix, name_digits, stories, table
from clearhead.model.attention_steps import compare, divide, mask, mix, project, softmax
from clearhead.model.lectures import linear_attention, query_attention, simplest_attention
from clearhead.model.mask import causal_matrix
from clearhead.model.position import sinusoids

TEXT = "\n".join(inputs_of("001.1")["text"])
SENTENCE = "Ella lived near the village."
# Vectors of two numbers, made up for the two sentences about bats.
STATIC: dict[str, list[float]] = inputs_of("001.2")["vectors"]
RNN_SEED, RNN_STEPS = inputs_of("001.3")["seed"], inputs_of("001.3")["steps"]
LONGEST_PROBED = 200  # zeros after the first digit, of which stop 3 shows the first 100
KEPT = 0.9  # share of its state that the recurrent cell in the question of stop 3 keeps
ONES = embed("1")[0]
IDENTITY = matrix([[1, 0], [0, 1]])
LOOK_FOR_ONES = matrix([[0, 1], [0, 1]])
BOOSTED = BOOST * IDENTITY
FEATURES = ("0", "1")  # what the two numbers of a vector stand for


def language_modeling() -> StopNumbers:
    """The chain rule with a bigram model, with the whole context, and with the built-in model."""
    parts: list[ResultPart] = []
    for name, order in (("bigram: the last token", 2), ("the whole context", None)):
        counted = count_sentence(TEXT, inputs_of("001.1")["sentence"], order)
        parts.append(
            Table(
                name,
                [each.token for each in counted],
                ["context", "count", "of", "probability", "product"],
                [[each.past, each.count, each.total, each.probability, each.product] for each in counted],
            )
        )
    ids = stories().tokenizer.encode(SENTENCE)
    chances = stories().logits(ids[:-1]).double().log_softmax(-1)[range(len(ids) - 1), ids[1:]]
    first, *tokens = [piece.strip() for piece in stories().tokenizer.pieces(ids)]
    values = torch.stack((chances.exp(), chances.cumsum(0).exp()), dim=1)
    parts.append(table(f"the built-in model, after “{first}”", tokens, ["probability", "product"], values))
    return {"probability under the model": chances.sum().exp().item()}, parts


def shared_interface() -> StopNumbers:
    """The same vectors through a recurrent layer and through the simplest attention."""
    parts: list[ResultPart] = []
    bats = []
    for sentence in inputs_of("001.2")["sentences"]:
        words = sentence.split()
        x = matrix([STATIC[word] for word in words])
        values = torch.cat((x, run_rnn(x), simplest_attention(x)), dim=1)
        bats.append(values[-1].view(3, 2))
        names = [f"{kind} {i}" for kind in ("e", "RNN", "attention") for i in (1, 2)]
        parts.append(table(sentence, words, names, values))
    before, rnn, attention = (bats[0] - bats[1]).norm(dim=1).tolist()
    return {
        "distance between the two vectors of bats before": before,
        "distance after the RNN": rnn,
        "distance after attention": attention,
    }, parts


def run_rnn(x: Tensor) -> Tensor:
    """h = tanh(e + h / 2), starting from zeros: T D → T D."""
    state, states = torch.zeros_like(x[0]), []
    for e in x:
        state = torch.tanh(e + state / 2)
        states.append(state)
    return torch.stack(states)


def outputs_that_change() -> float:
    """The index of the correct option: how many of the three outputs change when e2 changes?"""
    x = matrix([STATIC[word] for word in ("I", "swing", "bats")])
    other = x.clone()
    other[1, 0] += 1
    changed = (simplest_attention(x) - simplest_attention(other)).abs().amax(1) > 1e-12
    return int(changed.sum()) - 1


def running_example() -> StopNumbers:
    """How well a linear probe finds the first digit after zeros: in an RNN's state, and in the output of attention."""
    zeros = [0, *ZEROS[:5]]
    digits = probe_sequences(LONGEST_PROBED)
    states, mixed = run_tiny_rnn(train_rnn(RNN_SEED, RNN_STEPS), digits), attended(digits, BOOST)
    in_state, in_attention = ([probe_accuracy(vectors[:, n]) for n in zeros] for vectors in (states, mixed))
    parts: list[ResultPart] = [
        Lines(
            "accuracy of a probe for the first digit",
            "zeros",
            "accuracy",
            [float(n) for n in zeros],
            {"state of the RNN": [*in_state], "output of attention": [*in_attention]},
        )
    ]
    return {
        "accuracy in the state after 100 zeros": in_state[-1],
        "accuracy in the output of attention": in_attention[-1],
    }, parts


def weight_on_one(zeros: int, boost: float) -> float:
    values = embed("1" + zeros * "0")
    return query_attention(ONES, boost * values, values)[1][0].item()


def zeros_until_forgotten() -> float:
    n = 0
    while KEPT**n >= 0.01:
        n += 1
    return n


def keys_and_query() -> StopNumbers:
    parts: list[ResultPart] = []
    findings: Findings = {}
    for sequence, base in (("0010", 3.0), ("0010", math.e), ("0000", math.e)):
        name = f"{sequence}, base {'e' if base == math.e else '3'}"
        keys = embed(sequence)
        _, weights, result = query_attention(ONES * math.log(base), keys, keys)
        values = torch.stack((keys @ ONES, base ** (keys @ ONES), weights), dim=1)
        parts.append(table(name, name_digits(sequence), ["score", "power", "weight"], values))
        parts.append(
            table(
                f"result of {name}",
                ["attention", "plain average"],
                FEATURES,
                torch.stack((result, keys.mean(0))),
            )
        )
        findings[f"weight at 3 of {name}"] = weights[2].item()
    return findings, parts


def long_sequences() -> StopNumbers:
    rows = [f"{n} {'zero' if n == 1 else 'zeros'}" for n in ZEROS]
    values = matrix([[weight_on_one(n, boost) for boost in (1.0, BOOST)] for n in ZEROS])
    findings: Findings = {
        "plain keys, 100 zeros": weight_on_one(100, 1.0),
        "boosted keys, 100 zeros": weight_on_one(100, BOOST),
        "boosted keys, 3 zeros": weight_on_one(3, BOOST),
    }
    return findings, [table("weight on the 1", rows, ["plain keys", "keys times 10"], values)]


def both_sides() -> StopNumbers:
    """The key of a 1 and the query of a 0, with a matrix on either side, or one on each."""
    k, q = ONES, embed("0")[0]
    W = BOOSTED @ LOOK_FOR_ONES.T
    findings: Findings = {
        "k · q": (k @ q).item(),
        "k W q": linear_attention(q, k[None], W)[0].item(),
        "(k W) · q": ((k @ W) @ q).item(),
        "k · (W q)": (k @ (W @ q)).item(),
        "(k W^K) · (q W^Q)": (project(k, BOOSTED) @ project(q, LOOK_FOR_ONES)).item(),
    }
    return findings, [table("W = W^K times W^Q transposed", ["row 1", "row 2"], ["1", "2"], W)]


def exercise_score() -> float:
    k, q, W = ONES, embed("0")[0], matrix([[1, 2], [3, 4]])
    return linear_attention(q, k[None], W)[0].item()


def self_attention() -> StopNumbers:
    E, names = embed("0010"), name_digits("0010")
    Q, K = project(E, LOOK_FOR_ONES), project(E, BOOSTED)
    S = compare(Q, K)
    parts: list[ResultPart] = [
        table("E, Q, K", names, ["E 0", "E 1", "Q 0", "Q 1", "K 0", "K 1"], torch.cat((E, Q, K), dim=1)),
        table("S = Q Kᵀ", names, names, S),
        table("A = softmax of each row", names, names, softmax(S), shaded=True),
    ]
    return {"weight of every token on the 1": softmax(S)[0, 2].item()}, parts


def digit_sought_by_zero() -> float:
    x = embed("01")
    return int(compare(project(x[:1], IDENTITY.flip(0)), x)[0].argmax())


def two_tokens() -> StopNumbers:
    E, names = embed("01"), name_digits("01")
    parts: list[ResultPart] = []
    for case, W_Q in (("each digit looks for itself", IDENTITY), ("both look for a 1", LOOK_FOR_ONES)):
        S = compare(project(E, W_Q), project(E, BOOSTED))
        A = softmax(S)
        divided = softmax(divide(S, 2))
        columns = ["S 1", "S 2", "A 1", "A 2", "A E 0", "A E 1", "scaled A 1", "scaled A 2"]
        parts.append(table(case, names, columns, torch.cat((S, A, mix(A, E), divided), dim=1)))
    return {"weight of the 0 on itself": softmax(compare(E, project(E, BOOSTED)))[0, 0].item()}, parts


def plain_weight_on_itself() -> float:
    E = embed("01")
    return softmax(compare(E, E))[0, 0].item()


def mask_and_position() -> StopNumbers:
    """One head over 0110 and 1010, with and without a mask and positions."""
    names = name_digits("0110")
    rows, values = [], []
    findings: Findings = {}
    for causal, positions in ((True, False), (True, True), (False, False), (False, True)):
        name = f"{'mask' if causal else 'no mask'}, {'positions' if positions else 'no positions'}"
        one, other = (ordered_head(digits, causal, positions)[1][-1] for digits in ("0110", "1010"))
        rows.append(name)
        values.append([*one.tolist(), *other.tolist(), (one - other).abs().max().item()])
        findings[f"change with {name}"] = values[-1][-1]
    columns = ["0110: 0", "0110: 1", "1010: 0", "1010: 1", "largest change"]
    parts: list[ResultPart] = [
        table("weights with the mask", names, names, ordered_head("0110", True, False)[0], shaded=True),
        table("weights without the mask", names, names, ordered_head("0110", False, False)[0], shaded=True),
        Table("output of the last token", rows, columns, [*values]),
    ]
    return findings, parts


def ordered_head(digits: str, causal: bool, positions: bool) -> tuple[Tensor, Tensor]:
    """Weights and output of a head in which every digit looks for its own kind."""
    x = embed(digits)
    T = len(x)
    if positions:
        x = x + sinusoids(torch.arange(T), 2).to(x.dtype)
    scores = compare(x, project(x, 2 * IDENTITY))
    weights = softmax(mask(scores, causal_matrix(T, T)) if causal else scores)
    return weights, mix(weights, x)


def order_is_seen() -> float:
    one, other = (ordered_head(digits, True, False)[1][-1] for digits in ("0010", "1000"))
    return int(bool((one - other).abs().max() > 1e-12))
