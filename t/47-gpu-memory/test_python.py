"""Models in Python get inputs that lie on a GPU in the CPU's memory, unless
they want them there (test_python_gpu.py)."""

import random

import pytest

from lib import device_copy, models, python_backend
from lib.device_copy import ask, chain, result
from lib.python_gpu import IO, PYTHON

pytestmark = pytest.mark.fake_gpu         # the driver counts


# the input as it is, after its array has been looked at
SAME = """\
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for r in requests:
            given = pb.get_input_tensor_by_name(r, "IN")
            assert given.is_cpu() and given.__dlpack_device__() == (1, 0)
            answers.append(pb.InferenceResponse([pb.Tensor(
                "OUT", np.array(given.as_numpy()))]))
        return answers
"""


def fill(repository):
    for gpu in 0, 1:
        device_copy.model(repository, f"on{gpu}",
                          f"kind: KIND_GPU gpus: [{gpu}]")
    for name, parameters in [
            ("plain", {}), ("view", {"ZERO_COPY_INPUTS": "yes"})]:
        python_backend.model(
            repository, name, IO + models.parameter_block(parameters)
            + "instance_group { kind: KIND_GPU gpus: [0] }\n", SAME)
        for gpu in 0, 1:
            chain(repository, f"{name}_of{gpu}", [f"on{gpu}", name],
                  pathless=[name])


@pytest.mark.parametrize("model", ["plain", "view"])
@pytest.mark.parametrize("gpu", [0, 1])
def test_inputs_of_a_gpu(gpus, model, gpu):
    """In the message and in a block of its own, of the instance's own GPU and
    of another."""
    server = gpus.start(fill, env=PYTHON)
    total = 0
    for size in 1, 1000, 100_000:
        data = random.Random(size).randbytes(size)
        total += size
        got = result(ask(server, f"{model}_of{gpu}", data,
                         ("OUT", "PATH1")))
        assert got == {"OUT": data, "PATH1": f"CPU_PINNED:0 GPU:{gpu}"}
    counts = gpus.ended(server)
    assert counts["bytes"] == {"to_device": total, "on_device": 0,
                               "to_host": total, "to_peer": 0}


def test_a_copy_that_fails(gpus):
    """Its request ends with the driver's reason, the next one works."""
    server = gpus.start(fill, env=[
        *PYTHON, "FAKE_CUDA_FAIL=cuMemcpyDtoHAsync_v2:2:1"])
    answer = ask(server, "plain_of0", b"abc", ("OUT",))
    assert answer.status != 200
    assert 'input "IN": cannot copy it from the GPU' in answer.error
    assert result(ask(server, "plain_of0", b"abc", ("OUT",)))["OUT"] == b"abc"
