"""Names of tensors, kinds of arguments, sequences, and what a load rejects."""

import concurrent.futures
import io
import re
import zipfile

import pytest

from lib import batches, pytorch_models
from lib.pytorch_models import DIGITS, FILES
from lib.repository import PARTS, settled
from lib.server import Server
from lib.wire import tensor

pytorch_models.needs_runtime()

NO_BATCH = "max_batch_size: 0\n"
X = [("x", "FP32", [-1])]
Y = [("y__0", "FP32", [-1])]
PAIR_IN = [("lhs", "FP32", [-1]), ("rhs", "FP32", [-1])]
PAIR_OUT = [("a__0", "FP32", [-1]), ("b__1", "FP32", [-1])]


def values(answer):
    assert answer.status == 200, answer
    return {o["name"]: o["data"] for o in answer.json()["outputs"]}


def infer(server, model, inputs, **parameters):
    request = {"inputs": [tensor(name, *rest) for name, *rest in inputs]}
    if parameters:
        request["parameters"] = parameters
    return server.infer(model, request)


def floats(name, *numbers):
    return name, "FP32", [len(numbers)], list(numbers)


@pytest.fixture(scope="module")
def named_server():
    def fill(repository):
        def write(name, file, inputs, outputs, extra=NO_BATCH, **more):
            pytorch_models.write(repository, name, file, inputs, outputs,
                                 extra, **more)

        write("arguments", "pair", PAIR_IN[::-1], PAIR_OUT)
        write("indexes", "pair", [("INPUT__1", "FP32", [-1]),
                                  ("INPUT__0", "FP32", [-1])],
              [("OUTPUT__1", "FP32", [-1]), ("OUTPUT__0", "FP32", [-1])])
        write("order", "pair", [("first", "FP32", [-1]),
                                ("second", "FP32", [-1])],
              [("sum", "FP32", [-1]), ("difference", "FP32", [-1])])
        write("one_output", "pair", PAIR_IN, [("OUTPUT__1", "FP32", [-1])])
        write("dict", "dict", [
            ("a", "FP32", [-1]), ("b", "FP32", [-1]),
            ("c", "FP32", [-1], "optional: true")], Y)
        write("optional", "optional", [
            ("x", "FP32", [-1]), ("bias", "FP32", [-1], "optional: true")], Y)
        write("no_bias", "optional", X, Y)
        write("in_place", "in_place", X, Y)
        write("positive", "positive", X, Y)
        write("joined", "positive", X, Y, batches.JOINED)
        write("wide", "copy", X, [("y__0", "FP32", [3])])
        write("typed", "copy", X, [("y__0", "INT32", [-1])])
        write("rows", "modes", [("x", "FP32", [1])],
              [("y__0", "INT64", [2])], "max_batch_size: 8\n")
        write("sums", "sums",
              [("values", "FP32", [-1], "allow_ragged_batch: true")],
              [("y__0", "FP32", [1])], """
max_batch_size: 8
dynamic_batching { max_queue_delay_microseconds: 300000
                   preferred_batch_size: 3 }
batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ends"
              data_type: TYPE_FP32 source_input: "values" }
""")
        write("running", "running", [("INPUT__0", "FP32", [1])],
              [("OUTPUT__0", "FP32", [1])], """
max_batch_size: 4
sequence_batching {
  control_input { name: "START__1"
    control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
  state { input_name: "STATE__2" output_name: "STATE_OUT__1"
          data_type: TYPE_FP32 dims: [ 1 ] }
}
""")
        write("package", "digits", [("INPUT__0", "FP32", [-1, -1])],
              [("OUTPUT__0", "FP32", [10])], "max_batch_size: 8\n",
              platform="torch_aoti")
        for name, kind, dims, rows in (("fp64", "FP64", [8, 8], 8),
                                       ("flat", "FP32", [64], 8),
                                       ("single", "FP32", [8, 8], 0)):
            write(f"package_{name}", "digits", [("INPUT__0", kind, dims)],
                  [("OUTPUT__0", "FP32", [10])],
                  f"max_batch_size: {rows}\n", platform="torch_aoti")

    with Server(fill, parts="all") as s:
        yield s


