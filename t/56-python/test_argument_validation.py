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


def test_texts_of_wrong_parameters(server):
    call = "pb.InferenceRequest(inputs=[], model_name='m'," \
        " requested_output_names=[], parameters={})"
    assert "Expect parameters keys to have type str" in raised(
        server, call.format("{1: 2}"))[1]
    assert "values to have type bool/int/str" in raised(
        server, call.format("{'a': 0.5}"))[1]


def test_right(server):
    assert ask(server, """
given = dict(inputs=[], model_name="m", requested_output_names=[])
r = pb.InferenceRequest(**given)
result = [r.request_id(), r.correlation_id(), r.flags(), r.timeout(),
          r.inputs(), list(r.requested_output_names())]
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
