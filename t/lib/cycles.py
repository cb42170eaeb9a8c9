"""A model that is loaded and unloaded over and over: memory stays as it is."""

import os
import time

from lib import process
from lib.repository import ask

CYCLES = int(os.environ.get("INF_CYCLES", "30"))
EXPLICIT = "    inference_model_control explicit;"

# Large pieces of memory go back to the kernel when they are freed, and what
# is measured is not how much the allocator keeps for the next load.
ENV = ["MALLOC_MMAP_THRESHOLD_=262144"]


def run(server, model, infer, cycles=CYCLES):
    """Bytes that the core holds after a third of the cycles and after all of
    them, without the model.  infer asks the loaded model."""
    core, = server.cores()
    held = []
    for i in range(cycles):
        answer = ask(server, "load", model)
        assert answer.status == 200, answer
        infer()
        answer = ask(server, "unload", model)
        assert answer.status == 200, answer
        assert process.wait_until(
            lambda: server.status(f"/v2/models/{model}/ready") != 200, 20)
        if i + 1 in (cycles // 3, cycles):
            held.append(settled(core))
    assert server.cores() == [core]
    return held


def settled(core):
    """The model is destroyed a little after the answer."""
    found = []
    for _ in range(20):
        found.append(process.held_bytes([core]))
        time.sleep(0.05)
    return min(found)
