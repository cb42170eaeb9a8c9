"""Clients that leave or do not read, reloads, and cores that end."""

import socket

import pytest

from lib import arena, backends, events, models, process
from lib.server import SANITIZER, SLOW, nap

STREAM = "generate_stream"
ARENA = 48 << 20
HELPER_KILLED = r"exited on signal 9"
FOREVER = {"IN": [1, 2], "DELAY": [0, 600_000], "WAIT": 0}


def conformance(repository):
    models.identity(
        repository, "conformance", [("A", "FP32", [-1])],
        outputs=[("X", "FP32", [-1])], max_batch=4, instances=2,
        backend="conformance")


@pytest.mark.parametrize("verb", ["generate", STREAM])
def test_a_backend_learns_that_its_client_has_left(start, tmp_path, verb):
    told = tmp_path / "events"
    folder = backends.build("conformance")
    server = start(conformance, http=f"    inference_backends {folder};",
                   inference_env=[f"INF_CONFORMANCE_EVENTS={told}"])

    def said(word):
        return told.exists() and any(
            word in line for line in told.read_text().splitlines())

    with events.Open(server.port, events.path("conformance", verb), {
            "A": [1, 2], "parameters": {"scenario": "cancel"}}):
        assert process.wait_until(lambda: said("waiting"), 20 * SLOW)
    assert process.wait_until(lambda: said("cancelled"), 20 * SLOW)
    assert not said("FAILED")


@pytest.mark.parametrize("read", [0, 1])
def test_what_is_left_of_clients_that_leave(start, read):
    server = start(http=f"    inference_memory {ARENA};")
    large = {"IN": list(range(500_000))}
    for model, body in [("repeat", FOREVER), ("id_int32", large),
                        ("square", {"IN": 5000})]:
        for _ in range(5):
            with events.Open(server.port, events.path(model, STREAM),
                             body) as o:
                if read:
                    o.begin()
    arena.assert_empty(server, ARENA)


def silent(server, model, body):
    """A client whose socket takes little, after its request."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(60 * SLOW)
    s.connect(("127.0.0.1", server.port))
    text = events.encode(body)
    s.sendall(f"POST {events.path(model, STREAM)} HTTP/1.0\r\n"
              f"Content-Length: {len(text)}\r\n\r\n".encode() + text)
    return s


def rest(s):
    found = bytearray()
    while data := s.recv(1 << 16):
        found += data
    head, _, body = bytes(found).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    return events.parse(body)


def test_a_client_that_does_not_read(start):
    """Its backend waits for a second, then the request is cancelled: its
    client learns that, and meanwhile others have their answers."""
    server = start()
    pids = server.workers() + server.cores()
    before, seen = process.held_bytes(pids), -1
    with silent(server, "square", {"IN": 2_000_000}) as s:
        path = events.path("square", STREAM)
        assert len(events.post(server.port, path, {"IN": 3}).events()) == 3
        while seen != process.held_bytes(pids):
            seen = process.held_bytes(pids)
            nap(1.5 * SLOW)
        assert SANITIZER or seen < before + (16 << 20)
        *data, last = rest(s)
    assert 1000 < len(data) < 200_000
    assert "has not taken its responses" in last["error"]
    assert {e["OUT"] for e in data} == {2_000_000}


def test_a_backend_that_is_faster_than_its_client(server):
    """It waits: nothing is lost, nothing is cancelled."""
    with silent(server, "square", {"IN": 30_000}) as s:
        assert len(rest(s)) == 30_000


def test_a_long_event_for_a_slow_client(server):
    values = list(range(400_000))
    with silent(server, "id_int32", {"IN": values}) as s:
        nap(0.3)
        assert rest(s)[0]["OUT"] == values


def test_a_client_that_takes_nothing_for_too_long(start):
    server = start(server="        send_timeout 300ms;")
    with silent(server, "id_int32", {"IN": list(range(2_000_000))}):
        assert server.wait_log(r"client timed out", 20 * SLOW)


def test_inference_timeout(start):
    """An error of its own before the first response, then an event."""
    server = start(http="    inference_timeout 400ms;")
    path = events.path("repeat", STREAM)
    answer = events.post(server.port, path,
                         {"IN": [1], "DELAY": [600_000], "WAIT": 0})
    assert answer.status == 503
    assert answer.error.startswith("Request timeout expired")
    got = events.post(server.port, path, FOREVER).events()
    assert got[0]["OUT"] == 1
    assert got[1]["error"].startswith("Request timeout expired")
    assert len(got) == 2


def test_killed_core(start):
    """Begun requests end; the others go to the next core."""
    server = start(allow_alarms=[HELPER_KILLED])
    path = events.path("repeat", STREAM)
    held = {"IN": [1], "DELAY": [2_000], "WAIT": 0}
    with events.Open(server.port, path, FOREVER) as begun, \
            events.Open(server.port, path, held) as waiting:
        assert begun.read()["OUT"] == 1
        server.end_core()
        assert "core ended" in begun.read()["error"]
        assert begun.read() is None
        assert waiting.read()["OUT"] == 1
    assert server.wait_for("/v2/health/ready")
    answer = events.post(server.port, events.path("id_int32"), {"IN": 1})
    assert answer.json()["OUT"] == 1


def test_reload_beside_a_stream(start):
    """The old worker stays until its stream has ended."""
    server = start()
    worker, = server.workers()
    body = {"IN": list(range(40)), "DELAY": [50] * 40, "WAIT": 0}
    with events.Open(server.port, events.path("repeat", STREAM), body) as o:
        assert o.read()["OUT"] == 0
        server.signal("HUP")
        assert process.wait_until(
            lambda: set(server.workers()) - {worker}, 20 * SLOW)
        assert [e["OUT"] for e in o.rest()] == list(range(1, 40))
    assert process.wait_until(lambda: worker not in server.workers(),
                              20 * SLOW)


def test_a_model_is_unloaded_beside_its_stream(start):
    server = start(http="    inference_model_control explicit;\n"
                   "    inference_load_model *;")
    body = {"IN": [1, 2, 3], "DELAY": [0, 300, 300], "WAIT": 0}
    with events.Open(server.port, events.path("repeat", STREAM), body) as o:
        assert o.read()["OUT"] == 1
        assert server.post("/v2/repository/models/repeat/unload",
                           b"").status == 200
        assert [e["OUT"] for e in o.rest()] == [2, 3]
    answer = events.post(server.port, events.path("repeat", STREAM), body)
    assert answer.status in (404, 503)
