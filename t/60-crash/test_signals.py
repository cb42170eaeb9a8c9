"""Reload, stop, log reopening, environment: what an operator does."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest

from lib import backends, models, preload, process
from lib.exposition import figure, wait_executing
from lib.h2 import H2
from lib.load import Load
from lib.server import SANITIZER, SLOW, nap
from lib.wire import infer_path, tensor

SMALL = {"inputs": [tensor("IN", "INT32", [2], [1, 2])]}


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "slow", [("IN", "INT32", [-1])], instances=4,
                    parameters={"execute_delay_ms": "50"})


def once(model):
    def ask(connection):
        answer = connection.infer(model, SMALL)
        if answer.status == 200:
            assert answer.json()["outputs"][0]["data"] == [1, 2]
        return answer.status
    return ask


def reload(server):
    old = set(server.workers())
    server.signal("HUP")
    assert process.wait_until(
        lambda: set(server.workers()) - old, 20 * SLOW), "no new workers"


def test_counters_outlive_the_processes_that_count(make_server):
    """A reload, a worker, the supervisor and the core."""
    server = make_server(fill, allow_alarms=["exited on signal 9"],
                         server="location = /metrics { inference metrics; }")
    assert server.infer("id_int32", SMALL).status == 200
    old = server.workers()
    reload(server)
    assert process.wait_until(lambda: not any(map(process.alive, old)),
                              20 * SLOW)
    assert server.infer("id_int32", SMALL).status == 200
    for pid in (*server.workers(), *server.supervisors(), server.core()):
        os.kill(pid, signal.SIGKILL)
        assert process.wait_until(lambda: not process.alive(pid), 20 * SLOW)
    assert process.wait_until(server.workers, 20 * SLOW)
    assert server.wait_for("/v2/health/ready")
    assert server.infer("id_int32", SMALL).status == 200
    assert figure(server, "requests_total") == 3
    assert figure(server, "core_starts_total") == 2


@pytest.mark.parametrize("model,keep", [("id_int32", True),
                                        ("id_int32", False),
                                        ("slow", False)])
def test_twenty_reloads_under_load(make_server, model, keep):
    server = make_server(fill, workers=2)
    core = server.core()
    with Load(server.port, once(model), keep=keep) as load:
        for _ in range(20):
            load.wait_for_more(10, 30 * SLOW)
            reload(server)
        load.wait_for_more(50, 30 * SLOW)
    assert set(load.results) == {200}, load.results
    assert server.core() == core
    assert process.wait_until(
        lambda: len(server.workers()) == 2, 20 * SLOW)


@pytest.mark.parametrize("count", [1, 5])
def test_a_connection_that_had_sent_nothing_is_told_of_a_reload(make_server,
                                                                count):
    """HTTP/2: the old worker answers its first requests, which it receives at
    once, and sends GOAWAY."""
    server = make_server(fill, http2=True)
    old = server.workers()
    with socket.create_connection(("127.0.0.1", server.port2), 20) as made:
        nap(0.3)                # it is accepted
        reload(server)
        server.wait_log("gracefully shutting down", 20 * SLOW)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        with H2(0, 1 << 20, 60 * SLOW, True, made) as connection:
            body = json.dumps(SMALL).encode()
            streams = [connection.post(
                infer_path("id_int32"),
                {"content-length": str(len(body))}, body)
                for _ in range(count)]
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
            assert [connection.read(s).status for s in streams] \
                == [200] * count
            while connection.last is None:
                connection.step()
            assert connection.last == streams[-1]
            assert process.wait_until(
                lambda: not set(old) & set(server.workers()), 20 * SLOW)


def test_reload_under_many_quick_signals(make_server):
    server = make_server(fill)
    core = server.core()
    with Load(server.port, once("id_int32"), keep=False) as load:
        for _ in range(10):
            server.signal("HUP")
            time.sleep(0.03)
        load.wait_for_more(50, 30 * SLOW)
    assert set(load.results) == {200}, load.results
    assert server.core() == core


def test_reload_with_a_bad_configuration_changes_nothing(make_server):
    server = make_server(fill, allow_alarms=[r"\[emerg\]"])
    core, workers = server.core(), server.workers()
    good = server.conf.read_text()
    server.conf.write_text(good.replace("inference_core", "inference_kore"))
    server.signal("HUP")
    server.wait_log("inference_kore")
    assert (server.core(), server.workers()) == (core, workers)
    assert server.infer("id_int32", SMALL).status == 200
    server.conf.write_text(good)
    reload(server)
    assert server.core() == core


def test_reload_with_changed_locations(make_server):
    server = make_server(fill)
    core = server.core()
    assert server.post("/mine", b"{}").status == 404
    server.write_config(
        server="location = /mine { inference_model id_int32; }")
    reload(server)
    assert process.wait_until(
        lambda: server.post("/mine", b"{}").status == 400, 10 * SLOW)
    assert server.core() == core


def test_reload_that_turns_inference_off_and_on(make_server):
    server = make_server(fill)
    core = server.core()
    good = server.conf.read_text()
    lines = [line for line in good.splitlines()
             if "inference" not in line or "load_module" in line
             or "error_log" in line or "pid" in line]
    server.conf.write_text("\n".join(lines))
    reload(server)
    assert process.wait_until(lambda: not process.alive(core), 60 * SLOW)
    server.conf.write_text(good)
    reload(server)
    assert server.wait_for("/v2/health/ready")
    assert server.core() != core


@pytest.mark.parametrize("name", ["QUIT", "TERM", "INT"])
def test_stop_leaves_nothing(make_server, name):
    server = make_server(fill, workers=2)
    assert server.infer("id_int32", SMALL).status == 200
    server.stop(name)           # checks processes, sockets, shared memory


def test_quit_lets_requests_in_flight_finish(make_server):
    def one_slow(repository):
        models.identity(repository, "slow", [("IN", "INT32", [-1])],
                        parameters={"execute_delay_ms": "3000"})

    server = make_server(one_slow, parts="health infer metrics")
    connection = server.wire()
    body = json.dumps(SMALL).encode()
    connection.send(b"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(body) + body)
    wait_executing(server, 1)
    server.signal("QUIT")
    answer = connection.read()
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"] == [1, 2]
    connection.close()
    server.stop()


def test_stop_under_load(make_server):
    for name in ("QUIT", "TERM"):
        server = make_server(fill, workers=2)
        with Load(server.port, once("id_int32"), count=4) as load:
            load.wait_for_more(50, 30 * SLOW)
            server.stop(name)
        assert load.results["hung"] == 0


def has_open(server, file):
    """Whether a process of the server has."""
    for pid in server.processes():
        with contextlib.suppress(FileNotFoundError):
            for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                if os.readlink(fd) == str(file):
                    return True
    return False


def test_log_reopening_moves_the_core_s_lines_too(make_server):
    server = make_server(
        fill, http="    inference_log info verbose=1;",
        allow_alarms=[r"exited on signal 9"])
    old = server.prefix / "error.log.1"
    server.wait_log("id_int32")         # the core has logged its models
    server.log.rename(old)
    server.signal("USR1")
    assert process.wait_until(
        lambda: server.log.exists() and not has_open(server, old), 10 * SLOW)
    before = old.stat().st_size
    os.kill(server.core(), 9)           # its successor logs its models again
    assert server.wait_for("/v2/health/ready")
    server.wait_log("id_int32")
    assert "id_int32" not in old.read_text()[before:]


def test_many_starts_and_stops(make_server):
    for _ in range(5):
        make_server(fill, wait="").stop("TERM")
        make_server(fill).stop("QUIT")


def test_runs_as_another_user(make_server, tmp_path):
    """Workers, supervisor and core run as `user`, the master as root."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    import shutil
    from lib.server import BACKENDS, BUILD
    tmp_path.chmod(0o755)
    for name in ("inference-core", "libtritonserver.so"):
        shutil.copy(BUILD / name, tmp_path)
    shutil.copytree(BACKENDS / "identity", tmp_path / "backends/identity",
                    ignore=shutil.ignore_patterns("CMake*", "*.cmake"))
    server = make_server(fill, user="nobody nogroup",
                         core=tmp_path / "inference-core",
                         backends=tmp_path / "backends")
    assert server.infer("id_int32", SMALL).status == 200
    for pid in [server.core(), *server.workers()]:
        assert os.stat(f"/proc/{pid}").st_uid != 0
    reload(server)
    assert server.infer("id_int32", SMALL).status == 200


