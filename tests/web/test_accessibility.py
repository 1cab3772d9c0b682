"""Accessibility: keyboard only, small screens, both themes, reduced motion, and screen reader names."""

import pytest

TEXT = "The duck was too tired"
PLACES = [{}, {"step": 6}, {"part": "feedforward", "step": 1}, {"part": "final", "step": 3}]


@pytest.mark.parametrize("width", [1400, 800, 360])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_violations(visit, axe, theme, width):
    visitor = visit(width=width, height=900, color_scheme=theme)
    for place in PLACES if width == 800 else PLACES[:2]:
        visitor.open(model="modern", text=TEXT, **place)
        assert visitor.page.locator("html").get_attribute("data-theme") == theme
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width
        assert axe(visitor) == []


def focused_cell(visitor):
    """Row and column of the focused cell; focus moves one frame after a key press."""
    there = visitor.page.evaluate("({...document.activeElement.dataset})")
    return int(there["row"]), int(there["column"])


def test_page_works_with_the_keyboard_alone(visitor):
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
    assert {"Input text", "temperature", "min-p", "softmax", "grid"} <= set(reached)
    row, column = focused_cell(visitor)
    visitor.page.keyboard.press("ArrowUp")  # focus starts in the last row, that of the selected token
    visitor.expect(lambda: focused_cell(visitor), (row - 1, column))
    visitor.page.keyboard.press("ArrowRight")
    visitor.expect(lambda: focused_cell(visitor), (row - 1, column + 1))
    site = "block.0.head.0.query_raw"
    visitor.see(site, (site, row - 1, column + 1))
    visitor.page.keyboard.press("Enter")
    visitor.page.get_by_role("button", name="← Back").wait_for()
    visitor.page.keyboard.press("Escape")
    visitor.expect(visitor.page.get_by_role("button", name="← Back").count, 0)


def test_sliders_and_prompt_work_with_the_keyboard(visitor):
    visitor.open(model="shared", text="a cat")
    slider = visitor.page.get_by_label("temperature", exact=True)
    slider.focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.expect(lambda: slider.input_value(), "1.05")
    visitor.prompt.focus()
    visitor.page.keyboard.press("Enter")
    visitor.expect(lambda: len(visitor.prompt.input_value()), 6)


def test_reduced_motion_is_respected(visit):
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
def test_theme_survives_a_reload(visit, theme):
    visitor = visit(color_scheme=theme)
    other = {"light": "dark", "dark": "light"}[theme]
    visitor.open(model="modern", text=TEXT)
    visitor.button("Switch between light and dark mode").click()
    visitor.expect(lambda: visitor.page.locator("html").get_attribute("data-theme"), other)
    visitor.page.reload()
    visitor.settle()
    assert visitor.page.locator("html").get_attribute("data-theme") == other


LOOK = """() => {
  if (document.querySelector(".flow") === null) return null; // not drawn yet
  const boxOf = (each) => {
    const { left, right, top, bottom } = each.getBoundingClientRect();
    return { name: each.textContent.trim(), left, right, top, bottom };
  };
  const headings = [...document.querySelectorAll(".heading")];
  return {
    boxes: headings.map(boxOf),
    clipped: headings.filter((each) => each.scrollWidth > each.clientWidth).map(boxOf),
    flow: boxOf(document.querySelector(".flow")),
    prompt: document.querySelector("[data-place=prompt]").getBoundingClientRect().width,
    width: document.documentElement.scrollWidth,
  };
}"""


def overlaps(one, other):
    apart = one["right"] <= other["left"] or other["right"] <= one["left"]
    return not apart and one["top"] < other["bottom"] - 1 and other["top"] < one["bottom"] - 1


def see_all_columns(visitor, width):
    """Turn the pages of columns from first to last, check the headings of each, and return their names."""
    back = visitor.page.locator(".pages button:first-child")
    on = visitor.page.locator(".pages button:last-child")
    while back.count() and back.is_enabled():
        back.click()
    names = set()
    while True:
        seen = visitor.page.wait_for_function(LOOK).json_value()
        boxes, flow = seen["boxes"], seen["flow"]
        names |= {box["name"] for box in boxes}
        pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[i + 1 :]]
        assert [(a["name"], b["name"]) for a, b in pairs if overlaps(a, b)] == []
        assert [box for box in boxes if box["left"] < flow["left"] - 1 or box["right"] > flow["right"]] == []
        assert seen["clipped"] == []
        assert seen["prompt"] >= 200
        assert seen["width"] == width
        if not on.count() or on.is_disabled():
            return names
        on_screen = visitor.page.evaluate(f"JSON.stringify(({LOOK})().boxes)")
        on.click()
        visitor.page.wait_for_function(
            f"before => JSON.stringify(({LOOK})()?.boxes) !== before", arg=on_screen
        )


@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
@pytest.mark.parametrize("width", [360, 640, 700, 768, 800, 1024, 1100, 1241, 1440, 2000])
def test_headings_do_not_overlap(visit, width, locale):
    visitor = visit(width=width, height=900, locale=locale)
    visitor.open(model="modern", text=TEXT)
    names = set()
    for _ in range(5):  # while the page settles, it may turn back to the columns of the selected part
        if len(names) < 10:
            names |= see_all_columns(visitor, width)
    assert len(names) == 10  # three of the twelve headings share a name


def test_columns_are_split_into_pages_on_a_phone(visit):
    phone = {"is_mobile": True, "has_touch": True, "device_scale_factor": 3}
    visitor = visit(width=360, height=740, **phone)
    visitor.open(model="modern", text=TEXT)
    headings = visitor.page.locator(".heading")
    assert visitor.page.evaluate("document.documentElement.scrollWidth") == 360
    assert "query" in headings.all_inner_texts()
    visitor.button("softmax").tap()  # the selected step is brought into view
    visitor.expect(lambda: any("attention" in text for text in headings.all_inner_texts()), True)
    visitor.button("Next columns").tap()
    visitor.expect(lambda: "feed-forward" in headings.all_inner_texts(), True)
    headings.get_by_text("feed-forward").tap()
    visitor.see("block.0.hidden_gate")
    visitor.button("Next columns").tap()
    visitor.expect(lambda: "added by blocks 0–1" in headings.all_inner_texts(), True)


def test_all_tabs_and_the_share_menu_are_on_a_phones_screen(visit):
    visitor = visit(width=390, height=844, is_mobile=True, has_touch=True)
    visitor.open(model="modern", text=TEXT)
    for tab in visitor.page.get_by_role("navigation", name="Views").get_by_role("button").all():
        box = tab.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    visitor.button("Share").tap()
    box = visitor.page.get_by_role("dialog", name="Share").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


@pytest.mark.parametrize("view", ["steps", "compare", "change", "why", "lens", "words", "lectures", "tiny"])
def test_views_fit_on_a_phone(visit, view):
    visitor = visit(width=360, height=740, locale="de-DE")
    visitor.open(model="modern", text=TEXT, view=view, other="The frog was tired of the long road")
    visitor.page.wait_for_timeout(800)  # views load their own data
    assert visitor.page.evaluate("document.documentElement.scrollWidth") == 360
