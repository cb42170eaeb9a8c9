"""Log settings: what clients see and change, and that the log follows."""

import json
import re

import grpc
import numpy
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.grpc import service_pb2 as pb
from tritonclient.utils import InferenceServerException

from lib import process
from lib.grpc_client import Client, Failure

DEFAULTS = {"log_file": "", "log_info": True, "log_warning": True,
            "log_error": True, "log_verbose_level": 0,
            "log_format": "default"}


def test_each_setting_is_changed_and_shown(client):
    assert client.log() == DEFAULTS
    expected = dict(DEFAULTS)
    for key, value in [("log_info", False), ("log_warning", False),
                       ("log_error", False), ("log_verbose_level", 3),
                       ("log_format", "ISO8601"), ("log_error", True),
                       ("log_verbose_level", 0), ("log_info", True),
                       ("log_format", "default"), ("log_warning", True)]:
        expected[key] = value
        assert client.log(**{key: value}) == expected
        assert client.log() == expected


def test_the_file_is_the_configurations(client, server):
    with pytest.raises(InferenceServerException) as e:
        client.log(log_file=f"{server.prefix}/planted", log_info=False)
    assert "log file location can not be updated through network protocol" \
        in e.value.message()
    assert client.log() == DEFAULTS
    assert not (server.prefix / "planted").exists()


def test_rest_keys_in_triton_s_order(server):
    answer = server.get("/v2/logging")
    assert answer.status == 200
    assert list(json.loads(answer.body)) == list(DEFAULTS)
    answer = server.post("/v2/logging", b'{"log_info": null}')
    assert answer.json() == DEFAULTS


@pytest.mark.parametrize("body,status,words", [
    (b"", 500, "The document is empty"),
    (b"{", 400, "failed to parse the request JSON buffer"),
    (b"[]", 400, "must be an object"),
    (b'{"log_info": 1}', 500, "non-boolean"),
    (b'{"log_verbose_level": -1}', 500, "unsigned-integer"),
    (b'{"log_verbose_level": 2147483648}', 500, "unsigned-integer"),
    (b'{"log_verbose_level": 4294967296}', 500, "unsigned-integer"),
    (b'{"log_verbose_level": "1"}', 500, "unsigned-integer"),
    (b'{"log_format": "plain"}', 503, "invalid argument for --log_format"),
    (b'{"log_format": 3}', 500, "non-string"),
    (b'{"log_file": "x"}', 501, "can not be updated"),
    (b'{"log_file": null}', 200, ""),
    (b'{"log_files": "x"}', 200, ""),
    (b'{"log_info": false, "log_error": 7}', 500, "log_error")])
def test_wrong_bodies_change_nothing(server, body, status, words):
    answer = server.post("/v2/logging", body)
    assert answer.status == status, answer
    assert not words or words in answer.error
    assert server.get("/v2/logging").json() == DEFAULTS


@pytest.mark.parametrize("key,value,text", [
    ("log_info", {"uint32_param": 1}, "expect boolean for 'log_info'"),
    ("log_warning", {"string_param": "x"}, "expect boolean for 'log_warning'"),
    ("log_error", {}, "expect boolean for 'log_error'"),
    ("log_verbose_level", {"bool_param": True},
     "expect int32 for 'log_verbose_level'"),
    ("log_verbose_level", {"uint32_param": 1 << 31},
     "expect int32 for 'log_verbose_level'"),
    ("log_format", {"uint32_param": 1}, "expect string for 'log_format'"),
    ("log_format", {"string_param": "plain"},
     "invalid argument for log_format, got: plain")])
def test_wrong_values_over_grpc_change_nothing(server, key, value, text):
    request = pb.LogSettingsRequest()
    request.settings["log_info"].bool_param = False
    request.settings[key].SetInParent()
    for field, of_type in value.items():
        setattr(request.settings[key], field, of_type)
    with Client(server.port2) as client:
        with pytest.raises(Failure) as e:
            client.call("LogSettings", request)
    assert e.value.code == grpc.StatusCode.INVALID_ARGUMENT
    assert e.value.text == text
    assert server.get("/v2/logging").json() == DEFAULTS


def test_a_get_with_a_body_reads(server):
    with server.wire() as connection:
        answer = connection.request("GET", "/v2/logging",
                                    b'{"log_info": false}')
    assert answer.json() == DEFAULTS


def test_the_log_follows(start):
    """Loads are lines of info; one socket carries them in order."""
    server = start(http="    inference_model_control explicit;\n"
                   "    inference_load_model one;")

    def settings(**values):
        assert server.post("/v2/logging",
                           json.dumps(values).encode()).status == 200

    def load(model):
        for verb in ("load", "unload"):
            assert server.post(f"/v2/repository/models/{model}/{verb}",
                               b"").status == 200

    settings(log_info=False)
    load("two")
    settings(log_info=True, log_format="ISO8601")
    load("two")
    found = server.wait_log(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ I \d+ \w+\.c:\d+\] .*two")
    text = server.log_text()
    assert "one" in text[:found.start()]
    assert not re.search(r"\btwo\b", text[:found.start()])
    settings(log_format="default")
    load("one")
    server.wait_log(r"\] \d+#\d+: (?!\d{4}-).*\bone\b.*unload")


def test_a_reload_keeps_what_requests_have_set(start):
    server = start()
    assert server.post("/v2/logging", b'{"log_verbose_level": 5}').status \
        == 200
    server.write_config(http="    inference_strict_readiness off;")
    server.signal("HUP")
    server.wait_log("configuration generation 2 is in force")
    assert server.get("/v2/logging").json()["log_verbose_level"] == 5
    server.write_config(http="    inference_log warn verbose=2;")
    server.signal("HUP")
    assert process.wait_until(lambda: server.get(
        "/v2/logging").json()["log_verbose_level"] == 2, 20)
    assert server.get("/v2/logging").json()["log_info"] is False


def test_verbose_lines_name_the_requests(start):
    """At level 1 one for each inference that reaches the core, also of a
    model that there is none of."""
    server = start()
    rest = tritonclient.http.InferenceServerClient(server.url)
    grpc = tritonclient.grpc.InferenceServerClient(
        f"127.0.0.1:{server.port2}")

    def infer(client, module, model, name, version=""):
        one = module.InferInput("IN", [1], "INT32")
        one.set_data_from_numpy(numpy.ones(1, numpy.int32))
        client.infer(model, [one], version, request_id=name)

    infer(rest, tritonclient.http, "one", "before")
    rest.update_log_settings({"log_verbose_level": 1})
    infer(rest, tritonclient.http, "one", "first")
    infer(grpc, tritonclient.grpc, "two", "second", "1")
    with pytest.raises(InferenceServerException):
        infer(rest, tritonclient.http, "none", "third")
    rest.update_log_settings({"log_verbose_level": 0})
    infer(rest, tritonclient.http, "one", "after")
    server.wait_log("HTTP request: model=none version=-1 request=third")
    assert re.findall(r"(?:HTTP|gRPC) request: .*", server.log_text()) == [
        "HTTP request: model=one version=-1 request=first inputs=1",
        "gRPC request: model=two version=1 request=second inputs=1",
        "HTTP request: model=none version=-1 request=third inputs=1"]
    rest.close()
    grpc.close()
