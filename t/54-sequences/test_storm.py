"""Many sequences at once, some broken off, while instances come and go and
nginx is reloaded: a sequence that is not broken off keeps its sum."""

import concurrent.futures
import random

import pytest

from lib.sequences import END, LONG, READY, START, controls, state
from lib.server import SANITIZER

CLIENTS = 8
SEQUENCES = 8 if SANITIZER else 25          # of each client
EXPLICIT = "    inference_model_control explicit;\n" \
    "    inference_load_model *;\n"


def break_off(sequences, id, chance):
    """A request whose client goes; then, in every case, the end."""
    sent = [sequences.send(id, 1) for _ in range(chance.randrange(1, 4))]
    for s in sent:
        s.leave()
    status = sequences.ask(id, 1, end=True).answer().status
    assert status in (200, 400), status


def client(sequences, number):
    """How many of its sequences ended well; a wrong sum fails."""
    chance = random.Random(number)
    good = 0
    for n in range(SEQUENCES):
        id = number * 1000 + n + 1
        if chance.random() < 0.3:
            id = f"client {id}"
        length, total = chance.randrange(1, 9), 0
        for step in range(length):
            value = chance.randrange(1, 1000)
            total += value
            if step > 0 and chance.random() < 0.04:
                break_off(sequences, id, chance)
                break
            sent = sequences.ask(id, value, start=step == 0,
                                 end=step == length - 1)
            assert sent.data() == [total], (id, step)
        else:
            good += 1
    return good


@pytest.mark.parametrize("batching", [
    "", "oldest { max_candidate_sequences: 3 }"])
def test_a_storm(sequences, batching):
    server = sequences.start(
        LONG + controls(START, END, READY) + state() + batching, does="sum",
        max_batch=4, instances=2, workers=2, http=EXPLICIT)
    chance = random.Random(7)
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        futures = [pool.submit(client, sequences, n)
                   for n in range(1, CLIENTS + 1)]
        while not all(f.done() for f in futures):
            if chance.random() < 0.2:
                server.signal("HUP")
            sequences.scale(chance.randrange(1, 5))
        good = sum(f.result() for f in futures)
    assert good > CLIENTS * SEQUENCES / 2
    sequences.wait_queued(0)
    failed = sequences.statistics()["inference_stats"]["fail"]
    assert int(failed["count"]) == sequences.metric(
        "nv_inference_request_failure", reason="CANCELED")
