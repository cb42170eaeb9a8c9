"""How sequences end that nobody ends: idle ones, clients that go, timeouts, a
core that is killed, models that go or change.  Numbers are those of the
scheduling reference, of section 4 unless told."""

import os
import signal

import pytest

from lib import models, process
from lib.sequences import ALL, LONG, ids, places, state, values
from lib.server import CORE, SLOW, nap

HELPER_KILLED = r"process \d+ exited on signal 9"
EXPLICIT = "    inference_model_control explicit;\n" \
    "    inference_load_model *;\n"


def idle(ms):
    return f"max_sequence_idle_microseconds: {ms * 1000}\n"


def check_is_gone(sequences, id, **kw):
    status, text = sequences.ask(id, **kw).rejected()
    assert status == 400
    assert f"inference request for sequence {id} to model 'm' must specify" \
        " the START flag on the first request of the sequence" in text


# ---- time

def test_an_idle_sequence_leaves_its_slot(sequences):
    """4.10"""
    sequences.start(idle(400 * SLOW) + ALL + state(), max_batch=1,
                    does="sum")
    assert sequences.ask(1, 1, start=True).data() == [1]
    other = sequences.queue(2, 5, start=True)
    assert other.data() == [5]              # as soon as the slot is free
    check_is_gone(sequences, 1)
    third = sequences.queue(3, 6, start=True)
    assert third.data() == [6]
    check_is_gone(sequences, 2, end=True)
    assert sequences.ask(3, 7, end=True).data() == [13]


def test_who_runs_or_waits_is_not_idle(sequences):
    """10: an execution may take longer than the limit, and so may a wait"""
    sequences.start(idle(200) + ALL, max_batch=1)
    plug = sequences.hold()
    first = sequences.queue(1, 1, start=True)
    second = sequences.queue(1, 2)
    waits = sequences.queue(2, 5, start=True)
    nap(1)
    sequences.gates["m"].close(1)
    sequences.release()
    plug.told()
    sequences.gates["m"].wait_entered(1)
    nap(0.6)
    sequences.gates["m"].open(1)
    assert (first.data(), second.data()) == ([1], [2])
    assert waits.data() == [5]              # 1 was silent for the limit
    check_is_gone(sequences, 1)


def test_a_timeout_in_the_backlog(sequences):
    """4.11: the whole sequence goes; what has a slot ignores it"""
    sequences.start(LONG + ALL, max_batch=1)
    sequences.gates["m"].close()
    timeout = {"timeout": 300000}
    first = sequences.send(1, 1, start=True, parameters=timeout)
    sequences.gates["m"].wait_entered()
    more = sequences.queue(1, 2, parameters=timeout)
    late = [sequences.queue(2, 5, start=True),
            sequences.queue(2, 6, parameters=timeout)]
    for sent in late:
        status, text = sent.rejected()
        assert status == 503
        assert text.endswith(
            "timeout of the corresponding sequence has been expired")
    check_is_gone(sequences, 2, parameters=timeout)
    assert sequences.metric("nv_inference_request_failure",
                            reason="REJECTED") == 2
    assert sequences.queued() == 1
    sequences.gates["m"].open()
    assert (first.data(), more.data()) == ([1], [2])
    assert sequences.ask(1, 3, end=True).data() == [3]
    assert sequences.ask(2, 7, start=True).data() == [7]


def test_precise_statuses(sequences):
    """A timeout in the backlog and a request whose sequence was cancelled."""
    sequences.start(LONG + ALL, max_batch=1, workers=4,
                    server="inference_errors precise;\n")
    assert sequences.ask(1, 1, start=True).data() == [1]
    late = sequences.queue(2, 1, start=True, parameters={"timeout": 100000})
    status, text = late.rejected()
    assert status == 504
    assert text.endswith("sequence has been expired")
    gone = sequences.queue(3, 1, start=True)
    behind = sequences.queue(3, 2)
    gone.leave()
    assert behind.answer().status == 499


# ---- clients that go

def test_a_client_in_the_backlog_goes(sequences):
    """4.16 and 8.12: at once, and the sequence with it"""
    sequences.start(LONG + ALL, max_batch=1)
    assert sequences.ask(1, 1, start=True).data() == [1]
    gone = sequences.queue(2, 5, start=True)
    behind = sequences.queue(2, 6)
    third = sequences.queue(3, 7, start=True)
    gone.leave()
    assert behind.answer().status == 400
    sequences.wait_queued(1)
    assert sequences.metric("nv_inference_request_failure",
                            reason="CANCELED") == 2
    check_is_gone(sequences, 2)
    assert sequences.ask(1, 2, end=True).data() == [2]
    assert third.data() == [7]
    assert [id for e in sequences.executions() for id in ids(e)] == [1, 1, 3]


