"""Tensors in and out: every datatype, shapes, strings, memory that a model
keeps or changes, outputs that nobody has asked for, DLPack."""

import ml_dtypes
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException, triton_to_np_dtype

from lib import models, python_backend, wire
from lib.python_backend import TELL, ask, differs, raised, told

TYPES = [t for t in models.ALL_DATATYPES if t != "BF16"]


def io(datatype, dims="-1, -1"):
    kind = models.config_type(datatype)
    return f'input {{ name: "IN" data_type: {kind} dims: [ {dims} ] }}\n' \
        f'output {{ name: "OUT" data_type: {kind} dims: [ {dims} ] }}\n'


# IN_FP32 to OUT_FP32, and so on: those that are there
EVERY = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor(
            "OUT" + t.name()[2:], t.as_numpy())
            for t in r.inputs()]) for r in requests]
"""
EVERY_IO = models.io_block("input", [
    (f"IN_{t}", t, [-1, -1], "optional: true") for t in TYPES]) \
    + models.io_block("output", [(f"OUT_{t}", t, [-1, -1]) for t in TYPES])

# outputs of the same input, each made in another way
SHAPES = """\
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            given = pb.get_input_tensor_by_name(request, "IN")
            x = given.as_numpy()
            answers.append(pb.InferenceResponse([
                pb.Tensor("TURNED", x.T), pb.Tensor("EVERY2ND", x[:, ::2]),
                pb.Tensor("BACK", x[::-1]), given,
                pb.Tensor("FORTRAN", np.asfortranarray(x)),
                pb.Tensor.from_dlpack("CAPSULE", given.to_dlpack())]))
        return answers
"""
SHAPES_IO = models.io_block("input", [("IN", "FP32", [-1, -1])]) \
    + models.io_block("output", [(n, "FP32", [-1, -1]) for n in (
        "TURNED", "EVERY2ND", "BACK", "FORTRAN", "CAPSULE", "IN")])

# writes into its input, and keeps it past the request
SCRIBBLE = """\
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.kept = None
    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb.get_input_tensor_by_name(request, "IN").as_numpy()
            before = np.zeros(1, np.float32) if self.kept is None \\
                else self.kept
            x += 1
            self.kept = x
            answers.append(pb.InferenceResponse([
                pb.Tensor("OUT", x), pb.Tensor("BEFORE", before)]))
        return answers
"""
SCRIBBLE_IO = models.io_block("input", [("IN", "FP32", [-1])]) \
    + models.io_block("output", [("OUT", "FP32", [-1]),
                                 ("BEFORE", "FP32", [-1])])

WANTED = TELL + """
class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([
            pb.Tensor("A", np.array([1], np.int32)),
            pb.Tensor("B", np.array([json.dumps(sorted(
                r.requested_output_names())).encode()], dtype=object))])
            for r in requests]
"""
WANTED_IO = models.io_block("input", [("IN", "INT32", [-1])]) \
    + models.io_block("output", [("A", "INT32", [-1]), ("B", "BYTES", [-1])])

OPTIONAL = TELL + """
class TritonPythonModel:
    def execute(self, requests):
        return [tell(sorted(t.name() for t in r.inputs())) for r in requests]
"""
OPTIONAL_IO = 'input { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] }\n' \
    'input { name: "MORE" data_type: TYPE_INT32 dims: [ 1 ]' \
    ' optional: true }\n' \
    'output { name: "OUT" data_type: TYPE_STRING dims: [ -1 ] }\n'

# what a model does with an input in its own memory
ZERO_COPY = TELL + """
class TritonPythonModel:
    def initialize(self, args):
        self.kept = []
    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb.get_input_tensor_by_name(request, "IN").as_numpy()
            self.kept.append(x)
            try:
                x[0] = 5
                wrote = True
            except ValueError:
                wrote = False
            answers.append(tell({"wrote": wrote, "kept": [
                k.tolist() for k in self.kept]}))
        return answers
"""

ROWS = """\
import triton_python_backend_utils as pb
import numpy as np

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUT", np.concatenate(
            [t.as_numpy() * n + t.as_numpy()
             for t in r.inputs()], axis=1))])
            for n, r in enumerate(requests, len(requests))]
