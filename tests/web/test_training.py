"""Training on the page: start from a dropped text, watch, stop, resume, extend, and scrub through snapshots."""

import json
import shutil
import time

import pytest

from clearhead.files import seal
from clearhead.formats.builtin import BUILTIN
from clearhead.language_model import load
from clearhead.runs.run_metrics import read_metrics
from clearhead.server.model_loader import ModelLibrary
from clearhead.server.model_registry import LoadOptions, ModelRegistry, load_models
from tests.serving import make_finished, running
from tests.web.visitor import compact, fixed, shows

TEXT = "The duck was too tired"
WEIGHTS = "block.0.head.1.weights"


@pytest.fixture
def place(tmp_path):
    return tmp_path / "runs"


@pytest.fixture
def school(place, home):
    """A server that trains, with the models that exist when it starts."""
    made = []

    def serve():
        loader = LoadOptions("cpu", slots=1)
        there = sorted(path for path in place.glob("*") if (path / "config.json").exists())
        registry = load_models(there, loader, only_first=True) if there else ModelRegistry([])
        made.append(registry)
        return running(registry, library=ModelLibrary([place], home, loader))

    yield serve
    for registry in made:
        registry.close(cancel=True)


def drop(visitor, text, name="My tales.txt"):
    """Drop a file on the form, as from the desktop."""
    files = visitor.page.evaluate_handle(
        """([text, name]) => {
          const data = new DataTransfer();
          data.items.add(new File([text], name, { type: "text/plain" }));
          return data;
        }""",
        [text, name],
    )
    visitor.page.dispatch_event(".drop", "drop", {"dataTransfer": files})
    visitor.expect(visitor.page.get_by_test_id("text-name").inner_text, name)


def fill(visitor, **sizes):
    visitor.page.get_by_text("More options").click()
    for name, size in sizes.items():
        visitor.page.get_by_label(name, exact=True).fill(str(size))


def row(visitor, run="My-tales"):
    """The table row of a run, at the selected step."""
    cells = visitor.page.locator(f"tr[data-run='{run}'] td")
    return dict(cells.evaluate_all("cells => cells.map((each) => [each.dataset.field, each.innerText])"))


def state(visitor, run="My-tales"):
    item = visitor.page.locator("[aria-labelledby=runs] li", has=visitor.page.get_by_text(run, exact=True))
    return item.locator("[data-state]").get_attribute("data-state")


def address(visitor):
    return visitor.page.evaluate("location.search")


def whole(text):
    return int(text.replace(",", ""))


def check_row(visitor, run, records, step):
    """Check that every number in the table matches the run folder."""
    shown, record = row(visitor, run), records[step - 1]
    assert whole(shown["step"]) == record["step"] == step
    assert shows(shown["loss"], record["loss"], lambda x: fixed(x, 4))
    assert shown["learning_rate"] == compact(record["learning_rate"])
    assert whole(shown["tokens"]) == record["tokens"]
    validated = [each for each in records[:step] if each.get("validation") is not None]
    if not validated:
        assert shown["validation"] == "–"
    else:
        number, _, at = shown["validation"].partition("at step")
        # A tilde marks a loss on a part of the held-out text, for lack of time.
        assert shows(number.strip().removeprefix("~"), validated[-1]["validation"], lambda x: fixed(x, 4))
        assert (whole(at) if at else step) == validated[-1]["step"]


def test_finished_run_is_compared_with_the_built_in_model(visit, home, place, story_text):
    loader = LoadOptions("cpu", slots=1)
    registry = load_models(["stories"], loader)
    with running(registry, library=ModelLibrary([place, BUILTIN], home, loader)) as server:
        visitor = visit(server, width=1400, height=900)
        visitor.open(view="training")
        drop(visitor, story_text)
        fill(visitor, **{"Or steps": 40}, Blocks=1, Heads=2, Width=16, Context=32)
        visitor.button("Train").click()
        visitor.button("Compare with stories").wait_for(timeout=300_000)
        # The heads of the newest snapshot are on the first screen.
        forming = visitor.page.locator("[aria-labelledby=forming]")
        visitor.expect(lambda: int(forming.get_attribute("data-step")), 40)
        assert forming.get_by_role("button").count() == 2
        box = forming.bounding_box()
        assert box["y"] + box["height"] <= 900
        visitor.button("Compare with stories").click()
        visitor.settle()
        compared = visitor.page.get_by_role("region", name="Compare").or_(visitor.page.locator("main"))
        for name in ("My-tales", "stories"):
            compared.first.locator("b", has_text=name).first.wait_for()
        assert visitor.button("Compare with stories").count() == 0
    registry.close(cancel=True)


