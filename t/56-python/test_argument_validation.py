"""Arguments of the API that are wrong, and which exception says so."""

import pytest

from lib import python_backend
from lib.python_backend import ask, differs, raised

MODEL_ERROR = "TritonModelException"


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(python_backend.probe) as s:
        yield s


@pytest.mark.parametrize("call,error", [
    ('Tensor(None, np.array([1]))', "TypeError"),
    ('Tensor("A", None)', "TypeError"),
    ('Tensor("", None)', "TypeError"),
    ('Tensor("", np.array([1]))', MODEL_ERROR),
    ('Tensor.from_dlpack("A", None)', MODEL_ERROR),
    ('Tensor.from_dlpack("", None)', MODEL_ERROR),
    ('Tensor.from_dlpack("A", [1, 2])', MODEL_ERROR),
    ('Tensor.from_dlpack("", np.array([1]))', MODEL_ERROR),
    ('InferenceResponse([None])', MODEL_ERROR),
    ('InferenceResponse(output_tensors=None)', "TypeError"),
    ('InferenceResponse(["a"])', "TypeError"),
    ('InferenceResponse([], error="why")', "TypeError"),
    ('TritonError(None)', "TypeError"),
    ('TritonError("why", "INTERNAL")', "TypeError"),
    ('TritonError("why", 99)', "TypeError"),
    ('Logger.log("m", None)', "TypeError"),
    ('Logger.log("m", 1)', "TypeError"),
    ('Logger.log_info(None)', "TypeError"),
    ('Logger.log_warn(None)', "TypeError"),
    ('Logger.log_error(None)', "TypeError"),
    ('Logger.log_verbose(None)', "TypeError"),
    ('MetricFamily(name=None, description="d",'
     ' kind=pb.MetricFamily.COUNTER)', "TypeError"),
    ('PreferredMemory(None)', "TypeError"),
])
def test_wrong(server, call, error):
    assert raised(server, f"pb.{call}")[0] == error


@pytest.mark.parametrize("change,error", [
    ("inputs=[None]", MODEL_ERROR),
    ("inputs=None", "TypeError"),
    ("model_name=None", "TypeError"),
    ("requested_output_names=[None]", "TypeError"),
    ('requested_output_names=[""]', MODEL_ERROR),
    ("requested_output_names=None", "TypeError"),
    ("correlation_id=None", "TypeError"),
    ("request_id=None", "TypeError"),
    ("model_version=None", "TypeError"),
    ("flags=None", "TypeError"),
    ("timeout=None", "TypeError"),
    ("parameters=[]", MODEL_ERROR),
    ("parameters={1: 2}", MODEL_ERROR),
    ("parameters={'a': None}", MODEL_ERROR),
    ("parameters={'a': [1]}", MODEL_ERROR),
])
def test_wrong_request(server, change, error):
    name = raised(server, f"""
given = dict(inputs=[pb.Tensor("A", np.array([1, 2], np.int32))],
             model_name="m", requested_output_names=["OUT"])
given.update({change})
pb.InferenceRequest(**given)
""")[0]
    assert name == error


@pytest.mark.parametrize("missing", ["inputs", "model_name",
                                     "requested_output_names"])
def test_request_without(server, missing):
    assert raised(server, f"""
given = dict(inputs=[], model_name="m", requested_output_names=[])
del given["{missing}"]
pb.InferenceRequest(**given)
""")[0] == "TypeError"


@pytest.mark.parametrize("call,words", [
    ("Tensor('A', np.array(['a']))", "NumPy dtype is not supported."),
    ("Tensor.from_dlpack('A', 5)", "Provided tensor is not supported."),
    ("InferenceResponse([None])",
     "Output tensor for inference response should not be empty."),
    ("InferenceRequest('7', inputs=[None], model_name='m',"
     " requested_output_names=[])", "Input tensor for request with id '7' and"
     " model name 'm' should not be empty."),
    ("InferenceRequest('7', inputs=[], model_name='m',"
     " requested_output_names=['A', ''])", "Requested output name for request"
     " with id '7' and model name 'm' should not be empty."),
])
def test_texts(server, call, words):
    name, told = raised(server, f"pb.{call}")
    assert name == MODEL_ERROR
    assert told.startswith(words)


def test_texts_of_wrong_parameters(server):
    call = "pb.InferenceRequest(inputs=[], model_name='m'," \
        " requested_output_names=[], parameters={})"
    for given, words in [
            ("[]", ", got <class 'list'>"),
            ("{1: 2}", "Expect parameters keys to have type str, found type "
             "<class 'int'>"),
            ("{'a': 0.5}", "Expect parameters values to have type "
             "bool/int/str, found type <class 'float'>")]:
        assert words in raised(server, call.format(given))[1]


