"""Host policies: where the threads of instances run."""

import concurrent.futures
import contextlib
import os
import pathlib

import pytest

from lib import backends, models, process
from lib.server import SLOW

CORE = min(os.sched_getaffinity(0))


def repository(folder):
    models.identity(folder, "near", [("IN", "FP32", [2])], instances=2)
    models.write_model(folder, "named", models.identity_config(
        "named", [("IN", "FP32", [2])]).replace(
            "kind: KIND_CPU", 'kind: KIND_CPU host_policy: "odd"'))
    models.write_model(folder, "far", models.identity_config(
        "far", [("IN", "FP32", [2])]).replace(
            "kind: KIND_CPU", 'kind: KIND_CPU host_policy: "away"'))


def threads(pid):
    """{name of a thread: the cores it may run on}"""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        name = (task / "comm").read_text().strip()
        found[name] = os.sched_getaffinity(int(task.name))
    return found


def test_threads_run_where_their_policy_says(make_server):
    server = make_server(
        repository, wait="live",
        http=f"    inference_host_policy cpu cpu-cores={CORE};"
             " inference_host_policy away cpu-cores=8000;",
        server="location /named { inference_model named; }")
    everywhere = os.sched_getaffinity(0)

    # one model's policy can't be met: it alone is not ready
    assert server.wait_for("/v2/models/near/ready")
    assert server.wait_for("/v2/models/named/ready")
    assert process.wait_until(
        lambda: "host policy 'away'" in server.log_text(), 20 * SLOW)
    assert server.status("/v2/health/ready") == 400
    assert "host policy 'away': none of the cores 8000" \
        in server.log_text()

    seen = threads(server.core())
    assert seen["near_0_0"] == seen["near_0_1"] == {CORE}
    assert seen["named_0_0"] == everywhere      # an undefined policy: nothing
    assert seen["loader"] == everywhere


def slow_to_load(folder):
    models.write_model(folder, "slow", models.identity_config(
        "slow", [("IN", "FP32", [2])]) + """
        parameters { key: "execute_delay_ms"
                     value { string_value: "2000" } }
        model_warmup { name: "once" batch_size: 1 inputs {
            key: "IN" value { data_type: TYPE_FP32 dims: [2]
                              zero_data: true } } }""")


def priorities(pid):
    """Of the process's threads and of all processes below it."""
    tasks = [int(t.name) for t in pathlib.Path(f"/proc/{pid}/task").iterdir()]
    found = set()
    for task in tasks + process.descendants(pid):
        with contextlib.suppress(ProcessLookupError):       # it has ended
            found.add((os.sched_getscheduler(task),
                       os.getpriority(os.PRIO_PROCESS, task)))
    return found


def test_loads_leave_everything_at_the_usual_priority(make_server):
    """A thread or process that a backend starts while it loads serves later,
    with what it has inherited."""
    def fill(folder):
        slow_to_load(folder)
        models.write_model(
            folder, "forks", 'backend: "forker"\n'
            + models.io_block("input", [("IN", "INT32", [1])])
            + models.io_block("output", [("PID", "INT32", [1])]))

    server = make_server(
        fill, parts="health repository",
        http="    inference_model_control explicit;\n"
             f"    inference_backends {backends.build('forker')};\n")
    core = server.core()
    usual = {(os.SCHED_OTHER, os.getpriority(os.PRIO_PROCESS, 0))}

    with concurrent.futures.ThreadPoolExecutor() as pool:
        load = pool.submit(server.post, "/v2/repository/models/slow/load", b"")
        assert process.wait_until(      # the warm-up runs
            lambda: "slow_0_0" in threads(core), 20 * SLOW)
        assert priorities(core) == usual
        assert load.result().status == 200

    assert server.post("/v2/repository/models/forks/load", b"").status == 200
    assert process.descendants(core)
    assert priorities(core) == usual
    for name in "slow", "forks":
        server.post(f"/v2/repository/models/{name}/unload", b"")
    assert process.wait_until(
        lambda: server.log_text().count("is unloaded") == 2, 20 * SLOW)
    assert priorities(core) == usual


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_models_are_loaded_on_cores_of_their_own(make_server):
    everywhere = os.sched_getaffinity(0)
    last = max(everywhere)
    server = make_server(
        slow_to_load, wait="live",
        http=f"    inference_host_policy loading cpu-cores={last};")

    # the warm-up runs: the load has not ended, nor what it has started
    assert process.wait_until(
        lambda: threads(server.core()).get("slow_0_0") == {last}, 20 * SLOW)
    tasks = pathlib.Path(f"/proc/{server.core()}/task")
    loaders = [os.sched_getaffinity(int(t.name)) for t in tasks.iterdir()
               if (t / "comm").read_text().strip() == "loader"]
    assert loaders.count({last}) == 1
    assert loaders.count(everywhere) == len(loaders) - 1

    assert server.wait_for("/v2/models/slow/ready")
    assert process.wait_until(
        lambda: threads(server.core())["slow_0_0"] == everywhere, 20 * SLOW)
    assert set(map(frozenset, threads(server.core()).values())) \
        == {frozenset(everywhere)}
