"""No call runs on a worker's event loop: issue 16.

The core is stopped, so no call is answered; the one worker of the server goes
on with everything else.  A load that is held takes no worker either.
"""

import os
import re
import signal

from lib import backends, models
from lib.grpc_client import SERVICE, Client, frame
from lib.h2 import H2
from lib.process import stop
from lib.repository import held, let_go, wait_held
from lib.server import CORE, ROOT, SLOW
from lib.wire import request_bytes

PARTS = "health metadata config statistics repository archives shared_memory " \
        "trace logging metrics status infer"
ROW = re.compile(r'ngx_http_inference_call\("([^"]+)",\s*NGX_HTTP_(\w+),\s*'
                 r"(\w+),")
HEADERS = {"content-type": "application/grpc", "te": "trailers"}
# the worker's own answer, and inferences
NO_CALLS = {"ServerLive", "ModelInfer", "ModelStreamInfer"}


def rest_calls():
    """(method, path) of each call of the module's table."""
    text = (ROOT / "ngx_module/ngx_http_inference_endpoints.c").read_text()
    found = ROW.findall(text)
    assert {part.lower() for _, _, part in found} <= set(PARTS.split())
    return [(method, path.replace("~", "").replace("*", "id_int32"))
            for path, method, _ in found]


def grpc_calls():
    text = (ROOT / "core/proto/grpc_service.proto").read_text()
    return [SERVICE + name for name in re.findall(r"rpc (\w+)\(", text)
            if name not in NO_CALLS] + ["/grpc.health.v1.Health/Check"]


def test_calls_that_the_core_does_not_answer(make_server):
    server = make_server(
        models.standard_repository, http2=True, parts=PARTS,
        core=f"{CORE} hang=0",
        http="    inference_model_control explicit;\n"
             "    inference_load_model *;",
        server='        location = /plain { return 200 "plain"; }')
    rest, grpc = rest_calls(), grpc_calls()
    assert len(rest) > 30 and len(grpc) > 15
    core = server.core()
    stop(core)
    try:
        waiting = []
        for method, path in rest:
            wire = server.wire(60 * SLOW)
            wire.send(request_bytes(method, path,
                                    b"{}" if method == "POST" else None))
            waiting.append((path, wire))
        calls = H2(server.port2, timeout=60 * SLOW)
        streams = {calls.post(path, HEADERS, frame(b"")): path
                   for path in grpc}
        calls.sync()            # the worker has them all

        for _ in range(20):
            with server.wire(20 * SLOW) as wire:
                assert wire.get("/plain").body == b"plain"
                assert wire.get("/v2/health/live").status == 200
            live = calls.read(calls.post(SERVICE + "ServerLive", HEADERS,
                                         frame(b"")))
            assert live.status == 200
        assert [path for path, wire in waiting if has_answer(wire)] == []
        assert [path for number, path in streams.items()
                if calls.streams[number].block] == []
    finally:
        os.kill(core, signal.SIGCONT)
    for path, wire in waiting:
        assert wire.read().status in (200, 400, 404), path
        wire.close()
    for number in streams:
        assert calls.read(number).status == 200
    calls.close()


def has_answer(wire):
    wire.socket.setblocking(False)
    try:
        return wire.socket.recv(1, 2) != b""            # MSG_PEEK
    except BlockingIOError:
        return False
    finally:
        wire.socket.settimeout(60 * SLOW)


def test_a_load_that_is_held(make_server):
    """One worker takes it, and inferences and calls beside it."""
    def fill(repository):
        models.standard_repository(repository)
        held(repository, "waits", "initialize-hold")

    server = make_server(
        fill, http2=True, parts=PARTS,
        http="    inference_model_control explicit;\n"
             "    inference_load_model id_int32;\n"
             f"    inference_backends {backends.build('failing')};")
    path = "/v2/repository/models/waits/load"
    with server.wire(60 * SLOW) as rest, H2(
            server.port2, timeout=60 * SLOW) as calls, Client(
            server.port2) as client:
        rest.send(request_bytes("POST", path, b"{}"))
        wait_held(server, "waits")
        load = calls.post(SERVICE + "RepositoryModelLoad", HEADERS,
                          frame(b"\x12\x05waits"))
        calls.sync()
        assert client.numbers("id_int32", [3]) == [3]
        for path in ("/v2/models/stats", "/v2/repository/index",
                     "/v2/logging", "/v2/systemsharedmemory/status"):
            method = "POST" if path.endswith("index") else "GET"
            with server.wire(60 * SLOW) as wire:
                wire.send(request_bytes(
                    method, path, b"{}" if method == "POST" else None))
                assert wire.read().status == 200, path
        assert not has_answer(rest)
        assert not calls.streams[load].block
        let_go(server, "waits")
        assert rest.read().status == 200
        assert calls.read(load).status == 200
