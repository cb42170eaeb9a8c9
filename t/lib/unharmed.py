"""That an attack on a server harms nobody: no process ends, and other
clients are answered meanwhile."""

import contextlib
import time

from lib import process
from lib.load import Load
from lib.server import SANITIZER, SLOW
from lib.wire import tensor

GOOD = {"inputs": [tensor("IN", "INT32", [2], [1, 2])]}


def good(connection, model="id_int32"):
    time.sleep(0.005)           # a witness, not a load
    answer = connection.infer(model, GOOD)
    if answer.status == 200:
        assert answer.json()["outputs"][0]["data"] == [1, 2]
    return answer.status


@contextlib.contextmanager
def unharmed(server, model="id_int32"):
    """Around an attack; others send good requests the whole time."""
    before = sorted(server.workers()), server.cores()
    with Load(server.port, lambda c: good(c, model), count=2,
              patience=60.0 * SLOW) as others:
        others.wait_for_more(2, 30 * SLOW)
        yield
        others.wait_for_more(2, 30 * SLOW)
    assert set(others.results) == {200}, others.results
    assert (sorted(server.workers()), server.cores()) == before


def rejected(answer, *statuses):
    """The answer is an error of ours, in a sentence or two."""
    assert answer.status in (statuses or (400,)), answer
    assert list(answer.json()) == ["error"]
    assert 0 < len(answer.error) < 2000, answer
    return answer.error


def memory(server):
    """The memory of workers and core together, arenas counted once."""
    return sum(process.pss_bytes(p)
               for p in server.workers() + server.cores())


def bounded(server, before, by):
    """A sanitizer keeps what is freed, so there nothing can be told."""
    after = memory(server)
    assert SANITIZER or after < before + by, (before, after)


def descriptors(server):
    """How many files workers and core have open."""
    return sum(process.descriptors(p)
               for p in server.workers() + server.cores())
