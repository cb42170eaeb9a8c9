"""grpc.health.v1 through the stubs of its own package: Check and Watch."""

import os
import queue
import signal
import threading

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lib import models, process
from lib.grpc_client import SERVICE, frame, frames, status_in
from lib.h2 import H2
from lib.server import SLOW, nap
from lib.unharmed import descriptors

Status = health_pb2.HealthCheckResponse
WATCH = "/grpc.health.v1.Health/Watch"
HEADERS = {"content-type": "application/grpc", "te": "trailers"}
HELPER_KILLED = r"process \d+ exited on signal 9"
KNOWN = ["", "inference.GRPCInferenceService", "grpc.health.v1.Health"]


class Health:
    """A channel of its own."""

    def __init__(self, server):
        self.channel = grpc.insecure_channel(
            f"127.0.0.1:{server.port2}",
            [("grpc.use_local_subchannel_pool", 1)])
        self.stub = health_pb2_grpc.HealthStub(self.channel)

    def check(self, service=""):
        return self.stub.Check(health_pb2.HealthCheckRequest(service=service),
                               timeout=20 * SLOW).status

    def watch(self, service="", timeout=120 * SLOW):
        return Watch(self.stub.Watch(
            health_pb2.HealthCheckRequest(service=service), timeout=timeout))

    def close(self):
        self.channel.close()


class Watch:
    """Statuses as they come, then the code that the call ends with."""

    def __init__(self, call):
        self.call = call
        self.told = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for answer in self.call:
                self.told.put(answer.status)
        except grpc.RpcError:
            pass
        self.told.put(self.call.code())

    def next(self):
        return self.told.get(timeout=30 * SLOW)

    def cancel(self):
        self.call.cancel()


@pytest.fixture
def health(server):
    h = Health(server)
    yield h
    h.close()


def test_check(health):
    assert health.check() == Status.SERVING


@pytest.mark.parametrize("service", KNOWN)
def test_the_status_comes_at_once(health, service):
    watch = health.watch(service)
    assert watch.next() == Status.SERVING
    watch.cancel()
    assert watch.next() == grpc.StatusCode.CANCELLED


def test_services_that_are_unknown(health):
    """The call stays: the service may come."""
    watch = health.watch("other")
    assert watch.next() == Status.SERVICE_UNKNOWN
    nap(2.5)
    assert watch.told.empty()
    assert watch.call.is_active()
    watch.cancel()


def test_nothing_is_told_twice(health):
    watch = health.watch()
    assert watch.next() == Status.SERVING
    nap(2.5)                        # the core has been asked again since
    assert watch.told.empty()
    assert watch.call.is_active()
    watch.cancel()


def test_a_deadline(health):
    watch = health.watch(timeout=1)
    assert watch.next() == Status.SERVING
    assert watch.next() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_a_deadline_that_the_server_tells(server):
    with H2(server.port2) as c:
        reply = c.read(c.post(WATCH, {**HEADERS, "grpc-timeout": "300m"},
                              frame(b"")))
    assert frames(reply.body) == [(0, b"\x08\x01")]
    assert status_in(reply.block) == 4


@pytest.mark.parametrize("body,code", [
    (b"", 13), (frame(b"\x0a\x05x"), 13), (frame(b"", size=9), 13),
    (frame(b"") + frame(b""), 12), (frame(b"\x0a\x02\xff\xfe"), 13)])
def test_requests_that_are_broken(server, body, code):
    with H2(server.port2) as c:
        reply = c.read(c.post(WATCH, HEADERS, body))
    assert (reply.status, status_in(reply.block), reply.body) == \
        (200, code, b"")


def test_changes_are_told(start):
    """Every watcher learns that the core is gone, and that one is back."""
    server = start(allow_alarms=[HELPER_KILLED])
    health = Health(server)
    watches = [health.watch() for _ in range(50)]
    other = health.watch("other")
    for watch in watches:
        assert watch.next() == Status.SERVING
    supervisor, = server.supervisors()
    os.kill(supervisor, signal.SIGSTOP)         # no next core for now
    os.kill(server.core(), signal.SIGKILL)
    for watch in watches:
        assert watch.next() == Status.NOT_SERVING
    os.kill(supervisor, signal.SIGCONT)
    for watch in watches:
        assert watch.next() == Status.SERVING
    assert other.next() == Status.SERVICE_UNKNOWN
    assert other.told.empty()
    health.close()


