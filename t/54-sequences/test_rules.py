"""Rules for a request of a sequence, and their errors.  Numbers are those of
the scheduling reference's section 4."""

import json

import numpy
import pytest
import tritonclient.http as client
from tritonclient.utils import InferenceServerException

from lib.sequences import (ALL, END, LONG, READY, START, controls, corrid,
                           ids, state)
from lib.wire import tensor

WITH_TEXT = controls(START, END, READY, corrid("STRING"))


def text_of(sent, status=400):
    found, text = sent.rejected()
    assert found == status
    return text


def test_a_request_names_its_sequence(sequences):
    """4.7"""
    sequences.start(LONG + ALL)
    for id in (None, 0, ""):
        for start in (False, True):
            assert text_of(sequences.ask(id, start=start)).endswith(
                "must specify a non-zero or non-empty correlation ID")
    assert sequences.executions() == []


def test_the_first_request_starts_it(sequences):
    """4.7"""
    sequences.start(LONG + ALL)
    missing = "inference request for sequence {} to model 'm' must specify" \
        " the START flag on the first request of the sequence"
    assert missing.format(7) in text_of(sequences.ask(7))
    assert missing.format(7) in text_of(sequences.ask(7, end=True))
    assert sequences.ask(7, 1, start=True).data() == [1]
    assert sequences.ask(7, 2).data() == [2]
    assert sequences.ask(7, 3, end=True).data() == [3]
    assert missing.format(7) in text_of(sequences.ask(7))
    assert sequences.ask(7, 4, start=True, end=True).data() == [4]
    assert missing.format(7) in text_of(sequences.ask(7, end=True))
    assert [ids(e) for e in sequences.executions()] == [[7]] * 4


def test_a_request_is_one_row(sequences):
    """4.7"""
    sequences.start(LONG + ALL)
    assert "must specify batch-size 1" in text_of(
        sequences.ask(7, [1, 2], start=True, shape=[2, 1]))
    assert "START flag" in text_of(sequences.ask(7, 1))


def test_a_rejected_request_is_no_failure(sequences):
    """1.1: it was never taken"""
    sequences.start(LONG + ALL)
    sequences.ask(7)
    assert int(sequences.statistics()["inference_stats"]["fail"].get(
        "count", 0)) == 0
    for reason in ("REJECTED", "CANCELED", "BACKEND", "OTHER"):
        assert sequences.metric("nv_inference_request_failure",
                                reason=reason) == 0


def test_an_id_is_a_number_or_a_text(sequences):
    """1.12: 5 and "5" are two sequences"""
    sequences.start(LONG + controls(START, END, READY) + state(), does="sum")
    assert sequences.ask(5, 1, start=True).data() == [1]
    assert sequences.ask("5", 10, start=True).data() == [10]
    assert sequences.ask(5, 2).data() == [3]
    assert sequences.ask("5", 20).data() == [30]
    assert "for sequence 6 " in text_of(sequences.ask("6"))
    assert sequences.ask(5, 3, end=True).data() == [6]
    assert sequences.ask("5", 30, end=True).data() == [60]
    rows = [e["rows"] for e in sequences.executions()]
    assert [(r["number"], r["text"]) for row in rows for r in row
            if r["inputs"]["READY"]["data"] == [1]] == [
        (5, None), (None, "5"), (5, None), (None, "5"), (5, None),
        (None, "5")]


def test_large_numbers_are_ids(sequences):
    sequences.start(LONG + ALL)
    for id in (1, 2**32 + 7, 2**63 - 1, 2**64 - 1):
        assert sequences.ask(id, 1, start=True, end=True).data() == [1]
    assert [ids(e) for e in sequences.executions()] == [
        [1], [2**32 + 7], [2**63 - 1], [2**64 - 1]]


def test_a_text_has_its_limit(sequences):
    sequences.start(LONG + WITH_TEXT)
    longest = "ä" * 64                          # 128 bytes
    assert sequences.ask(longest, start=True, end=True).data() == [1]
    assert ids(sequences.executions()[0]) == [longest]
    status, text = sequences.ask(longest + "x", start=True).rejected()
    assert status == 501
    assert "128" in text


