"""Shell completion of models, sites and option values, without importing torch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from clearhead.errors import UserError

SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")


def complete_models(incomplete: str) -> list[str]:
    """Models in runs/ and pulled ones; the shell offers files if none matches."""
    from clearhead.formats.places import name_models

    return _begin_like(incomplete, name_models())


def complete_pulled(incomplete: str) -> list[str]:
    from clearhead.formats.pulled import CATALOG

    return _begin_like(incomplete, CATALOG)


def complete_sites(incomplete: str) -> list[str]:
    """Site names of a transformer; block and head numbers are those typed, or 0."""
    from clearhead.inspect.sites import all_sites
    from clearhead.model.config import PRESETS, preset

    numbers = re.findall(r"\d+", incomplete)
    small = {"n_vocab": 2, "n_context": 2, "n_block": 1, "n_head": 1, "d_model": 2}
    names = dict.fromkeys(str(site) for name in PRESETS for site in all_sites(preset(name, **small)))
    return _begin_like(incomplete, (_with_numbers(name, numbers) for name in names))


def check_shell(arguments: list[str]) -> None:
    """Raise an error unless completion supports the current shell."""
    if not {"--install-completion", "--show-completion"} & {*arguments[:1]}:
        return
    import shellingham

    try:
        shell = shellingham.detect_shell()[0]
    except shellingham.ShellDetectionFailure:
        shell = "none"
    if shell not in SHELLS:
        raise UserError(
            f"completion supports {', '.join(SHELLS)}, not {shell}: run this command from one of these shells"
        )


def choose(*names: str) -> Callable[[str], list[str]]:
    """Completion for an option with a fixed set of values."""

    def complete(incomplete: str) -> list[str]:
        return _begin_like(incomplete, names)

    return complete


def _with_numbers(site: str, numbers: list[str]) -> str:
    """Fill in numbers: block.0.head.0.scores with 7 and 2 becomes block.7.head.2.scores."""
    left = iter(numbers)
    return re.sub(r"\.0\.", lambda _: f".{next(left, '0')}.", site)


def _begin_like(incomplete: str, names: Iterable[str]) -> list[str]:
    """The names that begin with this, without those whose control characters a terminal would obey."""
    return [name for name in names if name.startswith(incomplete) and name.isprintable()]
