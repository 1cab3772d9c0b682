"""Which views a saved file holds, by the names they are asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from clearhead.errors import UserError
from clearhead.inspect.comparison import Comparison
from clearhead.inspect.indexing import check_index
from clearhead.inspect.trace import Trace

OF_ONE = ("flow", "block.0.head.0")  # unless said
OF_TWO = ("compare",)
ASKED = (
    "compare",
    "why",
    "lens",
    "words",
)  # tabs of the page, in its order, whose questions are asked beforehand


@dataclass
class SavedViews:
    """Which parts of a model are kept, which tabs there are, and which of them is open."""

    flow: bool = False
    ends: bool = False
    blocks: list[int] = field(default_factory=list)
    heads: list[tuple[int, int]] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    opened: str = ""

    @property
    def tabs(self) -> list[str]:
        return [*(["steps"] if self.heads else []), *(name for name in ASKED if name in self.asked)]


def choose_views(names: Sequence[str] | None, what: Trace | Comparison[Trace]) -> SavedViews:
    compared = isinstance(what, Comparison)
    config = what.one.config if isinstance(what, Comparison) else what.config
    views = SavedViews(asked={"compare"} if compared else set())
    if names is None:
        names = OF_TWO if compared else OF_ONE
    if isinstance(names, str) or not names:
        raise UserError(f"views = {names!r}: expected a list, such as ['flow', 'block.0.head.0']")
    for name in names:
        found = re.fullmatch(r"block\.(\d+)(?:\.head\.(\d+))?", str(name))
        if name == "compare" and not compared:
            raise UserError("compare goes with two traces: save_html(trace.compare(other), …)")
        if name in ASKED:
            views.asked.add(name)
        elif name in ("flow", "ends"):
            setattr(views, name, True)
        elif found is None:
            raise UserError(
                f"there is no view {name!r}: expected flow, ends, lens, why, words, a block such as block.0, "
                "or a head such as block.0.head.0"
            )
        else:
            block = check_index(int(found[1]), config.n_block, "block")
            if found[2] is None:
                views.blocks.append(block)
                views.heads += [(block, j) for j in range(config.n_head)]
            else:
                views.heads.append((block, check_index(int(found[2]), config.n_head, "head")))
        if name != "flow":  # which is above all tabs
            views.opened = views.opened or (name if name in ASKED else "steps")
    if views.flow or views.ends:
        views.heads = views.heads or [(0, 0)]
    views.heads = list(dict.fromkeys(views.heads))
    views.opened = "compare" if compared else views.opened or "steps"
    return views
