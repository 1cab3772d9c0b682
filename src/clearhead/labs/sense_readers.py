"""Small networks trained on sentences in which a word has two senses."""

from __future__ import annotations

from functools import cache
from itertools import islice

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.labs.lab import Watch
from clearhead.labs.sense_sentences import write_sentences
from clearhead.labs.small_networks import take_step
from clearhead.language_model import LanguageModel
from clearhead.model.config import Config
from clearhead.networks import make_network
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokens import IGNORED

KINDS = ("LSTM", "transformer")
SENTENCES = 4000  # sentences from which the vocabulary is built
CONTEXT, WIDTH, HEADS = 24, 48, 4
BATCH, RATE = 32, 0.01


def learn(kind: str, steps: int, seed: int, watch: Watch) -> LanguageModel:
    """Train a network of this kind; both kinds see the same sentences and use the same optimizer settings."""
    tokenizer = _tokenizer()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = make_network(
            RecurrentConfig("lstm", tokenizer.n_vocab, CONTEXT, n_block=1, d_model=WIDTH)
            if kind == "LSTM"
            else Config(tokenizer.n_vocab, CONTEXT, n_block=2, n_head=HEADS, d_model=WIDTH)
        )
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
    written = write_sentences(seed)
    for _ in range(steps):
        watch()
        ids, targets = _batch(tokenizer, list(islice(written, BATCH)))
        loss = F.cross_entropy(network(ids).transpose(1, 2), targets, ignore_index=IGNORED)
        take_step(network, optimizer, loss)
    return LanguageModel(network, tokenizer)


@cache
def _tokenizer() -> Tokenizer:
    """The grammar's words, each a token."""
    return Tokenizer.train("word", islice(write_sentences(0), SENTENCES))


def _batch(tokenizer: Tokenizer, texts: list[str]) -> tuple[Tensor, Tensor]:
    """Return ids and the next id at each position, B T each; an end token and padding follow a sentence."""
    end = tokenizer.need_end("this lab")
    rows = [torch.tensor([*ids, end]) for ids in tokenizer.encode_batch(texts)]
    ids = pad_sequence([row[:-1] for row in rows], batch_first=True, padding_value=end)
    return ids, pad_sequence([row[1:] for row in rows], batch_first=True, padding_value=IGNORED)
