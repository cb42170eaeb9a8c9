"""Everything dies, is stopped and reloaded at random, under several hundred
clients: each request is answered once, and by its own answer.

INF_CHAOS_SEED repeats a run's events, INF_CHAOS_SECONDS says how long it goes
on (one minute, unless it says otherwise).
"""

import os
import random
import re
import signal
import time

import pytest

from lib import backends, decoupled, models, process, upgrade
from lib.chaos import (BATCHED, CHAIN, DEATHS, FAST, KILLS, RELOADS, SLOWER,
                       Clients)
from lib.server import SLOW
from lib.wire import request_bytes, tensor

SECONDS = float(os.environ.get("INF_CHAOS_SECONDS", "60"))
SEED = os.environ.get("INF_CHAOS_SEED") or str(random.randrange(10**9))
WORKERS = 4
TRIES = 8
ALARMS = [r"exited on signal", r"has hung for", r"hangs on, it is killed"]
PARTS = "health metadata config infer generate statistics repository metrics"
IN = [("IN", "INT32", [-1])]


def fill(repository):
    models.identity(repository, FAST, IN, instances=2)
    models.identity(repository, SLOWER, IN, instances=8,
                    parameters={"execute_delay_ms": "50"})
    models.identity(
        repository, BATCHED, [("IN", "INT32", [4])], max_batch=8, instances=2,
        parameters={"execute_delay_ms": "5"},
        extra="dynamic_batching { max_queue_delay_microseconds: 500 }\n")
    models.ensemble(
        repository, CHAIN, IN, [("OUT", "INT32", [-1])],
        models.step(FAST, {"IN": "IN"}, {"OUT": "MID"}),
        models.step(SLOWER, {"IN": "MID"}, {"OUT": "OUT"}))
    decoupled.repeat(repository)
    models.identity(repository, "spare", IN)
    models.identity(repository, "bad", IN, backend="failing",
                    parameters={"fail": "execute-crash"})
    models.write_model(
        repository, "forker", 'backend: "forker"\n'
        + models.io_block("input", [("IN", "INT32", [1])])
        + models.io_block("output", [("PID", "INT32", [1])]))


