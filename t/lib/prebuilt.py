"""NVIDIA's prebuilt python backend, laid out beside what it needs.

The files are those of the wheel that t/bench/peer.py fetches, unmodified.
"""

import ctypes
import functools
import pathlib
import shutil
import subprocess
import sys

from lib.server import BUILD, ROOT, SANITIZER

PEER = ROOT / "build" / "peer"
TRITON = PEER / "pytriton" / "tritonserver"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
FILES = [TRITON / "backends/python/libtriton_python.so",
         TRITON / "backends/python/triton_python_backend_utils.py",
         TRITON / "python_backend_stubs" / PYTHON
         / "triton_python_backend_stub"]
CACHE = TRITON / "caches/local/libtritoncache_local.so"
INTERPRETER = PEER / "python" / "complete"


def missing():
    """Why the backend cannot run here; "" if it can."""
    if SANITIZER:
        return "a sanitizer's runtime does not go into prebuilt programs"
    for file in [*FILES, CACHE, INTERPRETER]:
        if not file.exists():
            return f"{file} is not there; python t/bench/peer.py fetches it"
    try:
        ctypes.CDLL(f"libpython{PYTHON}.so.1.0")
    except OSError as e:
        return str(e)
    return ""


def folder():
    """A directory of backends with "python" in it.

    The library and the stub look for the wheel's libraries four levels up.
    """
    root = BUILD / "t-prebuilt"
    python = root / "pytriton" / "tritonserver" / "backends" / "python"
    python.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        copy = python / file.name
        if not copy.exists() or copy.stat().st_size != file.stat().st_size:
            shutil.copy(file, copy)
            copy.chmod(0o755)
    _libraries(root)
    return python.parent


def caches():
    """A directory of caches with NVIDIA's "local" in it."""
    root = BUILD / "t-prebuilt"
    local = root / "pytriton" / "tritonserver" / "caches" / "local"
    local.mkdir(parents=True, exist_ok=True)
    shutil.copy(CACHE, local / CACHE.name)
    _libraries(root)
    return local.parent


def _libraries(root):
    libraries = root / "nvidia_pytriton.libs"
    if not libraries.exists():
        libraries.symlink_to(PEER / "nvidia_pytriton.libs")


@functools.lru_cache(maxsize=None)
def front_end():
    """The wheel's server program over our library in place of its own."""
    root = BUILD / "t-prebuilt" / "front-end"
    program = root / "pytriton" / "tritonserver" / "bin" / "tritonserver"
    libraries = root / "nvidia_pytriton.libs"
    shutil.rmtree(root, ignore_errors=True)
    program.parent.mkdir(parents=True)
    libraries.mkdir()
    for file in (PEER / "nvidia_pytriton.libs").iterdir():
        if file.name.startswith("libtritonserver-"):
            subprocess.run(
                ["sh", ROOT / "tools/forwarding-library.sh", file.name,
                 libraries / file.name, BUILD / "libtritonserver.so"],
                check=True)
        else:
            (libraries / file.name).symlink_to(file)
    (libraries / "libtritonserver.so").symlink_to(BUILD / "libtritonserver.so")
    shutil.copy(TRITON / "bin/tritonserver", program)
    program.chmod(0o755)
    return program


def environment():
    """The stub takes the packages of the interpreter that it finds first,
    and reads no PYTHONPATH."""
    return [f'"PATH={PEER}/python/bin:/usr/bin:/bin"']


def derived(name, source):
    """A backend that is a model.py; in the directory of backends."""
    place = folder() / name
    place.mkdir(exist_ok=True)
    (place / "model.py").write_text(source, encoding="utf-8")


def model(repository, name, config, source):
    """A model of the python backend."""
    place = pathlib.Path(repository) / name / "1"
    place.mkdir(parents=True)
    (place / "model.py").write_text(source, encoding="utf-8")
    (place.parent / "config.pbtxt").write_text(
        f'name: "{name}"\nbackend: "python"\n' + config, encoding="utf-8")
