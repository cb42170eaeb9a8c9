"""nginx's variables for requests that end in different ways."""

import json
import os
import re
import signal
import time

import pytest

from lib import backends, models
from lib.access_log import FORMAT, WRITTEN, AccessLog
from lib.server import SLOW
from lib.wire import infer_path, request_bytes, tensor

SECONDS = re.compile(r"\d+\.\d{6}")
PATH = infer_path("m")
UNEXECUTED = {"tries": "0", "compute": "", "batch": "", "instance": ""}


def body(value=1, rows=1, **more):
    return json.dumps({"inputs": [
        tensor("IN", "INT32", [rows, 1], [value] * rows)], **more}).encode()


@pytest.fixture
def logged(batching):
    """A batching server that logs; the log from then on."""
    def start(policy="", **kw):
        server = batching.start(policy, http=FORMAT + kw.pop("http", ""),
                                server=WRITTEN + kw.pop("server", ""), **kw)
        return server, AccessLog(server)
    yield start
    batching.gate.open_all()


@pytest.fixture
def held(logged, batching):
    """The same while a request runs."""
    first = []

    def start(*arguments, **kw):
        server, _ = logged(*arguments, **kw)
        batching.gate.close()
        first.append(batching.ask(0))
        batching.gate.wait_entered()
        return server, AccessLog(server)
    yield start
    batching.gate.open_all()
    for future in first:
        future.result(20 * SLOW)


def test_a_batch(logged, batching):
    _, log = logged(hold=3)
    futures = [batching.ask(i, rows=r) for i, r in ((1, 1), (2, 2), (3, 3))]
    assert all(f.result(20 * SLOW).status == 200 for f in futures)
    for line in log.lines(3, uri=PATH):
        assert line["batch"] == "6"
        assert (line["code"], line["tries"]) == ("OK", "1")
        assert line["backend"] == "batches"
        assert line["instance"] == "m_0_0"
        assert (line["model"], line["version"]) == ("m", "1")
        assert SECONDS.fullmatch(line["queue"])
        assert SECONDS.fullmatch(line["compute"])


def test_batches_that_follow_each_other(logged, batching):
    _, log = logged(max_batch=4, hold=6)
    futures = batching.ask_all(range(6))
    assert all(f.result(20 * SLOW).status == 200 for f in futures)
    assert sorted(x["batch"] for x in log.lines(6, uri=PATH)) \
        == ["2"] * 2 + ["4"] * 4


def test_times_are_the_request_s_own(logged, batching):
    """Behind one that runs it queues; its own execution is short.  However
    busy the machine is, what was seen in between bounds each time."""
    _, log = logged()
    batching.gate.close()
    asked = time.monotonic()
    first = batching.ask(0)
    batching.gate.wait_entered()
    entered = time.monotonic()
    second = batching.ask(1, rows=2)
    batching.wait_queued(1)
    queued = time.monotonic()
    time.sleep(0.2)
    opened = time.monotonic()
    batching.gate.open()
    assert [f.result(20 * SLOW).status for f in (first, second)] == [200] * 2
    answered = time.monotonic()

    def times(rows):
        line = log.line(uri=PATH, batch=str(rows))
        return float(line["queue"]), float(line["compute"])

    digit = 1e-6
    queue, compute = times(1)
    assert queue <= entered - asked + digit
    assert opened - entered - digit <= compute <= answered - asked + digit
    queue, compute = times(2)
    assert opened - queued - digit <= queue <= answered - entered + digit
    assert compute <= answered - opened + digit


def test_a_full_queue(held, batching):
    server, log = held("default_queue_policy { max_queue_size: 1 }")
    waiting = batching.ask(1)
    batching.wait_queued(1)
    assert server.post(PATH, body(2, id="rejected")).status == 503
    line = log.line(id="rejected")
    assert line["code"] == "Queue full"
    assert UNEXECUTED.items() <= line.items()
    assert (line["queue"], line["version"]) == ("", "1")
    batching.gate.open()
    assert waiting.result(20 * SLOW).status == 200


def test_a_timeout_in_the_queue(held):
    server, log = held("default_queue_policy {"
                       " default_timeout_microseconds: 60000 }")
    assert server.post(PATH, body(id="late")).status == 503
    line = log.line(id="late")
    assert line["code"] == "Timed out"
    assert UNEXECUTED.items() <= line.items()
    assert 0.06 <= float(line["queue"]) < 20 * SLOW


SOON = "location = /soon { inference_model m; inference_timeout 100ms; }"


