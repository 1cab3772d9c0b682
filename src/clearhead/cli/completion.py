"""What the shell offers at the Tab key: models, sites, and the names that options know, without torch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from clearhead.errors import UserError

SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")


def complete_models(incomplete: str) -> list[str]:
    """Those in runs/ and at home; the shell itself offers files where none begins like this."""
    from clearhead.formats.places import name_models

    return _begin_like(incomplete, name_models())


def complete_pulled(incomplete: str) -> list[str]:
    from clearhead.formats.pulled import CATALOGUE

    return _begin_like(incomplete, CATALOGUE)


def complete_sites(incomplete: str) -> list[str]:
    """By the names that a transformer may have; block and head are those typed, or the first."""
    from clearhead.inspect.sites import all_sites
    from clearhead.model.config import PRESETS, preset

    numbers = re.findall(r"\d+", incomplete)
    small = {"n_vocab": 2, "n_context": 2, "n_block": 1, "n_head": 1, "d_model": 2}
    names = dict.fromkeys(str(site) for name in PRESETS for site in all_sites(preset(name, **small)))
    return _begin_like(incomplete, (_with_numbers(name, numbers) for name in names))


def check_shell(arguments: list[str]) -> None:
    """Where completion is asked for: whether this shell is one that has it."""
    if not {"--install-completion", "--show-completion"} & {*arguments[:1]}:
        return
    import shellingham

    try:
        shell = shellingham.detect_shell()[0]
    except shellingham.ShellDetectionFailure:
        shell = "none"
    if shell not in SHELLS:
        raise UserError(
            f"completion is for {', '.join(SHELLS)}, this is called from {shell}: call it from one of them"
        )


def choose(*names: str) -> Callable[[str], list[str]]:
    """For an option that takes one of a few names."""

    def complete(incomplete: str) -> list[str]:
        return _begin_like(incomplete, names)

    return complete


def _with_numbers(site: str, numbers: list[str]) -> str:
    """block.7.head.2.scores, of block.0.head.0.scores with 7 and 2."""
    left = iter(numbers)
    return re.sub(r"\.0\.", lambda _: f".{next(left, '0')}.", site)


def _begin_like(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
