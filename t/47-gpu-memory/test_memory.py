"""States on a GPU, memory that is short, and loads that leave nothing."""

import os
import re

import pytest

from lib import device_copy, process
from lib.device_copy import ask, result
from lib.server import SANITIZER, SLOW

pytestmark = pytest.mark.fake_gpu         # the driver counts

SIZE = 4096
CYCLES = int(os.environ.get("INF_GPU_CYCLES", "300"))


def sequences(repository):
    device_copy.model(
        repository, "last", want="CPU_PINNED", max_batch=1,
        extra="sequence_batching { state { input_name: \"STATE\""
        " output_name: \"STATE_OUT\" data_type: TYPE_UINT8"
        f" dims: [ {SIZE} ] }} }}\n")


def test_a_state_stays_on_its_gpu(gpus):
    server = gpus.start(sequences)
    rows = [bytes([i]) * SIZE for i in range(5)]
    for i, row in enumerate(rows):
        got = result(ask(server, "last", row, shape=[1, SIZE], parameters={
            "sequence_id": 7, "sequence_start": i == 0,
            "sequence_end": i == 4}))
        assert got["OUT"] == (rows[i - 1] if i else bytes(SIZE))
        assert got["PATH"] == ("GPU:0" if i else "CPU_PINNED:0") \
            + " CPU_PINNED:0 CPU_PINNED:0 GPU:0"
    counts = gpus.ended(server)
    # each input, and the first state, which is zeros of the host
    assert counts["bytes"] == {"to_device": 6 * SIZE, "on_device": 0,
                               "to_host": 5 * SIZE, "to_peer": 0}
    assert counts["pageable_copies"] == 0


def copies(repository):
    device_copy.model(repository, "copy", want="CPU_PINNED")


def test_a_pool_that_is_full_is_unavailable(gpus):
    server = gpus.start(copies, http="    inference_memory 64m cuda=0:1m;\n")
    for _ in range(3):
        answer = ask(server, "copy", bytes(2 << 20))
        assert answer.status == 503, answer
        assert re.search(r"failed to allocate 2097152 bytes of GPU memory"
                         r" \(id 0\): the pool of 1048576 bytes has 0 in use",
                         answer.error)
        assert result(ask(server, "copy", b"abc"))["OUT"] == b"abc"
    assert gpus.ended(server)["bytes"]["to_device"] == 9


def state_of(pid):
    """Descriptors, mappings and resident bytes."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        maps = len(f.readlines())
    with open(f"/proc/{pid}/statm", encoding="utf-8") as f:
        resident = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return process.descriptors(pid), maps, resident


def test_loads_and_unloads_leave_nothing(gpus):
    """Each time an instance on a GPU, which has a stream and a context, and
    memory of the pool while it executes."""
    server = gpus.start(
        copies, http="    inference_model_control explicit;\n",
        parts="health infer repository")
    core = server.core()
    seen = []

    def live():
        return gpus.counts()["live"]

    def load():
        answer = server.post("/v2/repository/models/copy/load", b"{}")
        assert answer.status == 200, answer
        assert result(ask(server, "copy", b"abc"))["OUT"] == b"abc"

    def unload():
        answer = server.post("/v2/repository/models/copy/unload", b"{}")
        assert answer.status == 200, answer
        assert process.wait_until(
            lambda: server.status("/v2/models/copy/ready") != 200, 20 * SLOW)

    for i in range(CYCLES):
        load()
        now = live()
        unload()
        if i >= 50 and i % 50 == 0 or i == CYCLES - 1:
            seen.append((now, *state_of(core)))
    first, last = seen[0], seen[-1]
    load()
    # of the driver; what an execution had is given back behind its answer
    most = max(s[0] for s in seen[:2])
    assert process.wait_until(lambda: live() <= most, 20 * SLOW), seen
    unload()
    assert last[1] <= first[1] + 2, seen            # descriptors
    assert last[2] <= first[2] + 8, seen            # mappings
    if not SANITIZER:
        assert last[3] <= first[3] + (8 << 20), seen
    counts = gpus.ended(server)
    calls = counts["calls"]
    assert calls["cuStreamCreate"] == calls["cuStreamDestroy_v2"]
    assert calls["cuDevicePrimaryCtxRetain"] \
        == calls["cuDevicePrimaryCtxRelease_v2"]
    assert counts["live"] == 0
