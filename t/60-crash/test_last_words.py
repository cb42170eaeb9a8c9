"""A core that crashes says which model, version, backend and instance was
executing: to the log, to the clients of that model, and to the index where
that ends in quarantine."""

import concurrent.futures
import json
import re
import signal

from lib import backends, models, process, repository
from lib.exposition import wait_executing
from lib.server import SANITIZER, SLOW
from lib.wire import tensor

KILLED = r"exited on signal"
GOOD = json.dumps({"inputs": [tensor("IN", "INT32", [1], [1])]}).encode()
ENDED = "the inference core ended before it answered"
FAULT = signal.SIGABRT if SANITIZER else signal.SIGSEGV
DOER = r"model=mortal version=2 backend=mortal instance=mortal_0_0"


def fill(folder):
    models.identity(folder, "good", [("IN", "INT32", [-1])], instances=2)
    models.identity(folder, "slow", [("IN", "INT32", [1])],
                    parameters={"execute_delay_ms": "3000"})
    models.identity(folder, "mortal", [("IN", "INT32", [1])], versions=(2,),
                    backend="mortal")


def make(make_server, tries=1):
    return make_server(
        fill, allow_alarms=[KILLED], parts=repository.PARTS + " metrics",
        http=f"    inference_backends {backends.build('mortal')};\n"
             f"    inference_tries {tries};\n")


def ask(server, number):
    return server.infer("mortal", json.dumps(
        {"inputs": [tensor("IN", "INT32", [1], [number])]}).encode())


def is_back(server, core):
    return process.wait_until(
        lambda: server.cores() and core not in server.cores()
        and server.infer("good", GOOD).status == 200, 60 * SLOW)


def test_the_execution_that_crashes_is_named(make_server):
    server = make(make_server)
    for number in range(1, 6):
        core = server.core()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            beside = pool.submit(server.infer, "slow", GOOD)
            wait_executing(server, 1)
            answer = ask(server, FAULT)
            other = beside.result()
        assert answer.status == 503
        assert answer.error == f"{ENDED}: {DOER} was executing"
        assert other.status == 503 and other.error == ENDED
        assert is_back(server, core)
        assert server.wait_log(
            rf'core {core} exited on signal {FAULT.value}, its last output '
            rf'was "{DOER} was executing"', 30 * SLOW)
        assert server.wait_log(
            rf"the last core died of signal {FAULT.value} \([^)]*\) while "
            rf"{DOER} was executing, {number} in a row", 30 * SLOW)

    assert process.wait_until(
        lambda: repository.rows(server, "mortal")[0]["state"]
        == "UNAVAILABLE", 30 * SLOW)
    (row,) = repository.rows(server, "mortal")
    assert re.search(r"died 5 times while this model was executing \(last: "
                     r"backend=mortal instance=mortal_0_0\)", row["reason"])


def test_a_thread_that_executes_nothing(make_server):
    """Those that execute meanwhile are named in the log, and not blamed; a
    client learns no other model's name."""
    server = make(make_server)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        beside = pool.submit(server.infer, "slow", GOOD)
        wait_executing(server, 1)
        answer = ask(server, 100 + signal.SIGABRT)
        other = beside.result()
    assert (answer.status, answer.error) == (503, ENDED)
    assert (other.status, other.error) == (503, ENDED)
    server.wait_said("requests in flight: ")
    (line,) = [t for t in server.log_text().splitlines()
               if "requests in flight: " in t]
    assert "executing in other threads: " in line
    assert re.search(DOER, line)
    assert "model=slow version=1 backend=identity instance=slow_0_0" in line
    assert "was executing" not in server.log_text()


def test_a_thread_beside_the_own_model(make_server):
    server = make(make_server)
    answer = ask(server, 100 + signal.SIGABRT)
    assert (answer.status, answer.error) \
        == (503, f"{ENDED}: executing in other threads: {DOER}")


def test_a_core_that_is_killed_says_nothing(make_server):
    server = make(make_server)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        beside = pool.submit(server.infer, "slow", GOOD)
        wait_executing(server, 1)
        server.end_core()
        answer = beside.result()
    assert (answer.status, answer.error) == (503, ENDED)
