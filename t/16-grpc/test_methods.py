"""Every method that is not an inference, and those that are not there."""

import asyncio

import grpc
import numpy
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio
from tritonclient.grpc import service_pb2 as pb

from lib import models
from lib.grpc_client import (NOT_SERVING, SERVICE, SERVING, Client, Failure,
                             infer)

Code = grpc.StatusCode

NOT_LISTED = ["SystemSharedMemoryStatus", "SystemSharedMemoryRegister",
              "SystemSharedMemoryUnregister", "CudaSharedMemoryStatus",
              "CudaSharedMemoryRegister", "CudaSharedMemoryUnregister"]


def test_live_and_ready(client):
    assert client.call("ServerLive").live is True
    assert client.call("ServerReady").ready is True
    assert client.check() == SERVING


def test_health_check_takes_any_service(client):
    assert client.unary("/grpc.health.v1.Health/Check", b"\n\x03any", None) \
        == SERVING


def test_model_ready(client):
    def ready(name, version=""):
        return client.call("ModelReady", pb.ModelReadyRequest(
            name=name, version=version)).ready
    assert ready("id_int32") is True
    assert ready("id_versions", "3") is True
    assert ready("absent") is False
    assert ready("id_versions", "9") is False
    with pytest.raises(Failure) as e:
        ready("id_versions", "x")
    assert e.value.code == Code.INVALID_ARGUMENT


def test_server_metadata(client, server):
    answer = client.call("ServerMetadata")
    rest = server.get("/v2").json()
    assert answer.name == rest["name"]
    assert answer.version == rest["version"]
    assert list(answer.extensions) == rest["extensions"]


def test_model_metadata(client):
    answer = client.call("ModelMetadata", pb.ModelMetadataRequest(
        name="id_pair"))
    assert answer.name == "id_pair"
    assert list(answer.versions) == ["1"]
    assert [(t.name, t.datatype, list(t.shape)) for t in answer.inputs] == \
        [("IN0", "INT32", [-1]), ("IN1", "FP32", [-1])]
    assert [t.name for t in answer.outputs] == ["OUT0", "OUT1"]
    batch = client.call("ModelMetadata", pb.ModelMetadataRequest(
        name="id_batch"))
    assert list(batch.inputs[0].shape) == [-1, 4]
    several = client.call("ModelMetadata", pb.ModelMetadataRequest(
        name="id_versions", version="3"))
    assert list(several.versions) == ["3"]
    several = client.call("ModelMetadata", pb.ModelMetadataRequest(
        name="id_versions"))
    assert list(several.versions) == ["1", "3"]
    with pytest.raises(Failure) as e:
        client.call("ModelMetadata", pb.ModelMetadataRequest(name="absent"))
    assert e.value.code == Code.NOT_FOUND


def test_model_config(client, server):
    config = client.call("ModelConfig", pb.ModelConfigRequest(
        name="id_batch")).config
    rest = server.get("/v2/models/id_batch/config").json()
    assert config.name == "id_batch"
    assert config.max_batch_size == rest["max_batch_size"] == 8
    assert config.backend == "identity"
    assert [i.name for i in config.input] == ["IN"]
    assert list(config.input[0].dims) == [4]
    assert config.instance_group[0].count == 1
    with pytest.raises(Failure) as e:
        client.call("ModelConfig", pb.ModelConfigRequest(name="absent"))
    assert e.value.code == Code.NOT_FOUND


def test_model_statistics(client):
    def count():
        stats = client.call("ModelStatistics", pb.ModelStatisticsRequest(
            name="id_uint16")).model_stats
        assert [(s.name, s.version) for s in stats] == [("id_uint16", "1")]
        return stats[0].inference_stats.success.count
    before = count()
    client.infer("id_uint16", *_one("UINT16"))
    assert count() == before + 1
    everything = client.call("ModelStatistics")
    assert len(everything.model_stats) > 10
    with pytest.raises(Failure) as e:
        client.call("ModelStatistics", pb.ModelStatisticsRequest(
            name="absent"))
    assert e.value.code == Code.INVALID_ARGUMENT


def _one(datatype):
    message = pb.ModelInferRequest.InferInputTensor(
        name="IN", datatype=datatype, shape=[1])
    return [(message, bytes(models.SIZE[datatype]))]


def test_repository_index(client):
    index = client.call("RepositoryIndex").models
    assert ("id_int32", "1", "READY") in {
        (m.name, m.version, m.state) for m in index}
    with pytest.raises(Failure) as e:
        client.call("RepositoryIndex", pb.RepositoryIndexRequest(
            repository_name="other"))
    assert e.value.code == Code.UNIMPLEMENTED


@pytest.fixture
def explicit(start):
    server = start(lambda r: models.identity(r, "m", [("IN", "INT32", [-1])]),
                   http="    inference_model_control explicit;")
    with Client(server.port2) as c:
        yield c


def test_load_and_unload(explicit):
    with pytest.raises(Failure) as e:
        explicit.numbers("m", [1])
    assert e.value.code in (Code.NOT_FOUND, Code.UNAVAILABLE)
    load = pb.RepositoryModelLoadRequest(model_name="m")
    explicit.call("RepositoryModelLoad", load)
    assert explicit.numbers("m", [1, 2]) == [1, 2]
    unload = pb.RepositoryModelUnloadRequest(model_name="m")
    explicit.call("RepositoryModelUnload", unload)
    with pytest.raises(Failure) as e:
        explicit.numbers("m", [1])
    assert e.value.code in (Code.NOT_FOUND, Code.UNAVAILABLE)


