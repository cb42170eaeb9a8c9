"""Regions of a real GPU, by tritonclient's own cuda_shared_memory: memory of
this process, which the core opens by its handle and kernels read and write in
place.  tritonclient's module needs cuda-bindings."""

import base64
import pathlib
import struct
import subprocess
import sys

import numpy
import pytest
import tritonclient.http

from lib import gpu, models
from lib.regions import grpc_of, rest_of, text_of

pytestmark = pytest.mark.gpu

KERNELS = pathlib.Path(__file__).resolve().parents[1] / "gpu/kernels.ptx"
COUNT = 1000
BYTES = 4 * COUNT
VALUES = numpy.arange(COUNT, dtype=numpy.int32)


def fill(repository):
    models.write_model(
        repository, "plus_one", 'name: "plus_one"\nbackend: "cuda"\n'
        + models.io_block("input", [("IN", "INT32", [-1])])
        + models.io_block("output", [("OUT", "INT32", [-1])])
        + "instance_group { kind: KIND_GPU gpus: [ 0 ] }\n"
        + models.parameter_block({
            "shape_OUT": "like IN",
            "kernel_1": "plus_one<<<ceildiv(elements(IN), 128), 128>>>"
                        "(IN, OUT, int(elements(IN)))"}),
        files={1: {"model.ptx": KERNELS.read_bytes()}})


@pytest.fixture
def gpus(start):
    return start(fill, parts="all shared_memory", workers=2,
                 inference_env=gpu.env())


@pytest.fixture
def one(gpus, api):
    with (rest_of if api is tritonclient.http else grpc_of)(gpus) as c:
        yield c


@pytest.fixture
def cuda():
    """tritonclient's module; nothing of it is left afterwards."""
    from tritonclient.utils import cuda_shared_memory as module
    yield module
    for region in list(module.allocated_shared_memory_regions()):
        module.destroy_shared_memory_region(region)


@pytest.fixture
def region(cuda, one):
    """64 KiB of GPU 0, registered as "g"."""
    region = cuda.create_shared_memory_region("g", 65536, 0)
    one.register_cuda_shared_memory("g", cuda.get_raw_handle(region), 0, 65536)
    yield region
    one.unregister_cuda_shared_memory()


def names(api, client):
    got = client.get_cuda_shared_memory_status()
    return [r["name"] for r in got] if api is tritonclient.http \
        else sorted(got.regions)


def tensors(api, given=None, out=None):
    """IN and OUT; each in the region at (size, offset), or in the request."""
    tensor = api.InferInput("IN", [COUNT], "INT32")
    if given:
        tensor.set_shared_memory("g", *given)
    else:
        tensor.set_data_from_numpy(VALUES)
    asked = api.InferRequestedOutput("OUT")
    if out:
        asked.set_shared_memory("g", *out)
    return {"inputs": [tensor], "outputs": [asked]}


