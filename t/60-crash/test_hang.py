"""The core hangs: its supervisor ends it, and requests go to the next one."""

import json
import os
import re
import signal

import pytest

from lib import models, preload, process
from lib.exposition import figure
from lib.load import Load
from lib.server import CORE, SLOW, nap
from lib.wire import tensor

ALARMS = [r"has hung for", r"hangs on, it is killed", r"exited on signal",
          r"has not begun to end"]
BODY = json.dumps({"inputs": [tensor("IN", "INT32", [3], [1, 2, 3])]}).encode()


def fill(repository):
    models.identity(repository, "brief", [("IN", "INT32", [-1])], instances=4,
                    parameters={"execute_delay_ms": "5"})
    models.identity(repository, "long", [("IN", "INT32", [-1])],
                    parameters={"execute_delay_ms": "4000"})


def configure(server, options):
    """The program with options of its own."""
    text = server.conf.read_text(encoding="utf-8")
    changed = re.sub(rf"(inference_core {re.escape(str(CORE))})[^;]*;",
                     rf"\1 {options} dump=on;", text)
    assert changed != text
    server.conf.write_text(changed, encoding="utf-8")


@pytest.fixture
def start(make_server):
    def make(options, **kw):
        server = make_server(fill, allow_alarms=ALARMS, **kw)
        configure(server, options)
        supervisor = server.supervisors()
        server.signal("HUP")
        # a core that stands still when its parent exits gets SIGHUP
        assert process.wait_until(
            lambda: len(server.supervisors()) == 1
            and not set(server.supervisors()) & set(supervisor), 20 * SLOW)
        return server
    return make


def test_a_stopped_core_fails_no_request(start):
    server = start("hang=1s", workers=2,
                   server="location = /metrics { inference metrics; }")
    assert figure(server, "core_hangs_total") == 0

    def once(connection):
        return connection.infer("brief", BODY).status

    core = server.core()
    with Load(server.port, once, count=20, patience=60.0 * SLOW) as load:
        load.wait_for_more(200, 30 * SLOW)
        process.stop(core)
        server.next_core(core)
        load.wait_for_more(200, 30 * SLOW)
    assert set(load.results) == {200}, load.results
    assert f"core {core} has hung for 1000 ms" in server.log_text()
    assert f"core {core} hangs on, it is killed" in server.log_text()
    assert figure(server, "core_hangs_total") == 1
    assert figure(server, "core_deaths_total") == 1


def test_long_executions_and_pauses_are_no_hang(start):
    """An execution takes longer than the core may hang, and the supervisor
    stands still."""
    server = start("hang=1s")
    core = server.core()
    (supervisor,) = server.supervisors()
    process.stop(supervisor)
    answer = server.post("/v2/models/long/infer", BODY)
    os.kill(supervisor, signal.SIGCONT)
    assert answer.status == 200
    assert server.post("/v2/models/long/infer", BODY).status == 200
    assert server.cores() == [core]
    assert "has hung" not in server.log_text()


def test_without_a_bound_the_core_may_hang(start):
    server = start("hang=0")
    core = server.core()
    process.stop(core)
    nap(3)
    os.kill(core, signal.SIGCONT)
    assert server.post("/v2/models/brief/infer", BODY).status == 200
    assert server.cores() == [core]


def test_after_a_reload_the_next_supervisor_watches(start):
    server = start("hang=1s")
    core = server.core()
    configure(server, "hang=2s")
    supervisor = server.supervisors()
    server.signal("HUP")
    assert process.wait_until(
        lambda: len(server.supervisors()) == 1
        and server.supervisors() != supervisor, 10 * SLOW)
    process.stop(core)
    server.next_core(core)
    assert f"core {core} has hung for 2000 ms" in server.log_text()
    server.wait_for("/v2/models/brief/ready")


def test_the_master_sleeps_while_it_waits_for_a_silent_core(start):
    """Its output has no writer, and could be read for ever."""
    server = start("hang=0", inference_env=[preload.environment("silent")])
    core = server.core()
    process.stop(core)
    server.signal("QUIT")
    assert process.wait_until(lambda: not server.workers()
                              and not server.supervisors(), 20 * SLOW)
    nap(0.5)
    before = process.cpu_seconds([server.process.pid])
    nap(2)
    assert process.cpu_seconds([server.process.pid]) - before < 0.2
    os.kill(core, signal.SIGCONT)
    assert server.process.wait(20 * SLOW) == 0
    assert f"core {core} has ended" in server.log_text()


@pytest.mark.parametrize("hangs", [True, False])
def test_after_quit_the_master_ends_a_core_that_hangs(start, hangs):
    """A core that ends takes its time."""
    server = start("hang=1s")
    core = server.core()
    if hangs:
        process.stop(core)
    server.signal("QUIT")
    assert server.process.wait(20 * SLOW) == 0
    assert not process.alive(core)
    text = server.log_text()
    assert f"core {core} has ended" in text
    assert (f"core {core} has not begun to end for 1000 ms" in text) == hangs
    assert (f"core {core} hangs on, it is killed" in text) == hangs
