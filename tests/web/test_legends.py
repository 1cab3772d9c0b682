"""Color legends, labels, and finding a head."""

from io import BytesIO
from urllib.parse import parse_qs, urlsplit

from PIL import Image

from tests.web.visitor import fixed, percent, visible

TEXT = "The duck was too tired"


def legend(visitor, place="detail"):
    return visitor.page.locator(f"[data-place={place}] [data-testid=legend]").first


def robust_peak(matrix):
    sizes = matrix.abs().flatten().sort().values
    return sizes[int(0.985 * (len(sizes) - 1))].item()


def test_legends_show_numbers_and_only_the_signs_present(visitor, models):
    trace = models["modern"].inspect(TEXT)
    visitor.open(model="modern", text=TEXT, part="norm", step=1)
    normed = trace["block.0.normed"]
    strength = max(robust_peak(trace["block.0.input"]), robust_peak(normed))  # one scale before and after
    ends = (
        ("≤ −" if normed.min() < -strength else "−") + fixed(strength, 2),
        ("≥ " if normed.max() > strength else "") + fixed(strength, 2),
    )
    matrix = visitor.page.locator(
        "[data-place=detail] [data-testid=legend]"
    ).last  # the strips have one of their own
    visitor.expect(lambda: tuple(matrix.inner_text().split("\n")), ends)
    visitor.open(model="modern", text=TEXT, part="norm")
    visitor.see("block.0.normed.scale")
    visitor.expect(lambda: legend(visitor).inner_text().split("\n")[0], "0")
    visitor.open(model="modern", text=TEXT, step=6)
    visitor.see("block.0.head.0.weights")
    visitor.expect(lambda: legend(visitor).inner_text().split("\n"), ["0", "1.00", "masked"])
    visitor.expect(lambda: legend(visitor, "flow").inner_text().split("\n"), ["0", "1.00", "masked"])


def test_map_of_a_long_text_is_legible(visitor):
    text = "The duck was too tired to cross the road. Tom saw a ball. " * 8
    visitor.open(model="long", text=text, step=6)
    map_ = visitor.page.locator(".map canvas")
    map_.wait_for()
    visitor.settle()
    for place in ("detail", "flow"):  # no weight is near 1
        visitor.expect(lambda place=place: "≥" in legend(visitor, place).inner_text(), True)
    picture = Image.open(BytesIO(map_.screenshot())).convert("RGB")
    names = (78, 62)  # pixels
    side = min(picture.width - names[0], picture.height - names[1])  # as much as the screen has room for
    future = [
        picture.getpixel((names[0] + x, names[1] + side * 2 // 9))
        for x in range(side * 2 // 3, side * 11 // 12)
    ]
    assert any(min(color) < 0xD4 for color in future)  # the lines of the hatch
    assert future.count((0xFD, 0xFD, 0xFC)) > len(future) / 2  # between them
    last = [picture.getpixel((names[0] + x, names[1] + side - 12)) for x in range(4, side - 20)]
    assert min(map(min, last)) < 0xD0  # some attended positions have a visible color
    rows = picture.crop((0, names[1], names[0] - 4, names[1] + side)).convert("L")
    columns = picture.crop((names[0], 0, names[0] + side, names[1] - 2)).convert("L")
    assert all(part.getextrema()[0] < 0x90 for part in (rows, columns))  # letters


def test_vocabulary_columns_are_labeled_with_their_tokens(visitor, models):
    trace = models["modern"].inspect(TEXT)
    visitor.open(model="modern", text=TEXT, part="final", step=2, column=270)
    visitor.see("logits")
    header = visitor.page.locator("[role=columnheader].strong")
    visitor.expect(header.inner_text, visible(trace.token_texts([270])[0]))
    shown = [visible(text) for text in trace.token_texts(range(models["modern"].config.n_vocab))]
    visitor.expect(
        lambda: set(visitor.page.locator("[role=columnheader]").all_inner_texts()) <= set(shown), True
    )
    assert len(set(shown)) == len(shown)  # all labels are distinct


def test_head_search_selects_a_head_or_reports_no_match(visitor):
    visitor.open(model="modern", text=TEXT, view="heads")
    find = visitor.page.get_by_label("Find a head")
    said = visitor.page.locator("[data-place=heads] [role=status]")
    find.fill("1.1")
    summary = visitor.page.locator("[data-place=heads] .summary")
    visitor.expect(lambda: summary.inner_text().startswith("Block 1, head 1"), True)
    assert said.inner_text() == ""
    find.fill("99.9")
    visitor.expect(lambda: "no such head" in said.inner_text(), True)
    find.fill("induction")
    order = visitor.page.get_by_label("Sort by")
    visitor.expect(order.input_value, "induction")
    visitor.expect(lambda: "such head" in said.inner_text(), False)


def test_keys_follow_the_displayed_head_order(visitor, server):
    with server.client() as client:
        kinds = client.post("/api/heads", json={"model": "modern"}).json()["kinds"]["first"]
    names = sorted(((0, 0), (0, 1), (1, 0), (1, 1)), key=lambda name: -kinds[name[0]][name[1]])
    block, head = names[0]
    visitor.open(model="modern", text=TEXT, view="heads", order="first", block=block, head=head)
    summary = visitor.page.locator("[data-place=heads] .summary")
    sorted_by = f"attends to the first token: {percent(kinds[block][head])} of its attention"
    visitor.expect(lambda: sorted_by in summary.inner_text(), True)
    captions = visitor.page.locator("[data-place=heads] .caption")
    shown = [f"{block}.{head} · {percent(kinds[block][head])}" for block, head in names]
    visitor.expect(captions.all_inner_texts, shown)

    def press(key, block, head):
        visitor.page.keyboard.press(key)
        visitor.expect(lambda: summary.inner_text().startswith(f"Block {block}, head {head}"), True)

    for name in [*names[1:], names[0]]:
        press("]", *name)
    press("[", *names[-1])
    visitor.button("Step by step").click()  # the keys keep this order
    visitor.see(f"block.{names[-1][0]}.head.{names[-1][1]}.query_raw")
    visitor.page.keyboard.press("]")
    visitor.see(f"block.{names[0][0]}.head.{names[0][1]}.query_raw")


def test_thumbnails_reserve_space_before_loading(visitor):
    held = []
    visitor.page.route("**/api/patterns", lambda route: held.append(route))
    visitor.page.goto(
        f"{visitor.server.url}/?model=modern&text=a+cat&view=heads&token={visitor.server.credentials.token}"
    )
    place = visitor.page.locator("[data-place=heads]")
    place.wait_for()
    visitor.expect(lambda: len(held), 1)
    before = place.bounding_box()["height"]
    held[0].continue_()
    place.locator("canvas").wait_for()
    assert place.bounding_box()["height"] == before


def test_url_holds_the_clamped_position(visitor):
    visitor.open(model="modern", text=TEXT, block=999, step=77, head=9, row=500)
    query = parse_qs(urlsplit(visitor.url).query)
    there = {name: query[name][0] for name in ("block", "head", "step", "row")}
    assert there == {"block": "1", "head": "1", "step": "write", "row": str(len(visitor.said) - 1)}