def test_a_client_behind_a_running_request_goes(sequences):
    """4.16: what runs goes on, what is behind it ends with the sequence"""
    sequences.start(LONG + ALL, max_batch=1)
    sequences.gates["m"].close()
    first = sequences.send(1, 1, start=True)
    sequences.gates["m"].wait_entered()
    gone, behind = [sequences.queue(1, n) for n in (2, 3)]
    waits = sequences.queue(2, 5, start=True)
    gone.leave()
    assert behind.answer().status == 400
    assert behind.answer().json() == {"error": ""}      # without words
    check_is_gone(sequences, 1)
    sequences.gates["m"].open()
    assert first.data() == [1]
    assert waits.data() == [5]              # the slot is free
    assert sequences.metric("nv_inference_request_failure",
                            reason="CANCELED") == 2
    assert [id for e in sequences.executions() for id in ids(e)] == [1, 2]


def test_the_last_of_a_queue_goes(sequences):
    """Requests before it run, the sequence is over all the same."""
    sequences.start(LONG + ALL, max_batch=1)
    sequences.gates["m"].close()
    first = sequences.send(1, 1, start=True)
    sequences.gates["m"].wait_entered()
    before, gone = [sequences.queue(1, n) for n in (2, 3)]
    gone.leave()
    sequences.wait_queued(1)
    sequences.gates["m"].open()
    assert (first.data(), before.data()) == ([1], [2])
    check_is_gone(sequences, 1)


def test_a_client_whose_request_runs_goes(sequences):
    """8.2: nobody told the sequence anything"""
    sequences.start(LONG + ALL + state(), max_batch=1, does="sum")
    sequences.gates["m"].close()
    gone = sequences.send(1, 1, start=True)
    sequences.gates["m"].wait_entered()
    gone.leave()
    second = sequences.queue(1, 2)
    sequences.gates["m"].open()
    assert second.data() == [3]
    assert sequences.ask(1, 3, end=True).data() == [6]


def test_states_do_not_mix_after_a_cancel(sequences):
    """8.5"""
    sequences.start(LONG + ALL + state(), max_batch=2, does="sum")
    plug = sequences.hold()
    sent = [sequences.queue(id, 100, start=n == 0)
            for id in (1, 2) for n in range(3)]
    for s in sent:
        s.leave()
    sequences.wait_queued(0)
    sequences.release()
    plug.told()
    for id in (1, 2):
        check_is_gone(sequences, id)
    for step in (1, 2, 3):
        for id in (1, 3):
            assert sequences.ask(id, id, start=step == 1,
                                 end=step == 3).data() == [id * step]


# ---- a core that is killed

def test_a_killed_core_loses_its_sequences(sequences):
    """A waiting client gets the error; nothing is sent again by itself."""
    server = sequences.start(LONG + ALL + state(), max_batch=1, does="sum",
                             workers=2, allow_alarms=[HELPER_KILLED])
    assert sequences.ask(1, 1, start=True).data() == [1]
    sequences.gates["m"].close(1)
    runs = sequences.send(1, 2)
    sequences.gates["m"].wait_entered(1)
    waiting = [sequences.queue(1, 3), sequences.queue(2, 1, start=True),
               sequences.queue(3, 1, start=True)]
    server.end_core()
    sequences.open_all()
    for sent in (runs, *waiting):
        status, text = sent.rejected()
        assert status == 503
        assert "sequence lost, start again" in text
        assert "retry-after" not in sent.answer().headers
    assert server.wait_for("/v2/models/m/ready")
    assert [ids(e) for e in sequences.executions()] == [[1], [1]]
    check_is_gone(sequences, 1)
    assert sequences.ask(1, 4, start=True).data() == [4]
    assert sequences.ask(1, 5, end=True).data() == [9]


def test_a_reload_of_nginx_ends_no_sequence(sequences):
    """Other workers, the same core."""
    server = sequences.start(LONG + ALL + state(), max_batch=2, does="sum",
                             workers=2)
    assert sequences.ask(1, 1, start=True).data() == [1]
    server.reload()
    assert sequences.ask(1, 10).data() == [11]
    sequences.gates["m"].close(2)
    runs = sequences.send(1, 100)
    sequences.gates["m"].wait_entered(2)
    waits = sequences.queue(1, 1000)
    server.signal("HUP")
    nap(0.2)
    sequences.gates["m"].open(2)
    assert (runs.data(), waits.data()) == ([111], [1111])
    assert sequences.ask(1, 10000, end=True).data() == [11111]


