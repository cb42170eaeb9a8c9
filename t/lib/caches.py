"""Builds the response caches of t/caches on first use."""

import pathlib
import subprocess

from lib.server import BUILD, ROOT

SOURCES = ROOT / "t" / "caches"


def build(trouble):
    """The directory of caches with one called trouble in it."""
    directory = pathlib.Path(BUILD) / "t-caches"
    library = directory / trouble / f"libtritoncache_{trouble}.so"
    source = SOURCES / f"{trouble}.cc"
    compiler = ["g++", "-std=gnu++17"]
    if not source.exists():
        source = SOURCES / "trouble.c"
        compiler = ["gcc", "-std=gnu17", f"-DTROUBLE_{trouble.upper()}"]
    if library.exists() and \
            library.stat().st_mtime > source.stat().st_mtime:
        return directory
    library.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [*compiler, "-O1", "-g", "-Wall", "-Wextra", "-Werror",
         "-D_GNU_SOURCE", "-shared", "-fPIC", "-I", ROOT / "core/include",
         "-o", library, source], check=True)
    return directory
