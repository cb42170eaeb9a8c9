"""The onnxruntime backend, with models made here by the onnx package."""

import concurrent.futures
import re

import ml_dtypes
import numpy
import onnx
import pytest
import tritonclient.http as client
from onnx import TensorProto, helper

from lib import batches, models, process, repository
from lib.wire import tensor

ELEM = {"BOOL": TensorProto.BOOL, "UINT8": TensorProto.UINT8,
        "UINT16": TensorProto.UINT16, "UINT32": TensorProto.UINT32,
        "UINT64": TensorProto.UINT64, "INT8": TensorProto.INT8,
        "INT16": TensorProto.INT16, "INT32": TensorProto.INT32,
        "INT64": TensorProto.INT64, "FP16": TensorProto.FLOAT16,
        "BF16": TensorProto.BFLOAT16, "FP32": TensorProto.FLOAT,
        "FP64": TensorProto.DOUBLE, "BYTES": TensorProto.STRING}


def graph(nodes, inputs, outputs, initializers=()):
    def value(name, datatype, shape):
        return helper.make_tensor_value_info(name, ELEM[datatype], shape)

    g = helper.make_graph(nodes, "g", [value(*i) for i in inputs],
                          [value(*o) for o in outputs], list(initializers))
    model = helper.make_model(
        g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def copy_model(datatype, shape=("n",)):
    return graph([helper.make_node("Identity", ["X"], ["Y"])],
                 [("X", datatype, shape)], [("Y", datatype, shape)])


def add_model():
    """SUM = LHS + RHS over [batch, 2], MASKED = RHS where MASK."""
    return graph(
        [helper.make_node("Add", ["LHS", "RHS"], ["SUM"]),
         helper.make_node("Cast", ["MASK"], ["M"], to=TensorProto.FLOAT),
         helper.make_node("Mul", ["RHS", "M"], ["MASKED"])],
        [("LHS", "FP32", ["b", 2]), ("RHS", "FP32", ["b", 2]),
         ("MASK", "BOOL", ["b", 2])],
        [("SUM", "FP32", ["b", 2]), ("MASKED", "FP32", ["b", 2])])


def write(repository, name, data, config=None, extra="", version=1):
    if config is None:
        config = f'name: "{name}"\nbackend: "onnxruntime"\n' + extra
    return models.write_model(repository, name, config, (version,),
                              {version: {"model.onnx": data}})


def write_copy(repository, datatype, extra=""):
    """A model without a batch dimension: the configuration says so."""
    return write(repository, "copy", copy_model(datatype),
                 extra="max_batch_size: 0\n"
                 + models.io_block("input", [("X", datatype, [-1])])
                 + models.io_block("output", [("Y", datatype, [-1])])
                 + extra)


@pytest.mark.parametrize("datatype", models.ALL_DATATYPES)
def test_every_datatype(make_server, datatype):
    server = make_server(lambda r: write_copy(r, datatype))
    if datatype == "BYTES":
        data = numpy.array([b"", b"one", "zwölf".encode()], numpy.object_)
    elif datatype == "BF16":
        data = numpy.array([1.0, -2.5, 128], ml_dtypes.bfloat16)
    else:
        plain = {"FP16": "float16", "FP32": "float32", "FP64": "float64",
                 "BOOL": "bool"}.get(datatype, datatype.lower())
        data = numpy.array([0, 1, 1, 0, 1], plain)
    with client.InferenceServerClient(server.url) as c:
        x = client.InferInput("X", list(data.shape), datatype)
        x.set_data_from_numpy(data)
        got = c.infer("copy", [x]).as_numpy("Y")
        assert got.tolist() == data.tolist()


@pytest.mark.parametrize("datatype", ["FP32", "BYTES"])
def test_a_scalar_has_the_configured_dims(make_server, datatype):
    """Any dims of one element; the answer has them, too."""
    def fill(repository):
        for rank in 1, 2, 3:
            write(repository, f"of_{rank}", copy_model(datatype, ()),
                  extra="max_batch_size: 0\n"
                  + models.io_block("input", [("X", datatype, [1] * rank)])
                  + models.io_block("output", [("Y", datatype, [1] * rank)]))

    server = make_server(fill)
    value = "word" if datatype == "BYTES" else 2.5
    for rank in 1, 2, 3:
        answer = server.infer(f"of_{rank}", {"inputs": [
            tensor("X", datatype, [1] * rank, [value])]})
        assert answer.status == 200, answer
        got, = answer.json()["outputs"]
        assert (got["shape"], got["data"]) == ([1] * rank, [value])
        answer = server.infer(f"of_{rank}", {"inputs": [
            tensor("X", datatype, [1] * (rank + 1), [value])]})
        assert answer.status == 400, answer


def test_a_scalar_where_the_file_has_an_open_dimension(make_server):
    """The shape of Y is the request's to say."""
    data = graph([helper.make_node("Reshape", ["X", "S"], ["Y"])],
                 [("X", "FP32", ("n",)), ("S", "INT64", ("rank",))],
                 [("Y", "FP32", ("m",))])
    server = make_server(lambda repository: write(
        repository, "reshape", data, extra="max_batch_size: 0\n"
        + models.io_block("input", [("X", "FP32", [-1]), ("S", "INT64", [-1])])
        + models.io_block("output", [("Y", "FP32", [-1])])))
    for x, shape, want in [([7.0], [], [1]), ([7.0, 8.0], [2], [2])]:
        answer = server.infer("reshape", {"inputs": [
            tensor("X", "FP32", [len(x)], x),
            tensor("S", "INT64", [len(shape)], shape)]})
        assert answer.status == 200, answer
        got, = answer.json()["outputs"]
        assert (got["shape"], got["data"]) == (want, x)


def test_an_output_that_is_an_input(make_server):
    """The library writes no memory that it is given for it."""
    data = graph([helper.make_node("Relu", ["X"], ["Y"])],
                 [("X", "FP32", ["n", 4])],
                 [("X", "FP32", ["n", 4]), ("Y", "FP32", ["n", 4])])
    server = make_server(lambda r: write(r, "echo", data,
                                         extra="max_batch_size: 8\n"))
    for i in range(1, 20):
        values = [float(i)] * 4 + [-float(i)] * 4
        answer = server.infer("echo", {"inputs": [
            tensor("X", "FP32", [2, 4], values)]})
        assert answer.status == 200, answer
        got = {o["name"]: o["data"] for o in answer.json()["outputs"]}
        assert got == {"X": values, "Y": [max(v, 0) for v in values]}, i


def test_strings_with_special_content(make_server):
    server = make_server(lambda r: write_copy(r, "BYTES"))
    values = ["", "a", "x" * 100_000, "Ünï\u0000code"]
    answer = server.infer("copy", {"inputs": [
        tensor("X", "BYTES", [4], values)]})
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"] == values


def test_configuration_is_completed_from_the_model(make_server):
    """No config.pbtxt at all: everything comes from model.onnx."""
    server = make_server(lambda r: models.write_model(
        r, "add", None, (1,), {1: {"model.onnx": add_model()}}))
    config = server.get("/v2/models/add/config").json()
    assert config["backend"] == "onnxruntime"
    assert config["max_batch_size"] == 4            # Triton's default
    inputs = {i["name"]: (i["data_type"], i["dims"])
              for i in config["input"]}
    assert inputs == {"LHS": ("TYPE_FP32", [2]), "RHS": ("TYPE_FP32", [2]),
                      "MASK": ("TYPE_BOOL", [2])}
    metadata = server.get("/v2/models/add").json()
    assert metadata["inputs"][0]["shape"] == [-1, 2]
    check_add(server, 3)


def test_default_max_batch_size_can_be_set(make_server):
    server = make_server(
        lambda r: write(r, "add", add_model()),
        http="    inference_backend_config onnxruntime "
             "default-max-batch-size=32;")
    config = server.get("/v2/models/add/config").json()
    assert config["max_batch_size"] == 32
    check_add(server, 32)
    assert server.infer("add", add_request(33)).status == 400


@pytest.mark.parametrize("setting", [
    "default-max-batch-size=x", "default-max-batch-size=2.5",
    "default-max-batch-size=99999999999", "intra_op_thread_count=-1",
    "intra_op_thread_count=1025", "inter_op_thread_count=all",
    "enable-global-threadpool=2"])
def test_a_setting_with_a_wrong_value_fails_loads(make_server, setting):
    key, value = setting.split("=")
    server = make_server(
        lambda r: write(r, "add", add_model()), wait="live",
        http=f"    inference_backend_config onnxruntime {setting};")
    server.wait_log(f'backend setting "{key}" is "{value}"; it must be ')


def test_model_without_a_batch_dimension_is_not_batched(make_server):
    server = make_server(lambda r: write(
        r, "fixed", copy_model("FP32", (2, 3))))
    config = server.get("/v2/models/fixed/config").json()
    assert config["max_batch_size"] == 0
    assert config["input"][0]["dims"] == [2, 3]
    answer = server.infer("fixed", {"inputs": [
        tensor("X", "FP32", [2, 3], [1, 2, 3, 4, 5, 6])]})
    assert answer.json()["outputs"][0]["data"] == [1, 2, 3, 4, 5, 6]


def add_request(rows, seed=0):
    rng = numpy.random.default_rng(seed)
    lhs = rng.integers(0, 100, rows * 2).astype(float).tolist()
    rhs = rng.integers(0, 100, rows * 2).astype(float).tolist()
    mask = rng.integers(0, 2, rows * 2).astype(bool).tolist()
    return {"inputs": [tensor("LHS", "FP32", [rows, 2], lhs),
                       tensor("RHS", "FP32", [rows, 2], rhs),
                       tensor("MASK", "BOOL", [rows, 2], mask)]}


def check_add(server, rows, seed=0):
    request = add_request(rows, seed)
    answer = server.infer("add", request)
    assert answer.status == 200, answer
    got = {o["name"]: o["data"] for o in answer.json()["outputs"]}
    lhs, rhs, mask = (i["data"] for i in request["inputs"])
    assert got["SUM"] == [a + b for a, b in zip(lhs, rhs)]
    assert got["MASKED"] == [b if m else 0 for b, m in zip(rhs, mask)]


@pytest.mark.parametrize("parameters", [
    {}, {"intra_op_thread_count": "1", "inter_op_thread_count": "2",
         "execution_mode": "1"}])
def test_thread_parameters(make_server, parameters):
    server = make_server(lambda r: write(
        r, "add", add_model(), extra=models.parameter_block(parameters)))
    check_add(server, 4)


@pytest.mark.parametrize("level", [-1, 0, 1, 2])
def test_graph_optimisation_level(make_server, level):
    server = make_server(lambda r: write(
        r, "add", add_model(),
        extra=f"optimization {{ graph {{ level: {level} }} }}\n"))
    check_add(server, 2)


def test_several_instances_under_load(make_server):
    server = make_server(lambda r: write(
        r, "add", add_model(),
        extra="max_batch_size: 8\ninstance_group [ { count: 3 "
              "kind: KIND_CPU } ]\n"), workers=2)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: check_add(server, 1 + i % 8, i), range(200)))


