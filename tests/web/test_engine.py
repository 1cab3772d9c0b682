"""The TypeScript engine computes what the Python model computes, for models of many kinds."""

import base64
import json
import os
import shutil
import subprocess

import pytest
import torch

from clearhead.generate.decoder import TransformerDecoder
from clearhead.inspect.edits import Edit, Edits
from clearhead.inspect.sites import MATRICES, all_sites, site_shape
from clearhead.inspect.trace import Trace
from clearhead.inspect.weights import weight, weight_names
from clearhead.language_model import LanguageModel
from clearhead.model.config import PRESETS, Config
from clearhead.model.transformer import Transformer
from clearhead.server.in_process import InProcessClient
from clearhead.text.tokenizer import Tokenizer
from tests.shapes import OLMO2_WITH_YARN
from tests.web.test_derivation import KINDS as DERIVED
from tests.web.test_derivation import WEB

SIZES = {"n_vocab": 17, "n_context": 24, "n_block": 2, "n_head": 2, "d_model": 12}
KINDS = {
    **DERIVED,
    "groups of heads": {**PRESETS["modern"], "n_head": 4, "n_kv_head": 2, "d_head": 6, "n_block": 3},
    "QK-norm with shifts": {**PRESETS["gpt2"], "qk_norm": True, "parallel": True, "post_norm": True},
    "long context": {**PRESETS["modern"], "n_context": 200, "rotary_base": 1e6, "d_head": 32},
    "GPT-Neo": {**PRESETS["gpt2"], "d_k": 1, "qkv_bias": False, "window": 3, "local_blocks": [1]},
    "Phi-4": {**PRESETS["modern"], "qk_norm": False, "n_kv_head": 1, "rotary_dim": 4},
    "OLMo 2, YaRN": {**OLMO2_WITH_YARN, "n_head": 4, "d_head": 6, "n_kv_head": 2},
    "SmolLM3": {**PRESETS["modern"], "qk_norm": False, "n_kv_head": 1, "unrotated_blocks": [1]},
    "odd sinusoids": {**PRESETS["gpt2"], "position": "sinusoidal", "d_model": 15, "n_head": 3},
}
IDS = [3, 1, 4, 1, 5, 9, 2]
OTHER = [2, 7, 1, 8, 2, 8, 16]
NEW_TOKENS = 20
CHARACTERS = " abcdefghijklmno"
TEXT, OTHER_TEXT = "a deaf dog", "a deaf cod"
ABLATED = {"site": "block.0.head.1.output", "value": 0}
SCALED = {"site": "block.1.head.0.mixed", "scale": 0.5}
SHIFTED = {"site": "block.0.middle", "value": 0.3, "at": [2, -1], "columns": [1, 3]}
REQUESTS = [
    ("tokens", {"text": TEXT}),
    ("token_texts", {"ids": [3, 16, 0]}),
    ("trace", {"count": 5}),
    ("trace", {"text": [4, 16, 2], "count": 100, "sites": False}),
    ("trace", {"edits": [ABLATED, {"site": "final", "scale": 2.0}]}),
    (
        "sites",
        {"reads": [{"site": "block.1.head.1.weights"}, {"weight": "block.0.head.1.W_Q", "rows": [2, 5]}]},
    ),
    ("sites", {"reads": [{"site": "logits", "rows": [3, 5], "columns": [1, 9]}, {"weight": "final.gain"}]}),
    ("sites", {"reads": [{"site": "block.1.hidden", "rows": [9, 10]}], "edits": [ABLATED]}),
    ("patterns", {"cells": 4}),
    ("patterns", {"blocks": [1, 2], "edits": [SCALED]}),
    ("streams", {}),
    ("compare", {"other": {"model": "model", "text": OTHER_TEXT}}),
    (
        "compare",
        {"other": {"model": "model", "text": "deaf and a doe", "edits": [ABLATED]}, "blocks": [1, 2]},
    ),
    ("effects", {"token": 5}),
    ("effects", {"token": 5, "position": 4, "over": "position", "blocks": [1, 2]}),
    ("effects", {"token": 2, "source": OTHER_TEXT, "edits": [SCALED]}),
    ("attribute", {"token": 5}),
    ("attribute", {"token": 5, "against": 7, "position": 6, "heads": 2, "edits": [ABLATED, SCALED]}),
    ("attribute", {"token": 5, "edits": [{"site": "final", "scale": 2.0}, {"site": "logits", "scale": 0.5}]}),
    ("attribute", {"token": 5, "through": [{"block": 1, "head": 0, "source": 8}]}),
    (
        "attribute",
        {
            "token": 5,
            "against": 1,
            "through": [{"block": 1, "head": 0, "source": 9}, {"block": 0, "head": 1, "source": 9}],
            "edits": [SCALED],
        },
    ),
    ("why", {"block": 1, "head": 1, "query_position": -1, "key_position": 7, "count": 200}),
    (
        "why",
        {"block": 1, "head": 0, "query_position": 5, "key_position": 5, "count": 200, "edits": [ABLATED]},
    ),
    (
        "why",
        {"block": 1, "head": 1, "query_position": 6, "key_position": 2, "against_position": 4, "count": 200},
    ),
    (
        "why",
        {"block": 0, "head": 0, "query_position": 5, "key_position": 5, "count": 200, "edits": [SHIFTED]},
    ),
    ("lens", {"token": 5}),
    ("lens", {"rows": [3, 6]}),
    ("lens", {"edits": [ABLATED, {"site": "final", "scale": 2.0, "at": [1]}]}),
    ("lens", {"rows": [6, 9], "edits": [{"site": "final", "scale": 2.0, "at": [7]}]}),
    ("senses", {"word": "dog", "sentences": ["a dog did", "no dog", "", "go doggo", "dog dog"]}),
    ("senses", {"word": "a", "sentences": ["a deaf", "a cod"]}),
    ("neighbors", {"count": 5}),
    ("neighbors", {"position": 3, "stage": "final", "along": {"start": "a", "end": "b"}, "edits": [ABLATED]}),
    ("neighbors", {"stage": "block.1.input", "count": 100}),
    # Requests that cannot be answered
    ("senses", {"word": "dog", "sentences": ["a dog did", "no cod"]}),
    ("senses", {"word": "dog", "sentences": ["", ""]}),
    ("neighbors", {"stage": "block.0.middle"}),
    ("neighbors", {"along": {"start": "ab", "end": "b"}}),
    ("trace", {"text": ""}),
    ("trace", {"text": "a" * 30}),
    ("trace", {"model": "another"}),
    ("trace", {"edits": [{"site": "block.0.nothing", "value": 0}]}),
    ("trace", {"edits": [{"site": "block.7.input", "value": 0}]}),
    ("trace", {"edits": [{"site": "block.0.input", "value": [1, 2]}]}),
    ("trace", {"edits": [{"site": "block.0.input", "text": OTHER_TEXT[:4]}]}),
    ("trace", {"edits": [{"site": "block.0.input", "value": 0, "at": [10]}]}),
    ("trace", {"edits": [{"site": "block.0.input"}]}),
    ("sites", {"reads": [{"site": "logits", "rows": [3, 11]}]}),
    ("sites", {"reads": [{"weight": "block.0.nothing"}]}),
    ("compare", {"text": "abc", "other": {"model": "model", "text": "defg"}}),
    ("effects", {"token": 17}),
    ("effects", {"token": 5, "source": "abc"}),
    ("attribute", {"token": 5, "through": [{"block": 0, "head": 7, "source": 1}]}),
    ("lens", {"rows": [3, 11]}),
]