def test_inputs_by_the_arguments_of_forward(named_server):
    got = values(infer(named_server, "arguments",
                       [floats("rhs", 1, 2), floats("lhs", 10, 20)]))
    assert got == {"a__0": [11, 22], "b__1": [9, 18]}


def test_inputs_and_outputs_by_index(named_server):
    got = values(infer(named_server, "indexes",
                       [floats("INPUT__1", 1), floats("INPUT__0", 10)]))
    assert got == {"OUTPUT__0": [11], "OUTPUT__1": [9]}
    got = values(infer(named_server, "one_output",
                       [floats("lhs", 10), floats("rhs", 1)]))
    assert got == {"OUTPUT__1": [9]}


def test_other_names_are_taken_in_order(named_server):
    got = values(infer(named_server, "order",
                       [floats("second", 1), floats("first", 10)]))
    assert got == {"sum": [11], "difference": [9]}
    named_server.wait_log("inputs of model 'order' are neither all arguments")


def test_a_dict_of_tensors(named_server):
    inputs = [floats("b", 10, 20), floats("a", 1, 2)]
    assert values(infer(named_server, "dict", inputs)) == {"y__0": [9, 18]}
    inputs.append(floats("c", 2, 3))
    assert values(infer(named_server, "dict", inputs)) == {"y__0": [18, 54]}


def test_an_optional_argument(named_server):
    x = floats("x", 1, 2)
    assert values(infer(named_server, "optional", [x])) == {"y__0": [1, 2]}
    assert values(infer(named_server, "optional", [x, floats("bias", 5, 5)])) \
        == {"y__0": [6, 7]}
    assert values(infer(named_server, "no_bias", [x])) == {"y__0": [1, 2]}


def test_an_operator_in_place(named_server):
    """It writes into a copy of the request's bytes."""
    for _ in range(3):
        got = values(infer(named_server, "in_place", [floats("x", 1, 2)]))
        assert got == {"y__0": [2, 3]}


def test_an_error_of_the_model_is_its_requests_alone(named_server):
    answer = infer(named_server, "positive", [floats("x", -1)])
    assert answer.status == 500
    # the cause comes first: the text may be long, and is cut in the log
    assert re.match("PyTorch execute failure: [^\n]*a negative number\n",
                    answer.json()["error"])
    named_server.wait_log("PyTorch execute failure: .*a negative number.*"
                          "Traceback of TorchScript")
    assert values(infer(named_server, "positive", [floats("x", 1)])) \
        == {"y__0": [1]}


def test_one_request_of_a_batch_is_wrong(named_server):
    error = batches.one_is_wrong(
        named_server, "joined", [tensor("x", "FP32", [1, 2], [1, -1])],
        [tensor("x", "FP32", [1, 2], [1, 2])])
    assert "a negative number" in error, error


def test_an_output_of_another_datatype(named_server):
    answer = infer(named_server, "typed", [floats("x", 1)])
    assert answer.status == 400
    assert "configuration expects datatype TYPE_INT32 for output 'y__0', " \
        "model provides TYPE_FP32" in answer.json()["error"]


def test_an_output_of_other_dims_than_configured(named_server):
    """An answer has the shape that the model gives, as in Triton."""
    answer = infer(named_server, "wide", [floats("x", 1, 2)])
    assert values(answer) == {"y__0": [1, 2]}
    assert answer.json()["outputs"][0]["shape"] == [2]


def test_an_output_of_other_rows_than_the_batch(named_server):
    answer = infer(named_server, "rows", [("x", "FP32", [3, 1], [1, 2, 3])])
    assert answer.status == 500
    assert "its first dimension is 2, the batch has 3 rows" \
        in answer.json()["error"]


def test_an_empty_tensor(named_server):
    assert values(infer(named_server, "no_bias",
                        [("x", "FP32", [0], [])])) == {"y__0": []}


def test_a_package_rejects_other_shapes(named_server):
    """Its code would read beyond them."""
    answer = infer(named_server, "package",
                   [("INPUT__0", "FP32", [1, 4, 4], [0] * 16)])
    assert answer.status == 500
    assert re.match(r"PyTorch execute failure: .* expected: 8, but got: 4 "
                    r'\(input "INPUT__0" has TYPE_FP32 and shape \[1,4,4\]\)',
                    answer.json()["error"])
    answer = infer(named_server, "package",
                   [("INPUT__0", "FP32", [1, 8, 8], [0] * 64)])
    assert len(values(answer)["OUTPUT__0"]) == 10