def test_a_killed_worker_ends_what_waits_of_its_clients(sequences):
    """A sequence that has nothing under way goes on through another one."""
    server = sequences.start(
        LONG + ALL + state(), max_batch=2, does="sum", workers=1,
        allow_alarms=[r"worker process \d+ exited on signal 9"])
    for id in (1, 2):
        assert sequences.ask(id, 1, start=True).data() == [1]
    sequences.gates["m"].close(2)
    sent = [sequences.send(2, 10)]
    sequences.gates["m"].wait_entered(2)
    sent.append(sequences.queue(2, 100))
    (worker,) = server.workers()
    os.kill(worker, signal.SIGKILL)
    assert server.wait_for("/v2/models/m/ready")
    sequences.wait_queued(0)
    sequences.gates["m"].open(2)
    assert sequences.ask(1, 5, end=True).data() == [6]
    check_is_gone(sequences, 2)
    for s in sent:
        s.leave()


def test_other_requests_are_told_something_else(sequences):
    """An id that belongs to no sequence is no reason to start again."""
    sequences.model(LONG)
    text = sequences.wanted.pop("m")
    sequences.wanted["plain"] = text[:text.index(
        "sequence_batching")].replace('"m"', '"plain"')
    sequences.gates["plain"] = sequences.gates.pop("m")
    server = sequences.start(allow_alarms=[HELPER_KILLED],
                             http="    inference_tries 1;\n")
    sequences.gates["plain"].close()
    sent = sequences.send(7, 1, model="plain")
    sequences.gates["plain"].wait_entered()
    server.end_core()
    sequences.open_all()
    status, text = sent.rejected()
    assert status == 503
    assert "sequence" not in text


def test_an_ensemble_s_sequence_is_lost_too(sequences):
    server = sequences.start(LONG + ALL, ensemble, max_batch=1,
                             allow_alarms=[HELPER_KILLED])
    sequences.gates["m"].close()
    sent = sequences.send(7, 1, start=True, model="whole", shape=[1, 1])
    sequences.gates["m"].wait_entered()
    server.end_core()
    sequences.open_all()
    status, text = sent.rejected()
    assert status == 503
    assert "sequence lost, start again" in text


def ensemble(repository):
    models.write_model(
        repository, "whole", 'platform: "ensemble" max_batch_size: 1\n'
        'input { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] }\n'
        'output { name: "OUT" data_type: TYPE_INT32 dims: [ -1 ] }\n'
        'ensemble_scheduling { step { model_name: "m" model_version: -1'
        ' input_map { key: "IN" value: "IN" }'
        ' output_map { key: "OUT" value: "OUT" } } }\n')


# ---- models that go or change

def load(sequences, model="m"):
    return sequences.server.post(f"/v2/repository/models/{model}/load", b"")


def unload(sequences, model="m"):
    return sequences.server.post(f"/v2/repository/models/{model}/unload",
                                 b"")


def config_file(sequences, model="m"):
    return sequences.server.models / model / "config.pbtxt"


def test_an_unload_finishes_what_waits(sequences):
    """9.5: a live sequence, that nobody can go on with, makes room for those
    that wait"""
    server = sequences.start(LONG + ALL, max_batch=1, http=EXPLICIT)
    plug = sequences.hold()
    sent = sequences.queue_all(1, [1, 2], ends=False)
    backlog = sequences.queue_all(2, [5, 6])
    assert unload(sequences).status == 200
    assert server.status("/v2/models/m/ready") != 200
    assert sequences.ask(1, 3).answer().status in (400, 404, 503)
    sequences.release()
    plug.told()
    assert [s.data() for s in sent + backlog] == [[1], [2], [5], [6]]
    assert server.wait_log(r"model=m version=1 is unloaded")


@pytest.mark.parametrize("batching", [
    "direct { minimum_slot_utilization: 1.0"
    " max_queue_delay_microseconds: 600000000 }",
    "oldest { max_candidate_sequences: 4 preferred_batch_size: [ 4 ]"
    " max_queue_delay_microseconds: 600000000 }"])
