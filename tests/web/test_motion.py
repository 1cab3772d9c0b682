"""Motion from step to step: it runs, ends at once when asked to, leaves nothing behind, and can be turned off."""

import pytest

from tests.web.visitor import short

TEXT = "The duck was too tired"
HEAD = "block.0.head.0"
# Every animation is paused at its midpoint, so that no test depends on the speed of the machine.
FREEZE = """
  window.started = 0;
  const animate = Element.prototype.animate;
  Element.prototype.animate = function (...parameters) {
    window.started++;
    const animation = animate.apply(this, parameters);
    animation.pause();
    animation.currentTime = 250;
    return animation;
  };
"""
STEPS = ["project", "QK-norm", "rotate", "compare", "divide", "mask", "softmax", "weigh", "sum", "write"]


@pytest.fixture
def visitor(visit):
    visitor = visit(reduced_motion="no-preference")
    visitor.context.add_init_script(FREEZE)
    return visitor


def moving(visitor):
    return visitor.page.locator(".motion .piece").count()


def running(visitor):
    return visitor.page.evaluate("document.getAnimations().length")


def started(visitor):
    """The number of animations started, once everything on screen is drawn."""
    visitor.settle()
    return visitor.page.evaluate("window.started")


def step_to(visitor, site, key="ArrowRight"):
    visitor.page.keyboard.press(key)
    visitor.see(site)
    visitor.page.wait_for_selector(".motion .piece")


def test_every_step_of_a_head_moves_for_half_a_second(visitor):
    visitor.open(model="modern", text=TEXT, part="norm", step=1)
    assert started(visitor) == 0
    for name in STEPS:
        visitor.page.keyboard.press("ArrowRight")
        visitor.expect(lambda: visitor.step, name)
        visitor.page.wait_for_selector(".motion .piece")
        durations = visitor.page.evaluate(
            "document.getAnimations().map((each) => each.effect.getComputedTiming().endTime)"
        )
        assert set(durations) == {500}
        assert len(durations) == moving(visitor)


def test_moving_scores_are_those_of_the_model(visitor, models):
    visitor.open(model="modern", text=TEXT, step="rotate")
    step_to(visitor, f"{HEAD}.scores")
    trace = models["modern"].inspect(TEXT)
    scores = trace[f"{HEAD}.scores"][-1].tolist()
    moved = visitor.page.locator(".motion .piece.attention .number").all_inner_texts()
    assert moved == [short(score) for score in scores]


def test_motion_hides_nothing_from_the_pointer_and_says_nothing(visitor, axe):
    visitor.open(model="modern", text=TEXT, step="softmax")
    step_to(visitor, f"{HEAD}.weighed")
    layer = visitor.page.locator(".motion")
    assert layer.get_attribute("aria-hidden") == "true"
    assert layer.evaluate("(layer) => getComputedStyle(layer).pointerEvents") == "none"
    assert axe(visitor) == []
    visitor.page.locator("[role=gridcell][data-row='1'][data-column='2']").hover()
    visitor.see(f"{HEAD}.weighed", (f"{HEAD}.weighed", 1, 2))
    assert moving(visitor) > 0


@pytest.mark.parametrize("skip", ["key", "click", "step", "token", "finish"])
def test_motion_ends_at_once_and_leaves_nothing_behind(visitor, skip):
    visitor.open(model="modern", text=TEXT, step="rotate")
    step_to(visitor, f"{HEAD}.scores")
    if skip == "key":
        visitor.page.keyboard.press("Shift")
    elif skip == "click":
        visitor.page.locator(".brand").click()
    elif skip == "token":
        visitor.page.keyboard.press("ArrowUp")
    elif skip == "finish":
        visitor.page.evaluate("document.getAnimations().forEach((each) => each.finish())")
    else:
        scores = visitor.page.locator(".motion .piece").count()
        step_to(visitor, f"{HEAD}.scaled")
        visitor.expect(lambda: moving(visitor) == scores, False)  # only those of the next step
        visitor.page.keyboard.press("Shift")
    visitor.expect(lambda: (moving(visitor), running(visitor)), (0, 0))
    assert visitor.page.locator(".motion *").count() == 0


def test_nothing_moves_with_reduced_motion(visit):
    visitor = visit()  # prefers reduced motion
    visitor.context.add_init_script(FREEZE)
    visitor.open(model="modern", text=TEXT, step="rotate")
    for site in ("scores", "scaled", "masked", "weights"):
        visitor.page.keyboard.press("ArrowRight")
        visitor.see(f"{HEAD}.{site}")
    assert started(visitor) == 0


def test_nothing_moves_without_a_step(visitor):
    """Loading, going back, opening a number, or selecting another token, block or head moves nothing."""
    visitor.open(model="modern", text=TEXT, step="softmax")
    visitor.page.keyboard.press("ArrowUp")
    visitor.page.keyboard.press("]")
    visitor.see("block.0.head.1.weights")
    visitor.page.locator("[role=gridcell][data-row='2'][data-column='1']").click()
    visitor.page.locator("[data-testid=card] .number[data-cell^='block.0.head.1.masked ']").first.click()
    visitor.see("block.0.head.1.masked")
    visitor.page.go_back()
    visitor.see("block.0.head.1.weights")
    assert started(visitor) == 0
    visitor.page.reload()
    visitor.see("block.0.head.1.weights")
    assert started(visitor) == 0
    visitor.button("Feed-forward").click()
    visitor.page.wait_for_selector(".motion .piece")
    before = started(visitor)
    visitor.page.go_back()
    visitor.see("block.0.head.1.weights")
    assert started(visitor) == before
