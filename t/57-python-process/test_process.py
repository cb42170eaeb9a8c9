"""An interpreter ends in every way there is: its own requests fail, the next
ones work, nothing is left."""

import os
import signal
import threading

import pytest

from lib import models, process, python_backend, wire
from lib.exposition import wait_executing
from lib.server import SANITIZER, SLOW

TEXT = python_backend.TEXT
PARTS = "health metadata config infer metrics"

# does what its input says
DOER = python_backend.TELL + """
import ctypes, os, signal, sys, threading, time

# the tail of the ring to the server, in the header of channel.h
TAIL = 40 + 2 * (128 + 256 * 32)

def damage():
    os.pwrite(3, (1 << 30).to_bytes(4, "little"), TAIL)
    os.write(4, (1).to_bytes(8, "little"))

class TritonPythonModel:
    def initialize(self, args):
        self.name = args["model_instance_name"]
        directory = args["model_repository"]
        if os.path.exists(f"{directory}/once"):
            os.unlink(f"{directory}/once")
            os._exit(3)
        if os.path.exists(f"{directory}/without-{self.name}"):
            raise RuntimeError("this instance has ended")

    def execute(self, requests):
        return [self.do(r, pb.get_input_tensor_by_name(r, "IN")
                        .as_numpy()[0].decode()) for r in requests]

    def do(self, request, word):
        if word == "exit":
            os._exit(3)
        if word == "segv":
            os.kill(os.getpid(), signal.SIGSEGV)
        if word == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "memory":
            return self.want_too_much()
        if word == "raise":
            raise ValueError("this word is none")
        if word == "sleep":
            time.sleep(30)
        if word == "no signal":     # of its parent's end
            ctypes.CDLL(None).prctl(1, 0)
        if word == "sysexit":
            sys.exit(5)
        if word == "damage":        # when nothing runs any more
            threading.Timer(0.3, damage).start()
        if word == "trace":         # a child that does it, and leaves it so
            reads, writes = os.pipe()
            ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1 % 2**64))
            parent, child = os.getpid(), os.fork()
            if child == 0:
                os.setsid()
                ctypes.CDLL(None).ptrace(0x4206, parent, None, None)
                os.write(writes, b"done")
                time.sleep(600)
            os.read(reads, 4)
            return tell(child)
        if word == "fork":
            child = os.fork()
            if child == 0:
                time.sleep(60)
            return tell(child)
        return tell(os.getpid())

    def want_too_much(self):
        import resource
        was = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, was[1]))
        try:
            return tell(len(np.ones(1 << 30)))
        finally:
            resource.setrlimit(resource.RLIMIT_AS, was)
"""


# its pid and the sum of its input, after a child has dropped the request
FORKER = """\
import os
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        child = os.fork()
        if child == 0:
            requests.clear()
            os._exit(0)
        os.waitpid(child, 0)
        return [pb.InferenceResponse([pb.Tensor("OUT", np.array(
            [os.getpid(), pb.get_input_tensor_by_name(r, "IN").as_numpy()
             .sum()], np.float32))]) for r in requests]
"""


def doer(repository):
    python_backend.model(repository, "doer", TEXT, DOER)
    python_backend.model(repository, "other", TEXT, DOER)
    python_backend.model(
        repository, "forker", models.io_block("input", [("IN", "FP32", [-1])])
        + models.io_block("output", [("OUT", "FP32", [2])]), FORKER)
    python_backend.model(
        repository, "three", TEXT
        + "instance_group [ { count: 3 kind: KIND_CPU } ]\n", DOER)


def maps(pid, words):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        return words in f.read()


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(doer, parts=PARTS) as s:
        yield s
        # none can be left of shared memory without a name
        assert not [pid for pid in s.processes() if maps(pid, "/dev/shm/")]


def say(server, word, model="doer"):
    return server.infer(model, {"inputs": [
        wire.tensor("IN", "BYTES", [1], [word])]})


def pid(server, model="doer"):
    return int(python_backend.told(say(server, "who", model)))


# a sanitizer has its own way with these
@pytest.mark.parametrize("word", ["exit", "kill" if SANITIZER else "segv"])
def test_death_costs_its_own_request(server, word):
    first, other = pid(server), pid(server, "other")
    answer = say(server, word)
    assert answer.status == 503
    assert "is not healthy" in answer.body.decode()
    assert pid(server) != first
    assert pid(server, "other") == other


def test_killed_while_idle(server):
    first = pid(server)
    os.kill(first, signal.SIGKILL)
    assert process.wait_until(lambda: not process.alive(first), 5)
    assert pid(server) != first


def test_killed_and_the_next_one_dies_as_it_starts(server):
    first = pid(server)
    (server.models / "doer/once").touch()
    os.kill(first, signal.SIGKILL)
    assert process.wait_until(lambda: not process.alive(first), 5)
    assert pid(server) != first


