"""The oldest strategy: requests of several sequences share a batch, one of
each.  Numbers are those of the scheduling reference's section 4."""

import select

import pytest

from lib.sequences import ALL, LONG, ids, places, values
from lib.server import SLOW


def oldest(candidates=4, more=""):
    return LONG + ALL \
        + f"oldest {{ max_candidate_sequences: {candidates} {more} }}"


def queue_interleaved(sequences, names, length):
    return [sequences.queue(id, 10 * id + i, start=i == 0,
                            end=i == length - 1)
            for i in range(length) for id in names]


def run(sequences, names, length):
    plug = sequences.hold(ends=False)       # and keeps its slot
    sent = queue_interleaved(sequences, names, length)
    sequences.release()
    plug.told()
    for s in sent:
        assert s.data() == [s.value]
    return sequences.executions()[1:]


def test_the_oldest_run_together(sequences):
    """4.12: never two requests of one sequence"""
    sequences.start(oldest(5), max_batch=2)
    executions = run(sequences, (1, 2, 3, 4), 3)
    assert sorted(len(e["rows"]) for e in executions) == [2] * 6
    assert ids(executions[0]) == [1, 2]
    assert ids(executions[1]) == [3, 4]
    for e in executions:
        assert len(set(ids(e))) == len(e["rows"])
        assert None not in ids(e)           # nothing is filled
    for id in (1, 2, 3, 4):
        assert values(executions, id) == [[10 * id + i] for i in range(3)]


def test_candidates_are_limited(sequences):
    """4.13"""
    sequences.start(oldest(), max_batch=4)
    plug = sequences.hold()
    sent = [s for id in range(1, 6)
            for s in sequences.queue_all(id, [1, 2, 3])]
    sequences.release()
    plug.told()
    for s in sent:
        s.told()
    sizes = sequences.batches()
    sizes[1] -= 1
    assert sizes == {4: 3, 1: 3}
    assert [ids(e) for e in sequences.executions()[4:]] == [[5]] * 3


def test_more_candidates_than_rows(sequences):
    """Six take turns in batches of four."""
    sequences.start(oldest(9), max_batch=4)
    executions = run(sequences, range(1, 7), 4)
    assert sum(len(e["rows"]) for e in executions) == 24
    assert max(len(e["rows"]) for e in executions) == 4
    for id in range(1, 7):
        assert values(executions, id) == [[10 * id + i] for i in range(4)]
    for e in executions:
        assert len(set(ids(e))) == len(e["rows"])


def test_a_preferred_size(sequences):
    """Two leave at once, a third waits for company that never comes until
    the delay is over."""
    sequences.start(oldest(4, "preferred_batch_size: [ 2 ]"
                              " max_queue_delay_microseconds: 600000000"),
                    max_batch=4)
    first = sequences.queue(1, 1, start=True)
    second = sequences.send(2, 2, start=True)
    assert (first.data(), second.data()) == ([1], [2])
    first = sequences.queue(1, 3)
    third = sequences.send(3, 4, start=True)
    assert (first.data(), third.data()) == ([3], [4])
    assert sequences.batches() == {2: 2}


def test_the_delay_ends(sequences):
    sequences.start(oldest(4, "max_queue_delay_microseconds: 200000"))
    assert sequences.ask(1, 5, start=True, end=True).data() == [5]
    assert sequences.batches() == {1: 1}


@pytest.mark.parametrize("keeps", [True, False])
def test_order_is_kept(sequences, keeps):
    """3.15: the second execution ends first, on another instance"""
    sequences.start(oldest(2, "preserve_ordering: true" if keeps else ""),
                    max_batch=1, instances=2)
    sequences.gates["m"].close(0)
    first = sequences.send(1, 1, start=True)
    sequences.gates["m"].wait_entered(0)
    second = sequences.send(2, 2, start=True)
    sequences.gates["m"].wait_entered(1)
    answered = select.select([second.connection.socket], [], [],
                             0.3 if keeps else 20 * SLOW)[0]
    assert bool(answered) != keeps
    sequences.gates["m"].open(0)
    assert (first.data(), second.data()) == ([1], [2])
    assert len(places(sequences.executions())) == 2


def test_order_is_kept_within_an_instance(sequences):
    sequences.start(oldest(5, "preserve_ordering: true"), max_batch=2)
    executions = run(sequences, (1, 2, 3), 3)
    assert sum(len(e["rows"]) for e in executions) == 9


def test_one_candidate_is_one_after_the_other(sequences):
    sequences.start(oldest(2), max_batch=4)
    executions = run(sequences, (1, 2), 3)
    assert [ids(e) for e in executions] == [[1]] * 3 + [[2]] * 3
