"""docs/sites.md: every site that any model has, with its formula and a picture that is there."""

import re

import pytest

from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.inspect import sites, state_trace
from clearhead.model.config import Config
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "sites.md").read_text(encoding="utf-8")
PICTURES = ROOT / "docs" / "pictures"
SHAPE = {"n_vocab": 8, "n_context": 8, "n_block": 1, "n_head": 1, "d_model": 8}
MOST = 2**20  # bytes of all pictures of sites


def all_names():
    """Of configs that together have every site."""
    names = set()
    for norm in ("layer", "rms"):
        for feedforward in ("relu", "swiglu"):
            config = Config(
                **SHAPE, norm=norm, feedforward=feedforward, qk_norm=norm == "rms", after_norm=norm == "rms"
            )
            names |= {str(site) for site in sites.all_sites(config)}
    for kind in ("elman", "gru", "lstm"):
        config = RecurrentConfig(kind=kind, n_vocab=8, n_context=8, n_block=1, d_model=8)
        names |= {f"block.0.{name}" for name in state_trace.block_names(config)}
    return {re.sub(r"kv_head\.0", "kv_head.k", name) for name in names}


@pytest.mark.parametrize("name", sorted(all_names()))
def test_it_is_explained(name):
    shown = name.replace("block.0", "block.i").replace(".head.0", ".head.j")
    base, dot, part = shown.rpartition(".")
    of_a_norm = part in ("mean", "scale") and f"### `{base}`" in PAGE and f"`{dot}{part}`" in PAGE
    assert re.search(rf"^### .*`{re.escape(shown)}`", PAGE, re.MULTILINE) or of_a_norm


def test_every_section_has_a_formula_and_a_picture_that_is_there():
    sections = re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]
    assert len(sections) > 40
    for section in sections:
        title, _, rest = section.partition("\n")
        assert re.search(r"`[^`]+`.* · ", rest), f"{title} has no formula and shape"
        pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", rest)
        assert pictures or "kv_head" in title, f"{title} has no picture"
        for picture in pictures:
            assert (ROOT / "docs" / picture).is_file(), picture


def test_every_picture_is_small_and_shown():
    there = sorted((PICTURES / "sites").glob("*"))
    assert sum(each.stat().st_size for each in there) < MOST
    unused = [each.name for each in there if f"pictures/sites/{each.name})" not in PAGE]
    assert not unused
