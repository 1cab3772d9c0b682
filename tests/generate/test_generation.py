import itertools

import torch

from clearhead.generate.decoder import TransformerDecoder
from clearhead.generate.generation import generate_tokens
from clearhead.generate.sampler import make_samplers
from clearhead.generate.sampling import Sampling
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

LETTERS = Tokenizer.train("char", ["abcdefghijkl"])


def network() -> Transformer:
    torch.manual_seed(0)
    made = Transformer(preset("modern", n_vocab=13, n_context=8, n_block=2, n_head=2, d_model=16)).eval()
    for parameter in made.parameters():
        parameter.data.add_(0.3 * torch.randn_like(parameter))
    return made


def test_window_slides_once_the_context_is_full():
    """w1…w8 → w9, then w2…w9 → w10: logits equal those computed from scratch on the last eight tokens."""
    made = network()
    ids = torch.randint(13, (1, 14), generator=torch.Generator().manual_seed(1))
    decoder = TransformerDecoder(made)
    for i in range(14):
        logits = decoder.decode_one(ids[:, i : i + 1])
        recomputed = made(ids[:, max(0, i - 7) : i + 1])[:, -1]
        assert torch.allclose(logits, recomputed, atol=1e-4), i


def test_long_prompt_is_truncated_to_its_last_tokens():
    made = network()
    ids = torch.randint(13, (1, 20), generator=torch.Generator().manual_seed(1))
    assert torch.allclose(TransformerDecoder(made).prefill(ids), made(ids[:, -8:])[:, -1], atol=1e-5)


def first(count: int, seed: int, samples: int = 1) -> list[list[int]]:
    sampling = Sampling(1.0, logit_bias={LETTERS.end_id: -100})
    samplers = make_samplers(sampling, LETTERS, 13, [1, 2], seed, samples)
    steps = generate_tokens(TransformerDecoder(network(), samples), [1, 2], samplers)
    return [[drawn.id for drawn in row] for row in itertools.islice(steps, count)]


def test_same_seed_gives_the_same_tokens():
    assert first(20, seed=5) == first(20, seed=5)
    assert first(20, seed=5) != first(20, seed=6)


def test_sample_does_not_depend_on_the_number_of_samples():
    alone = [row[0] for row in first(20, seed=5)]
    four = first(20, seed=5, samples=4)
    assert [row[0] for row in four] == alone
    assert len({tuple(column) for column in zip(*four, strict=True)}) == 4


def test_reordered_samples_continue_from_their_new_prefix():
    made = network()
    ids = torch.randint(13, (3, 12), generator=torch.Generator().manual_seed(1))
    decoder = TransformerDecoder(made, 3)
    decoder.prefill(ids[:, :4])
    for start in (4, 7, 10):  # before and after the context is full
        decoder.reorder([2, 2, 0])
        ids = ids[[2, 2, 0]]
        logits = decoder.decode_one(ids[:, start : start + 1])
        assert torch.equal(decoder.ids, ids[:, : start + 1])
        assert torch.allclose(logits, made(ids[:, max(0, start - 7) : start + 1])[:, -1], atol=1e-4), start
        decoder.prefill(ids[:, start + 1 : start + 3])
