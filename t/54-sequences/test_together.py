"""Sequence models beside everything else: ensembles, rate limits, warm-up,
statistics, the log's variables."""

import json

from lib import models, process
from lib.access_log import FORMAT, WRITTEN, AccessLog
from lib.sequences import (ALL, LONG, END, READY, START, controls, corrid,
                           ids, places, state, values)
from lib.server import SLOW, nap
from lib.wire import infer_path


def ensemble(repository):
    models.identity(repository, "pass", [("IN", "INT32", [1])], max_batch=8)
    models.write_model(
        repository, "whole", 'platform: "ensemble" max_batch_size: 1\n'
        'input { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] }\n'
        'output { name: "OUT" data_type: TYPE_INT32 dims: [ -1 ] }\n'
        'ensemble_scheduling {\n'
        '  step { model_name: "pass" model_version: -1'
        ' input_map { key: "IN" value: "IN" }'
        ' output_map { key: "OUT" value: "between" } }\n'
        '  step { model_name: "m" model_version: -1'
        ' input_map { key: "IN" value: "between" }'
        ' output_map { key: "OUT" value: "OUT" } } }\n')


def test_an_ensemble_with_a_sequence_step(sequences):
    """4.19 and 6.6: id and flags arrive, and come back"""
    sequences.start(LONG + ALL + state(), ensemble, does="sum", max_batch=4)
    sequences.wanted["whole"] = "max_batch_size: 1"
    total = 0
    for i, value in enumerate((1, 2, 3)):
        total += value
        sent = sequences.ask(7, value, start=i == 0, end=i == 2,
                             model="whole")
        assert sent.data() == [total]
        told = sent.answer().json()["parameters"]
        assert (told["sequence_id"], told["sequence_start"],
                told["sequence_end"]) == (7, i == 0, i == 2)
    assert [ids(e) for e in sequences.executions()] == [[7]] * 3
    assert [r["flags"] for e in sequences.executions()
            for r in e["rows"]] == [1, 0, 2]
    status, text = sequences.ask(7, 4, model="whole").rejected()
    assert status == 400
    assert "to model 'm' must specify the START flag" in text
    assert sequences.ask("seven", 4, start=True, model="whole").answer() \
        .status == 400                      # the step's control is a number


def test_a_text_through_an_ensemble(sequences):
    sequences.start(LONG + controls(START, END, READY, corrid("STRING")),
                    ensemble, max_batch=4)
    sequences.wanted["whole"] = "max_batch_size: 1"
    for i in range(3):
        assert sequences.ask("seven", i, start=i == 0, end=i == 2,
                             model="whole").data() == [i]
    assert values(sequences.executions(), "seven") == [[0], [1], [2]]


def test_sequences_under_a_rate_limit(sequences):
    """Two models that may not run at once; a sequence waits its turn and
    keeps its slot."""
    one = 'rate_limiter { resources [ { name: "R" count: 1 } ] }'
    for name in ("m", "n"):
        sequences.model(LONG + ALL + state(), name, does="sum", instances=2)
        sequences.wanted[name] = sequences.wanted[name].replace(
            "kind: KIND_CPU", f"kind: KIND_CPU {one}")
    sequences.start(http="    inference_rate_limit execution_count;\n")
    sequences.gates["n"].close()
    holds = sequences.send(1, 1, start=True, model="n")
    sequences.gates["n"].wait_entered()
    waits = [sequences.queue(id, id, start=True) for id in (1, 2, 3)]
    nap(0.1)
    assert sequences.executions() == []
    sequences.release("n")
    assert holds.data() == [1]
    assert [s.data() for s in waits] == [[1], [2], [3]]
    for n in range(5):
        sent = [(id, sequences.send(id, 10, model=model))
                for model, id in (("m", 1), ("n", 1), ("m", 2), ("m", 3))]
        for id, s in sent:
            assert s.data() == [id + 10 * (n + 1)]


