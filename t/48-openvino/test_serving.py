"""Backend openvino in a server: batches, cache, warm-up, other backends."""

import concurrent.futures
import json
import os
import shutil

import numpy
import onnxruntime
import pytest
import tritonclient.http as client
from onnx import TensorProto, helper

from lib import batches, models, openvino_models, process
from lib.openvino_models import add_model, op, openvino, parameter
from lib.repository import EXPLICIT, PARTS, ask
from lib.server import ROOT, SLOW, nap
from lib.wire import infer_path, request_bytes, tensor

CYCLES = int(os.environ.get("INF_OPENVINO_CYCLES", "25"))
DIGITS = ROOT / "examples/digits/digits.json"


def request(n=1, value=1):
    data = [value] * 2 * n
    return {"inputs": [tensor("LHS", "FP32", [n, 2], data),
                       tensor("RHS", "FP32", [n, 2], data)]}


def total(answer):
    assert answer.status == 200, answer
    return {o["name"]: o["data"] for o in answer.json()["outputs"]}["SUM"]


def stats(server, model):
    return server.get(f"/v2/models/{model}/stats").json()["model_stats"][0]


def test_digits_are_those_of_onnx(make_server):
    """The example model, by its other file: the same answers to 1e-5."""
    def fill(repository):
        shutil.copytree(ROOT / "examples/openvino/models/digits",
                        repository / "digits")
        models.write_model(repository, "digits_onnx", 'backend: "openvino"\n',
                           (1,), {1: {"model.onnx": source.read_bytes()}})

    source = ROOT / "examples/models/digits/1/model.onnx"
    server = make_server(fill)
    images = numpy.array([d["image"] for d in json.loads(DIGITS.read_text())],
                         numpy.float32)
    expected, = onnxruntime.InferenceSession(source).run(
        None, {"image": images})
    for name, rows in (("digits", 10), ("digits_onnx", 1)):
        got = []
        with client.InferenceServerClient(server.url) as c:
            for i in range(0, 10, rows):
                x = client.InferInput("image", [rows, 8, 8], "FP32")
                x.set_data_from_numpy(images[i:i + rows])
                got.append(c.infer(name, [x]).as_numpy("scores"))
        numpy.testing.assert_allclose(numpy.concatenate(got), expected,
                                      rtol=0, atol=1e-5)
    body = {"inputs": [tensor("image", "FP32", [1, 8, 8],
                              images[7].flatten().tolist())],
            "outputs": [{"name": "scores",
                         "parameters": {"classification": 1}}]}
    answer = server.infer("digits", body).json()
    assert answer["outputs"][0]["data"][0].endswith(":seven")


def test_an_output_that_is_an_input(make_server):
    """The library has one tensor for both: answers are of the request, not of
    what lay in the memory of its response."""
    def fill(repository):
        for name, shape in (("fixed", [2, 4]), ("rows", [-1, 4])):
            x = parameter("X", "FP32", shape)
            openvino_models.write(
                repository, name,
                openvino_models.model([x], {"X": x, "Y": op.relu(x)}),
                extra=f"max_batch_size: {0 if name == 'fixed' else 8}\n")

    server = make_server(fill)
    for i in range(1, 20):
        data = [float(i)] * 4 + [-float(i)] * 4
        for name in ("fixed", "rows"):
            for wanted in (["X", "Y"], ["X"], ["Y"]):
                answer = server.infer(name, {
                    "inputs": [tensor("X", "FP32", [2, 4], data)],
                    "outputs": [{"name": n} for n in wanted]})
                assert answer.status == 200, answer
                got = {o["name"]: o["data"]
                       for o in answer.json()["outputs"]}
                expected = {"X": data, "Y": [max(d, 0) for d in data]}
                assert got == {n: expected[n] for n in wanted}, (name, i)