def test_one_that_does_not_start_again_leaves_requests_to_others(server):
    gone, = server.titled("three_0_1")
    flag = server.models / "three/without-three_0_1"
    flag.touch()
    os.kill(gone, signal.SIGKILL)
    failures = []

    def starts():
        return server.log_text().count("instance three_0_1: RuntimeError: ")

    def ask():
        while starts() < 5:
            for _ in range(20):
                if (answer := say(server, "who", "three")).status != 200:
                    failures.append(answer)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60 * SLOW)
    flag.unlink()
    assert len(failures) <= 2 * starts()
    assert server.wait_for("/v2/models/three/ready")


def test_killed_while_it_runs(server):
    first = pid(server)
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(say(server, "sleep")))
    thread.start()
    wait_executing(server, 1)
    os.kill(first, signal.SIGKILL)
    thread.join(20)             # it would sleep for longer
    assert answers and answers[0].status == 503
    assert pid(server) != first


def test_a_damaged_channel_ends_its_interpreter(server):
    first = int(python_backend.told(say(server, "damage")))
    assert process.wait_until(lambda: not process.alive(first), 10)
    assert pid(server) != first


@pytest.mark.parametrize("word,text", [
    ("raise", "this word is none"), ("sysexit", "SystemExit: 5"),
    *([] if SANITIZER else [("memory", "Unable to allocate")])])
def test_exceptions_keep_the_interpreter(server, word, text):
    first = pid(server)
    answer = say(server, word)
    assert answer.status == 500
    assert text in answer.body.decode()
    assert "model.py" in answer.body.decode()
    assert pid(server) == first or word == "memory"


def test_what_it_has_forked_ends_with_it(server):
    child = int(python_backend.told(say(server, "fork")))
    assert process.alive(child)
    say(server, "exit")
    assert process.wait_until(lambda: not process.alive(child), 5)


def test_one_that_is_traced_is_left_where_it_ends(server):
    """Its status is its tracer's, which does not ask for it."""
    first = pid(server)
    tracer = int(python_backend.told(say(server, "trace")))
    try:
        os.kill(first, signal.SIGKILL)
        assert pid(server) != first
        assert process.stat(first)[1] == "Z"
    finally:
        os.kill(tracer, signal.SIGKILL)


def test_what_a_forked_child_drops_stays_its_parent_s(server):
    body = {"inputs": [wire.tensor("IN", "FP32", [3000], [1] * 3000)]}
    told = [python_backend.words(server.infer("forker", body))
            for _ in range(20)]
    assert [t[1] for t in told] == [3000] * 20
    assert len({t[0] for t in told}) == 1


@pytest.mark.parametrize("word,status", [
    ("exit", 503), ("kill", 503), ("raise", 500),
    *([] if SANITIZER else [("memory", 500)])])
def test_failures_under_load(server, word, status):
    ends, wrong = [0, 0], []

    def ask(n):
        for k in range(40):
            fails = (n + k) % 20 == 0
            answer = say(server, word if fails else "who", "three")
            if answer.status not in (200, status):
                wrong.append(answer.body)
            ends[answer.status == 200] += 1

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not wrong
    assert ends == [16, 304]    # each end costs its own request
    assert len({pid(server, "three") for _ in range(30)}) <= 3


@pytest.mark.parametrize("signum", [signal.SIGCONT, signal.SIGKILL])
def test_one_that_hangs_holds_its_own_request(server, signum):
    """It has not taken the request: after a kill the next one does."""
    hung, answers = pid(server, "three"), []
    os.kill(hung, signal.SIGSTOP)

    def ask():
        for _ in range(5):
            answers.append(say(server, "who", "three"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for t in threads:
        t.start()

    def waiting():
        return sum(t.is_alive() for t in threads)

    try:
        assert process.wait_until(lambda: waiting() == 1, 20)
        assert {a.status for a in answers} == {200}
        assert pid(server, "other") != hung
    finally:
        os.kill(hung, signum)
        for t in threads:
            t.join(20)
    assert [a.status for a in answers] == [200] * 40


def test_nothing_outlives_the_core():
    with python_backend.serve(doer) as s:
        first = pid(s)
        child = int(python_backend.told(say(s, "fork")))
        s.end_core()
        assert process.wait_until(
            lambda: not (process.alive(first) or process.alive(child)), 5)


def test_an_interpreter_that_is_not_told_of_the_core_s_end_sees_it():
    """As one that starts while the core ends: it gets no signal."""
    with python_backend.serve(doer) as s:
        first = int(python_backend.told(say(s, "no signal")))
        child = int(python_backend.told(say(s, "fork")))
        s.end_core()
        assert process.wait_until(
            lambda: not (process.alive(first) or process.alive(child)),
            10 * SLOW)
