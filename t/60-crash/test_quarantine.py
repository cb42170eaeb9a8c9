"""A model that ends core after core is left out, until a request loads it or
its files change."""

import concurrent.futures
import json
import os
import re
import signal

import pytest

from lib import backends, models, process, repository
from lib.exposition import wait_executing
from lib.load import Load
from lib.server import BUILD, SANITIZER, SLOW, nap
from lib.wire import tensor

KILLED = r"exited on signal"
FAULTS = [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE,
          signal.SIGILL]
if SANITIZER:                   # the runtime has the handlers of the others
    FAULTS = [signal.SIGABRT] * 5
CRASH = "crash" if SANITIZER else "overflow"    # of the stack
GOOD = json.dumps({"inputs": [tensor("IN", "INT32", [1], [1])]}).encode()
EXECUTING = "the core died 5 times while this model was executing"
LOADING = "the core died 2 times while this model was loading"
POLL = "    inference_model_control poll interval=200ms;\n"
EXPLICIT = "    inference_model_control explicit; inference_load_model *;\n"


def fill(folder):
    models.identity(folder, "good", [("IN", "INT32", [-1])], instances=2)
    models.identity(folder, "mortal", [("IN", "INT32", [1])],
                    backend="mortal")


def make(make_server, http="", fill=fill, tries=1, **kw):
    backends.build("failing")
    folder = backends.build("mortal")
    return make_server(fill, allow_alarms=[KILLED], http=http + "    "
                       f"inference_backends {folder}; inference_tries {tries};"
                       " inference_strict_readiness on;\n",
                       parts=repository.PARTS + " metrics", **kw)


def body(number):
    return json.dumps(
        {"inputs": [tensor("IN", "INT32", [1, 1], [number])]}).encode()


def small(number):
    return json.dumps(
        {"inputs": [tensor("IN", "INT32", [1], [number])]}).encode()


def is_back(server, core):
    """The next core has loaded what it loads."""
    return process.wait_until(
        lambda: server.cores() and core not in server.cores()
        and server.infer("good", GOOD).status == 200
        and "LOADING" not in [r.get("state") for r in repository.index(server)],
        60 * SLOW)


def die(server, number, name="mortal"):
    core = server.core()
    answer = server.infer(name, small(number))
    assert answer.status == 503, answer
    assert is_back(server, core)


def row(server, name="mortal"):
    (found,) = repository.rows(server, name)
    return found


def is_out(server, reason=EXECUTING, name="mortal"):
    """Index, readiness and a request say so, and other models serve."""
    found = row(server, name)
    assert found["state"] == "UNAVAILABLE" and reason in found["reason"], found
    assert server.get(f"/v2/models/{name}/ready").status in (400, 404, 503)
    assert server.get("/v2/health/ready").status == 400
    for version in ("", "1"):
        answer = server.infer(name, small(0), version=version)
        assert answer.status == 503, answer
        assert reason in answer.error, answer.error
    assert server.infer("good", GOOD).status == 200
    return True


def is_in(server, name="mortal"):
    assert process.wait_until(
        lambda: server.infer(name, small(0)).status == 200, 30 * SLOW)
    assert row(server, name)["state"] == "READY"
    assert server.wait_for("/v2/health/ready", 20)


def quarantined(make_server, http=""):
    server = make(make_server, http)
    for fault in FAULTS:
        die(server, fault)
    assert is_out(server)
    return server


def rewrite(server, name, old, new):
    path = server.models / name / "config.pbtxt"
    path.write_text(path.read_text().replace(old, new) + "# changed\n")


def test_each_class_of_fault_counts(make_server):
    """Five make a quarantine, and no earlier; a reload and an exit for another
    reason change nothing."""
    server = make(make_server)
    for fault in FAULTS:
        is_in(server)
        die(server, fault)
    assert is_out(server)

    core = server.core()
    server.reload()
    assert server.core() == core
    assert is_out(server)

    os.kill(core, signal.SIGKILL)
    assert is_back(server, core)
    assert is_out(server)


