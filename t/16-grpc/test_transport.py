"""The carriers of a call: frames, compression, headers, locations, and what
other modules of nginx answer."""

import gzip
import zlib

import grpc
import pytest
from tritonclient.grpc import service_pb2 as pb

from lib import certificate
from lib.access_log import FORMAT, WRITTEN, AccessLog
from lib.curl import curl_http2
from lib.grpc_client import (SERVICE, Client, Failure, frame, frames, infer,
                             number, numbers, status_in, tensor)
from lib.h2 import H2
from lib.server import free_port
from lib.wire import request_bytes

Code = grpc.StatusCode
HEADERS = {"content-type": "application/grpc", "te": "trailers"}
STREAM = SERVICE + "ModelStreamInfer"
INFER = SERVICE + "ModelInfer"
LIVE = SERVICE + "ServerLive"
EVEN = numbers("id_int32", [7] * 5000)      # compresses well


def inferred(message):
    return pb.ModelInferResponse.FromString(message).raw_output_contents[0]


# ---- frames

@pytest.mark.parametrize("method", ["ServerLive", "ServerReady"])
def test_no_answer_before_the_message(server, method):
    """A client takes an answer before the end of its call for a reset."""
    with H2(server.port2) as c:
        stream = c.post(SERVICE + method, HEADERS)
        c.sync()
        assert c.streams[stream].status is None
        for byte in frame(b"\xf8\x07\x01"):
            c.data(stream, bytes([byte]))
            c.sync()
        assert c.streams[stream].status is None
        c.data(stream, b"", end=True)
        reply = c.read(stream)
        assert frames(reply.body) == [(0, b"\x08\x01")]
        assert status_in(reply.block) == 0
        c.sync()
        assert reply.reset is None


@pytest.mark.parametrize("body,status", [
    (frame(b""), 0), (b"", 13), (frame(b"", size=3), 13),
    (frame(b"") + frame(b""), 12), (frame(b"", flag=2), 13),
    (frame(b"x", flag=1), 13), (frame(b"\x12\x05x"), 13)])
def test_messages_of_a_call_that_the_worker_answers(server, body, status):
    with H2(server.port2) as c:
        assert status_in(c.read(c.post(LIVE, HEADERS, body)).block) == status


@pytest.mark.parametrize("data,status", [
    (b"", 0), (b"\xf8\x07\x01", 0), (b"\x12\x05x", 13)])
def test_it_may_be_compressed(server, data, status):
    with H2(server.port2) as c:
        reply = c.read(c.post(LIVE, {**HEADERS, "grpc-encoding": "gzip"},
                              frame(gzip.compress(data), flag=1)))
    assert status_in(reply.block) == status


@pytest.mark.parametrize("size", [1, 2, 5, 6, 7])
def test_a_message_in_many_frames(server, size):
    data = frame(numbers("id_int32", [1, 2, 3], id="cut",
                         options={"custom": "x"}))
    with H2(server.port2) as c:
        stream = c.post(INFER, HEADERS)
        for i in range(0, len(data), size):
            c.data(stream, data[i:i + size])
            if i % 16 == 0:
                c.sync()            # so nginx reads it on its own
        c.data(stream, b"", end=True)
        reply = c.read(stream)
    assert status_in(reply.block) == 0
    (flag, message), = frames(reply.body)
    assert flag == 0
    assert inferred(message) == numbers(
        "id_int32", [1, 2, 3]).raw_input_contents[0]


@pytest.mark.parametrize("size", [1, 3, 50, 10_000])
def test_many_messages_in_frames_of_any_size(server, size):
    count = 40
    data = b"".join(frame(numbers("id_int32", [i])) for i in range(count))
    with H2(server.port2) as c:
        stream = c.post(STREAM, HEADERS)
        for i in range(0, len(data), size):
            c.data(stream, data[i:i + size])
        c.data(stream, b"", end=True)
        reply = c.read(stream)
    assert status_in(reply.block) == 0
    answers = [pb.ModelStreamInferResponse.FromString(m)
               for _, m in frames(reply.body)]
    assert [number(a) for a in answers] == list(range(count))


