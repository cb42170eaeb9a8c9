"""The direct strategy: a sequence has a slot, a slot has a place in every
batch.  Numbers are those of the scheduling reference's section 4."""

import pytest

from lib import process
from lib.sequences import ALL, LONG, ids, places, values
from lib.server import SLOW, nap

OWN = [999]                     # the sequence of hold()


def held(sequences, plan, interleaved=False):
    """{id: requests}: all were waiting before the first ran.

    plan: {id: values of its requests}
    """
    plug = sequences.hold()
    if not interleaved:
        sent = {id: sequences.queue_all(id, given)
                for id, given in plan.items()}
    else:
        sent = {id: [] for id in plan}
        for i in range(max(map(len, plan.values()))):
            for id, given in plan.items():
                if i < len(given):
                    sent[id].append(sequences.queue(
                        id, given[i], start=i == 0,
                        end=i == len(given) - 1))
    sequences.release()
    plug.told()
    for id, requests in sent.items():
        for request in requests:
            request.told()
    return sent


def counted(sequences):
    """(batch sizes, inferences) beside those of hold()."""
    sizes = sequences.batches()
    sizes[1] -= 1
    return ({size: n for size, n in sizes.items() if n},
            int(sequences.statistics()["inference_count"]) - 1)


def check_places(executions):
    """No sequence changes its slot, and each is given its requests in
    order."""
    for id, found in places(executions).items():
        assert len(found) == 1, (id, found)


def test_sequences_of_all_slots_run(sequences):
    """4.1: a fifth waits until one of four ends"""
    sequences.start(LONG + ALL + "direct { }", max_batch=2, instances=2)
    for id in (1, 2, 3, 4):
        assert sequences.ask(id, id, start=True).data() == [id]
    fifth = sequences.queue(5, 5, start=True)
    for id in (1, 2, 3, 4):
        assert sequences.ask(id, 10 * id).data() == [10 * id]
    assert sequences.queued() == 1
    assert sequences.ask(3, 30, end=True).data() == [30]
    assert fifth.data() == [5]
    assert sequences.ask(5, 6, end=True).data() == [6]
    for id in (1, 2, 4):
        assert sequences.ask(id, 7, end=True).data() == [7]

    executions = sequences.executions()
    check_places(executions)
    found = {id: next(iter(p)) for id, p in places(executions).items()}
    assert len({found[id] for id in (1, 2, 3, 4)}) == 4
    assert found[5] == found[3]
    assert {instance for instance, _ in found.values()} == {
        found[1][0], found[2][0], found[3][0], found[4][0]}
    assert len({instance for instance, _ in found.values()}) == 2


def test_a_slot_is_taken_again(sequences):
    """4.2"""
    sequences.start(LONG + ALL, max_batch=2)
    held(sequences, {i: [i, i + 10, i + 20] for i in (1, 2, 3, 4)})
    executions = sequences.executions()[1:]
    assert [ids(e) for e in executions] == [[1, 2]] * 3 + [[3, 4]] * 3
    check_places(executions)
    assert counted(sequences) == ({2: 6}, 12)


@pytest.mark.parametrize("lengths,sizes", [
    ([4, 4, 2, 2], {4: 2, 2: 2}),
    ([2, 2, 4, 4], {4: 4})])
def test_slots_below_the_last_are_filled(sequences, lengths, sizes):
    """4.3: and none above it"""
    sequences.start(LONG + ALL)
    held(sequences, {i + 1: [7] * n for i, n in enumerate(lengths)})
    assert counted(sequences) == (sizes, 12)
    filled = [row for e in sequences.executions() for row, id in
              zip(e["rows"], ids(e)) if id is None]
    assert len(filled) == sum(k * n for k, n in sizes.items()) - 12
    for row in filled:
        assert row["outputs"] == 0 and row["flags"] == 0
        assert row["inputs"]["IN"] == {"type": "INT32", "shape": [1, 1],
                                       "data": [0]}


def test_the_fifth_waits_for_four(sequences):
    """4.4"""
    sequences.start(LONG + ALL)
    held(sequences, {i: [1, 2, 3] for i in range(1, 6)})
    assert counted(sequences) == ({4: 3, 1: 3}, 15)
    executions = sequences.executions()[1:]
    assert len(executions) == 6
    assert [ids(e) for e in executions[3:]] == [[5]] * 3
    for i in range(1, 6):
        assert values(executions, i) == [[1], [2], [3]]


def test_the_backlog_fills_freed_slots(sequences):
    """4.5"""
    sequences.start(LONG + ALL)
    lengths = {1: 3, 2: 2, 3: 2, 4: 3, 5: 1, 6: 1}
    held(sequences, {i: [i] * n for i, n in lengths.items()})
    assert counted(sequences) == ({4: 3}, 12)
    assert ids(sequences.executions()[3]) == [1, 5, 6, 4]


@pytest.mark.parametrize("ragged,interleaved,sizes", [
    (False, False, {4: 9}), (False, True, {4: 9}), (True, False, {4: 3})])
