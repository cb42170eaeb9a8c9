"""Mistakes of all kinds: each has a clear reason, and other models serve."""

import shutil

import pytest

from lib import cuda, models, process
from lib.server import SLOW
from lib.wire import tensor

PTX = """.version {version}
.target {target}
.address_size 64
.visible .entry vector_add(.param .u64 a, .param .u64 b, .param .u64 sum,
    .param .u32 count) {{ ret; }}
"""


def request(*shape, count=None):
    n = 1
    for s in shape:
        n *= s
    return {"inputs": [tensor(name, "FP32", list(shape), [1] * n)
                       for name in ("a", "b")]}


def other_models_serve(server):
    assert process.wait_until(
        lambda: server.status("/v2/models/good/ready") == 200, 20 * SLOW)
    answer = server.infer("good", {"inputs": [tensor("IN", "FP32", [1],
                                                     [1])]})
    assert answer.status == 200


def reason(server, model="add"):
    """Of the index; with a wait, since other models may be ready before."""
    def find():
        index = server.post("/v2/repository/index", b"{}").json()
        return [m.get("reason", "") for m in index
                if m["name"] == model and m.get("state") == "UNAVAILABLE"
                and m.get("reason")]
    assert process.wait_until(find, 20 * SLOW), server.log_text()
    return find()[0]


@pytest.fixture
def failing(make_server, tmp_path):
    """Starts a server with one model that fails, and one that serves; the
    reason of the first."""
    def run(fill=cuda.add_model, **options):
        def both(repository):
            models.identity(repository, "good", [("IN", "FP32", [-1])])
            fill(repository)
        server = make_server(both, wait="live",
                             **cuda.options(tmp_path, **options))
        text = reason(server)
        other_models_serve(server)
        assert server.status("/v2/models/add/ready") != 200
        return text
    return run


# ---- files

SOURCES = [
    ('extern "C" __global__ void\nvector_add(const float *a)\n{\n'
     "    int i = no_such_thing;\n}\n",
     r'model.cu(4): error: identifier "no_such_thing" is undefined'),
    ('#include "missing.h"\n', 'open source file "missing.h"'),
    ("__global__ void vector_add(int *a) { }\n",
     'there is no kernel "vector_add" in the code; in C++ it must be extern'
     ' "C"'),
    ("", 'there is no kernel "vector_add"'),
    ("int\0", "has a zero byte"),
]


@pytest.mark.parametrize("source,words", SOURCES)
def test_sources(failing, source, words):
    text = failing(lambda r: cuda.add_model(r, source=source))
    assert words in text and "/add/1/model.cu" in text


@pytest.mark.parametrize("options,words", [
    ("--no-such-option", "no-such-option"), ("-DvectorX= -Werror=", "error")])
def test_compile_options(failing, options, words):
    assert words in failing(lambda r: cuda.add_model(
        r, parameters={"compile_options": options}))


@pytest.mark.parametrize("file,source,words", [
    ("model.cubin", b"not code", "the code is not whole"),
    ("model.cubin", b"", "the code is not whole"),
    ("model.fatbin", b"\xb1\x43\x62\x46\1\0\0\0.version",
     "no code of a GPU"),
    ("model.fatbin", b"\x50\xed\x55\xba", "the code is not whole"),
    ("model.fatbin", b"\x50\xed\x55\xba\1\0\x10\0" + b"\xff" * 8,
     "the code is not whole"),
    ("model.cubin", b"\x7fELF", "the code is not whole"),
    ("model.ptx", b".version 8.0\n", "add/1/model.ptx"),
    ("model.ptx", PTX.format(version="8.0", target="sm_75").encode(), None),
    ("model.so", b"\x7fELF", "model.so"),
    ("model.txt", b"", "there is no model.cu, model.ptx"),
])
def test_compiled_files(failing, file, source, words):
    if words is None:
        source, words = source.replace(b"vector_add", b"other"), \
            'there is no kernel "vector_add"'
    assert words in failing(lambda r: cuda.add_model(
        r, source=source, file=file))


