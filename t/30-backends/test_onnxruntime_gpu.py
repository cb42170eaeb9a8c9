"""KIND_GPU instances of the onnxruntime backend behind nginx, with a CUDA
provider that has no GPU (t/backends-fake/ort_gpu.c): tensors in regions of the
GPU are bound in place, and arithmetic is the real library's."""

import base64
import concurrent.futures
import pathlib
import shutil
import struct

import numpy
import pytest
import tritonclient.grpc
import tritonclient.http

from lib import gpu, models
from lib.regions import grpc_of, rest_of
from lib.server import BACKENDS, BUILD
from lib.wire import tensor

pytestmark = pytest.mark.fake_gpu

MODELS = pathlib.Path(__file__).resolve().parents[1] / "backends-fake/models"
LIBRARY = BUILD / "t-ort/onnxruntime/libonnxruntime.so.1"
SIZE = 65536
A = numpy.arange(4, dtype=numpy.float32).reshape(1, 4)
B = numpy.full((1, 4), 100, numpy.float32)


def add(repository, name, device):
    models.write_model(
        repository, name, f'name: "{name}"\nbackend: "onnxruntime"\n'
        "max_batch_size: 8\n"
        + models.io_block("input", [("A", "FP32", [4]), ("B", "FP32", [4])])
        + models.io_block("output", [("SUM", "FP32", [4])])
        + f"instance_group {{ kind: KIND_GPU gpus: [ {device} ] }}\n"
        "dynamic_batching { max_queue_delay_microseconds: 20000 }\n",
        files={1: {"model.onnx":
                   (MODELS / "add/1/model.onnx").read_bytes()}})


def fill(repository):
    add(repository, "add", 0)


def fill_two(repository):
    """The second step is on another GPU than the first."""
    add(repository, "add", 0)
    add(repository, "more", 1)
    models.ensemble(
        repository, "both", [("A", "FP32", [4]), ("B", "FP32", [4])],
        [("SUM", "FP32", [4])],
        models.step("add", {"A": "A", "B": "B"}, {"SUM": "half"}),
        models.step("more", {"A": "half", "B": "B"}, {"SUM": "SUM"}),
        extra="max_batch_size: 8\n")


@pytest.fixture
def backends(tmp_path):
    if not LIBRARY.exists():
        pytest.skip("the build has no library with a CUDA provider")
    shutil.copytree(LIBRARY.parent, tmp_path / "onnxruntime")
    tmp_path.chmod(0o755)
    return tmp_path


@pytest.fixture
def gpus(make_server, backends):
    return make_server(fill, backends=backends, http2=True,
                       parts="all shared_memory", inference_env=gpu.env())


@pytest.fixture(params=["http", "grpc"])
def api(request):
    return {"http": tritonclient.http, "grpc": tritonclient.grpc}[
        request.param]


@pytest.fixture
def client(gpus, api):
    with (rest_of if api is tritonclient.http else grpc_of)(gpus) as c:
        raw = struct.pack("<8siiQQ", b"fakeipc", 0, gpus.cores()[0],
                          512 << 20, SIZE).ljust(64, b"\0")
        c.register_cuda_shared_memory("g", base64.b64encode(raw), 0, SIZE)
        yield c


def ask(api, client, *, given=None, out=None):
    """A request of A and B; given, out: offsets in the region."""
    a = api.InferInput("A", [1, 4], "FP32")
    if given is None:
        a.set_data_from_numpy(A)
    else:
        a.set_shared_memory("g", 16, given)
    b = api.InferInput("B", [1, 4], "FP32")
    b.set_data_from_numpy(B)
    asked = api.InferRequestedOutput("SUM")
    if out is not None:
        asked.set_shared_memory("g", 16, out)
    return client.infer("add", [a, b], outputs=[asked])


