"""Regions of GPUs, with the fake driver: a handle that its process could have
given, and a backend that says where its tensors lie and touches none."""

import asyncio
import base64
import json
import struct
import subprocess

import numpy
import pytest
import tritonclient.grpc.aio
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException

from lib import backends, gpu, models
from lib.regions import Object, error_of, grpc_of, rest_of, text_of
from lib.server import BACKENDS
from lib.unharmed import unharmed

pytestmark = pytest.mark.fake_gpu       # handles are made up

SIZE = 65536


def fill(repository):
    models.identity(repository, "id_int32", [("IN", "INT32", [-1])])
    models.identity(repository, "id_bytes", [("IN", "BYTES", [-1])])
    models.write_model(
        repository, "kinds", 'name: "kinds"\nbackend: "memory_kinds"\n'
        + models.io_block("input", [("IN", "UINT8", [-1])])
        + models.io_block("output", [("DATA", "UINT8", [-1]),
                                     ("REPORT", "BYTES", [1])])
        + "instance_group { kind: KIND_GPU }\n")


@pytest.fixture
def gpus(start):
    return start(fill, backends=backends.build("memory_kinds"),
                 http=f"    inference_backends {BACKENDS};\n",
                 parts="all shared_memory", workers=2,
                 inference_env=gpu.env(2, capability="8.0,5.2"))


@pytest.fixture
def one(gpus, api):
    with (rest_of if api is tritonclient.http else grpc_of)(gpus) as c:
        yield c


def handle(server, *, device=0, pid=None, offset=512 << 20, size=SIZE):
    """As the fake driver makes them; the memory must be the core's own, since
    there is no other process with memory of that GPU."""
    return struct.pack("<8siiQQ", b"fakeipc", device, pid or server.cores()[0],
                       offset, size).ljust(64, b"\0")


def register(client, name, raw, device, size):
    client.register_cuda_shared_memory(name, base64.b64encode(raw), device,
                                       size)


def rows(api, client, **kw):
    got = client.get_cuda_shared_memory_status(**kw)
    if api is tritonclient.http:
        return got
    return [{"name": r.name, "device_id": r.device_id,
             "byte_size": r.byte_size}
            for _, r in sorted(got.regions.items())]


def test_life_of_regions(gpus, api, one):
    raw = handle(gpus)
    assert rows(api, one) == []
    register(one, "g1", raw, 0, SIZE)
    register(one, "g0", raw, 0, 100)
    g0 = {"name": "g0", "device_id": 0, "byte_size": 100}
    g1 = {"name": "g1", "device_id": 0, "byte_size": SIZE}
    assert rows(api, one) == [g0, g1]
    assert rows(api, one, region_name="g1") == [g1]

    status, text = error_of(api, register, one, "g0", raw, 0, 8)
    assert status in ("400", "ALREADY_EXISTS")
    assert text == "shared memory region 'g0' already in manager"
    o = Object(4096)
    try:
        assert "already in manager" in text_of(
            api, one.register_system_shared_memory, "g0", o.key, 8)
    finally:
        o.close()
    assert text_of(api, one.get_system_shared_memory_status,
                   region_name="g0") == ("The region named 'g0' is registered"
                                         " as CUDA shared memory, not system"
                                         " shared memory")
    assert text_of(api, one.get_cuda_shared_memory_status,
                   region_name="no") \
        == "Unable to find cuda shared memory region: 'no'"

    one.unregister_system_shared_memory()
    one.unregister_cuda_shared_memory("nobody")
    assert rows(api, one) == [g0, g1]
    one.unregister_cuda_shared_memory("g0")
    assert rows(api, one) == [g1]
    one.unregister_cuda_shared_memory()
    assert rows(api, one) == []


@pytest.mark.parametrize("wrong", [
    {"pid": 1}, {"device": 1}, {"device": 77}, {"raw": bytes(64)},
    {"raw": b"\xff" * 64}])
def test_handles_that_are_none(gpus, api, one, wrong):
    raw = wrong["raw"] if "raw" in wrong else handle(gpus, **wrong)
    status, text = error_of(api, register, one, "g", raw, 0, 64)
    assert status in ("400", "INVALID_ARGUMENT")
    assert text == "failed to register shared memory region: invalid args"
    assert rows(api, one) == []


def test_a_handle_of_a_process_that_has_ended(gpus, api, one):
    ended = subprocess.Popen(["true"])
    ended.wait()
    raw = handle(gpus, pid=ended.pid)
    assert text_of(api, register, one, "g", raw, 0, 64) \
        == "failed to register shared memory region: invalid args"
    register(one, "g", handle(gpus), 0, 64)     # the name is still free
    assert [r["name"] for r in rows(api, one)] == ["g"]