@pytest.mark.parametrize("model,datatype,shape", [
    ("package_fp64", "FP64", [1, 8, 8]), ("package_flat", "FP32", [1, 64]),
    ("package_single", "FP32", [8, 8])])
def test_a_package_of_other_tensors_than_configured(
        named_server, model, datatype, shape):
    """Its file does not say which it takes: the first request is told."""
    answer = infer(named_server, model,
                   [("INPUT__0", datatype, shape, [0] * 64)])
    assert answer.status == 500
    assert re.match(
        r"PyTorch execute failure: input_handles\[0\]: unmatched .*"
        rf'\(input "INPUT__0" has TYPE_{datatype} and shape '
        + re.escape(str(shape).replace(" ", "")), answer.json()["error"])


def test_ragged_inputs_and_batch_inputs(named_server):
    data = [[1, 2, 3], [10], [5, 5]]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda d: infer(
            named_server, "sums", [("values", "FP32", [1, len(d)], d)]), data))
    assert [values(a)["y__0"] for a in answers] == [[6], [10], [10]]


def test_a_sequence_with_state_and_control(named_server):
    def step(number, sequence, **flags):
        return values(infer(
            named_server, "running",
            [("INPUT__0", "FP32", [1, 1], [number])], sequence_id=sequence,
            **flags))["OUTPUT__0"]

    assert step(1, 7, sequence_start=True) == [1]
    assert step(5, 8, sequence_start=True) == [5]
    assert step(2, 7) == [3]
    assert step(6, 8, sequence_end=True) == [11]
    assert step(3, 7, sequence_end=True) == [6]
    assert step(4, 7, sequence_start=True, sequence_end=True) == [4]


# ---- loads that are rejected

def script(name):
    return (FILES / f"{name}.pt").read_bytes()


def reworded(name, old, new):
    """The script with other code."""
    to = io.BytesIO()
    with zipfile.ZipFile(FILES / f"{name}.pt") as z, \
            zipfile.ZipFile(to, "w") as other:
        for entry in z.namelist():
            data = z.read(entry)
            if entry.endswith(".py"):
                assert old in data
                data = data.replace(old, new)
            other.writestr(entry, data)
    return to.getvalue()


