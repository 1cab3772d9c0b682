"""Loading, ready and failed states: none of them looks like another."""

import json

TEXT = "The duck was too tired"


def hold(visitor, path):
    """Hold back the responses of a path until the returned function is called."""
    held = []
    visitor.page.route(f"**{path}", lambda route: held.append(route))  # Playwright needs a Python function

    def release():
        for route in held:
            route.continue_()
        visitor.page.unroute(f"**{path}")

    return release


def fail(visitor, *paths, status=500, message="out of memory"):
    """Answer requests to these paths with an error until the returned function is called."""
    body = json.dumps({"error": {"message": message, "code": "internal_error"}})
    for path in paths:
        visitor.page.route(f"**{path}", lambda route: route.fulfill(status=status, body=body))
    visitor.forgive(str(status))

    def recover():
        for path in paths:
            visitor.page.unroute(f"**{path}")

    return recover


def test_a_view_is_loading_until_it_is_ready(visitor):
    visitor.open(model="modern", text=TEXT)
    release = hold(visitor, "/api/lens")
    visitor.page.get_by_role("button", name="Logit lens").click()
    status = visitor.page.locator(".view [role=status]")
    visitor.expect(status.all_inner_texts, ["Running the model…"])
    assert visitor.page.locator(".view [role=grid]").count() == 0
    release()
    visitor.page.locator(".view [role=grid]").wait_for()
    assert status.count() == 0


def test_heads_are_busy_until_they_are_scored(visitor):
    visitor.open(model="modern", text=TEXT, view="heads")
    section = visitor.page.get_by_role("region", name="All heads")
    release = hold(visitor, "/api/heads")
    visitor.page.get_by_label("Sort by").select_option("previous")
    visitor.page.get_by_role("status").filter(has_text="Scoring every head").wait_for()
    assert section.get_attribute("aria-busy") == "true"
    release()
    visitor.expect(lambda: section.get_attribute("aria-busy"), "false")


def test_next_words_are_not_excluded_while_their_logits_load(visitor, models):
    visitor.open(model="modern", text=TEXT)
    release = hold(visitor, "/api/sites")
    visitor.prompt.fill(f"{TEXT} to")
    visitor.page.get_by_role("status").filter(has_text="Running the model").wait_for()
    shares = visitor.page.locator(".next .share")
    best = models["modern"].inspect(f"{TEXT} to")["probabilities"][-1].topk(1).values.item()
    visitor.expect(lambda: shares.first.inner_text(), f"{100 * best:.1f}%")
    assert visitor.page.locator(".next .cut").count() == 0
    release()
    visitor.settle()
    assert shares.first.inner_text() == f"{100 * best:.1f}%"


def test_a_failed_view_says_so_and_can_be_retried(visitor):
    visitor.open(model="modern", text=TEXT)
    failure = json.dumps({"error": {"message": "out of memory", "code": "internal_error"}})
    visitor.page.route("**/api/lens", lambda route: route.fulfill(status=500, body=failure))
    visitor.forgive("500")
    visitor.page.get_by_role("button", name="Logit lens").click()
    alert = visitor.page.locator(".view [role=alert]")
    visitor.expect(lambda: "out of memory" in alert.inner_text(), True)
    assert visitor.page.locator(".view [role=grid]").count() == 0
    visitor.page.unroute("**/api/lens")
    alert.get_by_role("button", name="Try again").click()
    visitor.page.locator(".view [role=grid]").wait_for()
    assert alert.count() == 0


def test_a_request_that_cannot_succeed_offers_no_retry(visitor):
    visitor.open(model="modern", text=TEXT)
    failure = json.dumps({"error": {"message": "too many tokens", "code": "invalid_value"}})
    visitor.page.route("**/api/lens", lambda route: route.fulfill(status=400, body=failure))
    visitor.forgive("400")
    visitor.page.get_by_role("button", name="Logit lens").click()
    alert = visitor.page.locator(".view [role=alert]")
    visitor.expect(lambda: "too many tokens" in alert.inner_text(), True)
    assert alert.get_by_role("button").count() == 0


def test_runs_that_cannot_be_loaded_are_not_missing_and_can_be_retried(visitor):
    recover = fail(visitor, "/api/runs")
    visitor.open(model="modern", text=TEXT, view="training")
    alert = visitor.page.locator("main [role=alert]:not(:empty)")
    visitor.expect(lambda: "out of memory" in alert.inner_text(), True)
    assert visitor.page.get_by_text("There are no runs").count() == 0
    recover()
    alert.get_by_role("button", name="Try again").click()
    visitor.page.get_by_text("There are no runs").wait_for()
    assert alert.count() == 0


