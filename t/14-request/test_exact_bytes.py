"""error_page hands on the bytes received: issue 14.

Each body goes to a location whose error_page names one status.  Either an
upstream that records every byte gets exactly what was sent, or it gets nothing
and the client the error.  Which of the two it is depends on when a body is
found wrong: bytes that came before that are dropped.
"""

import gzip
import json
import os
import re

import pytest

from lib import arena, certificate, models
from lib.h2 import H2
from lib.process import wait_until
from lib.server import SLOW, Server, free_port
from lib.upstream import Recorder
from lib.wire import Wire, chunked, request_bytes, tensor

SIZES = [5000, 3, 0, 4096, 778]         # of a request's binary tensors
LIMIT = 2000                            # inference_max_body where 413 is meant
LAGGING = 300 << 10                     # JSON that is read after the body
RAW = {"Inference-Header-Content-Length": "0"}
MARK = b"\xa5" * (1 << 20)              # what nobody else may ever see
STATUSES = [400, 413, 500, 503]
MODELS = {400: "id_int32", 413: "wide", 500: "broken",
          503: "unready/versions/1"}
FORMS = ["flat", "raw", "binary", "promise", "JSON", "chunked", "compressed"]
LENGTHS = ["short", "exact", "long"]


def fill(repository):
    models.standard_repository(repository)
    inputs = [(f"I{i}", "UINT8", [-1]) for i in range(len(SIZES))]
    models.identity(repository, "wide", inputs)
    models.identity(repository, "broken", inputs,
                    parameters={"fail_execute": "out of order"})
    models.identity(repository, "unready", inputs,
                    parameters={"fail_initialize": "not today"})


class Setting:
    """nginx before a recording upstream, by one kind of connections."""

    def __init__(self, kind, folder):
        self.tls = None
        pair = certificate.make(folder) if kind == "TLS" else None
        self.recorder = Recorder(pair)
        upstream = f"server 127.0.0.1:{self.recorder.port};"
        proxy = f"proxy_pass http{'s' if pair else ''}://recorder;"
        listen = ""
        if kind != "plain":
            upstream += " keepalive 2;"
            proxy += ' proxy_http_version 1.1; proxy_set_header Connection "";'
        if pair:
            self.port = free_port()
            self.tls = certificate.client_context()
            listen = (f"listen 127.0.0.1:{self.port} ssl; "
                      f"ssl_certificate {pair[0]}; "
                      f"ssl_certificate_key {pair[1]};")
        self.server = Server(
            fill, http2=True, http=f"    upstream recorder {{ {upstream} }}",
            server=listen + "".join(self.location(s) for s in STATUSES)
            + f"location @upstream {{ {proxy} }} "
              f"location /probe {{ {proxy} }}")
        self.server.start("live")
        if not pair:
            self.port = self.server.port
        for name in ("wide", "broken", "id_int32", "id_uint8"):
            assert self.server.wait_for(f"/v2/models/{name}/ready")
        assert self.server.wait_for("/v2/models/unready/versions/1/ready",
                                    status=503)
        for _ in range(5):
            head = {"inputs": [tensor("IN", "UINT8", [len(MARK)],
                                      binary_data_size=len(MARK))]}
            assert self.server.infer("id_uint8", head, MARK).status == 200

    @staticmethod
    def location(status):
        limit = f"inference_max_body {LIMIT};" if status == 413 else ""
        return (f"location /{status}/ {{ inference infer; {limit} "
                f"client_max_body_size 0; "
                f"inference_intercept_errors on; "
                f"error_page {status} = @upstream; }}\n")

    def connect(self):
        return Wire(self.port, 20, self.tls)

    def stop(self, check):
        self.recorder.stop()
        if check:
            self.server.stop()
        else:
            self.server.kill()


@pytest.fixture(scope="module", params=["plain", "TLS", "kept alive"])
def setting(request, tmp_path_factory):
    made = Setting(request.param, tmp_path_factory.mktemp("tls"))
    failures = request.session.testsfailed
    yield made
    made.stop(request.session.testsfailed == failures)


def body_of(form, length):
    """(body, headers) of a request that is short, exact or too long."""
    change = {"short": -10, "exact": 0, "long": 10}[length]
    if form == "raw":
        return os.urandom(sum(SIZES)), RAW
    if form == "JSON":
        text = json.dumps({"inputs": [tensor(
            f"I{i}", "UINT8", [n], [1] * n) for i, n in enumerate(SIZES)]})
        return (text + "x" * change if change > 0 else
                text[:len(text) + change]).encode(), {}
    text = json.dumps({"inputs": [tensor(
        f"I{i}", "UINT8", [n], binary_data_size=n)
        for i, n in enumerate(SIZES)]}).encode()
    if form == "promise":               # without a word of what is JSON
        text = text.replace(b"4096}", {
            "short": b"1000000}", "exact": b"4096}",
            "long": b"1099511627776}"}[length])
        return text, {}
    if form == "flat":
        text += b" " * (LAGGING - len(text))
    body = text + os.urandom(sum(SIZES) + change)
    headers = {"Inference-Header-Content-Length": str(len(text))}
    if form == "compressed":
        return gzip.compress(body), {**headers, "Content-Encoding": "gzip"}
    return body, headers