def test_inputs_of_different_shapes(sequences, ragged, interleaved, sizes):
    """4.6: they don't share an execution unless ragged ones are allowed"""
    sequences.start(LONG + ALL, dims="-1", ragged=ragged)
    width = {1: 2, 2: 2, 3: 1, 4: 3}
    held(sequences, {i: [[i] * n] * 3 for i, n in width.items()},
         interleaved)
    assert counted(sequences) == (sizes, 12)
    executions = sequences.executions()[1:]
    check_places(executions)
    for i, n in width.items():
        assert values(executions, i) == [[i] * n] * 3
    for e in executions:
        shapes = {tuple(r["inputs"]["IN"]["shape"]) for r in e["rows"]}
        assert ragged or len(shapes) == 1


def test_whoever_waits_longest_says_what_runs(sequences):
    """10: no shape waits for ever behind the lowest slot's"""
    sequences.start(LONG + ALL, dims="-1", max_batch=2)
    held(sequences, {1: [[1, 1]] * 4, 2: [[2]] * 4}, interleaved=True)
    order = [[id for id in ids(e) if id] for e in sequences.executions()[1:]]
    assert order == [[1], [2]] * 4


def test_without_batching_there_is_one_slot(sequences):
    sequences.start(LONG + ALL, max_batch=0)
    assert sequences.ask(1, 1, start=True).data() == [1]
    second = sequences.queue(2, 2, start=True, end=True)
    assert sequences.ask(1, 3, end=True).data() == [3]
    assert second.data() == [2]
    for e in sequences.executions():
        (row,) = e["rows"]
        assert {k: v["shape"] for k, v in row["inputs"].items()} == {
            "IN": [1], "START": [1], "END": [1], "READY": [1], "CORRID": [1]}


def test_utilization_of_none_waits_for_nobody(sequences):
    """4.9: the delay does not count"""
    sequences.start(LONG + ALL
                    + "direct { max_queue_delay_microseconds: 600000000 }")
    assert sequences.ask(1, 1, start=True).data() == [1]


def test_utilization_of_a_half(sequences):
    """4.9: two of four slots are enough"""
    sequences.start(LONG + ALL
                    + "direct { max_queue_delay_microseconds: 600000000"
                      " minimum_slot_utilization: 0.5 }")
    first = sequences.queue(1, 1, start=True)
    nap(0.2)
    assert sequences.queued() == 1
    second = sequences.send(2, 2, start=True)
    assert (first.data(), second.data()) == ([1], [2])
    assert sequences.batches() == {2: 1}
    first = sequences.queue(1, 1)
    third = sequences.send(3, 3, start=True)
    assert (first.data(), third.data()) == ([1], [3])
    assert ids(sequences.executions()[1]) == [1, None, 3]


def test_utilization_of_all(sequences):
    """4.9: until the delay is over"""
    sequences.start(LONG + ALL + "direct { minimum_slot_utilization: 1.0"
                    " max_queue_delay_microseconds: 300000 }")
    sent = [sequences.send(i, i, start=True) for i in (1, 2, 3)]
    assert [s.data() for s in sent] == [[1], [2], [3]]
    assert sum(n for n in sequences.batches().values()) in (1, 2, 3)
    assert sequences.ask(1, 9).data() == [9]


def test_the_requests_of_a_sequence_run_in_order(sequences):
    """As they arrive, however busy the instance is; results stay apart."""
    sequences.start(LONG + ALL, max_batch=8, delay_ms=2)
    plan = {i: [100 * i + k for k in range(6)] for i in range(1, 13)}
    held(sequences, plan, interleaved=True)
    executions = sequences.executions()[1:]
    check_places(executions)
    for id, given in plan.items():
        assert values(executions, id) == [[v] for v in given]
    assert process.wait_until(lambda: sequences.queued() == 0, 5 * SLOW)
    assert int(sequences.statistics()["inference_count"]) == 12 * 6 + 1


@pytest.mark.parametrize("oldest", [False, True])
def test_the_first_batch_can_be_held(sequences, oldest):
    """By the variable that Triton's own tests set."""
    sequences.start(LONG + ALL + ("oldest { max_candidate_sequences: 4 }\n"
                                  if oldest else ""),
                    inference_env=["TRITONSERVER_DELAY_SCHEDULER=3"])
    sent = [sequences.queue(id, id, start=True) for id in (1, 2)]
    assert not process.wait_until(sequences.executions, 0.5)
    sent.append(sequences.send(3, 3, start=True))
    for one in sent:
        one.told()
    assert len(sequences.executions()) == 1
    sequences.ask(1, 1, end=True).told()            # once
    assert len(sequences.executions()) == 2


def test_the_first_batch_can_be_held_for_the_backlog(sequences):
    sequences.start(LONG + ALL, max_batch=1, inference_env=[
        "TRITONSERVER_BACKLOG_DELAY_SCHEDULER=2"])
    sent = [sequences.queue(1, 1, start=True, end=True),
            sequences.queue(2, 2, start=True, end=True)]
    assert not process.wait_until(sequences.executions, 0.5)
    sent.append(sequences.send(3, 3, start=True, end=True))
    for one in sent:
        one.told()
    assert len(sequences.executions()) == 3