@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
def test_curves_of_the_built_in_model_are_labeled(visit, home, place, locale):
    loader = LoadOptions("cpu", slots=1)
    registry = load_models(["stories"], loader)
    with running(registry, library=ModelLibrary([place, BUILTIN], home, loader)) as server:
        visitor = visit(server, width=1366, height=768, locale=locale)
        visitor.open(view="training", runs="stories")
        charts = visitor.page.locator(".curves svg")
        charts.first.wait_for()
        assert charts.count() == 2
        for chart in charts.all():
            right = chart.locator("text").evaluate_all(
                "all => Math.max(...all.map((each) => each.getBoundingClientRect().right))"
            )
            box = chart.bounding_box()
            assert right <= box["x"] + box["width"]
        visitor.page.set_viewport_size({"width": 1280, "height": 720})
        numbers = visitor.page.locator(".curves .scroll")
        visitor.expect(lambda: numbers.evaluate("(each) => each.scrollWidth <= each.clientWidth"), True)
        words = {"en-GB": "lists of random words", "de-DE": "Listen zufälliger Wörter"}
        assert words[locale] in visitor.page.locator(".curves figcaption").first.inner_text()
        stops = visitor.page.locator("#training-steps option").count()
        shown = visitor.page.locator("[aria-labelledby=runs] [data-state]").inner_text()
        both = {"en-GB": "snapshots and the latest model", "de-DE": "Zwischenstände und der letzte Stand"}
        assert shown.endswith(f"{stops - 1} {both[locale]}")
    registry.close(cancel=True)


def test_run_is_trained_to_the_end_and_scrubbed(visit, school, place, story_text):
    with school() as server:
        visitor = visit(server, width=1400)
        visitor.page.goto(f"{server.url}/?token={server.credentials.token}")
        visitor.page.get_by_text("There are no models here yet").wait_for()
        visitor.page.keyboard.press("Escape")
        drop(visitor, story_text)
        assert visitor.page.get_by_label("Name", exact=True).input_value() == "My-tales"
        fill(visitor, **{"Or steps": 400}, Blocks=1, Heads=2, Width=16, Context=32)
        visitor.button("Train").click()
        steps, speeds = watch(visitor)
        assert len(set(steps)) > 1, "no progress was shown during training"
        assert steps == sorted(steps)
        assert speeds
        records = read_metrics(place / "My-tales")
        last = records[-1]["step"]
        visitor.expect(lambda: whole(row(visitor)["step"]), last)
        check_row(visitor, "My-tales", records, last)
        reader = visitor.page.get_by_label("Select a step")
        reader.focus()
        visitor.page.keyboard.press("Home")
        visitor.expect(lambda: row(visitor)["step"], "1")
        check_row(visitor, "My-tales", records, 1)
        assert_samples(visitor, records)
        scrub(visitor, place / "My-tales", last)


def watch(visitor):
    """Steps and speeds shown until the run finishes."""
    steps, speeds, end = [], [], time.monotonic() + 900
    while state(visitor) != "finished":
        assert time.monotonic() < end
        shown = visitor.page.locator("td[data-field=step]").all_inner_texts()
        steps += [whole(text) for text in shown if text != "–"]
        speeds += [each for each in visitor.page.get_by_test_id("speed").all_inner_texts() if each]
        time.sleep(0.2)
    return steps, speeds