def outcome(status, form, length):
    """The status of the error, and whether the body is still whole."""
    if form == "promise":               # LIMIT is for what is declared, too
        return (413 if length == "long" or status == 413 else 400), True
    if status == 413:
        # known from Content-Length before anything is read, or else too late
        return 413, form != "chunked"
    if form == "raw":
        return (503 if status == 503 else 400), True
    if length == "exact":
        return status, True
    if form == "binary" or length == "long" and form in ("chunked", "JSON"):
        return 400, False
    return 400, True


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("status", STATUSES)
def test_upstream_gets_what_was_sent_or_nothing(setting, status, form, length):
    body, headers = body_of(form, length)
    path = f"/{status}/v2/models/{MODELS[status]}/infer"
    setting.recorder.forget()
    with setting.connect() as connection:
        if form in ("chunked", "promise"):
            connection.send(request_bytes("POST", path, headers={
                **headers, "Transfer-Encoding": "chunked"}))
            connection.send(chunked(body, 999))
            answer = connection.read()
        else:
            answer = connection.post(path, body, headers)
        assert connection.next().get("/probe").body == b"recorded"
    *seen, probe = setting.recorder.requests()
    assert probe[0].startswith(b"GET /probe ")
    expected, whole = outcome(status, form, length)
    if expected == status and whole:
        assert (answer.status, answer.body) == (200, b"recorded")
        assert len(seen) == 1
        assert seen[0][1] == body
    else:
        assert answer.status == expected, answer
        assert answer.error
        assert not seen
    assert not any(c.rest for c in setting.recorder.connections)


@pytest.mark.parametrize("length", [True, False], ids=["told", "not told"])
@pytest.mark.parametrize("status,change,whole", [
    (400, -10, False), (400, 10, False), (500, 0, True), (503, 0, True)])
def test_stream_of_http2_goes_on_as_it_came(setting, status, change, whole,
                                            length):
    body, headers = body_of("chunked", {-10: "short", 0: "exact",
                                        10: "long"}[change])
    headers = {k.lower(): v for k, v in headers.items()}
    if length:
        headers["content-length"] = str(len(body))
    elif change < 0:
        whole = True                    # known when the stream has ended
    setting.recorder.forget()
    with H2(setting.server.port2) as connection:
        number = connection.post(
            f"/{status}/v2/models/{MODELS[status]}/infer", headers)
        for i in range(0, len(body), 700):
            connection.data(number, body[i:i + 700], i + 700 >= len(body))
        stream = connection.read(number)
    with setting.connect() as connection:
        assert connection.get("/probe").body == b"recorded"
    *seen, probe = setting.recorder.requests()
    assert probe[0].startswith(b"GET /probe ")
    if whole:
        assert (stream.status, stream.body) == (200, b"recorded")
        assert [b for _, b in seen] == [body]
    else:
        assert stream.status == status
        assert not seen
    assert not any(c.rest for c in setting.recorder.connections)


# ---- an upstream that reads late

LATE = 8 << 20


def late_body(reason):
    """(path, headers, body) that is rejected for a reason of its own."""
    if reason == "the model fails":
        return "broken", RAW, os.urandom(LATE)
    if reason == "the model is slow":
        return "slow", RAW, os.urandom(LATE)
    text = json.dumps({"inputs": [tensor(
        "IN", "UINT8", [LATE], binary_data_size=LATE)]}).encode()
    return ("id_uint8", {"Inference-Header-Content-Length": str(len(text))},
            text + os.urandom(LATE - 10))


@pytest.mark.parametrize("reason", [
    "the model fails", "the model is slow", "the body is short"])