def test_two_streams_and_calls_on_one_connection(server):
    with H2(server.port2) as c:
        streams = [c.post(STREAM, HEADERS) for _ in range(2)]
        for i in range(10):
            for stream in streams:
                c.data(stream, frame(numbers("id_int32", [i])))
            reply = c.read(c.post(LIVE, HEADERS, frame(b"")))
            assert frames(reply.body) == [(0, b"\x08\x01")]
        for stream in streams:
            c.data(stream, b"", end=True)
            reply = c.read(stream)
            assert [number(pb.ModelStreamInferResponse.FromString(m))
                    for _, m in frames(reply.body)] == list(range(10))


# ---- compression

@pytest.mark.parametrize("name,pack", [("gzip", gzip.compress),
                                       ("deflate", zlib.compress)])
@pytest.mark.parametrize("count", [0, 1, 100, 5000])
def test_compressed_requests(server, name, pack, count):
    request = numbers("id_int32", range(count))
    data = frame(pack(request.SerializeToString()), flag=1)
    with H2(server.port2) as c:
        reply = c.read(c.post(INFER, {**HEADERS, "grpc-encoding": name},
                              data))
    assert status_in(reply.block) == 0
    assert inferred(frames(reply.body)[0][1]) == request.raw_input_contents[0]


def test_a_request_that_could_be_compressed_and_is_not(server):
    with H2(server.port2) as c:
        reply = c.read(c.post(INFER, {**HEADERS, "grpc-encoding": "gzip"},
                              frame(numbers("id_int32", [1]))))
    assert status_in(reply.block) == 0


def test_compressed_calls(server):
    with H2(server.port2) as c:
        reply = c.read(c.post(SERVICE + "ModelReady",
                              {**HEADERS, "grpc-encoding": "gzip"}, frame(
            gzip.compress(pb.ModelReadyRequest(
                name="id_int32").SerializeToString()), flag=1)))
    assert frames(reply.body) == [(0, b"\x08\x01")]


@pytest.mark.parametrize("method", ["ServerLive", "ServerReady"])
def test_compressed_calls_have_a_limit(server, method):
    """65536 bytes once they are inflated, also where nothing of them is
    kept."""
    unknown = b"\x7a\x80\x80\x04" + bytes(65536)  # field 15
    with Client(server.port2) as client:
        with pytest.raises(Failure) as e:
            client.call(method, unknown, compression=grpc.Compression.Gzip)
    assert e.value.code == Code.RESOURCE_EXHAUSTED
    assert e.value.text.endswith(" vs. 65536)"), e.value.text


@pytest.mark.parametrize("data", [
    b"no gzip at all", gzip.compress(bytes(1000))[:-10],
    gzip.compress(EVEN.SerializeToString())[:40],
    gzip.compress(b"x") + b"more", b"",
    gzip.compress(EVEN.SerializeToString()) + b"more",
    gzip.compress(EVEN.SerializeToString()) + gzip.compress(b"")],
    ids=["garbage", "no checksum", "half", "tail", "nothing",
         "a message and more", "two members"])
def test_compressed_bytes_that_are_broken(server, data):
    with H2(server.port2) as c:
        for path in (INFER, STREAM):
            reply = c.read(c.post(path, {**HEADERS, "grpc-encoding": "gzip"},
                                  frame(data, flag=1)))
            assert status_in(reply.block) in (3, 8, 13) or path == STREAM \
                and pb.ModelStreamInferResponse.FromString(
                    frames(reply.body)[0][1]).error_message


@pytest.mark.parametrize("name", ["snappy", "GZIP2", ""])
def test_encodings_that_are_unknown(server, name):
    with H2(server.port2) as c:
        reply = c.read(c.post(INFER, {**HEADERS, "grpc-encoding": name},
                              frame(b"", flag=1)))
    assert status_in(reply.block) == 12


LEVELS = [("low", "identity,deflate,gzip", gzip.decompress),
          ("medium", "identity, deflate, gzip", zlib.decompress),
          ("high", "gzip,deflate", zlib.decompress),
          ("high", "gzip", gzip.decompress),
          ("low", "deflate", zlib.decompress),
          ("low", "identity", None), ("high", "", None),
          ("none", "identity,deflate,gzip", None)]