def assert_samples(visitor, records):
    """Check that samples are listed newest first."""
    written = [each for each in records if each.get("sample") is not None]
    shown = visitor.page.locator(".samples li").evaluate_all(
        "items => items.map((each) => [+each.dataset.step, each.querySelector('.text').textContent])"
    )
    # Compare lengths only: the page may render some characters, such as carriage returns, differently.
    assert [step for step, _ in shown] == [each["step"] for each in reversed(written)]
    assert [len(text) for _, text in shown] == [len(each["sample"]) for each in reversed(written)]


def scrub(visitor, folder, last):
    visitor.button("Inspect My-tales").click()
    visitor.settle()
    visitor.type(TEXT)
    visitor.page.get_by_role("button", name="softmax", exact=True).click()
    visitor.page.locator(".brand").click()
    for _ in range(3):  # the head that the model opens with depends on its training
        if visitor.site != WEIGHTS:
            visitor.page.keyboard.press("]")
            visitor.settle()
    assert visitor.site == WEIGHTS
    slider = visitor.page.get_by_role("slider", name="Training step")
    steps = [int(path.name.removeprefix("step-")) for path in sorted((folder / "snapshots").iterdir())]
    slider.focus()
    visitor.page.keyboard.press("Home")
    check_head(visitor, folder, steps[0])
    assert f"model=My-tales%40{steps[0]}" in address(visitor)
    visitor.page.get_by_role("slider", name="Training step").focus()
    visitor.page.keyboard.press("ArrowRight")
    check_head(visitor, folder, steps[1])
    assert slider.get_attribute("aria-valuetext") == f"step {steps[1]} of {last:,}"
    visitor.page.reload()  # the URL holds the step
    check_head(visitor, folder, steps[1])
    slider.focus()
    visitor.page.keyboard.press("End")
    visitor.expect(lambda: "@" in address(visitor) or "%40" in address(visitor), False)
    check_head(visitor, folder, None)


def check_head(visitor, folder, step):
    """Check that the selected head's weights are Python's at that step."""
    name = visitor.page.get_by_test_id("training-time")
    visitor.expect(
        lambda: name.get_attribute("data-model"), "My-tales" if step is None else f"My-tales@{step}"
    )
    visitor.settle()
    mine = load(folder, "cpu", step=step).inspect(TEXT)[WEIGHTS]

    def same():
        seen = visitor.see(WEIGHTS)["cells"]
        return all(shows(text, float(mine[i, j])) for i, j, text in seen)

    visitor.expect(same, True)


def test_run_is_stopped_and_resumed(visit, school, place, model_folder, story_text):
    shutil.copytree(model_folder, place / "first")
    with school() as server:
        visitor = visit(server, width=1400, locale="de-DE")
        visitor.open(text=TEXT, view="training")
        visitor.page.get_by_text("Verfolge den Verlust eines Laufs").wait_for()
        drop(visitor, story_text)
        visitor.page.get_by_text("Weitere Optionen").click()
        for name, size in (("Oder Schritte", 100_000), ("Blöcke", 1), ("Köpfe", 1), ("Breite", 32)):
            visitor.page.get_by_label(name, exact=True).fill(str(size))
        visitor.button("Trainieren").click()
        visitor.page.locator("td[data-field=step]").wait_for(timeout=90_000)
        assert visitor.button("Ein anderer Lauf ist noch aktiv").is_disabled()
        visitor.button("My-tales anhalten").click()
        visitor.button("My-tales fortsetzen").wait_for(timeout=60_000)
        assert state(visitor) == "stopped"
        done = read_metrics(place / "My-tales")[-1]["step"]
        visitor.button("My-tales fortsetzen").click()
        visitor.page.wait_for_function(
            "done => +document.querySelector('td[data-field=step]')?.innerText.replace('.', '') > done",
            arg=done,
            timeout=90_000,
        )
        visitor.button("My-tales anhalten").click()
        visitor.button("My-tales fortsetzen").wait_for(timeout=60_000)


