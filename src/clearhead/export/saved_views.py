"""The views that a saved page contains, chosen by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from clearhead.errors import UserError
from clearhead.inspect.comparison import Comparison
from clearhead.inspect.indexing import check_index
from clearhead.inspect.trace import Trace
from clearhead.labs.opening import find_head

DEFAULT_VIEWS = ("flow",)  # and the head with the clearest role
DEFAULT_COMPARISON_VIEWS = ("compare",)
# The tabs that need precomputed responses, in the page's order.
REQUEST_TABS = ("compare", "why", "lens", "words")


@dataclass
class SavedViews:
    """The parts of a model that are stored, the tabs that are shown, and the tab to open."""

    flow: bool = False
    ends: bool = False
    blocks: list[int] = field(default_factory=list)
    heads: list[tuple[int, int]] = field(default_factory=list)
    tabs_with_requests: set[str] = field(default_factory=set)
    opened: str = ""
    row: int = -1  # the position of the selected token; -1 for the last

    @property
    def tabs(self) -> list[str]:
        return [
            *(["steps"] if self.heads else []),
            *(name for name in REQUEST_TABS if name in self.tabs_with_requests),
        ]


def choose_views(names: Sequence[str] | None, what: Trace | Comparison[Trace]) -> SavedViews:
    """Parse the names of views, or choose the default ones for None."""
    compared = isinstance(what, Comparison)
    config = what.one.config if isinstance(what, Comparison) else what.config
    views = SavedViews(tabs_with_requests={"compare"} if compared else set())
    if names is None:
        names = DEFAULT_COMPARISON_VIEWS if compared else DEFAULT_VIEWS
    if isinstance(names, str) or not names:
        raise UserError(f"views = {names!r}: expected a list, such as ['flow', 'block.0.head.0']")
    for name in names:
        match = re.fullmatch(r"block\.(\d+)(?:\.head\.(\d+))?", str(name))
        if name == "compare" and not compared:
            raise UserError("the view 'compare' needs two traces: save_html(trace.compare(other), …)")
        if name in REQUEST_TABS:
            views.tabs_with_requests.add(name)
        elif name in ("flow", "ends"):
            setattr(views, name, True)
        elif match is None:
            raise UserError(
                f"view {name!r} does not exist: expected flow, ends, lens, why, words, a block such as "
                "block.0, or a head such as block.0.head.0"
            )
        else:
            block = check_index(int(match[1]), config.n_block, "block")
            if match[2] is None:
                views.blocks.append(block)
                views.heads += [(block, j) for j in range(config.n_head)]
            else:
                views.heads.append((block, check_index(int(match[2]), config.n_head, "head")))
        if name != "flow":  # drawn above the tabs
            views.opened = views.opened or (name if name in REQUEST_TABS else "steps")
    if (views.flow or views.ends) and not views.heads:
        found = find_head(what.one if isinstance(what, Comparison) else what)
        views.heads, views.row = [(found.block, found.head)], found.row
    views.heads = list(dict.fromkeys(views.heads))
    views.opened = "compare" if compared else views.opened or "steps"
    return views
