"""Requests' bytes go to a GPU from where nginx has received them, and come
back into the memory that nginx sends from."""

import os
import random

import numpy
import pytest
import tritonclient.grpc as grpc

from lib import device_copy, process
from lib.device_copy import ask, result
from lib.server import SLOW

pytestmark = pytest.mark.fake_gpu         # the driver counts

MIB = 1 << 20


def fill(repository):
    device_copy.model(repository, "copy", want="CPU_PINNED")


def data_of(size):
    return random.Random(size).randbytes(size)


def check(server, size, path="CPU_PINNED:0 CPU_PINNED:0"):
    data = data_of(size)
    got = result(ask(server, "copy", data))
    assert got["OUT"] == data
    assert got["PATH"] == path


@pytest.mark.parametrize("sizes,arenas", [
    ([1, 63, 4096, 65536, MIB], "16m"), ([3 * MIB + 5, 15 * MIB], "64m")])
def test_nothing_is_copied_in_between(gpus, sizes, arenas):
    server = gpus.start(fill, http="    inference_memory 256m"
                        f" pinned_arenas={arenas};\n")
    for size in sizes:
        for _ in range(3):
            check(server, size)
    counts = gpus.ended(server)
    assert counts["bytes"] == {"to_device": 3 * sum(sizes), "on_device": 0,
                               "to_host": 3 * sum(sizes), "to_peer": 0}
    assert counts["pageable_copies"] == 0
    assert counts["calls"]["cuMemcpyHtoDAsync_v2"] == 3 * len(sizes)
    assert counts["waits"] == 3 * len(sizes)


def test_large_bodies_find_room_among_small_ones(gpus):
    """The stretch is not much larger than the largest of them."""
    server = gpus.start(fill, http="    inference_memory 256m"
                        " pinned_arenas=32m;\n")
    chosen = random.Random(1)
    for _ in range(30):
        check(server, chosen.choice([4096, 65536, 300_000, 3 * MIB, 16 * MIB]))
    assert gpus.ended(server)["pageable_copies"] == 0


def test_json_and_grpc_are_received_there_too(gpus):
    server = gpus.start(fill, http2=True)
    answer = server.infer("copy", {
        "inputs": [{"name": "IN", "datatype": "UINT8", "shape": [3],
                    "data": [1, 2, 3]}]})
    assert answer.status == 200, answer
    assert answer.json()["outputs"][1]["data"] == ["CPU_PINNED:0"
                                                   " CPU_PINNED:0"]
    with grpc.InferenceServerClient(f"127.0.0.1:{server.port2}") as client:
        for size in (5, MIB):
            data = numpy.frombuffer(data_of(size), dtype=numpy.uint8)
            given = grpc.InferInput("IN", [size], "UINT8")
            given.set_data_from_numpy(data)
            got = client.infer("copy", [given])
            assert (got.as_numpy("OUT") == data).all()
            assert got.as_numpy("PATH")[0] == b"CPU_PINNED:0 CPU_PINNED:0"
    counts = gpus.ended(server)
    assert counts["bytes"]["to_device"] == 3 + 5 + MIB
    assert counts["pageable_copies"] == 0


def test_the_size_is_that_of_the_directive(gpus):
    server = gpus.start(fill, http="    inference_memory 64m"
                        " pinned_arenas=128k;\n")
    check(server, 4096)
    check(server, 3 * MIB, "CPU:0 CPU:0")
    check(server, 4096)
    counts = gpus.ended(server)
    assert counts["pageable_copies"] == 2
    assert counts["calls"]["cuMemHostRegister_v2"] == 3


def test_none_may_be_wanted(gpus):
    server = gpus.start(fill, http="    inference_memory 64m"
                        " pinned_arenas=0;\n", pinned=False)
    check(server, 4096, "CPU:0 CPU:0")
    assert "cuMemHostRegister_v2" not in gpus.ended(server)["calls"]


def test_an_old_gpu_pins_memory_that_is_writable(gpus):
    """GPU 1 can't have memory that is mapped read-only."""
    for devices, mode in (1, "r--s"), (2, "rw-s"):
        server = gpus.start(fill, devices=devices)
        check(server, 4096)
        modes = [line.split()[1] for line in open(
            f"/proc/{server.core()}/maps", encoding="utf-8")
            if "inference-requests" in line]
        # the begin of each half, and what follows it
        assert modes == (["r--s"] if mode == "r--s"
                         else ["rw-s", "r--s", "rw-s", "r--s"]), modes
        server.stop()


def pins(gpus, server):
    """Stretches that are pinned: any request makes the driver count them."""
    gpus.wait_pinned(server)
    check(server, 64)
    calls = gpus.counts()["calls"]
    return calls["cuMemHostRegister_v2"] \
        - calls.get("cuMemHostUnregister", 0)