def test_an_overflow_of_the_stack_counts(make_server):
    """Nothing is left of the stack for the handler of the crash."""
    def with_deep(folder):
        fill(folder)
        models.identity(folder, "deep", [("IN", "INT32", [1])],
                        backend="failing",
                        parameters={"fail": f"execute-{CRASH}"})

    server = make(make_server, fill=with_deep)
    for _ in range(5):
        assert row(server, "deep")["state"] == "READY"
        die(server, 0, "deep")
    assert is_out(server, name="deep")
    assert row(server)["state"] == "READY"


@pytest.mark.parametrize("name", [signal.SIGKILL, *sorted(set(FAULTS[:2]))],
                         ids=lambda s: s.name)
def test_a_signal_from_outside_counts_against_nobody(make_server, name):
    def with_slow(folder):
        fill(folder)
        models.identity(folder, "slow", [("IN", "INT32", [1])], instances=2,
                        parameters={"execute_delay_ms": "400"})

    server = make(make_server, fill=with_slow, tries=9)

    def once(connection):
        return connection.infer("slow", GOOD).status

    with Load(server.port, once, count=4, patience=60.0 * SLOW) as load:
        for _ in range(6):
            load.wait_for_more(4, 60 * SLOW)
            core = server.core()
            os.kill(core, name)
            assert is_back(server, core)
        load.wait_for_more(4, 60 * SLOW)
    assert set(load.results) == {200}, load.results
    assert row(server, "slow")["state"] == "READY"
    assert "was executing" not in server.log_text()


@pytest.mark.parametrize("more", [100, 200], ids=["within", "after"])
def test_a_thread_of_the_backend_counts_when_it_is_clear_whose_it_is(
        make_server, more):
    """Within an execution, or after Execute has returned.  `slow` executes all
    the time beside it: then it is not clear."""
    def with_slow(folder):
        fill(folder)
        models.identity(folder, "slow", [("IN", "INT32", [1])],
                        parameters={"execute_delay_ms": "3000"})

    server = make(make_server, fill=with_slow)

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        beside = pool.submit(server.infer, "slow", GOOD)
        wait_executing(server, 1)
        die(server, more + signal.SIGABRT)
        assert beside.result().status in (200, 503)
    assert "was executing" not in server.log_text()

    for _ in range(5):
        is_in(server)
        die(server, more + signal.SIGABRT)
    assert is_out(server)
    assert row(server, "slow")["state"] == "READY"


def test_a_request_that_was_queued_when_cores_died_is_not_to_blame(
        make_server, tmp_path):
    """It executes, no suspect, when a thread of another model's backend
    crashes."""
    def with_slow(folder):
        fill(folder)
        models.identity(folder, "slow", [("IN", "INT32", [1])],
                        parameters={"execute_delay_ms": "6000"})

    point = tmp_path / "point"
    hit = tmp_path / "point.hit"
    server = make(make_server, fill=with_slow,
                  core=BUILD / "points" / "inference-core",
                  inference_env=[f"INF_POINT_AT={point}"])

    def kill_when_it_comes():
        (tmp_path / "new").write_text("RECORD_COPIED kill\n")
        (tmp_path / "new").rename(point)

    (supervisor,) = server.supervisors()
    process.stop(supervisor)
    kill_when_it_comes()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(server.infer, "slow", GOOD)
        assert process.wait_until(hit.exists, 30 * SLOW)
        hit.unlink()
        kill_when_it_comes()
        os.kill(supervisor, signal.SIGCONT)
        assert process.wait_until(hit.exists, 60 * SLOW)
        assert is_back(server, None)
        wait_executing(server, 1)
        die(server, 100 + signal.SIGABRT)
        assert asked.result().status == 503
    assert "model=slow version=1 was executing" not in server.log_text()