def test_body_is_kept_while_an_upstream_reads_it_late(make_server, reason):
    """Others fill the arena in between; the body stays what it was."""
    def late_models(repository):
        models.standard_repository(repository)
        models.identity(repository, "broken", [("IN", "UINT8", [-1])],
                        parameters={"fail_execute": "out of order"})
        models.identity(repository, "slow", [("IN", "UINT8", [-1])],
                        parameters={"execute_delay_ms": "400"})

    model, headers, body = late_body(reason)
    with Recorder() as recorder:
        server = make_server(
            late_models, http="    inference_memory 64m;", server=f"""
            client_max_body_size 0;
            location /late/ {{
                inference infer; inference_timeout 200ms;
                inference_intercept_errors on;
                error_page 400 500 503 = @late;
            }}
            location @late {{
                proxy_pass http://127.0.0.1:{recorder.port};
                proxy_read_timeout 300s; proxy_send_timeout 300s;
            }}""")
        recorder.gate.clear()
        with server.wire(60) as connection:
            connection.send(request_bytes(
                "POST", f"/late/v2/models/{model}/infer", headers={
                    **headers, "Transfer-Encoding": "chunked"}))
            connection.send(chunked(body, 100_000))
            assert wait_until(lambda: any(
                c.waiting for c in recorder.connections), 20 * SLOW)
            if model == "slow":         # until it has done with the body
                assert server.post("/v2/models/slow/infer", b"x",
                                   RAW).status == 200
            for _ in range(4):
                for size in (LATE, LATE - 10, LATE // 2, 100_000):
                    answer = server.post("/v2/models/id_uint8/infer",
                                         b"\xa5" * size, RAW)
                    assert answer.status == 200, answer
            recorder.gate.set()
            assert connection.read().body == b"recorded"
        (_, seen), = recorder.requests()
        assert seen == body


# ---- what upstreams may keep

ARENA = 64 << 20
PIECE = 6 << 20                         # two are below a quarter of the arena
CANCELLED = re.compile(r"^nginx_inference_cancelled_total\S* (\d+)", re.M)


@pytest.fixture
def kept(make_server):
    """A server whose upstream reads no body until its gate is open."""
    def fill_kept(repository):
        fill(repository)
        models.identity(repository, "numbers", [("IN", "FP64", [-1])])
        models.identity(repository, "slow", [("IN", "UINT8", [-1])],
                        parameters={"execute_delay_ms": "1500"})

    with Recorder() as recorder:
        server = make_server(
            fill_kept, wait="live", parts="all metrics",
            http=f"    inference_memory {ARENA};", server=f"""
            client_max_body_size 0;
            location /kept/ {{
                inference infer; inference_intercept_errors on;
                error_page 404 = @kept;
            }}
            location /hasty/ {{
                inference infer; inference_timeout 300ms;
                inference_intercept_errors on; error_page 503 504 = @kept;
            }}
            location @kept {{ proxy_pass http://127.0.0.1:{recorder.port}; }}
        """)
        for model in ("id_uint8", "slow", "numbers"):
            assert server.wait_for(f"/v2/models/{model}/ready")
        server.recorder = recorder
        recorder.gate.clear()
        yield server


def hand_on(server, body, headers=RAW, path="/kept/v2/models/ghost/infer"):
    """A connection whose body the upstream has, unread."""
    before = waiting(server)
    connection = server.wire(60)
    connection.send(request_bytes("POST", path, body, headers))
    assert wait_until(lambda: waiting(server) == before + 1, 20 * SLOW)
    return connection


def waiting(server):
    return sum(c.waiting for c in list(server.recorder.connections))


def test_bodies_of_upstreams_have_a_part_of_the_arena(kept):
    """The next one gets our error, and the rest of the arena serves."""
    held = [hand_on(kept, os.urandom(PIECE)) for _ in range(2)]
    path = "/kept/v2/models/ghost/infer"
    answer = kept.post(path, bytes(PIECE), RAW)
    assert answer.status == 404 and "ghost" in answer.error
    assert waiting(kept) == 2
    assert kept.post("/v2/models/id_uint8/infer", bytes(ARENA // 2 - 4096),
                     RAW).status == 200
    held.append(hand_on(kept, b"small"))
    kept.recorder.gate.set()
    for connection in held:
        with connection:
            assert connection.read().body == b"recorded"
    assert wait_until(lambda: kept.post(path, bytes(PIECE), RAW).body
                      == b"recorded", 20 * SLOW)


def test_body_of_a_client_that_left_is_not_counted(kept):
    path = "/kept/v2/models/ghost/infer"
    for connection in [hand_on(kept, bytes(PIECE)) for _ in range(2)]:
        connection.close()
    kept.recorder.gate.set()
    assert wait_until(lambda: kept.post(path, bytes(PIECE), RAW).body
                      == b"recorded", 20 * SLOW)


def test_decoded_tensors_are_not_kept(kept):
    """The JSON is, 4 MiB; not the 16 MiB that were made of it."""
    count = 2 << 20
    body = json.dumps({"inputs": [tensor("IN", "FP64", [count],
                                         [1] * count)]},
                      separators=(",", ":")).encode()
    with hand_on(kept, body, {}) as connection:
        assert wait_until(lambda: arena.asks_to_continue(
            kept, ARENA - (8 << 20)) == 100, 20 * SLOW)
        assert arena.asks_to_continue(kept, ARENA - (2 << 20)) == 503
        kept.recorder.gate.set()
        assert connection.read().body == b"recorded"
    (_, seen), = kept.recorder.requests()
    assert seen == body


def test_request_that_was_too_slow_is_cancelled_as_it_goes_on(kept):
    """Not only when its client has the upstream's answer."""
    def cancelled():
        return int(CANCELLED.search(kept.get("/metrics").body.decode())[1])

    before = cancelled()
    with hand_on(kept, b"late",
                 path="/hasty/v2/models/slow/infer") as connection:
        assert cancelled() == before + 1
        kept.recorder.gate.set()
        assert connection.read().body == b"recorded"
    assert kept.post("/v2/models/slow/infer", b"x", RAW).status == 200
    assert cancelled() == before + 1
