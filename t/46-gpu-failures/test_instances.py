"""Instances on several GPUs: where they are, and what they may do at once."""

import concurrent.futures

import pytest

from lib import process
from lib.server import SLOW, nap

WAITS = -3


@pytest.mark.parametrize("devices", [2, 8])
def test_kind_gpu_is_on_all_that_are_found(gpus, devices):
    def fill(folder):
        gpus.fill(folder)
        gpus.model(folder, "any", "kind: KIND_GPU")

    server = gpus.start(fill, devices=devices)
    (group,) = server.get("/v2/models/any/config").json()["instance_group"]
    assert group["gpus"] == list(range(devices))
    assert gpus.serves("any", "zero", "one")


def test_each_gpu_has_its_own_copies_of_a_resource(gpus, tmp_path):
    """Executions on two GPUs run at once, those on one wait for each other."""
    group = "kind: KIND_GPU gpus: [%d] rate_limiter { resources " \
            '{ name: "R" count: 1 } }'
    gates = {name: tmp_path / name for name in ("a", "b", "c")}

    def fill(folder):
        gpus.fill(folder)
        for name, device in ("a", 0), ("b", 1), ("c", 0):
            gpus.model(folder, name, group % device, gate=str(gates[name]))

    def runs(name):
        return gates[name].with_suffix(".waits").exists()

    gpus.start(fill, http="""
    inference_rate_limit execution_count;
    inference_rate_limit_resource R 1;
""")
    for gate in gates.values():
        gate.touch()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        try:
            asked = {}
            for name in "ab":
                asked[name] = pool.submit(gpus.ask, name, WAITS)
                assert process.wait_until(lambda n=name: runs(n), 20 * SLOW)
            asked["c"] = pool.submit(gpus.ask, "c", WAITS)
            nap(0.3)
            assert not runs("c")
            gates["a"].unlink()
            assert process.wait_until(lambda: runs("c"), 20 * SLOW)
            assert not asked["b"].done()
        finally:
            for gate in gates.values():
                gate.unlink(missing_ok=True)
        for answer in asked.values():
            assert answer.result(20 * SLOW).status == 200
