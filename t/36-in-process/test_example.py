"""examples/in-process, built and run as its README says."""

import os
import re
import shutil
import subprocess

import pytest

from lib.server import BUILD, ROOT, SANITIZER, SLOW

EXAMPLES = ROOT / "examples"
FLAGS = {"asan": "-fsanitize=address,undefined", "tsan": "-fsanitize=thread",
         "": ""}[SANITIZER]


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    place = tmp_path_factory.mktemp("in-process")
    for name in ("in-process", "backends", "models"):
        shutil.copytree(EXAMPLES / name, place / name,
                        ignore=shutil.ignore_patterns("*.so"))
    shutil.rmtree(place / "in-process/models", ignore_errors=True)
    made = subprocess.run(
        ["make", "-s", "-C", place / "in-process", "run", f"LIB={BUILD}",
         f"INCLUDE={ROOT}/core/include",
         f"CFLAGS=-O1 -g -Wall -Wextra -Wconversion -Werror {FLAGS}"],
        env={k: v for k, v in os.environ.items() if k != "MAKEFLAGS"},
        capture_output=True, text=True, timeout=120 * SLOW, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout


def test_models_are_listed(output):
    for name in ("identity", "repeat"):
        assert f'{{"name":"{name}","version":"1","state":"READY"}}' in output


def test_one_answer(output):
    assert "ask identity\n  OUTPUT0: FP32 [4]: 1 2.5 -3 4\n" in output


def test_a_stream(output):
    rows = "".join(f"  OUT: INT32 [1]: {n}0\n  IDX: UINT32 [1]: {n - 1}\n"
                   for n in range(1, 5))
    assert "stream from repeat, which is decoupled\n" + rows \
        + "4 responses\n" in output


def test_a_cancel(output):
    tail = output.split("cancel repeat after two responses\n")[1]
    assert re.match(r"(  OUT: INT32 \[1\]: \d+\n  IDX: UINT32 \[1\]: \d+\n)"
                    r"{2,300}cancelled\n", tail)


def test_the_metrics(output):
    assert re.search(r'^nv_inference_request_success\{model="identity",'
                     r'version="1"\} 1$', output, re.M)
    assert re.search(r'^nv_inference_request_success\{model="repeat",'
                     r'version="1"\} 2$', output, re.M)