def test_requested_outputs_only(make_server):
    server = make_server(lambda r: write(r, "add", add_model()))
    answer = server.infer("add", dict(add_request(1),
                                      outputs=[{"name": "MASKED"}]))
    assert [o["name"] for o in answer.json()["outputs"]] == ["MASKED"]


def test_binary_input_at_any_offset_of_the_body(make_server):
    """Zero copy or not: a tensor may begin at any byte of the body."""
    server = make_server(lambda r: write_copy(r, "FP64"))
    data = numpy.arange(100, dtype=numpy.float64)
    for pad in range(16):
        answer = server.infer("copy", {
            "id": "x" * pad,
            "inputs": [tensor("X", "FP64", [100], binary_data_size=800)],
            "parameters": {"binary_data_output": True}}, data.tobytes())
        assert answer.status == 200, answer
        assert answer.split()[1] == data.tobytes()


def test_rejected_shape_does_not_reach_the_runtime(make_server):
    server = make_server(lambda r: write(r, "add", add_model()))
    request = add_request(1)
    request["inputs"][0]["shape"] = [2, 1]
    answer = server.infer("add", request)
    assert answer.status == 400, answer
    assert "LHS" in answer.error
    check_add(server, 1)


def test_error_inside_the_runtime_is_an_answer(make_server):
    """MatMul of shapes that fit the configuration but not each other."""
    data = graph([helper.make_node("MatMul", ["A", "B"], ["C"])],
                 [("A", "FP32", ["m", "k"]), ("B", "FP32", ["l", "n"])],
                 [("C", "FP32", ["m", "n"])])
    server = make_server(lambda r: write(
        r, "mul", data, extra="max_batch_size: 0\n"
        + models.io_block("input", [("A", "FP32", [-1, -1]),
                                    ("B", "FP32", [-1, -1])])
        + models.io_block("output", [("C", "FP32", [-1, -1])])))
    for _ in range(3):
        answer = server.infer("mul", {"inputs": [
            tensor("A", "FP32", [1, 2], [1, 2]),
            tensor("B", "FP32", [3, 1], [1, 2, 3])]})
        assert answer.status in (400, 500), answer
        assert answer.error.startswith("onnx runtime error ")
        assert "MatMul" in answer.error or "dimension" in answer.error
        answer = server.infer("mul", {"inputs": [
            tensor("A", "FP32", [1, 2], [1, 2]),
            tensor("B", "FP32", [2, 1], [3, 4])]})
        assert answer.json()["outputs"][0]["data"] == [11]


