import pytest

from clearhead.errors import UserError
from clearhead.model.config import PRESETS, Config, preset
from clearhead.model.transformer import Transformer

SIZES = {"n_vocab": 50, "n_context": 16, "n_block": 2, "n_head": 4, "d_model": 32}


def test_missing_sizes_get_defaults():
    config = preset("modern", **SIZES)
    assert (config.n_kv_head, config.d_head, config.d_hidden) == (4, 8, 96)
    assert preset("lecture", **SIZES).d_hidden == 128


@pytest.mark.parametrize("name", PRESETS)
def test_json_round_trip(name):
    config = preset(name, **SIZES, n_kv_head=2, dropout=0.1, score_cap=50.0, logit_cap=30.0)
    assert Config.from_json(config.to_json()) == config


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("more", [{}, {"tied": False}, {"n_kv_head": 2}, {"d_head": 10, "d_hidden": 40}])
def test_parameter_count_is_exact(name, more):
    config = preset(name, **SIZES, **more)
    assert sum(parameter.numel() for parameter in Transformer(config).parameters()) == config.n_parameter


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"d_model": 33}, ["33", "4 heads", "32", "36"]),
        ({"n_kv_head": 3}, ["4 heads", "3 key-value heads"]),
        ({"d_head": 7, "position": "rotary"}, ["d_head = 7", "even"]),
        ({"n_block": 0}, ["n_block = 0", "from 1 to"]),
        ({"n_vocab": -5}, ["n_vocab = -5"]),
        ({"n_context": 2.5}, ["n_context = 2.5", "an integer"]),
        ({"n_head": True}, ["n_head = True"]),
        ({"n_block": 10**9}, ["n_block"]),
        ({"norm": "batch"}, ["norm = 'batch'", "layer, rms"]),
        ({"position": "clock"}, ["'clock'", "rotary"]),
        ({"feedforward": "tanh"}, ["'tanh'", "swiglu"]),
        ({"dropout": 1.0}, ["dropout = 1.0"]),
        ({"dropout": float("nan")}, ["dropout = nan"]),
        ({"norm_epsilon": 0.0}, ["norm_epsilon"]),
        ({"score_cap": 0}, ["score_cap = 0", "between 0 and"]),
        ({"logit_cap": "30"}, ["logit_cap = '30'"]),
        ({"causal": "yes"}, ["causal = 'yes'"]),
        ({"n_heads": 4}, ["unknown setting 'n_heads'", "did you mean 'n_head'"]),
    ],
)
def test_invalid_configs_are_rejected_with_a_reason(settings, words):
    with pytest.raises(UserError) as caught:
        Config.from_json({**SIZES, **settings})
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_settings_are_named():
    with pytest.raises(UserError, match="'d_model' is missing"):
        Config.from_json({name: value for name, value in SIZES.items() if name != "d_model"})


def test_unknown_preset_error_lists_known_presets():
    with pytest.raises(UserError, match="lecture, gpt2, modern"):
        preset("gpt5", **SIZES)
