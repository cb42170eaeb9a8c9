"""Limits, maps and logs know model, version and verb before anything of a
body is received."""

import gzip
import re
import struct

import grpc
import pytest
from tritonclient.grpc import service_pb2 as pb

from lib import models, process
from lib.access_log import FORMAT, WRITTEN, AccessLog
from lib.grpc_client import (SERVICE, Client, Failure, frame, infer, number,
                             numbers, status_in, tensor)
from lib.h2 import DATA, H2, WINDOW
from lib.server import SLOW, Server, nap
from lib.wire import request_bytes

Code = grpc.StatusCode
HEADERS = {"content-type": "application/grpc", "te": "trailers"}
INFER = SERVICE + "ModelInfer"
STREAM = SERVICE + "ModelStreamInfer"
PADDED = 8                                      # flag of a frame
PAD = b"\xa2\x06\x88\x27" + bytes(5000)         # field 100
PARTS = "health metadata config infer statistics repository metrics " \
        "trace logging shared_memory"
USED = re.compile(r"request_arena_used_bytes\S* (\d+)")


def prepare(server):
    (server.prefix / "users").write_text("one:{PLAIN}secret\n")
    return server.start()


@pytest.fixture(scope="module")
def server():
    with prepare(Server(
            models.standard_repository, http2=True, parts=PARTS,
            http=FORMAT + """
    limit_req_zone $inference_model$http_x_tenant zone=model:1m rate=1r/m;
    limit_req_zone $inference_model zone=versions:1m rate=1r/m;
    limit_req_status 429;
    map $inference_model $secret { default "off"; id_fp32 "models"; }
    map $inference_model $listed { default "models"; id_int32 "off"; }
""", server=WRITTEN + """
        location /limited/ {
            inference infer; limit_req zone=model;
        }
        location /one { inference_model id_int32; limit_req zone=model; }
        location /guarded/ {
            inference """ + PARTS + """;
            auth_basic "models"; auth_basic_user_file users;
        }
        location /guarded/one {
            inference_model id_int32 1;
            auth_basic "models"; auth_basic_user_file users;
        }
        location /mapped/ {
            inference infer;
            auth_basic $secret; auth_basic_user_file users;
        }
        location /paged/ {
            inference infer; auth_basic models; auth_basic_user_file users;
            error_page 401 /page.html;
        }
        location = /page.html { return 200 "a page"; }
        location /hasty/ {
            inference infer; client_body_timeout 300ms;
            limit_req zone=model;
        }
        location /idle/ { inference infer; client_body_timeout 300ms; }
        location /listed/ {
            inference infer; client_body_timeout 300ms;
            auth_basic $listed; auth_basic_user_file users;
        }
        location /redirected/ {
            inference health; deny all; error_page 403 = @limited;
        }
        location /tried/ { inference health; try_files /absent @limited; }
        location @limited {
            rewrite ^/\\w+(/.*) $1 break; inference infer; limit_req zone=model;
        }
""")) as s:
        yield s


def log_of(server, path):
    return AccessLog(server), {"uri": path}


def refused(call, code):
    with pytest.raises(Failure) as caught:
        call()
    assert caught.value.code == code, caught.value
    return caught.value.text


# ---- limits by model and tenant

def test_rest_is_limited_by_model_and_tenant(server):
    def status(model, tenant):
        with server.wire() as c:
            c.send(request_bytes(
                "POST", f"/limited/v2/models/{model}/infer",
                b'{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],'
                b'"data":[5]}]}', {"X-Tenant": tenant}))
            return c.read().status
    assert [status("id_int32", "rest-a") for _ in range(2)] == [200, 429]
    assert [status("id_int32", "rest-b") for _ in range(2)] == [200, 429]
    assert [status("absent", "rest-a") for _ in range(2)] == [404, 429]


