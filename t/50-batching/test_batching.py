"""Dynamic batching, queue policies, priorities and order, by real clients."""

import json
import re

import numpy
import pytest
import tritonclient.http as client
from tritonclient.utils import InferenceServerException

from lib import process
from lib.batches import data, executions, sizes, told
from lib.server import SLOW, nap
from lib.wire import infer_path, request_bytes, tensor

LOG = "    log_format batch '$request_uri $inference_batch_size';\n"


def test_queued_requests_share_an_execution(batching):
    server = batching.start("", hold=8, http=LOG,
                            server="access_log access.log batch;")
    futures = batching.ask_all(range(8))
    assert executions(futures) == {0: list(range(8))}
    assert sorted(told(f)["place"] for f in futures) == list(range(8))
    assert {told(f)["rows"] for f in futures} == {8}
    assert [data(f) for f in futures] == [[i] for i in range(8)]
    assert batching.metric("nv_inference_count") == 8
    assert batching.metric("nv_inference_exec_count") == 1
    assert batching.metric("nv_inference_request_success") == 8

    log = server.prefix / "access.log"
    assert process.wait_until(
        lambda: log.exists() and len(re.findall(
            r"infer 8$", log.read_text(), re.M)) == 8, 5 * SLOW), \
        log.read_text()


def test_rows_count_not_requests(batching):
    batching.start("", hold=4)
    futures = [batching.ask(i, rows=3) for i in range(4)]
    assert sizes(futures) == [2, 2]         # 6 rows; 9 would be too many
    assert {told(f)["rows"] for f in futures} == {6}


def test_preferred_sizes(batching):
    """scheduling.md 3.5"""
    batching.start("preferred_batch_size: [ 4, 6 ]", hold=7)
    assert sizes(batching.ask_all(range(7))) == [6, 1]


def test_the_delay_waits_for_company(batching):
    """No preferred size comes together: they go after the delay, at once."""
    batching.start("preferred_batch_size: 8"
                   " max_queue_delay_microseconds: 300000", hold=3)
    assert sizes(batching.ask_all(range(3))) == [3]
    alone = batching.ask(9)
    assert told(alone)["requests"] == 1


def test_an_unload_waits_for_no_company(batching):
    """Nobody finds the model any more: nobody comes."""
    server = batching.start(
        "preferred_batch_size: 8 max_queue_delay_microseconds: 600000000",
        http="    inference_model_control explicit;\n"
             "    inference_load_model *;\n",
        parts="health metadata config infer repository")
    futures = batching.ask_all([1, 2])
    batching.wait_queued(2)
    assert server.post("/v2/repository/models/m/unload", b"").status == 200
    assert sizes(futures) == [2]
    assert server.wait_log(r"model=m version=1 is unloaded")


def test_a_full_queue_answers_at_once(batching):
    """scheduling.md 3.8"""
    batching.start("default_queue_policy { max_queue_size: 8 }")
    batching.gate.close()
    first = batching.ask(0, rows=8)
    batching.gate.wait_entered()
    futures = batching.ask_all(range(10))
    assert process.wait_until(
        lambda: sum(f.done() for f in futures) == 2, 10 * SLOW)
    rejected = [f.result() for f in futures if f.done()]
    batching.gate.open()
    for answer in rejected:
        assert answer.status == 503
        assert answer.error == \
            "[request id: <id_unknown>] Exceeds maximum queue size"
    assert told(first)["rows"] == 8
    assert sum(f.result(10 * SLOW).status == 200 for f in futures) == 8


def test_a_model_without_batching_may_limit_its_queue(batching):
    """Running requests do not count; a client that goes makes room."""
    server = batching.start(
        None, max_batch=0, inputs=[("IN", "INT32", [1, 1])],
        parameters={"INFERENCE_MAX_QUEUE_SIZE": 2})
    batching.gate.close()
    first = batching.ask(0)
    batching.gate.wait_entered()
    body = json.dumps({"inputs": [tensor("IN", "INT32", [1, 1], [1])]})
    with server.wire() as gone:
        gone.send(request_bytes("POST", infer_path("m"), body.encode()))
        second = batching.ask(1)
        batching.wait_queued(2)
        answer = server.infer("m", {"id": "third", "inputs": [
            tensor("IN", "INT32", [1, 1], [2])]})
        assert answer.status == 503
        assert answer.error == "[request id: third] Exceeds maximum queue size"
    batching.wait_queued(1)
    third = batching.ask(3)
    batching.wait_queued(2)
    batching.gate.open()
    assert [data(f) for f in (first, second, third)] == [[0], [1], [3]]


