"""Pinned versions: separate for users and developers, and complete."""

import json
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
    """Collect every package that a requirement installs on this platform, directly or transitively."""
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
        except PackageNotFoundError:  # not installed on this platform
            return seen
    for requirement in map(Requirement, listed):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            required(requirement.name, requirement.extras, seen)
    return seen


def test_user_and_developer_pins_are_disjoint():
    assert pinned("constraints.txt").isdisjoint(pinned("constraints-dev.txt"))
    assert (
        "-c constraints.txt" in ROOT.joinpath("constraints-dev.txt").read_text(encoding="utf-8").splitlines()
    )


def test_every_user_dependency_is_pinned():
    assert required("clearhead", ["all"]).keys() - pinned("constraints.txt") == {"clearhead"}


def test_every_developer_dependency_is_pinned():
    both = pinned("constraints.txt") | pinned("constraints-dev.txt")
    assert required("clearhead", ["dev"]).keys() - both == {"clearhead"}


def test_every_npm_package_is_pinned_by_its_hash_and_runs_no_script():
    lock = json.loads(ROOT.joinpath("web", "package-lock.json").read_text(encoding="utf-8"))
    packages = {path: package for path, package in lock["packages"].items() if path}
    assert packages
    assert [path for path, each in packages.items() if not each["integrity"].startswith("sha512-")] == []
    assert [path for path, each in packages.items() if each.get("hasInstallScript")] == []
