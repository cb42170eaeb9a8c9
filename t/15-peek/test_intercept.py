"""Errors of ours survive a site's pages, and go on to an upstream, body and
all, where a location says so."""

import json
import os
import re
import struct

import grpc
import pytest
from tritonclient.grpc import service_pb2 as pb

from lib import arena, decoupled, events, models
from lib.access_log import FORMAT, WRITTEN, AccessLog
from lib.grpc_client import (SERVICE, Client, Failure, frame, frames, infer,
                             number, numbers, status_in, tensor)
from lib.h2 import H2
from lib.server import Server
from lib.wire import request_bytes

ARENA = 64 << 20
Code = grpc.StatusCode
HEADERS = {"content-type": "application/grpc", "te": "trailers"}
INFER = SERVICE + "ModelInfer"


def fill_far(repository):
    """Models that the first server does not have, or whose load fails there."""
    for name in ("far", "broken"):
        models.identity(repository, name, [
            ("A", "UINT8", [-1]), ("B", "INT32", [-1]), ("C", "BYTES", [-1])],
            versions=(1, 2))
    decoupled.square(repository)


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "broken", [
        ("A", "UINT8", [-1]), ("B", "INT32", [-1]), ("C", "BYTES", [-1])],
        parameters={"fail_execute": "out of order"})
    models.identity(repository, "slow", [("IN", "INT32", [-1])],
                    parameters={"execute_delay_ms": "2000"})


def fallbacks(far):
    """Named locations in $fallback, by the protocol of a request to /on/."""
    return f"""
        set $fallback @rest;
        if ($content_type = application/grpc) {{ set $fallback @grpc; }}
        location @rest {{
            rewrite ^/on(/.*) $1 break;
            proxy_pass http://127.0.0.1:{far.port};
        }}
        location @grpc {{
            rewrite ^/on(/.*) $1 break;
            grpc_pass grpc://127.0.0.1:{far.port2};
        }}"""


@pytest.fixture(scope="module")
def far():
    with Server(fill_far, http2=True,
                parts="health metadata config infer generate") as s:
        yield s


@pytest.fixture(scope="module")
def server(far):
    with Server(fill, http2=True, http=FORMAT + f"""
    inference_memory {ARENA}; error_page 404 500 /page.html;
""", parts="all metrics", server=WRITTEN + f"""
        error_log error.log info;
        location = /page.html {{ return 200 "a page of the site"; }}
        location /on/ {{
            inference all repository; inference_intercept_errors on;
            error_page 404 500 503 504 = $fallback;
            inference_timeout 700ms;
        }}
        {fallbacks(far)}
        location /second/ {{
            inference infer; inference_intercept_errors on;
            error_page 404 = @other;
        }}
        location @other {{ inference_model id_uint8; }}
        location /kept/ {{
            inference all; inference_intercept_errors on;
            error_page 404 /page.html; error_page 503 =503 /page.html;
        }}
""") as s:
        yield s
        arena.assert_empty(s, ARENA)


# ---- a site's pages

@pytest.mark.parametrize("path,status", [
    ("/v2/models/absent/infer", 404), ("/v2/models/broken/infer", 500),
    ("/v2/models/absent", 404), ("/v2/nothing", 404)])
def test_errors_of_ours_stay_json(server, path, status):
    body = json.dumps({"inputs": [
        {"name": n, "datatype": d, "shape": [1], "data": v} for n, d, v in
        (("A", "UINT8", [1]), ("B", "INT32", [1]), ("C", "BYTES", ["x"]))]})
    answer = server.get(path) if path[-1] == "t" or "nothing" in path \
        else server.post(path, body.encode())
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.error


def test_errors_of_calls_stay_statuses(server):
    with Client(server.port2) as c:
        with pytest.raises(Failure) as caught:
            c.call("ModelInfer", infer("absent"))
        assert caught.value.code == Code.NOT_FOUND
        assert "unknown model" in caught.value.text


# ---- unary calls of gRPC

def message(model, size, **fields):
    strings = [b"", b"two", bytes(300)]
    raw = b"".join(struct.pack("<I", len(s)) + s for s in strings)
    return infer(model, tensor("A", "UINT8", [size], os.urandom(size)),
                 tensor("B", "INT32", [3], struct.pack("<3i", 1, -2, 3)),
                 tensor("C", "BYTES", [3], raw), id="i" * 200, **fields)


