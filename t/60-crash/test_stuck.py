"""Instances whose executions don't return (`inference_stuck`)."""

import concurrent.futures
import json
import re
import shutil
import tempfile

import pytest

from lib import process
from lib.batches import Batching, Gate, data
from lib.grpc_client import Client, pb
from lib.server import SLOW
from lib.wire import tensor

WHY = "all instances execute for longer than inference_stuck"
PARTS = "health metadata config infer statistics repository"
STUCK = "nginx_inference_stuck_instances"


@pytest.fixture
def world(make_server):
    """A batches model, whose executions N wait while gate N is closed."""
    folder = tempfile.mkdtemp(prefix="inf-gate-")
    gate = Gate(folder)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        yield Batching(make_server, gate, pool)
        gate.open_all()
    shutil.rmtree(folder)


def start(world, limit="1s", control="none", **kw):
    return world.start(
        None, parts=PARTS, http=f"    inference_stuck {limit};\n"
        f"    inference_model_control {control};\n"
        + ("    inference_load_model *;\n" if control == "explicit" else ""),
        http2=True,
        server="location /soon/ { inference infer; inference_timeout 300ms; }",
        **kw)


def stick(world, *executions):
    """The executions begin and don't return; their clients' futures."""
    for n in executions:
        world.gate.close(n)
    sent = []
    for n in executions:
        sent.append(world.ask(n, width=1))
        world.gate.wait_entered(n)
    return sent


def ready(server):
    return server.status("/v2/models/m/ready") == 200


def wait_stuck(world, count):
    assert process.wait_until(lambda: world.metric(STUCK) == count,
                              20 * SLOW), world.metric(STUCK)


def index(server, ready_only=False):
    answer = server.post("/v2/repository/index",
                         b'{"ready": true}' if ready_only else b"")
    assert answer.status == 200, answer
    return answer.json()


def test_a_model_is_ready_while_one_instance_is_left(world):
    server = start(world, instances=2)
    assert world.metric(STUCK) == 0
    (first,) = stick(world, 0)
    wait_stuck(world, 1)
    assert ready(server) and server.status("/v2/health/ready") == 200
    assert data(world.ask(5)) == [5]            # by the other one
    assert [row["state"] for row in index(server)] == ["READY"]

    (second,) = stick(world, 2)
    wait_stuck(world, 2)
    assert not ready(server)
    assert server.status("/v2/health/ready") != 200
    assert index(server) == [{"name": "m", "version": "1",
                              "state": "UNAVAILABLE", "reason": WHY}]
    assert index(server, ready_only=True) == []
    with Client(server.port2) as client:
        assert not client.call(
            "ModelReady", pb.ModelReadyRequest(name="m")).ready
        assert not client.call("ServerReady").ready

    world.gate.open(0)
    assert data(first) == [0]
    wait_stuck(world, 1)
    assert ready(server) and server.status("/v2/health/ready") == 200
    assert [row["state"] for row in index(server)] == ["READY"]
    world.gate.open(2)
    assert data(second) == [2]
    wait_stuck(world, 0)


def test_deadlines_are_answered_meanwhile(world):
    server = start(world)
    (runs,) = stick(world, 0)
    wait_stuck(world, 1)
    body = json.dumps({"inputs": [tensor("IN", "INT32", [1, 1], [1])]})
    late = [world.pool.submit(server.post, "/soon/v2/models/m/infer",
                              body.encode()) for _ in range(4)]
    for answer in late:
        assert answer.result(30 * SLOW).status == 503
    world.wait_queued(0)                        # they left the queue
    waits = world.ask(9)
    world.wait_queued(1)
    world.gate.open(0)
    assert data(runs) == [0]
    assert data(waits) == [9]


def test_a_reload_changes_the_limit(world):
    server = start(world)
    (runs,) = stick(world, 0)
    wait_stuck(world, 1)
    assert not ready(server)
    text = server.conf.read_text(encoding="utf-8")
    server.conf.write_text(text.replace("inference_stuck 1s",
                                        "inference_stuck 0"),
                           encoding="utf-8")
    server.signal("HUP")
    assert process.wait_until(lambda: ready(server), 20 * SLOW)
    assert world.metric(STUCK) == 0
    world.gate.open(0)
    assert data(runs) == [0]


def change(world):
    """The next load brings another model, with gates of its own."""
    file = world.server.models / "m" / "config.pbtxt"
    text = file.read_text(encoding="utf-8")
    gate = str(world.gate.path)
    assert gate in text
    file.write_text(text.replace(gate, gate + "2"), encoding="utf-8")


def control(server, what):
    return server.post(f"/v2/repository/models/m/{what}", b"").status


def test_a_load_brings_an_instance_that_serves(world):
    server = start(world, control="explicit")
    (runs,) = stick(world, 0)
    wait_stuck(world, 1)
    behind = world.ask(8)
    world.wait_queued(1)
    change(world)
    assert control(server, "load") == 200
    assert ready(server)
    assert server.status("/v2/health/ready") == 200
    wait_stuck(world, 0)                        # of those that serve
    assert data(world.ask(5)) == [5]
    assert not behind.done()
    world.gate.open(0)
    assert (data(runs), data(behind)) == ([0], [8])
    assert server.wait_log("model=m version=1 is unloaded", 20 * SLOW)


def test_an_unload_waits_for_no_stuck_instance(world):
    server = start(world, control="explicit")
    (runs,) = stick(world, 0)
    wait_stuck(world, 1)
    assert control(server, "unload") == 200
    assert not ready(server)
    change(world)
    assert control(server, "load") == 200       # beside the one that is stuck
    assert ready(server)
    assert data(world.ask(5)) == [5]
    assert not re.search("model=m version=1 is unloaded", server.log_text())
    world.gate.open(0)
    assert data(runs) == [0]
    assert server.wait_log("model=m version=1 is unloaded", 20 * SLOW)