"""


def fill(repository):
    for name, config, source in [
            ("every", EVERY_IO, EVERY), ("bf16", io("BF16"), PASS),
            ("shapes", SHAPES_IO, SHAPES), ("scribble", SCRIBBLE_IO, SCRIBBLE),
            ("wanted", WANTED_IO, WANTED),
            ("optional", OPTIONAL_IO, OPTIONAL),
            ("rows", "max_batch_size: 8\n" + io("INT32", "-1"), ROWS)]:
        python_backend.model(repository, name, config, source)
    python_backend.model(
        repository, "zero_copy",
        models.io_block("input", [("IN", "INT32", [-1])])
        + models.io_block("output", [("OUT", "BYTES", [-1])])
        + models.parameter_block({"ZERO_COPY_INPUTS": "yes"}), ZERO_COPY)
    python_backend.probe(repository)


# the tensor goes out as it came: numpy has no type for it
PASS = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for r in requests:
            given = r.inputs()[0]
            try:
                given.as_numpy()
                text = "as_numpy works"
            except pb.TritonModelException as e:
                text = str(e)
            if text != "Tensor dtype is BF16 and cannot be converted to " \
                    "NumPy. Use to_dlpack() and from_dlpack() instead.":
                answers.append(pb.InferenceResponse(
                    error=pb.TritonError("as_numpy says " + text)))
                continue
            answers.append(pb.InferenceResponse([
                pb.Tensor.from_dlpack("OUT", given.to_dlpack())]))
        return answers
"""


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(fill, env=["INFERENCE_CUDA_DRIVER="]) as s:
        yield s


@pytest.fixture(scope="module")
def http(server):
    client = httpclient.InferenceServerClient(server.url)
    yield client
    client.close()


@pytest.fixture(scope="module")
def grpc(server):
    client = grpcclient.InferenceServerClient(f"127.0.0.1:{server.port2}")
    yield client
    client.close()


@pytest.fixture(params=["http", "grpc"])
def client(request):
    return request.getfixturevalue(request.param)


def every(client, datatype, array, **kw):
    """The array that comes back."""
    return infer(client, "every", None, **kw, **{f"IN_{datatype}": array}) \
        .as_numpy(f"OUT_{datatype}")


def infer(client, model, array, *outputs, datatype=None, binary=True, **more):
    module = httpclient if isinstance(
        client, httpclient.InferenceServerClient) else grpcclient
    given = []
    if array is not None:
        more["IN"] = array
    for name, value in more.items():
        tensor = module.InferInput(name, value.shape,
                                   datatype or python_type(value))
        if module is httpclient:
            tensor.set_data_from_numpy(value, binary_data=binary)
        else:
            tensor.set_data_from_numpy(value)
        given.append(tensor)
    wanted = [module.InferRequestedOutput(o) for o in outputs] or None
    return client.infer(model, given, outputs=wanted)


def python_type(array):
    return next(t for t in TYPES if np.dtype(triton_to_np_dtype(t))
                == array.dtype)


def sample(datatype, shape):
    rng = np.random.default_rng(len(datatype) + sum(shape))
    if datatype == "BYTES":
        words = [rng.bytes(n % 7) for n in range(int(np.prod(shape)))]
        array = np.empty(len(words), object)
        array[:] = words
        return array.reshape(shape)
    if datatype == "BOOL":
        return rng.random(shape) < 0.5
    kind = np.dtype(triton_to_np_dtype(datatype))
    if kind.kind == "f":
        return rng.normal(size=shape).astype(kind)
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max, shape, kind, endpoint=True)


@pytest.mark.parametrize("datatype", TYPES)
@pytest.mark.parametrize("shape", [(2, 3), (1, 1), (0, 4), (300, 50)])
def test_every_datatype(client, datatype, shape):
    given = sample(datatype, shape)
    got = every(client, datatype, given)
    assert got.shape == shape
    assert np.array_equal(got, given)