@pytest.mark.parametrize("name,words", [
    ("../../good/1/model.cu", "must stay within the version directory"),
    ("/etc/passwd.cu", "must stay within the version directory"),
    ("other.cu", "cannot read"),
    ("model.exe", "does not end with .cu, .ptx, .cubin, .fatbin or .so"),
])
def test_names_of_files(failing, name, words):
    assert words in failing(lambda r: cuda.add_model(
        r, extra=f'default_model_filename: "{name}"\n'))


@pytest.mark.parametrize("name,content,words", [
    ("w.bin", None, "cannot read"), ("w.bin", b"", "is empty"),
    ("../../good/config.pbtxt", b"x", "leads out of the version's directory"),
    ("", b"x", "leads out of"), (".", b"x", "is no regular file"),
])
def test_weights(failing, name, content, words):
    assert words in failing(lambda r: cuda.add_model(
        r, parameters={"weights_w": name},
        files={"w.bin": content} if content is not None else {}))


# ---- configurations

LINE = "vector_add<<<{}>>>({})"


@pytest.mark.parametrize("parameters,words", [
    ({"kernel_1": ""}, "the kernel's name is missing"),
    ({"kernel_1": "vector_add<<<1, 1>>>(a, b, sun, int(1))"},
     'no tensor or buffer "sun"'),
    ({"kernel_1": "vector_add<<<1 / (batch - 8), 1>>>(a, b, sum, int(1))"},
     "division by zero"),
    ({"kernel_1": "vector_add<<<1, 1025>>>(a, b, sum, int(1))"},
     "block.x: 1025 is not from 1 to 1024"),
    ({"kernel_1": "vector_add<<<1, 1, 200000>>>(a, b, sum, int(1))"},
     "bytes of shared memory on GPU 0: 200000 is not from 0 to"),
    ({"kernel_1": "vector_add<<<1, 1>>>(a, b, sum)"},
     'kernel "vector_add" takes 4 arguments, the configuration gives 3'),
    ({"kernel_1": "vector_add<<<1, 1>>>(a, b, sum, long(1))"},
     'parameter 4 of kernel "vector_add" has 4 bytes'),
    ({"kernel_3": "vector_add<<<1, 1>>>(a, b, sum, int(1))"},
     "kernels are numbered from kernel_1 on, without gaps"),
    ({"kernel_01": "x"}, "without gaps"),
    ({"shape_total": "like a"}, 'the model has no output "total"'),
    ({"shape_sum": "a[0] + 1"}, "would be 5, the configuration has 4"),
    ({"scratch_a": "4"}, "a name that no tensor or other buffer has"),
    ({"scratch_t": "elements(x)"}, 'no tensor "x"'),
    ({"scratch_t": "-1"}, '"t" would have -1 bytes'),
    ({"scratch_t": "8 * 1024 * 1024 * 1024"}, "GPU 0 has no 8589934592 bytes"),
    ({"timeout": "soon"}, "must be a whole number"),
    ({"graphs": "-1"}, "must be a whole number"),
    ({"memory": "0"}, "must be a whole number"),
    ({"memory": "60"}, 'an instance may take 60 (parameter "memory")'),
])
def test_parameters(failing, parameters, words):
    assert words in failing(lambda r: cuda.add_model(
        r, parameters=parameters, dims=4))


@pytest.mark.parametrize("change,words", [
    (("TYPE_FP32", "TYPE_STRING"), "has strings; kernels take numbers"),
    (('name: "b"', 'allow_ragged_batch: true name: "b"'),
     "allow_ragged_batch is not supported"),
    (("instance_group", 'batch_input { kind: BATCH_ELEMENT_COUNT'
      ' target_name: "n" data_type: TYPE_FP32 source_input: "a" }\n'
      "instance_group"), "batch_input and batch_output are not supported"),
    (('parameters { key: "shape_sum" value { string_value: "like a" } }', ""),
     'output "sum" has open dimensions'),
    (("KIND_GPU", "KIND_CPU"), "instances of KIND_GPU only, this one is"
     " KIND_CPU"),
    (("KIND_GPU", "KIND_GPU gpus: [ 5 ]"), "gpu id 5"),
])
def test_configurations(failing, change, words):
    def fill(repository):
        model = cuda.add_model(repository)
        config = model / "config.pbtxt"
        assert change[0] in config.read_text()
        config.write_text(config.read_text().replace(*change))
    assert words in failing(fill)