def test_load_with_a_config(explicit):
    config = '{"backend":"identity","max_batch_size":4,' \
        '"input":[{"name":"IN","data_type":"TYPE_INT32","dims":[-1]}],' \
        '"output":[{"name":"OUT","data_type":"TYPE_INT32","dims":[-1]}]}'
    request = pb.RepositoryModelLoadRequest(model_name="m")
    request.parameters["config"].string_param = config
    explicit.call("RepositoryModelLoad", request)
    assert explicit.call("ModelConfig", pb.ModelConfigRequest(
        name="m")).config.max_batch_size == 4


def test_load_errors(explicit):
    load = pb.RepositoryModelLoadRequest(model_name="m")
    load.parameters["other"].string_param = "x"
    wrong = pb.RepositoryModelLoadRequest(model_name="m")
    wrong.parameters["config"].int64_param = 1
    file = pb.RepositoryModelLoadRequest(model_name="m")
    file.parameters["file:1/a"].string_param = "text, not bytes"
    elsewhere = pb.RepositoryModelLoadRequest(model_name="m",
                                              repository_name="other")
    kind = "invalid value type for load parameter '{}', expected {}."
    for request, code, text in [
            (load, Code.INVALID_ARGUMENT,
             "unrecognized load parameter 'other'."),
            (wrong, Code.INVALID_ARGUMENT,
             kind.format("config", "string_param")),
            (file, Code.INVALID_ARGUMENT,
             kind.format("file:1/a", "bytes_param")),
            (elsewhere, Code.UNIMPLEMENTED,
             "'repository_name' specification is not supported")]:
        with pytest.raises(Failure) as e:
            explicit.call("RepositoryModelLoad", request)
        assert (e.value.code, e.value.text) == (code, text)


def test_not_ready_server(start):
    """A model that cannot load: no status but an answer that says no."""
    server = start(lambda r: models.write_model(
        r, "bad", 'backend: "none"\nmax_batch_size: 0\n'), wait="live",
        allow_alarms=[".*"])
    with Client(server.port2) as c:
        assert c.call("ServerLive").live is True
        assert c.call("ServerReady").ready is False
        assert c.check() == NOT_SERVING


@pytest.mark.parametrize("method", NOT_LISTED)
def test_methods_that_the_location_does_not_list(client, method):
    with pytest.raises(Failure) as e:
        client.call(method)
    assert e.value.code == Code.UNIMPLEMENTED
    assert "Client shared memory is disabled." in e.value.text


@pytest.mark.parametrize("path", [
    SERVICE + "Absent", SERVICE, "/inference.GRPCInferenceService",
    "/other.Service/ModelInfer", SERVICE + "ModelInfer/", SERVICE +
    "modelinfer", "/grpc.health.v1.Health/List"])
def test_unknown_methods(client, path):
    with pytest.raises(Failure) as e:
        client.unary(path, b"", None)
    assert e.value.code == Code.UNIMPLEMENTED


def test_health_and_metadata_of_an_empty_message_with_fields(client):
    """Fields that a message does not have are skipped."""
    assert client.unary(SERVICE + "ServerLive", b"\xf8\x07\x01",
                        pb.ServerLiveResponse).live is True


@pytest.mark.parametrize("method", [
    "ServerLive", "ServerReady", "ModelReady", "ModelMetadata", "ModelConfig",
    "ModelStatistics", "RepositoryIndex", "RepositoryModelLoad", "ModelInfer"])
@pytest.mark.parametrize("data", [b"\x0a\xff\xff\xff\xff\x0fx", b"\x12\x80"])
def test_bytes_that_are_no_message(client, method, data):
    with pytest.raises(Failure) as e:
        client.unary(SERVICE + method, data, None)
    assert e.value.code == Code.INTERNAL
    assert e.value.text.startswith("Unable to parse request"), e.value
    assert client.call("ServerLive").live is True


def test_tritonclient(server):
    client = tritonclient.grpc.InferenceServerClient(
        f"127.0.0.1:{server.port2}")
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("id_int32")
    assert client.get_server_metadata(as_json=True)["name"]
    assert client.get_model_metadata("id_int32").name == "id_int32"
    assert client.get_model_config(
        "id_int32", as_json=True)["config"]["backend"] == "identity"
    assert client.get_model_repository_index().models
    assert client.get_inference_statistics("id_int32").model_stats
    data = numpy.arange(6, dtype=numpy.int32)
    tensor = tritonclient.grpc.InferInput("IN", [6], "INT32")
    tensor.set_data_from_numpy(data)
    for compression in (None, "gzip", "deflate"):
        result = client.infer("id_int32", [tensor], request_id="x",
                              compression_algorithm=compression)
        assert (result.as_numpy("OUT") == data).all()
        assert result.get_response().id == "x"
    client.close()


def test_tritonclient_aio(server):
    async def ask():
        async with tritonclient.grpc.aio.InferenceServerClient(
                f"127.0.0.1:{server.port2}") as client:
            assert await client.is_server_ready()
            data = numpy.array([b"a", b"", b"xyz"], dtype=object)
            tensor = tritonclient.grpc.aio.InferInput("IN", [3], "BYTES")
            tensor.set_data_from_numpy(data)
            results = await asyncio.gather(*(
                client.infer("id_bytes", [tensor]) for _ in range(20)))
            for result in results:
                assert (result.as_numpy("OUT") == data).all()
    asyncio.run(ask())


def test_an_inference_beside_a_call_on_one_connection(client):
    for _ in range(50):
        assert client.numbers("id_int32", [7, -7]) == [7, -7]
        assert client.call("ServerLive").live
    with pytest.raises(Failure):
        client.call("ModelInfer", infer("absent"))
    assert client.numbers("id_int32", [8]) == [8]
