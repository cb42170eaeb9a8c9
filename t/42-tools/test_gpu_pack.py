"""A rehearsal of `make test-gpu`: the pack for a machine without network, laid
out in an empty directory and run there with the fake driver."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from lib import gpu
from lib.server import BUILD, ROOT, SANITIZER, SLOW

TESTS = "t/17-shared-memory/test_cuda.py::test_tensors_in_place"
LIMIT = 60 << 20

# sh with the rest of the arguments, where there is the loopback and no more
ALONE = """
import fcntl, os, socket, struct, sys
with socket.socket() as s:
    fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 0x49))    # up
os.execvp("sh", ["sh", *sys.argv[1:]])
"""


def run(*command, **env):
    """(exit status, output) of sh."""
    done = subprocess.run(command, env=dict(os.environ, **env), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, check=False,
                          timeout=300 * SLOW)
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    if SANITIZER:
        pytest.skip("the pack is of the build without a sanitizer")
    folder = tmp_path_factory.mktemp("gpu") / "pack"
    status, out = run("sh", str(ROOT / "t/gpu/pack.sh"), str(folder),
                      INF_BUILD=str(BUILD), GPU_WHEELS="none")
    assert status == 0, out
    return folder


def test_pack_is_small_and_says_what_it_lacks(pack):
    size = sum(p.stat().st_size for p in pack.rglob("*") if p.is_file())
    assert 1 << 20 < size < LIMIT // 2
    manifest = (pack / "MANIFEST").read_text()
    assert "left out: all wheels, as asked" in manifest
    assert "nginx version: nginx/" in manifest


def test_pack_runs_without_a_network(pack, tmp_path):
    """Its own nginx, libraries and backends; the tests' modules are those of
    this interpreter, as on a machine that has them."""
    tmp_path.chmod(0o755)                   # for workers
    status, out = run(
        "unshare", "-n", sys.executable, "-c", ALONE, str(pack / "run.sh"),
        "--fake", str(tmp_path), PYTHON=sys.executable, INF_GPU_TESTS=TESTS,
        INF_GPU_STEPS="memory server tests table", QUICK="1", INF_BUILD="",
        INF_NGINX="", CUDA_HOME="/nowhere")
    assert status == 0, out
    assert "skipped: the fake driver has unit tests of its own" in out
    for name, result in (("memory", "skipped"), ("server", "ok"),
                         ("tests", "ok"), ("table", "ok")):
        assert re.search(rf"^  {name} +{result} ", out, re.MULTILINE), out
    assert "tests: 2 passed, 0 failed" in out
    assert "THE FAKE DRIVER" in out
    assert re.search(r"^empty kernel inside the core +p50_us", out,
                     re.MULTILINE), out
    assert "target" not in out.lower().split("== table")[1], out
    assert pathlib.Path(tmp_path / "nginx-inference/build/inference-core") \
        .exists()


def test_without_a_gpu_it_says_so_and_succeeds():
    status, out = run("sh", str(ROOT / "t/gpu/run.sh"), INF_BUILD=str(BUILD),
                      INF_GPU_DRIVER="real", PYTHON=sys.executable,
                      INF_GPU_STEPS="declarations server")
    assert status == 0, out
    if gpu.found():
        assert re.search(r"^  server +ok ", out, re.MULTILINE), out
    else:
        assert "skipped: there is no GPU; --fake is a rehearsal" in out
        assert "server" not in out.split("== summary")[1]