# ---- driver and compiler

@pytest.mark.fake_gpu
def test_no_driver(failing):
    """An instance group without a kind is the CPU's there."""
    text = failing(lambda r: cuda.add_model(r, kind=""),
                   driver="")
    assert "add/1/model.cu" in text and "no CUDA driver" in text


@pytest.mark.fake_gpu
def test_no_gpu(failing):
    text = failing(lambda r: cuda.add_model(r, kind=""), devices=0)
    assert "add/1/model.cu" in text and "CUDA_ERROR_NO_DEVICE" in text


def test_no_compiler(failing):
    text = failing(compiler="/nowhere/libnvrtc.so.13")
    assert "add/1/model.cu" in text and "no compiler of CUDA C" in text \
        and "/nowhere/libnvrtc.so.13" in text


@pytest.mark.fake_gpu
def test_a_driver_older_than_the_compiler(failing):
    text = failing(env=["FAKE_CUDA_DRIVER_VERSION=12020"])
    assert "is of CUDA 13." in text and "the driver is older, of 12.2" in text


@pytest.mark.fake_gpu
def test_a_driver_older_than_the_code(failing):
    text = failing(
        lambda r: cuda.add_model(r, file="model.ptx", source=PTX.format(
            version="9.0", target="sm_75")),
        env=["FAKE_CUDA_DRIVER_VERSION=12020", "FAKE_CUDA_PTX_VERSION=8.2"])
    assert "the driver, of CUDA 12.2, is older than the toolkit that made" \
        in text


@pytest.mark.fake_gpu
def test_code_for_another_gpu(failing, make_server, tmp_path):
    first = make_server(cuda.add_model, **cuda.options(
        tmp_path, env=["FAKE_CUDA_CAPABILITY=9.0"]))
    first.stop()
    code, = (tmp_path / "cache").iterdir()
    cubin = code.read_bytes()[80:]
    text = failing(lambda r: cuda.add_model(
        r, file="model.cubin", source=cubin))
    assert "there is no code for GPU 0, of compute capability 8.0" in text


@pytest.mark.fake_gpu
@pytest.mark.parametrize("call", [
    "cuModuleLoadDataEx", "cuModuleGetFunction", "cuFuncGetAttribute",
    "cuEventCreate"])
def test_calls_of_a_load_that_fail(failing, call):
    """Those that the backend makes and the core does not."""
    text = failing(lambda r: cuda.add_model(r, dims=4),
                   env=[f"FAKE_CUDA_FAIL={call}:2:1"])
    assert "add/1/model.cu" in text and "CUDA_ERROR_OUT_OF_MEMORY" in text


@pytest.mark.parametrize("requirement,words", [
    ("bytes(w) == 4 * 3", "do not meet \"bytes(w) == 4 * 3\" (require_w): 8 is"
                          " not 12"),
    ("bytes(v) == 8", 'no tensor "v"'),
    ("bytes(w) / (8 - bytes(w)) == 1", "division by zero")])
def test_weights_of_another_length(failing, requirement, words):
    assert words in failing(lambda r: cuda.add_model(
        r, parameters={"weights_w": "w.bin", "require_w": requirement},
        files={"w.bin": bytes(8)}))


# ---- sequences

def stateful(name="next", datatype="FP32", dims="-1", extra=""):
    return ("sequence_batching { state { input_name: \"was\" output_name:"
            f" \"{name}\" data_type: TYPE_{datatype} dims: [ {dims} ] }}"
            f" {extra} }}\n")


