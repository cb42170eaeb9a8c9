"""Requests that are given up, at every moment of their lives."""

import random
import threading

import pytest

from lib import arena, models, process
from lib.h2 import H2
from lib.server import SLOW, Server
from lib.unharmed import descriptors, unharmed
from lib.wire import Wire, request_bytes

ARENA = 64 << 20
RAW = {"Inference-Header-Content-Length": "0"}
BODY = b"z" * 100_000


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "slow", [("IN", "UINT8", [-1])],
                    parameters={"execute_delay_ms": "20"})


@pytest.fixture(scope="module")
def server():
    with Server(fill, http2=True,
                http=f"    inference_memory {ARENA};") as s:
        yield s
        arena.assert_empty(s, ARENA // 2)


@pytest.mark.parametrize("queued", [1, 20])
def test_cve_2025_23322(server, queued):
    """A stream that was cancelled before it was processed was freed twice.

    Many streams of one connection, reset while they wait in the queue of a
    model, run, or are answered; in each order."""
    for seed in range(10):
        order = random.Random(seed)
        with unharmed(server), \
                H2(server.port2, 1 << 20, 60 * SLOW) as connection:
            streams = [connection.post(
                "/v2/models/slow/infer",
                {k.lower(): v for k, v in RAW.items()}, b"x" * 10)
                for _ in range(queued)]
            order.shuffle(streams)
            kept = streams[:queued // 4]
            for number in streams[queued // 4:]:
                connection.reset(number)
                connection.reset(number)        # and once more
            for number in kept:
                assert connection.read(number).status == 200
    arena.assert_empty(server, ARENA // 2)


def give_up(server, model, cut, read):
    """Sends cut bytes of a request, reads some of the answer, leaves."""
    data = request_bytes("POST", f"/v2/models/{model}/infer", BODY, RAW)
    with Wire(server.port, 60 * SLOW) as connection:
        connection.send(data[:cut] if cut else data)
        if read:
            connection.socket.recv(read)


def test_cve_2026_24266(server):
    """Something was used after it had been freed; what was not published.

    Clients that leave at each stage, from four threads at once, while others
    are served: a sanitizer's build tells, any build must go on."""
    def leave(seed):
        order = random.Random(seed)
        for _ in range(100):
            whole = order.random() < 0.5
            give_up(server, order.choice(["slow", "id_uint8"]),
                    0 if whole else order.randrange(1, len(BODY)),
                    order.choice([0, 1, 50_000]) if whole else 0)

    before = descriptors(server)
    with unharmed(server):
        threads = [threading.Thread(target=leave, args=(i,))
                   for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    arena.assert_empty(server, ARENA // 2)
    assert process.wait_until(
        lambda: descriptors(server) <= before, 10 * SLOW)


def test_cve_2026_47479(server):
    """Resources were consumed without bound by clients that did not go on.

    The memory of four hundred of them is gone when they are."""
    before, connections = descriptors(server), []
    with unharmed(server):
        for i in range(400):
            connections.append(server.wire())
            connections[-1].send(request_bytes(
                "POST", "/v2/models/id_uint8/infer", None,
                {**RAW, "Content-Length": "100000"}) + b"x" * (i * 10))
        assert process.wait_until(
            lambda: descriptors(server) > before + 300, 10 * SLOW)
        for c in connections:
            c.close()
    arena.assert_empty(server, ARENA // 2)
    assert process.wait_until(
        lambda: descriptors(server) <= before, 10 * SLOW)
