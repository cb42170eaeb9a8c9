"""The variables that a log_format may use."""

import gzip
import json
import queue
import re

import numpy
import pytest
import tritonclient.grpc

from lib import decoupled, gpu, models
from lib.access_log import FORMAT, WRITTEN, AccessLog
from lib.server import SLOW, Server
from lib.wire import tensor

def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "slow", [("IN", "INT32", [-1])],
                    parameters={"execute_delay_ms": "60"})


@pytest.fixture(scope="module")
def server():
    with Server(fill, http=FORMAT, server="""
        access_log access.log inference;
        add_header X-Model "$inference_model/$inference_version" always;
        location = /mine { inference_model id_int32; }
        location = /plain { return 200 "plain"; }
    """) as s:
        yield s


def logged(server, path, ask):
    """The fields of the line that ask() adds."""
    log = AccessLog(server)
    answer = ask()
    fields = log.line(uri=path)
    assert fields["status"] == answer.status
    return fields


def body(**more):
    return json.dumps({"inputs": [tensor("IN", "INT32", [2], [1, 2])],
                       **more}).encode()


def test_line_of_an_inference(server):
    path = "/v2/models/slow/infer"
    line = logged(server, path, lambda: server.post(path, body(
        id="logme-1", parameters={"sequence_id": 77})))
    assert line["model"] == "slow"
    assert line["version"] == "1"
    assert line["verb"] == "infer"
    assert line["id"] == "logme-1"
    assert line["sequence"] == "77"
    assert line["code"] == "OK"
    assert line["tries"] == "1"
    assert line["batch"] == "1"
    assert line["backend"] == "identity"
    assert line["instance"].startswith("slow")
    for name in ("queue", "compute"):
        assert re.fullmatch(r"\d+\.\d{6}", line[name]), line
    assert 0.05 < float(line["compute"]) < 5 * SLOW
    assert float(line["queue"]) < 5 * SLOW


def test_time_in_the_queue_is_not_time_of_computing(server):
    path = "/v2/models/slow/infer"

    def ask():
        with server.wire() as first, server.wire() as second:
            first.send(b"POST " + path.encode() + b" HTTP/1.1\r\nHost: x\r\n"
                       b"Content-Length: %d\r\n\r\n" % len(body()) + body())
            answer = second.post(path, body(id="behind"))
            first.read()
            return answer

    log = AccessLog(server)
    ask()
    line = log.line(id="behind")
    assert float(line["queue"]) + float(line["compute"]) > 0.1


def test_text_of_an_id_and_a_sequence(server):
    path = "/mine"
    line = logged(server, path, lambda: server.post(path, body(
        id='quo"ted\n', parameters={"sequence_id": "client-9"})))
    assert line["id"] == r'quo"ted\x0A'
    assert line["sequence"] == "client-9"
    assert line["model"] == "id_int32"


def test_line_of_compressed_and_binary_requests(server):
    path = "/v2/models/id_int32/infer"
    line = logged(server, path, lambda: server.post(
        path, gzip.compress(body(id="packed")),
        {"Content-Encoding": "gzip"}))
    assert (line["id"], line["code"]) == ("packed", "OK")
    line = logged(server, path, lambda: server.post(
        path, bytes(8), {"Inference-Header-Content-Length": "0"}))
    assert (line["id"], line["code"], line["batch"]) == ("", "OK", "1")


@pytest.mark.parametrize("path,data,status,code,model", [
    ("/v2/models/ghost/infer", body(), 404, "NOT_FOUND", "ghost"),
    ("/v2/models/id_int32/infer", b"{", 400, "INVALID_ARGUMENT", "id_int32"),
    ("/v2/models/id_int32/infer", body(outputs=[{"name": "no"}]), 400,
     "INVALID_ARGUMENT", "id_int32")])
def test_line_of_a_rejected_request(server, path, data, status, code, model):
    line = logged(server, path, lambda: server.post(path, data))
    assert line["status"] == status
    assert line["code"].upper().replace(" ", "_") == code
    assert line["model"] == model
    assert line["verb"] == "infer"
    assert line["compute"] == line["batch"] == ""


@pytest.mark.parametrize("path,verb,model", [
    ("/v2/health/live", "live", ""), ("/v2", "", ""),
    ("/v2/models/id_int32/config", "config", "id_int32")])
def test_line_of_the_other_parts(server, path, verb, model):
    line = logged(server, path, lambda: server.get(path))
    assert line["status"] == 200
    assert verb in line["verb"]
    assert line["model"] == model