def test_an_unload_waits_for_no_company(sequences, batching):
    server = sequences.start(LONG + ALL + batching, http=EXPLICIT)
    sent = [sequences.queue(1, 1, start=True), sequences.queue(1, 2),
            sequences.queue(2, 5, start=True)]
    assert unload(sequences).status == 200
    assert [s.data() for s in sent] == [[1], [2], [5]]
    assert server.wait_log(r"model=m version=1 is unloaded")


def test_who_waits_at_an_ensemble_s_model_takes_no_slot(sequences):
    """The ensemble can't be made of the new one, so clients come to the old
    one still: a silent sequence keeps its slot."""
    sequences.start(LONG + ALL + state(), ensemble, max_batch=1, does="sum",
                    http=EXPLICIT)

    def ask(id, value, **kw):
        return sequences.send(id, value, model="whole", shape=[1, 1], **kw)

    assert ask(1, 1, start=True).data() == [1]
    sequences.gates["m"].close(1)
    runs = ask(1, 10)
    sequences.gates["m"].wait_entered(1)
    config_file(sequences).write_text(
        sequences.wanted["m"].replace('"OUT"', '"OTHER"'))
    load(sequences)
    waits = ask(2, 5, start=True)
    sequences.gates["m"].open(1)
    assert runs.data() == [11]
    nap(0.2)
    assert ask(1, 100, end=True).data() == [111]
    assert waits.data() == [5]


def test_an_unload_waits_for_no_silent_sequence(sequences):
    server = sequences.start(LONG + ALL + state(), does="sum", http=EXPLICIT)
    assert sequences.ask(1, 1, start=True).data() == [1]
    assert unload(sequences).status == 200
    assert server.wait_log(r"model=m version=1 is unloaded")
    assert load(sequences).status == 200
    check_is_gone(sequences, 1)
    assert sequences.ask(1, 2, start=True).data() == [2]


def test_a_model_with_sequences_that_is_lost_to_a_crash(sequences):
    """Loaded by request, it is there again, without them."""
    server = sequences.start(
        LONG + ALL, http="    inference_model_control explicit;\n",
        allow_alarms=[HELPER_KILLED])
    assert load(sequences).status == 200
    assert sequences.ask(1, 1, start=True).data() == [1]
    server.end_core()
    assert server.wait_for("/v2/models/m/ready")
    check_is_gone(sequences, 1)
    assert sequences.ask(1, 2, start=True, end=True).data() == [2]


def test_a_reload_begins_anew(sequences):
    """9: the old model ends what it has, the new one knows no sequences"""
    sequences.start(LONG + ALL + state(), does="sum", http=EXPLICIT,
                    max_batch=1)
    assert sequences.ask(1, 1, start=True).data() == [1]
    sequences.gates["m"].close(1)
    runs = sequences.send(1, 2)
    sequences.gates["m"].wait_entered(1)
    waits = sequences.queue(1, 3)
    config_file(sequences).write_text(sequences.wanted["m"]
                                      + "metric_tags { key: 'a' value: 'b' }")
    assert load(sequences).status == 200
    check_is_gone(sequences, 1)
    assert sequences.ask(1, 50, start=True).data() == [50]
    sequences.gates["m"].open(1)
    assert (runs.data(), waits.data()) == ([3], [6])
    assert sequences.ask(1, 1, end=True).data() == [51]


def counted_instances(sequences):
    return {r["instance"] for r in sequences.executions()}


def test_instances_are_added(sequences):
    """A sequence that waited for a slot gets one of the new instance."""
    sequences.start(LONG + ALL + state(), does="sum", max_batch=1,
                    http=EXPLICIT)
    assert sequences.ask(1, 1, start=True).data() == [1]
    waits = sequences.queue(2, 10, start=True)
    sequences.scale(2)
    assert waits.data() == [10]
    assert sequences.ask(1, 2).data() == [3]        # the model stayed
    assert sequences.ask(2, 20).data() == [30]
    third = sequences.queue(3, 5, start=True)
    assert sequences.ask(1, 3, end=True).data() == [6]
    assert third.data() == [5]
    assert len(counted_instances(sequences)) == 2


