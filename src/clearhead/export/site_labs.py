"""The labs of a published page, run beforehand with their default settings."""

from __future__ import annotations

import json
from collections.abc import Callable

from clearhead.api.labs import LabDetails, LabResponse
from clearhead.extras import EXTRAS, is_installed
from clearhead.labs.catalog import LABS, lab

LAB_FILE = "labs.json"
PUBLISHED_LABS = tuple(LABS)
LAB_EXTRAS = {"neighbors": "numba", "pronoun": "probes"}  # the optional packages that labs need


def run_labs(log: Callable[[str], object]) -> bytes:
    """Run each lab with its default settings, on the model it was designed for if it inspects one."""
    details, results = [], []
    for number, name in enumerate(PUBLISHED_LABS, 1):
        extra = LAB_EXTRAS.get(name)
        if extra is not None and not is_installed(extra):
            package = EXTRAS[extra].package
            log(f"skipping the lab {name}, which needs {package}: pip install 'clearhead[{extra}]'")
            continue
        trains = ", which trains a model" if LABS[name].long else ""
        log(f"lab {number} of {len(PUBLISHED_LABS)}: running {name}{trains} …")
        results.append(LabResponse.of(lab(name)).model_dump(mode="json"))
        # If a model were given here, the page would state that the lab inspects the published model. The
        # result names the model that was inspected.
        details.append(LabDetails.of(LABS[name]).model_copy(update={"model": None}).model_dump(mode="json"))
    return json.dumps({"labs": details, "results": results}, ensure_ascii=False, allow_nan=False).encode()