@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip])
@pytest.mark.parametrize("size", [0, 1, 127, 128, 70_000, 3_000_000])
@pytest.mark.parametrize("model", ["far", "broken"])
def test_call_goes_on_with_its_message(server, model, size, compression):
    """far is not known here, broken fails when its tensors are the core's."""
    request = message(model, size, model_version="2" * (model == "far"))
    with Client(server.port2, "/on") as c:
        answer = c.call("ModelInfer", request, compression=compression)
    assert list(answer.raw_output_contents) == list(request.raw_input_contents)
    assert answer.id == request.id
    assert answer.model_version == "2"


def test_typed_contents_go_on(server):
    request = infer("far", tensor("A", "UINT8", [2], {"uint_contents": [1, 2]}),
                    tensor("B", "INT32", [1], {"int_contents": [7]}),
                    tensor("C", "BYTES", [1], {"bytes_contents": [b"x"]}))
    with Client(server.port2, "/on") as c:
        answer = c.call("ModelInfer", request)
    assert [bytes(x) for x in answer.raw_output_contents] \
        == [b"\1\2", b"\7\0\0\0", b"\1\0\0\0x"]


def test_message_in_pieces_goes_on(server):
    data = frame(message("far", 5000))
    with H2(server.port2) as c:
        for piece in (1000, 17):
            stream = c.post("/on" + INFER, HEADERS)
            for at in range(0, len(data), piece):
                c.data(stream, data[at:at + piece], at + piece >= len(data))
            reply = c.read(stream)
            assert status_in(reply.block) == 0
            (_, body), = frames(reply.body)
            assert pb.ModelInferResponse.FromString(body) \
                .raw_output_contents[0] \
                == pb.ModelInferRequest.FromString(data[5:]) \
                .raw_input_contents[0]


def test_call_with_an_announced_length_goes_on(server):
    data = frame(message("far", 500))
    with H2(server.port2) as c:
        stream = c.post("/on" + INFER, {
            **HEADERS, "content-length": str(len(data))}, data)
        assert status_in(c.read(stream).block) == 0


def test_lengths_with_idle_bytes_keep_our_error(server):
    """The same message is shorter when it is put together again."""
    data = infer("far").SerializeToString() + b"\x3a\x81\x00x"
    with Client(server.port2, "/on") as c, pytest.raises(Failure) as caught:
        c.call("ModelInfer", data)
    assert caught.value.code == Code.NOT_FOUND


@pytest.mark.parametrize("compression", [None, grpc.Compression.Deflate])
def test_call_goes_on_to_another_model(server, compression):
    data = os.urandom(200_000)
    with Client(server.port2, "/second") as c:
        answer = c.call("ModelInfer", infer(
            "absent", tensor("IN", "UINT8", [len(data)], data)),
            compression=compression)
    assert answer.model_name == "id_uint8"
    assert answer.raw_output_contents[0] == data


def test_calls_about_a_model_go_on(server):
    with Client(server.port2, "/on") as c:
        assert c.call("ModelMetadata",
                      pb.ModelMetadataRequest(name="far")).versions \
            == ["2"]
        assert c.call("ModelConfig", pb.ModelConfigRequest(
            name="far", version="2")).config.name == "far"
        assert c.call("ModelMetadata", pb.ModelMetadataRequest(
            name="id_int32")).name == "id_int32"        # ours
        with pytest.raises(Failure) as caught:
            c.call("ModelMetadata", pb.ModelMetadataRequest(name="nowhere"))
        assert caught.value.code == Code.NOT_FOUND


def test_calls_of_rest_about_a_model_go_on(server):
    answer = server.get("/on/v2/models/far")
    assert (answer.status, answer.json()["name"]) == (200, "far")
    answer = server.get("/on/v2/models/nowhere")
    assert answer.status == 404


def test_timeout_goes_on_where_another_model_answers(server):
    """The far server does not know it either: its error is the answer."""
    with Client(server.port2, "/on") as c, pytest.raises(Failure) as caught:
        c.call("ModelInfer", numbers("slow", [1]))
    assert caught.value.code in (Code.NOT_FOUND, Code.DEADLINE_EXCEEDED,
                                 Code.UNAVAILABLE)