def test_a_poisonous_request_is_answered_503_alone(make_server):
    """Batch-mates and another model have all their answers; the model is left
    out when it goes on."""
    def batching(folder):
        models.identity(folder, "good", [("IN", "INT32", [-1])], instances=2)
        models.identity(
            folder, "mortal", [("IN", "INT32", [1])], backend="mortal",
            max_batch=8, extra="dynamic_batching { preferred_batch_size: 8\n"
            "  max_queue_delay_microseconds: 300000 }\n")

    server = make(make_server, fill=batching, tries=3)

    def once(connection):
        return connection.infer("good", GOOD).status

    def ask(number):
        return server.infer("mortal", body(number))

    with Load(server.port, once, count=3, patience=60.0 * SLOW) as load, \
            concurrent.futures.ThreadPoolExecutor(8) as pool:
        load.wait_for_more(6, 30 * SLOW)
        answers = list(pool.map(ask, [0, 0, 0, signal.SIGABRT, 0, 0, 0, 0]))
        load.wait_for_more(6, 30 * SLOW)
        statuses = [a.status for a in answers]
        assert statuses == [200] * 3 + [503] + [200] * 4, answers
        assert "ended before it answered" in answers[3].error

        answer = ask(signal.SIGABRT)            # two more: five
        assert answer.status == 503
        assert EXECUTING in answer.error, answer.error
        load.wait_for_more(6, 30 * SLOW)
    assert set(load.results) == {200}, load.results
    assert row(server)["state"] == "UNAVAILABLE"


def test_a_request_loads_what_is_quarantined(make_server):
    server = quarantined(make_server, EXPLICIT)
    answer = repository.ask(server, "load", "mortal")
    assert answer.status == 200, answer
    is_in(server)
    die(server, FAULTS[0])                      # it is counted anew
    is_in(server)


def test_a_load_that_the_next_core_repeats_ends_no_quarantine(make_server):
    """It ends two cores; the third is the same request's, and the fourth that
    of a new one."""
    def with_crash(folder):
        fill(folder)
        models.identity(folder, "bad", [("IN", "INT32", [1])],
                        backend="failing",
                        parameters={"fail": "initialize-crash"})

    server = make(make_server, "    inference_model_control explicit;\n"
                  "    inference_load_model good;\n", fill=with_crash, tries=3)

    def load():
        core = server.core()
        answer = repository.ask(server, "load", "bad")
        assert answer.status in (400, 503), answer
        assert LOADING in answer.error, answer.error
        assert is_back(server, core)
        (found,) = repository.rows(server, "bad")
        assert LOADING in found["reason"], found
        return server.log_text().count("leaves its quarantine")

    assert load() == 0
    load()
    server.wait_said("leaves its quarantine")
    assert len(re.findall(KILLED, server.log_text())) == 4


def test_changed_files_end_a_quarantine(make_server):
    server = quarantined(make_server, POLL)
    nap(1)                                      # polls see the same files
    assert is_out(server)
    rewrite(server, "mortal", "", "")
    is_in(server)


@pytest.mark.parametrize("control,fault", [
    ("explicit", "initialize-crash"), ("poll", "initialize-crash"),
    ("poll", f"initialize-{CRASH}"), ("poll", f"instance-{CRASH}")])
def test_the_same_of_loads(make_server, control, fault):
    """Two instances are initialised at once, each on a thread of its own."""
    def with_crash(folder):
        fill(folder)
        models.identity(folder, "bad", [("IN", "INT32", [1])],
                        backend="failing", instances=2,
                        parameters={"fail": fault})

    server = make(make_server, EXPLICIT if control == "explicit" else POLL,
                  fill=with_crash, wait="",
                  inference_env=["TRITON_PARALLEL_INSTANCE_LOADING=1"])
    assert process.wait_until(
        lambda: server.infer("good", GOOD).status == 200
        and LOADING in row(server, "bad").get("reason", ""), 60 * SLOW)
    core = server.core()
    nap(1)
    assert is_out(server, LOADING, "bad")
    assert server.core() == core

    rewrite(server, "bad", fault, "nothing")
    if control == "explicit":
        assert repository.ask(server, "load", "bad").status == 200
    assert process.wait_until(
        lambda: row(server, "bad")["state"] == "READY", 30 * SLOW)
    assert server.infer("bad", small(0)).error == "closed for today"
    assert server.wait_for("/v2/health/ready", 20)