def make_network(choices):
    torch.manual_seed(0)
    network = Transformer(Config.from_json({**SIZES, **choices})).eval()
    for parameter in network.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    return network


def record(choices):
    network = make_network(choices)
    config = network.config
    edits = [[edit] for edit in _edits(config)]
    both = [each for pair in edits[1:12:5] for each in pair]
    full = [(7 * i) % config.n_vocab for i in range(config.n_context)]
    texts = [(IDS, []), ([5], []), (full, []), *((IDS, some) for some in [*edits, both])]
    return {
        "config": config.to_json(),
        "parameters": {name: _numbers(value) for name, value in network.state_dict().items()},
        "weights": {name: _numbers(weight(network, name)) for name in weight_names(config)},
        "traces": [record_trace(network, ids, edits) for ids, edits in texts],
        "greedy": _greedy(network) if config.causal else None,
        "characters": CHARACTERS,
        "exchanges": record_exchanges(network),
    }


@torch.no_grad()
def record_trace(network, ids, edits):
    trace = make_trace(network, ids).with_edits(parse_edits(network, edits))
    steps = [trace.steps(i) for i in range(network.config.n_block)]
    sites = {str(site): _numbers(_read(trace, steps, site)) for site in all_sites(network.config)}
    return {"ids": ids, "edits": edits, "sites": sites}