def test_instances_of_different_priority(sequences):
    """5.12: all of a sequence runs on one of them"""
    sequences.model(LONG + ALL + state(), does="sum", max_batch=1)
    sequences.wanted["m"] = sequences.wanted["m"].replace(
        "{ count: 1 kind: KIND_CPU }", ", ".join(
            "{ kind: KIND_CPU rate_limiter { priority: %d"
            ' resources [ { name: "R" count: 1 } ] } }' % n
            for n in (1, 2, 3)))
    sequences.start(http="    inference_rate_limit execution_count;\n")
    for step in range(1, 10):
        sent = [sequences.send(id, step, start=step == 1, end=step == 9)
                for id in (1, 2, 3)]
        assert [s.data() for s in sent] == [[step * (step + 1) // 2]] * 3
    found = places(sequences.executions())
    assert all(len(p) == 1 for p in found.values()), found
    assert len({instance for p in found.values()
                for instance, _ in p}) == 3


def test_a_cancelled_sequence_under_a_rate_limit(sequences):
    """8.11: it takes no resources"""
    one = 'rate_limiter { resources [ { name: "R" count: 1 } ] }'
    for name in ("m", "n"):
        sequences.model(LONG + ALL, name)
        sequences.wanted[name] = sequences.wanted[name].replace(
            "kind: KIND_CPU", f"kind: KIND_CPU {one}")
    sequences.start(http="    inference_rate_limit execution_count;\n")
    sequences.gates["n"].close()
    holds = sequences.send(1, 1, start=True, model="n")
    sequences.gates["n"].wait_entered()
    gone = sequences.queue(1, 1, start=True)
    gone.leave()
    sequences.wait_queued(0)
    sequences.release("n")
    assert holds.data() == [1]
    assert sequences.ask(2, 2, start=True).data() == [2]
    assert [ids(e) for e in sequences.executions()] in ([[2]], [[None, 2]])


def test_warm_up_has_controls(sequences):
    """Its inputs are the configuration's, controls among them, and it is no
    sequence."""
    def entry(name, kind, dims="1"):
        return (f'inputs {{ key: "{name}" value {{ data_type: {kind}'
                f' dims: [ {dims} ] zero_data: true }} }}')

    sequences.start(
        LONG + ALL, extra='model_warmup [ { name: "w" batch_size: 2 '
        + entry("IN", "TYPE_INT32") + entry("START", "TYPE_INT32")
        + entry("END", "TYPE_INT32") + entry("READY", "TYPE_INT32")
        + entry("CORRID", "TYPE_UINT64") + " } ]\n")
    warm, *rest = sequences.executions()
    assert rest == []
    for row in warm["rows"]:
        assert {"IN", "START", "END", "READY", "CORRID"} <= set(row["inputs"])
    assert sequences.ask(1, 5, start=True).data() == [5]


def test_statistics_leave_out_what_fills(sequences):
    """1.5: batch sizes count it, inferences don't"""
    sequences.start(LONG + ALL, max_batch=2)
    assert sequences.ask(1, 1, start=True).data() == [1]
    assert sequences.ask(2, 2, start=True).data() == [2]
    assert sequences.ask(2, 3, end=True).data() == [3]
    assert [ids(e) for e in sequences.executions()] == [
        [1], [None, 2], [None, 2]]
    assert sequences.batches() == {1: 1, 2: 2}
    found = sequences.statistics()
    assert int(found["inference_count"]) == 3
    assert int(found["execution_count"]) == 3
    assert int(found["inference_stats"]["success"]["count"]) == 3
    assert int(found["inference_stats"]["queue"]["count"]) == 3
    assert sequences.metric("nv_inference_count") == 3
    assert sequences.metric("nv_inference_exec_count") == 3
    assert sequences.metric("nv_inference_request_success") == 3
    assert sequences.metric("nv_inference_pending_request_count") == 0
    for reason in ("REJECTED", "CANCELED", "BACKEND", "OTHER"):
        assert sequences.metric("nv_inference_request_failure",
                                reason=reason) == 0


def test_failed_executions(sequences):
    """Each request has its own error.  The backend reports success: that
    counts, an answer with an error alone is no failure."""
    sequences.start(LONG + ALL + state().replace("STATE_OUT", "OTHER"),
                    does="sum", max_batch=2)
    for id in (1, 2):
        status, _ = sequences.ask(id, 1, start=True).rejected()
        assert status == 400
    assert sequences.ask(2, 1).answer().status == 400   # it lives on
    for reason in ("BACKEND", "REJECTED", "CANCELED", "OTHER"):
        assert sequences.metric("nv_inference_request_failure",
                                reason=reason) == 0, reason
    assert sequences.metric("nv_inference_request_success") == 3


def test_the_log_knows_the_sequence(sequences):
    server = sequences.start(LONG + controls(START), http=FORMAT,
                             server=WRITTEN)
    log = AccessLog(server)
    sequences.ask(7, 1, start=True, request="a")
    sequences.ask("call-7", 1, start=True, request="b")
    sequences.ask(8, 1, request="c")
    sequences.ask(2**64 - 1, 1, start=True, request="d")
    sequences.ask(None, 1, request="e")
    found = {x["id"]: x for x in log.lines(5, uri=infer_path("m"))}
    assert {k: x["sequence"] for k, x in found.items()} == {
        "a": "7", "b": "call-7", "c": "8", "d": str(2**64 - 1), "e": ""}
    assert found["a"]["code"] == "OK"
    assert found["c"]["code"] == "Invalid argument"
    assert found["a"]["batch"] == "1"
    assert found["b"]["batch"] == "2"           # what fills is part of it


def test_no_cache_for_sequences(sequences):
    """7.10: what an answer is depends on those before it"""
    server = sequences.start(
        LONG + ALL, extra="response_cache { enable: true }\n", wait="live",
        http="    inference_response_cache local size=1m;\n")

    def reason():
        (row,) = server.post("/v2/repository/index", b"").json()
        return row.get("state") == "UNAVAILABLE" and row["reason"]

    text = process.wait_until(reason, 20 * SLOW)
    assert text and "support model m with sequence batching" in text, text


def test_a_sequence_of_a_cached_ensemble(sequences):
    """It is not cached: its steps have states, and its responses name it."""
    def cached(repository):
        ensemble(repository)
        with open(repository / "whole" / "config.pbtxt", "a") as file:
            file.write("response_cache { enable: true }\n")

    sequences.start(LONG + ALL + state(), cached, does="sum",
                    http="    inference_response_cache local size=1m;\n")
    sequences.wanted["whole"] = "max_batch_size: 1"
    for id in (7, 8):
        assert [sequences.ask(id, 1, start=i == 0, end=i == 2,
                              model="whole").data()
                for i in range(3)] == [[1], [2], [3]]
    told = sequences.ask(9, 1, start=True, model="whole").told()
    assert (told["sequence_id"], told["sequence_start"]) == (9, True)


def test_the_configuration_says_what_holds(sequences):
    """Defaults are filled in."""
    server = sequences.start(ALL + "oldest { max_candidate_sequences: 9"
                             " max_queue_delay_microseconds: 10 }")
    found = json.loads(server.get("/v2/models/m/config").body)
    batching = found["sequence_batching"]
    assert int(batching["max_sequence_idle_microseconds"]) == 1000000
    assert batching["oldest"]["max_candidate_sequences"] == 9
    assert batching["oldest"]["preferred_batch_size"] == [4]
    assert [c["name"] for c in batching["control_input"]] == [
        "START", "END", "READY", "CORRID"]
    metadata = server.get("/v2").json()
    assert "sequence" in metadata["extensions"]