# ---- logs and metrics: a request that another handler answers has not failed

FAILED = re.compile(r"^nginx_inference_failed_total\S* (\d+)", re.M)


class Noted:
    """Of requests from now on."""

    def __init__(self, server):
        self.server = server
        self.access = AccessLog(server)
        self.before = len(server.log_text())
        self.count = self.failed()

    def failed(self):
        return int(FAILED.search(
            self.server.get("/metrics").body.decode())[1])

    def of(self, level):
        """Lines of ours of that level."""
        return re.findall(
            rf"\[{level}\] [^ ]+ \*\d+ (.* (?:failed|handed on to "
            r"error_page): .*?), client", self.server.log_text()[self.before:])


def test_request_that_goes_on_has_not_failed(server):
    noted = Noted(server)
    assert server.get("/on/v2/models/far").status == 200
    line, = noted.of("info")
    assert re.fullmatch(r'model_metadata request of model "far" handed on to '
                        r"error_page: .*unknown model: 'far'.*", line)
    assert noted.of("error") == [] and noted.failed() == noted.count
    fields = noted.access.line(model="far")
    assert (fields["status"], fields["error"], fields["code"]) \
        == (200, "", "Not found")


def test_call_that_goes_on_has_not_failed(server):
    noted = Noted(server)
    with Client(server.port2, "/on") as c:
        c.call("ModelInfer", message("far", 10))
    line, = noted.of("info")
    assert line.startswith('inference request of model "far" handed on')
    assert noted.of("error") == [] and noted.failed() == noted.count
    assert noted.access.line(model="far")["error"] == ""


def test_error_with_a_page_of_the_site_has_failed(server):
    """Its client is told the status, not only the page."""
    noted = Noted(server)
    answer = server.get("/kept/v2/models/absent")
    assert (answer.status, answer.body) == (404, b"a page of the site")
    line, = noted.of("error")
    assert line.startswith('model_metadata request of model "absent" failed')
    assert noted.of("info") == [] and noted.failed() == noted.count + 1
    assert "absent" in noted.access.line(model="absent")["error"]


def test_error_that_cannot_go_on_has_failed(server):
    noted = Noted(server)
    data = infer("far").SerializeToString() + b"\x3a\x81\x00x"
    with Client(server.port2, "/on") as c, pytest.raises(Failure):
        c.call("ModelInfer", data)
    assert len(noted.of("error")) == 1 and noted.of("info") == []
    assert noted.failed() == noted.count + 1


# ---- parts that are not served stay here: the upstream serves all of them

PARTS = "all repository trace logging"
CONTROL = "inference_model_control explicit; inference_load_model *;"
ALL = """
            inference all; inference_intercept_errors on;
            error_page 400 403 404 405 415 500 501 503 504 = """


@pytest.fixture(scope="module")
def open_far():
    with Server(fill_far, http2=True, http=CONTROL, parts=PARTS) as s:
        yield s


@pytest.fixture(scope="module")
def closed(open_far):
    """Models of the other server go on; /open/ serves all parts."""
    with Server(http2=True, http=CONTROL, parts="metrics", server=f"""
        location /v2/ {{ {ALL} @rest; }}
        location /inference.GRPCInferenceService/ {{ {ALL} @grpc; }}
        location /open/ {{
            inference {PARTS}; inference_intercept_errors on;
            error_page 404 = @opened;
        }}
        location @opened {{
            rewrite ^/open(/.*) $1 break;
            proxy_pass http://127.0.0.1:{open_far.port};
        }}
        location @rest {{ proxy_pass http://127.0.0.1:{open_far.port}; }}
        location @grpc {{ grpc_pass grpc://127.0.0.1:{open_far.port2}; }}
""") as s:
        yield s


@pytest.mark.parametrize("path", [
    "/v2/repository/index", "/v2/repository/models/far/load",
    "/v2/repository/models/far/unload", "/v2/logging", "/v2/trace/setting",
    "/v2/models/far/trace/setting", "/v2/systemsharedmemory/region/r/register",
    "/v2/systemsharedmemory/unregister", "/v2/cudasharedmemory/unregister",
    "/v2/nothing", "/v2//repository/index", "/v2/x/../repository/index"])