def _read(trace, steps, site):
    """Read a site from the steps of its block, which are computed once for all its sites."""
    if site.block is None:
        return trace.read(str(site))
    config, tensor = trace.config, steps[site.block].read(site)[0]
    if site.kv_head is not None:
        return tensor[site.kv_head * config.n_head // config.n_kv_head]
    return tensor if site.head is None else tensor[site.head]


@torch.no_grad()
def make_trace(network, ids):
    return Trace(network, torch.tensor([ids]), [[str(i) for i in ids]])


def parse_edits(network, requests):
    """The edits of these requests; a text to patch from is written as ids."""
    edits = Edits()
    for request in requests:
        if "text" in request:
            value = make_trace(network, [int(i) for i in request["text"].split()])
        elif "scale" in request:
            value = lambda tensor, factor=request["scale"]: tensor * factor  # noqa: E731
        else:
            value = torch.tensor(request["value"])
        edit = Edit(value, at=request.get("at"), columns=request.get("columns"))
        edits += Edits.parse({request["site"]: edit}, network.config)
    return edits


def _edits(config):
    """An edit of each site in the first block and outside the blocks; the kinds of edits take turns."""
    sites = [site for site in all_sites(config) if not site.block and not site.head and not site.kv_head]
    random = torch.Generator().manual_seed(1)
    for number, site in enumerate(sites):
        name, kind = str(site), number % 5
        shape = site_shape(name, config, len(IDS))
        if kind == 0:
            yield {"site": name, "scale": 1.5}
        elif kind == 1:
            columns = {} if len(shape) == 1 or site.name in MATRICES else {"columns": [0, -1, 2]}
            yield {"site": name, "value": 0.7, "at": [1, -1], **columns}
        elif kind == 2:
            yield {"site": name, "value": torch.rand(shape, generator=random).add(0.1).tolist()}
        elif kind == 3:
            yield {"site": name, "text": " ".join(map(str, OTHER))}
        elif site.name in MATRICES:
            yield {"site": name, "scale": -0.5, "at": [3], "columns": [1]}
        else:
            yield {"site": name, "text": " ".join(map(str, OTHER[:5])), "at": [4, 2]}


def record_exchanges(network):
    """Requests of the page about a text, and the server's responses."""
    tokenizer = Tokenizer.train("char", [CHARACTERS])
    client = InProcessClient({"model": (LanguageModel(network, tokenizer, name="model"), ())})
    exchanges = []
    for path, fields in REQUESTS:
        body = {"model": "model", **fields}
        if path not in ("token_texts", "senses"):
            body = {"text": TEXT, **body}
        response = client.request("POST", f"/api/{path}", json.dumps(body))
        exchanges.append(
            {"path": f"/api/{path}", "body": body, "status": response.status, **_answer(response)}
        )
    return exchanges


def _answer(response):
    if "x-shape" not in response.headers:
        return {"json": json.loads(response.body)}
    shapes = [list(map(int, shape.split(","))) for shape in response.headers["x-shape"].split(";")]
    return {"matrices": {"shapes": shapes, "data": base64.b64encode(response.body).decode()}}


@torch.no_grad()
def _greedy(network):
    decoder, ids = TransformerDecoder(network), []
    logits = decoder.prefill(torch.tensor([IDS]))
    while len(ids) < NEW_TOKENS:
        ids.append(logits.argmax().item())
        logits = decoder.decode_one(torch.tensor([[ids[-1]]]))
    return {"prompt": IDS, "ids": ids}


def _numbers(tensor):
    array = tensor.detach().float().contiguous().numpy().astype("<f4")
    return {"shape": list(array.shape), "data": base64.b64encode(array.tobytes()).decode()}


@pytest.mark.slow
def test_the_engine_agrees_with_python_at_every_site_and_route(tmp_path):
    npx = shutil.which("npx")
    if npx is None or not (WEB / "node_modules" / "vitest").is_dir():
        pytest.skip("requires npm and the packages in web/node_modules: run `make check`")
    models = {kind: record(choices) for kind, choices in KINDS.items()}
    recorded = tmp_path / "recorded.json"
    recorded.write_text(json.dumps(models))
    done = subprocess.run(
        [
            npx,
            "vitest",
            "run",
            "tests/engine/inspect/trace.test.ts",
            "tests/engine/live/routes.test.ts",
            "--testTimeout=60000",
        ],
        cwd=WEB,
        env={**os.environ, "CLEARHEAD_RECORDED_ENGINE": str(recorded), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    count = sum(3 + len(model["traces"]) + 2 * model["config"]["causal"] for model in models.values())
    count += len(models) * len(REQUESTS) + 1  # the last test needs no recording
    assert f"{count} passed" in done.stdout
