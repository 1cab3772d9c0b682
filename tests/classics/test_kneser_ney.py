"""Kneser-Ney probabilities against a dictionary-based float64 reference, one n-gram at a time."""

import math
from collections import Counter, defaultdict
from itertools import islice

import numpy as np
import pytest
import torch

from clearhead.classics.kneser_ney import FALLBACK, discounts, estimate
from clearhead.classics.ngram_counts import count_ngrams, find
from clearhead.errors import UserError
from clearhead.text.stories import stories
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokens import Tokens

V, END = 12, 11


def sentences(seed=0, count=60):
    """Short documents in which some tokens are frequent and some appear in only a few contexts."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        length = int(random.integers(0, 9))
        tokens = (random.zipf(1.6, length) - 1) % (V - 2)  # one token of the vocabulary never occurs
        made.append([int(token) for token in tokens])
    return made


def as_tokens(documents):
    return Tokens.of([END, *(i for document in documents for i in [*document, END])])


class Plain:
    """Modified Kneser-Ney from its definition: tuples of tokens, with "s" and "/s" marking start and end."""

    def __init__(self, documents, order, n_vocab=V):
        self.order, self.n_vocab = order, n_vocab
        raw = [Counter() for _ in range(order + 1)]
        for document in documents:
            padded = ["s", *document, "/s"]
            for n in range(1, order + 1):
                raw[n].update(tuple(padded[i : i + n]) for i in range(len(padded) - n + 1))
        del raw[1][("s",)]
        self.counts = [Counter() for _ in range(order + 1)]
        for n in range(1, order + 1):
            for ngram, times in raw[n].items():
                if n == order or ngram[0] == "s":
                    self.counts[n][ngram] = times
                else:
                    self.counts[n][ngram] = sum(1 for other in raw[n + 1] if other[1:] == ngram)
        self.discounts = [None] + [self.discount(self.counts[n]) for n in range(1, order + 1)]
        self.after = defaultdict(dict)
        for n in range(1, order + 1):
            for ngram, count in self.counts[n].items():
                self.after[ngram[:-1]][ngram[-1]] = count

    @staticmethod
    def discount(counts):
        t = [sum(1 for count in counts.values() if count == k) for k in range(5)]
        if 0 in t[1:]:
            return 0.5, 1.0, 1.5
        y = t[1] / (t[1] + 2 * t[2])
        found = [k - (k + 1) * y * t[k + 1] / t[k] for k in (1, 2, 3)]
        return found if all(0 < d < k for k, d in enumerate(found, 1)) else (0.5, 1.0, 1.5)

    def probability(self, token, context):
        context = tuple(context)[max(0, len(context) - self.order + 1) :] if self.order > 1 else ()
        lower = 1 / self.n_vocab if not context else self.probability(token, context[1:])
        seen = self.after.get(context)
        if not seen:
            return lower
        total, off = sum(seen.values()), self.discounts[len(context) + 1]
        left = sum(off[min(count, 3) - 1] for count in seen.values()) / total
        count = seen.get(token, 0)
        return (count - off[min(count, 3) - 1] if count else 0) / total + left * lower


def plain_context(ids):
    """The context for the next token, with "s" in place of the preceding end token."""
    context = []
    for i in ids:
        context = ["s"] if i == END else [*context, i]
    return context


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [3, 60, 300])
def test_probabilities_match_the_formulas_and_sum_to_one(order, count):
    documents = sentences(count, count)
    plain = Plain(documents, order)
    network = estimate(count_ngrams(as_tokens(documents), V, END, order))
    contexts = {context for context in plain.after if context} | {(5, 5, 5, 5), (10,), (0, 10, 0), ()}
    for context in sorted(contexts, key=str)[:: max(1, len(contexts) // 150)]:
        ids = [END if token == "s" else token for token in context]
        if not ids:
            continue
        given = torch.tensor(ids)
        found = network(given)[-1].double().exp()
        expected = [plain.probability("/s" if w == END else w, plain_context(ids)) for w in range(V)]
        assert sum(expected) == pytest.approx(1, abs=1e-12)
        assert found.sum().item() == pytest.approx(1, abs=1e-6)
        assert found.tolist() == pytest.approx(expected, rel=2e-6)


def test_every_position_in_a_batch_matches_the_formula():
    documents = sentences(1, 200)
    plain, tokens = Plain(documents, 4), as_tokens(documents)
    network = estimate(count_ngrams(tokens, V, END, 4))
    ids = tokens[:96]
    found = network(torch.from_numpy(ids.reshape(2, 48)))
    for row, column in [(0, 0), (0, 1), (0, 30), (0, 47), (1, 0), (1, 2), (1, 40)]:
        context = plain_context(ids[48 * row : 48 * row + column + 1].tolist())
        expected = [math.log(plain.probability("/s" if w == END else w, context)) for w in range(V)]
        assert found[row, column].tolist() == pytest.approx(expected, abs=1e-5)
    assert torch.equal(found[1], network(torch.from_numpy(ids[48:])))  # a row of ids is a batch of one


def test_counting_with_little_memory_gives_the_same_model(tmp_path):
    tokens = as_tokens(sentences(2, 600))
    easy = count_ngrams(tokens, V, END, 5)
    hard = count_ngrams(tokens, V, END, 5, memory=4_000, folder=tmp_path)
    assert easy.spills == 0
    assert hard.spills > 100
    assert (easy.unigrams == hard.unigrams).all()
    for one, other in zip(easy.longer, hard.longer, strict=True):
        assert (one.keys == other.keys).all()
        assert (one.counts == other.counts).all()
    assert list(tmp_path.iterdir()) == []


def test_text_without_a_leading_end_token_counts_the_same():
    documents = sentences(3, 50)
    whole = as_tokens(documents)
    one, other = (count_ngrams(tokens, V, END, 3) for tokens in (whole, whole.part(1)))
    assert (one.unigrams == other.unigrams).all()
    assert (one.longer[1].keys == other.longer[1].keys).all()


def test_discounts_fall_back_when_counts_are_insufficient():
    assert discounts(np.array([1, 1, 2, 3, 4])) != FALLBACK
    assert discounts(np.array([1, 1, 2, 3])) == FALLBACK  # no count of 4
    assert discounts(np.array([], dtype=np.int64)) == FALLBACK
    assert discounts(np.array([1, 2, 3, 3, 3, 3, 4])) == FALLBACK  # the discount for 2s would be negative


def test_orders_longer_than_the_text_add_nothing():
    short = Tokens.of([END, 0, 1, END])
    long, longer = (estimate(count_ngrams(short, V, END, order)) for order in (4, 9))
    ids = torch.tensor([END, 0, 1, 2, END])
    assert longer.config.counts == (3, 2, 1, 0, 0, 0, 0, 0)
    assert torch.isfinite(longer(ids)).all()
    assert torch.allclose(longer(ids).exp().sum(-1), torch.ones(5))
    assert long(ids)[0].argmax() == 0


def test_longer_context_lowers_the_loss():
    text = "\n".join(story.text for story in islice(stories(1), 150))[:30_000]
    tokenizer = Tokenizer.train("char", [text])
    ids = np.array([tokenizer.end_id, *tokenizer.encode(text), tokenizer.end_id])
    train, held_out = ids[:27_000], torch.from_numpy(ids[27_000:])
    losses = []
    for order in (1, 2, 4, 6):
        network = estimate(count_ngrams(Tokens.of(train), tokenizer.n_vocab, tokenizer.end_id, order))
        losses.append(-network(held_out[:-1]).gather(1, held_out[1:, None]).mean().item())
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.parametrize("order", [0, 33, 2.5, True, "five"])
def test_invalid_order_is_rejected(order):
    with pytest.raises(UserError, match="expected an integer from 1 to 32"):
        count_ngrams(Tokens.of([END, 0, END]), V, END, order)


def test_empty_text_and_unknown_ids_are_rejected():
    with pytest.raises(UserError, match="no tokens"):
        count_ngrams(Tokens.of([END]), V, END, 2)
    with pytest.raises(UserError, match="id 12 does not exist"):
        count_ngrams(Tokens.of([END, 12]), V, END, 2)


def test_find_matches_a_brute_force_search():
    random = np.random.default_rng(0)
    keys = np.unique(random.integers(0, 1000, 300))
    wanted = random.integers(-5, 1005, 500)
    assert find(keys, wanted).tolist() == [int((keys < each).sum()) for each in wanted]
    assert find(keys, wanted[:0]).tolist() == []
