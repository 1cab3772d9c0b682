"""Runs benchmarks and tools as processes."""

import subprocess
import sys
from json import loads
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_python(*arguments):
    """Run Python in the repository and return its standard output."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def run_short(name, *arguments):
    """Run a benchmark in short mode and return the figures that it prints in one line."""
    [line] = run_python("-m", f"bench.{name}", "--short", *arguments).splitlines()
    return loads(line)