@pytest.mark.parametrize("device", [1, 2, 64, 2**31, 2**63 - 1])
def test_devices_that_are_none(gpus, api, one, device):
    """GPU 1 is too old, and the others are not there."""
    assert "invalid args" in text_of(api, register, one, "g", handle(gpus),
                                     device, 64)


@pytest.mark.parametrize("size", [0, SIZE + 1, 2**40, 2**63 - 1])
def test_sizes_outside_of_the_allocation(gpus, api, one, size):
    assert text_of(api, register, one, "g", handle(gpus), 0, size) \
        == "failed to register shared memory region 'g': invalid args"


@pytest.mark.parametrize("length", [0, 63, 65, 640])
def test_handles_of_another_length(gpus, api, one, length):
    assert text_of(api, register, one, "g", bytes(length), 0, 64) \
        == "failed to register shared memory region 'g': invalid args"


@pytest.mark.parametrize("body,words", [
    ({"device_id": 0, "byte_size": 8}, "has no 'raw_handle' field"),
    ({"raw_handle": {}, "device_id": 0, "byte_size": 8}, "string 'b64'"),
    ({"raw_handle": "AAAA", "device_id": 0, "byte_size": 8}, "string 'b64'"),
    ({"raw_handle": {"b64": "?"}, "device_id": 0, "byte_size": 8},
     "is not base64"),
    ({"raw_handle": {"b64": "AAAA"}, "byte_size": 8},
     "has no 'device_id' field"),
    ({"raw_handle": {"b64": "AAAA"}, "device_id": 0},
     "has no 'byte_size' field"),
    ({"raw_handle": {"b64": "AAAA"}, "device_id": -1, "byte_size": 8},
     "'device_id' must be an integer")])
def test_bodies_of_rest(gpus, body, words):
    answer = gpus.post("/v2/cudasharedmemory/region/g/register",
                       json.dumps(body).encode())
    assert answer.status == 400 and words in answer.error, answer


def test_tensors_in_place(gpus, api, one):
    """The backend gets the GPU's memory, for input and output."""
    register(one, "g", handle(gpus), 0, SIZE)
    given = api.InferInput("IN", [3], "UINT8")
    given.set_shared_memory("g", 3)
    data = api.InferRequestedOutput("DATA")
    data.set_shared_memory("g", 64, 1024)
    for want, out in ({"want": 2}, "GPU:0:ipc"), ({}, "CPU:0"):
        answer = one.infer("kinds", [given], parameters=want,
                           outputs=[data, api.InferRequestedOutput("REPORT")])
        assert answer.as_numpy("REPORT")[0].decode().endswith(
            f" in GPU:0:3:ipc; out {out};")
    out = answer.get_output("DATA")
    if api is tritonclient.http:
        assert out == {"name": "DATA", "datatype": "UINT8", "shape": [3]}

    assert text_of(api, one.infer, "kinds", [given], outputs=[
        at(api, "g", 64, SIZE)]) \
        == "Invalid offset for shared memory region: 'g'"
    assert text_of(api, one.infer, "kinds", [given], outputs=[
        at(api, "g", 65, SIZE - 64)]) \
        == "Invalid offset + byte size for shared memory region: 'g'"


@pytest.mark.parametrize("size,offset,words", [
    (4, SIZE - 4, None), (4, SIZE - 3, "offset + byte size"),
    (SIZE, 1, "offset + byte size"), (1, SIZE, "offset"),
    (1, 2**63 - 1, "offset"), (2**63 - 1, 8, "offset + byte size")])
def test_inputs_within_the_region(gpus, api, one, size, offset, words):
    register(one, "g", handle(gpus), 0, SIZE)
    given = api.InferInput("IN", [size], "UINT8")
    given.set_shared_memory("g", size, offset)
    if words is None:
        answer = one.infer("kinds", [given], outputs=[
            api.InferRequestedOutput("REPORT")])
        assert f" in GPU:0:{size}:ipc" in answer.as_numpy("REPORT")[0] \
            .decode()
    else:
        assert text_of(api, one.infer, "kinds", [given]) \
            == f"Invalid {words} for shared memory region: 'g'"


def test_a_region_that_is_gone_takes_no_tensor(gpus, api, one):
    register(one, "g", handle(gpus), 0, SIZE)
    given = api.InferInput("IN", [3], "UINT8")
    given.set_shared_memory("g", 3)
    one.infer("kinds", [given])
    one.unregister_cuda_shared_memory("g")
    assert text_of(api, one.infer, "kinds", [given]) \
        == "Unable to find shared memory region: 'g'"
    register(one, "g", handle(gpus, offset=(512 << 20) + SIZE), 0, 2)
    assert text_of(api, one.infer, "kinds", [given]) \
        == "Invalid offset + byte size for shared memory region: 'g'"