@pytest.mark.parametrize("how", ["plain", "gzip", "deflate"])
def test_grpc_is_limited_by_model_and_tenant(server, how):
    compression = {"gzip": grpc.Compression.Gzip,
                   "deflate": grpc.Compression.Deflate}.get(how)

    def call(client, model, tenant):
        return client.call("ModelInfer", numbers(model, [5] * 3000),
                           metadata=[("x-tenant", how + tenant)],
                           compression=compression)
    with Client(server.port2, "/limited") as c:
        for tenant in "ab":
            assert len(call(c, "id_int32", tenant).raw_output_contents) == 1
            refused(lambda: call(c, "id_int32", tenant), Code.UNAVAILABLE)
        refused(lambda: call(c, "absent", "a"), Code.NOT_FOUND)
        refused(lambda: call(c, "absent", "a"), Code.UNAVAILABLE)


def test_stream_is_limited_by_its_first_message(server):
    def first(client):
        with client.stream(metadata=[("x-tenant", "stream")]) as stream:
            nap(0.05)                   # the call is there before its message
            stream.send(numbers("id_int32", [7]))
            return number(stream.read())
    with Client(server.port2, "/limited") as c:
        assert first(c) == 7
        refused(lambda: first(c), Code.UNAVAILABLE)


def test_location_of_one_model_is_limited(server):
    with server.wire() as c:
        for status in (200, 429):
            answer = c.post("/one", b'{"inputs":[{"name":"IN","datatype":'
                            b'"INT32","shape":[1],"data":[5]}]}',
                            {"X-Tenant": "one"})
            assert answer.status == status, answer
    with Client(server.port2, "/one") as c:
        meta = [("x-tenant", "two")]
        assert c.numbers("any", [5], metadata=meta) == [5]
        refused(lambda: c.numbers("any", [5], metadata=meta),
                Code.UNAVAILABLE)


def test_access_may_hang_on_the_model(server):
    with Client(server.port2, "/mapped") as c:
        assert c.numbers("id_int32", [5]) == [5]
        refused(lambda: c.numbers("id_fp32", [5]), Code.UNAUTHENTICATED)
        with c.stream() as stream:
            stream.send(numbers("id_int32", [7]))
            assert number(stream.read()) == 7
        with c.stream() as stream:
            stream.send(numbers("id_fp32", [7]))
            refused(stream.read, Code.UNAUTHENTICATED)
    path = "/mapped/v2/models/%s/infer"
    assert server.post(path % "id_fp32", b"{}").status == 401
    assert server.post(path % "id_int32", b"{}").status == 400


@pytest.mark.parametrize("other", [
    numbers("id_fp32", [7]), numbers("id_int32", [7], model_version="1"),
    numbers("", [7])], ids=["model", "version", "none"])
def test_messages_keep_to_the_names_that_access_has_seen(server, other):
    with Client(server.port2, "/mapped") as c, c.stream() as stream:
        for value in range(2):
            stream.send(numbers("id_int32", [value]))
            assert number(stream.read()) == value
            stream.send(other)
            assert "depend on model and version" in stream.read().error_message


def test_message_of_a_stream_hides_no_name(server):
    data = b"\x0a\x08id_int32" + PAD \
        + numbers("id_fp32", [7]).SerializeToString()
    with Client(server.port2, "/mapped") as c, c.stream(raw=True) as stream:
        stream.send(data)
        assert "depend on model and version" in stream.read().error_message


def test_messages_mix_models_where_nobody_has_asked(server):
    """A log alone asks when all is decided."""
    with Client(server.port2, "/idle") as c, c.stream() as stream:
        for value in range(3):
            stream.send(numbers("id_int32", [value]),
                        infer("id_uint8", tensor("IN", "UINT8", [4],
                                                 bytes([value] * 4))))
            assert number(stream.read()) == value
            assert number(stream.read()) == value * 0x01010101


@pytest.mark.parametrize("path", ["/redirected", "/tried"])
def test_names_are_known_behind_a_location_without_the_method(server, path):
    meta = [("x-tenant", path)]
    with Client(server.port2, path) as c:
        for model, code in (("absent", Code.NOT_FOUND),
                            ("other", Code.NOT_FOUND),
                            ("absent", Code.UNAVAILABLE)):
            refused(lambda: c.numbers(model, [5], metadata=meta), code)


