"""What is selected when another text is typed or another part is opened."""

TEXT = "The duck was too tired"


def count(models, text):
    return len(models["lecture"].tokenizer.encode(text))


def test_typed_text_keeps_the_selected_token_as_long_as_it_is_there(visitor, models):
    row = count(models, "The duck") - 1
    visitor.open(model="lecture", text=TEXT, row=row, part="embedding")
    name = visitor.said[row]
    strong = visitor.page.locator("[role=rowheader].strong")
    visitor.type(f"{TEXT} to")
    assert (visitor.said[row], strong.all_inner_texts()) == (name, [name])
    visitor.type("A red duck was too tired to")
    moved = row + count(models, "A red duck was too tired to") - count(models, f"{TEXT} to")
    assert moved != row
    visitor.expect(lambda: f"row={moved}" in visitor.url, True)
    assert (visitor.said[moved], strong.all_inner_texts()) == (name, [name])


def test_last_token_is_selected_when_another_text_is_typed(visitor, models):
    visitor.open(model="lecture", text=TEXT, row=count(models, "The duck") - 1)
    other = "Ella had a red ball and lost it"
    visitor.type(other)
    rows = visitor.page.locator("[role=row]", has=visitor.page.locator("[role=rowheader].strong"))
    visitor.expect(lambda: rows.get_attribute("aria-rowindex"), str(count(models, other)))


def test_norms_open_on_the_normalized_vectors(visitor):
    visitor.open(model="lecture", text=TEXT)
    for part, site in {"First norm": "normed", "Second norm": "normed2"}.items():
        visitor.button(part).click()
        visitor.see(f"block.0.{site}")
        assert visitor.step == "norm"
    visitor.button("Final norm and next word").click()
    visitor.see("final")
    visitor.page.locator("[data-place=flow]").get_by_role("button", name="norm", exact=True).first.click()
    visitor.see("block.0.normed")
    visitor.page.keyboard.press("ArrowLeft")
    visitor.see("block.0.normed.scale")