def test_a_reload_pins_the_memory_of_new_workers(gpus):
    server = gpus.start(fill, workers=2)
    assert pins(gpus, server) == 6
    for size in (MIB, 4096):
        check(server, size)
    server.reload()
    assert process.wait_until(lambda: pins(gpus, server) == 6, 20 * SLOW)
    for size in (MIB, 4096):
        check(server, size)
    assert gpus.ended(server)["pageable_copies"] == 0


def test_a_worker_that_dies_leaves_nothing_pinned(gpus):
    server = gpus.start(fill, allow_alarms=["exited on signal 9"])
    check(server, MIB)
    worker, = server.workers()
    os.kill(worker, 9)
    assert process.wait_until(
        lambda: server.workers() and server.workers() != [worker]
        and server.status("/v2/health/ready") == 200, 20 * SLOW)
    assert process.wait_until(lambda: pins(gpus, server) == 3, 20 * SLOW)
    check(server, MIB)
    assert gpus.ended(server)["pageable_copies"] == 0


def test_requests_do_not_wait_for_a_driver_that_pins(gpus):
    """The memory of both workers waits for the gate; so does nobody else."""
    gate = gpus.folder / "gate"
    gate.touch()
    server = gpus.start(fill, workers=2, pinned=False,
                        env=[f"FAKE_CUDA_PIN_GATE={gate}"])
    for size in (4096, MIB, 4096):
        check(server, size, "CPU:0 CPU:0")
    assert "cuMemHostRegister_v2" not in gpus.counts()["calls"]
    assert " are pinned" not in server.log_text()

    gate.unlink()
    gpus.wait_pinned(server)
    check(server, MIB)
    assert gpus.ended(server)["pageable_copies"] == 2 * 3


def test_a_driver_that_is_slow_keeps_nothing_of_workers_that_died(gpus):
    """But of the one whose memory it is pinning."""
    gate = gpus.folder / "gate"
    gate.touch()
    server = gpus.start(fill, workers=3, pinned=False,
                        allow_alarms=["exited on signal 9"],
                        env=[f"FAKE_CUDA_PIN_GATE={gate}"])

    def channels():
        with open(f"/proc/{server.core()}/maps", encoding="utf-8") as f:
            return sum("inference-requests" in line for line in f)

    assert process.wait_until(lambda: channels() == 3, 20 * SLOW)
    for _ in range(2):
        old = server.workers()
        for worker in old:
            os.kill(worker, 9)
        assert process.wait_until(
            lambda: len(set(server.workers()) - set(old)) == 3
            and channels() == 4, 20 * SLOW), channels()
    check(server, 4096, "CPU:0 CPU:0")
    gate.unlink()
    gpus.wait_pinned(server)
    check(server, 4096)
    gpus.ended(server)


def test_a_core_ends_while_a_driver_pins(gpus):
    gate = gpus.folder / "gate"
    gate.touch()
    server = gpus.start(fill, workers=2, pinned=False,
                        env=[f"FAKE_CUDA_PIN_GATE={gate}"])
    check(server, 4096, "CPU:0 CPU:0")
    core = server.core()
    server.signal("QUIT")
    assert process.wait_until(lambda: not server.workers(), 20 * SLOW)
    assert process.alive(core)
    gate.unlink()
    server.process.wait(20 * SLOW)      # the master, which waits for the core
    assert process.wait_until(lambda: not process.alive(core), 20 * SLOW)
    calls = gpus.counts()["calls"]
    assert calls["cuMemHostRegister_v2"] == calls["cuMemHostUnregister"] == 3


@pytest.mark.parametrize("how", ["KILL", "QUIT"])
def test_the_next_core_pins_again(gpus, how):
    """With other memory of the worker: that of before is never used again."""
    server = gpus.start(fill, workers=2, allow_alarms=["ended by signal 9"])
    check(server, MIB)
    server.end_core(how)
    assert server.wait_for("/v2/health/ready")
    gpus.wait_pinned(server)
    assert process.wait_until(lambda: pins(gpus, server) == 6, 20 * SLOW)
    check(server, 3 * MIB)
    counts = gpus.ended(server)
    assert counts["pageable_copies"] == 0


def test_memory_that_can_not_be_pinned_is_pageable(gpus):
    server = gpus.start(fill, http="""
    inference_env FAKE_CUDA_FAIL=cuMemHostRegister_v2:2:1;
""")
    server.wait_log("bytes stay pageable: .*cannot pin host memory in place")
    check(server, 4096, "CPU_PINNED:0 CPU:0")
