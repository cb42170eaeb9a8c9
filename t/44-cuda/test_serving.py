"""Batches, copies, graphs, kept code and libraries."""

import concurrent.futures
import json
import subprocess

import pytest

from lib import cuda, models, process
from lib.server import ROOT, SLOW
from lib.wire import tensor

# Two kernels, so that a graph is worth it: sum = (a + b) + b.
TWICE = {"kernel_1": "vector_add<<<ceildiv(elements(sum), 32), 32>>>"
                     "(a, b, half, int(elements(sum)))",
         "kernel_2": "vector_add<<<ceildiv(elements(sum), 32), 32>>>"
                     "(half, b, sum, int(elements(sum)))",
         "scratch_half": "bytes(sum)"}


def request(a, b, **kw):
    return {"inputs": [tensor("a", "FP32", [1, len(a)], a),
                       tensor("b", "FP32", [1, len(b)], b)], **kw}


def add(server, a, b, model="add"):
    answer = server.infer(model, request(a, b))
    assert answer.status == 200, answer
    return answer.json()["outputs"][0]["data"]


def ended(server, tmp_path):
    """The counters of a server that was stopped: nothing is left, and the
    driver has seen nothing that it would forbid."""
    server.stop()
    counts = cuda.counts(tmp_path)
    assert counts["wrong"] == 0, counts
    return counts


@pytest.mark.fake_gpu
def test_requests_run_together(make_server, tmp_path):
    delay = "dynamic_batching { max_queue_delay_microseconds: 300000 }\n"
    server = make_server(
        lambda r: cuda.add_model(r, extra=delay, dims=3),
        **cuda.options(tmp_path))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda i: add(server, [i, 2 * i, 0], [1, 1, i]),
                            range(8)))
    assert got == [[i + 1, 2 * i + 1, i] for i in range(8)]
    counts = ended(server, tmp_path)
    assert counts["kernels"]["vector_add"] < 8
    # a copy for each tensor of each request, straight from where it lies
    assert counts["calls"]["cuMemcpyHtoDAsync_v2"] == 16
    assert counts["calls"]["cuMemcpyDtoHAsync_v2"] == 8


@pytest.mark.fake_gpu
def test_requests_of_other_shapes_run_apart(make_server, tmp_path):
    delay = "dynamic_batching { max_queue_delay_microseconds: 100000 }\n"
    server = make_server(lambda r: cuda.add_model(r, extra=delay),
                         **cuda.options(tmp_path))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda n: add(server, [1] * n, [n] * n),
                            range(1, 9)))
    assert got == [[1 + n] * n for n in range(1, 9)]
    ended(server, tmp_path)


@pytest.mark.fake_gpu
def test_memory_is_taken_once(make_server, tmp_path):
    server = make_server(lambda r: cuda.add_model(r, dims=5),
                         **cuda.options(tmp_path))
    taken, answers = [], []
    for runs in (1, 21):
        while len(answers) < runs:
            answers.append(add(server, [len(answers)] * 5, [2] * 5))
        taken.append(cuda.counts(tmp_path, ran=runs)["memory"])
    assert answers == [[i + 2] * 5 for i in range(21)]
    assert taken[0] == taken[1]
    ended(server, tmp_path)


@pytest.mark.fake_gpu
@pytest.mark.parametrize("graphs", [16, 2, 0])
def test_graphs(make_server, tmp_path, graphs):
    server = make_server(lambda r: cuda.add_model(
        r, parameters={**TWICE, "graphs": graphs}), **cuda.options(tmp_path))
    for _ in range(5):
        for n in (1, 2, 3):
            assert add(server, [1] * n, [n] * n) == [1 + 2 * n] * n
    made = ended(server, tmp_path)["calls"]
    played = made.get("cuGraphLaunch", 0)
    # 15 batches of three kinds; the first of a kind is launched by hand, and
    # so is the second of the first kind: memory has grown and moved.  Two
    # places for three kinds in turn are always the wrong ones.
    assert played == {16: 11, 2: 0, 0: 0}[graphs]
    assert made.get("cuGraphInstantiateWithFlags", 0) \
        == {16: 3, 2: 0, 0: 0}[graphs]


@pytest.mark.fake_gpu
def test_graphs_that_cannot_be_made(make_server, tmp_path):
    server = make_server(
        lambda r: cuda.add_model(r, parameters=TWICE), **cuda.options(
            tmp_path, env=["FAKE_CUDA_FAIL=cuStreamBeginCapture_v2:900:1"]))
    for i in range(6):
        assert add(server, [i], [2]) == [i + 4]
    server.wait_log("no graph of the kernels is made")
    assert "cuGraphLaunch" not in ended(server, tmp_path)["calls"]