# ---- each method, when access is denied

CALLS = [
    ("ModelInfer", infer("m", model_version="3"), "m", "3", "infer"),
    ("ModelStreamInfer", infer("m", model_version="3"), "m", "3",
     "stream_infer"),
    ("ModelReady", pb.ModelReadyRequest(name="m", version="12"), "m", "12",
     "model_ready"),
    ("ModelMetadata", pb.ModelMetadataRequest(name="m"), "m", "",
     "model_metadata"),
    ("ModelConfig", pb.ModelConfigRequest(name="m", version="2"), "m", "2",
     "config"),
    ("ModelStatistics", pb.ModelStatisticsRequest(name="m"), "m", "",
     "statistics"),
    ("RepositoryModelLoad", pb.RepositoryModelLoadRequest(
        repository_name="r", model_name="m"), "m", "", "load"),
    ("RepositoryModelUnload", pb.RepositoryModelUnloadRequest(model_name="m"),
     "m", "", "unload"),
    ("TraceSetting", pb.TraceSettingRequest(model_name="m"), "m", "",
     "trace"),
    ("RepositoryIndex", pb.RepositoryIndexRequest(repository_name="r"), "",
     "", "index"),
    ("LogSettings", pb.LogSettingsRequest(), "", "", "logging"),
    ("SystemSharedMemoryStatus", pb.SystemSharedMemoryStatusRequest(name="r"),
     "", "", "system_shm"),
    ("CudaSharedMemoryUnregister",
     pb.CudaSharedMemoryUnregisterRequest(name="r"), "", "", "cuda_shm"),
    ("ServerReady", pb.ServerReadyRequest(), "", "", "ready")]


@pytest.mark.parametrize("method,message,model,version,verb", CALLS,
                         ids=[c[0] for c in CALLS])
def test_names_of_each_method(server, method, message, model, version, verb):
    path = "/guarded" + SERVICE + method
    log, wanted = log_of(server, path)
    with H2(server.port2) as c:
        assert status_in(c.read(c.post(path, HEADERS,
                                       frame(message))).block) == 16
    line = log.line(**wanted)
    assert (line["model"], line["version"], line["verb"]) \
        == (model, version, verb)


REST = [("/v2/models/m/infer", "m", "", "infer"),
        ("/v2/models/m/versions/7/ready", "m", "7", "model_ready"),
        ("/v2/models/m/versions/07/stats", "m", "7", "statistics"),
        ("/v2/repository/models/m/load", "m", "", "load"),
        ("/v2/health/live", "", "", "live"), ("/v2/nothing", "", "", ""),
        ("/one", "id_int32", "1", "infer")]


@pytest.mark.parametrize("path,model,version,verb", REST)
def test_names_of_rest_paths(server, path, model, version, verb):
    path = "/guarded" + path
    log, wanted = log_of(server, path)
    answer = server.post(path, b"{}") if verb == "infer" else server.get(path)
    assert answer.status == 401
    line = log.line(**wanted)
    assert (line["model"], line["version"], line["verb"]) \
        == (model, version, verb)


@pytest.mark.parametrize("protocol", ["rest", "grpc"])
def test_names_stay_behind_a_page_of_the_site(server, protocol):
    """The log's location is the page's."""
    log, wanted = AccessLog(server), {"uri": "/page.html"}
    if protocol == "rest":
        assert server.post("/paged/v2/models/m/versions/7/infer",
                           b"{}").status == 401
    else:
        with H2(server.port2) as c:
            assert status_in(c.read(c.post(
                "/paged" + INFER, HEADERS,
                frame(infer("m", model_version="7")))).block) == 16
    line = log.line(**wanted)
    assert (line["model"], line["version"], line["verb"]) \
        == ("m", "7", "infer")
    assert server.get("/page.html").status == 200       # one of its own
    assert log.lines(2, **wanted)[1]["verb"] == ""


# ---- nothing is received

def used(server):
    return int(USED.search(server.get("/metrics").body.decode())[1])


