"""Start other programs and import modules, but never from the working folder, which may be someone else's.

This module may import only what Python has loaded before it looks for any module: with `python -m`, the working folder
comes first on the path until `shield` removes it, even for `__future__`.
"""

import os
import sys

shielded = False  # whether this process is one of Clearhead's commands, and not a user's program

PACKAGE_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 (without pathlib)


def shield() -> None:
    """Keep this process, and those it and its libraries start, from using modules or programs in the working folder."""
    global shielded
    shielded = True
    sys.path[:] = import_path()
    os.environ.update(environment())
    # Otherwise .numba_config.yaml in the working folder could name the folder of numba's cache, which it unpickles.
    os.environ.setdefault("NUMBA_CACHE_DIR", "")
    # Otherwise W&B would run git there, and the folder's .git/config can name programs that git runs.
    os.environ.setdefault("WANDB_DISABLE_GIT", "true")


def limit_spinning() -> None:
    """Let OpenMP's threads, which spin while they wait for each other, sleep sooner than they do by default.

    On a busy machine, a spinning thread occupies a core that the thread it waits for needs. This has an effect only
    before PyTorch is imported.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module with this Python, without the working folder on its path."""
    return [sys.executable, "-P", "-m", module, *arguments]


def environment(**variables: str) -> dict[str, str]:
    """The environment for another program: this one's, without the working folder, and with these variables."""
    safe = {
        "PATH": _join(_program_folders()) or os.defpath,  # an empty PATH stands for the working folder
        "PYTHONSAFEPATH": "1",
        "NoDefaultCurrentDirectoryInExePath": "1",  # Windows looks there first
    }
    if "PYTHONPATH" in os.environ:
        given = os.environ["PYTHONPATH"].split(os.pathsep)
        safe["PYTHONPATH"] = _join([each for each in given if each and not _is_foreign(each)])
    return {**os.environ, **safe, **variables}


def python_environment(**variables: str) -> dict[str, str]:
    """Like `environment`, but for running this Python: it also imports from this process's folders."""
    return environment(**{"PYTHONPATH": _join(import_path()), **variables})


def import_path() -> list[str]:
    """`sys.path` without the working folder; if that is where Clearhead itself is, it comes last."""
    kept = [os.path.abspath(each) for each in sys.path if each and not _is_foreign(each)]  # noqa: PTH100
    return [*kept, PACKAGE_HOME] if _is_foreign(PACKAGE_HOME) else kept


def find_program(name: str) -> str | None:
    """The absolute path of a program, like `shutil.which`, but never in the working folder."""
    suffixes = os.environ.get("PATHEXT", ".EXE;.CMD;.BAT").split(";") if os.name == "nt" else [""]
    for folder in _program_folders():
        for suffix in suffixes:
            path = os.path.join(folder, name + suffix)  # noqa: PTH118
            if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
                return path
    return None


def _program_folders() -> list[str]:
    """The absolute folders on the PATH except the working folder; others are relative to it."""
    given = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return [each for each in given if os.path.isabs(each) and not _is_foreign(each)]  # noqa: PTH117


def _is_foreign(folder: str) -> bool:
    """Whether this is the working folder, and not part of the Python installation."""
    try:
        here = os.path.samefile(folder, os.curdir)  # noqa: PTH121
    except OSError:
        return False
    return here and not any(_is_below(folder, prefix) for prefix in (sys.prefix, sys.base_prefix))


def _is_below(folder: str, parent: str) -> bool:
    return os.path.realpath(folder).startswith(os.path.realpath(parent) + os.sep)


def _join(folders: list[str]) -> str:
    return os.pathsep.join(folders)