def test_a_timeout_of_the_location(logged, batching):
    """Once while it runs, once while it is queued."""
    server, log = logged(server=SOON)
    batching.gate.close()
    for identity, tries in (("runs", "1"), ("queued", "0")):
        assert server.post("/soon", body(id=identity)).status == 503
        line = log.line(id=identity)
        assert (line["code"], line["tries"]) == ("Timed out", tries)
        assert line["compute"] == line["batch"] == ""
    batching.gate.open()


def test_a_client_that_leaves(logged, batching):
    server, log = logged()
    batching.gate.close()
    for identity, tries in (("runs", "1"), ("queued", "0")):
        with server.wire() as connection:
            connection.send(request_bytes("POST", PATH, body(id=identity)))
            if tries == "1":
                batching.gate.wait_entered()
            else:
                batching.wait_queued(1)
        line = log.line(id=identity)
        assert line["status"] == 499
        assert (line["code"], line["tries"]) == ("Cancelled", tries)
        assert line["model"] == "m"
    batching.gate.open()


def test_a_core_that_dies(logged, batching):
    """Nothing is known of an execution but that it began."""
    server, log = logged()
    batching.gate.close()
    core = int(server.wait_log(r"core (\d+) started")[1])
    with server.wire() as runs, server.wire() as waits:
        runs.send(request_bytes("POST", PATH, body(id="runs")))
        batching.gate.wait_entered()
        waits.send(request_bytes("POST", PATH, body(id="waits")))
        batching.wait_queued(1)
        batching.gate.open()
        os.kill(core, signal.SIGKILL)
        answers = runs.read(), waits.read()
    for answer, identity, tries in zip(answers, ("runs", "waits"), (1, 0)):
        line = log.line(id=identity)
        assert line["status"] == answer.status
        assert int(line["tries"]) == tries + (answer.status == 200)


def test_the_response_cache(logged):
    server, log = logged(
        extra="response_cache { enable: true }\n",
        http="    inference_response_cache local size=1m;\n")
    for identity in ("miss", "hit"):
        assert server.post(PATH, body(5, id=identity)).status == 200
    miss, hit = log.line(id="miss"), log.line(id="hit")
    assert (miss["code"], miss["tries"], miss["batch"]) == ("OK", "1", "1")
    assert SECONDS.fullmatch(miss["compute"])
    assert hit["code"] == "OK"
    assert UNEXECUTED.items() <= hit.items()
    assert (hit["backend"], hit["version"]) == ("batches", "1")


def others(repository):
    for name, fail in (("error", "execute-error"), ("response", "nowhere")):
        models.identity(repository, name, [("IN", "INT32", [1])],
                        max_batch=4, backend="failing",
                        parameters={"fail": fail})
    models.write_model(repository, "several", models.identity_config(
        "several", [("IN", "INT32", [1])], outputs=[("OUT", "INT32", [1])],
        backend="square"))


@pytest.fixture
def other(make_server):
    folder = backends.build("failing")
    backends.build("square", folder)
    server = make_server(
        others, server=WRITTEN,
        http=FORMAT + f"    inference_backends {folder};\n")
    return server, AccessLog(server)


@pytest.mark.parametrize("model,status,code", [
    ("error", 500, "Internal"), ("response", 503, "Unavailable")])
def test_a_backend_s_error(other, model, status, code):
    server, log = other
    assert server.post(infer_path(model), body(rows=3)).status == status
    line = log.line(uri=infer_path(model))
    assert (line["code"], line["tries"], line["batch"]) == (code, "1", "3")
    assert line["backend"] == "failing"
    assert line["instance"] == f"{model}_0_0"
    assert SECONDS.fullmatch(line["compute"])


def test_several_responses(other):
    """Of which HTTP can bring none; the first one's figures are logged."""
    server, log = other
    answer = server.post(infer_path("several"), json.dumps({"inputs": [
        tensor("IN", "INT32", [1], [3])]}).encode())
    assert answer.status == 500
    line = log.line(uri=infer_path("several"))
    assert (line["code"], line["tries"]) == ("Internal", "1")
    assert (line["batch"], line["instance"]) == ("1", "several_0_0")


def test_what_never_reached_the_core(other):
    server, log = other
    assert server.post(infer_path("error"), b"[").status == 400
    line = log.line(uri=infer_path("error"))
    assert (line["tries"], line["queue"], line["backend"]) == ("", "", "")
    assert line["model"] == "error"


def test_no_inference(other):
    server, log = other
    assert server.get("/v2/models/error").status == 200
    line = log.line(uri="/v2/models/error")
    assert (line["model"], line["tries"], line["batch"]) == ("error", "", "")
