"""Every number on the page is the model's, to the digits shown."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch

from clearhead.generate.sampler import filter_logits
from clearhead.generate.sampling import Sampling
from clearhead.language_model import LanguageModel
from clearhead.model.transformer import Transformer
from tests.web.visitor import percent, precise, short, shows, visible

PROMPTS = ["The duck was too tired", "a", "Tom saw a ball. 2 + 2 = 4"]
WEIGHED = "weighed"


def numbers_of(model, text):
    """A trace, and a function for Python's value at any cell, including weights and page-only values."""
    trace, known = model.inspect(text), {}

    def at(name, row, column, followed):
        if name.endswith(f".{WEIGHED}"):
            head = name.removesuffix(WEIGHED)
            weight = at(f"{head}weights", followed, row, followed)
            return weight * at(f"{head}value", row, column, followed)
        if name not in known:
            is_site = name in {str(site) for site in trace.sites()}
            known[name] = (trace[name] if is_site else model.weight(name)).detach().float()
        tensor = known[name]
        return (tensor[row] if tensor.dim() == 1 else tensor[row, column]).item()

    return trace, at


def with_caps(model):
    """The same model with soft-capping, whose caps are low enough to change its numbers."""
    network = Transformer(replace(model.config, score_cap=1.5, logit_cap=2.5)).eval()
    network.load_state_dict(model.network.state_dict())
    return LanguageModel(network, model.tokenizer)


def steps_of(model, blocks, head):
    """Sites of each step, in the order the page visits them."""
    config = model.config
    mean = ["mean"] if config.norm == "layer" else []

    def norm(name, source):
        return [[f"{name}.{each}"] for each in (*mean, "scale")] + [[name, source]]

    def steps_of_block(b):
        h = f"{b}.head.{head}"
        return [
            *norm(f"{b}.normed", f"{b}.input"),
            [f"{h}.query_raw", f"{h}.key_raw", f"{h}.value"],
            *([[f"{h}.query_normed", f"{h}.key_normed"]] if config.qk_norm else []),
            *([[f"{h}.query", f"{h}.key"]] if not learned else []),
            *(
                [f"{h}.{each}"]
                for each in ("scores", "scaled", *capped, "masked", "weights", WEIGHED, "mixed", "output")
            ),
            [f"{b}.attention"],
            [f"{b}.middle"],
            *norm(f"{b}.normed2", f"{b}.middle"),
            [f"{b}.hidden_gate", f"{b}.hidden_up"] if gated else [f"{b}.hidden_raw"],
            [f"{b}.hidden"],
            [f"{b}.feedforward"],
            [f"{b}.output"],
        ]

    learned = config.position == "learned"
    gated = config.feedforward == "swiglu"
    capped = [] if config.score_cap is None else ["capped"]
    return [
        ["embedding"],
        *([["position"]] if learned else []),
        ["block.0.input"],
        *(step for block in blocks for step in steps_of_block(f"block.{block}")),
        *norm("final", f"block.{config.n_block - 1}.output"),
        *([] if config.logit_cap is None else [["logits_raw"]]),
        ["logits"],
        ["probabilities"],
    ]


def check(seen, site, at, followed):
    wrong = [
        (site, row, column, shown, at(site, row, column, followed))
        for row, column, shown in seen["cells"]
        if not shows(shown, at(site, row, column, followed))
    ]
    assert not wrong
    name, row, column = seen["told"].split()
    value = at(name, int(row), int(column), followed)
    assert shows(seen["result"], value, precise), seen["told"]
    for cell, shown in seen["made"]:
        name, row, column = cell.split()
        assert shows(shown, at(name, int(row), int(column), followed), precise), cell


@pytest.mark.parametrize(
    ("name", "head", "text"),
    [
        ("lecture", 1, PROMPTS[0]),
        ("lecture", 0, PROMPTS[1]),
        ("gpt2", 1, PROMPTS[2]),
        ("modern", 0, PROMPTS[0]),
        ("shared", 1, PROMPTS[1]),
    ],
)
def test_every_number_of_every_step_matches_python(visitor, models, name, head, text):
    model = models[name]
    trace, at = numbers_of(model, text)
    followed = len(trace) - 1
    visitor.open(model=name, text=text, head=head, part="embedding")
    for number, sites in enumerate(steps_of(model, range(model.config.n_block), head)):
        if number > 0:
            visitor.page.keyboard.press("ArrowRight")
        for k, site in enumerate(sites):
            if k > 0:
                visitor.page.locator(".tabs button").nth(k).click()
            seen = visitor.see(site)
            check(seen, site, at, followed)
            tokens = {row for row, _, _ in seen["cells"]}
            assert len(tokens) >= min(len(trace), 15)
    visitor.page.keyboard.press("ArrowRight")  # there is no step after the last
    visitor.see("probabilities")