def test_finished_run_is_extended(visit, school, place, story_text):
    with school() as server:
        visitor = visit(server, width=1400)
        visitor.page.goto(f"{server.url}/?token={server.credentials.token}")
        visitor.page.keyboard.press("Escape")
        drop(visitor, story_text)
        fill(visitor, **{"Or steps": 20}, Blocks=1, Heads=2, Width=16, Context=32)
        visitor.button("Train").click()
        extend = visitor.button("Extend My-tales")
        extend.click(timeout=120_000)
        assert state(visitor) == "finished"
        form = visitor.page.get_by_role("form", name="Extend My-tales")
        form.get_by_label("More minutes").fill("0.1")
        form.get_by_role("button", name="Start").click()
        form.wait_for(state="detached")
        visitor.expect(lambda: whole(row(visitor).get("step", "0").replace("–", "0")) > 20, True, seconds=120)
        extend.wait_for(timeout=120_000)
        records = read_metrics(place / "My-tales")
        visitor.expect(lambda: whole(row(visitor)["step"]), records[-1]["step"], seconds=60)
        check_row(visitor, "My-tales", records, records[-1]["step"])
        assert state(visitor) == "finished"


@pytest.fixture
def past(place, model_folder):
    """Two finished runs."""
    make_finished(place / "one", model_folder, 300, validation=2.0, sample="a cat")
    make_finished(place / "two", model_folder, 120)


def test_page_follows_the_latest_snapshot_during_training(visit, school, place, story_text):
    """Each snapshot is shown as soon as it exists, until the user moves the slider."""
    with school() as server:
        visitor = visit(server, width=1400)
        visitor.page.goto(f"{server.url}/?token={server.credentials.token}")
        visitor.page.keyboard.press("Escape")
        drop(visitor, story_text)
        fill(visitor, **{"Or steps": 100_000}, Blocks=1, Heads=2, Width=16, Context=32)
        visitor.button("Train").click()
        visitor.button("Inspect My-tales").click(timeout=60_000)
        along = visitor.page.get_by_label("follow the latest step")
        along.check(timeout=60_000)
        step = visitor.page.get_by_test_id("training-time")
        seen = set()

        def moved():
            seen.add(int(step.get_attribute("data-step")))
            return len(seen) > 2

        visitor.expect(moved, True, seconds=120)
        visitor.page.get_by_role("slider", name="Training step").focus()
        visitor.page.keyboard.press("Home")
        visitor.expect(along.is_checked, False)
        assert step.get_attribute("data-model") == f"My-tales@{min(seen | {1})}"
        visitor.page.get_by_role("button", name="Training", exact=True).click()
        visitor.button("Stop My-tales").click()
        visitor.button("Resume My-tales").wait_for(timeout=60_000)


def test_runs_are_overlaid_and_stored_in_the_url(visit, school, place, past):
    with school() as server:
        visitor = visit(server, width=1400)
        visitor.open(text=TEXT, view="training", model="one")
        visitor.expect(lambda: row(visitor, "one").get("step"), "300")
        for name in ("one", "two"):
            assert visitor.page.get_by_role("checkbox", name=name).is_checked() == (name == "one")
        visitor.page.get_by_role("checkbox", name="two").check()
        visitor.expect(lambda: row(visitor, "two").get("step"), "120")
        colors = visitor.page.locator("path.smoothed")
        stroke = "paths => paths.map((each) => each.getAttribute('stroke'))"
        visitor.expect(lambda: len(set(colors.evaluate_all(stroke))), 2)
        visitor.button("Log scale").click()
        visitor.expect(lambda: "runs=one%2Ctwo&axis=log" in address(visitor), True)
        visitor.page.reload()
        visitor.settle()
        for name, last in (("one", "300"), ("two", "120")):
            visitor.expect(lambda name=name: row(visitor, name).get("step"), last)
        check_row(visitor, "one", read_metrics(place / "one"), 300)
        assert visitor.button("Log scale").get_attribute("aria-pressed") == "true"
        chart = visitor.page.get_by_role("img", name="Loss by step: one, step 300")
        chart.hover(position={"x": 200, "y": 60})
        visitor.expect(lambda: whole(row(visitor, "one")["step"]) < 300, True)
        check_row(visitor, "one", read_metrics(place / "one"), whole(row(visitor, "one")["step"]))


