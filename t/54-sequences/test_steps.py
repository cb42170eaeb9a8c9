"""Iterative sequences: a request that takes several executions.  How it
streams its steps is tested where gRPC is (40-prebuilt) and in
t/unit/abi/sequences.c."""

import pytest

from lib import events, process
from lib.sequences import ALL, LONG, READY, START, controls, ids
from lib.server import SLOW

ITERATIVE = "iterative_sequence: true\n"


def wait_released(sequences):
    """A response may come before its request's release; after it the place in
    the batch is free."""
    assert process.wait_until(lambda: sequences.metric(
        "nginx_inference_executing_requests") == 0, 8 * SLOW, 0.002)


def test_a_request_needs_no_id(sequences):
    """4.18: it is given one, and the flag"""
    sequences.start(LONG + ALL + ITERATIVE, does="steps")
    assert sequences.ask(None, 1).data() == [1]
    wait_released(sequences)
    assert sequences.ask(None, 3).data() == [3]
    rows = [r for e in sequences.executions() for r in e["rows"]]
    assert [r["flags"] for r in rows] == [1, 1, 0, 0]
    assert [r["inputs"]["START"]["data"] for r in rows] == [[1], [1], [0],
                                                            [0]]
    assert [r["inputs"]["READY"]["data"] for r in rows] == [[1]] * 4
    assert [r["inputs"]["IN"]["data"] for r in rows] == [[1], [3], [3], [3]]
    found = [id for e in sequences.executions() for id in ids(e)]
    assert found[0] != found[1] and found[1:] == [found[1]] * 3


def test_generate(sequences):
    """Its requests name no sequence: they are given one here alone."""
    sequences.start(LONG + ALL + ITERATIVE, does="steps",
                    parts="health metadata generate")
    port = sequences.server.port
    for verb in ("generate", "generate_stream"):
        answer = events.post(port, events.path("m", verb), {
            "IN": 3, "parameters": {"sequence_id": 7}})
        assert answer.status == 200, answer
        body = answer.events()[0] if verb != "generate" else answer.json()
        assert body["OUT"] == 3
        wait_released(sequences)
    rows = [r for e in sequences.executions() for r in e["rows"]]
    assert [r["flags"] for r in rows] == [1, 0, 0] * 2


@pytest.mark.parametrize("batching", [
    "", "oldest { max_candidate_sequences: 1 }"])
def test_four_on_one_slot(sequences, batching):
    """4.18"""
    sequences.start(LONG + ALL + ITERATIVE + batching, max_batch=1,
                    does="steps")
    sent = [sequences.send(None, 5) for _ in range(4)]
    assert [s.data() for s in sent] == [[5]] * 4
    found = [id for e in sequences.executions() for id in ids(e)]
    assert len(found) == 20
    for at in range(0, 20, 5):              # one after the other
        assert len(set(found[at:at + 5])) == 1
    assert len(set(found)) == 4


@pytest.mark.parametrize("batching", [
    "", "oldest { max_candidate_sequences: 4 }",
    "oldest { max_candidate_sequences: 4 preserve_ordering: true }"])
def test_steps_share_executions(sequences, batching):
    """Later requests join those that are under way."""
    sequences.start(LONG + ALL + ITERATIVE + batching, does="steps",
                    delay_ms=5)
    sequences.gates["m"].close()
    first = sequences.send(None, 6)
    sequences.gates["m"].wait_entered()
    sent = [sequences.queue(None, 6) for _ in range(3)]
    sequences.release()
    assert [s.data() for s in (first, *sent)] == [[6]] * 4
    sizes = [len([id for id in ids(e) if id is not None])
             for e in sequences.executions()]
    assert sum(sizes) == 24
    assert max(sizes) == 4


def test_a_sequence_with_an_id(sequences):
    """The usual rule of START; each of its requests has steps."""
    sequences.start(LONG + ALL + ITERATIVE, does="steps")
    status, text = sequences.ask(7, 2).rejected()
    assert status == 400 and "START flag" in text
    assert sequences.ask(7, 2, start=True).data() == [2]
    wait_released(sequences)
    status, text = sequences.ask(7, 2).rejected()    # it ended with its steps
    assert status == 400 and "START flag" in text
    assert sequences.ask("seven", 3, start=True).answer().status == 400
    assert sequences.ask(7, 3, start=True).data() == [3]


