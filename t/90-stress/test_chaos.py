"""Everything dies, is stopped and reloaded at random, under several hundred
clients: each request is answered once, and by its own answer.  Afterwards
everything is as it was, and each alarm in the log names a process that was
killed.

INF_CHAOS_SEED repeats a run's events, INF_CHAOS_SECONDS says how long it goes
on (one minute, unless it says otherwise).
"""

import contextlib
import json
import os
import random
import re
import select
import signal
import time

import pytest

from lib import (backends, decoupled, exposition, models, process, sequences,
                 upgrade)
from lib.batches import Gate
from lib.chaos import Clients
from lib.chaos.ledger import DEATHS, ENDED, ENDS, KILLS, RELOADS
from lib.chaos.requests import BATCHED, CHAIN, FAST, SLOWER, SUM
from lib.server import ALARM, SLOW
from lib.wire import infer_path, request_bytes, tensor

SECONDS = float(os.environ.get("INF_CHAOS_SECONDS", "60"))
SEED = os.environ.get("INF_CHAOS_SEED") or str(random.randrange(10**9))
WORKERS = 4
TRIES = 8
ALARMS = [r"exited on signal"]      # check_alarms is stricter
KILLED = re.compile(r"process (\d+) exited on signal 9\b")
BLAMED = re.compile(r"the last core died of signal 6 .* model=bad version=1 "
                    r"(?:backend=failing instance=bad_0_0 )?was executing")
DIED = re.compile(r"inference: core (\d+) (?:exited|ended,)")
PARTS = "health metadata config infer generate statistics repository metrics"
IN = [("IN", "INT32", [-1])]
SMALL = json.dumps({"inputs": [tensor("IN", "INT32", [1], [1])]}).encode()
KINDS = {"rest", "events", "calls", "stream", "sequences", "control", "h2"}


def fill(repository, gate):
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
    models.identity(
        repository, SUM, [("IN", "INT32", [1])],
        outputs=[("OUT", "INT32", [1])], max_batch=8, instances=2,
        backend="sequences", parameters={"does": "sum"},
        extra="sequence_batching { oldest { max_candidate_sequences: 1000 }\n"
              + sequences.LONG + sequences.ALL + sequences.state() + "}\n")
    models.identity(repository, "held", IN, backend="batches",
                    parameters={"gate": gate.path})
    models.identity(repository, "spare", IN)
    models.identity(repository, "bad", IN, backend="failing",
                    parameters={"fail": "execute-crash"})
    models.write_model(
        repository, "forker", 'backend: "forker"\n'
        + models.io_block("input", [("IN", "INT32", [1])])
        + models.io_block("output", [("PID", "INT32", [1])]))


class Chaos:
    """The events that happen to the server, one after another."""

    def __init__(self, server, clients, gate):
        self.server = server
        self.gate = gate
        self.clients = clients
        self.marks = clients.ledger.marks
        self.rng = random.Random(SEED)
        self.log = []
        self.spare = True           # is loaded
        self.killed = set()         # pids
        self.crashes = 0            # of cores, by themselves
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
        """Until so many more requests have been answered, and none has seen
        the end of so many cores that it could be out of tries."""
        ledger = self.clients.ledger
        goal = ledger.count() + more
        assert process.wait_until(
            lambda: ledger.count() >= goal and ledger.most_ends() < 3,
            120 * SLOW), \
            "no answers any more\n" + ledger.state() + "\n" \
            + self.server.log_text()[-4000:]
        # a worker may notice a core's end later than this thread
        self.marks.end(DEATHS)
        self.marks.end(ENDS)
        if not self.server.titled("shutting down"):
            self.marks.end(RELOADS)

    def kill(self, pid, signo=signal.SIGKILL):
        self.killed.add(pid)
        os.kill(pid, signo)

    def begin_deaths(self, count):
        self.marks.begin(DEATHS, count)
        self.marks.begin(ENDS, count)

    def end_core(self, signo, *others):
        core = self.server.core(60)
        self.begin_deaths(1)
        self.kill(core, signo)
        for pid in others:
            self.kill(pid)
        self.server.next_core(core, 120)

    def end_workers(self, pids):
        self.marks.begin(KILLS)
        for pid in pids:
            self.kill(pid)
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

    # ---- events at random

    def kill_core(self):
        self.end_core(signal.SIGKILL)

    def kill_core_and_supervisor(self):
        self.end_core(signal.SIGKILL, *self.server.supervisors())

    def replace_core(self):
        """On purpose: no request may notice."""
        core = self.server.core(60)
        self.marks.begin(ENDS)
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
            self.kill(pid)

    def kill_child(self):
        """Of a backend."""
        child = process.wait_until(
            lambda: process.descendants(self.server.core(60)), 60 * SLOW)
        assert child, "no process of a backend"
        self.kill(child[0])

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
        """One poisonous request, which has two tries, and one more where it
        first executed beside a suspect."""
        self.begin_deaths(3)
        self.crashes += 3
        self.call(infer_path("bad"), SMALL, (503,))
        # after some of these it is quarantined, which this ends
        self.call("/v2/repository/models/bad/load")

    # ---- the one scenario that kills often within an execution

    def kill_cores_of_one_execution(self):
        """A request that has three tries, and uses them all; an execution
        beside a suspect's costs it none, which can be so for the first."""
        self.gate.close()
        kills = 0
        with self.server.wire(240) as connection:
            connection.send(request_bytes(
                "POST", "/thrice" + infer_path("held"), SMALL))
            while self.begins_or_is_answered(connection) == "begins":
                self.gate.entered().unlink()
                self.end_core(signal.SIGKILL)
                kills += 1
            answer = connection.read()
        self.gate.open()
        assert answer.status == 503 and ENDED in answer.error, answer
        assert answer.headers["retry-after"]
        assert kills in (3, 4)
        self.call("/v2/repository/models/held/load")

    def begins_or_is_answered(self, connection):
        """The next of the held request."""
        found = process.wait_until(
            lambda: self.gate.entered().exists() and "begins"
            or select.select([connection.socket], [], [], 0)[0]
            and "is answered", 120 * SLOW)
        assert found, "neither executed nor answered"
        return found

    # ---- afterwards

    def check_alarms(self):
        """Each death that the log tells is one of ours."""
        text = self.server.log_text()
        for line in text.splitlines():
            if ALARM.search(line):
                killed = KILLED.search(line)
                assert killed and int(killed[1]) in self.killed, line
        others = [line for line in text.splitlines()
                  if (died := DIED.search(line))
                  and int(died[1]) not in self.killed]
        blamed = len(BLAMED.findall(text))
        assert len(others) <= min(blamed, self.crashes), "\n".join(others)