def test_a_correlation_id_of_another_type(server):
    assert raised(server, "pb.InferenceRequest(inputs=[], model_name='m',"
                          " requested_output_names=[], correlation_id=1.5)") \
        == (MODEL_ERROR, "Correlation ID must be integer or string")


def test_lists_that_a_model_may_change(server):
    """They are its own; the tensor, request and response have theirs."""
    assert ask(server, """
t = pb.Tensor("A", np.zeros((2, 3)))
t.shape()[0] = 6
r = pb.InferenceResponse([t])
r.output_tensors().clear()
q = pb.InferenceRequest(inputs=[t], model_name="m", requested_output_names=[])
q.inputs().clear()
result = [t.shape(), len(r.output_tensors()), len(q.inputs())]
""") == [[2, 3], 1, 1]


def test_names_that_the_module_has_imported(server):
    assert ask(server, """
names = {}
exec("from triton_python_backend_utils import *", names)
result = [names[n].__name__ for n in ("np", "json", "struct")]
""") == ["numpy", "json", "struct"]


def test_right(server):
    assert ask(server, """
given = dict(inputs=[], model_name="m", requested_output_names=[])
r = pb.InferenceRequest(**given)
result = [r.request_id(), r.correlation_id(), r.flags(), r.timeout(),
          r.inputs(), list(r.requested_output_names())]
assert isinstance(r.requested_output_names(), set)
r = pb.InferenceRequest("id", "word", **given, flags=1, timeout=7,
                        model_version=3, parameters={"a": True, "b": "c"})
result += [r.request_id(), r.correlation_id(), r.flags(), r.timeout()]
r.set_flags(2)
result.append(r.flags())
pb.InferenceResponse([])
pb.InferenceResponse()
pb.PreferredMemory(pb.TRITONSERVER_MEMORY_CPU)
pb.PreferredMemory(pb.TRITONSERVER_MEMORY_GPU, 1)
pb.Logger.log("level unspecified")
""") == ["", 0, 0, 0, [], [], "id", "word", 1, 7, 2]


def test_bytes_stand_for_a_text(server):
    assert ask(server, """
r = pb.InferenceRequest(b"id", inputs=[], model_name=b"probe",
                        requested_output_names=[b"OUT"])
result = [r.request_id(), list(r.requested_output_names()),
          pb.Tensor(b"A", np.zeros(1)).name(), pb.TritonError(b"why").message(),
          pb.is_model_ready(b"probe")]
pb.Logger.log_info(b"bytes")
""") == ["id", ["OUT"], "A", "why", True]


def test_numbers_of_numpy(server):
    assert ask(server, """
given = dict(inputs=[], model_name="m", requested_output_names=[])
r = pb.InferenceRequest(**given, flags=np.uint32(3), timeout=np.int64(7),
                        model_version=np.int32(1))
result = [r.flags(), r.timeout()]
r.set_flags(np.int32(2))
request.set_release_flags(np.uint8(1))
result.append(r.flags())
pb.PreferredMemory(pb.TRITONSERVER_MEMORY_CPU, np.int64(0))
""") == [3, 7, 2]


@pytest.mark.parametrize("change", [
    "flags=-1", "flags=2 ** 32", "timeout=-1", "timeout=2 ** 64",
    "model_version=2 ** 63", "flags=1.0", "timeout='7'"])
def test_numbers_out_of_range(server, change):
    assert raised(server, "pb.InferenceRequest(inputs=[], model_name='m',"
                          f" requested_output_names=[], {change})")[0] \
        == "TypeError"


def test_response_with_an_error(server):
    assert ask(server, """
r = pb.InferenceResponse(error=pb.TritonError("why"))
result = [r.has_error(), r.error().message(), r.output_tensors(),
          int(r.error().code()) == int(pb.TritonError.INTERNAL)]
r = pb.InferenceResponse([pb.Tensor("A", np.array([1]))])
result += [r.has_error(), r.error(),
           pb.get_output_tensor_by_name(r, "A").name(),
           pb.get_output_tensor_by_name(r, "B")]
""") == [True, "why", [], True, False, None, "A", None]


@differs("any attribute of an enumeration can be set there")
def test_codes_of_errors_cannot_be_set(server):
    assert raised(server, "pb.TritonError.INTERNAL = 3")[0] \
        == "AttributeError"


def test_codes_of_errors(server):
    assert ask(server, """
result = [int(getattr(pb.TritonError, n)) for n in
          "UNKNOWN INTERNAL NOT_FOUND INVALID_ARG UNAVAILABLE UNSUPPORTED"
          " ALREADY_EXISTS CANCELLED".split()]
""") == [0, 1, 2, 3, 4, 5, 6, 7]