@pytest.mark.fake_gpu
def test_tensors_stay_on_the_device_between_two_models(make_server, tmp_path):
    def fill(repository):
        for name in ("one", "two"):
            cuda.add_model(repository, name, dims=1000, batch=0)
        tensors = [("a", "FP32", [1000]), ("b", "FP32", [1000])]
        models.ensemble(
            repository, "both", tensors, [("sum", "FP32", [1000])],
            models.step("one", {"a": "a", "b": "b"}, {"sum": "half"}),
            models.step("two", {"a": "half", "b": "b"}, {"sum": "sum"}))

    server = make_server(fill, **cuda.options(tmp_path))
    answer = server.infer("both", {"inputs": [
        tensor("a", "FP32", [1000], [1] * 1000),
        tensor("b", "FP32", [1000], [2] * 1000)]})
    assert answer.json()["outputs"][0]["data"] == [5] * 1000
    moved = ended(server, tmp_path)["bytes"]
    assert moved["to_device"] == 3 * 4000      # b twice
    assert moved["to_host"] == 4000


@pytest.mark.fake_gpu
def test_several_devices(make_server, tmp_path):
    server = make_server(
        lambda r: cuda.add_model(r, extra=""), **cuda.options(
            tmp_path, devices=3, env=["FAKE_CUDA_CAPABILITY=8.0,8.0,9.0"]))
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        got = list(pool.map(lambda i: add(server, [i], [i]), range(60)))
    assert got == [[2 * i] for i in range(60)]
    for line in ("compiled for sm_80 by NVRTC", "compiled for sm_90 by NVRTC",
                 "the code compiled earlier for sm_80"):
        server.wait_log(line)
        assert server.log_text().count(line) == 1
    ended(server, tmp_path)


@pytest.mark.fake_gpu
def test_instances_that_share_a_thread(make_server, tmp_path):
    server = make_server(
        lambda r: cuda.add_model(
            r, kind="KIND_GPU count: 3"), **cuda.options(tmp_path, http="""
    inference_backend_config cuda device-blocking=true;
"""))
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        got = list(pool.map(lambda i: add(server, [i], [i]), range(30)))
    assert got == [[2 * i] for i in range(30)]
    ended(server, tmp_path)


def test_compiled_code_is_kept(make_server, tmp_path):
    def run(words):
        server = make_server(cuda.add_model, **cuda.options(tmp_path))
        assert add(server, [1], [2]) == [3]
        server.wait_log(words)
        server.stop()

    cache = tmp_path / "cache"
    run("add/1/model.cu: compiled for sm_80")
    code, = cache.iterdir()
    assert code.stat().st_mode & 0o777 == 0o600
    assert cache.stat().st_mode & 0o777 == 0o700
    run("add/1/model.cu: the code compiled earlier for sm_80 is used")

    whole = code.read_bytes()
    code.write_bytes(whole[:-1])
    run("is not as it was written; it is compiled again")
    code.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    run("is not as it was written; it is compiled again")
    run("the code compiled earlier for sm_80 is used")
    assert len(list(cache.iterdir())) == 1


def test_code_of_another_source_is_not_used(make_server, tmp_path):
    source = '#include "b.cuh"\n' + cuda.ADD_SOURCE

    def run(text, header, options=""):
        server = make_server(
            lambda r: cuda.add_model(
                r, source=text, files={"b.cuh": header},
                parameters={"compile_options": options} if options else {}),
            **cuda.options(tmp_path))
        server.wait_log("compiled for sm_80 by")
        server.stop()
        return len(list((tmp_path / "cache").iterdir()))

    assert run(source, b"") == 1
    assert run(source + "\n", b"") == 2
    assert run(source, b"#define X 1\n") == 3
    assert run(source, b"", "-DX=2") == 4
    # what other directories hold is not known
    assert run(source, b"", f"-I{tmp_path}") == 4


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_cache_of_others_is_not_used(make_server, tmp_path, mode):
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(mode)
    server = make_server(cuda.add_model, **cuda.options(tmp_path))
    assert add(server, [1], [2]) == [3]
    server.wait_log("compiled kernels are not kept")
    assert not list(cache.iterdir())


PTX = """.version {version}
.target sm_75
.address_size 64
.visible .entry vector_add(.param .u64 a, .param .u64 b, .param .u64 sum,
    .param .u32 count) {{ ret; }}
"""


def compiled(tmp_path, *arguments):
    """The cubin that the backend keeps, without its head of 80 bytes."""
    code, = (tmp_path / "cache").iterdir()
    return code.read_bytes()[80:]


