"""The formula and sources shown for every value are correct, for models of many kinds."""

import json
import math
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from clearhead.inspect.sites import all_sites
from clearhead.inspect.trace import Trace
from clearhead.inspect.weights import weight, weight_names
from clearhead.model.config import PRESETS, Config
from clearhead.model.transformer import Transformer
from tests.shapes import GEMMA2, OLMO2_WITH_YARN

WEB = Path(__file__).parents[2] / "web"
SIZES = {"n_vocab": 11, "n_context": 8, "n_block": 2, "n_head": 2, "d_model": 12}
KINDS = {
    **{name: {**PRESETS[name]} for name in PRESETS},
    "shared keys": {**PRESETS["modern"], "n_kv_head": 1, "rotary_dim": 4},
    "Llama": {**PRESETS["modern"], "qk_norm": False},
    "exact GELU, sinusoidal": {**PRESETS["lecture"], "feedforward": "gelu", "position": "sinusoidal"},
    "bidirectional": {**PRESETS["lecture"], "causal": False, "position": "none"},
    "parallel": {
        **PRESETS["gpt2"],
        "parallel": True,
        "position": "rotary",
        "rotary_dim": 2,
        "tied": False,
    },
    "post-norm, windows": {
        **PRESETS["modern"],
        "feedforward": "geglu",
        "n_kv_head": 1,
        "post_norm": True,
        "embedding_scale": 5.0,
        "window": 3,
        "local_blocks": [0],
        "local_rotary_base": 100.0,
        "rope_scaling": {"kind": "linear", "factor": 8.0},
        "d_k": 10,
    },
    "OLMo 2, YaRN": {**OLMO2_WITH_YARN, "n_kv_head": 1},
    "capped, like Gemma 2": {**GEMMA2, "n_kv_head": 1},
    "SmolLM3": {**PRESETS["modern"], "qk_norm": False, "unrotated_blocks": [1]},
    "stretched": {
        **PRESETS["modern"],
        "rope_scaling": {
            "kind": "llama3",
            "factor": 4.0,
            "low_freq_factor": 0.5,
            "high_freq_factor": 2.0,
            "original_context": 40,
        },
    },
}


def record(choices):
    torch.manual_seed(0)
    network = Transformer(Config.from_json({**SIZES, **choices})).eval()
    for parameter in network.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    ids = [3, 1, 4, 1, 5, 9, 2]
    with torch.no_grad():
        trace = Trace(network, torch.tensor([ids]), [[str(i) for i in ids]])
        sites = [str(site) for site in all_sites(network.config)]
        numbers = {name: trace[name] for name in sites}
    for name in weight_names(network.config):
        if not name.endswith((".QK", ".OV")):
            numbers[name] = weight(network, name)
    listed = {name: _listed(tensor) for name, tensor in numbers.items()}
    return {"config": network.config.to_json(), "ids": ids, "sites": sites, "numbers": listed}


def _listed(tensor):
    rows = (tensor if tensor.dim() == 2 else tensor[:, None]).tolist()
    return [[value if math.isfinite(value) else None for value in row] for row in rows]


@pytest.mark.slow
def test_every_value_follows_from_its_displayed_formula(tmp_path):
    npx = shutil.which("npx")
    if npx is None or not (WEB / "node_modules" / "vitest").is_dir():
        pytest.skip("requires npm and the packages in web/node_modules: run `make check`")
    recorded = tmp_path / "recorded.json"
    recorded.write_text(json.dumps({kind: record(choices) for kind, choices in KINDS.items()}))
    done = subprocess.run(
        [npx, "vitest", "run", "tests/model/evaluation.test.ts"],
        cwd=WEB,
        env={**os.environ, "CLEARHEAD_RECORDED": str(recorded), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert f"{len(KINDS)} passed" in done.stdout
