"""Code that would reach too far: memory by shapes that do not fit each other,
the driver, the loader."""

import os
import shutil
import subprocess

import pytest

from lib import cuda, models, process
from lib.server import ROOT, SLOW
from lib.wire import tensor


def add(server, a, b, model="vector_add"):
    return server.infer(model, {"inputs": [
        tensor("a", "FP32", [1, len(a)], a),
        tensor("b", "FP32", [1, len(b)], b)]})


@pytest.mark.parametrize("a,b", [(3, 2), (2, 3), (1000, 0)])
def test_inputs_that_do_not_fit_each_other(make_server, tmp_path, a, b):
    server = make_server(
        lambda r: shutil.copytree(cuda.EXAMPLES / "vector_add",
                                  r / "vector_add"), **cuda.options(tmp_path))
    answer = add(server, [1] * a, [1] * b)
    assert answer.status == 400, answer
    assert f'"a[0] == b[0]" (require_1): {a} is not {b}' in answer.error
    assert add(server, [1, 2], [3, 4]).json()["outputs"][0]["data"] == [4, 6]


@pytest.mark.fake_gpu
def test_code_with_other_files_is_not_kept(make_server, tmp_path):
    """An absolute name is the one that the compiler still opens by itself."""
    other = tmp_path / "other.h"
    other.write_text("#define X 1\n")

    def fill(repository):
        cuda.add_model(repository, "own", files={"b.cuh": b""},
                       source='#include "b.cuh"\n' + cuda.ADD_SOURCE)
        cuda.add_model(repository, "abroad",
                       source=f'#include "{other}"\n' + cuda.ADD_SOURCE)
        cuda.add_model(repository, "below", files={"b.inc": b""},
                       source='#include "b.inc"\n' + cuda.ADD_SOURCE)
    server = make_server(fill, wait="live", **cuda.options(tmp_path))
    server.wait_log("own/1/model.cu: compiled for")
    server.wait_log("abroad/1/model.cu: compiled for")
    server.wait_log(r'below/1/model\.cu.*open source file "b\.inc"')
    server.stop()
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_options_of_the_compiler_are_all_used(make_server, tmp_path):
    def fill(repository):
        for count in (63, 64):
            words = [f"-DX{i}=1" for i in range(count)]
            source = "".join(f"#if !X{i}\n#error X{i}\n#endif\n"
                             for i in range(count)) + cuda.ADD_SOURCE
            cuda.add_model(repository, f"words{count}", source=source,
                           parameters={"compile_options": " ".join(words)})
    server = make_server(fill, wait="live", **cuda.options(tmp_path))
    server.wait_log("words63/1/model.cu: compiled for")
    server.wait_log("words64/1/model.*compile_options has more than 63 words")


def test_what_is_no_file_is_not_included(make_server, tmp_path):
    def fill(repository):
        model = cuda.add_model(repository, "vector_add", files={
            "b.cuh": b"#define TWO 2\n", ".b.cuh": b"#error hidden\n"},
            source='#include "b.cuh"\n#include "c.h"\n' + cuda.ADD_SOURCE)
        (model / "1/c.h").symlink_to("b.cuh")
        (model / "1/.#b.h").symlink_to("user@host.1")
        (model / "1/lost.h").symlink_to("nowhere")
        (model / "1/more.h").mkdir()
        os.mkfifo(model / "1/pipe.hpp")
    server = make_server(fill, **cuda.options(tmp_path))
    assert add(server, [1, 2], [3, 4]).json()["outputs"][0]["data"] == [4, 6]


def test_a_library_that_is_cut_off(make_server, tmp_path):
    """The loader would end the core: it trusts the file's own tables."""
    library = tmp_path / "model.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-I", ROOT / "backends/cuda",
                    "-o", library, ROOT / "t/44-cuda/library.c"], check=True)
    whole = library.read_bytes()
    sizes = [64, len(whole) // 4, len(whole) // 2]

    def fill(repository):
        models.identity(repository, "good", [("IN", "FP32", [-1])])
        for size in sizes:
            model = cuda.add_model(repository, f"cut{size}", file="model.so",
                                   source=whole[:size])
            config = model / "config.pbtxt"
            config.write_text("".join(
                line for line in config.read_text().splitlines(True)
                if "kernel_1" not in line))
    server = make_server(fill, wait="live", **cuda.options(tmp_path))
    for size in sizes:
        server.wait_log(rf"cut{size}/1/model\.so.*it is cut off")
    assert process.wait_until(
        lambda: server.status("/v2/models/good/ready") == 200, 20 * SLOW)
