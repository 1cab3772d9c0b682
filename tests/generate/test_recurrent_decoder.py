"""Generating with recurrent networks: from the state alone, and with the same results in a batch as alone."""

import pytest
import torch

from clearhead.classics.recurrent import Recurrent
from clearhead.classics.recurrent_cell import CELLS
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.errors import UserError
from clearhead.generate.classic_decoders import RecurrentBatchDecoder, RecurrentDecoder
from clearhead.language_model import LanguageModel
from clearhead.text.tokenizer import Tokenizer

PROMPT = "The chicken didn't cross the road because it was too tired. " * 2


def make(kind, n_context=16, **more):
    tokenizer = Tokenizer.train("byte", [])
    torch.manual_seed(1)
    sizes = {"n_vocab": tokenizer.n_vocab, "n_context": n_context, "n_block": 2, "d_model": 24, **more}
    network = Recurrent(RecurrentConfig(kind, **sizes))
    for parameter in network.parameters():
        parameter.data.add_(0.3 * torch.randn_like(parameter))
    return LanguageModel(network, tokenizer)


@pytest.mark.parametrize("kind", CELLS)
def test_decoding_from_the_state_matches_a_full_pass(kind):
    model = make(kind)
    ids = model.tokenizer.encode(PROMPT)
    written = model.generate(PROMPT, 40, temperature=0)  # far beyond the training context
    likeliest = model.logits(ids + written.ids).argmax(-1).tolist()
    assert written.ids == likeliest[len(ids) - 1 : -1]


@pytest.mark.parametrize("kind", CELLS)
def test_no_token_is_processed_twice(kind, monkeypatch):
    model, read = make(kind), []
    inner = Recurrent.states

    def states(self, ids, state=None):
        read.append(ids.shape[1])
        return inner(self, ids, state)

    monkeypatch.setattr(Recurrent, "states", states)
    n = len(model.tokenizer.encode(PROMPT))
    model.generate(PROMPT, 30, temperature=0)
    assert read == [n] + [1] * 29


@pytest.mark.parametrize("kind", CELLS)
def test_batched_requests_match_single_requests(kind):
    """Bit for bit: prompts of any length, several samples, and slots that are freed and reused."""
    model = make(kind)
    prompts = [PROMPT[:n] for n in (1, 31, 32, 33, 100)]
    settings = {"seed": 3, "log_probabilities": 2, "samples": 2}
    together = model.generate(prompts, 20, **settings)
    for prompt, texts in zip(prompts, together, strict=True):
        [alone] = model.generate([prompt], 20, **settings)
        assert [each.sampled for each in alone] == [each.sampled for each in texts]
    with model.engine(slots=3) as engine:
        handles = [engine.submit(model.request(each, 20, seed=3, log_probabilities=2)) for each in prompts]
        for handle, texts in zip(handles, together, strict=True):
            assert handle.texts()[0].sampled == texts[0].sampled


@pytest.mark.parametrize("whole", [True, False])
def test_reused_slot_keeps_no_state(whole):
    network = make("lstm").network
    fresh, used = (RecurrentBatchDecoder(network, 4, whole) for _ in range(2))
    used.decode_one([0, 1, 2], [5, 6, 7], [0, 0, 0])
    for decoder in (fresh, used):
        prefill = decoder.prefill([9, 8, 7])
        while prefill.logits is None:
            prefill.run_chunk()
        decoder.insert(1, prefill)
    assert torch.equal(fresh.decode_one([1], [4], [3]), used.decode_one([1], [4], [3]))


def test_beams_continue_from_reordered_states():
    model = make("gru")
    best = model.generate("The", 6, beams=4)
    ids = model.tokenizer.encode("The")
    scores = model.logits(ids + best.ids).log_softmax(-1)
    expected = sum(scores[len(ids) - 1 + t, i].item() for t, i in enumerate(best.ids))
    assert best.score == pytest.approx(expected / len(best.ids), abs=1e-4)
    decoder = RecurrentDecoder(model.network, 2)
    decoder.prefill(torch.tensor([[1, 2], [3, 4]]))
    decoder.reorder([1, 1])
    rows = decoder.decode_one(torch.tensor([[5], [5]]))
    assert torch.equal(rows[0], rows[1])
    assert torch.allclose(rows[0], model.logits([3, 4, 5])[-1], atol=1e-5)


def test_transformer_only_features_are_rejected():
    model = make("elman")
    for call in (
        lambda: model.generate("The", 3, shift=True),
        lambda: model.generate("The", 3, edit={"final": 0}),
        lambda: model.fill("The ___ sat"),
        lambda: model.weight("block.0.head.0.W_Q"),
    ):
        with pytest.raises(UserError) as error:
            call()
        assert "\n" not in str(error.value)