def test_a_timeout_is_answered_while_the_instance_is_busy(batching):
    """scheduling.md 3.10, 3.14 and 8.9"""
    batching.start("default_queue_policy {"
                   " default_timeout_microseconds: 100000 }")
    batching.gate.close()
    first = batching.ask(0)
    batching.gate.wait_entered()
    answer = batching.ask(1).result(20 * SLOW)
    assert answer.status == 503
    assert answer.error.endswith("Request timeout expired")
    assert batching.metric("nv_inference_request_failure",
                           reason="REJECTED") == 1
    batching.gate.open()
    assert told(first)["requests"] == 1
    assert told(batching.ask(2)) == {"execution": 1, "requests": 1,
                                     "rows": 1, "place": 0}


def test_a_client_names_its_timeout(batching):
    """scheduling.md 3.11 and 3.12, with tritonclient"""
    batching.start("default_queue_policy { allow_timeout_override: true }")
    batching.gate.close()
    first = batching.ask(0)
    batching.gate.wait_entered()
    with client.InferenceServerClient(
            batching.server.url, network_timeout=60 * SLOW) as c:
        x = client.InferInput("IN", [1, 1], "INT32")
        x.set_data_from_numpy(numpy.array([[7]], numpy.int32))
        with pytest.raises(InferenceServerException, match="timeout expired"):
            c.infer("m", [x], timeout=50000)
        batching.gate.open()
        assert c.infer("m", [x], timeout=60_000_000).as_numpy(
            "OUT").tolist() == [[7]]
    assert told(first)


def test_a_delayed_request_goes_last(batching):
    """scheduling.md 3.9: it waits on behind those that came after it"""
    batching.start("default_queue_policy { timeout_action: DELAY"
                   " default_timeout_microseconds: 60000000"
                   " allow_timeout_override: true }", max_batch=1, hold=4)
    late = batching.ask(0, timeout=20000)
    nap(0.3 * SLOW)             # its time is over, and nobody tells
    futures = batching.ask_all([1, 2, 3])
    assert told(late)["execution"] == 3
    assert sorted(told(f)["execution"] for f in futures) == [0, 1, 2]


def test_priorities(batching):
    """scheduling.md 3.13 and 1.9"""
    batching.start("priority_levels: 2 default_priority_level: 2",
                   max_batch=2, hold=6)
    low = batching.ask_all([0, 1]) + [batching.ask(2, priority=2),
                                      batching.ask(3, priority=9)]
    high = [batching.ask(4, priority=1), batching.ask(5, priority=1)]
    assert {told(f)["execution"] for f in high} == {0}
    assert {told(f)["execution"] for f in low} == {1, 2}


def test_a_request_waits_for_no_equal_one_of_lower_priority(batching):
    """With a response cache, where equal requests share an execution."""
    batching.start("priority_levels: 2 default_priority_level: 2",
                   max_batch=1, extra="response_cache { enable: true }\n",
                   http="    inference_response_cache local size=1m;\n")
    batching.gate.close()
    first = batching.ask(0)
    batching.gate.wait_entered()
    low = []
    for queued, value in enumerate((1, 7), 1):
        low.append(batching.ask(value))
        batching.wait_queued(queued)
    high = batching.ask(7, priority=1)
    batching.wait_queued(3)
    batching.gate.open()
    assert [told(f)["execution"] for f in (first, high, *low)] == [0, 1, 2, 3]
    assert data(high) == data(low[1]) == [7]