def held(server):
    return exposition.requests_held(exposition.scrape(server))


def settled(server):
    workers = server.workers()
    return len(server.cores()) == 1 and len(server.supervisors()) == 1 \
        and len(workers) == WORKERS and not server.titled("shutting down")


def descriptors(server):
    """(master, supervisor, core, workers)"""
    return [process.descriptors(server.process.pid),
            process.descriptors(server.supervisors()[0]),
            process.descriptors(server.core()),
            max(process.descriptors(w) for w in server.workers())]


@pytest.fixture
def gate(tmp_path):
    made = Gate(tmp_path)
    yield made
    made.open_all()             # or the core would not end


@pytest.fixture
def server(gate, make_server):
    folders = sorted({backends.build(b) for b in (
        "batches", "failing", "forker", "sequences")})
    made = make_server(
        lambda repository: fill(repository, gate), workers=WORKERS,
        http2=True, parts=PARTS, connections=2048,
        allow_alarms=ALARMS, start=False, daemon=True,
        http="    keepalive_requests 1000000;\n    keepalive_timeout 1h;\n"
             "    inference_model_control explicit;\n"
             "    inference_load_model *;\n"
             f"    inference_tries {TRIES};\n"
             + "".join(f"    inference_backends {f};\n" for f in folders),
        server="location /v2/models/bad/ { inference infer;"
               " inference_tries 2; }\n"
               "location /thrice/ { inference infer; inference_tries 3; }")
    made.write_config(core_options=made.fields["core_options"] + " hang=4s")
    return made.start(seconds=60)


@contextlib.contextmanager
def chaos_under_clients(server, gate, **counts):
    """Ends with all checks of answers and of what is left."""
    print(f"INF_CHAOS_SEED={SEED} INF_CHAOS_SECONDS={SECONDS:g}")
    small = json.loads(SMALL)
    assert all(server.infer(FAST, small).status == 200 for _ in range(20))
    before = descriptors(server)
    kinds, names = server.kinds(), server.shared_names()
    with Clients(server, SEED, **counts) as clients:
        chaos = Chaos(server, clients, gate)
        chaos.go_on(200)
        yield chaos
        assert process.wait_until(
            lambda: server.status("/v2/health/ready") == 200, 60 * SLOW), \
            server.post("/v2/repository/index", b"{}")
        chaos.go_on(400)
    ledger = clients.ledger
    print(sorted(ledger.results.items()))
    assert not ledger.wrong, "\n".join(
        [f"seed {SEED}, {len(ledger.wrong)} wrong"] + ledger.wrong[:20])
    assert {kind for kind, what in ledger.results if what == "answered"} \
        == KINDS
    assert process.wait_until(lambda: settled(server), 60 * SLOW), \
        [process.cmdline(p) for p in server.processes()]
    chaos.check_alarms()
    assert process.wait_until(
        lambda: not any(held(server).values()), 30 * SLOW), held(server)
    assert process.wait_until(
        lambda: all(a <= b for a, b in zip(descriptors(server), before)),
        30 * SLOW), (before, descriptors(server))
    assert process.wait_until(lambda: server.kinds() == kinds, 60 * SLOW), \
        (kinds, server.kinds())
    assert len(server.shared_names()) == len(names), server.shared_names()
    assert all(server.infer(FAST, small).status == 200 for _ in range(50))


def test_chaos(server, gate):
    with chaos_under_clients(server, gate) as chaos:
        chaos.run(SECONDS)


def test_three_kills_within_one_execution(server, gate):
    """That request alone is answered 503."""
    with chaos_under_clients(server, gate, rest=20, events=4, calls=8,
                             streams=4, sequences=4, control=4,
                             h2=2) as chaos:
        for _ in range(2):
            chaos.kill_cores_of_one_execution()
            chaos.go_on(50)
