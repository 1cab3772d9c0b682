"""A model with soft-capping: its steps, their formulas and descriptions, in both languages."""

import pytest

from tests.serving import make_registry, running
from tests.web.test_numbers import with_caps
from tests.web.visitor import tex

TEXT = "The duck was too tired"


@pytest.fixture(scope="module")
def capped(models):
    return with_caps(models["modern"])


@pytest.fixture(scope="module")
def capped_server(capped):
    registry = make_registry(slots=1, capped=capped)
    with running(registry) as made:
        yield made
    registry.close(cancel=True)


def explain(visitor, site, row, column):
    """The formula of a cell, with symbols and with numbers."""
    visitor.see(site)
    visitor.page.locator(f"[role=gridcell][data-row='{row}'][data-column='{column}']").first.hover()
    visitor.see(site, (site, row, column))
    return visitor.page.locator(".formula annotation").all_text_contents()


def test_scores_and_logits_are_capped_in_steps_of_their_own(visit, capped, capped_server):
    visitor, trace = visit(capped_server), capped.inspect(TEXT)
    row, head = len(trace) - 1, "block.1.head.1"
    visitor.open(model="capped", text=TEXT, block=1, head=1, step="cap")
    symbols, *_, numbers = explain(visitor, f"{head}.capped", row, 1)
    assert f"s''_{{{row},1}} = 1.5 \\tanh\\frac{{s'_{{{row},1}}}}{{1.5}}" in symbols
    assert f"\\frac{{{tex(trace[f'{head}.scaled'][row, 1].item())}}}{{1.5}}" in numbers
    assert "keeps large ones between" in visitor.page.locator("[data-place=detail]").inner_text()

    visitor.open(model="capped", text=TEXT, part="final", step="cap")
    token = int(trace.logits[row].argmax())
    numbers = explain(visitor, "logits", row, token)[-1]
    assert f"2.5 \\tanh\\frac{{{tex(trace['logits_raw'][row, token].item())}}}{{2.5}}" in numbers


def test_attributions_are_said_to_be_of_the_logit_before_the_cap(visit, capped_server):
    visitor = visit(capped_server)
    visitor.open(model="capped", text=TEXT, view="why")
    visitor.expect(
        lambda: "the sum is the logit before the cap" in visitor.page.locator("section.why").inner_text(),
        True,
    )