def test_other_locations_have_empty_variables(server):
    line = logged(server, "/plain", lambda: server.get("/plain"))
    assert {v for k, v in line.items() if k not in ("uri", "status")} == {""}


def test_variables_in_an_answer_header(server):
    answer = server.post("/v2/models/id_int32/infer", body())
    assert answer.headers["x-model"] == "id_int32/1"


LIMITS = FORMAT + """
    limit_req_zone $inference_model zone=models:1m rate=1r/m;
    map $inference_verb $of_infer { infer $binary_remote_addr; default ""; }
    limit_req_zone $of_infer zone=infer:1m rate=1r/m;
"""


@pytest.fixture(scope="module")
def limited():
    with Server(fill, http=LIMITS, server=WRITTEN + """
        limit_req_status 429;
        location /by-model/ { inference all; limit_req zone=models burst=1
                              nodelay; }
        location /by-verb/ { inference all; limit_req zone=infer; }
        location ~ ^/ask/(?<asked>[a-z_0-9]+)$ {
            inference_model $asked; limit_req zone=models burst=1 nodelay; }
        location /denied/ { inference all; deny all; }
    """) as s:
        yield s


def test_a_limit_for_each_model(limited):
    """Limits are asked before our handler is."""
    path = "/by-model/v2/models/{}/infer"
    for model in ("id_int32", "id_int64"):
        data = json.dumps({"inputs": [tensor(
            "IN", model[3:].upper(), [1], [1])]}).encode()
        assert [limited.post(path.format(model), data).status
                for _ in range(3)] == [200, 200, 429]
    assert limited.post("/ask/id_int32", body()).status == 429
    assert limited.post("/ask/slow", body()).status == 200
    assert limited.get("/by-model/v2/health/live").status == 200


def test_a_limit_of_one_verb(limited):
    path = "/by-verb/v2/models/id_int32/infer"
    assert [limited.post(path, body()).status for _ in range(2)] == [200, 429]
    for _ in range(3):
        assert limited.get("/by-verb/v2/models/id_int32").status == 200


def test_line_of_a_request_that_never_reached_the_handler(limited):
    path = "/denied/v2/models/slow/versions/3/infer"
    line = logged(limited, path, lambda: limited.post(path, body()))
    assert line["status"] == 403
    assert (line["model"], line["version"], line["verb"]) \
        == ("slow", "3", "infer")
    assert line["code"] == line["tries"] == line["batch"] == ""


@pytest.fixture(scope="module")
def streaming():
    def repository(folder):
        decoupled.square(folder)
        models.write_model(folder, "far", models.identity_config(
            "far", [("IN", "INT32", [-1])]).replace(
                "kind: KIND_CPU", "kind: KIND_GPU gpus: [ 0 ]"))

    with Server(repository, http=FORMAT, server=WRITTEN, http2=True,
                parts="health infer generate",
                inference_env=gpu.env()) as s:
        yield s


@pytest.mark.parametrize("count", [0, 1, 5])
def test_responses_of_a_stream(streaming, count):
    path = "/v2/models/square/generate_stream"
    line = logged(streaming, path, lambda: streaming.post(
        path, json.dumps({"IN": count}).encode()))
    assert line["responses"] == str(count)
    assert bool(line["first"]) == (count > 0)


def test_responses_of_a_stream_of_grpc(streaming):
    done = queue.Queue()
    log = AccessLog(streaming)
    with tritonclient.grpc.InferenceServerClient(
            f"127.0.0.1:{streaming.port2}") as client:
        client.start_stream(lambda result, error: done.put((result, error)))
        for count in (2, 3):
            given = tritonclient.grpc.InferInput("IN", [1], "INT32")
            given.set_data_from_numpy(numpy.array([count], numpy.int32))
            client.async_stream_infer("square", [given])
        for _ in range(5):
            result, error = done.get(timeout=20 * SLOW)
            assert error is None and result is not None
        client.stop_stream()
    line = log.line(uri="/inference.GRPCInferenceService/ModelStreamInfer")
    assert line["responses"] == "5"
    assert re.fullmatch(r"\d+\.\d{6}", line["first"])


def test_the_gpu_of_an_execution(streaming):
    path = "/v2/models/far/infer"
    line = logged(streaming, path, lambda: streaming.post(path, body()))
    assert line["device"] == "gpu0"
