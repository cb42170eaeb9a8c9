"""States of sequences stay on the GPU; kernels read the one of the request
before and write the next."""

import concurrent.futures
import struct

import pytest

from lib import cuda, models
from lib.server import ROOT
from lib.wire import tensor

HISTORY = ROOT / "examples/cuda/models/history"

# Both outputs are "was" plus x: one for the client, one is kept.
SUM = {"kernel_1": "vector_add<<<ceildiv(elements(sum), 32), 32>>>"
                   "(x, was, next, int(elements(sum)))",
       "kernel_2": "vector_add<<<ceildiv(elements(sum), 32), 32>>>"
                   "(x, was, sum, int(elements(sum)))"}
SIZE = 100
FIRST = [float(i) for i in range(SIZE)]


def history(repository, more="", parameters=None):
    config = (HISTORY / "config.pbtxt").read_text() \
        + models.parameter_block(parameters)
    models.write_model(
        repository, "history", config.replace(
            "      dims: [ -1 ]\n", f"      dims: [ -1 ]\n{more}").replace(
            "sequence_batching {", "sequence_batching {\n"
            "  max_sequence_idle_microseconds: 60000000"),
        files={1: {"model.cu": (HISTORY / "1/model.cu").read_bytes()}})


def sums(repository, initial="", controls="", parameters=None, batch=4,
         strategy="oldest { max_candidate_sequences: 8 }"):
    directory = models.write_model(
        repository, "sums", f'name: "sums"\nbackend: "cuda"\n'
        f"max_batch_size: {batch}\n"
        + models.io_block("input", [("x", "FP32", [SIZE])])
        + models.io_block("output", [("sum", "FP32", [SIZE])])
        + models.parameter_block({**SUM, **(parameters or {})})
        + "instance_group { kind: KIND_GPU }\n"
        + f"sequence_batching {{ {strategy} {controls}\n"
        + 'state { input_name: "was" output_name: "next" data_type: TYPE_FP32'
        + f" dims: [ {SIZE} ] {initial} }} }}\n",
        files={1: {"model.cu": cuda.ADD_SOURCE.encode()}})
    (directory / "initial_state").mkdir()
    (directory / "initial_state/first").write_bytes(
        struct.pack(f"<{SIZE}f", *FIRST))


def send(server, model, sequence, data, *, output, start=False, end=False,
         batched=False):
    return server.infer(model, {
        "inputs": [tensor("x", "FP32", [1] * batched + [len(data)], data)],
        "outputs": [{"name": output}],
        "parameters": {"sequence_id": sequence, "sequence_start": start,
                       "sequence_end": end}})


def ask(*args, **kw):
    answer = send(*args, **kw)
    assert answer.status == 200, answer
    return answer.json()["outputs"][0]["data"]


def ended(server, tmp_path):
    server.stop()
    counts = cuda.counts(tmp_path)
    assert counts["wrong"] == 0, counts
    return counts


@pytest.mark.fake_gpu
@pytest.mark.parametrize("more", ["", """
      use_same_buffer_for_input_output: true
""", """
      use_same_buffer_for_input_output: true
      use_growable_memory: true
"""])
def test_a_state_grows_on_its_gpu(make_server, tmp_path, more):
    server = make_server(lambda r: history(r, more), **cuda.options(tmp_path))
    seen = {1: [0], 2: [0]}
    sent, kept = 2, 0               # the zeros come from the host
    for i in range(8):
        sequence = 1 + i % 2
        data = [100.0 * i + k for k in range(1 + 7 * i)]
        seen[sequence] += data
        assert ask(server, "history", sequence, data, output="all",
                   start=i < 2, end=i > 5) == seen[sequence]
        sent += len(data)
        kept += len(seen[sequence])
    moved = ended(server, tmp_path)["bytes"]
    # nothing of a state goes through the host; clients see it, too
    # (but the zeros where one of their GPU's buffers takes the host's place)
    assert 4 * sent <= moved["to_device"] <= 4 * (sent + 2)
    assert moved["to_host"] == 4 * kept
    assert moved["on_device"] >= 4 * kept


@pytest.mark.fake_gpu
@pytest.mark.parametrize("strategy", [
    "oldest { max_candidate_sequences: 8 }", "direct { }"])
def test_states_of_a_batch(make_server, tmp_path, strategy):
    """Each begins with what a file has."""
    server = make_server(
        lambda r: sums(r, 'initial_state { name: "first" data_type: TYPE_FP32'
                       f' dims: [ {SIZE} ] data_file: "first" }}',
                       strategy=strategy), **cuda.options(tmp_path))

    def sequence(number):
        for i in range(1, 4):
            got = ask(server, "sums", number, [float(number)] * SIZE,
                      output="sum", start=i == 1, end=i == 3, batched=True)
            assert got == [f + i * number for f in FIRST]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(sequence, range(1, 9)))
    counts = ended(server, tmp_path)
    # 8 sequences of 3 requests, and a first state of each
    assert counts["bytes"]["to_host"] == 4 * SIZE * 24
    if strategy.startswith("oldest"):           # others: padding requests
        assert counts["bytes"]["to_device"] == 4 * SIZE * (24 + 8)


@pytest.mark.fake_gpu
@pytest.mark.parametrize("pinned", ["1m", "0"])
def test_a_gpu_without_room_leaves_states_on_the_host(make_server, tmp_path,
                                                      pinned):
    server = make_server(
        lambda r: sums(r, batch=0), **cuda.options(
            tmp_path, http="    inference_memory 64m cuda=0:0"
                           f" pinned={pinned};\n"))
    for i in range(1, 4):
        assert ask(server, "sums", 5, [2.0] * SIZE, output="sum",
                   start=i == 1, end=i == 3) == [2.0 * i] * SIZE
    moved = ended(server, tmp_path)["bytes"]
    assert moved["to_device"] == 4 * SIZE * 6
    assert moved["to_host"] == 4 * SIZE * 6
    assert moved["on_device"] == 0


def test_controls_are_inputs(make_server, tmp_path):
    """was + START: one more in the first request."""
    control = """control_input { name: "START"
        control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }"""
    server = make_server(
        lambda r: sums(r, controls=control, parameters={
            "kernel_2": "vector_add<<<1, 1>>>(was, START, sum,"
                        " int(elements(START)))",
            "require_start": "START[0] == 1"}), **cuda.options(tmp_path))
    got = [ask(server, "sums", 5, [2.0] * SIZE, output="sum", start=i == 0,
               end=i == 2, batched=True)[0] for i in range(3)]
    assert got == [1, 2, 4]


@pytest.mark.fake_gpu
def test_a_request_that_fails_leaves_the_state(make_server, tmp_path):
    server = make_server(
        lambda r: history(r, parameters={"require_1": "x[0] == min(x[0], 3)"}),
        **cuda.options(tmp_path))
    assert ask(server, "history", 5, [1, 2], output="all", start=True) \
        == [0, 1, 2]
    answer = send(server, "history", 5, [3] * 4, output="all")
    assert answer.status == 400
    assert "require_1" in answer.error
    assert ask(server, "history", 5, [3], output="all", end=True) \
        == [0, 1, 2, 3]
    ended(server, tmp_path)