def test_upload_without_access_leaves_the_arena_empty(server):
    """Of 1 GiB that are announced as much is sent as nginx takes."""
    path = "/guarded/v2/models/id_uint8/infer"
    # an earlier request may end behind its answer
    assert process.wait_until(lambda: used(server) == 0, 10 * SLOW)
    with server.wire() as c:
        c.send(request_bytes("POST", path, headers={
            "Content-Length": str(1 << 30),
            "Inference-Header-Content-Length": "0"}))
        for _ in range(64):
            try:
                c.send(bytes(1 << 20))
            except OSError:
                break
            assert used(server) == 0
        assert c.read().status == 401


@pytest.mark.parametrize("method", [INFER, STREAM])
def test_message_without_access_leaves_the_arena_empty(server, method):
    log, wanted = log_of(server, "/guarded" + method)
    data = frame(infer("id_uint8", model_version="3").SerializeToString()
                 + b"\x3a\x80\x80\x80\x80\x02", size=1 << 30)
    with H2(server.port2) as c:
        stream = c.post("/guarded" + method, HEADERS)
        c.data(stream, data)
        sent = len(data)
        while not c.streams[stream].ended and sent + 16384 <= WINDOW:
            c.data(stream, bytes(16384))
            sent += 16384
            c.sync()
            assert used(server) == 0
        assert status_in(c.read(stream).block) == 16
        assert c.streams[stream].grants == []
    assert log.line(**wanted)["model"] == "id_uint8"


# ---- how the first bytes come

def test_message_in_single_bytes(server):
    """Others of the connection go on meanwhile."""
    data = frame(numbers("id_int32", [5], model_version="1"))
    with H2(server.port2) as c:
        stream = c.post("/limited" + INFER, {**HEADERS, "x-tenant": "bytes"})
        for i, byte in enumerate(data):
            c.data(stream, bytes([byte]), i == len(data) - 1)
            c.sync()
        other = c.post("/mapped" + INFER, HEADERS, data)
        assert status_in(c.read(other).block) == 0
        reply = c.read(stream)
        assert status_in(reply.block) == 0
        reply = pb.ModelInferResponse.FromString(reply.body[5:])
        assert reply.raw_output_contents[0] == struct.pack("<i", 5)
        late = c.post("/limited" + INFER, {**HEADERS, "x-tenant": "bytes"})
        c.data(late, data[:-1])
        c.sync()
        assert c.streams[late].status is None       # nothing is decided yet
        c.data(late, data[-1:], True)
        assert status_in(c.read(late).block) == 14


@pytest.mark.parametrize("end", ["reset", "close"])
@pytest.mark.parametrize("method", [INFER, STREAM])
def test_client_leaves_before_its_first_message(server, end, method):
    log, wanted = log_of(server, "/limited" + method)
    with H2(server.port2) as c:
        streams = [c.post("/limited" + method, HEADERS) for _ in range(5)]
        c.sync()
        for stream in streams:
            c.data(stream, b"\0\0")
        c.sync()
        if end == "reset":
            for stream in streams:
                c.reset(stream)
            c.sync()
    assert {x["status"] for x in log.lines(5, model="", **wanted)} == {499}
    assert server.get("/v2/health/live").status == 200


def test_unary_call_without_a_message_ends_in_time(server):
    with H2(server.port2) as c:
        stream = c.post("/hasty" + INFER, HEADERS)
        assert c.read(stream).reset is not None


def test_stream_may_be_idle_before_its_first_message(server):
    with Client(server.port2, "/idle") as c, c.stream() as stream:
        nap(0.8)
        stream.send(numbers("id_int32", [7]))
        assert number(stream.read()) == 7


def test_idle_stream_gets_nothing_past_its_limits(server):
    with Client(server.port2, "/hasty") as c, \
            c.stream(metadata=[("x-tenant", "idle")]) as stream:
        nap(0.8)
        stream.send(numbers("id_int32", [7]))
        assert "before client_body_timeout" in stream.read().error_message


