"""Inputs of the backend beside the client's: controls and states.  Numbers are
those of the scheduling reference's section 4."""

import pytest

from lib import backends, models, process
from lib.sequences import (ALL, END, LONG, READY, START, ZERO, controls,
                           corrid, ids, state)
from lib.server import SLOW

NAMES = ("START", "END", "READY")


def flags_of(executions, id):
    """The controls' values of that sequence's rows."""
    return [tuple(row["inputs"][n]["data"][0] for n in NAMES)
            for e in executions for row, name in zip(e["rows"], ids(e))
            if name == id]


def test_controls_of_a_sequence(sequences):
    sequences.start(LONG + ALL)
    for i, n in enumerate((7, 7, 7, 8)):
        assert sequences.ask(n, i, start=i in (0, 3), end=i > 1).data() == [i]
    executions = sequences.executions()
    assert flags_of(executions, 7) == [(1, 0, 1), (0, 0, 1), (0, 1, 1)]
    assert flags_of(executions, 8) == [(1, 1, 1)]
    for e in executions:
        for row in e["rows"]:
            assert {row["inputs"][n]["type"] for n in NAMES} == {"INT32"}
            assert row["inputs"]["CORRID"]["type"] == "UINT64"
            for n in (*NAMES, "CORRID"):
                assert row["inputs"][n]["shape"] == [1, 1]
    assert [r["flags"] for e in executions for r in e["rows"]] == [1, 0, 2, 3]


@pytest.mark.parametrize("kind,datatype,false,true", [
    ("fp32_false_true: [ 0, 1 ]", "FP32", 0, 1),
    ("fp32_false_true: [ -1.5, 4 ]", "FP32", -1.5, 4),
    ("bool_false_true: [ false, true ]", "BOOL", 0, 1),
    ("int32_false_true: [ 7, -7 ]", "INT32", 7, -7)])
def test_values_of_controls(sequences, kind, datatype, false, true):
    """4.14, empty rows among them"""
    words = [s.replace("int32_false_true: [ 0, 1 ]", kind)
             for s in (START, END, READY)]
    sequences.start(LONG + controls(*words, corrid("UINT32")))
    assert sequences.ask(2**32 + 1, 1, start=True).data() == [1]
    assert sequences.ask(2**32 + 7, 1, start=True, end=True).data() == [1]
    (first,), (empty, last) = [e["rows"] for e in sequences.executions()]

    def told(row):
        return [row["inputs"][n]["data"][0] for n in NAMES]

    assert told(first) == [true, false, true]
    assert told(empty) == [false] * 3
    assert told(last) == [true] * 3
    assert {row["inputs"]["START"]["type"]
            for row in (first, empty, last)} == {datatype}
    assert [row["inputs"]["CORRID"]["data"] for row in (first, empty, last)] \
        == [[1], [0], [7]]


@pytest.mark.parametrize("datatype,id,value", [
    ("UINT64", 2**64 - 1, 2**64 - 1), ("INT64", 2**64 - 1, -1),
    ("INT32", 2**32 - 2, -2), ("STRING", "séquence", "séquence")])
def test_the_id_as_a_control(sequences, datatype, id, value):
    """4.15; an empty row has no id"""
    sequences.start(LONG + controls(READY, corrid(datatype)))
    other = "x" if isinstance(id, str) else 1
    assert sequences.ask(other, 1, start=True).data() == [1]
    assert sequences.ask(id, 1, start=True).data() == [1]
    _, (empty, row) = [e["rows"] for e in sequences.executions()]
    assert row["inputs"]["CORRID"]["data"] == [value]
    assert empty["inputs"]["CORRID"]["data"] == [
        "" if isinstance(id, str) else 0]


def test_controls_need_not_be_there(sequences):
    sequences.start(LONG, max_batch=1)
    assert sequences.ask(1, 5, start=True).data() == [5]
    assert sequences.ask(1, 6, end=True).data() == [6]
    assert [list(r["inputs"]) for e in sequences.executions()
            for r in e["rows"]] == [["IN"], ["IN"]]