@pytest.mark.parametrize("case,words", [
    ("rubbish", []), ("missing", ["model.onnx"]), ("type", ["LHS"]),
    ("name", ["NOPE"]), ("dims", ["LHS"])])
def test_model_that_cannot_be_loaded(make_server, case, words):
    def fill(repository):
        write(repository, "good", add_model())
        data, extra = add_model(), ""
        if case == "rubbish":
            data = b"this is no model"
        if case in ("type", "name", "dims"):
            lhs = ("LHS", "FP32", [2])
            if case == "type":
                lhs = ("LHS", "INT64", [2])
            elif case == "name":
                lhs = ("NOPE", "FP32", [2])
            elif case == "dims":
                lhs = ("LHS", "FP32", [3])
            extra = "max_batch_size: 4\n" + models.io_block(
                "input", [lhs, ("RHS", "FP32", [2]), ("MASK", "BOOL", [2])]
            ) + models.io_block("output", [("SUM", "FP32", [2])])
        folder = write(repository, "bad", data, extra=extra)
        if case == "missing":
            (folder / "1/model.onnx").unlink()

    server = make_server(fill, wait="live")
    assert server.wait_for("/v2/models/good/ready")
    server.wait_log(r"failed[^\n]*bad|bad[^\n]*(failed|unable|cannot)")
    for word in words:
        server.wait_log(word)
    assert server.get("/v2/models/bad/ready").status in (404, 503)
    assert server.get("/v2/health/ready").status == 400


