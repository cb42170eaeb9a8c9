"""An error that a client is told leaves its text in $inference_error and in one
line of error_log, with the client and its request."""

import json
import re

import pytest

from lib import models
from lib.access_log import FORMAT, WRITTEN, AccessLog
from lib.grpc_client import Client, Failure, numbers, pb
from lib.server import Server
from lib.wire import tensor

INPUTS = [tensor("IN", "INT32", [2], [1, 2])]
LINE = re.compile(r'\[error\] [^ ]+ \*\d+ (?P<call>\w+ \w+)'
                  r'(?: of model "(?P<model>.*)")? failed: '
                  r'(?P<text>.*), client: 127\.0\.0\.1, server: .*, '
                  r'request: "(?P<request>.*?)"')


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "full", [("IN", "INT32", [2])], max_batch=1,
                    extra="dynamic_batching { default_queue_policy {"
                         " max_queue_size: 1 } }",
                    parameters={"execute_delay_ms": "400"})


COPIED = """
        location = /copied { mirror /copy; inference_model nobody; }
        location = /copy { internal; inference_model id_int32; }
"""


@pytest.fixture(scope="module")
def server():
    with Server(fill, http=FORMAT + "    inference_model_control explicit;\n"
                "    inference_load_model *;\n", http2=True,
                server=WRITTEN + COPIED,
                parts="all repository shared_memory") as s:
        yield s


class Lines:
    """Of error_log, on requests that fail from now on."""

    def __init__(self, server):
        self.server = server
        self.before = len(server.log_text())

    def new(self):
        return [found.group("model", "text", "request", "call")
                for found in map(
            LINE.search, self.server.log_text()[self.before:].splitlines())
            if found]


def told(server, path, data):
    """(model, text, request, call) of the only line, and the access log's
    fields."""
    log, lines = AccessLog(server), Lines(server)
    answer = server.post(path, data)
    assert answer.status >= 400
    fields = log.line(uri=path)
    line, = lines.new()
    assert line[1] == fields["error"] == answer.json()["error"]
    assert line[2] == f"POST {path} HTTP/1.1"
    assert line[0] == fields["model"]
    assert line[3] == "inference request"
    return line, fields


CASES = {
    "unknown": ("nobody", {"inputs": INPUTS}, "Not found"),
    "shape": ("id_int32", {"inputs": [tensor("IN", "INT32", [3], [1, 2])]},
              "Invalid argument"),
    "name": ("id_int32", {"inputs": [tensor("IM", "INT32", [2], [1, 2])]},
             "Invalid argument"),
    "datatype": ("id_int32", {"inputs": [tensor("IN", "FP32", [2], [1, 2])]},
                 "Invalid argument"),
}


@pytest.mark.parametrize("what", CASES)
def test_text_model_and_id(server, what):
    model, request, reason = CASES[what]
    data = json.dumps({"id": f"mine-{what}", **request}).encode()
    line, fields = told(server, f"/v2/models/{model}/infer", data)
    assert line[0] == model
    assert fields["code"] == reason
    assert fields["id"] == f"mine-{what}"


def test_json_that_is_none(server):
    _, fields = told(server, "/v2/models/id_int32/infer", b'{"inputs": [}')
    assert fields["code"] == "Invalid argument"


@pytest.mark.parametrize("method,path,model,call", [
    ("GET", "/v2/models/nobody/config", "nobody", "config request"),
    ("GET", "/v2/models/nobody/stats", "nobody", "statistics request"),
    ("POST", "/v2/repository/models/nobody/load", "nobody",
     "repository load"),
    ("POST", "/v2/repository/models/a%2Fb/unload", None, "inference request"),
    ("GET", "/v2/nothing", None, "inference request"),
    ("GET", "/v2/systemsharedmemory/region/r/status", None,
     "system_shm request")])
def test_other_endpoints(server, method, path, model, call):
    """By their names, and no model where there is none."""
    log, lines = AccessLog(server), Lines(server)
    answer = server.get(path) if method == "GET" else server.post(path, b"")
    assert answer.status in (400, 404, 500)
    fields = log.line(status=answer.status)
    line, = lines.new()
    assert line[1] == fields["error"] != ""
    assert (line[0], line[3]) == (model, call)


def test_a_success_has_no_error(server):
    log, lines = AccessLog(server), Lines(server)
    path = "/v2/models/id_int32/infer"
    assert server.post(path, json.dumps({"inputs": INPUTS}).encode()
                       ).status == 200
    assert log.line(uri=path)["error"] == ""
    assert lines.new() == []


def test_an_error_is_that_of_its_request(server):
    """Not of the subrequest that nginx has begun meanwhile."""
    before = len(server.log_text())
    told(server, "/copied", json.dumps({"inputs": INPUTS}).encode())
    line, = (line for line in server.log_text()[before:].splitlines()
             if "[error]" in line)
    assert "subrequest" not in line


def test_texts_of_clients_stay_one_line(server):
    lines = Lines(server)
    with Client(server.port2) as client, pytest.raises(Failure):
        client.call("ModelInfer", numbers("a\n2026 forged\x1b", [1]))
    line, = lines.new()
    assert line[0] == "a\\x0A2026 forged\\x1B" and line[0] in line[1]


def test_grpc_calls_and_messages_of_streams(server):
    log, lines = AccessLog(server), Lines(server)
    with Client(server.port2) as client:
        with pytest.raises(Failure) as e:
            client.call("ModelInfer", numbers("nobody", [1], id="g"))
        line, = lines.new()
        assert line[:2] == ("nobody", e.value.text)
        fields = log.line(model="nobody")
        assert fields["error"] == line[1] and fields["id"] == "g"

        for method, more in (("RepositoryModelLoad", {}),
                             ("ModelConfig", {"version": "7"}),
                             ("ModelStatistics", {"version": "x"}),
                             ("ModelMetadata", {})):
            log, lines = AccessLog(server), Lines(server)
            name = "name" if method != "RepositoryModelLoad" else "model_name"
            with pytest.raises(Failure) as e:
                client.call(method, getattr(pb, method + "Request")(
                    **{name: "nobody"}, **more))
            line, = lines.new()
            assert line[:2] == ("nobody", e.value.text)
            fields = log.line(model="nobody")
            assert fields["error"] == line[1]
            assert fields["version"] == ("7" if "7" in more.values() else "")

        lines = Lines(server)
        with client.stream() as stream:
            stream.send(numbers("nobody", [1]), numbers("id_int32", [1]),
                        numbers("id_int32", [2]))
            stream.end()
            texts = [r.error_message for r in stream.rest()]
        assert [bool(t) for t in texts] == [True, False, False]
        assert [line[1] for line in lines.new()] == [texts[0]]
