"""Backends that were built without their runtime: a model's load says what to
install, and other models serve."""

import os
import shutil
import subprocess

import pytest

from lib import backends, models
from lib.repository import PARTS, settled
from lib.server import BACKENDS, ROOT

PACKAGES = {"onnxruntime": ["onnxruntime", "PyPI", "libonnxruntime-dev"],
            "openvino": ["openvino", "PyPI"], "pytorch": ["torch", "PyPI"],
            "python": ["python3-dev", "libarchive-dev"],
            "image": ["libpng-dev"]}


def build(name, tmp_path):
    """The backend alone, on a machine that has no library and no header."""
    out = tmp_path / name
    command = ["cmake", "-G", "Ninja", "-S", ROOT / "backends" / name,
               "-B", out, "-DCMAKE_FIND_ROOT_PATH=/nowhere",
               "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY",
               "-DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY"]
    done = subprocess.run(command, capture_output=True, text=True, check=True,
                          env={**os.environ, "PKG_CONFIG_LIBDIR": "/nowhere"})
    assert f"backend {name} is left out" in " ".join(done.stderr.split())
    subprocess.run(["ninja", "-C", out], capture_output=True, check=True)
    return out / "backends" / name / f"libtriton_{name}.so"


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """As an installation has it, with backend identity."""
    tmp_path = tmp_path_factory.mktemp("absent")
    for name in [*PACKAGES, "identity"]:
        library = build(name, tmp_path) if name in PACKAGES else \
            BACKENDS / name / f"libtriton_{name}.so"
        assert backends.is_absent(library) == (name in PACKAGES)
        place = tmp_path / "backends" / name
        place.mkdir(parents=True)
        (place / library.name).symlink_to(library)
    return tmp_path / "backends"


def test_a_load_says_what_to_install(make_server, directory):
    def fill(repository):
        for name in PACKAGES:
            models.identity(repository, name, [("IN", "FP32", [1])],
                            backend=name)
        models.identity(repository, "good", [("IN", "FP32", [1])])

    server = make_server(fill, parts=PARTS, wait="live", backends=directory)
    found = settled(server)
    for name, words in PACKAGES.items():
        row, = found[name]
        assert row["state"] == "UNAVAILABLE", row
        for word in ["built without", "install", *words]:
            assert word in row["reason"], row
    assert found["good"][0]["state"] == "READY"


def test_a_directory_without_the_backend(make_server, tmp_path):
    """The reason has the backend's name."""
    def fill(repository):
        models.identity(repository, "m", [("IN", "FP32", [1])],
                        backend="openvino")

    server = make_server(fill, parts=PARTS, wait="live", backends=tmp_path)
    row, = settled(server)["m"]
    assert "backend 'openvino'" in row["reason"], row


def test_a_runtime_that_is_not_beside_its_backend(make_server, tmp_path):
    """Those that are linked to it; the others' tests have their own."""
    libraries = {name: library for name, library in (
        ("onnxruntime", "libonnxruntime.so"), ("pytorch", "libtorch_cpu.so"))
        if not backends.is_absent(BACKENDS / name / f"libtriton_{name}.so")}
    for name in [*libraries, "identity"]:
        place = tmp_path / "backends" / name
        place.mkdir(parents=True)
        shutil.copy(BACKENDS / name / f"libtriton_{name}.so", place)

    def fill(repository):
        for name in [*libraries, "identity"]:
            models.identity(repository, name, [("IN", "FP32", [1])],
                            backend=name)

    server = make_server(fill, parts=PARTS, wait="live",
                         backends=tmp_path / "backends")
    found = settled(server)
    for name, library in libraries.items():
        reason = found[name][0]["reason"]
        assert f'cannot load backend "{name}"' in reason, reason
        assert library in reason, reason
    assert found["identity"][0]["state"] == "READY"