@pytest.mark.parametrize("level,accept,unpack", LEVELS)
def test_compressed_responses(start, level, accept, unpack):
    server = start(http=f"    inference_grpc_compression {level};")
    headers = {**HEADERS, **({"grpc-accept-encoding": accept} if accept
                             else {})}
    with H2(server.port2) as c:
        for path in (INFER, STREAM):
            reply = c.read(c.post(path, headers, frame(EVEN)))
            assert status_in(reply.block) == 0
            (flag, message), = frames(reply.body)
            if path == STREAM and unpack is None or path == INFER:
                assert flag == (unpack is not None)
            if flag:
                message = unpack(message)
            if path == STREAM:
                message = pb.ModelStreamInferResponse.FromString(message) \
                    .infer_response.SerializeToString()
            assert inferred(message) == EVEN.raw_input_contents[0]
        live = c.read(c.post(LIVE, headers, frame(b"")))
        assert frames(live.body) == [(0, b"\x08\x01")]
    with Client(server.port2) as client, client.stream() as stream:
        for _ in range(3):
            assert client.numbers("id_int32", [7] * 5000) == [7] * 5000
            stream.send(EVEN)
            assert number(stream.read()) == 7


# ---- headers

@pytest.mark.parametrize("kind", [
    "application/grpc", "application/grpc+proto", "application/grpc;x=y",
    "Application/GRPC"])
def test_content_types_of_grpc(server, kind):
    with H2(server.port2) as c:
        reply = c.read(c.post(LIVE, {**HEADERS, "content-type": kind},
                              frame(b"")))
    assert frames(reply.body) == [(0, b"\x08\x01")]
    assert status_in(reply.block) == 0


@pytest.mark.parametrize("kind", ["application/grpcx", "application/json",
                                  "application/grp", None])
def test_other_content_types_are_rest(server, kind):
    headers = {"te": "trailers", **({"content-type": kind} if kind else {})}
    with H2(server.port2) as c:
        reply = c.read(c.post(LIVE, headers, frame(b"")))
    assert reply.status == 404
    assert status_in(reply.block) is None


def test_http_1_is_rest(server):
    with server.wire() as c:
        c.send(request_bytes("POST", LIVE, frame(b""), HEADERS))
        assert c.read().status == 404


@pytest.mark.parametrize("path,status", [
    (LIVE, 0), (LIVE + "?argument", 0), (LIVE + "/", 12), ("/" + LIVE, 12),
    ("/." + LIVE, 12), ("/x/.." + LIVE, 12), (LIVE.replace("L", "%4C"), 12),
    (LIVE.replace("/S", "%2FS"), 12)])
def test_paths_of_a_method(server, path, status):
    """As it is sent: what nginx decodes or resolves is another one."""
    with H2(server.port2) as c:
        reply = c.read(c.post(path, HEADERS, frame(b"")))
    assert (reply.status, status_in(reply.block)) == (200, status)


@pytest.mark.parametrize("te", [None, "gzip", ""])
def test_te_is_asked_for(server, te):
    headers = {"content-type": "application/grpc",
               **({} if te is None else {"te": te})}
    with H2(server.port2) as c:
        reply = c.read(c.post(LIVE, headers, frame(b"")))
    assert (reply.status, status_in(reply.block)) == (200, 2)


@pytest.mark.parametrize("method", ["GET", "PUT", "HEAD"])
def test_other_methods_of_http(server, method):
    with H2(server.port2) as c:
        reply = c.read(c.post(LIVE, HEADERS, b"", method=method))
    assert (reply.status, status_in(reply.block)) == (200, 2)


@pytest.mark.parametrize("path,options,message", [
    (LIVE, ["-X", "POST"], "Missing :te header"),
    (LIVE, ["-H", "te: trailers"], "Bad method header"),
    (SERVICE + "None", ["-X", "POST", "-H", "te: trailers"], None)])
def test_words_of_the_transport(server, path, options, message):
    """Those of gRPC's own library; none for a method that is not known."""
    status, head = curl_http2(
        "-i", "-H", "content-type: application/grpc", *options,
        f"http://127.0.0.1:{server.port2}{path}")
    assert status == 200
    lines = head.decode().split("\r\n")
    assert f"grpc-status: {2 if message else 12}" in lines, head
    assert [line for line in lines if line.startswith("grpc-message:")] \
        == ([f"grpc-message: {message}"] if message else []), head


# ---- connections

def test_connections_of_many_calls(server):
    """nginx's 1000 requests are not for a location with inference."""
    with H2(server.port2) as c:
        for _ in range(1200):
            assert c.read(c.post(LIVE, HEADERS, frame(b""))).status == 200


