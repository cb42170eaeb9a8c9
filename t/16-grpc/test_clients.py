"""grpclib, an implementation of gRPC of its own, every call of tritonclient's
asyncio clients, and its calls with a callback."""

import asyncio
import queue

import grpclib
import numpy
import pytest
import tritonclient.grpc.aio
import tritonclient.http.aio
from grpc_health.v1 import health_pb2
from grpclib.client import (Channel, StreamStreamMethod, UnaryStreamMethod,
                            UnaryUnaryMethod)
from tritonclient.utils import InferenceServerException

from lib import decoupled, models
from lib.grpc_client import SERVICE, infer, is_final, number, numbers, pb
from lib.regions import Object
from lib.server import SLOW, Server

GRPC, HTTP = tritonclient.grpc.aio, tritonclient.http.aio
PARTS = "all metrics repository shared_memory trace logging"


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "slow", [("IN", "INT32", [-1])],
                    parameters={"execute_delay_ms": "1000"})
    decoupled.square(repository)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    traces = tmp_path_factory.mktemp("traces") / "traces.json"
    with Server(fill, workers=2, http2=True, parts=PARTS, http=f"""
    inference_model_control explicit;
    inference_load_model *;
    inference_trace file={traces} level=off;
""") as s:
        yield s


def run(work):
    async def main():
        await asyncio.wait_for(work, 60 * SLOW)

    asyncio.run(main())


# ---- grpclib

class Stub:
    """The service's methods on a channel."""

    def __init__(self, channel):
        self.channel = channel
        self.infer = UnaryUnaryMethod(
            channel, SERVICE + "ModelInfer", pb.ModelInferRequest,
            pb.ModelInferResponse)
        self.stream = StreamStreamMethod(
            channel, SERVICE + "ModelStreamInfer", pb.ModelInferRequest,
            pb.ModelStreamInferResponse)
        health = health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse
        self.check = UnaryUnaryMethod(
            channel, "/grpc.health.v1.Health/Check", *health)
        self.watch = UnaryStreamMethod(
            channel, "/grpc.health.v1.Health/Watch", *health)

    def call(self, method, **fields):
        request = getattr(pb, method + "Request")
        return UnaryUnaryMethod(
            self.channel, SERVICE + method, request,
            getattr(pb, method + "Response"))(request(**fields))


def with_stub(server, work):
    async def main():
        channel = Channel("127.0.0.1", server.port2)
        try:
            await work(Stub(channel))
        finally:
            channel.close()

    run(main())


def test_grpclib_unary(server):
    async def work(stub):
        answers = await asyncio.gather(*[
            stub.infer(numbers("id_int32", [i])) for i in range(100)])
        for i, answer in enumerate(answers):
            assert answer.raw_output_contents \
                == [i.to_bytes(4, "little")]
        large = bytes(range(256)) * 20000
        answer = await stub.infer(infer("id_uint8", (
            pb.ModelInferRequest.InferInputTensor(
                name="IN", datatype="UINT8", shape=[len(large)]), large)))
        assert answer.raw_output_contents == [large]
        assert (await stub.call("ServerLive")).live
        assert (await stub.call("ModelMetadata", name="scale")).name \
            == "scale"

    with_stub(server, work)


def test_grpclib_errors_and_deadlines(server):
    async def work(stub):
        with pytest.raises(grpclib.GRPCError) as e:
            await stub.infer(numbers("ghost", [1]))
        assert e.value.status == grpclib.Status.NOT_FOUND
        assert "'ghost' is not found" in e.value.message
        # the server's answer or the client's own clock, which of them is first
        with pytest.raises((grpclib.GRPCError, asyncio.TimeoutError)) as e:
            await stub.infer(numbers("slow", [1]), timeout=0.1)
        assert getattr(e.value, "status", grpclib.Status.DEADLINE_EXCEEDED) \
            == grpclib.Status.DEADLINE_EXCEEDED
        with pytest.raises(grpclib.GRPCError) as e:
            await UnaryUnaryMethod(
                stub.channel, SERVICE + "Nothing", pb.ServerLiveRequest,
                pb.ServerLiveResponse)(pb.ServerLiveRequest())
        assert e.value.status == grpclib.Status.UNIMPLEMENTED
        answer = await stub.infer(numbers("id_int32", [1]))
        assert answer.raw_output_contents == [b"\1\0\0\0"]

    with_stub(server, work)