def test_idle_stream_has_no_access_where_models_are_listed(server):
    with Client(server.port2, "/listed") as c:
        with c.stream() as stream:
            stream.send(numbers("id_int32", [7]))
            assert number(stream.read()) == 7
        with c.stream() as stream:
            refused(stream.read, Code.UNAUTHENTICATED)


def test_padding_does_not_hide_the_name(server):
    """It takes the window, and the names are still waited for."""
    data = frame(PAD + numbers("id_int32", [5]).SerializeToString())
    with H2(server.port2) as c:
        stream = c.post("/hasty" + INFER, {**HEADERS, "x-tenant": "padding"})
        sent = 0
        while sent + 257 <= WINDOW:
            byte, data = data[:1], data[1:]
            c.frame(DATA, PADDED, stream, bytes([255]) + byte + bytes(255))
            sent += 257
        assert c.read(stream).reset is not None
        assert c.streams[stream].status is None


def test_call_without_a_body(server):
    with H2(server.port2) as c:
        for body in (b"", frame(b""), frame(b"", size=9), b"\0\0"):
            stream = c.post("/guarded" + INFER, HEADERS, body)
            assert status_in(c.read(stream).block) == 16


@pytest.mark.parametrize("data", [
    frame(gzip.compress(b"no protobuf"), flag=1), frame(b"garbage", flag=1),
    frame(b"\x0a\xff"), frame(b"\xff" * 40), frame(b"\x0a\x05ab"),
    frame(b"x", flag=7)],
    ids=["no protobuf", "not compressed", "endless length", "endless tag",
         "cut name", "unknown flag"])
def test_bytes_that_name_nothing(server, data):
    path = "/guarded" + INFER
    log, wanted = log_of(server, path)
    with H2(server.port2) as c:
        assert status_in(c.read(c.post(path, HEADERS, data)).block) == 16
    assert log.line(**wanted)["model"] == ""


# ---- another name behind the first bytes

@pytest.mark.parametrize("before,behind", [
    (b"", PAD + b"\x0a\x08id_int32"), (b"\x0a\x05other",
                                       PAD + b"\x0a\x08id_int32"),
    (b"\x0a\x08id_int32", PAD + b"\x12\x011")])
def test_names_behind_the_first_bytes_are_rejected(server, before, behind):
    message = numbers("", [5]).SerializeToString()
    data = before + behind + message
    with Client(server.port2, "/mapped") as c:
        text = refused(lambda: c.call("ModelInfer", data),
                       Code.INVALID_ARGUMENT)
        assert "first 4096 bytes" in text
        assert c.call("ModelInfer", b"\x0a\x05other\x0a\x08id_int32" + PAD
                      + message).model_name == "id_int32"


def test_name_of_a_load_behind_its_files_is_rejected(server):
    files = pb.RepositoryModelLoadRequest(
        parameters={"file:1/x": pb.ModelRepositoryParameter(
            bytes_param=bytes(5000))}).SerializeToString()
    with Client(server.port2) as c:
        text = refused(lambda: c.call("RepositoryModelLoad",
                                      files + b"\x12\x01m"),
                       Code.INVALID_ARGUMENT)
        assert "first 4096 bytes" in text


def test_small_window_leaves_the_names_unknown(make_server):
    server = make_server(models.standard_repository, http2=True,
                         http=FORMAT, server=WRITTEN + """
        http2_body_preread_size 0;
        location /known/ { inference infer; }""")
    log, wanted = log_of(server, "/known" + INFER)
    with Client(server.port2, "/known") as c:
        assert c.numbers("id_int32", [5]) == [5]
    assert log.line(**wanted)["model"] == "id_int32"        # as it was read


def test_worker_leaves_with_an_idle_stream(make_server):
    server = make_server(models.standard_repository, http2=True, http=FORMAT,
                         server=WRITTEN)
    with Client(server.port2) as c, c.stream() as stream:
        c.numbers("id_int32", [5])
        old = server.workers()
        server.signal("HUP")
        assert "leaving" in refused(stream.read, Code.UNAVAILABLE)
        assert process.wait_until(
            lambda: not set(old) & set(server.workers()), 20 * SLOW)
