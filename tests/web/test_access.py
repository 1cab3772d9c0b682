"""For everyone: keys alone, small screens, both themes, little motion, a screen reader's names."""

import pytest

TEXT = "The duck was too tired"
PLACES = [{}, {"step": 6}, {"part": "feedforward", "step": 1}, {"part": "final", "step": 3}]


@pytest.mark.parametrize("width", [1400, 800, 360])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_fault(visit, axe, theme, width):
    visitor = visit(width=width, height=900, color_scheme=theme)
    for place in PLACES if width == 800 else PLACES[:2]:
        visitor.open(model="modern", text=TEXT, **place)
        assert visitor.page.locator("html").get_attribute("data-theme") == theme
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width
        assert axe(visitor) == []


def test_with_keys_alone(visitor):
    visitor.open(model="modern", text=TEXT)
    reached = []
    for _ in range(150):
        visitor.page.keyboard.press("Tab")
        reached.append(
            visitor.page.evaluate(
                """() => { const e = document.activeElement; return e.closest("[role=gridcell]") ? "grid"
                  : e.getAttribute("aria-label") ?? e.textContent.trim(); }"""
            )
        )
        if reached[-1] == "grid":
            break
    assert {"Text that goes through the model", "temperature", "min-p", "softmax", "grid"} <= set(reached)
    visitor.page.keyboard.press("ArrowDown")
    visitor.page.keyboard.press("ArrowRight")
    there = visitor.page.evaluate("({...document.activeElement.dataset})")
    site = "block.0.head.0.query_raw"
    visitor.see(site, (site, there["row"], there["column"]))
    visitor.page.keyboard.press("Enter")
    visitor.page.get_by_role("button", name="← back").wait_for()
    visitor.page.keyboard.press("Escape")
    visitor.expect(visitor.page.get_by_role("button", name="← back").count, 0)


def test_sliders_and_the_prompt_by_keys(visitor):
    visitor.open(model="shared", text="a cat")
    slider = visitor.page.get_by_label("temperature", exact=True)
    slider.focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.expect(lambda: slider.input_value(), "1.05")
    visitor.prompt.focus()
    visitor.page.keyboard.press("Enter")
    visitor.expect(lambda: len(visitor.prompt.input_value()), 6)


def test_little_motion_where_that_is_wished(visit):
    visitor = visit(reduced_motion="reduce")
    visitor.open(model="shared", text="a cat")
    visitor.page.locator(".next li button").first.click()
    visitor.page.wait_for_selector(".pulse", state="attached")
    moving = visitor.page.evaluate(
        """() => document.getAnimations().length + [...document.querySelectorAll("*")].filter((each) => {
          const style = getComputedStyle(each);
          return style.animationName !== "none" || style.transitionDuration !== "0s";
        }).length"""
    )
    assert moving == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_is_kept(visit, theme):
    visitor = visit(color_scheme=theme)
    other = {"light": "dark", "dark": "light"}[theme]
    visitor.open(model="modern", text=TEXT)
    visitor.button("Light or dark").click()
    visitor.expect(lambda: visitor.page.locator("html").get_attribute("data-theme"), other)
    visitor.page.reload()
    visitor.settle()
    assert visitor.page.locator("html").get_attribute("data-theme") == other