def test_grpclib_streams(server):
    async def work(stub):
        async with stub.stream.open() as stream:
            for i in range(20):
                await stream.send_message(numbers("id_int32", [i]))
                assert number(await stream.recv_message()) == i
            await stream.send_message(numbers("ghost", [1]))
            told = await stream.recv_message()
            assert "'ghost'" in told.error_message
            await stream.send_message(numbers("square", [3]), end=True)
            found = [answer async for answer in stream]
        assert [number(a) for a in found] == [3, 3, 3]
        assert [is_final(a) for a in found] == [False, False, True]

    with_stub(server, work)


def test_grpclib_leaves_a_stream(server):
    async def work(stub):
        async with stub.stream.open() as stream:
            await stream.send_message(numbers("slow", [1]))
            await stream.cancel()
        answer = await stub.infer(numbers("id_int32", [1]))
        assert answer.raw_output_contents == [b"\1\0\0\0"]

    with_stub(server, work)


def test_grpclib_health(server):
    async def work(stub):
        request = health_pb2.HealthCheckRequest()
        serving = health_pb2.HealthCheckResponse.SERVING
        assert (await stub.check(request)).status == serving
        async with stub.watch.open() as stream:
            await stream.send_message(request, end=True)
            assert (await stream.recv_message()).status == serving
            await stream.cancel()

    with_stub(server, work)


# ---- tritonclient's asyncio clients

@pytest.fixture(params=[GRPC, HTTP], ids=["grpc", "http"])
def api(request):
    return request.param


def connect(api, server):
    return api.InferenceServerClient(
        f"127.0.0.1:{server.port2 if api is GRPC else server.port}")


def tensor(api, values):
    given = api.InferInput("IN", [len(values)], "INT32")
    given.set_data_from_numpy(numpy.array(values, numpy.int32))
    return [given]


def with_client(api, server, work):
    async def main():
        async with connect(api, server) as client:
            await work(client)

    run(main())


def test_aio_inferences(server, api):
    async def one(client, i):
        result = await client.infer("id_int32", tensor(api, [i]))
        assert result.as_numpy("OUT").tolist() == [i]

    async def work(client):
        await asyncio.gather(*[one(client, i) for i in range(60)])
        with pytest.raises(InferenceServerException, match="ghost"):
            await client.infer("ghost", tensor(api, [1]))

    with_client(api, server, work)


def test_aio_questions(server, api):
    async def work(client):
        assert await client.is_server_live()
        assert await client.is_server_ready()
        assert await client.is_model_ready("id_int32")
        given = {"as_json": True} if api is GRPC else {}
        about = await client.get_server_metadata(**given)
        assert "sequence" in about["extensions"]
        about = await client.get_model_metadata("scale", **given)
        assert about["name"] == "scale"
        about = await client.get_model_config("scale", **given)
        assert (about["config"] if api is GRPC else about)["name"] == "scale"
        about = await client.get_inference_statistics("scale", **given)
        assert about["model_stats"][0]["name"] == "scale"

    with_client(api, server, work)


def test_aio_control(server, api):
    async def work(client):
        given = {"as_json": True} if api is GRPC else {}
        index = await client.get_model_repository_index(**given)
        assert "scale" in str(index)
        await client.unload_model("scale")
        with pytest.raises(InferenceServerException):
            await client.infer("scale", tensor(api, [1]))
        await client.load_model("scale")
        assert await client.is_model_ready("scale")
        with pytest.raises(InferenceServerException):
            await client.load_model("ghost")

        await client.update_trace_settings(
            "scale", {"trace_rate": "7"})
        assert "7" in str(await client.get_trace_settings("scale", **given))
        await client.update_trace_settings("scale", {"trace_rate": None})
        await client.update_log_settings({"log_verbose_level": 0})
        assert "log_verbose_level" in str(
            await client.get_log_settings(**given))

    with_client(api, server, work)


