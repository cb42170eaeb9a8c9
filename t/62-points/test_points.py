"""The core or a worker dies at each point of a request's life."""

import contextlib
import json
import os
import re
import signal
import threading

import pytest

from lib import exposition, models, process
from lib.grpc_client import Client, Failure, number, numbers
from lib.regions import Object
from lib.server import BUILD, ROOT, SLOW, Server, nap
from lib.wire import fetch, infer_path, request_bytes, tensor

KILLED = r"exited on signal 9"
PARTS = "health metadata config infer repository logging metrics" \
    " shared_memory"
POINTS = BUILD / "points"
VALUES = list(range(64))
BODY = json.dumps({"inputs": [tensor("IN", "INT32", [64], VALUES)],
                   "parameters": {"binary_data_output": True}}).encode()
PACKED = b"".join(v.to_bytes(4, "little") for v in VALUES)


# ---- kinds of requests: each returns whether it was answered as it should be,
# or raises what a lost connection is

def infer(server, model="fast"):
    answer = fetch(server.port, "POST", infer_path(model), BODY)
    assert answer.status == 200, answer
    return answer.split()[1] == PACKED


def infer_when_the_core_dies(server):
    """An inference that executes when its core is killed."""
    def kill():
        nap(0.3)
        os.kill(server.core(), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        return infer(server, "slow")
    finally:
        killer.join()


def infer_when_the_core_is_new(server):
    """With a core that all workers register with."""
    os.kill(server.core(), signal.SIGKILL)
    return infer(server)


def stream(server):
    with Client(server.port2) as client, client.stream() as s:
        s.send(numbers("fast", [1]), numbers("fast", [2]))
        try:
            return [number(a) for a in s.read(2)] == [1, 2]
        except Failure as e:
            raise ConnectionError(e.text) from None


def call(server):
    answer = fetch(server.port, "GET", "/v2")
    assert answer.status == 200, answer
    return b"triton" in answer.body


def setting(server):
    answer = fetch(server.port, "POST", "/v2/logging",
                   b'{"log_verbose_level":0}')
    assert answer.status == 200, answer
    return b"log_verbose_level" in answer.body


def load(server):
    """One that changes something: others are not noted."""
    for what in ("unload", "load"):
        answer = fetch(server.port, "POST",
                       f"/v2/repository/models/spare/{what}", b"{}")
        assert answer.status == 200, answer
    return True


KINDS = {
    "CHANNEL_ADMITTED": infer_when_the_core_is_new,
    "WELCOME_TAKEN": infer_when_the_core_is_new,
    "RETRY_BEGUN": infer_when_the_core_dies,
    "RETRY_COPIED": infer_when_the_core_dies,
    "MESSAGE_COMPLETE": stream, "RESPONSE_STREAMED": stream,
    "CALL_TAKEN": call, "CALL_RUN": call, "SETTING_NOTED": setting,
    "LOAD_NOTED": load}


def listed():
    """[(point, "core" or "worker")] of the header."""
    text = (ROOT / "core/base/points.h").read_text(encoding="utf-8")
    return re.findall(r"^    X\((\w+)\) +/\* (core|worker):", text, re.M)


def fill(repository):
    models.identity(repository, "fast", [("IN", "INT32", [-1])], instances=2)
    models.identity(repository, "slow", [("IN", "INT32", [-1])], instances=2,
                    parameters={"execute_delay_ms": "900"})
    models.identity(repository, "spare", [("IN", "INT32", [-1])])


class Place:
    """The file that says where something happens."""

    def __init__(self, directory):
        self.file = directory / "point"
        self.hit = directory / "point.hit"

    def arm(self, point, what):
        self.hit.unlink(missing_ok=True)
        new = self.file.with_suffix(".new")
        new.write_text(f"{point} {what}\n", encoding="utf-8")
        new.rename(self.file)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("points")
    directory.chmod(0o755)
    return Place(directory)


@pytest.fixture(scope="module")
def server(place):
    s = Server(fill, workers=2, http2=True, parts=PARTS,
               core=POINTS / "inference-core", allow_alarms=[KILLED],
               main=f"env INF_POINT_AT={place.file};",
               inference_env=[f"INF_POINT_AT={place.file}"],
               http="    inference_model_control explicit;\n"
                    "    inference_load_model *;\n",
               server="location /once/ { inference infer;"
                      " inference_tries 1; }")
    s.write_config(module=POINTS / "ngx_http_inference_module.so")
    with s.start():
        assert infer(s) and stream(s) and call(s) and load(s)
        s.before = held(s)
        yield s


def held(server):
    """Descriptors of the core, which has some for each channel."""
    return process.descriptors(server.core(60))


def stopped(pid):
    s = process.stat(pid)
    return s is not None and s[1] == "T"


def settled(server):
    return len(server.cores()) == 1 and len(server.workers()) == 2 \
        and server.status("/v2/models/fast/ready") == 200 \
        and server.status("/v2/models/slow/ready") == 200 \
        and server.status("/v2/models/spare/ready") == 200


def check_nothing_is_left(server):
    assert process.wait_until(lambda: settled(server), 60 * SLOW), \
        server.log_text()[-3000:]
    for _ in range(4):                      # through both workers
        assert infer(server)

    def gauges():
        return exposition.requests_held(exposition.scrape(server))

    assert process.wait_until(lambda: not any(gauges().values()),
                              30 * SLOW), gauges()
    assert process.wait_until(lambda: held(server) == server.before,
                              30 * SLOW), (server.before, held(server))
    server.check_log()


class Asked:
    """A request in a thread of its own."""

    def __init__(self, kind, server):
        self.result = self.error = None
        self.thread = threading.Thread(target=self._run, args=(kind, server))
        self.thread.start()

    def _run(self, kind, server):
        try:
            self.result = "right" if kind(server) else "wrong"
        except OSError:
            self.result = "lost"
        except BaseException as e:      # pylint: disable=broad-except
            self.error = e

    def end(self):
        self.thread.join(120 * SLOW)
        assert not self.thread.is_alive(), "no answer"
        if self.error is not None:
            raise self.error
        return self.result


def test_an_error_of_a_client_fails_the_test():
    asked = Asked(lambda _: json.loads("{"), None)
    with pytest.raises(json.JSONDecodeError):
        asked.end()


def test_every_point_has_its_comment():
    text = (ROOT / "core/base/points.h").read_text(encoding="utf-8")
    assert len(listed()) == len(re.findall(r"^    X\(", text, re.M)) >= 20


@pytest.mark.parametrize("point,side", listed())
def test_killed_there(server, place, point, side):
    """A core's death costs time, a worker's the connection."""
    place.arm(point, "kill")
    asked = Asked(KINDS.get(point, infer), server)
    assert process.wait_until(place.hit.exists, 30 * SLOW), "never reached"
    assert asked.end() in (("right",) if side == "core"
                           else ("right", "lost"))
    check_nothing_is_left(server)


@pytest.mark.parametrize("point,side", listed())
def test_the_other_is_killed_there(server, place, point, side):
    """While the one that has reached the point stands there."""
    before = set(server.workers())
    place.arm(point, "stop")
    asked = Asked(KINDS.get(point, infer), server)
    assert process.wait_until(place.hit.exists, 30 * SLOW), "never reached"
    own, others = (server.cores, server.workers) if side == "core" \
        else (server.workers, server.cores)
    standing = process.wait_until(
        lambda: [p for p in own() if stopped(p)], 30 * SLOW)
    assert len(standing) == 1, "nothing stands there"
    victims = process.wait_until(
        lambda: [p for p in others() if not stopped(p)], 30 * SLOW)
    assert victims, "the other one is not there"
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    assert process.wait_until(
        lambda: not [p for p in victims if process.alive(p)], 30 * SLOW)
    for pid in standing:
        os.kill(pid, signal.SIGCONT)
    assert asked.end() in (("right",) if side == "worker"
                           else ("right", "lost"))
    if side == "core":
        assert not before & set(server.workers())
    check_nothing_is_left(server)


@pytest.mark.parametrize("point", ["CALL_TAKEN", "SETTING_NOTED"])
def test_a_registration_that_the_core_had_is_not_repeated(server, place,
                                                          point):
    """The next core might say that the region is there already."""
    with contextlib.closing(Object(4096)) as memory:
        place.arm(point, "kill")
        answer = fetch(
            server.port, "POST", "/v2/systemsharedmemory/region/r/register",
            json.dumps({"key": memory.key, "byte_size": 64}).encode())
        assert answer.status == 503
        assert answer.headers["retry-after"]
        assert "may have been carried out" in answer.error
        check_nothing_is_left(server)
        there = server.get("/v2/systemsharedmemory/status").json()
        assert [r["name"] for r in there] == (
            ["r"] if point == "SETTING_NOTED" else [])
        assert server.post("/v2/systemsharedmemory/unregister",
                           b"{}").status == 200


@pytest.mark.parametrize("point,status", [
    ("RECORD_COPIED", 200), ("SLOT_QUEUED", 200), ("SLOT_EXECUTING", 503),
    ("BACKEND_CALLED", 503), ("SLOT_ANSWERED", 503),
    ("COMPLETION_WRITTEN", 200)])
def test_tries_count_from_the_execution_to_the_answer(server, place, point,
                                                      status):
    """In a location with one try."""
    place.arm(point, "kill")
    answer = fetch(server.port, "POST", "/once/v2/models/fast/infer", BODY)
    assert answer.status == status, answer
    check_nothing_is_left(server)
