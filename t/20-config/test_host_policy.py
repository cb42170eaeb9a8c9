"""Host policies: where the threads of instances run."""

import os
import pathlib

from lib import models, process
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
    assert "instance 'far_0_0': host policy 'away': none of the cores 8000" \
        in server.log_text()

    seen = threads(server.core())
    assert seen["near_0_0"] == seen["near_0_1"] == {CORE}
    assert seen["named_0_0"] == everywhere      # an undefined policy: nothing
    assert seen["loader"] == everywhere