def test_cells_scrolled_into_view_match_python(visitor, models):
    text = " ".join(["the duck saw a red ball near the pond"] * 2)
    trace, at = numbers_of(models["lecture"], text)
    visitor.open(model="lecture", text=text, part="final", step=3)
    visitor.see("logits")
    by_logit = trace["logits"][-1].argsort(descending=True, stable=True).tolist()
    seen = set()
    for x, y in [(0, 0), (3000, 0), (9000, 400), (20_000, 20_000)]:
        visitor.page.locator("[role=grid]").evaluate("(grid, [x, y]) => grid.scrollTo(x, y)", [x, y])
        visitor.settle()
        shown = visitor.see("logits")
        check(shown, "logits", at, len(trace) - 1)
        columns = list(dict.fromkeys(column for _, column, _ in shown["cells"]))
        start = by_logit.index(columns[0])
        assert columns == by_logit[start : start + len(columns)]
        seen |= {(row, column) for row, column, _ in shown["cells"]}
    assert {(0, by_logit[0]), (len(trace) - 1, by_logit[-1])} <= seen


def test_values_of_another_selected_token_match_python(visitor, models):
    trace, at = numbers_of(models["modern"], PROMPTS[0])
    visitor.open(model="modern", text=PROMPTS[0], block=1, head=1, row=3, step=7)
    for _ in range(2):
        site = visitor.site
        check(visitor.see(site), site, at, 3)
        visitor.page.keyboard.press("ArrowRight")
    most = trace["block.1.head.1.weights"][3].argmax().item()
    share = trace["block.1.head.1.weights"][3, most].item()
    assert percent(share) in visitor.page.locator(".detail .attended").inner_text()


RULES = [
    {},
    {"temperature": 0.5},
    {"temperature": 1.7, "top_k": 5},
    {"top_p": 0.5},
    {"min_p": 0.3},
    {"temperature": 1.3, "top_k": 20, "top_p": 0.8, "min_p": 0.1},
    {"temperature": 0},
]
ADDRESS = {"temperature": "temperature", "top_k": "topK", "top_p": "topP", "min_p": "minP"}


def matches(visitor, expected):
    shown = visitor.page.locator(".next .share").all_inner_texts()
    cutoffs = ("top-k", "top-p", "min-p", "excluded")
    return len(shown) == len(expected) and all(
        text in cutoffs if chance == 0 else text not in cutoffs and shows(text, chance, percent)
        for text, chance in zip(shown, expected, strict=True)
    )


@pytest.mark.parametrize("name", ["lecture", "modern"])
def test_next_token_probabilities_match_python(visitor, models, name):
    trace = models[name].inspect(PROMPTS[0])
    logits = trace.logits[-1].detach().float()
    likeliest = logits.topk(9).indices.tolist()
    visitor.open(model=name, text=PROMPTS[0])
    for rules in RULES:
        for rule in ADDRESS:
            usual = {"temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0}[rule]
            slider = visitor.page.get_by_label(rule.replace("_", "-"), exact=True)
            slider.fill(str(rules.get(rule, usual)))
        chances = filter_logits(logits, Sampling(**{"temperature": 1.0, **rules})).softmax(-1)
        expected = [chances[i].item() for i in likeliest]
        visitor.expect(partial(matches, visitor, expected), True)
    texts = visitor.page.locator(".next .token").all_inner_texts()
    for shown, text in zip(texts, trace.token_texts(likeliest), strict=True):
        assert shown == visible(text)


def test_numbers_are_formatted_as_on_the_page():
    assert [short(x) for x in (0.125, -0.001, -1.5, 12.34, 123.4, -math.inf)] == [
        *("0.13", "0.00", "−1.50", "12.3", "123", "−∞")
    ]
    assert not shows("0.30", torch.tensor(0.2).item())
