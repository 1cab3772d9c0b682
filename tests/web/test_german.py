"""The page in German: server errors are translated, and numbers use a decimal comma."""

import re
import shutil
from pathlib import Path

import pytest

from clearhead.server.model_loader import ModelLibrary
from clearhead.server.model_registry import LoadOptions, load_models
from tests.serving import running
from tests.web.visitor import shows

TEXT = "The duck was too tired"
ROOT = Path(__file__).parents[2]
TOLD = ROOT / "web" / "src" / "messages" / "refusals.de.ts"


@pytest.fixture
def german(visit):
    visitor = visit(locale="de-DE")
    visitor.forgive("status 400|400")
    return visitor


def alert(visitor, text):
    visitor.page.get_by_role("alert").filter(has_text=text).first.wait_for()


def test_unknown_character_is_reported_in_german(german):
    german.open(model="shared", text=TEXT)
    german.page.get_by_label("Eingabetext").fill("Ω")
    alert(german, "Das Zeichen „Ω“ kennt dieses Modell nicht")


def test_missing_and_multi_token_words_are_reported_in_german(german):
    german.open(model="modern", text=TEXT, view="words")
    german.page.get_by_label("Wort", exact=True).fill("unicorn")
    german.page.get_by_label("Sätze, einer je Zeile").fill("the duck\na cat")
    alert(german, "„unicorn“ kommt in diesen Sätzen nicht vor")
    german.page.get_by_label("Von", exact=True).fill(" unicorn")
    german.page.get_by_label("Nach", exact=True).fill(" duck")
    alert(german, "„ unicorn“ besteht für dieses Modell aus")


def test_long_and_incomparable_texts_are_reported_in_german(german, models):
    german.open(model="modern", text=TEXT, view="compare", other="ß")
    alert(german, "Die beiden Texte haben kein Token gemeinsam")
    longer = "The duck was tired. " * 20
    other = german.page.get_by_role("textbox", name="Anderer Text")
    other.fill(longer)
    other.press("Enter")
    count = len(models["modern"].tokenizer.encode(longer))
    alert(german, f"Der Text hat {count} Tokens; der Kontext dieses Modells fasst höchstens 48.")


def test_rejected_run_is_reported_in_german(visit, tmp_path, home, model_folder):
    place = tmp_path / "runs"
    shutil.copytree(model_folder, place / "first")
    loader = LoadOptions("cpu", slots=1)
    registry = load_models([place / "first"], loader, only_first=True)
    with running(registry, library=ModelLibrary([place], home, loader)) as server:
        visitor = visit(server, width=1400, locale="de-DE")
        visitor.forgive("status 409|409")
        visitor.open(text=TEXT, view="training")
        visitor.page.get_by_text("Weitere Optionen").click()
        for name, size in {"Oder Schritte": 2, "Köpfe": 3, "Breite": 16, "Kontext": 8}.items():
            visitor.page.get_by_label(name, exact=True).fill(str(size))
        visitor.button("Trainieren").click()
        refused = visitor.page.get_by_text(
            "Eine Breite von 16 lässt sich nicht gleichmäßig auf 3 Köpfe verteilen"
        )
        refused.wait_for(timeout=300_000)  # starting a process takes time on a busy machine
        visitor.page.get_by_label("Name", exact=True).fill("first")
        visitor.button("Trainieren").click()
        alert(visitor, "„first“ gibt es schon: Wähle einen anderen Namen.")
    registry.close(cancel=True)


def test_decimal_separator_follows_the_language(visit, models):
    visitor = visit(locale="de-DE")
    visitor.open(model="modern", text=TEXT, block=1, head=1, step=6)
    site = "block.1.head.1.weights"
    weights = models["modern"].inspect(TEXT)[site]
    seen = visitor.see(site)
    for row, column, shown in seen["cells"]:
        assert "." not in shown
        assert shows(shown.replace(",", "."), weights[row, column].item())
    assert all("." not in shown for _, shown in seen["made"])
    share = visitor.page.locator(".next .share").all_inner_texts()
    assert any("," in each for each in share)
    assert not any("." in each for each in share)
    assert all(each.endswith("\u202f%") for each in share)
    visitor.page.get_by_label("Sprache").select_option("en")
    visitor.page.get_by_label("Language").wait_for()
    assert [shown for _, _, shown in visitor.see(site)["cells"]] == [
        shown.replace(",", ".") for _, _, shown in seen["cells"]
    ]


def test_exports_and_urls_use_a_decimal_point(visit, tmp_path):
    visitor = visit(locale="de-DE")
    visitor.open(model="modern", text=TEXT, step=6, temperature="0.7")
    assert "temperature=0.7" in visitor.url
    with visitor.page.expect_download() as waiting:
        visitor.export("CSV")
    waiting.value.save_as(tmp_path / "x.csv")
    rows = (tmp_path / "x.csv").read_text(encoding="utf-8").splitlines()
    assert len({row.count(",") for row in rows}) == 1
    assert re.search(r",0\.\d{6,}", rows[-1])


def test_every_translated_error_code_exists():
    codes = re.findall(r"^  (\w+): \(", TOLD.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(codes) > 25
    places = [*(ROOT / "src").rglob("*.py"), *(ROOT / "web" / "src").rglob("*.ts")]
    source = "\n".join(path.read_text(encoding="utf-8") for path in places)
    assert [code for code in codes if f'"{code}"' not in source] == []