def test_clients_send_no_controls(sequences):
    """They are no inputs of the model as clients see it."""
    server = sequences.start(LONG + ALL + state(), does="sum")
    metadata = server.get("/v2/models/m").json()
    assert [t["name"] for t in metadata["inputs"]] == ["IN"]
    assert [t["name"] for t in metadata["outputs"]] == ["OUT"]
    answer = server.infer("m", {
        "inputs": [{"name": "IN", "datatype": "INT32", "shape": [1, 1],
                    "data": [1]},
                   {"name": "START", "datatype": "INT32", "shape": [1, 1],
                    "data": [1]}],
        "parameters": {"sequence_id": 1, "sequence_start": True}})
    assert answer.status == 400, answer
    answer = server.infer("m", {
        "inputs": [{"name": "IN", "datatype": "INT32", "shape": [1, 1],
                    "data": [1]}],
        "outputs": [{"name": "STATE_OUT"}],
        "parameters": {"sequence_id": 1, "sequence_start": True}})
    assert answer.status == 400, answer
    assert "unexpected inference output 'STATE_OUT' for model 'm'" \
        in answer.error


def test_a_sum(sequences):
    """4.17: zeros at first, told or not"""
    for name, more in (("plain", ""), ("zero", ZERO)):
        sequences.model(LONG + ALL + state("1", more), name, does="sum")
    sequences.start()
    for name in ("plain", "zero"):
        def ask(id, value, **kw):
            return sequences.ask(id, value, model=name, **kw).data()
        assert ask(1, 1, start=True) == [1]
        assert ask(2, 100, start=True) == [100]
        assert ask(1, 2) == [3]
        assert ask(2, 200) == [300]
        assert ask(1, 3, end=True) == [6]
        assert ask(1, 5, start=True) == [5]         # nothing of the last
        assert ask(2, 300, end=True) == [600]


def test_an_input_without_values(sequences):
    sequences.start(LONG + ALL, dims="-1")
    assert sequences.ask(1, [], start=True).data() == []
    assert sequences.ask(1, [5], end=True).data() == [5]


def test_a_state_grows(sequences):
    """4.17: -1 is 1 at first"""
    sequences.start(LONG + ALL + state("-1"), does="append")
    assert sequences.ask(1, 1, start=True).data() == [0, 1]
    assert sequences.ask(2, 5, start=True).data() == [0, 5]
    for i in range(2, 40):
        assert sequences.ask(1, i).data() == [0, *range(1, i + 1)]
    assert sequences.ask(2, 6).data() == [0, 5, 6]
    assert sequences.ask(1, 7, start=True).data() == [0, 7]
    shapes = [row["inputs"]["STATE_IN"]["shape"]
              for e in sequences.executions() for row, id in
              zip(e["rows"], ids(e)) if id == 1]
    assert shapes == [[1, n] for n in [1, *range(2, 40), 1]]


def test_without_an_update_nothing_stays(sequences):
    """4.17: ten times the same"""
    sequences.start(LONG + ALL + state("-1", ZERO), does="append",
                    update="no")
    assert sequences.ask(1, 3, start=True).data() == [0, 3]
    for _ in range(9):
        assert sequences.ask(1, 3).data() == [0, 3]


def test_one_buffer_for_both(sequences):
    sequences.start(LONG + ALL + state(
        "1", "use_same_buffer_for_input_output: true"), does="sum")
    assert sequences.ask(1, 1, start=True).data() == [1]
    assert sequences.ask(1, 2).data() == [3]
    assert sequences.ask(2, 10, start=True).data() == [10]
    assert sequences.ask(1, 3, end=True).data() == [6]


GROWS = "use_same_buffer_for_input_output: true use_growable_memory: true"


def test_memory_that_grows_needs_no_gpu(sequences):
    sequences.start(LONG + ALL + state("-1", GROWS), does="append")
    assert sequences.ask(2, 5, start=True).data() == [0, 5]
    for i in range(1, 40):
        assert sequences.ask(1, i, start=i == 1).data() == \
            [0, *range(1, i + 1)]
    assert sequences.ask(2, 6).data() == [0, 5, 6]
    assert sequences.ask(1, 7, start=True).data() == [0, 7]