def test_texts_and_given_numbers_meet(sequences):
    """A number that a client chose is given to nobody else meanwhile."""
    sequences.start(LONG + controls(START, READY) + ITERATIVE, does="steps",
                    max_batch=8)
    sequences.gates["m"].close()
    sent = [sequences.send(1, 4, start=True)]
    sequences.gates["m"].wait_entered()
    sent += [sequences.queue(None, 4) for _ in range(3)]
    sent += [sequences.queue("1", 4, start=True)]
    sequences.release()
    assert [s.data() for s in sent] == [[4]] * 5
    found = {id for e in sequences.executions() for id in ids(e)
             if id is not None}
    assert len(found) == 5 and {1, "1"} <= found


def test_a_step_longer_than_the_idle_limit(sequences):
    """10: what runs is not idle"""
    sequences.start(f"max_sequence_idle_microseconds: {100000 * SLOW}\n"
                    + ALL + ITERATIVE, does="steps", delay_ms=300 * SLOW)
    assert sequences.ask(None, 3).data() == [3]


def test_released_later(sequences):
    """By a thread of the backend's own, after Execute has returned."""
    sequences.start(LONG + ALL + ITERATIVE, does="steps", later_ms=20)
    sent = [sequences.send(None, 4) for _ in range(6)]
    assert [s.data() for s in sent] == [[4]] * 6
    assert int(sequences.statistics()["inference_stats"]["fail"].get(
        "count", 0)) == 0


def test_who_waits_for_its_next_step_is_not_pending(sequences):
    """1: it stays one that executes"""
    sequences.start(LONG + ALL + ITERATIVE, does="steps", max_batch=2,
                    later_ms=20)
    sequences.gates["m"].close()
    sequences.gates["m"].close(1)
    first = sequences.send(None, 2)
    sequences.gates["m"].wait_entered()
    second = sequences.queue(None, 2)
    sequences.gates["m"].open()             # the first is released later
    sequences.gates["m"].wait_entered(1)
    assert process.wait_until(lambda: sequences.metric(
        "nginx_inference_executing_requests") == 2, 8 * SLOW, 0.005)
    assert sequences.queued() == 0
    sequences.gates["m"].open(1)
    assert (first.data(), second.data()) == ([2], [2])


def test_a_client_that_goes_between_two_steps(sequences):
    """Its slot is free at once."""
    sequences.start(LONG + ALL + ITERATIVE, does="steps", max_batch=1,
                    delay_ms=5)
    gone = sequences.send(None, 1000000)
    sequences.gates["m"].wait_entered(3)
    gone.leave()
    assert sequences.ask(None, 3).data() == [3]


@pytest.mark.parametrize("batching", [
    "", "oldest { max_candidate_sequences: 2 preserve_ordering: true }"])
def test_steps_under_a_rate_limit(sequences, batching):
    """Each step asks for leave again; two models share one resource."""
    for name in ("m", "n"):
        sequences.model(LONG + ALL + ITERATIVE + batching, name, max_batch=2,
                        does="steps", instances=2)
        sequences.wanted[name] = sequences.wanted[name].replace(
            "kind: KIND_CPU", "kind: KIND_CPU rate_limiter {"
            ' resources [ { name: "R" count: 1 } ] }')
    sequences.start(http="    inference_rate_limit execution_count;\n")
    sent = [sequences.send(None, 4, model=model)
            for _ in range(6) for model in ("m", "n")]
    assert [s.data() for s in sent] == [[4]] * 12


def test_a_model_without_iterative_sequences(sequences):
    """1.8: the backend's release is rejected, and it answers with that"""
    sequences.start(LONG + ALL, does="steps")
    status, text = sequences.ask(7, 3, start=True).rejected()
    assert status == 400
    assert "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE" in text
    assert sequences.ask(7, 1, end=True).data() == [2]  # as it counts


def test_nginx_ends_between_two_steps(sequences):
    """9.10: it goes on until it is done"""
    server = sequences.start(LONG + ALL + ITERATIVE, does="steps",
                             delay_ms=20)
    sent = sequences.send(None, 30)
    sequences.gates["m"].wait_entered(2)
    server.signal("QUIT")
    assert sent.data() == [30]
    server.stop()