def test_connections_end_where_the_server_says_so(start):
    server = start(server="        keepalive_requests 5;\n")
    with H2(server.port2) as c, pytest.raises(ConnectionError):
        for _ in range(10):
            assert c.read(c.post(LIVE, HEADERS, frame(b""))).status == 200


# ---- locations

def fails(client, call, code):
    with pytest.raises(Failure) as e:
        call(client)
    assert e.value.code == code, e.value
    return e.value.text


def live(client):
    return client.call("ServerLive").live


def one(client):
    return client.numbers("id_int32", [5])


def in_stream(client):
    with client.stream() as stream:
        stream.send(numbers("id_int32", [5]))
        stream.end()
        return [number(a) for a in stream.rest()]


def test_locations(start):
    server = start(server="""
        location /some/prefix/ { inference health infer; }
        location = /inference.GRPCInferenceService/RepositoryIndex {
            deny all;
            inference repository;
        }
""")
    with Client(server.port2, "/some/prefix") as c:
        assert live(c) is True
        assert one(c) == in_stream(c) == [5]
        fails(c, lambda c: c.call("ServerMetadata"), Code.UNIMPLEMENTED)
    with Client(server.port2) as c:
        assert live(c) is True
        fails(c, lambda c: c.call("RepositoryIndex"), Code.PERMISSION_DENIED)
        assert one(c) == [5]


def test_a_location_of_a_model(start):
    """It has inferences only, and of that model under any name."""
    server = start(server="""
        location /inference.GRPCInferenceService { inference_model id_int32; }
        location /model/ { inference_model id_int32; }
""")
    with Client(server.port2, "/model") as c:
        assert one(c) == in_stream(c) == [5]
        fails(c, lambda c: c.call("ServerMetadata"), Code.UNIMPLEMENTED)
    with Client(server.port2) as c:
        assert one(c) == in_stream(c) == [5]
        for name in ("id_fp32", "absent", ""):
            answer = c.infer(name, tensor("IN", "INT32", [1], b"abcd"))
            assert answer.model_name == "id_int32"
            assert list(answer.raw_output_contents) == [b"abcd"]
        for method in ("ServerLive", "ServerMetadata", "RepositoryIndex"):
            fails(c, lambda c, m=method: c.call(m), Code.UNIMPLEMENTED)


def test_parts_that_are_not_listed(start):
    """The client is told the status alone, as by Triton."""
    server = start(parts="health", http=FORMAT, server=WRITTEN)
    log = AccessLog(server)
    with Client(server.port2) as c:
        assert live(c) is True
        for call in (one, in_stream, lambda c: c.call("ServerMetadata"),
                     lambda c: c.call("RepositoryIndex")):
            fails(c, call, Code.UNIMPLEMENTED)
    log.lines(4, code="Unsupported", error="")
    assert server.log_text().count(
        "[error]") == server.log_text().count(
            "inference request failed: the location does not serve this "
            "method, client: ") == 4


def test_tls(start, tmp_path):
    cert, key = certificate.make(tmp_path)
    port = free_port()
    start(server=f"""
        listen 127.0.0.1:{port} ssl http2;
        ssl_certificate {cert};
        ssl_certificate_key {key};
""")
    with grpc.secure_channel(
            f"localhost:{port}", grpc.ssl_channel_credentials(
                cert.read_bytes())) as channel:
        raw = channel.unary_unary(INFER)(
            numbers("id_int32", [5]).SerializeToString(), timeout=60)
    assert inferred(raw) == b"\5\0\0\0"


# ---- logs

def test_the_status_that_logs_know(start, tmp_path):
    log = tmp_path / "access.log"
    tmp_path.chmod(0o755)
    server = start(
        http="    log_format status '$inference_verb $inference_grpc_status';",
        server=f"        access_log {log} status;\n" + """
        location /closed/ { deny all; inference infer; }
""")
    with Client(server.port2) as c:
        assert one(c) == in_stream(c) == [5]
        fails(c, lambda c: c.call("ModelInfer", infer("absent")),
              Code.NOT_FOUND)
        assert live(c)
    with Client(server.port2, "/closed") as c:
        fails(c, one, Code.PERMISSION_DENIED)
    assert server.get("/v2/health/live").status == 200
    with H2(server.port2) as c:
        stream = c.post(INFER, HEADERS)
        c.sync()
        c.reset(stream)
        c.sync()
    server.stop()
    told = [line for line in log.read_text().splitlines()
            if not line.startswith(("ready", "live -"))]
    assert told == ["infer 0", "stream_infer 0", "infer 5", "live 0",
                    "infer 7", "infer -"], told