def test_part_that_is_not_served_does_not_go_on(closed, open_far, path):
    before = open_far.get("/v2/logging").json()
    answer = closed.post(path, b"{}")
    assert answer.status >= 400, answer
    assert answer.error
    if "sharedmemory" not in path:
        assert (answer.status, answer.error) == (404, "Not Found")
    assert open_far.status("/v2/models/far/ready") == 200
    assert open_far.get("/v2/logging").json() == before
    assert closed.get("/v2/models/far").json()["name"] == "far"


@pytest.mark.parametrize("method,request_", [
    ("RepositoryIndex", pb.RepositoryIndexRequest()),
    ("RepositoryModelLoad", pb.RepositoryModelLoadRequest(model_name="far")),
    ("RepositoryModelUnload",
     pb.RepositoryModelUnloadRequest(model_name="far")),
    ("LogSettings", pb.LogSettingsRequest()),
    ("TraceSetting", pb.TraceSettingRequest(model_name="far")),
    ("SystemSharedMemoryUnregister",
     pb.SystemSharedMemoryUnregisterRequest())])
def test_method_that_is_not_served_does_not_go_on(closed, open_far, method,
                                                  request_):
    with Client(closed.port2) as c:
        with pytest.raises(Failure) as caught:
            c.call(method, request_)
        assert caught.value.code == Code.UNIMPLEMENTED
        assert c.call("ModelMetadata",
                      pb.ModelMetadataRequest(name="far")).name == "far"
    assert open_far.status("/v2/models/far/ready") == 200


def test_part_that_is_served_goes_on(closed, open_far):
    answer = closed.get("/open/v2/models/far/trace/setting")
    assert answer.status == 200, answer
    assert answer.json() == open_far.get(
        "/v2/models/far/trace/setting").json()


# ---- streams

def test_events_go_on_before_the_first_one(server):
    answer = events.post(server.port, "/on" + events.path(
        "square", "generate_stream"), {"IN": 3})
    assert [e["OUT"] for e in answer.events()] == [3, 3, 3]


def test_later_message_of_a_stream_fails_alone(server):
    """test_stream_fallback.py has the first one."""
    with Client(server.port2, "/on") as c, c.stream() as stream:
        stream.send(numbers("id_int32", [1]))
        assert number(stream.read()) == 1
        stream.send(numbers("far", [1]), numbers("id_int32", [2]))
        assert "unknown model" in stream.read().error_message
        assert number(stream.read()) == 2


def test_all_go_on_while_no_core_is_there(far, tmp_path):
    """Nothing of a body has been read: a stream goes on, too."""
    s = Server(http2=True, server=f"""
        location /on/ {{
            inference all; inference_intercept_errors on;
            inference_timeout 200ms; error_page 503 = $fallback;
        }}
        {fallbacks(far)}
""")
    s.fields["core_options"] = f" external={tmp_path}/core"
    s.write_config()
    with s.start(wait=""), Client(s.port2, "/on") as c:
        request = message("far", 100_000)
        assert c.call("ModelInfer", request).raw_output_contents \
            == request.raw_input_contents
        with c.stream() as stream:
            for _ in range(3):
                stream.send(request)
                assert stream.read().infer_response.raw_output_contents \
                    == request.raw_input_contents
        answer = events.post(s.port, "/on" + events.path(
            "square", "generate_stream"), {"IN": 2})
        assert [e["OUT"] for e in answer.events()] == [2, 2]


# ---- the bytes of REST

def test_expect_and_chunks_go_on(server):
    body = json.dumps({"inputs": [
        {"name": "A", "datatype": "UINT8", "shape": [2], "data": [1, 2]},
        {"name": "B", "datatype": "INT32", "shape": [1], "data": [7]},
        {"name": "C", "datatype": "BYTES", "shape": [1],
         "data": ["x"]}]}).encode()
    with server.wire() as c:
        c.send(request_bytes("POST", "/on/v2/models/far/infer", headers={
            "Transfer-Encoding": "chunked"}))
        for byte in range(0, len(body), 50):
            piece = body[byte:byte + 50]
            c.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        c.send(b"0\r\n\r\n")
        answer = c.read()
        assert answer.status == 200, answer
        assert answer.json()["outputs"][1]["data"] == [7]
