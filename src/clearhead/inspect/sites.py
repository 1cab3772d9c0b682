"""Sites: the names of the values that can be read or edited."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clearhead.errors import UserError, guess
from clearhead.model.config import Config


class SiteError(UserError, AttributeError):
    """An unknown site name; also raised for a missing attribute."""


SHARED = ("key", "value")
# The lectures' symbols, accepted in place of the names.
BLOCK_SYMBOLS = {
    "x": "input",
    "t1": "normed",
    "t2": "attention",
    "t3": "middle",
    "t4": "normed2",
    "t5": "feedforward",
    "h": "output",
}
HEAD_SYMBOLS = {"q": "query", "k": "key", "v": "value", "alpha": "weights", "a": "mixed"}
MATRICES = (
    "scores",
    "scaled",
    "capped",
    "masked",
    "weights",
)  # T T: a row per query position, a column per key position


@dataclass(frozen=True)
class Site:
    """A point in the computation: outside the blocks, in a block, in a head, or in a key-value head."""

    name: str
    block: int | None = None
    head: int | None = None
    kv_head: int | None = None

    def __str__(self) -> str:
        parts = []
        for kind, number in (("block", self.block), ("head", self.head), ("kv_head", self.kv_head)):
            if number is not None:
                parts.append(f"{kind}.{number}")
        return ".".join([*parts, self.name])


def dotted(name: str) -> str:
    """Convert an attribute name to a site name: normed_scale becomes normed.scale."""
    return re.sub(r"_(mean|scale)$", r".\1", name)


def end_names(config: Config) -> tuple[str, ...]:
    place = ("position",) if config.position in ("learned", "sinusoidal") else ()
    raw = () if config.logit_cap is None else ("logits_raw",)
    return ("embedding", *place, "final", *_norm("final", config), *raw, "logits", "probabilities")


def unembedded(config: Config) -> Site:
    """Return the site of the logits as the unembedding computes them, which is before a cap."""
    return Site("logits" if config.logit_cap is None else "logits_raw")


def name_of_symbol(symbol: str, config: Config, in_head: bool = False) -> str:
    """Return the site name that one of the lectures' symbols stands for; any other name is returned unchanged."""
    if in_head:
        return HEAD_SYMBOLS.get(symbol, symbol)
    name = BLOCK_SYMBOLS.get(symbol, symbol)
    return f"{name}_normed" if symbol in ("t2", "t5") and config.post_norm else name


def block_names(config: Config) -> tuple[str, ...]:
    hidden = ("hidden_gate", "hidden_up") if config.gated else ("hidden_raw",)
    first = ("input", *_normed("normed", config), *_added("attention", config))
    middle = () if config.parallel else ("middle",)
    second = (*_normed("normed2", config), *hidden, "hidden", *_added("feedforward", config))
    return (*first, *middle, *second, "output")


def head_names(config: Config) -> tuple[str, ...]:
    normed = ("query_normed", "key_normed") if config.qk_norm else ()
    capped = () if config.score_cap is None else ("capped",)
    compared = ("query", "key", "value", "scores", "scaled", *capped, "masked", "weights")
    return ("query_raw", "key_raw", *normed, *compared, "mixed", "output")


def _normed(name: str, config: Config) -> tuple[str, ...]:
    """The input of one half of a block, which without a pre-norm is that of the block or the middle."""
    return (name, *_norm(name, config)) if config.pre_norm else (name,)


def _added(name: str, config: Config) -> tuple[str, ...]:
    """The output of one half of a block and, with a post-norm, its normalized value."""
    return (name, f"{name}_normed", *_norm(f"{name}_normed", config)) if config.post_norm else (name,)


def _norm(name: str, config: Config) -> tuple[str, ...]:
    """μ and σ, one number per position; RMSNorm has no μ."""
    return (f"{name}.mean", f"{name}.scale") if config.norm == "layer" else (f"{name}.scale",)


def all_sites(config: Config) -> list[Site]:
    """Return every site of a model, block by block: those of the block itself, then those of its heads."""
    ends = [Site(name) for name in end_names(config)]
    sites = [site for site in ends if site.name in ("embedding", "position")]
    for i in range(config.n_block):
        sites += [Site(name, i) for name in block_names(config)]
        sites += [Site(name, i, kv_head=k) for k in range(config.n_kv_head) for name in SHARED]
        sites += [Site(name, i, head=j) for j in range(config.n_head) for name in head_names(config)]
    return sites + [site for site in ends if site not in sites]


def parse_site(text: str, config: Config) -> Site:
    """Parse a site name; the error for an unknown one lists the valid names."""
    match = isinstance(text, str) and re.fullmatch(
        r"(?:block\.(-?\d+)\.(?:head\.(-?\d+)\.|kv_head\.(-?\d+)\.)?)?([a-z_0-9]+(?:\.[a-z]+)?)", text
    )
    if not match:
        raise SiteError(
            f"site {text!r}: expected a name such as block.0.head.0.weights, block.0.input or logits",
            "site_unknown",
            site=text,
        )
    block, head, kv_head = (None if part is None else int(part) for part in match.groups()[:3])
    for kind, number, count in (
        ("block", block, config.n_block),
        ("head", head, config.n_head),
        ("kv_head", kv_head, config.n_kv_head),
    ):
        if number is not None and not 0 <= number < count:
            message = f"site {text!r}: this model has {kind}s 0 to {count - 1}"
            raise SiteError(message, "site_unknown", site=text)
    if head is not None:
        names: tuple[str, ...] = head_names(config)
    elif kv_head is not None:
        names = SHARED
    else:
        names = end_names(config) if block is None else block_names(config)
    name = match[4]
    if name not in names and block is not None:
        name = name_of_symbol(name, config, in_head=head is not None or kv_head is not None)
    if name not in names:
        others = ", or one in a block or head, such as block.0.head.0.weights" if block is None else ""
        message = f"site {text!r} does not exist: expected {', '.join(names)}{others}{guess(name, names)}"
        raise SiteError(message, "site_unknown", site=text)
    return Site(name, block, head, kv_head)


def site_shape(text: str, config: Config, length: int) -> list[int]:
    """Return the shape of a site's value for a text of `length` tokens."""
    site = parse_site(text, config)
    if site.name.endswith((".mean", ".scale")):
        return [length]
    if site.head is not None or site.kv_head is not None:
        if site.name in MATRICES:
            return [length, length]
        return [length, config.d_model if site.name == "output" else config.d_head]
    if site.name in ("logits_raw", "logits", "probabilities"):
        return [length, config.n_vocab]
    return [length, config.d_hidden if site.name.startswith("hidden") else config.d_model]