def test_scalars(make_server):
    """They are [1] to clients, as everywhere."""
    dims = models.io_block("input", [("X", "FP32", [1]), ("Y", "FP32", [-1])])

    def fill(repository):
        for name, config in (("completed", ""), ("configured", dims)):
            x, y = parameter("X", "FP32", []), parameter("Y", "FP32", [-1])
            openvino_models.write(
                repository, name, openvino_models.model(
                    [x, y], {"SUM": op.add(x, y), "TWICE": op.add(x, x)}),
                extra=f"max_batch_size: 0\n{config}")

    server = make_server(fill)
    for name in ("completed", "configured"):
        answer = server.infer(name, {"inputs": [
            tensor("X", "FP32", [1], [2]),
            tensor("Y", "FP32", [3], [1, 2, 3])]})
        assert answer.status == 200, answer
        assert {o["name"]: (o["shape"], o["data"])
                for o in answer.json()["outputs"]} == {
            "SUM": ([3], [3, 4, 5]), "TWICE": ([1], [4])}


@pytest.mark.parametrize("batch,extra", [
    (0, ""), (4, ""), (4, "ENABLE_BATCH_PADDING"), (0, "RESHAPE_IO_LAYERS")])
def test_a_file_that_leaves_the_number_of_dimensions_open(
        make_server, batch, extra):
    """The configuration has it."""
    x = openvino_models.parameter("X", "FP32",
                                  openvino.PartialShape.dynamic())
    dims = [2] if batch else [-1, 2]
    config = f"max_batch_size: {batch}\n" \
        + models.io_block("input", [("X", "FP32", dims)]) \
        + models.io_block("output", [("Y", "FP32", dims)]) \
        + models.parameter_block({extra: "YES"} if extra else {})
    server = make_server(lambda r: openvino_models.write(
        r, "open", openvino_models.model([x], {"Y": op.negative(x)}),
        extra=config))
    for rows in (1, 3):
        data = [float(i) for i in range(2 * rows)]
        answer = server.infer("open", {"inputs": [
            tensor("X", "FP32", [rows, 2], data)]})
        assert answer.status == 200, answer
        output, = answer.json()["outputs"]
        assert output["shape"] == [rows, 2]
        assert output["data"] == [-v for v in data]


@pytest.mark.parametrize("instances", [1, 2])
def test_data_that_the_library_rejects(make_server, instances):
    """An error, and no older bytes of the response's memory where the library
    stopped; requests before and after it are right."""
    x = parameter("X", "FP32", [4, 4])
    at = parameter("AT", "INT64", [1])
    changed = op.scatter_update(x, at, op.constant(numpy.full(
        (1, 4), 5, numpy.float32)), op.constant(numpy.int64(0)))
    model = openvino_models.model([x, at], {
        "Y": op.concat([changed, op.relu(x)], 0)})
    server = make_server(lambda r: openvino_models.write(
        r, "scatter", model, extra="max_batch_size: 0\ninstance_group "
        f"{{ count: {instances} kind: KIND_CPU }}\n"))

    def ask_at(i):
        return server.infer("scatter", {"inputs": [
            tensor("X", "FP32", [4, 4], [1] * 16),
            tensor("AT", "INT64", [1], [i])]})

    for i in (1, 100, 3, 10 ** 6, 0):
        answer = ask_at(i)
        if i < 4:
            rows = [[5 if k == i else 1] * 4 for k in range(4)] + [[1] * 4] * 4
            assert answer.json()["outputs"][0]["data"] == sum(rows, [])
        else:
            assert answer.status >= 400, answer
            assert "non-existing" in answer.json()["error"]


@pytest.mark.parametrize("instances", [1, 2])
def test_runs_after_one_that_failed(make_server, instances):
    """The library keeps shapes of a run that ends in its middle."""
    x = parameter("X", "FP32", [-1, 4])
    at = parameter("AT", "INT64", [-1])
    counts = op.scatter_update(
        op.constant(numpy.zeros(8, numpy.float32)), at,
        op.reduce_sum(x, op.constant([1]), False), op.constant(0))
    y = op.tanh(op.add(x, op.reduce_sum(counts, op.constant([0]), False)))
    model = openvino_models.model([x, at], {"Y": op.negative(op.tanh(y))})
    server = make_server(lambda r: openvino_models.write(
        r, "m", model, extra="max_batch_size: 8\n"
        + models.io_block("input", [("X", "FP32", [4])])
        + 'input { name: "AT" data_type: TYPE_INT64 dims: 1\n'
        "  reshape { shape: [ ] } }\n"
        + models.io_block("output", [("Y", "FP32", [4])])
        + f"instance_group {{ count: {instances} kind: KIND_CPU }}\n"))

    def rows(count, last):
        return server.infer("m", {"inputs": [
            tensor("X", "FP32", [count, 4], [0.25] * 4 * count),
            tensor("AT", "INT64", [count, 1], [*range(count - 1), last])]})

    for bad in (6, 2, 6, 7):
        assert rows(4, 3).status == 200
        assert "non-existing" in rows(bad, 10 ** 6).json()["error"]
        for count in (4, 4, 4, 4, bad):
            answer = rows(count, count - 1)
            assert answer.status == 200, answer
            output, = answer.json()["outputs"]
            assert output["shape"] == [count, 4]
            assert output["data"] == pytest.approx(
                [-numpy.tanh(numpy.tanh(0.25 + count))] * 4 * count)


