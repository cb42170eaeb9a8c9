"""Builds the small C backends of t/backends and examples on first use."""

import os
import pathlib
import shutil
import subprocess

from lib.server import BACKENDS, BUILD, ROOT

SOURCES = ROOT / "t" / "backends"
EXAMPLES = ROOT / "examples" / "backends"


def build(name, directory=None):
    """libtriton_<name>.so in <directory>/<name>/; the directory of backends."""
    directory = pathlib.Path(directory or BUILD / "t-backends")
    sources = sorted((SOURCES / name).glob("*.c")) \
        or [SOURCES / f"{name}.c"]
    _compile(sources, directory / name / f"libtriton_{name}.so")
    return directory


def stand_ins(*names):
    """A directory of backends of those names that take any model."""
    build("failing")
    directory = BUILD / "t-stand-ins"
    for name in names:
        (directory / name).mkdir(parents=True, exist_ok=True)
        library = directory / name / f"libtriton_{name}.so"
        shutil.copy(BUILD / "t-backends/failing/libtriton_failing.so",
                    f"{library}.new")
        os.replace(f"{library}.new", library)   # it may be mapped
    return directory


def example(name):
    """The library of a backend of examples/backends, as a user has it."""
    library = BUILD / "t-backends" / name / f"libtriton_{name}.so"
    _compile([EXAMPLES / name / f"{name}.c"], library)
    return library


def strategy(name, directory, library="batchstrategy.so"):
    """The batch strategy t/strategies/<name>.c[c] as directory/library."""
    path = pathlib.Path(directory) / library
    _compile([*(ROOT / "t" / "strategies").glob(f"{name}.c*")], path)
    return path


def _compile(sources, library):
    if library.exists() and library.stat().st_mtime > max(
            s.stat().st_mtime for s in [*sources, *SOURCES.glob("*.h")]):
        return
    library.parent.mkdir(parents=True, exist_ok=True)
    plain = sources[0].suffix == ".c"
    subprocess.run(
        ["gcc" if plain else "g++", "-std=gnu17" if plain else "-std=gnu++17",
         "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE",
         "-shared", "-fPIC", "-I", ROOT / "core/include", "-o", library,
         *sources], check=True)


def copy_identity(directory, name="identity", library=None):
    """Our identity backend under another name or in another directory."""
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(BACKENDS / "identity/libtriton_identity.so",
                directory / (library or f"libtriton_{name}.so"))
    return directory


def build_bad(directory, name="bad", defines=(), compiler="g++"):
    """t/backends/bad as <directory>/<name>/libtriton_<name>.so; its path."""
    library = pathlib.Path(directory) / name / f"libtriton_{name}.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [compiler, "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror",
         "-shared", "-fPIC", "-fvisibility=hidden",
         *(f"-D{d}" for d in defines), "-I", ROOT / "core/include",
         "-o", library, SOURCES / "bad/bad.cc"], check=True)
    return library


def is_absent(library):
    """Whether a backend of ours was built without its runtime."""
    return b"built without " in pathlib.Path(library).read_bytes()
