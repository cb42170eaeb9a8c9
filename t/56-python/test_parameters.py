"""Parameters of requests and responses, of clients and of calls."""

import json

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from tritonclient.grpc import service_pb2

from lib import python_backend, wire
from lib.python_backend import (TELL, TEXT, ask, differs, raised, text, told,
                                words)

ASKED = TELL + """
class TritonPythonModel:
    def execute(self, requests):
        return [tell({
            "parameters": json.loads(r.parameters()), "id": r.request_id(),
            "correlation": r.correlation_id(), "flags": r.flags(),
            "timeout": r.timeout(),
            "names": sorted(r.requested_output_names())})
            for r in requests]
"""

# the request's JSON becomes the response's parameters
GIVEN = """\
import json
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse(
            [pb.Tensor("OUT", pb.get_input_tensor_by_name(
                r, "IN").as_numpy())],
            parameters=json.loads(pb.get_input_tensor_by_name(
                r, "IN").as_numpy()[0])) for r in requests]
"""


def fill(repository):
    python_backend.model(repository, "asked", TEXT, ASKED)
    python_backend.model(repository, "given", TEXT, GIVEN)
    python_backend.probe(repository)


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(fill) as s:
        yield s


@pytest.fixture(scope="module")
def grpc(server):
    client = grpcclient.InferenceServerClient(f"127.0.0.1:{server.port2}")
    yield client
    client.close()


def word(value):
    tensor = grpcclient.InferInput("IN", [1], "BYTES")
    tensor.set_data_from_numpy(np.array([value.encode()], dtype=object))
    return [tensor]


SENT = {"word": "yes", "number": -3, "flag": True, "off": False,
        "large": 1 << 60, "\u00e9": 'a "quote"'}


def test_of_a_request(server, grpc):
    assert told(server.infer("asked", text("x", parameters=SENT)))[
        "parameters"] == SENT
    result = grpc.infer("asked", word("x"), parameters=SENT)
    assert json.loads(result.as_numpy("OUT")[0])["parameters"] == SENT


def test_the_text_has_no_blanks(server):
    body = {"inputs": [wire.tensor("CODE", "BYTES", [1],
                                   ["result = request.parameters()"])],
            "parameters": {"\u00e9": 'a "quote"\n'}}
    assert json.loads(words(server.infer("probe", body))[0]) == {
        "result": '{"\u00e9":"a \\"quote\\"\\n"}'}


def test_a_double_of_a_client(server):
    assert told(server.infer("asked", text("x", parameters={"half": 0.5})))[
        "parameters"] == {"half": 0.5}


def test_none(server):
    assert told(server.infer("asked", text("x")))["parameters"] == {}


def test_what_else_a_request_says(server, grpc):
    assert told(server.infer("asked", text("x", id="r7", parameters={
        "sequence_id": 5, "sequence_start": True, "timeout": 7000000})))\
        == {"parameters": {}, "id": "r7", "correlation": 5, "flags": 1,
            "timeout": 7000000, "names": ["OUT"]}
    result = grpc.infer("asked", word("x"), request_id="g", sequence_id="five",
                        sequence_start=True, sequence_end=True, timeout=9)
    assert json.loads(result.as_numpy("OUT")[0]) == {
        "parameters": {}, "id": "g", "correlation": "five", "flags": 3,
        "timeout": 9, "names": ["OUT"]}


LACKS = "2.51 has no parameters of responses"


@differs(LACKS)
def test_of_a_response(server, grpc):
    sent = {"word": "yes", "number": -3, "flag": True}
    answer = server.infer("given", text(json.dumps(sent)))
    assert answer.status == 200
    assert answer.json()["parameters"] == sent
    response = grpc.infer("given", word(json.dumps(sent))).get_response()
    got = {k: getattr(v, v.WhichOneof("parameter_choice"))
           for k, v in response.parameters.items()
           if k != "triton_final_response"}
    assert got == sent
    assert isinstance(response, service_pb2.ModelInferResponse)


def test_response_without(server):
    answer = server.infer("given", text("{}"))
    assert "parameters" not in answer.json()


@differs(LACKS)
@pytest.mark.parametrize("value,why", [
    ("[]", "parameters must be a dictionary"),
    ('{1: "x"}', "Expect parameters keys to have type str"),
    ('{"a": None}', "Expect parameters values to have type bool/int/str"),
    ('{"a": [1]}', "Expect parameters values to have type bool/int/str"),
    ('{"a": 0.5}', "Expect parameters values to have type bool/int/str"),
])
def test_of_a_response_that_are_wrong(server, value, why):
    name, said = raised(
        server, f"pb.InferenceResponse([], parameters={value})")
    assert name == "TritonModelException"
    assert why.lower().split()[0] in said.lower()
    if "Expect" in why:
        assert why in said


@differs(LACKS)
@pytest.mark.parametrize("number", [2**63, 2**70, -2**63 - 1])
def test_of_a_response_that_are_too_long(server, number):
    answer = server.infer("given", text(json.dumps({"a": number})))
    assert answer.status == 400
    assert answer.error == "Unsupported value type on parameters"


@differs(LACKS)
def test_of_a_response_as_the_model_sees_them(server):
    assert json.loads(ask(server, """
result = pb.InferenceResponse([], parameters={"a": 1, "b": "x"}).parameters()
""")) == {"a": 1, "b": "x"}


def test_of_a_call(server):
    assert ask(server, """
import json
r = pb.InferenceRequest(
    model_name="asked", requested_output_names=["OUT"], request_id="c1",
    inputs=[pb.Tensor("IN", np.array([b"x"], dtype=object))], timeout=5000000,
    parameters={"a": 1, "b": True, "c": "x"}).exec()
assert not r.has_error(), r.error().message()
result = json.loads(pb.get_output_tensor_by_name(r, "OUT").as_numpy()[0])
""") == {"parameters": {"a": 1, "b": True, "c": "x"}, "id": "c1",
         "correlation": 0, "flags": 0, "timeout": 5000000, "names": ["OUT"]}


@differs(LACKS)
def test_of_the_response_of_a_call(server):
    assert ask(server, """
r = pb.InferenceRequest(
    model_name="given", requested_output_names=["OUT"],
    inputs=[pb.Tensor("IN", np.array([b'{"k": 7}'], dtype=object))]).exec()
result = r.parameters()
""") == '{"k":7}'