def test_requests_are_joined_and_counted(make_server):
    server = make_server(lambda r: openvino_models.write(
        r, "add", add_model(), extra="max_batch_size: 8\n"
        "dynamic_batching { max_queue_delay_microseconds: 20000 }\n"),
        parts="all")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(
            lambda i: total(server.infer("add", request(1 + i % 3, i))),
            range(64)))
    assert answers == [[2 * i] * 2 * (1 + i % 3) for i in range(64)]
    row = stats(server, "add")
    assert row["inference_stats"]["success"]["count"] == 64
    assert row["inference_count"] == sum(1 + i % 3 for i in range(64))
    assert row["execution_count"] < 64
    sizes = {b["batch_size"]: b["compute_infer"]["count"]
             for b in row["batch_stats"]}
    assert sum(sizes.values()) == row["execution_count"]
    assert sum(n * count for n, count in sizes.items()) \
        == row["inference_count"]
    assert max(sizes) > 3


def test_one_request_of_a_batch_is_wrong(make_server):
    """Rows of as many numbers as the largest says: the library's error names
    no request."""
    x = openvino_models.parameter("X", "INT64", [-1, 2])
    columns = op.unsqueeze(op.reduce_max(x, op.constant([0, 1])), 0)
    shape = op.concat([op.constant([-1]), columns], 0)
    model = openvino_models.model([x], {"Y": op.reshape(x, shape, False)})
    server = make_server(lambda r: openvino_models.write(
        r, "m", model, extra=batches.JOINED), parts="all")
    error = batches.one_is_wrong(
        server, "m", [tensor("X", "INT64", [1, 2], [1, 3])],
        [tensor("X", "INT64", [1, 2], [1, 2])])
    assert "Reshape" in error, error


def test_batches_of_other_shapes_run_apart(make_server):
    """The second dimension is open: only equal ones join."""
    server = make_server(lambda r: openvino_models.write(
        r, "add", add_model((-1, -1)), extra="max_batch_size: 8\n"
        "dynamic_batching { max_queue_delay_microseconds: 20000 }\n"))

    def one(i):
        shape = [1, 1 + i % 4]
        data = [i] * shape[1]
        return total(server.infer("add", {"inputs": [
            tensor("LHS", "FP32", shape, data),
            tensor("RHS", "FP32", shape, data)]}))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(64))) \
            == [[2 * i] * (1 + i % 4) for i in range(64)]


def test_an_output_alone(make_server):
    """And then both: memory of the one before is not written to again."""
    server = make_server(lambda r: openvino_models.write(r, "add",
                                                         add_model()))
    for i in range(20):
        body = request(1, i)
        wanted = [["SUM"], ["DIFFERENCE"], ["SUM", "DIFFERENCE"]][i % 3]
        body["outputs"] = [{"name": n} for n in wanted]
        outputs = server.infer("add", body).json()["outputs"]
        assert [o["name"] for o in outputs] == wanted
        for o in outputs:
            assert o["data"] == ([2 * i] * 2 if o["name"] == "SUM" else [0, 0])


