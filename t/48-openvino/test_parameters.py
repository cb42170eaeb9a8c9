"""Parameters of a model of backend openvino."""


import numpy
import pytest
import tritonclient.http as client

from lib import models, openvino_models
from lib.openvino_models import Direct, add_model, op
from lib.repository import EXPLICIT, PARTS, ask, rows
from lib.wire import tensor

FIXED = 4


def config(parameters, max_batch=0, instances=1, io=""):
    return f"max_batch_size: {max_batch}\n{io}" \
        f"instance_group {{ count: {instances} kind: KIND_CPU }}\n" \
        + models.parameter_block(parameters)


def compiled(server, name):
    """The properties that the log names: {property: value}."""
    device, properties = server.wait_log(
        rf'/{name}/1/model.xml" is compiled for device (\S+):(.*)').groups()
    return {"device": device,
            **dict(p.split("=") for p in properties.split())}


def add_inputs(lhs, rhs, datatype="FP32"):
    found = []
    for name, array in (("LHS", lhs), ("RHS", rhs)):
        found.append(client.InferInput(name, list(array.shape), datatype))
        found[-1].set_data_from_numpy(array)
    return found


def infer(server, model, lhs, rhs, datatype="FP32"):
    with client.InferenceServerClient(server.url) as c:
        answer = c.infer(model, add_inputs(lhs, rhs, datatype))
        return answer.as_numpy("SUM"), answer.as_numpy("DIFFERENCE")


