"""Backends: answers beside tensors, and how they learn of a cancel."""

import pytest

from lib import backends, models, process
from lib.grpc_client import Client, Failure, infer, is_final, tensor
from lib.server import SLOW

A = tensor("A", "FP32", [1, 2], bytes(8))
SAID = {"text": 'a "quoted" text', "yes": True, "half": 0.5}


def fill(repository):
    models.identity(
        repository, "conformance",
        [("A", "FP32", [-1]),
         ("B", "INT32", [2, 2], "reshape { shape: [ 4 ] } optional: true"),
         ("S", "BYTES", [-1], "optional: true")],
        outputs=[("X", "FP32", [-1]),
                 ("Y", "INT32", [2, 2], "reshape { shape: [ 4 ] }"),
                 ("Z", "BYTES", [-1])],
        max_batch=4, instances=2, backend="conformance")


@pytest.fixture
def events(tmp_path):
    return tmp_path / "events"


@pytest.fixture
def client(start, events):
    folder = backends.build("conformance")
    server = start(fill, http=f"    inference_backends {folder};",
                   inference_env=[f"INF_CONFORMANCE_EVENTS={events}"])
    with Client(server.port2) as c:
        yield c
    failed = [line for line in events.read_text().splitlines()
              if line.startswith("FAILED")]
    assert not failed


def said(answer):
    """The response's parameters that the backend has set."""
    found = {k: getattr(v, v.WhichOneof("parameter_choice"))
             for k, v in answer.parameters.items()}
    return {k: found.get(k) for k in SAID}


def test_parameters_of_requests_and_responses(client):
    """The backend checks what it gets, and answers the same."""
    asked = {"text": "t", "number": 3, "half": 0.5, "yes": True}
    assert said(client.infer("conformance", A, options=asked)) == SAID
    with client.stream() as stream:
        stream.send(infer("conformance", A, options=asked))
        answer = stream.read()
    assert said(answer.infer_response) == SAID
    assert is_final(answer) is True


def test_a_backend_learns_that_its_client_has_left(client, events):
    def told():
        return events.read_text().splitlines() if events.exists() else []

    for number, make in enumerate(["call", "stream"], 1):
        request = infer("conformance", A, options={"scenario": "cancel"})
        stream = client.stream() if make == "stream" else None
        if stream:
            stream.send(request)
            call = stream.call
        else:
            call = client.channel.unary_unary(
                "/inference.GRPCInferenceService/ModelInfer").future(
                    request.SerializeToString(), timeout=client.seconds)
        assert process.wait_until(lambda n=number: sum(
            "waiting" in line for line in told()) >= n, 20 * SLOW), told()
        call.cancel()
        if stream:
            stream.end()
        assert process.wait_until(lambda n=number: sum(
            line.startswith("cancelled") for line in told()) >= n,
            20 * SLOW), told()


def test_an_error_of_the_backend(client):
    request = infer("conformance", A, options={"scenario": "error"}, id="e")
    with pytest.raises(Failure) as e:
        client.call("ModelInfer", request)
    assert e.value.text
    with client.stream() as stream:
        stream.send(request)
        answer = stream.read()
    assert answer.error_message == e.value.text
    reply = answer.infer_response
    assert (reply.id, reply.model_name) == ("e", "conformance")
    assert is_final(answer) is True