def test_memory_that_grows_is_one_buffer(sequences):
    server = sequences.start(
        LONG + ALL + state("-1", "use_growable_memory: true"), wait="live",
        does="append")

    def reason():
        (row,) = server.post("/v2/repository/index", b"").json()
        return row.get("state") == "UNAVAILABLE" and row["reason"]

    assert "use_growable_memory requires use_same_buffer_for_input_output" \
        in process.wait_until(reason, 20 * SLOW)


def test_a_state_that_begins_with_a_file(sequences):
    """Its values and its shape."""
    def also(repository):
        folder = repository / "m" / "initial_state"
        folder.mkdir()
        (folder / "three").write_bytes(
            b"".join(n.to_bytes(4, "little") for n in (7, 8, 9)))

    sequences.start(LONG + ALL + state("-1", (
        'initial_state: { name: "three" data_type: TYPE_INT32 dims: [ 3 ]'
        ' data_file: "three" }')), also, does="append")
    assert sequences.ask(1, 1, start=True).data() == [7, 8, 9, 1]
    assert sequences.ask(2, 2, start=True).data() == [7, 8, 9, 2]
    assert sequences.ask(1, 3).data() == [7, 8, 9, 1, 3]
    assert sequences.executions()[0]["rows"][0]["inputs"]["STATE_IN"][
        "shape"] == [1, 3]


@pytest.mark.parametrize("content,loads", [
    (None, False), (bytes(3), False), (bytes(400), True)])
def test_a_file_that_is_not_as_it_should_be(sequences, content, loads):
    """Missing and too short: the load fails and says which file it is."""
    def also(repository):
        folder = repository / "m" / "initial_state"
        folder.mkdir()
        if content is not None:
            (folder / "data").write_bytes(content)

    server = sequences.start(LONG + ALL + state("1", (
        'initial_state: { name: "first" data_type: TYPE_INT32 dims: [ 1 ]'
        ' data_file: "data" }')), also, wait="live", does="sum")
    if loads:
        assert server.wait_for("/v2/models/m/ready")
        assert sequences.ask(1, 4, start=True).data() == [4]
        return

    def reason():
        (row,) = server.post("/v2/repository/index", b"").json()
        return row.get("state") == "UNAVAILABLE" and row["reason"]

    text = process.wait_until(reason, 20 * SLOW)
    assert text and "initial_state" in text and "data" in text, text


def test_states_of_a_slot_do_not_meet(sequences):
    """A slot that is taken again has nothing of the last sequence, nor have
    those beside it, when rows without a request were between them."""
    sequences.start(LONG + ALL + state(), does="sum", max_batch=3)
    assert sequences.ask(1, 1, start=True).data() == [1]
    assert sequences.ask(2, 10, start=True).data() == [10]
    assert sequences.ask(3, 100, start=True).data() == [100]
    assert sequences.ask(3, 100).data() == [200]    # beside two empty ones
    assert sequences.ask(1, 1).data() == [2]
    assert sequences.ask(2, 10).data() == [20]
    assert sequences.ask(2, 10, end=True).data() == [30]
    assert sequences.ask(4, 5, start=True).data() == [5]
    assert sequences.ask(3, 100).data() == [300]
    assert sequences.ask(1, 1).data() == [3]


def test_a_model_that_asks_for_no_state(sequences):
    """The backend is told that there is none of that name."""
    sequences.start(LONG + ALL + state().replace("STATE_OUT", "OTHER"),
                    does="sum")
    status, text = sequences.ask(1, 1, start=True).rejected()
    assert status == 400
    assert "STATE_OUT" in text


def test_a_plain_model_has_no_states(make_server):
    """As a backend sees it that asks for one in spite of it."""
    folder = backends.build("sequences")

    def fill(repository):
        models.identity(repository, "m", [("IN", "INT32", [1]),
                                          ("STATE_IN", "INT32", [1])],
                        outputs=[("OUT", "INT32", [1])], backend="sequences",
                        parameters={"does": "sum"})

    server = make_server(
        fill, http=f"    inference_backends {folder};\n")
    answer = server.infer("m", {"inputs": [
        {"name": n, "datatype": "INT32", "shape": [1], "data": [1]}
        for n in ("IN", "STATE_IN")]})
    assert answer.status == 400
    assert "STATE_OUT" in answer.error
