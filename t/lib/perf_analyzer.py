"""NVIDIA's perf_analyzer, the program as it stands in its package."""

import csv
import itertools
import os
import subprocess

from lib.server import ROOT, SLOW

FOLDER = ROOT / "build" / "deps" / "perf-analyzer"
PROGRAM = FOLDER / "bin" / "perf_analyzer"

# Three windows of this length with requests in each are enough, however much
# they differ.
SHORT = ["--measurement-interval", str(150 * SLOW),
         "--stability-percentage", "999", "--max-trials", "100"]

_numbers = itertools.count()


def environment():
    """The program needs CUDA's runtime even where it uses no GPU."""
    return {**os.environ,
            "LD_LIBRARY_PATH": str(FOLDER / "nvidia/cuda_runtime/lib")}


def say(*arguments, more=None):
    """The output of a run that succeeds; more: environment."""
    done = subprocess.run(
        [PROGRAM, *SHORT, *arguments], env={**environment(), **(more or {})},
        capture_output=True, text=True, timeout=120 * SLOW, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def run(directory, *arguments, **kw):
    """(rows of the report, what the program said) of a run that succeeded."""
    report = directory / f"report-{next(_numbers)}.csv"
    said = say("-f", report, *arguments, **kw)
    with open(report, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows, said
    for row in rows:
        assert float(row["Inferences/Second"]) > 0, said
    return rows, said