@pytest.mark.parametrize("parameters", [
    {"sequence_id": -1}, {"sequence_id": 1.5}, {"sequence_id": True},
    {"sequence_id": 2**64},
    {"sequence_id": 1, "sequence_start": "yes"},
    {"sequence_id": 1, "sequence_start": 1},
    {"sequence_id": 1, "sequence_end": 0.5}])
def test_what_is_no_id_or_flag(sequences, parameters):
    sequences.start(LONG + ALL)
    answer = sequences.ask(None, parameters=parameters).answer()
    assert answer.status == 400, answer
    assert any(key in answer.error for key in parameters), answer
    assert sequences.executions() == []


@pytest.mark.parametrize("datatype,good,bad", [
    ("UINT64", 7, "seven"), ("UINT32", 7, "seven"), ("INT64", 7, "seven"),
    ("STRING", "seven", 7)])
def test_the_control_says_which_kind_of_id(sequences, datatype, good, bad):
    """4.15"""
    sequences.start(LONG + controls(corrid(datatype)))
    text = text_of(sequences.ask(bad, start=True))
    assert "sequence batching control 'CORRID' data-type is" in text
    assert {"STRING": "BYTES"}.get(datatype, datatype) in text
    assert sequences.ask(good, start=True, end=True).data() == [1]
    assert "control 'CORRID'" in text_of(sequences.ask(bad))


def test_start_of_a_live_sequence_restarts_it(sequences):
    """4.8"""
    server = sequences.start(LONG + ALL + state(), does="sum")
    assert sequences.ask(7, 1, start=True).data() == [1]
    assert sequences.ask(7, 2).data() == [3]
    assert sequences.ask(7, 10, start=True).data() == [10]
    assert server.wait_log(
        r"\[warn\].*model=m: sequence 7 starts again before it has ended")
    assert sequences.ask(7, 5, end=True).data() == [15]
    assert int(sequences.statistics()["inference_count"]) == 4


def test_other_models_take_no_notice(sequences):
    """Flags and id reach the backend of a model without sequences."""
    sequences.model(LONG)
    text = sequences.wanted.pop("m")
    at = text.index("sequence_batching")
    sequences.wanted["plain"] = text[:at].replace('"m"', '"plain"')
    sequences.start()
    assert sequences.ask(7, 3, model="plain", end=True).data() == [3]
    (execution,) = sequences.executions()
    assert [(r["number"], r["flags"], list(r["inputs"]))
            for r in execution["rows"]] == [(7, 2, ["IN"])]


def test_clients_library(sequences):
    """tritonclient, numbers and texts"""
    sequences.start(LONG + controls(START, END, READY) + state(), does="sum")
    with client.InferenceServerClient(sequences.server.url) as c:
        def ask(id, value, **kw):
            x = client.InferInput("IN", [1, 1], "INT32")
            x.set_data_from_numpy(numpy.array([[value]], numpy.int32))
            return c.infer("m", [x], sequence_id=id, **kw).as_numpy(
                "OUT").tolist()

        for id in (7, "call-7"):
            assert ask(id, 1, sequence_start=True) == [[1]]
            assert ask(id, 2) == [[3]]
            assert ask(id, 3, sequence_end=True) == [[6]]
            with pytest.raises(InferenceServerException, match="START flag"):
                ask(id, 4)


def test_binary_bodies(sequences):
    """Ids stand in the header, data behind it."""
    server = sequences.start(LONG + ALL)
    header = json.dumps({
        "inputs": [tensor("IN", "INT32", [1, 1], binary_data_size=4)],
        "parameters": {"sequence_id": 7, "sequence_start": True}}).encode()
    answer = server.infer("m", header, (41).to_bytes(4, "little"))
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"] == [41]
    assert sequences.ask(7, 2, end=True).data() == [2]
