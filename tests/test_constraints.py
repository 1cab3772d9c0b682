"""The pinned versions: those of users apart from those of developers, and none missing."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]


def pinned(name):
    lines = ROOT.joinpath(name).read_text(encoding="utf-8").splitlines()
    return {canonicalize_name(line.split("==")[0]) for line in lines if re.match(r"\w", line)}


def required(name, extras=(), seen=None):
    """Every package that one installs here, directly or through others."""
    seen = {} if seen is None else seen
    name = canonicalize_name(name)
    if not set(extras) - seen.get(name, set()) and name in seen:
        return seen
    seen.setdefault(name, set()).update(extras)
    if name == "clearhead":
        listed = [*PROJECT["dependencies"]]
        listed += [each for extra in extras for each in PROJECT["optional-dependencies"][extra]]
    else:
        try:
            listed = requires(name) or []
        except PackageNotFoundError:  # not on this platform
            return seen
    for requirement in map(Requirement, listed):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            required(requirement.name, requirement.extras, seen)
    return seen


def test_users_and_developers_have_their_own():
    assert pinned("constraints.txt").isdisjoint(pinned("constraints-dev.txt"))
    assert (
        "-c constraints.txt" in ROOT.joinpath("constraints-dev.txt").read_text(encoding="utf-8").splitlines()
    )


def test_everything_that_users_install_is_pinned():
    assert required("clearhead", ["all"]).keys() - pinned("constraints.txt") == {"clearhead"}


def test_everything_that_developers_install_is_pinned():
    both = pinned("constraints.txt") | pinned("constraints-dev.txt")
    assert required("clearhead", ["dev"]).keys() - both == {"clearhead"}