def test_gpu_instance_without_a_gpu_says_so(make_server):
    def fill(repository):
        write(repository, "good", add_model())
        write(repository, "bad", add_model(),
              extra="instance_group [ { count: 1 kind: KIND_GPU "
                    "gpus: [ 0 ] } ]\n")

    server = make_server(fill, wait="live")
    assert server.wait_for("/v2/models/good/ready")
    server.wait_log(r"(?i)bad[^\n]*gpu|gpu[^\n]*bad")
    assert server.get("/v2/models/bad/ready").status in (404, 503)


def test_default_model_filename(make_server):
    server = make_server(lambda r: models.write_model(
        r, "copy", 'backend: "onnxruntime"\n'
        'default_model_filename: "net.onnx"\n', (1,),
        {1: {"net.onnx": copy_model("INT32", (2,))}}))
    answer = server.infer("copy", {"inputs": [
        tensor("X", "INT32", [2], [1, 2])]})
    assert answer.json()["outputs"][0]["data"] == [1, 2]


def test_platform_instead_of_backend(make_server):
    server = make_server(lambda r: write(
        r, "copy", copy_model("INT32"), 'platform: "onnxruntime_onnx"\n'))
    assert server.get("/v2/models/copy").json()["platform"] \
        == "onnxruntime_onnx"