class Chaos:
    """The events that happen to the server, one after another."""

    def __init__(self, server, clients):
        self.server = server
        self.clients = clients
        self.marks = clients.ledger.marks
        self.rng = random.Random(SEED)
        self.log = []
        self.spare = True           # is loaded
        self.kinds = [
            (self.kill_core, 6), (self.pause_core, 3), (self.hang_core, 1),
            (self.kill_worker, 4), (self.kill_supervisor, 3),
            (self.kill_child, 2), (self.reload, 4), (self.load_again, 4),
            (self.load_or_unload, 4), (self.crash, 2),
            (self.kill_core_and_supervisor, 2), (self.kill_all_workers, 1),
            (self.replace_core, 3), (self.upgrade, 1),
            (self.upgrade_and_back, 1)]

    def run(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            event, = self.rng.choices([k for k, _ in self.kinds],
                                      [w for _, w in self.kinds])
            more = self.rng.randint(20, 300)
            self.log.append(event.__name__)
            print(f"event {len(self.log)}: {event.__name__}, then {more}",
                  flush=True)
            event()
            self.go_on(more)

    def go_on(self, more):
        """Until so many more requests have been answered."""
        goal = self.clients.ledger.count() + more
        assert process.wait_until(
            lambda: self.clients.ledger.count() >= goal, 120 * SLOW), \
            "no answers any more\n" + self.server.log_text()[-4000:]
        if not self.server.titled("shutting down"):
            self.marks.end(RELOADS)

    def end_core(self, signo, *others):
        core = self.server.core(60)
        self.marks.begin(DEATHS)
        os.kill(core, signo)
        for pid in others:
            os.kill(pid, signal.SIGKILL)
        self.server.next_core(core, 120)
        self.marks.end(DEATHS)

    def end_workers(self, pids):
        self.marks.begin(KILLS)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        assert process.wait_until(
            lambda: not [p for p in pids if process.alive(p)], 60 * SLOW)
        self.marks.end(KILLS)

    def call(self, path, body=b"{}", statuses=(200,)):
        """Of the control group: on a connection that no kill of this thread
        ends."""
        with self.server.wire(240) as connection:
            connection.send(request_bytes("POST", path, body))
            answer = connection.read()
        assert answer.status in statuses, (path, answer)
        return answer

    # ---- events

    def kill_core(self):
        self.end_core(signal.SIGKILL)

    def kill_core_and_supervisor(self):
        self.end_core(signal.SIGKILL, *self.server.supervisors())

    def replace_core(self):
        """On purpose: no request may notice."""
        core = self.server.core(60)
        os.kill(core, signal.SIGQUIT)
        self.server.next_core(core, 120)

    def pause_core(self):
        core = self.server.core(60)
        os.kill(core, signal.SIGSTOP)
        time.sleep(self.rng.uniform(0.05, 0.5))
        os.kill(core, signal.SIGCONT)

    def hang_core(self):
        """The supervisor ends it."""
        self.end_core(signal.SIGSTOP)

    def kill_worker(self):
        self.end_workers([self.rng.choice(sorted(self.server.workers()))])

    def kill_all_workers(self):
        self.end_workers(self.server.workers())

    def kill_supervisor(self):
        for pid in self.server.supervisors():
            os.kill(pid, signal.SIGKILL)

    def kill_child(self):
        """Of a backend."""
        for pid in process.descendants(self.server.core(60))[:1]:
            os.kill(pid, signal.SIGKILL)

    def reload(self):
        old = set(self.server.workers())
        self.marks.begin(RELOADS)
        self.server.signal("HUP")
        assert process.wait_until(
            lambda: set(self.server.workers()) - old, 60 * SLOW), \
            "no new workers"

    def upgrade(self):
        self.marks.begin(RELOADS)
        upgrade.finish(self.server, *upgrade.begin(self.server))

    def upgrade_and_back(self):
        self.marks.begin(RELOADS)
        upgrade.take_back(self.server, *upgrade.begin(self.server))

    def load_again(self):
        name = self.rng.choice([FAST, SLOWER, BATCHED])
        self.call(f"/v2/repository/models/{name}/load")

    def load_or_unload(self):
        self.spare = not self.spare
        self.call("/v2/repository/models/spare/"
                  + ("load" if self.spare else "unload"))

    def crash(self):
        """One poisonous request, which has two tries."""
        self.marks.begin(DEATHS, 2)
        body = request_bytes("POST", "/v2/models/bad/infer", (
            b'{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],'
            b'"data":[1]}]}'))
        with self.server.wire(240) as connection:
            connection.send(body)
            answer = connection.read()
        assert answer.status == 503, answer
        self.marks.end(DEATHS)
        # after some of these it is quarantined, which this ends
        self.call("/v2/repository/models/bad/load")


def gauges(server):
    """Bytes that workers hold, as the metrics say."""
    text = server.get("/metrics").body.decode()
    return {name: float(value) for name, value in re.findall(
        r"^nginx_inference_(request_arena_\w+) (\S+)$", text, re.M)}


def settled(server):
    workers = server.workers()
    return len(server.cores()) == 1 and len(server.supervisors()) == 1 \
        and len(workers) == WORKERS and not server.titled("shutting down")


def held(server):
    """Descriptors of everything: (master, supervisor, core, workers)."""
    return [process.descriptors(server.process.pid),
            process.descriptors(server.supervisors()[0]),
            process.descriptors(server.core()),
            max(process.descriptors(w) for w in server.workers())]


@pytest.fixture
def server(make_server, tmp_path):
    folders = sorted({backends.build(b) for b in ("failing", "forker")})
    made = make_server(
        fill, workers=WORKERS, http2=True, parts=PARTS, connections=2048,
        allow_alarms=ALARMS, start=False, daemon=True,
        http="    keepalive_requests 1000000;\n    keepalive_timeout 1h;\n"
             "    inference_model_control explicit;\n"
             "    inference_load_model *;\n"
             f"    inference_tries {TRIES};\n"
             + "".join(f"    inference_backends {f};\n" for f in folders),
        server="location /v2/models/bad/ { inference infer;"
               " inference_tries 2; }")
    made.write_config(core_options=made.fields["core_options"] + " hang=4s")
    return made.start(seconds=60)


def test_chaos(server):
    print(f"INF_CHAOS_SEED={SEED} INF_CHAOS_SECONDS={SECONDS:g}")
    small = {"inputs": [tensor("IN", "INT32", [1], [1])]}
    assert all(server.infer(FAST, small).status == 200 for _ in range(20))
    before = held(server)
    with Clients(server, SEED, TRIES) as clients:
        chaos = Chaos(server, clients)
        chaos.go_on(200)
        chaos.run(SECONDS)
        assert process.wait_until(
            lambda: server.status("/v2/health/ready") == 200, 60 * SLOW), \
            server.post("/v2/repository/index", b"{}")
        chaos.go_on(400)
    ledger = clients.ledger
    print(sorted(ledger.results.items()))
    assert not ledger.wrong, "\n".join(
        [f"seed {SEED}, {len(ledger.wrong)} wrong"] + ledger.wrong[:20])
    assert process.wait_until(lambda: settled(server), 60 * SLOW), \
        [process.cmdline(p) for p in server.processes()]
    assert process.wait_until(
        lambda: not any(gauges(server).values()), 30 * SLOW), gauges(server)
    assert process.wait_until(
        lambda: all(a <= b for a, b in zip(held(server), before)),
        30 * SLOW), (before, held(server))
    assert all(server.infer(FAST, small).status == 200 for _ in range(50))