@pytest.fixture(params=["http", "grpc"])
def aio(request, gpus):
    """The asyncio client of either protocol, and how it is opened."""
    module = {"http": tritonclient.http.aio,
              "grpc": tritonclient.grpc.aio}[request.param]
    place = gpus.url if request.param == "http" \
        else f"127.0.0.1:{gpus.port2}"
    return module, lambda: module.InferenceServerClient(place)


def test_calls_of_the_asyncio_clients(gpus, aio):
    module, connect = aio
    raw = base64.b64encode(handle(gpus)).decode()

    async def names(client, **kw):
        got = await client.get_cuda_shared_memory_status(**kw)
        return [row["name"] for row in got] if isinstance(got, list) \
            else sorted(got.regions)

    async def error(call):
        with pytest.raises(InferenceServerException) as caught:
            await call
        return caught.value.message().split("] ")[-1]

    async def life():
        async with connect() as client:
            for name, size in (("g0", SIZE), ("g1", 100), ("g2", 1)):
                await client.register_cuda_shared_memory(name, raw, 0, size)
            assert await names(client) == ["g0", "g1", "g2"]
            assert await names(client, region_name="g1") == ["g1"]
            assert await error(client.register_cuda_shared_memory(
                "g1", raw, 0, 8)) \
                == "shared memory region 'g1' already in manager"
            assert await error(client.register_cuda_shared_memory(
                "g3", raw, 0, SIZE + 1)) == "failed to register shared" \
                " memory region 'g3': invalid args"
            assert await error(client.get_cuda_shared_memory_status(
                region_name="g3")) \
                == "Unable to find cuda shared memory region: 'g3'"

            given = module.InferInput("IN", [3], "UINT8")
            given.set_shared_memory("g0", 3)
            data = module.InferRequestedOutput("DATA")
            data.set_shared_memory("g0", 64, 1024)
            answer = await client.infer(
                "kinds", [given], parameters={"want": 2}, outputs=[
                    data, module.InferRequestedOutput("REPORT")])
            assert answer.as_numpy("REPORT")[0].decode().endswith(
                " in GPU:0:3:ipc; out GPU:0:ipc;")

            await client.unregister_cuda_shared_memory("g1")
            await client.unregister_cuda_shared_memory("g1")
            assert await names(client) == ["g0", "g2"]
            await client.unregister_cuda_shared_memory()
            assert await names(client) == []
            assert await error(client.infer("kinds", [given])) \
                == "Unable to find shared memory region: 'g0'"

    asyncio.run(life())


def at(api, *place):
    asked = api.InferRequestedOutput("DATA")
    asked.set_shared_memory(*place)
    return asked


def test_strings_are_copied_and_checked(gpus, api, one):
    """A backend that goes by the lengths gets checked ones, on the host."""
    register(one, "g", handle(gpus), 0, SIZE)
    given = api.InferInput("IN", [2], "BYTES")
    given.set_shared_memory("g", 8)         # of zeros: two empty strings
    assert one.infer("id_bytes", [given]).as_numpy("OUT").tolist() \
        == [b"", b""]
    given = api.InferInput("IN", [3], "BYTES")
    given.set_shared_memory("g", 16)
    assert "string elements 4 for inference input 'IN'" in text_of(
        api, one.infer, "id_bytes", [given])


def test_a_backend_that_knows_the_host_alone(gpus, api, one):
    """The core copies its input from the GPU, and its output to there."""
    register(one, "g", handle(gpus), 0, SIZE)
    values = numpy.arange(2, dtype=numpy.int32)
    sent = api.InferInput("IN", [2], "INT32")
    sent.set_data_from_numpy(values)
    there = api.InferRequestedOutput("OUT")
    there.set_shared_memory("g", 64, 128)
    given = api.InferInput("IN", [2], "INT32")
    given.set_shared_memory("g", 8, 128)
    with unharmed(gpus):
        one.infer("id_int32", [sent], outputs=[there])
        assert one.infer("id_int32", [given]).as_numpy("OUT").tolist() \
            == values.tolist()
        there.set_shared_memory("g", 4, 128)
        assert "at least 8 bytes" in text_of(
            api, one.infer, "id_int32", [given], outputs=[there])


def test_without_a_gpu(server, client, api):
    """No driver, and the error is Triton's of a build without GPUs."""
    status, text = error_of(api, register, client, "g", bytes(64), 0, 64)
    assert status in ("400", "INVALID_ARGUMENT")
    assert text == "failed to register CUDA shared memory region: 'g', GPUs" \
        " not supported"
    assert rows(api, client) == []
