"""The load report of a node of ours: how many requests its workers have in the
core."""

import json
import pathlib
import shutil
import tempfile

import pytest

from lib import process
from lib.nodes import balancer
from lib.sequences import ALL, LONG, Sequences
from lib.server import SLOW
from lib.wire import infer_path, tensor


@pytest.fixture
def node(make_server):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="inf-balance-"))
    folder.chmod(0o777)
    it = Sequences(make_server, folder)
    it.start(LONG + ALL, max_batch=4, workers=2)
    yield it
    it.open_all()
    shutil.rmtree(folder, ignore_errors=True)


def report(server, form="text"):
    return server.get("/v2/health/ready", headers={
        "endpoint-load-metrics-format": form}).headers.get(
            "endpoint-load-metrics")


def test_the_queue_is_that_of_all_workers(node):
    text = "TEXT named_metrics.queue_depth="
    assert process.wait_until(lambda: report(node.server) == text + "0",
                              5 * SLOW)
    held = [node.hold()]
    held += node.queue_all(1, range(5), ends=False)
    # whichever worker answers; the call before may still be counted
    for _ in range(20):
        assert process.wait_until(lambda: report(node.server) == text + "6",
                                  5 * SLOW)
    assert json.loads(report(node.server, "json").removeprefix("JSON ")) \
        == {"named_metrics": {"queue_depth": 6}}
    node.release()
    for sent in held:
        sent.data()
    assert process.wait_until(lambda: report(node.server) == text + "0",
                              5 * SLOW)


def test_nobody_gets_it_unasked(node):
    answer = node.server.get("/v2/health/ready")
    assert answer.status == 200
    assert "endpoint-load-metrics" not in answer.headers
    assert report(node.server, "xml") is None
    other = node.server.get("/v2/models/m", headers={
        "endpoint-load-metrics-format": "text"})
    assert "endpoint-load-metrics" not in other.headers


def test_a_busy_node_gets_nothing(make_server, node):
    """Requests that others have brought to a node count, too."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="inf-balance-"))
    folder.chmod(0o777)
    idle = Sequences(make_server, folder)
    idle.start(LONG + ALL, max_batch=4)
    held = [node.hold(), *node.queue_all(1, range(5), ends=False)]
    front = balancer(make_server, [node.server.port, idle.server.port])
    assert process.wait_until(
        lambda: front.log_text().count("is ready") == 2, 10 * SLOW)
    body = json.dumps({
        "inputs": [tensor("IN", "INT32", [1, 1], [1])],
        "parameters": {"sequence_id": 7, "sequence_start": True}}).encode()
    for _ in range(5):
        assert front.post(infer_path("m"), body).status == 200
    assert len(idle.executions()) == 5
    node.release()
    for sent in held:
        sent.data()
    shutil.rmtree(folder, ignore_errors=True)
