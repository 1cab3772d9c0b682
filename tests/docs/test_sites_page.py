"""docs/sites.md documents every site of every model, with a formula and a picture that exists."""

import re

import pytest

from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.inspect import sites, state_trace
from clearhead.model.config import Config
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "sites.md").read_text(encoding="utf-8")
PICTURES = ROOT / "docs" / "pictures"
SHAPE = {"n_vocab": 8, "n_context": 8, "n_block": 1, "n_head": 1, "d_model": 8}
MAX_BYTES = 2**20  # for all site pictures combined


def all_names():
    """Return the site names of configs that together cover every site."""
    names = set()
    for norm in ("layer", "rms"):
        for feedforward in ("relu", "swiglu"):
            is_rms = norm == "rms"
            caps = {"score_cap": 50.0, "logit_cap": 30.0} if is_rms else {}
            config = Config(
                **SHAPE, **caps, norm=norm, feedforward=feedforward, qk_norm=is_rms, post_norm=is_rms
            )
            names |= {str(site) for site in sites.all_sites(config)}
    for kind in ("elman", "gru", "lstm"):
        config = RecurrentConfig(kind=kind, n_vocab=8, n_context=8, n_block=1, d_model=8)
        names |= {f"block.0.{name}" for name in state_trace.block_names(config)}
    return {re.sub(r"kv_head\.0", "kv_head.k", name) for name in names}


@pytest.mark.parametrize("name", sorted(all_names()))
def test_site_is_documented(name):
    heading = name.replace("block.0", "block.i").replace(".head.0", ".head.j")
    base, dot, part = heading.rpartition(".")
    of_a_norm = part in ("mean", "scale") and f"### `{base}`" in PAGE and f"`{dot}{part}`" in PAGE
    assert re.search(rf"^### .*`{re.escape(heading)}`", PAGE, re.MULTILINE) or of_a_norm


def test_every_section_has_a_formula_and_a_picture():
    sections = re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]
    assert len(sections) > 40
    for section in sections:
        title, _, rest = section.partition("\n")
        assert re.search(r"`[^`]+`.* · ", rest), f"{title} has no formula and shape"
        pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", rest)
        assert pictures or "kv_head" in title, f"{title} has no picture"
        for picture in pictures:
            assert (ROOT / "docs" / picture).is_file(), picture


def test_pictures_are_small_and_used():
    files = sorted((PICTURES / "sites").glob("*"))
    assert sum(file.stat().st_size for file in files) < MAX_BYTES
    unused = [file.name for file in files if f"pictures/sites/{file.name})" not in PAGE]
    assert not unused
