"""The core, a worker or the supervisor is killed: what clients see."""

import json
import os
import pathlib
import re
import signal

import pytest

from lib import backends, models, process
from lib.exposition import wait_executing
from lib.load import Load
from lib.server import SLOW, nap
from lib.wire import request_bytes, tensor

WORKER_KILLED = r"worker process \d+ exited on signal 9"
HELPER_KILLED = r"process \d+ exited on signal 9"

SMALL = {"inputs": [tensor("IN", "INT32", [2], [1, 2])]}


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "slow", [("IN", "INT32", [-1])], instances=2,
                    parameters={"execute_delay_ms": "30"})


def small(connection):
    answer = connection.infer("id_int32", SMALL)
    if answer.status == 200:
        assert answer.json()["outputs"][0]["data"] == [1, 2]
    return answer.status


def slow(connection):
    return connection.infer("slow", SMALL).status


def large(size):
    head = json.dumps({
        "inputs": [tensor("IN", "UINT8", [size], binary_data_size=size)],
        "parameters": {"binary_data_output": True}}).encode()
    tail = os.urandom(size)

    def once(connection):
        answer = connection.infer("id_uint8", head, tail)
        if answer.status == 200:
            assert answer.split()[1] == tail
        return answer.status

    return once


@pytest.mark.parametrize("once,name", [
    (small, "small"), (slow, "slow"), (large(300_000), "large")],
    ids=["small", "slow", "large"])
def test_killed_core_under_load(make_server, once, name):
    server = make_server(fill, workers=2, allow_alarms=[HELPER_KILLED])
    with Load(server.port, once) as load:
        for _ in range(4):
            load.wait_for_more(20, 30 * SLOW)
            server.end_core()
            assert server.wait_for("/v2/health/ready")
        load.wait_for_more(50, 30 * SLOW)
    assert load.results["hung"] == 0, load.results
    assert load.results["lost"] == 0, load.results
    assert set(load.results) == {200}, load.results
    assert load.results[200] > 50
    assert server.infer("id_int32", SMALL).status == 200


def test_request_after_a_death_is_answered_without_retrying_long(make_server):
    server = make_server(fill, allow_alarms=[HELPER_KILLED])
    server.end_core()
    assert process.wait_until(
        lambda: server.infer("id_int32", SMALL).status == 200, 10 * SLOW)


def test_a_leaving_worker_that_is_killed_leaves_no_bytes(make_server):
    """It is not replaced: no other worker has its place."""
    server = make_server(
        lambda repository: models.identity(
            repository, "slow", [("IN", "UINT8", [-1])],
            parameters={"execute_delay_ms": "4000"}),
        allow_alarms=[WORKER_KILLED], parts="health infer metrics")
    head = json.dumps({"inputs": [tensor(
        "IN", "UINT8", [100_000], binary_data_size=100_000)]}).encode()

    def used():
        text = server.get("/metrics").body.decode()
        return float(re.search(r"^\w*request_arena_used_bytes (\d+)$", text,
                               re.M)[1])

    with server.wire(60) as connection:
        connection.send(request_bytes(
            "POST", "/v2/models/slow/infer", head + bytes(100_000),
            {"Inference-Header-Content-Length": str(len(head))}))
        assert process.wait_until(lambda: used() > 100_000, 20 * SLOW)
        (old,) = server.workers()
        server.signal("HUP")
        assert process.wait_until(
            lambda: set(server.workers()) - {old}, 20 * SLOW)
        os.kill(old, signal.SIGKILL)
    assert process.wait_until(lambda: used() == 0, 20 * SLOW)


def test_arena_is_empty_again_after_deaths(make_server):
    """Bodies of nearly the whole arena fit again: nothing leaked."""
    server = make_server(fill, http="    inference_memory 16m;"
                                    "    inference_max_body 0;",
                         allow_alarms=[HELPER_KILLED])
    body = large(3_000_000)
    for _ in range(3):
        with Load(server.port, body, count=3) as load:
            load.wait_for_more(5, 30 * SLOW)
            server.end_core()
            assert server.wait_for("/v2/health/ready")
            load.wait_for_more(5, 30 * SLOW)
        assert set(load.results) <= {200, 404, 503}, load.results
    whole = large(12_000_000)
    with server.wire() as connection:
        # what the load's clients have left is gone soon, and a request's bytes
        # soon after its response
        for _ in range(6):
            assert process.wait_until(lambda: whole(connection) == 200,
                                      20 * SLOW)


