"""Train a transformer language model on your own text, run it, and see every step of what it computes."""

import sys

if sys.argv[:1] == [
    "-m"
]:  # `python -m clearhead`: the working folder comes first on the path, before Python's modules
    from clearhead.processes import shield

    shield()

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clearhead.version import __version__ as __version__

if TYPE_CHECKING:
    from clearhead.classics.ngram import NGram
    from clearhead.classics.ngram_config import NGramConfig
    from clearhead.classics.recurrent import Recurrent
    from clearhead.classics.recurrent_config import RecurrentConfig
    from clearhead.ensembles import ensemble
    from clearhead.errors import UserError
    from clearhead.evaluation.reporting import report, reports
    from clearhead.evaluation.scores import score
    from clearhead.export.saved_page import save_html
    from clearhead.figures.figure import figure
    from clearhead.inspect.edits import Edit
    from clearhead.labs.catalog import lab
    from clearhead.labs.heads import heads
    from clearhead.labs.probe import probe
    from clearhead.labs.race import race
    from clearhead.language_model import LanguageModel, load
    from clearhead.lectures.catalog import lecture
    from clearhead.lessons.text_lesson import learn
    from clearhead.model.config import Config
    from clearhead.model.transformer import Transformer
    from clearhead.notebook.display import show
    from clearhead.runs.call import train
    from clearhead.runs.listing import list_runs as runs
    from clearhead.text.tokenizer import Tokenizer
    from clearhead.word_vectors import WordVectors, load_words, train_words

__all__ = [
    "Config",
    "Edit",
    "LanguageModel",
    "NGram",
    "NGramConfig",
    "Recurrent",
    "RecurrentConfig",
    "Tokenizer",
    "Transformer",
    "UserError",
    "WordVectors",
    "ensemble",
    "figure",
    "heads",
    "lab",
    "learn",
    "lecture",
    "load",
    "load_words",
    "probe",
    "race",
    "report",
    "reports",
    "runs",
    "save_html",
    "score",
    "show",
    "train",
    "train_words",
]

# The module of each public name, imported on first access: importing torch takes a second or two.
_HOMES = {
    "Config": "clearhead.model.config",
    "Edit": "clearhead.inspect.edits",
    "LanguageModel": "clearhead.language_model",
    "NGram": "clearhead.classics.ngram",
    "NGramConfig": "clearhead.classics.ngram_config",
    "Recurrent": "clearhead.classics.recurrent",
    "RecurrentConfig": "clearhead.classics.recurrent_config",
    "Tokenizer": "clearhead.text.tokenizer",
    "Transformer": "clearhead.model.transformer",
    "UserError": "clearhead.errors",
    "WordVectors": "clearhead.word_vectors",
    "ensemble": "clearhead.ensembles",
    "figure": "clearhead.figures.figure",
    "heads": "clearhead.labs.heads",
    "lab": "clearhead.labs.catalog",
    "learn": "clearhead.lessons.text_lesson",
    "lecture": "clearhead.lectures.catalog",
    "load": "clearhead.language_model",
    "load_words": "clearhead.word_vectors",
    "probe": "clearhead.labs.probe",
    "race": "clearhead.labs.race",
    "report": "clearhead.evaluation.reporting",
    "reports": "clearhead.evaluation.reporting",
    "save_html": "clearhead.export.saved_page",
    "score": "clearhead.evaluation.scores",
    "show": "clearhead.notebook.display",
    "train": "clearhead.runs.call",
    "train_words": "clearhead.word_vectors",
}


def __getattr__(name: str) -> Any:
    if name == "runs":  # a package that can be called
        return import_module("clearhead.runs")
    if name not in _HOMES:
        raise AttributeError(f"module 'clearhead' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