def test_random_tensors(client):
    """Several of random datatypes and shapes in each request."""
    rng = np.random.default_rng(7)
    for _ in range(100):
        given = {f"IN_{t}": sample(t, tuple(rng.integers(0, 40, 2)))
                 for t in rng.choice(TYPES, rng.integers(1, 6), False)}
        got = infer(client, "every", None, **given)
        for name, array in given.items():
            assert np.array_equal(got.as_numpy("OUT" + name[2:]), array)


@pytest.mark.parametrize("datatype", TYPES)
def test_every_datatype_as_json(http, datatype):
    if datatype == "FP16":
        return              # JSON has no such numbers
    given = sample(datatype, (2, 3))
    if datatype == "BYTES":
        given = np.array([["a", "\u00e9"], ["", "d"]], dtype=object)
    got = every(http, datatype, given, binary=False)
    if datatype == "BYTES":
        given = np.char.encode(given.astype(str), "utf-8").astype(object)
    assert np.array_equal(got, given)


@differs("as_numpy of BF16 is a crash there")
def test_bf16_has_no_numpy_type_and_goes_through_dlpack(client):
    given = np.array([[1, 2.5, -3]], dtype=ml_dtypes.bfloat16)
    got = infer(client, "bf16", given, datatype="BF16").as_numpy("OUT")
    assert np.array_equal(got.astype(np.float32), given.astype(np.float32))


def test_large_tensors(client):
    given = sample("FP32", (1500, 1000))
    assert np.array_equal(every(client, "FP32", given), given)


def test_arrays_that_are_not_contiguous(client):
    x = sample("FP32", (3, 4))
    got = infer(client, "shapes", x)
    for name, expected in [("TURNED", x.T), ("EVERY2ND", x[:, ::2]),
                           ("BACK", x[::-1]), ("FORTRAN", x), ("CAPSULE", x),
                           ("IN", x)]:
        assert np.array_equal(got.as_numpy(name), expected), name


def test_an_input_may_be_changed_and_kept(client):
    for n in range(3):
        given = np.full(1000, n, np.float32)
        got = infer(client, "scribble", given)
        assert np.array_equal(got.as_numpy("OUT"), given + 1)
        if n > 0:
            assert np.array_equal(got.as_numpy("BEFORE"), given)


def test_outputs_that_nobody_wants_are_not_sent(client):
    got = infer(client, "wanted", np.array([1], np.int32), "B")
    assert got.as_numpy("A") is None
    assert got.as_numpy("B")[0] == b'["B"]'
    got = infer(client, "wanted", np.array([1], np.int32))
    assert got.as_numpy("A")[0] == 1
    assert got.as_numpy("B")[0] == b'["A", "B"]'


def test_optional_inputs(client):
    one = np.array([1], np.int32)
    assert infer(client, "optional", one).as_numpy("OUT")[0] == b'["IN"]'
    assert infer(client, "optional", one, MORE=one).as_numpy("OUT")[0] \
        == b'["IN", "MORE"]'


def test_rows(client):
    given = np.arange(6, dtype=np.int32).reshape(3, 2)
    got = infer(client, "rows", given).as_numpy("OUT")
    assert np.array_equal(got, given * 2)


def test_wrong_datatype_is_rejected(client):
    with pytest.raises(InferenceServerException):
        infer(client, "every", None, IN_FP32=sample("INT8", (2, 2)))


@differs("a parameter of ours")
def test_zero_copy_inputs_are_read_only_and_may_be_kept(server):
    for n in range(3):
        answer = told(server.infer("zero_copy", {"inputs": [wire.tensor(
            "IN", "INT32", [2], [n, 10 * n])]}))
        assert answer == {"wrote": False, "kept": [
            [k, 10 * k] for k in range(n + 1)]}


# ---- tensors that the model makes

def test_shape_and_place_of_a_tensor(server):
    assert ask(server, """
t = pb.Tensor("A", np.zeros((2, 3), np.int8))
result = [t.name(), list(t.shape()), t.is_cpu(), t.as_numpy().tolist(),
          list(pb.Tensor("B", np.zeros(0)).shape())]
""") == ["A", [2, 3], True, [[0] * 3] * 2, [0]]


