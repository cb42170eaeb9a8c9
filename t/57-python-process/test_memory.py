"""Memory that interpreters share with the server: read where nginx received
it, of workers that come later, too, given back, and flat over many requests
and loads."""

import os
import re

import numpy as np
import pytest

from lib import models, process, python_backend
from lib.server import nap

IO = models.io_block("input", [("IN", "FP32", [-1])]) \
    + models.io_block("output", [("OUT", "FP32", [-1])])

# the sum of its input and whether that can be written; 0: as it came
SUM = """\
import os
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for r in requests:
            x = pb.get_input_tensor_by_name(r, "IN").as_numpy()
            answers.append(pb.InferenceResponse([pb.Tensor("OUT", np.array(
                [x.sum(), x.flags.writeable, os.getpid()], np.float32))]))
        return answers
"""

# the last inputs of many requests, kept
KEEP = """\
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.kept = []
    def execute(self, requests):
        answers = []
        for r in requests:
            self.kept.append(pb.get_input_tensor_by_name(r, "IN").as_numpy())
            del self.kept[:-4]
            answers.append(pb.InferenceResponse([pb.Tensor("OUT", np.array(
                [k[0] for k in self.kept] + [k[-1] for k in self.kept],
                np.float32))]))
        return answers
"""


def fill(repository):
    python_backend.model(repository, "sum", IO, SUM)
    python_backend.model(repository, "keep", IO, KEEP)
    python_backend.model(repository, "echo", IO, python_backend.ECHO)
    python_backend.model(
        repository, "view", IO
        + models.parameter_block({"ZERO_COPY_INPUTS": "yes"}), SUM)


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(fill, workers=2, parts="health infer "
                              "repository", http="    inference_model_control"
                              " explicit;\n    inference_load_model *;\n") \
            as s:
        yield s


def infer(server, model, array):
    header = {"inputs": [{"name": "IN", "datatype": "FP32",
                          "shape": [len(array)], "parameters": {
                              "binary_data_size": array.nbytes}}],
              "outputs": [{"name": "OUT",
                           "parameters": {"binary_data": True}}]}
    answer = server.infer(model, header, array.tobytes())
    assert answer.status == 200, answer
    return np.frombuffer(answer.split()[1], np.float32)


def arenas(pid):
    """Mappings of request arenas in a process, which can only read them."""
    lines = [line for line in open(f"/proc/{pid}/maps", encoding="ascii")
             if "inference-requests" in line]
    assert all(line.split()[1] == "r--s" for line in lines)
    return len(lines)


@pytest.mark.parametrize("size", [10, 100000, 3000000])
def test_views_and_copies(server, size):
    given = np.arange(size, dtype=np.float32) % 7
    for model, writeable in ("sum", 1), ("view", 0):
        total, flag, _ = infer(server, model, given)
        assert total == given.sum()
        assert flag == writeable
    assert np.array_equal(infer(server, "echo", given), given)


def test_arenas_of_later_workers(server):
    given = np.ones(100000, np.float32)
    for _ in range(3):
        for _ in range(12):
            total, _, pid = infer(server, "view", given)
            assert total == 100000
        assert 1 <= arenas(int(pid)) <= 4
        server.reload()
    for _ in range(12):
        pid = infer(server, "view", given)[2]
    assert arenas(int(pid)) <= 3


def test_kept_inputs_stay_as_they_are(server):
    for n in range(12):
        kept = infer(server, "keep", np.full(50000, n, np.float32))
        expected = list(range(max(0, n - 3), n + 1))
        assert list(kept) == expected * 2


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", open(
        f"/proc/{pid}/status", encoding="ascii").read())[1])


def test_memory_is_flat_over_requests(server):
    pid = int(infer(server, "sum", np.ones(1, np.float32))[2])
    given = np.ones(500000, np.float32)

    def use(count):
        for _ in range(count):
            infer(server, "sum", given)
            infer(server, "echo", given)
        return resident(pid), resident(server.core())

    use(50)
    before = use(20)
    after = use(150)
    assert after[0] < before[0] + 20000
    assert after[1] < before[1] + 20000


LOADS = int(os.environ.get("INF_PYTHON_LOADS", "8"))


def test_loads_leave_nothing(server):
    core = server.core()

    def cycle(count):
        for _ in range(count):
            for verb in "unload", "load":
                answer = server.post(
                    f"/v2/repository/models/echo/{verb}", b"{}")
                assert answer.status == 200, answer
        # an unload goes on after its answer
        assert process.wait_until(lambda: len(
            [p for p in process.descendants(core)
             if "_host_main.py" in process.cmdline(p)]) == 4, 20)
        seen = None
        while seen != opened():
            seen = opened()
            nap(0.5)
        return resident(core), *seen

    def opened():
        return process.descriptors(core), process.threads(core)

    before = cycle(3)
    after = cycle(LOADS)
    assert after[0] < before[0] + 8192
    assert process.wait_until(
        lambda: process.descriptors(core) == before[1], 20), opened()
    assert process.wait_until(
        lambda: process.threads(core) <= before[2] + 1, 20), opened()

