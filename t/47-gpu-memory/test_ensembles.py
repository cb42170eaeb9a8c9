"""Tensors between the steps of an ensemble stay where the next one reads
them."""

import random

import pytest

from lib import device_copy, models
from lib.device_copy import ask, chain, result

pytestmark = pytest.mark.fake_gpu         # the driver counts

SIZE = 100_000


def fill(repository):
    for gpu in 0, 1:
        device_copy.model(repository, f"on{gpu}",
                          f"kind: KIND_GPU gpus: [{gpu}]")
        device_copy.model(repository, f"from{gpu}",
                          f"kind: KIND_GPU gpus: [{gpu}]", want="CPU_PINNED")
    device_copy.model(repository, "cpu", "kind: KIND_CPU", want="CPU")
    models.identity(repository, "id", [("IN", "UINT8", [-1])])
    chain(repository, "one_gpu", ["on0", "from0"])
    chain(repository, "three", ["on0", "on0", "from0"])
    chain(repository, "two_gpus", ["on0", "on1", "from1"])
    chain(repository, "shown", ["on0", "from0"], outputs=["T1"])
    chain(repository, "to_cpu", ["on0", "cpu"])
    chain(repository, "to_host", ["on0", "id"], pathless=["id"])
    chain(repository, "to_gpu", ["cpu", "from0"])
    chain(repository, "full", ["on0", "on0", "cpu"])


def run(gpus, name, paths, outputs=("OUT",), **kw):
    """The counters of one request, whose bytes come back."""
    server = gpus.start(fill, **kw)
    data = random.Random(name).randbytes(SIZE)
    got = result(ask(server, name, data, (*outputs, *paths)))
    for output in outputs:
        assert got[output] == data, output
    assert {p: got[p] for p in paths} == paths
    return gpus.ended(server)


@pytest.mark.parametrize("name,paths,between", [
    ("one_gpu", {"PATH1": "CPU_PINNED:0 GPU:0",
                 "PATH2": "GPU:0 CPU_PINNED:0"}, 0),
    ("three", {"PATH1": "CPU_PINNED:0 GPU:0", "PATH2": "GPU:0 GPU:0",
               "PATH3": "GPU:0 CPU_PINNED:0"}, 1)])
def test_nothing_leaves_the_gpu_between_two_steps(gpus, name, paths, between):
    """The backend's own copies are all there are: one in, one out, and one on
    the GPU for each step between."""
    counts = run(gpus, name, paths)
    assert counts["bytes"] == {"to_device": SIZE, "on_device": between * SIZE,
                               "to_host": SIZE, "to_peer": 0}
    assert counts["pageable_copies"] == 0
    assert counts["waits"] == between + 2       # the steps' own


def test_a_step_on_another_gpu_copies_from_the_first(gpus):
    counts = run(gpus, "two_gpus", {"PATH1": "CPU_PINNED:0 GPU:0",
                                    "PATH2": "GPU:0 GPU:1",
                                    "PATH3": "GPU:1 CPU_PINNED:0"},
                 devices=2)
    assert counts["bytes"] == {"to_device": SIZE, "on_device": 0,
                               "to_host": SIZE, "to_peer": SIZE}
    assert counts["calls"]["cuCtxEnablePeerAccess"] == 2


def test_what_the_client_wants_too_is_read_on_the_gpu_all_the_same(gpus):
    """It costs one copy to the host, and none back."""
    counts = run(gpus, "shown", {"PATH1": "CPU_PINNED:0 GPU:0",
                                 "PATH2": "GPU:0 CPU_PINNED:0"},
                 ("OUT", "T1"))
    assert counts["bytes"] == {"to_device": SIZE, "on_device": 0,
                               "to_host": 2 * SIZE, "to_peer": 0}


@pytest.mark.parametrize("name,paths", [
    ("to_cpu", {"PATH1": "CPU_PINNED:0 GPU:0", "PATH2": "CPU:0 CPU:0"}),
    ("to_host", {"PATH1": "CPU_PINNED:0 GPU:0"})])
def test_a_step_on_no_gpu_reads_the_host(gpus, name, paths):
    counts = run(gpus, name, paths)
    assert counts["bytes"] == {"to_device": SIZE, "on_device": 0,
                               "to_host": SIZE, "to_peer": 0}


def test_what_goes_to_a_gpu_is_pinned(gpus):
    counts = run(gpus, "to_gpu", {"PATH1": "CPU_PINNED:0 CPU_PINNED:0",
                                  "PATH2": "CPU_PINNED:0 CPU_PINNED:0"})
    assert counts["bytes"]["to_device"] == SIZE
    assert counts["pageable_copies"] == 0


def test_without_room_on_the_gpu_the_host_is_between(gpus):
    """A step's output goes to pinned memory instead, and to the CPU's."""
    for pinned, place in ("1m", "CPU_PINNED:0"), ("0", "CPU:0"):
        run(gpus, "full", {"PATH1": "CPU_PINNED:0 GPU:0",
                           "PATH2": f"GPU:0 {place}",
                           "PATH3": f"{place} CPU:0"},
            http=f"    inference_memory 64m cuda=0:128k pinned={pinned};\n")


def test_eight_gpus_in_a_row(gpus):
    def eight(repository):
        for gpu in range(8):
            device_copy.model(repository, f"on{gpu}",
                              f"kind: KIND_GPU gpus: [{gpu}]",
                              want="CPU_PINNED" if gpu == 7 else "GPU")
        chain(repository, "all", [f"on{gpu}" for gpu in range(8)])

    server = gpus.start(eight, devices=8)
    data = bytes(range(256)) * 40
    for _ in range(3):
        got = result(ask(server, "all", data, ["OUT", "PATH1", "PATH4",
                                               "PATH8"]))
        assert got == {"OUT": data, "PATH1": "CPU_PINNED:0 GPU:0",
                       "PATH4": "GPU:2 GPU:3", "PATH8": "GPU:6 CPU_PINNED:0"}
    counts = gpus.ended(server)
    size = 3 * len(data)
    assert counts["bytes"] == {"to_device": size, "to_host": size,
                               "on_device": 0, "to_peer": 7 * size}
    assert counts["pageable_copies"] == 0
