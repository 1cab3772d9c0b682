"""Compare the batch decoder with the plain decoder, and with itself in other batches."""

import platform

import pytest
import torch

from clearhead.errors import UserError
from clearhead.generate.batch_decoder import TransformerBatchDecoder, transpose_weights
from clearhead.generate.decoder import TransformerDecoder
from clearhead.runtime.batched_attention import find_spans
from clearhead.runtime.batched_kv_cache import LENGTH_STEP, padded_length


def some_ids(length: int, seed: int = 0) -> list[int]:
    return torch.randint(257, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


class Company:
    """Texts in a decoder's slots that can join, continue and leave; each step returns its logits."""

    def __init__(self, decoder: TransformerBatchDecoder) -> None:
        self.decoder, self.texts = decoder, {}

    def join(self, slot: int, ids: list[int]) -> torch.Tensor:
        prefill = self.decoder.prefill(ids)
        while prefill.logits is None:
            assert prefill.run_chunk() > 0
        self.decoder.insert(slot, prefill)
        self.texts[slot] = list(ids)
        return prefill.logits

    def step(self, tokens: dict[int, int]) -> dict[int, torch.Tensor]:
        slots = sorted(tokens)
        for slot in slots:
            self.decoder.extend(slot, len(self.texts[slot]))
        rows = self.decoder.decode_one(slots, [tokens[s] for s in slots], [len(self.texts[s]) for s in slots])
        for slot in slots:
            self.texts[slot].append(tokens[slot])
        return dict(zip(slots, rows, strict=True))


def read_plainly(network, ids: list[int], prompt: int) -> list[torch.Tensor]:
    """Return the plain decoder's logits after the prompt and after each token that follows."""
    decoder = TransformerDecoder(network)
    parts = [ids[:prompt], *([i] for i in ids[prompt:])]
    return [decoder.prefill(torch.tensor([part]))[0] for part in parts]


@pytest.mark.parametrize("whole", [False, True])
def test_logits_match_plain_decoder_as_texts_join_and_leave(make, family, whole):
    network = make(family)
    company = Company(TransformerBatchDecoder(network, 6, whole))
    # Slot, prompt length, joining and leaving step of each text; lengths on all sides of LENGTH_STEP.
    plan = [(0, 1, 0, 9), (3, 63, 0, 5), (1, 64, 2, 9), (2, 130, 3, 9), (5, 20, 3, 6), (3, 7, 6, 9)]
    texts = [some_ids(prompt + leaves - joins, seed=i) for i, (_, prompt, joins, leaves) in enumerate(plan)]
    expected = [
        read_plainly(network, ids, prompt) for ids, (_, prompt, _, _) in zip(texts, plan, strict=True)
    ]
    for moment in range(9):
        tokens = {}
        for ids, logits, (slot, prompt, joins, leaves) in zip(texts, expected, plan, strict=True):
            if joins == moment:
                assert torch.allclose(company.join(slot, ids[:prompt]), logits[0], atol=1e-4)
            if joins <= moment < leaves:
                tokens[slot] = ids[prompt + moment - joins]
        rows = company.step(tokens)
        for logits, (slot, _, joins, leaves) in zip(expected, plan, strict=True):
            if joins <= moment < leaves:
                assert torch.allclose(rows[slot], logits[1 + moment - joins], atol=1e-4)


ODD = {"d_model": 36, "n_head": 3, "d_hidden": 50, "n_vocab": 263}  # awkward sizes with few common factors


# On CPUs without bfloat16, a matrix product with many rows warns and falls back.
@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")
@pytest.mark.parametrize(
    ("dtype", "sizes"),
    [
        (torch.float32, {}),
        (torch.float32, ODD),
        (torch.float32, {"d_model": 128, "n_kv_head": 2}),
        (torch.float32, {"d_model": 576, "n_head": 9, "n_kv_head": 3, "d_hidden": 1536, "n_vocab": 4099}),
        (torch.float32, {"family": "gpt2", "d_model": 768, "n_head": 12}),
        (torch.float32, {"family": "sinusoidal", "d_model": 44}),
        (torch.bfloat16, {}),
        (torch.bfloat16, ODD),
        (torch.bfloat16, {"family": "lecture", "d_model": 64}),
    ],
)
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_logits_are_bitwise_independent_of_batch_and_slot(make, sizes, dtype, whole):
    family = sizes.get("family", "modern")
    network = make(family, **{"n_block": 1, **{k: v for k, v in sizes.items() if k != "family"}}).to(dtype)
    decoder = TransformerBatchDecoder(network, 16, whole)
    prompt, tokens = some_ids(60), some_ids(8, seed=1)

    def alone() -> list[torch.Tensor]:
        company = Company(decoder)
        company.join(0, prompt)
        return [company.step({0: token})[0] for token in tokens]

    expected = alone()
    others = [4, 5, 11, 3, 9, 0, 1, 15]
    company = Company(decoder)
    company.join(7, prompt)
    for i, (token, other) in enumerate(zip(tokens, others, strict=True)):
        company.join(other, some_ids(20 * i + 5, seed=other))
        row = company.step({7: token, **dict.fromkeys(others[: i + 1], i)})[7]
        assert row.equal(expected[i])
    assert all(one.equal(other) for one, other in zip(alone(), expected, strict=True))


@pytest.mark.skipif(platform.machine() != "aarch64", reason="other CPUs may leave out narrow widths")
def test_batch_widths_are_as_narrow_as_possible(make):
    assert TransformerBatchDecoder(make("lecture"), 32).widths == [2, 4, 8, 16, 32]
    assert TransformerBatchDecoder(make("modern"), 12).widths == [2, 4, 8, 12]
    assert TransformerBatchDecoder(make("modern"), 1).widths == [1]


def test_rows_are_decoded_separately_if_their_position_matters(make):
    network = make()

    def favor_the_first(module, inputs, output):
        return output + 1e-3 * (torch.arange(len(output)) == 0)[:, None, None]

    network.blocks[1].feedforward.register_forward_hook(favor_the_first)
    company = Company(TransformerBatchDecoder(network, 4))
    assert company.decoder.widths == [1]
    expected = company.join(0, [1, 2, 3]), company.step({0: 4})[0]
    for slot in (1, 3):
        assert company.join(slot, [1, 2, 3]).equal(expected[0])
    rows = company.step({0: 9, 1: 4, 3: 4})
    assert rows[1].equal(expected[1])
    assert rows[3].equal(expected[1])


def test_widths_with_different_results_are_not_used(make):
    network = make()
    usable = TransformerBatchDecoder(network, 16).widths  # depends on the CPU's matrix products
    network.final_norm.register_forward_hook(lambda module, inputs, out: out * (1 + 1e-3 * (len(out) == 4)))
    widths = TransformerBatchDecoder(network, 16).widths
    assert 4 not in widths
    assert widths == [width for width in usable if width != 4]


def test_reused_slots_ignore_stale_cache_contents(make):
    decoder = TransformerBatchDecoder(make(), 2)
    company = Company(decoder)
    expected = company.join(0, [5, 6]), company.step({0: 7})[0]
    decoder.cache.data.fill_(float("nan"))
    assert company.join(0, [5, 6]).equal(expected[0])
    assert company.step({0: 7})[0].equal(expected[1])


def test_cache_grows_with_the_longest_text_without_losing_data(make):
    network = make(n_context=1000)
    company = Company(TransformerBatchDecoder(network, 2))
    company.join(0, some_ids(255))
    small = company.decoder.cache.data.shape[4]
    ids = some_ids(600, seed=1)
    company.join(1, ids)
    assert small < 600 <= company.decoder.cache.data.shape[4] <= padded_length(1000)
    decoder = TransformerDecoder(network)
    decoder.prefill(torch.tensor([some_ids(255)]))
    for token in range(3):
        expected = decoder.decode_one(torch.tensor([[token]]))[0]
        assert torch.allclose(company.step({0: token})[0], expected, atol=1e-4)


def test_prompts_longer_than_the_context_keep_their_end(make):
    network, ids = make(), some_ids(200)
    prefill = TransformerBatchDecoder(network, 1).prefill(ids)
    while prefill.logits is None:
        prefill.run_chunk()
    assert torch.allclose(prefill.logits, network(torch.tensor([ids[-160:]]))[0, -1], atol=1e-4)


def test_adjacent_slots_of_equal_length_form_one_span():
    slots, positions = [0, 1, 2, 4, 5, 6], [3, 63, 64, 70, 80, 5]
    found = find_spans(slots, positions, torch.empty(0))
    assert [(span.rows, span.slots, span.length) for span in found] == [
        (slice(0, 2), slice(0, 2), LENGTH_STEP),
        (slice(2, 3), slice(2, 3), 2 * LENGTH_STEP),
        (slice(3, 5), slice(4, 6), 2 * LENGTH_STEP),
        (slice(5, 6), slice(6, 7), LENGTH_STEP),
    ]
    seen = found[2].bias[:, 0, 0] == 0
    assert seen.sum(1).tolist() == [71, 81]
    near = find_spans(slots, positions, torch.empty(0), 10)[2].bias[:, 0, 0] == 0
    assert near[0].nonzero()[:, 0].tolist() == list(range(61, 71))


def test_all_rows_spans_cover_every_row():
    found = find_spans(range(4), [3, 63, 64, 200], torch.empty(0), all_rows=True)
    assert [span.length for span in found] == [64, 128, 256]
    assert all(span.rows == span.slots == slice(0, 4) for span in found)
    assert [span.selected.flatten().tolist() for span in found] == [
        [True, True, False, False],
        [False, False, True, False],
        [False, False, False, True],
    ]


def test_transposed_weights_are_an_equal_copy(make):
    network = make("lecture")
    other = transpose_weights(network)
    for (name, one), (_, two) in zip(network.named_parameters(), other.named_parameters(), strict=False):
        assert torch.equal(one, two), name
    assert other.unembedding.weight.stride() == (1, 257)
    assert network.unembedding.weight is network.embedding.weight is other.embedding.weight
    assert network.unembedding.weight.stride() == (32, 1)


def test_bidirectional_models_and_zero_slots_are_rejected(make):
    with pytest.raises(UserError, match="is bidirectional"):
        TransformerBatchDecoder(make(causal=False), 2)
    with pytest.raises(UserError, match="slots = 0"):
        TransformerBatchDecoder(make(), 0)
