"""A process of a backend dies: the core lives, the model comes back, and what
the backend still had of its requests is answered and given back."""

import os
import signal
import threading

import pytest

from lib import backends, models, process
from lib.server import SLOW
from lib.wire import tensor

CONFIG = ('backend: "forker"\n'
          + models.io_block("input", [("IN", "INT32", [1])])
          + models.io_block("output", [("PID", "INT32", [1])])
          + "instance_group [ { count: %d kind: KIND_CPU } ]\n")


def fill(repository):
    models.write_model(repository, "one", CONFIG % 1)
    models.write_model(repository, "three", CONFIG % 3)
    models.write_model(repository, "other", CONFIG % 1)


@pytest.fixture
def server(make_server):
    return make_server(fill, backends=backends.build("forker"))


def ask(server, model="one", word=0):
    return server.infer(model, {"inputs": [tensor("IN", "INT32", [1],
                                                  [word])]})


def pid_of(server, model="one", word=0):
    """Of the process behind the model, once it serves."""
    def pid():
        answer = ask(server, model, word)
        if answer.status == 200:
            return answer.json()["outputs"][0]["data"][0]
        assert answer.status == 503, answer
        return 0

    found = process.wait_until(pid, 30 * SLOW, 0.01)
    assert found, server.log_text()[-3000:]
    return found


def kill(server, model="one"):
    """Ends the process; returns when that is seen."""
    dead = pid_of(server, model)
    os.kill(dead, signal.SIGKILL)
    server.wait_log(rf"model={model} version=1: process {dead} .* was killed "
                    r"by signal 9 \(Killed\); it is loaded again")
    return dead


def test_the_model_comes_back(server):
    core, other = server.core(), pid_of(server, "other")
    dead = kill(server)
    assert pid_of(server) != dead
    assert server.core() == core and pid_of(server, "other") == other


def test_one_of_three_takes_the_version(server):
    dead = kill(server, "three")
    assert dead not in {pid_of(server, "three") for _ in range(20)}


def test_what_it_kept_does_not_keep_the_model(server):
    """The end of the server waits for every reference."""
    for _ in range(5):
        assert pid_of(server, word=1)
    kill(server)
    assert pid_of(server)


def test_what_it_never_answered_is_answered(server):
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(ask(server, word=2)))
    thread.start()
    thread.join(0.3)
    dead = pid_of(server)
    os.kill(dead, signal.SIGKILL)
    thread.join(30 * SLOW)
    assert answers and answers[0].status == 503, answers
    assert f"process {dead} " in answers[0].error
    assert "was killed by signal 9 (Killed)" in answers[0].error
    assert pid_of(server)


def test_requests_while_it_dies(server):
    """Each is answered: by the old one, with the reason, or by the new one."""
    stop = threading.Event()
    statuses = []

    def load():
        while not stop.is_set():
            statuses.append(ask(server).status)

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        kill(server)
        assert pid_of(server)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert set(statuses) <= {200, 503}
    assert 200 in statuses