def test_a_worker_without_a_core_is_live(start):
    server = start(allow_alarms=[HELPER_KILLED])
    supervisor, = server.supervisors()
    os.kill(supervisor, signal.SIGSTOP)         # no next core for now
    os.kill(server.core(), signal.SIGKILL)
    with H2(server.port2) as c:
        for message in (b"", b"\xf8\x07\x01"):
            reply = c.read(c.post(SERVICE + "ServerLive", HEADERS,
                                  frame(message)))
            assert frames(reply.body) == [(0, b"\x08\x01")]
    os.kill(supervisor, signal.SIGCONT)
    assert server.wait_for("/v2/health/ready")


def test_a_core_that_hangs(start):
    server = start()
    health = Health(server)
    watch = health.watch()
    assert watch.next() == Status.SERVING
    core = server.core()
    os.kill(core, signal.SIGSTOP)
    assert watch.next() == Status.NOT_SERVING
    os.kill(core, signal.SIGCONT)
    assert watch.next() == Status.SERVING
    health.close()


def test_a_server_that_is_not_ready(start):
    """A model that cannot load."""
    server = start(lambda r: models.write_model(
        r, "bad", 'backend: "none"\nmax_batch_size: 0\n'), wait="live",
        allow_alarms=[".*"])
    health = Health(server)
    assert health.watch().next() == Status.NOT_SERVING
    assert health.check() == Status.NOT_SERVING
    health.close()


def test_a_leaving_worker_is_not_held(start):
    """Its watchers are told to ask the next one."""
    server = start()
    health = Health(server)
    watches = [health.watch() for _ in range(5)]
    for watch in watches:
        assert watch.next() == Status.SERVING
    before = set(server.workers())
    server.signal("HUP")
    for watch in watches:
        assert watch.next() == grpc.StatusCode.UNAVAILABLE
    assert process.wait_until(lambda: not set(server.workers()) & before,
                              20 * SLOW)
    again = health.watch()
    assert again.next() == Status.SERVING
    health.close()


def test_watchers_at_the_end_of_the_server(start):
    server = start()
    health = Health(server)
    watch = health.watch()
    assert watch.next() == Status.SERVING
    server.stop()
    assert watch.next() == grpc.StatusCode.UNAVAILABLE
    health.close()


def test_watchers_that_come_and_go(server):
    """Faster than the core answers: none is told that it hangs."""
    with H2(server.port2) as c:
        for _ in range(100):
            streams = [c.post(WATCH, HEADERS, frame(b"")) for _ in range(2)]
            for stream in streams:
                c.reset(stream)
        for _ in range(20):
            stream = c.post(WATCH, HEADERS, frame(b""))
            while len(c.streams[stream].body) < 7:
                c.step()
            assert frames(c.streams[stream].body) == [(0, b"\x08\x01")]
            c.reset(stream)
            c.sync()


def test_watchers_that_vanish(server, health):
    before = descriptors(server)
    for _ in range(20):
        with H2(server.port2) as c:
            streams = [c.post(WATCH, HEADERS, frame(b"")) for _ in range(20)]
            c.sync()
            for stream in streams[::2]:
                c.reset(stream)
    assert health.check() == Status.SERVING
    assert process.wait_until(lambda: descriptors(server) <= before + 4,
                              10 * SLOW)


def test_a_watcher_that_does_not_read(server):
    with H2(server.port2, window=0) as c:
        stream = c.post(WATCH, HEADERS, frame(b""))
        c.sync()
        nap(1.2)
        c.give(stream, 3)
        c.sync()
        c.give(stream, 1000)
        while len(c.streams[stream].body) < 7:
            c.step()
        assert frames(c.streams[stream].body) == [(0, b"\x08\x01")]


def test_watches_need_a_location_with_health(start):
    server = start(server="        location /no/ { inference infer; }\n")
    with H2(server.port2) as c:
        for path in (WATCH, SERVICE + "ServerLive"):
            reply = c.read(c.post("/no" + path, HEADERS, frame(b"")))
            assert status_in(reply.block) == 12
