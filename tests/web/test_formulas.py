"""Formulas: typeset in the page's own fonts, never cut off, and with the model's own numbers in them."""

import pytest

from tests.web.visitor import tex

TEXT = "The duck was too tired"
SHOWN = 4  # terms of a long sum


def written(visitor):
    """The TeX of the formula with numbers."""
    return visitor.page.locator(".formula annotation").last.text_content()


def products(one, other):
    terms = sorted(zip(one.tolist(), other.tolist(), strict=True), key=lambda pair: -abs(pair[0] * pair[1]))

    def factor(x):
        return f"({tex(x)})" if x < 0 else tex(x)

    return [f"{{{factor(a)} \\cdot {factor(b)}}}" for a, b in terms]


def test_numbers_in_formulas_match_python(visitor, models):
    model = models["lecture"]
    trace = model.inspect(TEXT)
    row, head = len(trace) - 1, "block.1.head.1"
    visitor.open(model="lecture", text=TEXT, block=1, head=1)

    steps = visitor.page.locator(".detail .steps")

    def follow(step, site, column):
        steps.get_by_role("button", name=step, exact=True).click()
        visitor.see(site)
        visitor.page.locator(f"[role=gridcell][data-row='{row}'][data-column='{column}']").hover()
        visitor.see(site, (site, row, column))
        return written(visitor)

    query = follow("project", f"{head}.query_raw", 2)
    terms = products(trace["block.1.normed"][row], model.weight(f"{head}.W_Q")[:, 2])
    assert query.startswith("\\displaystyle {}= \\nobreak " + " + ".join(terms[:SHOWN]))
    assert f"\\text{{… {len(terms) - SHOWN} smaller}}" in query
    order = visitor.page.locator("[data-testid=card] .order")
    assert set(order.all_inner_texts()) == {"largest products first"}

    score = trace[f"{head}.scores"][row, 1].item()
    divided = follow("divide", f"{head}.scaled", 1)
    assert divided == f"\\displaystyle {{}}= \\nobreak \\frac{{{tex(score)}}}{{\\sqrt{{{model.config.d_k}}}}}"

    scores = trace[f"{head}.masked"][row]
    softmax = follow("softmax", f"{head}.weights", 1)
    *largest, third = sorted((x for i, x in enumerate(scores.tolist()) if i != 1), reverse=True)[:3]
    powers = [f"e^{{{tex(x)}}}" for x in (scores[1].item(), *largest)]
    rest = f"\\text{{… {len(scores) - 3} {'smaller' if scores[1].item() >= third else 'more'}}}"
    assert softmax == f"\\displaystyle {{}}= \\nobreak \\frac{{{powers[0]}}}{{{' + '.join([*powers, rest])}}}"

    assert order.all_inner_texts() == ["this, then the largest"]

    visitor.open(model="lecture", text=TEXT, block=1, part="norm", step="norm")
    normed = follow("norm", "block.1.normed", 3)
    x, mean, scale, gain = (
        trace["block.1.input"][row, 3].item(),
        trace["block.1.normed.mean"][row].item(),
        trace["block.1.normed.scale"][row].item(),
        model.weight("block.1.normed.gain")[3].item(),
    )
    mean_tex = f"({tex(mean)})" if mean < 0 else tex(mean)
    assert f"\\frac{{{tex(x)} - {mean_tex}}}{{{tex(scale)}}}" in normed
    assert tex(gain) in normed

    values = trace["block.1.input"][row]
    variance = ((values - values.mean()) ** 2).mean().item()
    steps.get_by_role("button", name="scale σ").click()
    visitor.see("block.1.normed.scale")
    visitor.expect(lambda: f"\\sqrt{{{tex(variance)} + " in written(visitor), True)


@pytest.mark.parametrize(("scheme", "name"), [("light", "lecture"), ("dark", "modern")])
def test_formulas_of_all_steps_fit_a_phone_and_use_the_fonts_of_the_page(visit, scheme, name):
    visitor = visit(width=390, height=844, color_scheme=scheme)
    visitor.open(model=name, text=TEXT, block=1, head=1, part="embedding")
    seen = set()
    while True:
        site = visitor.site
        visitor.see(site)
        seen.add(site)
        formula = visitor.page.locator(".formula")
        wide, room = formula.evaluate("(each) => [each.scrollWidth, each.clientWidth]")
        assert wide <= room, site
        assert visitor.foreign_letters() == [], site
        colors = formula.evaluate(
            """(each) => [...each.querySelectorAll(".katex-html span")]
              .map((part) => getComputedStyle(part).color)"""
        )
        assert set(colors) == {visitor.page.evaluate("getComputedStyle(document.body).color")}
        visitor.page.keyboard.press("ArrowRight")
        visitor.settle()
        if visitor.site == site:
            break
    assert len(seen) > 20
    assert visitor.page.locator(".katex-error").count() == 0


def test_python_name_of_a_number_is_copied(visitor):
    visitor.open(model="lecture", text=TEXT, block=1, head=1, step="softmax")
    visitor.see("block.1.head.1.weights")
    python = visitor.page.locator("[data-testid=card] .python")
    name = python.inner_text()
    python.click()
    visitor.expect(lambda: visitor.page.evaluate("navigator.clipboard.readText()"), name)
    visitor.expect(python.inner_text, "Copied")
    visitor.expect(python.inner_text, name)


def test_screen_readers_read_each_formula_once(visitor):
    visitor.open(model="lecture", text=TEXT, block=1, head=1, step="softmax")
    visitor.see("block.1.head.1.weights")
    formula = visitor.page.get_by_role("group", name="Formula")
    assert formula.get_by_role("math").count() == 3
    assert formula.locator(".katex-html:not([aria-hidden=true])").count() == 0
