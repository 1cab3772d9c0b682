"""Optional packages: the basics work without them, and everything else names the extra to install."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import clearhead as ch
from clearhead.extras import EXTRAS, is_installed, require

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OFFERED = PROJECT["project"]["optional-dependencies"]
SIZES = {"blocks": 1, "heads": 1, "width": 32, "context": 32, "tokenizer": "char", "device": "cpu"}


@pytest.fixture
def plain(monkeypatch):
    """Simulate a plain `pip install clearhead`: importing any optional package fails."""
    roots = (
        {extra.module for extra in EXTRAS.values()}
        | {"scipy", "joblib", "threadpoolctl", "PIL"}
        | {"lxml", "docx", "pypdf"}
    )
    for name in [*sys.modules]:
        if name.split(".")[0] in roots:
            monkeypatch.delitem(sys.modules, name)
    for root in roots:
        monkeypatch.setitem(sys.modules, root, None)


def test_extras_match_pyproject():
    assert EXTRAS.keys() == OFFERED.keys() - {"all", "dev"}
    for name, extra in EXTRAS.items():
        assert any(re.match(rf"{extra.package}\b", requirement) for requirement in OFFERED[name])


def test_all_includes_every_extra():
    (everything,) = OFFERED["all"]
    assert set(re.fullmatch(r"clearhead\[(.*)\]", everything)[1].split(",")) == EXTRAS.keys()


def test_readme_lists_what_each_extra_is_for():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").replace("`", "").split())
    for name, extra in EXTRAS.items():
        package = "" if extra.package == name else f"{extra.package}, "
        assert f"{name} ({package}for {extra.purpose})" in readme


def test_training_generating_and_inspecting_need_no_extras(plain, story_file, tmp_path):
    assert not any(map(is_installed, EXTRAS))
    model = ch.train(story_file, tmp_path / "run", steps=2, **SIZES)
    assert not (tmp_path / "run" / "loss.svg").exists()
    assert len(model.generate("Once", tokens=3, seed=0)) > 0
    assert model.inspect("Once").verify() < 1e-4
    assert len(ch.heads(model).kinds) > 0
    ch.lab("attention")


def test_server_needs_no_extras(plain, model):
    from clearhead.server.in_process import InProcessClient

    routes = InProcessClient({model.name: (model, ())})
    assert routes.request("POST", "/api/open", f'{{"model": "{model.name}"}}').status == 200


@pytest.mark.parametrize(
    ("extra", "package", "use"),
    [
        ("figures", "matplotlib", lambda model: ch.figure(model.inspect("Once"))),
        ("probes", "scikit-learn", lambda model: ch.probe(model, ["a", "b"], [0, 1], "block.0.input")),
        ("probes", "scikit-learn", lambda _: ch.lab("pronoun", seeds=1, steps=1)),
        ("notebook", "anywidget", ch.show),
        ("numba", "numba", lambda _: require("numba", "quantize")),
    ],
)
def test_errors_name_the_missing_extra(plain, model, extra, package, use):
    message = f"needs {package}, which is not installed: pip install 'clearhead[{extra}]'"
    with pytest.raises(ch.UserError, match=re.escape(message) + "$") as raised:
        use(model)
    assert raised.value.code == "missing_package"
    assert raised.value.values == {"package": package, "install": f"pip install 'clearhead[{extra}]'"}


def test_figures_extra_is_checked_before_the_lab_runs(plain, tmp_path):
    from clearhead.picture import check_place

    with pytest.raises(ch.UserError, match=re.escape("pip install 'clearhead[figures]'")):
        check_place(tmp_path / "any-one.svg")