def content(cuda, region):
    return cuda.get_contents_as_numpy(region, numpy.int32, [65536 // 4])


def test_tensors_are_read_and_written_in_place(api, one, cuda, region):
    cuda.set_shared_memory_region(region, [VALUES])
    answer = one.infer("plus_one", **tensors(api, given=(BYTES, 0)))
    assert (answer.as_numpy("OUT") == VALUES + 1).all()

    one.infer("plus_one", **tensors(api, given=(BYTES, 0),
                                    out=(BYTES, 8192)))
    got = content(cuda, region)
    assert (got[2048:2048 + COUNT] == VALUES + 1).all()
    assert (got[:COUNT] == VALUES).all()

    one.infer("plus_one", **tensors(api, out=(BYTES, 16384)))
    assert (content(cuda, region)[4096:4096 + COUNT] == VALUES + 1).all()

    # what one request has written the next one reads
    one.infer("plus_one", **tensors(api, given=(BYTES, 8192),
                                    out=(BYTES, 8192)))
    assert (content(cuda, region)[2048:2048 + COUNT] == VALUES + 2).all()


def test_bounds(api, one, cuda, region):
    for given in (BYTES, 65536 - BYTES + 4), (BYTES, 2**62), (2**40, 0):
        assert "Invalid offset" in text_of(
            api, one.infer, "plus_one", **tensors(api, given=given)) \
            or "byte size" in text_of(
                api, one.infer, "plus_one", **tensors(api, given=given))
    one.infer("plus_one", **tensors(api, given=(BYTES, 65536 - BYTES)))
    cuda.set_shared_memory_region(
        region, [numpy.full(65536 // 4, 7, numpy.int32)])
    assert text_of(api, one.infer, "plus_one",
                   **tensors(api, out=(BYTES - 4, 0)))
    assert (content(cuda, region) == 7).all()
    other = cuda.create_shared_memory_region("small", 4096, 0)
    assert "invalid args" in text_of(
        api, one.register_cuda_shared_memory, "small",
        cuda.get_raw_handle(other), 0, 2**40)


def test_names(api, one, cuda, region):
    assert names(api, one) == ["g"]
    assert "already in manager" in text_of(
        api, one.register_cuda_shared_memory, "g",
        cuda.get_raw_handle(region), 0, 64)
    one.unregister_cuda_shared_memory("g")
    assert names(api, one) == []
    assert "Unable to find" in text_of(
        api, one.infer, "plus_one", **tensors(api, given=(BYTES, 0)))


def test_handles_that_are_none(gpus, api, one, cuda, region):
    good = cuda.get_raw_handle(region)
    for raw in bytes(64), b"\xff" * 64:
        assert "invalid args" in text_of(
            api, one.register_cuda_shared_memory, "h", base64.b64encode(raw),
            0, 64)
    for device in gpu.devices(), 64, 2**31:
        assert "invalid args" in text_of(
            api, one.register_cuda_shared_memory, "h", good, device, 64)
    one.infer("plus_one", **tensors(api, given=(BYTES, 0)))
    assert len(gpus.cores()) == 1


CHILD = """
import sys
from tritonclient.utils import cuda_shared_memory as cuda
region = cuda.create_shared_memory_region("c", 65536, 0)
print(cuda.get_raw_handle(region).decode(), flush=True)
sys.stdin.read()
"""


def test_a_process_that_ends(gpus, api, one):
    """Its handle opens no more, and the core goes on; nobody reads memory of
    a process that is gone, which CUDA leaves undefined."""
    child = subprocess.Popen([sys.executable, "-c", CHILD], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    raw = child.stdout.readline().strip().encode()
    one.register_cuda_shared_memory("g", raw, 0, 65536)
    one.infer("plus_one", **tensors(api, out=(BYTES, 0)))
    answer = one.infer("plus_one", **tensors(api, given=(BYTES, 0)))
    assert (answer.as_numpy("OUT") == VALUES + 2).all()
    one.unregister_cuda_shared_memory("g")
    child.communicate("")
    assert child.returncode == 0
    assert "invalid args" in text_of(
        api, one.register_cuda_shared_memory, "g", raw, 0, 65536)
    assert names(api, one) == []
    answer = one.infer("plus_one", **tensors(api))
    assert (answer.as_numpy("OUT") == VALUES + 1).all()
    assert len(gpus.cores()) == 1


def test_strings_lie_on_the_gpu(api, one, cuda, region):
    """A kernel takes none: the error is the model's, and costs no more."""
    text = struct.pack("<I3s", 3, b"abc")
    cuda.set_shared_memory_region(
        region, [numpy.frombuffer(text, numpy.uint8)])
    given = api.InferInput("IN", [1], "BYTES")
    given.set_shared_memory("g", len(text))
    assert text_of(api, one.infer, "plus_one", [given])
    one.infer("plus_one", **tensors(api, given=(BYTES, 0)))