WARMUP = """model_warmup { name: "cold" batch_size: 2 count: 3
    inputs { key: "X" value { data_type: TYPE_FP32 dims: 2 %s } } }
"""


@pytest.mark.parametrize("data", ["zero_data: true", "random_data: true",
                                  'input_data_file: "two"'])
def test_warm_up(make_server, data):
    """Two instances, three runs of two requests each before the model is
    ready."""
    def fill(repository):
        folder = write(repository, "copy", copy_model("FP32", ("n", 2)),
                       extra="max_batch_size: 4\ninstance_group { count: 2"
                       " kind: KIND_CPU }\n" + WARMUP % data)
        (folder / "warmup").mkdir()
        (folder / "warmup/two").write_bytes(bytes(8))

    server = make_server(fill, parts="all")
    row = server.get("/v2/models/copy/stats").json()["model_stats"][0]
    assert int(row["inference_count"]) == 2 * 3 * 2
    assert int(row["execution_count"]) == 2 * 3


def test_warm_up_that_fails_fails_the_load(make_server):
    """The file has fewer bytes than the tensor."""
    def fill(repository):
        folder = write(repository, "copy", copy_model("FP32", ("n", 2)),
                       extra="max_batch_size: 4\n"
                       + WARMUP % 'input_data_file: "two"')
        (folder / "warmup").mkdir()
        (folder / "warmup/two").write_bytes(bytes(7))

    server = make_server(fill, wait="live")
    server.wait_log("(?i)expects 8 bytes, but the data provided from two"
                    "[^\n]*7 bytes")
    assert server.get("/v2/models/copy/ready").status in (404, 503)


def core_threads(make_server, extra):
    server = make_server(lambda r: write(
        r, "add", add_model(), extra="instance_group { count: 2"
        " kind: KIND_CPU }\n" + extra))
    core, = server.cores()
    check_add(server, 1)
    return process.threads(core)


def test_instances_have_one_thread_unless_configured(make_server):
    """Threads of the library beside the instance's own."""
    without = core_threads(make_server, "")
    for count, more in ((1, 0), (4, 2 * 3)):
        assert core_threads(make_server, models.parameter_block(
            {"intra_op_thread_count": count})) == without + more


def test_instances_that_share_a_session(make_server):
    """One session of the library, with its threads, for each device."""
    shared = models.parameter_block({"intra_op_thread_count": 4,
                                     "share_session_between_instances": 1})
    without = core_threads(make_server, "")
    assert core_threads(make_server, shared) == without + 3
    server = make_server(lambda r: write(
        r, "add", add_model(),
        extra="max_batch_size: 8\ninstance_group [ { count: 3 "
        "kind: KIND_CPU }, { count: 1 kind: KIND_CPU } ]\n" + shared),
        workers=2, parts=repository.PARTS, http=repository.EXPLICIT)
    for _ in range(2):
        assert repository.ask(server, "load", "add").status == 200
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: check_add(server, 1 + i % 8, i),
                          range(200)))
        assert repository.ask(server, "unload", "add").status == 200
        repository.wait_state(server, "add", "UNAVAILABLE")
    server.wait_said("Reusing session for instance of model 'add'", 2 * 3)