@pytest.mark.parametrize("parameters, instances, expected", [
    ({}, 1, {"NUM_STREAMS": "1", "INFERENCE_NUM_THREADS": "1",
             "INFERENCE_PRECISION_HINT": "f32"}),
    ({}, 2, {"NUM_STREAMS": "2", "INFERENCE_NUM_THREADS": "2"}),
    ({"NUM_STREAMS": "2"}, 1, {"NUM_STREAMS": "2",
                               "INFERENCE_NUM_THREADS": "2"}),
    ({"INFERENCE_NUM_THREADS": "2"}, 1, {"NUM_STREAMS": "1",
                                         "INFERENCE_NUM_THREADS": "2"}),
    ({"PERFORMANCE_HINT": "latency", "INFERENCE_NUM_THREADS": "1"}, 1,
     {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": "1"}),
    ({"PERFORMANCE_HINT": "THROUGHPUT"}, 1,
     {"PERFORMANCE_HINT": "THROUGHPUT"}),
    ({"NUM_STREAMS": "AUTO"}, 1, {}),
    ({"NUM_STREAMS": "numa"}, 1, {}),
    ({"TARGET_DEVICE": "CPU"}, 1, {"device": "CPU"}),
    ({"TARGET_DEVICE": "AUTO", "PERFORMANCE_HINT": "LATENCY"}, 1,
     {"device": "AUTO"}),
    ({"TARGET_DEVICE": "HETERO:CPU"}, 1, {"device": "HETERO:CPU"}),
], ids=lambda v: str(v) if isinstance(v, dict) else None)
def test_parameter_reaches_the_library(make_server, parameters, instances,
                                       expected):
    server = make_server(lambda r: openvino_models.write(
        r, "add", add_model((2, 2)), extra=config(
            parameters, instances=instances)))
    found = compiled(server, "add")
    assert {k: found.get(k) for k in expected} == expected
    one = numpy.arange(4, dtype=numpy.float32).reshape(2, 2)
    total, difference = infer(server, "add", one, one)
    assert total.tolist() == (2 * one).tolist()
    assert not difference.any()


def test_compilation_threads_are_no_setting_of_the_cpu(make_server):
    server = make_server(lambda r: openvino_models.write(
        r, "add", add_model(), extra=config({"COMPILATION_NUM_THREADS": "2"},
                                            max_batch=2)),
        allow_alarms=["COMPILATION_NUM_THREADS"])
    server.wait_said("'COMPILATION_NUM_THREADS' has no effect")


def test_bf16_is_used_on_demand_only(make_server):
    """Equal to the library with the same hint; the processor decides whether
    the two results differ."""
    rng = numpy.random.default_rng(1)
    weights = rng.standard_normal((64, 64)).astype(numpy.float32)
    data = rng.standard_normal((3, 64)).astype(numpy.float32)
    op = openvino_models.op
    x = openvino_models.parameter("X", "FP32", [-1, 64])
    model = openvino_models.model([x], {"Y": op.matmul(
        x, op.constant(weights), False, False)})

    def fill(repository):
        openvino_models.write(repository, "exact", model)
        openvino_models.write(repository, "fast", model,
                              extra=models.parameter_block(
                                  {"HINT_BF16": "YES"}))

    server = make_server(fill)
    for name, hint in (("exact", "f32"), ("fast", "bf16")):
        expected = Direct(model, INFERENCE_PRECISION_HINT=hint)(X=data)["Y"]
        x = client.InferInput("X", [3, 64], "FP32")
        x.set_data_from_numpy(data)
        with client.InferenceServerClient(server.url) as c:
            got = c.infer(name, [x]).as_numpy("Y")
        assert got.tobytes() == expected.tobytes(), name


@pytest.mark.parametrize("file_rows", [1, FIXED, -1])
def test_batch_of_any_size(make_server, file_rows):
    """max_batch_size opens the first dimension of a file that has it fixed."""
    server = make_server(lambda r: openvino_models.write(
        r, "add", add_model((file_rows, 2)), extra="max_batch_size: 8\n"))
    for n in (1, 2, 8):
        lhs = numpy.arange(2 * n, dtype=numpy.float32).reshape(n, 2)
        total, difference = infer(server, "add", lhs, lhs * 3)
        assert total.tolist() == (lhs * 4).tolist()
        assert difference.tolist() == (lhs * -2).tolist()


def test_fixed_batch_is_padded_or_rejected(make_server):
    def fill(repository):
        skip = {"SKIP_OV_DYNAMIC_BATCHSIZE": "YES"}
        for datatype in ("FP32", "INT8"):
            openvino_models.write(
                repository, f"padded_{datatype.lower()}",
                add_model((1, 2), datatype), extra=config(
                    {**skip, "ENABLE_BATCH_PADDING": "yes"}, FIXED))
        openvino_models.write(repository, "strict", add_model((1, 2)),
                              extra=config(skip, FIXED))
        openvino_models.write(
            repository, "texts", openvino_models.copy_model("BYTES", [1, 2]),
            extra=config({**skip, "ENABLE_BATCH_PADDING": "YES"}, FIXED))

    server = make_server(fill)
    for name, datatype in (("padded_fp32", "FP32"), ("padded_int8", "INT8"),
                           ("strict", "FP32")):
        for n in range(1, FIXED + 1):
            lhs = numpy.arange(2 * n).astype(
                openvino_models.numpy_type(datatype)).reshape(n, 2)
            if name == "strict" and n != FIXED:
                with pytest.raises(Exception) as e:
                    infer(server, name, lhs, lhs, datatype)
                assert f"expected requests with batch size '{FIXED}', got " \
                    f"'{n}'... this error can be avoided by setting " \
                    "'ENABLE_BATCH_PADDING'" in str(e.value)
            else:
                total, _ = infer(server, name, lhs, lhs, datatype)
                assert total.tolist() == (lhs * 2).tolist()
    answer = server.infer("texts", {"inputs": [
        tensor("X", "BYTES", [1, 2], ["a", "bc"])]})
    assert answer.json()["outputs"][0]["data"] == ["a", "bc"]


@pytest.mark.parametrize("datatype", ["BYTES", "FP64"])
def test_only_rows_are_padded(make_server, datatype):
    """A ragged input has as many elements as it has, not max_batch_size."""
    x = openvino_models.parameter("X", "FP32", [-1, 2])
    line = openvino_models.parameter("LINE", datatype, [-1])
    size = op.reduce_sum(op.shape_of(line), op.constant([0]))
    model = openvino_models.model([x, line], {
        "Y": op.add(x, op.multiply(op.convert(size, "f32"),
                                   op.constant(numpy.float32(0))))})
    io = models.io_block("input", [
        ("X", "FP32", [2]),
        ("LINE", datatype, [-1], "allow_ragged_batch: true")]) \
        + models.io_block("output", [("Y", "FP32", [2])])
    server = make_server(lambda r: openvino_models.write(
        r, "line", model, extra=config(
            {"SKIP_OV_DYNAMIC_BATCHSIZE": "YES",
             "ENABLE_BATCH_PADDING": "YES"}, FIXED, io=io)))
    for rows in (1, FIXED):
        for width in (0, 1, 40):
            data = ["a" if datatype == "BYTES" else 1] * (rows * width)
            answer = server.infer("line", {"inputs": [
                tensor("X", "FP32", [rows, 2], [3] * 2 * rows),
                tensor("LINE", datatype, [rows, width], data)]})
            assert answer.status == 200, answer
            assert answer.json()["outputs"][0]["data"] == [3] * 2 * rows


@pytest.mark.parametrize("padding", ["NO", "YES"])
def test_a_file_that_is_made_for_one_batch_size(make_server, padding):
    """Its outputs keep that number of rows when its inputs are opened."""
    lhs, rhs = (openvino_models.parameter(n, "FP32", [FIXED, 2])
                for n in ("LHS", "RHS"))
    shape = op.constant(numpy.array([FIXED, 2], numpy.int64))
    model = openvino_models.model([lhs, rhs], {
        "SUM": op.reshape(op.add(lhs, rhs), shape, special_zero=False),
        "DIFFERENCE": op.reshape(op.subtract(lhs, rhs), shape,
                                 special_zero=False)})
    server = make_server(lambda r: openvino_models.write(
        r, "add", model, extra=config({"ENABLE_BATCH_PADDING": padding},
                                      FIXED)))
    for n in range(1, FIXED + 1):
        x = numpy.arange(2 * n, dtype=numpy.float32).reshape(n, 2)
        if padding == "NO" and n < FIXED:
            with pytest.raises(Exception) as e:
                infer(server, "add", x, x * 3)
            assert f"with batch size '{FIXED}', got '{n}'" in str(e.value)
            continue
        total, difference = infer(server, "add", x, x * 3)
        assert total.tolist() == (x * 4).tolist()
        assert difference.tolist() == (x * -2).tolist()
    server.wait_said(f"model 'add' is made for batches of {FIXED} rows")


def test_shapes_are_those_of_the_configuration(make_server):
    reshape = models.parameter_block({"RESHAPE_IO_LAYERS": "YES"})

    def io(dims):
        return models.io_block("input", [("LHS", "FP32", dims),
                                         ("RHS", "FP32", dims)]) \
            + models.io_block("output", [("SUM", "FP32", dims),
                                         ("DIFFERENCE", "FP32", dims)])

    def fill(repository):
        model = add_model((1, 2, 3))
        openvino_models.write(repository, "wide", model, extra=reshape
                              + "max_batch_size: 0\n" + io([2, 5, 7]))
        openvino_models.write(repository, "open", model, extra=reshape
                              + "max_batch_size: 0\n" + io([-1, -1, 3]))
        openvino_models.write(repository, "batched", model, extra=reshape
                              + "max_batch_size: 8\n" + io([-1, 6]))

    server = make_server(fill)
    for name, shapes in (("wide", [(2, 5, 7)]),
                         ("open", [(1, 2, 3), (4, 1, 3)]),
                         ("batched", [(1, 2, 6), (8, 9, 6)])):
        for shape in shapes:
            lhs = numpy.random.default_rng(0).integers(
                -9, 9, shape).astype(numpy.float32)
            total, _ = infer(server, name, lhs, lhs)
            assert total.tolist() == (lhs * 2).tolist()


def test_numbers_are_converted_to_the_types_of_the_configuration(make_server):
    server = make_server(lambda r: openvino_models.write(
        r, "add", add_model(), extra="max_batch_size: 4\n"
        + models.io_block("input", [("LHS", "UINT8", [2]),
                                    ("RHS", "INT32", [2])])
        + models.io_block("output", [("SUM", "INT64", [2]),
                                     ("DIFFERENCE", "FP32", [2])])))
    answer = server.infer("add", {"inputs": [
        tensor("LHS", "UINT8", [1, 2], [250, 3]),
        tensor("RHS", "INT32", [1, 2], [-1000, 70000])]})
    outputs = {o["name"]: o for o in answer.json()["outputs"]}
    assert outputs["SUM"]["datatype"] == "INT64"
    assert outputs["SUM"]["data"] == [-750, 70003]
    assert outputs["DIFFERENCE"]["data"] == [1250, -69997]


@pytest.mark.parametrize("key, value, words", [
    ("PERFORMANCE_HINT", "fast",
     "'PERFORMANCE_HINT' to be LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT, got "
     "fast"),
    ("INFERENCE_NUM_THREADS", "-1", "to be a non-negative number, got -1"),
    ("INFERENCE_NUM_THREADS", "99999999999", "to be a non-negative number"),
    ("COMPILATION_NUM_THREADS", "two", "to be a non-negative number, got two"),
    ("HINT_BF16", "NO", "'HINT_BF16' to be YES, got NO"),
    ("NUM_STREAMS", "1.5", "to be either AUTO/NUMA/<int_value>, got 1.5"),
    ("SKIP_OV_DYNAMIC_BATCHSIZE", "maybe", "to be YES or NO, got maybe"),
    ("ENABLE_BATCH_PADDING", "1", "to be YES or NO, got 1"),
    ("RESHAPE_IO_LAYERS", "true", "to be YES or NO, got true"),
    ("TARGET_DEVICE", "XPU", "XPU"),
    ("CPU_EXTENSION_PATH", "/nowhere/libextension.so",
     "'CPU_EXTENSION_PATH': cannot load \"/nowhere/libextension.so\""),
])
def test_a_wrong_value_is_named(make_server, key, value, words):
    server = make_server(lambda r: openvino_models.write(
        r, "add", add_model(), extra=config({key: value}, 4)),
        http=EXPLICIT, parts=PARTS, allow_alarms=["model=add"])
    answer = ask(server, "load", "add")
    assert answer.status == 400, answer
    reason, = {r["reason"] for r in rows(server, "add")}
    assert words in reason
    assert 'model "' not in reason


def test_a_setting_with_a_wrong_value_fails_loads(make_server):
    server = make_server(
        lambda r: openvino_models.write(r, "add", add_model()), wait="live",
        http="    inference_backend_config openvino "
             "default-max-batch-size=x;\n")
    server.wait_log('backend setting "default-max-batch-size" is "x"; it must '
                    "be a whole number from ")