def test_response_cache_and_warm_up(make_server):
    server = make_server(lambda r: openvino_models.write(
        r, "add", add_model(), extra="max_batch_size: 8\n"
        "response_cache { enable: true }\n"
        'model_warmup { name: "w" batch_size: 2 count: 3\n'
        '  inputs { key: "LHS" value { data_type: TYPE_FP32 dims: 2'
        " random_data: true } }\n"
        '  inputs { key: "RHS" value { data_type: TYPE_FP32 dims: 2'
        " zero_data: true } }\n}\n"),
        parts="all", http="    inference_response_cache local size=4m;\n")
    assert server.get("/v2/models/add/ready").status == 200
    warmed = stats(server, "add")["execution_count"]
    assert warmed == 3
    for _ in range(3):
        assert total(server.infer("add", request(2, 3))) == [6] * 4
    row = stats(server, "add")
    assert row["inference_stats"]["cache_hit"]["count"] == 2
    assert row["inference_stats"]["cache_miss"]["count"] == 1
    assert row["execution_count"] == warmed + 1


def test_an_ensemble_with_onnxruntime(make_server):
    """Two runtimes in one process, one after the other, many at a time."""
    def fill(repository):
        graph = helper.make_graph(
            [helper.make_node("Neg", ["X"], ["Y"])], "g",
            [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", 2])],
            [helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["n", 2])])
        onnx = helper.make_model(graph, ir_version=8, opset_imports=[
            helper.make_opsetid("", 17)]).SerializeToString()
        models.write_model(repository, "negate", 'backend: "onnxruntime"\n'
                           "max_batch_size: 8\n", (1,),
                           {1: {"model.onnx": onnx}})
        openvino_models.write(repository, "add", add_model(),
                              extra="max_batch_size: 8\n")
        models.ensemble(
            repository, "both",
            [("A", "FP32", [2]), ("B", "FP32", [2])],
            [("OUT", "FP32", [2])],
            models.step("add", {"LHS": "A", "RHS": "B"}, {"SUM": "sum"})
            + ",", models.step("negate", {"X": "sum"}, {"Y": "negative"})
            + ",", models.step("add", {"LHS": "negative", "RHS": "B"},
                               {"SUM": "OUT"}),
            extra="max_batch_size: 8\n")

    server = make_server(fill)

    def one(i):
        answer = server.infer("both", {"inputs": [
            tensor("A", "FP32", [1, 2], [i, 1]),
            tensor("B", "FP32", [1, 2], [5, i])]})
        assert answer.status == 200, answer
        return answer.json()["outputs"][0]["data"]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(200))) == [[-i, -1]
                                                   for i in range(200)]


def test_instances_infer_beside_each_other(make_server):
    """Two requests of two instances overlap; their threads are the model's."""
    x = parameter("X", "FP32", [-1, 512])
    y = x
    weights = op.constant(numpy.eye(512, dtype=numpy.float32))
    for _ in range(8):
        y = op.matmul(op.tanh(y), weights, False, False)
    model = openvino_models.model([x], {"Y": y})
    server = make_server(lambda r: openvino_models.write(
        r, "slow", model, extra="max_batch_size: 256\n"
        "dynamic_batching { }\n"
        "instance_group { count: 3 kind: KIND_CPU }\n"))
    found = server.wait_log(r"compiled for device CPU:(.*)")[1]
    assert "NUM_STREAMS=3" in found or os.cpu_count() < 3
    data = numpy.random.default_rng(3).random((256, 512), numpy.float32)
    expected = openvino_models.Direct(model)(X=data)["Y"]

    def one(_):
        v = client.InferInput("X", list(data.shape), "FP32")
        v.set_data_from_numpy(data)
        with client.InferenceServerClient(server.url) as c:
            return c.infer("slow", [v]).as_numpy("Y")

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for got in pool.map(one, range(12)):
            numpy.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_a_run_that_nobody_waits_for_is_cancelled(make_server):
    """The second request of a client that leaves: the first one has shown
    that the model takes long."""
    x = parameter("X", "FP32", [-1, 1024])
    y = x
    weights = op.constant(numpy.eye(1024, dtype=numpy.float32))
    for _ in range(60):
        y = op.matmul(op.tanh(y), weights, False, False)
    server = make_server(lambda r: openvino_models.write(
        r, "slow", openvino_models.model([x], {"Y": y}),
        extra="max_batch_size: 1024\n"), parts="all")
    rows = 512
    header = json.dumps({
        "inputs": [tensor("X", "FP32", [rows, 1024],
                          binary_data_size=rows * 4096)],
        "outputs": [{"name": "Y", "parameters": {"binary_data": True}}]
    }).encode()
    body = request_bytes("POST", infer_path("slow"),
                         header + bytes(rows * 4096), {
        "Inference-Header-Content-Length": str(len(header))})

    def done():
        found = stats(server, "slow")
        return {k: found["inference_stats"][k]["count"]
                for k in ("success", "fail")}, found["execution_count"]

    def is_right():
        """Of a batch of another size."""
        answer = server.infer("slow", {"inputs": [
            tensor("X", "FP32", [2, 1024], [0.0] * 2048)]})
        return answer.status == 200 \
            and answer.json()["outputs"][0]["data"] == [0.0] * 2048

    with server.wire(60 * SLOW) as w:
        w.send(body)
        assert w.read().status == 200
    assert is_right()
    assert done()[0] == {"success": 2, "fail": 0}
    with server.wire() as w:
        w.send(body)
        assert process.wait_until(
            lambda: stats(server, "slow")["inference_stats"]["queue"]["count"]
            >= 2, 10 * SLOW)
        nap(0.2)      # it runs now
    assert process.wait_until(lambda: done()[0]["fail"] == 1, 30 * SLOW), \
        done()
    assert done()[0]["success"] == 2
    assert is_right() and is_right()