# ---- other modules

def test_auth_basic(start, tmp_path):
    users = tmp_path / "users"
    users.write_text("me:{PLAIN}secret\n")
    tmp_path.chmod(0o755)
    server = start(server=f"""
        location /closed/ {{
            auth_basic "here"; auth_basic_user_file {users};
            inference health infer;
        }}
""")
    with Client(server.port2, "/closed") as c:
        text = fails(c, live, Code.UNAUTHENTICATED)
        assert "401" in text
        fails(c, one, Code.UNAUTHENTICATED)
        fails(c, in_stream, Code.UNAUTHENTICATED)
        key = (("authorization", "Basic bWU6c2VjcmV0"),)
        assert c.call("ServerLive", metadata=key).live is True
        assert c.numbers("id_int32", [5], metadata=key) == [5]


def test_limit_req(start):
    server = start(http="""
    limit_req_zone $binary_remote_addr zone=all:1m rate=1r/m;""", server="""
        location /few/ { limit_req zone=all; inference health infer; }
""")
    with Client(server.port2, "/few") as c:
        assert live(c) is True
        fails(c, one, Code.UNAVAILABLE)
        fails(c, in_stream, Code.UNAVAILABLE)


def test_messages_that_are_too_large(start):
    server = start(server="""
        location /small/ { inference infer; inference_max_body 10k; }
        location /call/ { inference metadata; inference_max_body 10; }
        location /nginx/ {
            limit_except GET { deny all; }
            inference infer;
        }
""")
    large = infer("id_uint8", tensor("IN", "UINT8", [20_000], bytes(20_000)))
    with Client(server.port2, "/small") as c:
        text = fails(c, lambda c: c.call("ModelInfer", large),
                     Code.RESOURCE_EXHAUSTED)
        assert "Received message larger than max" in text
        assert one(c) == [5]
        with c.stream() as stream:          # the limit is each message's
            for i in range(100):
                stream.send(numbers("id_int32", [i] * 100))
                assert number(stream.read()) == i
    with Client(server.port2, "/call") as c:
        text = fails(c, lambda c: c.call("ModelMetadata",
                                         pb.ModelMetadataRequest(
                                             name="id_int32", version="1")),
                     Code.RESOURCE_EXHAUSTED)
        assert "max (13 vs. 10); inference_max_body sets another" in text
    with Client(server.port2, "/nginx") as c:
        fails(c, one, Code.PERMISSION_DENIED)


def test_a_message_of_a_stream_that_is_too_large(start):
    server = start(server="""
        location /small/ { inference infer; inference_max_body 10k; }
""")
    with Client(server.port2, "/small") as c, c.stream() as stream:
        stream.send(numbers("id_int32", [1]))
        assert number(stream.read()) == 1
        stream.send(numbers("id_int32", [2] * 5000))
        with pytest.raises(Failure) as e:
            stream.read()
    assert e.value.code == Code.RESOURCE_EXHAUSTED
    assert "Received message larger than max" in e.value.text


def test_subrequests_and_pages_of_errors(start):
    server = start(server="""
        location = /yes { internal; return 204; }
        location = /no { internal; return 401; }
        location = /page { return 200 page; }
        location /asked/ { auth_request /yes; inference infer; }
        location /rejected/ { auth_request /no; inference infer; }
        location /mirrored/ { mirror /yes; inference infer; }
        location /paged/ { error_page 400 404 503 /page; inference infer; }
        location /packed/ { gzip on; gzip_min_length 1; inference infer; }
""")
    for prefix in ("/asked", "/paged", "/packed"):
        with Client(server.port2, prefix) as c:
            assert one(c) == in_stream(c) == [5]
            fails(c, lambda c: c.call("ModelInfer", infer("absent")),
                  Code.NOT_FOUND)
    with Client(server.port2, "/rejected") as c:
        fails(c, one, Code.UNAUTHENTICATED)
        fails(c, in_stream, Code.UNAUTHENTICATED)
    with Client(server.port2, "/mirrored") as c:
        assert one(c) == [5]
        text = fails(c, in_stream, Code.UNIMPLEMENTED)
        assert "another handler has read this stream" in text