@differs("an enumeration there that Python cannot see")
def test_datatype_of_a_tensor(server):
    assert ask(server, """
result = [pb.Tensor("A", np.zeros(1, k)).triton_dtype()
          for k in (np.bool_, np.float32, object)]
""") == [1, 11, 13]


def test_scalar_keeps_its_shape(server):
    assert ask(server, """
t = pb.Tensor("A", np.array(7, np.int32))
result = [list(t.shape()), int(t.as_numpy())]
""") == [[], 7]


def test_strings_of_a_tensor(server):
    assert ask(server, """
result = []
for a in (np.array(["x", b"yz", 7], dtype=object),
          np.array([b"ab", b"c"]),
          np.array([["a"], ["b"]], dtype=object)):
    got = pb.Tensor("A", a).as_numpy()
    result.append([got.dtype == object or got.dtype.kind == "S",
                   list(got.shape),
                   [e if isinstance(e, str) else e.decode()
                    if isinstance(e, bytes) else str(e)
                    for e in got.ravel().tolist()]])
""") == [[True, [3], ["x", "yz", "7"]], [True, [2], ["ab", "c"]],
         [True, [2, 1], ["a", "b"]]]


def test_dlpack(server):
    assert ask(server, """
a = np.arange(6, dtype=np.float32).reshape(2, 3)
t = pb.Tensor("A", a)
back = np.from_dlpack(t)
again = pb.Tensor.from_dlpack("B", t.to_dlpack())
result = [np.array_equal(back, a), list(again.shape()),
          np.array_equal(again.as_numpy(), a), again.is_cpu(),
          list(t.__dlpack_device__())]
""") == [True, [2, 3], True, True, [1, 0]]


@pytest.mark.parametrize("kind", ["np.int64", "np.uint8", "np.float32"])
def test_dlpack_of_a_scalar_that_is_read_only(server, kind):
    """Its bytes, not so many as its value says."""
    assert ask(server, f"""
a = np.array(3, {kind})
a.flags.writeable = False
t = pb.Tensor.from_dlpack("B", pb.Tensor("A", a).to_dlpack())
result = [t.shape(), t.as_numpy().tolist()]
""") == [[], 3]


def test_dlpack_of_no_elements(server):
    assert ask(server, """
t = pb.Tensor.from_dlpack("B", pb.Tensor("A", np.zeros((0, 3))).to_dlpack())
result = [t.shape(), list(t.as_numpy().shape)]
""") == [[0, 3], [0, 3]]


@differs("has no such arguments")
def test_arguments_of_dlpack(server):
    """A stream, also by position, a copy, and a device, which must be its
    own."""
    assert ask(server, """
a = np.arange(4.)
t = pb.Tensor("A", a)
take = pb.Tensor.from_dlpack
same = [take("B", c) for c in (
    t.__dlpack__(None), t.__dlpack__(-1), t.__dlpack__(stream=2),
    t.__dlpack__(dl_device=(1, 0), copy=False, max_version=(1, 0)))]
copied = take("B", t.__dlpack__(copy=True))
a[0] = 7
result = [s.as_numpy()[0] for s in same] + [copied.as_numpy()[0]]
try:
    t.__dlpack__(dl_device=(2, 0))
except BufferError as e:
    result.append(str(e))
""") == [7, 7, 7, 7, 0, "tensor 'A' is not copied to another device"]


# a tensor of a library that has it on a GPU: CPU is how it copies
ON_GPU = """
class OnGpu:
    def __init__(self, array):
        self.array = array
    def __dlpack_device__(self):
        return (2, 0)
    def __dlpack__(self, *, stream=None, **more):
        assert more.get("dl_device") == (1, 0), "a GPU's memory"
        return self.array.__dlpack__()
class OldOnGpu(OnGpu):
    def __dlpack__(self, stream=None):
        raise AssertionError("a GPU's memory")
    def cpu(self):
        return self.array
class OnlyOnGpu(OnGpu):
    def __dlpack__(self, stream=None):
        raise AssertionError("a GPU's memory")
"""