def rejects():
    """name: (what is in the repository, what its reason says, in which FILE is
    the script's path)."""
    def case(file, inputs, outputs, extra=NO_BATCH, **more):
        return file, inputs, outputs, extra, more

    two = [("a__0", "FP32", [-1]), ("b__2", "FP32", [-1])]
    return {
        "no_file": (case("copy", X, Y, NO_BATCH
                         + 'default_model_filename: "other.pt"\n'),
                    "/other.pt' for model instance 'no_file'"),
        "outside": (case("copy", X, Y, NO_BATCH
                         + 'default_model_filename: "../../x.pt"\n'),
                    "x.pt"),
        "truncated": (case("copy", X, Y, data=script("copy")[:900]),
                      "Internal: failed to load model 'truncated': FILE: "),
        "operator": (case("copy", X, Y, data=reworded(
            "copy", b"torch.clone(x)", b"ops.own.unheard(x)")),
            "Unknown builtin op: own::unheard"),
        "code": (case("copy", X, Y, data=reworded(
            "copy", b"return", b"retrun")),
            "failed to load model 'code': FILE: "),
        "no_archive": (case("copy", X, Y, data=b"text"), "zip archive"),
        "empty": (case("copy", X, Y, data=b""),
                  "failed to load model 'empty': FILE: "),
        "other_arguments": (case("pair", X, PAIR_OUT),
                            "unable to load model 'other_arguments', "
                            "configuration expects 1 inputs, model provides 2"),
        "more_arguments": (case("copy", [("x__0", "FP32", [-1]),
                                         ("x__1", "FP32", [-1])], Y),
                           "unable to load model 'more_arguments', "
                           "configuration expects 2 inputs, model provides 1"),
        "no_argument": (case("copy", [("INPUT__3", "FP32", [-1])], Y),
                        "INPUT__3"),
        "no_output": (case("pair", PAIR_IN, two),
                      "The output b__2 in the model configuration refers to "
                      "an output index which doesn't exist. This model has 2 "
                      "outputs"),
        "twice": (case("pair", [("IN__0", "FP32", [-1]),
                                ("ALSO__0", "FP32", [-1])], PAIR_OUT),
                  "inputs 'IN__0' and 'ALSO__0' are both argument 0"),
        "texts_for_tensor": (case("copy", [("x", "BYTES", [-1])], Y),
                             "argument 'x' of model 'texts_for_tensor' is a "
                             "tensor"),
        "tensor_for_texts": (case("texts", [("words", "INT8", [-1])],
                                  [("u__0", "BYTES", [-1])]),
                             "is a list of strings"),
        "texts_in_two_dims": (case("texts", [("words", "BYTES", [2, 2])],
                                   [("u__0", "BYTES", [-1])]),
                              "only supports 1 dimensional List of String as "
                              "input"),
        "no_default": (case("copy", [("x", "FP32", [-1],
                                      "optional: true")], Y),
                       "'optional' is set to true for input 'x' while the "
                       "backend model doesn't support optional input"),
        "number": (case("number", X, Y), "Unsupported: FILE: output must be "
                   "of type Tensor, List[str] or Tuple"),
        "tensors": (case("tensors", X, Y), "FILE: output must be of type "
                    "Tensor, List[str] or Tuple"),
        "scaled": (case("scaled", X + [("factor", "FP32", [1])], Y),
                   "Unsupported: FILE: An input of type 'float' was detected "
                   "in the model"),
        "control": (case("running", [("INPUT__0", "FP32", [1])],
                         [("OUTPUT__0", "FP32", [1])], """
max_batch_size: 4
sequence_batching {
  control_input { name: "START"
    control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
  control_input { name: "READY__2"
    control { kind: CONTROL_SEQUENCE_READY fp32_false_true: [ 0, 1 ] } }
}
"""), "input 'START' does not follow <name>__<index> naming convention."),
        "gpu": (case("copy", X, Y, instances="instance_group { count: 1 "
                     "kind: KIND_GPU gpus: [ 0 ] }\n"), "GPU"),
        "package_inputs": (case("named", [("ARGS[0]", "FP32", [4])],
                                [("RESULT[sum]", "FP32", [4])],
                                platform="torch_aoti"), "KWARGS[rhs]"),
        "package_name": (case("named", [("lhs", "FP32", [4]),
                                        ("KWARGS[rhs]", "FP32", [4])],
                              [("RESULT[sum]", "FP32", [4])],
                              platform="torch_aoti"),
                         'input "lhs" of model \'package_name\' is not in its '
                         "file, which has 2: ARGS[0], KWARGS[rhs]"),
        "package_output": (case("digits", [("INPUT__0", "FP32", [8, 8])],
                                [("scores", "FP32", [10])],
                                platform="torch_aoti"),
                           'output "scores" of model \'package_output\' is not '
                           "in its file, which has 1: RESULT"),
        "script_as_package": (case("copy", X, Y, platform="torch_aoti",
                                   data=script("copy")),
                              "no data/aotinductor/model/*.so in it"),
        "package_as_script": (case("copy", X, Y,
                                   data=DIGITS["pt2"].read_bytes()),
                              "failed to load model 'package_as_script': "),
    }


def test_every_reason_of_a_rejected_load(make_server):
    cases = rejects()

    def fill(repository):
        for name, ((file, inputs, outputs, extra, more), _) in cases.items():
            pytorch_models.write(repository, name, file, inputs, outputs,
                                 extra, **more)
        pytorch_models.write(repository, "good", "copy", X, Y, NO_BATCH)

    server = make_server(fill, parts=PARTS, wait="live")
    found = settled(server)
    wrong = []
    for name, (_, words) in cases.items():
        reason = found[name][0].get("reason", "").replace(
            f'"{server.models}/{name}/1/model.pt"', "FILE")
        if not any(w in reason for w in words.split("|")) \
                or 'model "' in reason:
            wrong.append(f"{name}: {reason!r}")
    assert wrong == [], "\n".join(wrong)
    assert values(infer(server, "good", [floats("x", 1)])) == {"y__0": [1]}