def test_constants(server):
    assert ask(server, """
result = [pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
          pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
          pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL,
          pb.TRITONSERVER_REQUEST_RELEASE_ALL,
          pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE]
""") == [1, 2, 1, 1, 2]


def test_levels_of_the_log(server):
    assert ask(server, """
result = [str(getattr(pb.Logger.LogLevel, n)).split(".")[-1] for n in
          ("INFO", "WARNING", "ERROR", "VERBOSE")]
result.append(pb.Logger.INFO == pb.Logger.LogLevel.INFO)
""") == ["INFO", "WARNING", "ERROR", "VERBOSE", True]


NAMES = """
get_input_tensor_by_name get_output_tensor_by_name get_input_config_by_name
get_output_config_by_name using_decoupled_model_transaction_policy
triton_string_to_numpy triton_to_numpy_type numpy_to_triton_type
serialize_byte_tensor deserialize_bytes_tensor get_model_dir load_model
unload_model is_model_ready TRITON_STRING_TO_NUMPY
TRITONSERVER_REQUEST_FLAG_SEQUENCE_START TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
TRITONSERVER_RESPONSE_COMPLETE_FINAL TRITONSERVER_REQUEST_RELEASE_ALL
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE TRITONSERVER_MEMORY_GPU
TRITONSERVER_MEMORY_CPU TritonModelException TritonError ModelConfig
Tensor.name Tensor.shape Tensor.is_cpu Tensor.triton_dtype Tensor.as_numpy
Tensor.to_dlpack Tensor.from_dlpack Tensor.__dlpack__ Tensor.__dlpack_device__
InferenceRequest.inputs InferenceRequest.request_id
InferenceRequest.correlation_id InferenceRequest.flags
InferenceRequest.set_flags InferenceRequest.timeout
InferenceRequest.parameters InferenceRequest.requested_output_names
InferenceRequest.trace InferenceRequest.is_cancelled
InferenceRequest.get_response_sender InferenceRequest.set_release_flags
InferenceRequest.exec InferenceRequest.async_exec
InferenceResponse.output_tensors InferenceResponse.has_error
InferenceResponse.error Logger.log Logger.log_info
Logger.log_warn Logger.log_error Logger.log_verbose Logger.LogLevel Logger.INFO
Logger.WARNING Logger.ERROR Logger.VERBOSE PreferredMemory MetricFamily.COUNTER
MetricFamily.GAUGE MetricFamily.HISTOGRAM MetricFamily.Metric
ModelConfig.as_dict ModelConfig.set_max_batch_size ModelConfig.add_input
ModelConfig.set_dynamic_batching ModelConfig.add_output
ModelConfig.set_model_transaction_policy
""".split()
NEWER = "InferenceResponse.parameters ResponseIterator.cancel".split()
NATIVE = """
Tensor InferenceRequest InferenceResponse InferenceResponseSender Logger
ResponseIterator MetricFamily Metric InferenceTrace SharedMemory
TritonModelException TritonError MemoryType MetricKind PreferredMemory
COUNTER GAUGE HISTOGRAM shared_memory.free_memory
""".split()


def missing(server, module, names):
    return ask(server, f"""
import functools
import importlib
module = importlib.import_module("{module}")
result = []
for name in {names!r}:
    try:
        functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        result.append(name)
""")


def test_every_name(server):
    assert missing(server, "triton_python_backend_utils", NAMES) == []
    assert missing(server, "c_python_backend_utils", NATIVE) == []


def test_choices_are_numbers_with_names(server):
    assert ask(server, """
result = [[str(c), f"{c}", int(c), c == c.value] for c in (
    pb.TRITONSERVER_MEMORY_CPU, pb.MetricFamily.GAUGE, pb.Logger.WARNING)]
""") == [["MemoryType.TRITONSERVER_MEMORY_CPU"] * 2 + [1, True],
         ["MetricKind.GAUGE"] * 2 + [1, True],
         ["LogLevel.WARNING"] * 2 + [1, True]]
    assert ask(server, """
code = pb.TritonError.CANCELLED
result = [str(code).endswith("ErrorCode.CANCELLED"), int(code), code == 7]
""") == [True, 7, True]


@differs("2.51 has them not yet")
def test_every_newer_name(server):
    assert missing(server, "triton_python_backend_utils", NEWER) == []
    assert missing(server, "c_python_backend_utils", [
        "InferenceResponse.parameters", "ResponseIterator.__next__",
        "Metric.observe", "InferenceTrace.get_context"]) == []


def test_trace_of_a_request(server):
    assert ask(server, """
trace = request.trace()
context = trace.get_context()
result = context is None or isinstance(context, str)
r = pb.InferenceRequest(inputs=[], model_name="m", trace=trace,
    requested_output_names=[], preferred_memory=pb.PreferredMemory(
        pb.TRITONSERVER_MEMORY_CPU))
""") is True