@pytest.mark.fake_gpu
def test_code_that_is_compiled_already(make_server, tmp_path):
    first = make_server(cuda.add_model, **cuda.options(tmp_path))
    add(first, [1], [2])
    first.stop()
    cubin = compiled(tmp_path)
    assert cubin[:4] == b"\x7fELF"

    def fill(repository):
        cuda.add_model(repository, "cubin", source=cubin, file="model.cubin")
        cuda.add_model(repository, "ptx", source=PTX.format(version="8.0"),
                       file="model.ptx")
        cuda.add_model(repository, "named", source=cubin, file="my.cubin",
                       extra='default_model_filename: "my.cubin"\n')
    server = make_server(fill, **cuda.options(tmp_path, compiler="/nowhere"))
    for model in ("cubin", "ptx", "named"):
        assert add(server, [1], [2], model) == [3]
    ended(server, tmp_path)


def test_the_backend_is_found_by_the_file_s_name(make_server, tmp_path):
    def fill(repository):
        model = cuda.add_model(repository)
        config = model / "config.pbtxt"
        config.write_text(config.read_text().replace('backend: "cuda"\n', ""))
    server = make_server(fill, **cuda.options(tmp_path))
    assert add(server, [1], [2]) == [3]


def library(directory, *defines):
    path = directory / "model.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", *defines,
                    "-I", ROOT / "backends/cuda", "-o", path,
                    ROOT / "t/44-cuda/library.c"], check=True)
    return path.read_bytes()


def library_model(repository, name, content, more="", **kw):
    model = cuda.add_model(repository, name, source=content, file="model.so",
                           **kw)
    config = model / "config.pbtxt"
    config.write_text("".join(
        line for line in config.read_text().splitlines(True)
        if "kernel_1" not in line) + more)


@pytest.mark.fake_gpu
def test_a_library_in_place_of_kernels(make_server, tmp_path):
    refuses = models.parameter_block({"refuse": "yes"})

    def fill(repository):
        library_model(repository, "add", library(tmp_path))
        library_model(repository, "refused", library(tmp_path), refuses)
        library_model(repository, "old", library(tmp_path, "-DVERSION=9"))
        library_model(repository, "text", b"no library")
        cuda.add_model(repository, "kernels", source=library(tmp_path),
                       file="model.so")
    server = make_server(fill, wait="live", **cuda.options(tmp_path))
    assert process.wait_until(
        lambda: server.status("/v2/models/add/ready") == 200, 20 * SLOW)
    assert add(server, [1, 2], [3, 4]) == [3, 4]
    assert add(server, [1, 2], [5, 4]) == [5, 4]
    assert "gpu_model_execute: the third time is too much" \
        in server.infer("add", request([1], [2])).error
    assert add(server, [1, 2], [6, 7]) == [6, 7]

    server.wait_log("gpu_model_init: refused is refused on device 0, batch 8")
    server.wait_log("made for version 9 of gpu_model.h, the backend has 1")
    server.wait_log(r"text/1/model\.so\".*(invalid ELF|too short)")
    server.wait_log("a library launches its kernels itself")
    ended(server, tmp_path)


def test_times_are_counted(make_server, tmp_path):
    server = make_server(cuda.add_model, **cuda.options(
        tmp_path))
    for i in range(4):
        add(server, [i] * 100, [2] * 100)
    stats = server.get("/v2/models/add/stats").json()["model_stats"][0]
    assert stats["inference_count"] == 4
    for part in ("compute_input", "compute_infer", "compute_output"):
        assert stats["inference_stats"][part]["count"] == 4
        assert stats["inference_stats"][part]["ns"] > 0
    assert stats["batch_stats"][0]["batch_size"] == 1


def test_a_load_does_not_change_kernels(make_server, tmp_path):
    server = make_server(cuda.add_model, **cuda.options(
        tmp_path, http="    inference_model_control explicit;\n"
        "    inference_load_model *;\n"))
    own = server.get("/v2/models/add/config").json()

    def load(**changes):
        config = json.dumps({**own, **changes})
        return server.post("/v2/repository/models/add/load", json.dumps(
            {"parameters": {"config": config}}).encode())

    other = json.loads(json.dumps(own["parameters"]))
    other["kernel_1"]["string_value"] = "vector_add<<<1, 1>>>(a, b, sum," \
        " int(1000000))"
    answer = load(parameters=other)
    assert answer.status == 400 and "kernel_1: not accepted" in answer.error
    answer = load(max_batch_size=16)
    assert answer.status == 400 and "max_batch_size" in answer.error
    assert add(server, [1], [2]) == [3]
