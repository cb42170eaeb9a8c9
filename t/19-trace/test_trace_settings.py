"""Trace settings: scopes, clearing, and rejected values."""

import json

import pytest
from tritonclient.utils import InferenceServerException

DEFAULTS = {"trace_level": ["OFF"], "trace_rate": "1000",
            "trace_count": "-1", "log_frequency": "0", "trace_file": "",
            "trace_mode": "triton"}


def with_(settings, **more):
    return {**settings, **more}


def test_defaults(client):
    assert client.trace() == DEFAULTS
    assert client.trace("one") == DEFAULTS


def test_models_inherit_what_they_do_not_set(client):
    assert client.trace("one", trace_rate="7") == with_(
        DEFAULTS, trace_rate="7")
    assert client.trace(trace_rate="5", trace_count="9") == with_(
        DEFAULTS, trace_rate="5", trace_count="9")
    assert client.trace("one") == with_(
        DEFAULTS, trace_rate="7", trace_count="9")
    assert client.trace("two") == with_(
        DEFAULTS, trace_rate="5", trace_count="9")
    # cleared: the server's again, and for the server the configuration's
    assert client.trace("one", trace_rate=None) == client.trace()
    assert client.trace(trace_rate=None, trace_count=None) == DEFAULTS
    assert client.trace("one") == DEFAULTS


def test_an_unknown_model(client):
    with pytest.raises(InferenceServerException) as e:
        client.trace("absent")
    assert "'absent' is not found" in e.value.message()
    with pytest.raises(InferenceServerException) as e:
        client.trace("absent", trace_rate="1")
    assert "'absent' is not found" in e.value.message()


def test_nothing_is_traced_without_a_file(client):
    with pytest.raises(InferenceServerException) as e:
        client.trace(trace_level=["TIMESTAMPS"])
    assert e.value.message() == "Attempting to set invalid trace setting " \
        ":trace file name is not given"
    assert client.trace() == DEFAULTS
    assert client.trace(trace_level=["OFF"]) == DEFAULTS


def test_the_file_is_the_configurations(client, server):
    for path in (f"{server.prefix}/planted", ""):
        with pytest.raises(InferenceServerException) as e:
            client.trace(trace_file=path)
        assert "trace file location can not be updated through network " \
            "protocol" in e.value.message()
    assert not (server.prefix / "planted").exists()


@pytest.mark.parametrize("key,value,words", [
    ("trace_rate", "x", "Unable to parse 'trace_rate', got: x"),
    ("trace_rate", "-1", "value is out of range [ 0, 4294967295 ], got: -1"),
    ("trace_rate", "9" * 30, "value is out of range"),
    ("trace_count", "-2", "Unable to parse 'trace_count'. Expecting value"
     " >= -1, got:-2"),
    ("log_frequency", "", "Unable to parse 'log_frequency', got: "),
    ("trace_level", ["OFF", "TIMESTAMPS"],
     "Expect only one trace level 'OFF' is specified")])
def test_wrong_values(client, key, value, words):
    with pytest.raises(InferenceServerException) as e:
        client.trace(**{key: value})
    assert words in e.value.message()
    assert client.trace() == DEFAULTS


@pytest.mark.parametrize("body,status,words", [
    (b"", 500, "The document is empty"),
    (b"[1]", 400, "must be an object"),
    (b'{"trace_rate": 1}', 500, "non-string"),
    (b'{"trace_level": "OFF"}', 500, "non-array"),
    (b'{"trace_level": [1]}', 500, "non-string"),
    (b'{"trace_file": null}', 501, "can not be updated"),
    (b'{"trace_level": ["TENSORS"]}', 400, "trace file name is not given"),
    (b'{"trace_level": ["SOMETIMES"]}', 200, ""),
    (b'{"other": 1}', 200, ""),
    (b"{}", 200, "")])
def test_rest_bodies(server, body, status, words):
    for path in ("/v2/trace/setting", "/v2/models/one/trace/setting"):
        answer = server.post(path, body)
        assert answer.status == status, answer
        assert not words or words in answer.error
        answer = server.get(path)
        assert list(json.loads(answer.body)) == list(DEFAULTS)
        assert answer.json() == DEFAULTS


def test_paths_and_methods(server):
    assert server.get("/v2/models/absent/trace/setting").status == 404
    assert server.post("/v2/models/absent/trace/setting", b"{}").status == 404
    assert server.get("/v2/models/one/versions/1/trace/setting").status == 404
    with server.wire() as connection:
        assert connection.request("PUT", "/v2/trace/setting",
                                  b"{}").status == 405


def test_more_than_one_value_over_grpc(server):
    import grpc
    from tritonclient.grpc import service_pb2 as pb
    from lib.grpc_client import Client, Failure
    request = pb.TraceSettingRequest()
    request.settings["trace_rate"].value.extend(["1", "2"])
    with Client(server.port2) as client:
        with pytest.raises(Failure) as e:
            client.call("TraceSetting", request)
        assert e.value.code == grpc.StatusCode.INVALID_ARGUMENT
        assert e.value.text == "expect only 1 value for 'trace_rate'"


def test_what_a_location_does_not_list_it_does_not_serve(start):
    server = start(parts="all")
    for path in ("/v2/logging", "/v2/trace/setting",
                 "/v2/models/one/trace/setting"):
        assert server.get(path).status == 404
        assert server.post(path, b"{}").status == 404
