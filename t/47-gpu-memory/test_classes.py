"""Outputs that a backend wants on a GPU, or that stay there for an ensemble's
next step, are classified on the host, with labels.  For an output that goes to
a client's region that is an error."""

import pytest

from lib import device_copy
from lib.device_copy import chain
from lib.wire import tensor

pytestmark = pytest.mark.fake_gpu         # the driver counts

LABELS = ["none", "dog", "cat", "hen", "owl"]
DATA = bytes([7, 1, 9, 3])


def fill(repository):
    device_copy.model(repository, "on0", labels=LABELS)
    device_copy.model(repository, "from0", want="CPU_PINNED")
    chain(repository, "shown", ["on0", "from0"], outputs=["T1"])


@pytest.fixture
def server(gpus):
    return gpus.start(fill)


def classes(server, name, output, **parameters):
    return server.infer(name, {
        "inputs": [tensor("IN", "UINT8", [len(DATA)],
                          binary_data_size=len(DATA))],
        "outputs": [{"name": output, "parameters":
                     {"classification": 3, **parameters}}]
        + [{"name": "OUT"}] * (output != "OUT")}, DATA)


@pytest.mark.parametrize("name,output,moved", [
    ("on0", "OUT", len(DATA)), ("shown", "T1", 2 * len(DATA))])
def test_what_is_on_a_gpu_is_classified(gpus, server, name, output, moved):
    answer = classes(server, name, output)
    assert answer.status == 200, answer
    got = {o["name"]: o["data"] for o in answer.json()["outputs"]}
    assert got[output] == [
        "9:2:cat", "7:0:none", "3:3:hen"]
    assert gpus.ended(server)["bytes"]["to_host"] == moved


def test_what_is_to_go_to_a_region_is_not(server):
    answer = classes(server, "on0", "OUT", shared_memory_region="r",
                     shared_memory_byte_size=64)
    assert answer.status == 400
    assert "'shared_memory_region' and 'classification'" in answer.error