def test_an_instance_that_goes_keeps_its_sequences(sequences):
    """9.7"""
    server = sequences.start(LONG + ALL + state(), does="sum", max_batch=1,
                             instances=3, http=EXPLICIT)
    for id in (1, 2, 3):
        assert sequences.ask(id, id, start=True).data() == [id]
    sequences.scale(1)
    waits = sequences.queue(4, 4, start=True)
    for id in (1, 2, 3):
        assert sequences.ask(id, 10).data() == [id + 10]
    assert sequences.queued() == 1
    last, *gone = sorted(
        (1, 2, 3), key=lambda id: next(iter(places(
            sequences.executions())[id]))[0])
    for id in gone:                 # theirs take nothing new
        assert sequences.ask(id, 100, end=True).data() == [id + 110]
    nap(0.2)
    assert sequences.queued() == 1
    assert sequences.ask(last, 100, end=True).data() == [last + 110]
    assert waits.data() == [4]
    found = places(sequences.executions())
    assert all(len(p) == 1 for p in found.values())
    assert found[4] == found[last]
    assert server.status("/v2/models/m/ready") == 200


def test_an_instance_with_a_sequence_that_is_silent(sequences):
    """It goes when the sequence was idle for long enough."""
    sequences.start(idle(500 * SLOW) + ALL, max_batch=1, instances=2,
                    http=EXPLICIT)
    for id in (1, 2):
        assert sequences.ask(id, id, start=True).data() == [id]
    sequences.scale(1)
    assert sequences.ask(3, 1, start=True).data() == [1]
    sequences.scale(2)
    assert sequences.ask(4, 1, start=True).data() == [1]


@pytest.mark.parametrize("batching", ["", "oldest {"
                                          " max_candidate_sequences: 2 }"])
def test_nginx_ends(sequences, batching):
    """Requests already sent are answered; a live sequence without a client
    delays nothing."""
    server = sequences.start(LONG + ALL + batching, max_batch=2)
    assert sequences.ask(5, 1, start=True).data() == [1]
    sequences.gates["m"].close(1)
    sent = [sequences.send(6, 1, start=True)]
    sequences.gates["m"].wait_entered(1)
    sent += [sequences.queue(6, 2), sequences.queue(6, 3, end=True)]
    server.signal("QUIT")
    nap(0.3)
    sequences.gates["m"].open(1)
    assert [s.data() for s in sent] == [[1], [2], [3]]
    server.stop(seconds=25)


def drain(server, time):
    """The configuration with another drain time."""
    text = server.conf.read_text(encoding="utf-8")
    core = f"inference_core {CORE}"
    assert core in text
    server.conf.write_text(text.replace(core, f"{core} drain={time}"),
                           encoding="utf-8")
    server.signal("HUP")
    assert server.wait_log("configuration generation 2 is in force",
                           20 * SLOW)


@pytest.mark.parametrize("batching", ["", "oldest {"
                                          " max_candidate_sequences: 1 }"])
def test_nginx_ends_with_a_backlog_behind_a_silent_sequence(sequences,
                                                            batching):
    """Nobody can go on with that one.  Of those that wait none ends either,
    so each gives its slot to the next."""
    server = sequences.start(LONG + ALL + batching, max_batch=1, workers=2)
    drain(server, "4s")
    assert sequences.ask(5, 1, start=True).data() == [1]
    waits = [sequences.queue(id, id, start=True) for id in (6, 7, 8)]
    nap(0.3)
    assert sequences.queued() == 3          # while clients may come
    server.signal("QUIT")
    assert [s.data() for s in waits] == [[6], [7], [8]]
    server.stop(seconds=60 * SLOW)          # not 600 s


def test_a_reload_ends_no_silent_sequence(sequences):
    """Old workers leave, new ones are there: its client may come back."""
    server = sequences.start(LONG + ALL, max_batch=1)
    drain(server, "100ms")
    assert sequences.ask(5, 1, start=True).data() == [1]
    waits = sequences.queue(6, 6, start=True)
    old = server.workers()
    server.signal("HUP")                    # the old one waits for its client
    assert process.wait_until(
        lambda: set(server.workers()) - set(old), 20 * SLOW)
    nap(2.5)
    assert sequences.queued() == 1
    assert sequences.ask(5, 2, end=True).data() == [2]
    assert waits.data() == [6]


def test_workers_share_sequences(sequences):
    """The requests of one come through any of them."""
    sequences.start(LONG + ALL + state(), does="sum", max_batch=4, workers=4,
                    instances=2)
    plan = {id: [id * n for n in range(1, 9)] for id in range(1, 9)}
    for step in range(8):
        sent = [(id, sequences.send(id, given[step], start=step == 0,
                                    end=step == 7))
                for id, given in plan.items()]
        for id, s in sent:
            assert s.data() == [sum(plan[id][:step + 1])]
    found = sequences.executions()
    for id, given in plan.items():
        assert values(found, id) == [[v] for v in given]