def test_runs_are_loading_until_they_are_known(visitor):
    visitor.open(model="modern", text=TEXT)
    release = hold(visitor, "/api/runs")
    visitor.page.reload()
    visitor.settle()
    visitor.page.get_by_role("button", name="Training", exact=True).click()
    visitor.expect(visitor.page.locator("main [role=status]").all_inner_texts, ["Loading the runs…"])
    release()
    visitor.page.get_by_text("There are no runs").wait_for()


def test_an_error_of_attribution_is_shown_once_and_one_retry_loads_everything(visitor):
    visitor.open(model="modern", text=TEXT)
    recover = fail(visitor, "/api/attribute", "/api/why")
    visitor.page.get_by_role("button", name="Attribution").click()
    visitor.page.locator(".view [role=alert]").first.wait_for()
    visitor.settle()
    assert visitor.page.locator(".view [role=alert]").count() == 1
    recover()
    visitor.button("Try again").click()
    visitor.page.get_by_test_id("total").wait_for()
    visitor.page.get_by_role("heading", name="Why head 0.0 attends").wait_for()


def test_an_empty_comparison_says_what_to_do(visitor):
    visitor.open(model="modern", text=TEXT, view="compare")
    visitor.page.get_by_text("Nothing is compared yet. Type another text above").wait_for()


def test_an_empty_text_stays_empty_after_a_reload(visitor):
    visitor.open(model="modern", text=TEXT)
    visitor.prompt.fill("")
    visitor.expect(lambda: "text=&" in f"{visitor.url}&", True)
    visitor.page.reload()
    visitor.page.get_by_role("status").filter(has_text="The text is empty").wait_for()
    assert visitor.prompt.input_value() == ""
    assert visitor.button("Next word", exact=False).is_disabled()
    visitor.page.get_by_role("button", name="Tiny head").click()  # a view that is not about the text
    visitor.page.get_by_text("small enough to compute by hand").wait_for()
    main = visitor.page.locator("main")
    assert "stale" not in main.get_attribute("class")
    visitor.page.get_by_role("button", name="Training", exact=True).click()
    visitor.page.get_by_text("There are no runs").wait_for()
    visitor.page.get_by_role("button", name="Labs", exact=True).click()
    visitor.page.locator("[data-part=weights] table").wait_for()
    visitor.page.get_by_role("button", name="Lectures", exact=True).click()
    visitor.page.get_by_text("after block 0").first.wait_for()  # a figure with sentences of its own
    for _ in range(28):
        assert "stale" not in main.get_attribute("class")
        visitor.button("Next stop →").click()
    visitor.page.get_by_role("button", name="Step by step").click()
    visitor.type(TEXT)
    visitor.expect(lambda: visitor.said != [], True)


def test_scoring_heads_is_shown_as_work_in_progress(visitor):
    visitor.open(model="modern", text=TEXT, view="heads")
    held = []
    visitor.page.route("**/api/heads", lambda route: held.append(route))
    visitor.page.get_by_label("Sort by").select_option("induction")
    computing = visitor.page.locator("[data-place=heads] .computing")
    computing.filter(has_text="Scoring every head").wait_for()
    visitor.expect(lambda: computing.locator(".spinner").count() == 1 and len(held) > 0, True)
    held.pop().continue_()
    visitor.expect(computing.count, 0)
    visitor.page.locator(".caption").filter(has_text="%").first.wait_for()


def test_generating_neither_fades_the_page_nor_covers_the_tabs(visitor):
    visitor.open(model="modern", text=TEXT)
    main, notice = visitor.page.locator("main"), visitor.page.locator(".waiting")
    release = hold(visitor, "/api/trace")
    asked = len(visitor.asked)
    visitor.page.locator("header .primary").click()
    visitor.expect(lambda: any("/api/trace" in each.url for each in visitor.asked[asked:]), True)
    notice.wait_for()
    assert "stale" not in main.get_attribute("class")
    tabs = visitor.page.locator("[data-place=views]").bounding_box()
    assert notice.bounding_box()["y"] > tabs["y"] + tabs["height"]
    release()
    visitor.settle()
    release = hold(visitor, "/api/trace")
    asked = len(visitor.asked)
    visitor.button("Generate").click()
    visitor.expect(lambda: any("/api/trace" in each.url for each in visitor.asked[asked:]), True)
    assert "stale" not in main.get_attribute("class")
    assert notice.count() == 0
    visitor.button("Stop").first.click()
    release()
    visitor.settle()