def test_aio_shared_memory(server, api):
    size = 16
    shared = Object(8192, numpy.arange(4, dtype=numpy.int32).tobytes())

    async def work(client):
        await client.register_system_shared_memory("r", shared.key, 8192)
        assert "r" in str(await client.get_system_shared_memory_status())
        given = api.InferInput("IN", [4], "INT32")
        given.set_shared_memory("r", size)
        asked = api.InferRequestedOutput("OUT")
        asked.set_shared_memory("r", size, 4096)
        await client.infer("id_int32", [given], outputs=[asked])
        assert shared[4096:4096 + size] == shared[0:size]
        await client.unregister_system_shared_memory("r")
        with pytest.raises(InferenceServerException):
            await client.infer("id_int32", [given], outputs=[asked])
        await client.get_cuda_shared_memory_status()
        await client.unregister_cuda_shared_memory()
        await client.unregister_system_shared_memory()

    try:
        with_client(api, server, work)
    finally:
        shared.close()


def test_aio_streams(server):
    async def requests():
        for i in range(10):
            yield {"model_name": "id_int32", "inputs": tensor(GRPC, [i]),
                   "request_id": str(i)}
        yield {"model_name": "square", "inputs": tensor(GRPC, [2])}

    async def work(client):
        found = {"id_int32": [], "square": []}
        async for result, error in client.stream_infer(requests()):
            assert error is None
            found[result.get_response().model_name].append(
                result.as_numpy("OUT").tolist())
        # decoupled responses are in no order with others
        assert found == {"id_int32": [[i] for i in range(10)],
                         "square": [[2], [2]]}

    with_client(GRPC, server, work)


def test_aio_cancels(server):
    """A call and a stream; the client and the model are there afterwards."""
    async def one():
        yield {"model_name": "slow", "inputs": tensor(GRPC, [1])}

    async def work(client):
        call = asyncio.ensure_future(
            client.infer("slow", tensor(GRPC, [1])))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with pytest.raises(InferenceServerException):
            await client.infer("slow", tensor(GRPC, [1]),
                               client_timeout=0.1)
        responses = client.stream_infer(one())
        assert responses.cancel()
        with pytest.raises((asyncio.CancelledError,
                            InferenceServerException)):
            async for _ in responses:
                pass
        result = await client.infer("slow", tensor(GRPC, [3]))
        assert result.as_numpy("OUT").tolist() == [3]

    with_client(GRPC, server, work)


# ---- tritonclient with callbacks

def test_calls_with_a_callback(server):
    """Many at once, and one that is cancelled while it executes."""
    answers = queue.SimpleQueue()

    def call(client, model, value):
        return client.async_infer(
            model, tensor(tritonclient.grpc, [value]),
            lambda result, error: answers.put((value, result, error)))

    with tritonclient.grpc.InferenceServerClient(
            f"127.0.0.1:{server.port2}") as client:
        for i in range(20):
            call(client, "id_int32", i)
        got = [answers.get(timeout=60 * SLOW) for _ in range(20)]
        assert sorted((v, r.as_numpy("OUT").tolist(), e)
                      for v, r, e in got) == [(i, [i], None)
                                              for i in range(20)]
        call(client, "slow", 1).cancel()
        _, result, error = answers.get(timeout=60 * SLOW)
        assert result is None
        assert error.status() == "StatusCode.CANCELLED", error
        call(client, "slow", 2)
        _, result, error = answers.get(timeout=60 * SLOW)
        assert error is None and result.as_numpy("OUT").tolist() == [2]
