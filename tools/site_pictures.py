"""Draw the small pictures for docs/sites.md and docs/tutorial.md: every site, and a head during training.

Usage: python -m tools.site_pictures docs/pictures. Trains models on the built-in stories with fixed seeds and
steps: a transformer with the preset `modern` (with snapshots), one with `lecture`, an LSTM and a GRU. The sites
that only Gemma 3 has are drawn from an untrained network of its shape, and those of soft-capping, as in Gemma 2, from
the trained `modern` model with caps. Takes a few minutes on two cores.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from PIL import Image

import clearhead as ch
from clearhead.inspect.sites import block_names, end_names, head_names
from clearhead.text.stories import stories

STORIES = 4000
TEXT = " The chicken didn't cross the road because it was too tired."
SHAPE = {"blocks": 2, "width": 64, "context": 64, "batch": 16, "tokenizer": "bpe", "vocab": 1024, "seed": 0}
STEPS, FEW_STEPS = 2000, 400
DPI, COLORS = 92, 128
MAX_WIDTH = 7.5  # inches: the width of the page's text, so that labels are not shrunk
N_SNAPSHOT = 5  # pictures of one head


def pictured(config: ch.Config) -> dict[str, str]:
    """Return the site to draw for each kind of site, by the name of its picture."""
    sites = {name: name for name in end_names(config)}
    sites |= {f"block.{name}": f"block.1.{name}" for name in block_names(config)}
    return sites | {f"head.{name}": f"block.1.head.0.{name}" for name in head_names(config)}


def draw(trace: Any, site: str, path: Path) -> None:
    """Save a figure at a low resolution with few colors, small enough for a page with fifty figures."""
    out = io.BytesIO()
    canvas = ch.figure(trace, site).canvas
    canvas.set_size_inches(min(MAX_WIDTH, canvas.get_figwidth()), canvas.get_figheight())
    canvas.savefig(out, format="png", dpi=DPI, bbox_inches="tight")
    # By coverage: choosing the most common colors would drop the ends of the scale.
    reduced = (
        Image.open(out).convert("RGB").quantize(COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    )
    reduced.save(path, optimize=True)


def train(folder: Path, name: str, **settings: Any) -> ch.LanguageModel:
    text = folder / "stories.txt"
    if not text.exists():
        text.write_text("\n\n".join(story.text for story in islice(stories(), STORIES)), encoding="utf-8")
    return ch.train(text, out=folder / name, device="cpu", **{**SHAPE, **settings})


def draw_sites(folder: Path, out: Path) -> None:
    """For each model, draw the sites that no earlier model has."""
    modern = train(folder, "modern", steps=STEPS, heads=4, snapshots=8)
    lecture = train(folder, "lecture", steps=FEW_STEPS, heads=4, preset="lecture")
    gemma = ch.Config(
        n_vocab=modern.config.n_vocab,
        n_context=64,
        n_block=2,
        n_head=4,
        d_model=64,
        norm="rms",
        post_norm=True,
    )
    untrained = ch.LanguageModel(ch.Transformer(gemma), modern.tokenizer)
    for model in (modern, lecture, untrained, with_caps(modern)):
        trace = model.inspect(TEXT)
        for name, site in pictured(model.transformer().config).items():
            if not (out / f"{name}.png").exists():
                draw(trace, site, out / f"{name}.png")
    for kind in ("lstm", "gru"):
        trace = train(folder, kind, steps=FEW_STEPS, kind=kind, blocks=1).inspect(TEXT)
        for site in trace.sites():
            path = out / f"{kind}.{site.removeprefix('block.0.')}.png"
            if site.startswith("block.0.") and not path.exists():
                draw(trace, site, path)


def with_caps(model: ch.LanguageModel) -> ch.LanguageModel:
    """Return the model with low caps, so that their effect shows."""
    network = ch.Transformer(replace(model.transformer().config, score_cap=4.0, logit_cap=15.0))
    network.load_state_dict(model.network.state_dict())
    return ch.LanguageModel(network, model.tokenizer)


def draw_training(folder: Path, out: Path) -> None:
    """Draw the best previous-token head at snapshots of its training."""
    scores = ch.heads(ch.load(folder / "modern"))
    for kind in scores.kinds:
        print(kind, scores.best(kind), f"chance {scores.chance[kind]:.3f}")
    block, head, _ = scores.best("previous")
    steps = sorted(
        int(path.name.removeprefix("step-")) for path in (folder / "modern" / "snapshots").iterdir()
    )
    for number, step in enumerate(steps[-N_SNAPSHOT:]):
        model = ch.load(folder / "modern", step=step)
        score = ch.heads(model).previous[block, head]
        print(f"step {step}: {score:.2f} of its attention is on the previous token")
        draw(model.inspect(TEXT), f"block.{block}.head.{head}.weights", out / f"forming-{number}.png")


def main(out: Path) -> None:
    sites = out / "sites"
    sites.mkdir(parents=True, exist_ok=True)
    for old in sites.glob("*.png"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        draw_sites(Path(folder), sites)
        draw_training(Path(folder), out)
    print(f"{sum(path.stat().st_size for path in sites.glob('*.png')):,} bytes in {sites}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    main(parser.parse_args().out)