def test_four_workers_to_one_and_back(make_server):
    server = make_server(fill, workers=1)
    core = server.core()
    for workers in (4, 1, 3):
        server.write_config(workers=workers)
        reload(server)
        assert process.wait_until(
            lambda n=workers: len(server.workers()) == n, 20 * SLOW)
        with Load(server.port, once("id_int32"), count=8,
                  keep=False) as load:
            load.wait_for_more(100, 30 * SLOW)
        assert set(load.results) == {200}
    assert server.core() == core


# ---- environment

def environment_server(make_server, **kw):
    folder = backends.build("environment")

    def repository(path):
        models.write_model(
            path, "env", 'backend: "environment"\n'
            + models.io_block("input", [("NAME", "BYTES", [1])])
            + models.io_block("output", [("VALUE", "BYTES", [1])]))

    return make_server(repository, http=f"    inference_backends {folder};",
                       **kw)


def value_of(server, name):
    answer = server.infer("env", {"inputs": [
        tensor("NAME", "BYTES", [1], [name])]})
    assert answer.status == 200, answer
    return answer.json()["outputs"][0]["data"][0]


def test_environment_of_the_master_reaches_a_backend(make_server):
    server = environment_server(make_server, env={
        "CUDA_VISIBLE_DEVICES": "7", "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "se/cr=et ", "EMPTY": ""})
    assert value_of(server, "CUDA_VISIBLE_DEVICES") == "7"
    assert value_of(server, "AWS_ACCESS_KEY_ID") == "AKIAEXAMPLE"
    assert value_of(server, "AWS_SECRET_ACCESS_KEY") == "se/cr=et "
    assert value_of(server, "EMPTY") == ""
    assert value_of(server, "NOT_SET_ANYWHERE") == "(unset)"


def test_inference_env_is_on_top(make_server):
    server = environment_server(
        make_server, env={"CUDA_VISIBLE_DEVICES": "7", "KEPT": "yes"},
        inference_env=["CUDA_VISIBLE_DEVICES=0,1", '"TEXT=two words"'])
    assert value_of(server, "CUDA_VISIBLE_DEVICES") == "0,1"
    assert value_of(server, "TEXT") == "two words"
    assert value_of(server, "KEPT") == "yes"


def test_environment_is_kept_from_workers_argv_and_log(make_server):
    server = environment_server(
        make_server, log_level="debug",
        env={"AWS_SECRET_ACCESS_KEY": "hidden-secret-1"},
        inference_env=["AWS_SESSION_TOKEN=hidden-secret-2"])
    assert value_of(server, "AWS_SESSION_TOKEN") == "hidden-secret-2"
    for pid in [*server.workers(), *server.cores()]:
        assert "hidden-secret" not in process.cmdline(pid)
    assert "hidden-secret" not in server.log_text()


def test_environment_survives_reload_and_death(make_server):
    server = environment_server(make_server, env={"MINE": "first"},
                                allow_alarms=["exited on signal 9"])
    reload(server)
    assert value_of(server, "MINE") == "first"
    os.kill(server.core(), 9)
    assert process.wait_until(
        lambda: server.status("/v2/models/env/ready") == 200, 20 * SLOW)
    nap(0.2)
    assert process.wait_until(
        lambda: server.infer("env", {"inputs": [
            tensor("NAME", "BYTES", [1], ["MINE"])]}).status == 200,
        20 * SLOW)
    assert value_of(server, "MINE") == "first"


def jemalloc():
    out = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True,
                         check=True).stdout
    return next(line.split()[-1] for line in out.splitlines()
                if "libjemalloc.so.2" in line)


def test_jemalloc_is_preloaded_by_inference_env(make_server):
    if SANITIZER:
        pytest.skip("a sanitizer has an allocator of its own")
    server = environment_server(
        make_server, inference_env=[f"LD_PRELOAD={jemalloc()}"])
    assert value_of(server, "/maps:libjemalloc") == "mapped"
    for pid in server.workers():
        with open(f"/proc/{pid}/maps", encoding="ascii") as f:
            assert "libjemalloc" not in f.read()


def test_jemalloc_is_preloaded_by_the_master_s_environment(make_server):
    if SANITIZER:
        pytest.skip("a sanitizer has an allocator of its own")
    server = environment_server(make_server,
                                env={"LD_PRELOAD": jemalloc()})
    assert value_of(server, "/maps:libjemalloc") == "mapped"


def test_unloads_beside_another_allocator(make_server):
    """The first malloc_trim() is not one of several at once."""
    names = [f"m{i}" for i in range(8)]

    def fill(repository):
        for name in names:
            models.identity(repository, name, [("IN", "INT32", [-1])])

    server = make_server(
        fill, parts="health repository", inference_env=[
            preload.environment("late_allocator")],
        http="    inference_model_control explicit;"
             "    inference_load_model *;")
    core = server.core()
    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        answers = list(pool.map(lambda name: server.post(
            f"/v2/repository/models/{name}/unload", b""), names))
    assert [a.status for a in answers] == [200] * len(names), answers
    assert process.wait_until(
        lambda: all(row.get("reason") == "unloaded" for row in server.post(
            "/v2/repository/index", b"").json()), 20 * SLOW)
    assert server.core() == core
