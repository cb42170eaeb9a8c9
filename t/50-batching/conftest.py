"""A model of the batches backend, and the gate that holds it."""

import concurrent.futures
import shutil
import tempfile

import pytest

from lib.batches import Batching, Gate


@pytest.fixture
def gate():
    folder = tempfile.mkdtemp(prefix="inf-gate-")
    yield Gate(folder)
    shutil.rmtree(folder)


@pytest.fixture
def batching(make_server, gate):
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        yield Batching(make_server, gate, pool)
        gate.open_all()             # a failed test leaves nobody waiting