def test_executing_request_gets_503_at_once_with_one_try(make_server):
    def one_slow(repository):
        models.identity(repository, "slow", [("IN", "INT32", [-1])],
                        parameters={"execute_delay_ms": "20000"})

    server = make_server(one_slow, allow_alarms=[HELPER_KILLED],
                         parts="health infer metrics",
                         http="    inference_tries 1;")
    connections = [server.wire()]
    for connection in connections:
        body = json.dumps(SMALL).encode()
        connection.send(b"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\n"
                        b"Content-Length: %d\r\n\r\n" % len(body) + body)
    wait_executing(server, 1)
    server.end_core()
    for connection in connections:
        connection.socket.settimeout(8 * SLOW)
        answer = connection.read()
        assert answer.status == 503, answer
        assert answer.error
        assert connection.get("/v2/health/live").status in (200, 400)
        connection.close()


@pytest.mark.parametrize("word", ["initialize-crash", "instance-crash"])
def test_backend_that_crashes_while_loading(make_server, word):
    """Its model never gets ready; nginx lives and so does a good model."""
    folder = backends.build("failing")

    def with_crash(repository):
        models.identity(repository, "good", [("IN", "INT32", [-1])])
        models.identity(repository, "bad", [("IN", "INT32", [-1])],
                        backend="failing", parameters={"fail": word})

    server = make_server(with_crash, wait="",
                         http=f"    inference_backends {folder};",
                         allow_alarms=["exited on signal"])
    assert server.wait_for("/v2/models/good/ready", 60)
    assert process.wait_until(
        lambda: server.infer("good", SMALL).status == 200, 30 * SLOW)
    assert server.get("/v2/models/bad/ready").status in (404, 503)
    server.wait_log("bad")
    nap(2)                      # no endless circle of deaths
    core = server.core()
    nap(2)
    assert server.core() == core
    assert server.infer("good", SMALL).status == 200


def test_backend_that_crashes_in_execute(make_server):
    folder = backends.build("failing")

    def with_crash(repository):
        models.identity(repository, "good", [("IN", "INT32", [-1])])
        models.identity(repository, "bad", [("IN", "INT32", [-1])],
                        backend="failing",
                        parameters={"fail": "execute-crash"})

    server = make_server(with_crash, allow_alarms=["exited on signal"],
                         http=f"    inference_backends {folder};")
    for _ in range(2):
        answer = server.infer("bad", SMALL)
        assert answer.status == 503, answer
        assert process.wait_until(
            lambda: server.infer("good", SMALL).status == 200, 20 * SLOW)


def test_killed_workers(make_server):
    server = make_server(fill, workers=2, allow_alarms=[WORKER_KILLED])
    core = server.core()
    with Load(server.port, small) as load:
        for _ in range(3):
            load.wait_for_more(20, 30 * SLOW)
            os.kill(server.workers()[0], signal.SIGKILL)
        load.wait_for_more(100, 30 * SLOW)
    assert load.results["hung"] == 0
    assert set(load.results) <= {200, "lost"}
    assert server.core() == core
    assert server.infer("id_int32", SMALL).status == 200


def test_a_worker_that_has_just_come_is_not_taken_for_a_lost_core(make_server):
    """A readiness request meets it before it has met the core."""
    server = make_server(fill, allow_alarms=[WORKER_KILLED])
    for _ in range(5):
        os.kill(server.workers()[0], signal.SIGKILL)
        answer = server.get("/v2/health/ready")
        assert answer.status == 200, answer


def test_killed_supervisor_adopts_the_core(make_server):
    server = make_server(fill, allow_alarms=[HELPER_KILLED])
    core = server.core()
    helpers = server.supervisors()
    assert helpers, "no helper process"
    for pid in helpers:
        os.kill(pid, signal.SIGKILL)
    assert process.wait_until(
        lambda: set(server.supervisors()) - set(helpers), 10 * SLOW)
    nap(0.5)
    assert server.core() == core
    assert server.infer("id_int32", SMALL).status == 200
    server.end_core()           # and it watches: a new core comes
    assert server.wait_for("/v2/health/ready")
    assert server.infer("id_int32", SMALL).status == 200


def test_killed_core_and_supervisor_together(make_server):
    server = make_server(fill, allow_alarms=[HELPER_KILLED])
    for _ in range(3):
        core = server.core()
        for pid in [*server.supervisors(), core]:
            os.kill(pid, signal.SIGKILL)
        assert process.wait_until(
            lambda: len(server.cores()) == 1 and server.cores() != [core],
            10 * SLOW)
        assert server.wait_for("/v2/health/ready")
        assert server.infer("id_int32", SMALL).status == 200


def with_child(repository):
    fill(repository)
    models.write_model(
        repository, "child",
        'backend: "spawner"\n'
        + models.io_block("input", [("IN", "INT32", [-1])])
        + models.io_block("output", [("COUNT", "INT32", [1])]))


def test_child_of_a_backend_does_not_hide_a_death(make_server):
    """A backend's own child keeps inherited sockets open."""
    folder = backends.build("spawner")
    server = make_server(with_child, allow_alarms=[HELPER_KILLED],
                         http=f"    inference_backends {folder};")
    answer = server.infer("child", SMALL)
    assert answer.status == 200, answer
    # stdin, stdout, stderr and the directory that the shell lists
    assert answer.json()["outputs"][0]["data"][0] <= 4
    server.end_core()
    assert server.wait_for("/v2/health/ready")
    assert server.infer("id_int32", SMALL).status == 200