def test_response_cache(make_server):
    """The second of two equal requests is answered without a run."""
    server = make_server(
        lambda r: write(r, "add", add_model(),
                        extra="response_cache { enable: true }\n"),
        http="    inference_response_cache local size=1m;", parts="all")
    for _ in range(3):
        check_add(server, 2, seed=5)
    row = server.get("/v2/models/add/stats").json()["model_stats"][0]
    assert int(row["execution_count"]) == 1
    assert int(row["inference_stats"]["cache_hit"]["count"]) == 2


def test_fields_without_effect_are_named_once(make_server):
    server = make_server(lambda r: write(
        r, "add", add_model(), extra="optimization { priority: PRIORITY_MAX"
        " graph { level: 1 } cuda { graphs: true } }\n"
        "instance_group { count: 2 kind: KIND_CPU }\n"))
    check_add(server, 1)
    pattern = r'model "add": its backend does not act on ([^\n]*) of' \
        " the configuration"
    server.wait_log(pattern)
    said = re.findall(pattern, server.log_text())
    assert said == ["optimization.priority, optimization.cuda"]


def test_model_of_more_than_two_gib(make_server):
    """Its weights lie in a file beside it, most of which is a hole."""
    rows, columns = 2304, 262144
    weights = onnx.TensorProto(
        name="W", data_type=TensorProto.FLOAT, dims=[rows, columns],
        data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "weights", "offset": 0,
                       "length": rows * columns * 4}.items():
        weights.external_data.add(key=key, value=str(value))
    data = helper.make_model(
        helper.make_graph(
            [helper.make_node("Gather", ["W", "I"], ["Y"])], "g",
            [helper.make_tensor_value_info("I", TensorProto.INT64, ["n"])],
            [helper.make_tensor_value_info("Y", TensorProto.FLOAT,
                                           ["n", columns])], [weights]),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8).SerializeToString()

    def fill(repository):
        folder = write(
            repository, "big", data, extra="max_batch_size: 0\n"
            + models.io_block("input", [("I", "INT64", [-1])])
            + models.io_block("output", [("Y", "FP32", [-1, columns])])
            + "instance_group { count: 1 kind: KIND_CPU }\n")
        with (folder / "1/weights").open("wb") as file:
            file.truncate(rows * columns * 4)
            file.seek((rows - 1) * columns * 4)
            file.write(numpy.float32([7.5]).tobytes())

    server = make_server(fill)
    answer = server.infer("big", {
        "inputs": [tensor("I", "INT64", [1], [rows - 1])],
        "outputs": [{"name": "Y", "parameters": {"classification": 1}}]})
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"] == ["7.500000:0"]
    core, = server.cores()
    assert process.held_bytes([core]) < 256 << 20    # the file is mapped


def test_one_request_of_a_batch_is_wrong(make_server):
    """The library's error has no row."""
    table = helper.make_tensor("TABLE", TensorProto.FLOAT, [3], [5, 6, 7])
    data = graph([helper.make_node("Gather", ["TABLE", "X"], ["Y"])],
                 [("X", "INT64", ["b", 1])], [("Y", "FP32", ["b", 1])],
                 [table])
    server = make_server(
        lambda r: write(r, "m", data, extra=batches.JOINED), parts="all")
    error = batches.one_is_wrong(
        server, "m", [tensor("X", "INT64", [1, 1], [9])],
        [tensor("X", "INT64", [1, 1], [2])])
    assert "out of data bounds" in error, error