def test_a_client_that_goes_takes_its_request_along(batching):
    """scheduling.md 8.1"""
    server = batching.start("")
    batching.gate.close()
    first = batching.ask(0)
    batching.gate.wait_entered()
    body = json.dumps({"inputs": [tensor("IN", "INT32", [1, 1], [1])]})
    with server.wire() as gone:
        gone.send(request_bytes("POST", infer_path("m"), body.encode()))
        batching.wait_queued(1)
    batching.wait_queued(0)
    assert batching.metric("nv_inference_request_failure",
                           reason="CANCELED") == 1
    batching.gate.open()
    assert told(first)["requests"] == 1
    assert told(batching.ask(2)) == {"execution": 1, "requests": 1,
                                     "rows": 1, "place": 0}


def test_a_timeout_counts_at_the_cache_too(batching):
    """Its twin runs and is held: it waits for the twin's answer, but not
    longer than it said."""
    server = batching.start(
        "default_queue_policy { allow_timeout_override: true }",
        extra="response_cache { enable: true }\n",
        http="    inference_response_cache local size=1m;\n")
    batching.gate.close()
    first = batching.ask(5)
    batching.gate.wait_entered()
    patient = batching.ask(5)
    answer = batching.ask(5, timeout=50000).result(20 * SLOW)
    assert answer.status == 503
    assert answer.error.endswith("Request timeout expired")
    assert not first.done() and not patient.done()
    assert batching.metric("nv_inference_request_failure",
                           reason="REJECTED") == 1
    batching.gate.open()
    assert data(first) == data(patient) == [5]
    assert told(first)["execution"] == 0
    assert server.infer("m", {"inputs": [tensor("IN", "INT32", [1, 1],
                                                [5])]}).status == 200
    assert batching.metric("nv_inference_exec_count") == 1


@pytest.mark.parametrize("extra,expected", [
    ("", [2, 1]), ("allow_ragged_batch: true", [3])])
def test_shapes(batching, extra, expected):
    """scheduling.md 3.4"""
    batching.start("", hold=3, inputs=[("IN", "INT32", [-1], extra)])
    futures = [batching.ask(1, width=2), batching.ask(2, width=2)]
    batching.wait_queued(2)
    futures.append(batching.ask(3, width=5))
    assert sizes(futures) == expected
    assert [len(data(f)) for f in futures] == [2, 2, 5]


def test_parameters_may_differ(batching):
    """scheduling.md 3.16"""
    batching.start("", hold=2)
    assert sizes([batching.ask(0, a=1), batching.ask(1, b="x")]) == [2]


def test_optional_inputs(batching):
    """scheduling.md 3.16: one that is left out makes another batch"""
    server = batching.start("", hold=3, inputs=[
        ("IN", "INT32", [1]), ("MORE", "INT32", [1], "optional: true")])
    both = {"inputs": [tensor("IN", "INT32", [1, 1], [3]),
                       tensor("MORE", "INT32", [1, 1], [4])]}
    futures = [batching.ask(1), batching.ask(2)]
    batching.wait_queued(2)
    futures.append(batching.pool.submit(server.infer, "m", both))
    assert sizes(futures) == [2, 1]
    assert [data(f) for f in futures] == [[1], [2], [3]]


@pytest.mark.parametrize("keeps", [True, False])
def test_order(batching, keeps):
    """scheduling.md 3.15: the second execution ends first"""
    batching.start("preserve_ordering: true" if keeps else "", max_batch=1,
                   instances=2)
    batching.gate.close(0)
    first = batching.ask(0)
    batching.gate.wait_entered(0)
    second = batching.ask(1)
    batching.gate.wait_entered(1)
    if keeps:
        nap(0.3)
        assert not second.done()
    else:
        assert told(second)["execution"] == 1
    assert not first.done()
    batching.gate.open(0)
    assert told(first)["execution"] == 0
    assert told(second)["execution"] == 1


def test_many_clients_and_all_answers_are_their_own(batching):
    batching.start("max_queue_delay_microseconds: 500", instances=2,
                   workers=2)
    for _ in range(5):
        futures = batching.ask_all(range(200))
        assert [data(f) for f in futures] == [[i] for i in range(200)]
    assert batching.metric("nv_inference_count") == 1000
    assert batching.metric("nv_inference_pending_request_count") == 0