@pytest.mark.parametrize(
    ("locale", "role", "resume", "part"),
    [
        ("en-GB", "student of 2 teachers", "Resume my", "validated on 25% of the held-out text"),
        (
            "de-DE",
            "Schüler von 2 Lehrern",
            "my fortsetzen",
            "auf 25 % des zurückgehaltenen Textes validiert",
        ),
    ],
)
def test_teachers_and_student_are_marked(
    visit, school, place, past, model_folder, locale, role, resume, part
):
    for number in ("1", "2"):
        make_finished(place / "my" / "teachers" / number, model_folder)
    (place / "my" / "teachers" / "plan.json").write_text('{"format": 1, "count": 2}')
    last = place / "my" / "teachers" / "2" / "run.json"
    settings = json.loads(last.read_text())
    last.write_text(json.dumps(seal(settings | {"held_out_tokens": 4 * settings["validation_tokens"]})))
    with school() as server:
        visitor = visit(server, width=1400, locale=locale)
        visitor.open(text=TEXT, view="training", runs="my-teacher-2", model="one")
        visitor.expect(lambda: row(visitor, "my-teacher-2").get("step"), "3")
        lines = visitor.page.locator("[aria-labelledby=runs] li")
        student = lines.filter(has=visitor.page.get_by_role("checkbox", name="my", exact=True))
        visitor.expect(lambda: role in student.locator("[data-state]").inner_text(), True)
        teacher = lines.filter(has=visitor.page.get_by_role("checkbox", name="my-teacher-2"))
        named = {"en-GB": "teacher 2 of 2 for my", "de-DE": "Lehrer 2 von 2 für my"}[locale]
        assert named in teacher.locator("[data-state]").inner_text()
        assert part in teacher.locator("[data-state]").inner_text().replace("\u202f", " ").replace(
            "\xa0", " "
        )
        assert visitor.page.locator("tr[data-run=my-teacher-2] [data-field=validation][title]").count() == 1
        assert visitor.button(resume).count() == 1


@pytest.mark.parametrize(("width", "theme"), [(1400, "light"), (800, "dark"), (360, "light")])
def test_axe_finds_no_serious_violations(visit, axe, school, past, width, theme):
    with school() as server:
        visitor = visit(server, width=width, height=900, color_scheme=theme)
        visitor.open(text=TEXT, view="training", runs="one,two", model="one@1")
        visitor.expect(lambda: row(visitor, "two").get("step"), "120")
        assert visitor.page.get_by_role("slider", name="Training step").is_visible()
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width
        assert axe(visitor) == []


def test_model_is_compared_at_two_training_steps(visit, school, past):
    with school() as server:
        visitor = visit(server, width=1400)
        visitor.open(text=TEXT, view="compare", model="one")
        visitor.page.get_by_role("combobox", name="Model").select_option("one@1")
        # Both are the same small model here, so every cell shows a difference of zero.
        visitor.expect(lambda: "otherModel=one%401" in address(visitor), True)
        visitor.settle()
        cells = visitor.page.locator("[role=gridcell]")
        cells.first.wait_for()
        visitor.expect(lambda: {text.lstrip("−") for text in cells.all_inner_texts()}, {"0.00"})


def test_playback_works_and_invalid_text_is_rejected(visit, school, place, past):
    with school() as server:
        visitor = visit(server, width=1400)
        visitor.open(text=TEXT, view="training", model="one")
        visitor.page.get_by_role("region", name="Training step").get_by_role("button", name="Play").click()
        visitor.expect(lambda: "one%401" in address(visitor), True)
        visitor.expect(lambda: "one%401" in address(visitor), False)
        visitor.page.locator("input[type=file]").set_input_files(
            {"name": "x.txt", "mimeType": "text/plain", "buffer": b"\xff\xfe\x00"}
        )
        visitor.button("Train").click()
        visitor.page.get_by_text("This file is not UTF-8 text.").wait_for()
        assert sorted(path.name for path in place.iterdir()) == ["one", "two"]