def test_states_of_sequences(make_server):
    """OUT is the sum of a sequence's inputs so far; three beside each other."""
    x = parameter("X", "FP32", [-1, 1])
    state = parameter("STATE", "FP32", [-1, 1])
    start = parameter("START", "FP32", [-1, 1])
    total = op.add(x, op.multiply(state, op.subtract(
        op.constant(numpy.float32([[1]])), start)))
    model = openvino_models.model([x, state, start], {"OUT": total,
                                                      "NEXT": total})
    server = make_server(lambda r: openvino_models.write(
        r, "sum", model, extra="max_batch_size: 4\n"
        "sequence_batching { oldest { max_candidate_sequences: 4 }\n"
        '  control_input [ { name: "START" control [ {\n'
        "    kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ]\n"
        '  state [ { input_name: "STATE" output_name: "NEXT"\n'
        "    data_type: TYPE_FP32 dims: [ 1 ] } ] }\n"
        + models.io_block("input", [("X", "FP32", [1])])
        + models.io_block("output", [("OUT", "FP32", [1])])))

    def sequence(number):
        found = []
        for i in range(1, 11):
            answer = server.infer("sum", {
                "inputs": [tensor("X", "FP32", [1, 1], [i * number])],
                "parameters": {"sequence_id": number,
                               "sequence_start": i == 1,
                               "sequence_end": i == 10}})
            assert answer.status == 200, answer
            found.append(answer.json()["outputs"][0]["data"][0])
        return found

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        assert list(pool.map(sequence, (1, 2, 3))) == [
            [n * i * (i + 1) // 2 for i in range(1, 11)] for n in (1, 2, 3)]


def test_memory_over_loads_and_unloads(make_server):
    """A model with 16 MiB of weights.  The library keeps memory of that size
    for each of a few threads that have loaded."""
    x = parameter("X", "FP32", [-1, 2048])
    weights = op.constant(numpy.random.default_rng(0).random(
        (2048, 2048), numpy.float32))
    model = openvino_models.model([x], {"Y": op.matmul(x, weights, False,
                                                       False)})
    server = make_server(lambda r: openvino_models.write(
        r, "m", model, extra="max_batch_size: 4\n"),
        http=EXPLICIT, parts=PARTS)
    body = {"inputs": [tensor("X", "FP32", [1, 2048], [0.0] * 2048)]}

    def cycle(times):
        for _ in range(times):
            assert ask(server, "load", "m").status == 200
            assert server.infer("m", body).status == 200
            assert ask(server, "unload", "m").status == 200
            assert process.wait_until(
                lambda: server.get("/v2/models/m/ready").status != 200,
                10 * SLOW)
        return process.held_bytes([server.core()])

    early = cycle(20)
    late = cycle(CYCLES)
    print(f"after 20 cycles {early >> 10} KiB, after {CYCLES} more "
          f"{late >> 10} KiB")
    assert late - early < ((4 * 16 << 20) + CYCLES * (16 << 10)) * SLOW