@pytest.mark.parametrize("extra,parameters,words", [
    (stateful(), {}, 'output "next" has open dimensions: parameter'
                     ' "shape_next"'),
    (stateful(), {"shape_next": "like nobody"}, 'no input "nobody"'),
    (stateful(name="was"), {"shape_was": "like was"},
     'output "was" has the name of another tensor'),
    (stateful(name="a"), {"shape_a": "like was"},
     'output "a" has the name of another tensor'),
    (stateful(name="sum", datatype="INT32"), {},
     'state "sum" has another datatype'),
    (stateful(datatype="STRING", dims="1"), {}, 'state "was" has strings'),
    (stateful(dims=", ".join(["1"] * 17)), {}, "more than 16 dimensions"),
    (stateful(dims="4"), {"kernel_2": "vector_add<<<1, 1>>>(a, was, then,"
                                      " int(0))"},
     'no tensor or buffer "then"'),
])
def test_states(failing, extra, parameters, words):
    assert words in failing(lambda r: cuda.add_model(
        r, extra=extra, parameters=parameters))


# ---- requests

@pytest.fixture
def serving(make_server, tmp_path):
    def run(parameters=None, env=(), **kw):
        def fill(repository):
            models.identity(repository, "good", [("IN", "FP32", [-1])])
            shutil.copytree(cuda.EXAMPLES / "softmax", repository / "softmax")
            cuda.add_model(repository, parameters=parameters, **kw)
        return make_server(fill, **cuda.options(tmp_path, env=env))
    return run


@pytest.mark.parametrize("parameters,words", [
    ({"kernel_1": "vector_add<<<6 / (3 - a[0]), 32>>>(a, b, sum,"
                  " int(elements(sum)))"},
     'kernel "vector_add", grid.x: division by zero'),
    ({"kernel_1": "vector_add<<<1, 1022 + a[0]>>>(a, b, sum, int(1))"},
     "block.x: 1025 is not from 1 to 1024"),
    ({"kernel_1": "vector_add<<<1, 1, a[0] * 100000>>>(a, b, sum, int(1))"},
     "shared memory on GPU 0: 300000 is not"),
    ({"kernel_1": "vector_add<<<1, 1>>>(a, b, sum, "
                  "int(a[0] / 3 * 3000000000))"},
     "argument 4 of kernel \"vector_add\": 3000000000 is beyond 32 bits"),
    ({"scratch_t": "a[0] / 3 * 9000000000", "memory": "10000000000"},
     "GPU 0 has no 9000000000 bytes"),
    ({"scratch_t": "a[0] / 3 * 9000000", "memory": "1000000"},
     '"t" needs 9000000 bytes on GPU 0'),
    ({"shape_sum": "2 - a[0]"}, 'dimension 0 of output "sum" would be -1'),
])
def test_shapes_that_do_not_fit(serving, parameters, words):
    """Three elements are too many, one is not."""
    server = serving(parameters)
    for _ in range(2):
        answer = server.infer("add", request(1, 3))
        assert answer.status in (400, 503) and words in answer.error, answer
        assert server.infer("add", request(1, 1)).status == 200


def softmax(server):
    return server.infer("softmax", {"inputs": [
        tensor("logits", "FP32", [1, 2], [1, 1])]})


@pytest.mark.fake_gpu
def test_a_fault_of_a_kernel(serving):
    """The driver does no more on that GPU, and each request hears of it."""
    server = serving(env=["FAKE_CUDA_FAULT=vector_add"])
    assert softmax(server).json()["outputs"][0]["data"] == [0.5, 0.5]
    answer = server.infer("add", request(1, 3))
    assert answer.status == 503, answer
    assert "GPU 0 has failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)" \
        in answer.error and 'cannot run model "add"' in answer.error
    assert "model.cu" not in answer.error
    other_models_serve(server)


@pytest.mark.fake_gpu
def test_a_kernel_that_does_not_end(serving):
    server = serving({"timeout": 300}, env=["FAKE_CUDA_HANG=vector_add"])
    answer = server.infer("add", request(1, 3))
    assert answer.status == 503, answer
    assert "have not ended on GPU 0 within the timeout of 300 ms" \
        in answer.error
    answer = server.infer("add", request(1, 3))
    assert answer.status == 503 and "of an earlier batch" in answer.error
    assert server.status("/v2/models/add/ready") != 200
    assert softmax(server).json()["outputs"][0]["data"] == [0.5, 0.5]
    other_models_serve(server)
    server.kill()