def test_a_child_that_outlives_the_core_hides_nothing(make_server, tmp_path):
    """It is in no group of the core's and has all the core's descriptors."""
    folder = backends.build("spawner")
    stays = tmp_path / "stays"
    stays.touch()
    server = make_server(with_child, allow_alarms=[HELPER_KILLED],
                         inference_env=[f"INF_TEST_OUTLIVES={stays}"],
                         http=f"    inference_backends {folder};")
    children = []
    try:
        with Load(server.port, small) as load:
            for name in ("KILL", "KILL", "QUIT"):
                load.wait_for_more(20, 30 * SLOW)
                core = server.core()
                children += process.descendants(core)
                os.kill(core, getattr(signal, f"SIG{name}"))
                assert process.wait_until(
                    lambda old=core: not process.alive(old)
                    and server.core() != old, 30 * SLOW)
                assert server.wait_for("/v2/models/child/ready")
            load.wait_for_more(20, 30 * SLOW)
        assert set(load.results) == {200}, load.results
        assert len(children) == 3
        assert all(process.alive(child) for child in children)
        server.signal("HUP")            # it is no core for the next one
        load_more(server)
    finally:
        stays.unlink()
    assert process.wait_until(
        lambda: not any(process.alive(child) for child in children), 20 * SLOW)


def signal_set(pid, name):
    """The row of /proc/PID/status, as a number: no bit, no signal."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(rf"^{name}:\s*(\w+)$", file.read(), re.M)[1], 16)


def test_a_backend_s_child_inherits_no_signals(make_server):
    """Neither blocked ones nor ignored ones: nginx has both."""
    folder = backends.build("spawner")
    server = make_server(with_child,
                         http=f"    inference_backends {folder};")
    core = server.core()
    child, = process.descendants(core)
    for pid in (core, child):
        assert signal_set(pid, "SigIgn") == 0
    assert signal_set(child, "SigBlk") == 0


@pytest.mark.parametrize("also", ["core alone", "supervisor too"])
def test_what_a_dead_core_leaves_is_removed(make_server, tmp_path, also):
    """Children in its process group, which would stay, and its names of
    shared memory, but not those of others."""
    folder = backends.build("spawner")
    stays = tmp_path / "stays"
    stays.touch()
    server = make_server(with_child, allow_alarms=[HELPER_KILLED],
                         inference_env=[f"INF_TEST_OUTLIVES={stays}",
                                        "INF_TEST_SAME_GROUP=1"],
                         http=f"    inference_backends {folder};")
    core = server.core()
    child, = process.descendants(core)
    names = [pathlib.Path(f"/dev/shm/inference-core.{pid}.{os.getpid()}")
             for pid in (core, f"{core}0")]
    try:
        for name in names:
            name.touch()
        if also == "supervisor too":
            for pid in server.supervisors():
                os.kill(pid, signal.SIGKILL)
        assert server.end_core() == core
        assert process.wait_until(lambda: not process.alive(child), 20 * SLOW)
        assert [name.exists() for name in names] == [False, True]
    finally:
        stays.unlink()
        for name in names:
            name.unlink(missing_ok=True)


def load_more(server):
    with Load(server.port, small, keep=False) as load:
        load.wait_for_more(20, 30 * SLOW)
    assert set(load.results) == {200}, load.results


def listening(port):
    """Inodes of the sockets that listen at the port."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in list(file)[1:]]
    return {row[9] for row in rows
            if row[3] == "0A" and int(row[1].split(":")[1], 16) == port}


def test_the_core_has_no_descriptor_of_nginx(make_server):
    server = make_server(fill)
    inodes = listening(server.port)
    assert inodes
    core = server.core()
    names = [os.readlink(f"/proc/{core}/fd/{fd}")
             for fd in os.listdir(f"/proc/{core}/fd")]
    assert str(server.log) not in names
    assert not {f"socket:[{inode}]" for inode in inodes} & set(names), names
    numbers = {int(fd) for fd in os.listdir(f"/proc/{core}/fd")}
    assert set(range(10)) <= numbers


def test_killed_master_leaves_nothing(make_server):
    """Orphan workers may go on serving; the core ends with the last one."""
    server = make_server(fill, allow_alarms=["exited on signal"])
    pids = server.processes() + server.cores()
    workers = server.workers()
    server.process.kill()
    server.process.wait()
    for pid in workers:
        os.kill(pid, signal.SIGTERM)
    try:
        assert process.wait_until(
            lambda: not [p for p in pids if process.alive(p)], 60 * SLOW)
    finally:
        server.kill()