def test_tensors_in_a_region_of_the_gpu(api, client):
    """One answer is written there, the next request reads it there."""
    ask(api, client, out=64)
    answer = ask(api, client, given=64)
    assert answer.as_numpy("SUM").tolist() == (A + 2 * B).tolist()
    ask(api, client, given=64, out=128)
    ask(api, client, given=128, out=128)
    answer = ask(api, client, given=128)
    assert answer.as_numpy("SUM").tolist() == (A + 4 * B).tolist()


def test_an_element_across_its_own_size(api, client):
    """It is read on the host."""
    ask(api, client, out=128)
    answer = ask(api, client, given=130)
    moved = (A + B).tobytes()[2:] + bytes(2)
    assert answer.as_numpy("SUM").tobytes() == (
        numpy.frombuffer(moved, numpy.float32).reshape(1, 4) + B).tobytes()
    assert ask(api, client).as_numpy("SUM").tolist() == (A + B).tolist()


def test_steps_of_an_ensemble_on_two_gpus(make_server, backends):
    server = make_server(fill_two, backends=backends, parts="all",
                         inference_env=gpu.env(2))
    for _ in range(3):
        answer = server.infer("both", {"inputs": [
            tensor("A", "FP32", [1, 4], A.ravel().tolist()),
            tensor("B", "FP32", [1, 4], B.ravel().tolist())]})
        assert answer.status == 200, answer
        assert answer.json()["outputs"][0]["data"] \
            == (A + 2 * B).ravel().tolist()


def test_batches_of_the_host_and_of_the_gpu(api, gpus, client):
    """Requests that one batch holds, each with its own answer."""
    def one(i):
        with (rest_of if api is tritonclient.http else grpc_of)(gpus) as own:
            return ask(api, own, out=1024 * i if i % 2 else None)

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(one, range(6)))
    for answer in answers[::2]:
        assert answer.as_numpy("SUM").tolist() == (A + B).tolist()
    for i in 1, 3, 5:
        assert ask(api, client, given=1024 * i).as_numpy("SUM").tolist() \
            == (A + 2 * B).tolist()


def test_a_library_without_the_provider(make_server):
    server = make_server(fill, backends=BACKENDS, wait="live",
                         parts="health repository", inference_env=gpu.env())
    server.wait_log("this ONNX Runtime has no CUDA provider for a KIND_GPU"
                    " instance")
    index = server.post("/v2/repository/index", b"{}").json()
    assert [r["state"] for r in index] == ["UNAVAILABLE"], index
    assert "CPUExecutionProvider: onnx runtime error " in index[0]["reason"]
    assert "(this ONNX Runtime has no CUDA provider" in index[0]["reason"]


@pytest.mark.parametrize("capability", ["9.0", "7.5"])
def test_file_of_a_capability(make_server, backends, capability):
    """The second GPU has 9.0; there is no file of the default name."""
    def put(repository):
        models.write_model(
            repository, "add", 'backend: "onnxruntime"\nmax_batch_size: 8\n'
            + models.io_block("input", [("A", "FP32", [4]),
                                        ("B", "FP32", [4])])
            + models.io_block("output", [("SUM", "FP32", [4])])
            + "instance_group { kind: KIND_GPU gpus: [ 1 ] }\n"
            'default_model_filename: "other.onnx"\ncc_model_filenames {'
            f' key: "{capability}" value: "sm.onnx" }}\n',
            files={1: {"sm.onnx":
                       (MODELS / "add/1/model.onnx").read_bytes()}})

    server = make_server(put, backends=backends, parts="all repository",
                         wait="live", inference_env=gpu.env(2))
    if capability == "7.5":
        server.wait_log(r"unable to find '[^']*/add/1/other.onnx'")
        return
    assert server.wait_for("/v2/models/add/ready")
    answer = server.infer("add", {"inputs": [
        tensor("A", "FP32", [1, 4], A.ravel().tolist()),
        tensor("B", "FP32", [1, 4], B.ravel().tolist())]})
    assert answer.json()["outputs"][0]["data"] == (A + B).ravel().tolist()