@differs("takes it as it is")
@pytest.mark.parametrize("kind", ["OnGpu", "OldOnGpu"])
def test_dlpack_of_a_gpu_is_copied(server, kind):
    assert ask(server, ON_GPU + f"""
t = pb.Tensor.from_dlpack("A", {kind}(np.arange(3000.)))
result = [t.is_cpu(), float(t.as_numpy().sum()), t.shape()]
""") == [True, 2999 * 1500, [3000]]


@differs("takes it as it is")
def test_dlpack_of_a_gpu_that_cannot_be_copied(server):
    kind, said = raised(server, ON_GPU + """
pb.Tensor.from_dlpack("A", OnlyOnGpu(np.arange(3.)))
""")
    assert kind == "TritonModelException"
    assert "tensor 'A' gives no DLPack capsule: it lies on a GPU, and its " \
        "library copies it to the CPU neither by" in said



@differs("a crash there")
def test_dlpack_of_numpy(server):
    assert ask(server, """
result = []
for k in (np.bool_, np.uint8, np.int64, np.float16, np.float64):
    a = np.ones((2, 3), k)
    t = pb.Tensor.from_dlpack("A", a)
    u = pb.Tensor.from_dlpack("A", a.__dlpack__())
    result.append([t.triton_dtype(), u.triton_dtype(),
                   t.as_numpy().tolist() == a.tolist()])
result.append(pb.Tensor.from_dlpack("A", np.zeros((4, 4))[1:3]).shape())
""") == [[n, n, True] for n in (1, 2, 9, 10, 12)] + [[2, 4]]


@differs("numpy complains there of another name")
def test_a_used_capsule_has_the_name_that_dlpack_gives_it(server):
    assert "used_dltensor" in ask(server, """
capsule = np.ones(3).__dlpack__()
pb.Tensor.from_dlpack("A", capsule)
result = repr(capsule)
""")
    assert "PyCapsule_GetPointer" not in server.log_text()


def test_dlpack_holds_the_memory(server):
    assert ask(server, """
import gc
views = [np.from_dlpack(pb.Tensor("A", np.full(1 << 16, n, np.int32)))
         for n in range(8)]
capsule = pb.Tensor("A", np.full(1000, 9, np.int64)).to_dlpack()
gc.collect()
result = [int(v[0] + v[-1]) for v in views]
result.append(int(pb.Tensor.from_dlpack("B", capsule).as_numpy().sum()))
""") == [2 * n for n in range(8)] + [9000]


def test_a_capsule_holds_its_tensor(server):
    assert ask(server, """
import sys
t = pb.Tensor("A", np.zeros(3))
result = [sys.getrefcount(t)]
capsule = t.to_dlpack()
result.append(sys.getrefcount(t) - result[0])
del capsule
result[0] -= sys.getrefcount(t)
""") == [0, 1]


@pytest.mark.parametrize("code", [
    "c = pb.Tensor('A', np.zeros(3)).to_dlpack()\n"
    "pb.Tensor.from_dlpack('B', c)\npb.Tensor.from_dlpack('C', c)",
    "pb.Tensor('A', np.zeros(2, np.complex64))",
], ids=["twice", "complex"])
def test_what_dlpack_and_tensors_cannot_hold(server, code):
    assert python_backend.raised(server, code)[0] == "TritonModelException"


@pytest.mark.parametrize("code,words", [
    ("pb.Tensor.from_dlpack('B', np.zeros((4, 4)).T[::2])",
     "DLPack tensor is not contiguous. Only contiguous DLPack tensors that "
     "are stored in C-Order are supported."),
    ("pb.Tensor('A', np.array([b'a'], dtype=object)).to_dlpack()",
     "DLPack does not have support for string tensors."),
], ids=["strided", "strings"])
def test_texts_of_dlpack(server, code, words):
    assert python_backend.raised(server, code) \
        == ("TritonModelException", words)


@differs("a crash there")
def test_what_dlpack_of_numpy_cannot_hold(server):
    assert python_backend.raised(
        server, "pb.Tensor.from_dlpack('B', np.zeros(2, np.complex64))")[0] \
        == "TritonModelException"
