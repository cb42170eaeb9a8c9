"""conf.d/balance.conf as it stands, in front of a node that is
conf.d/triton.conf: no default of nginx that breaks clients counts there."""

import numpy
import pytest
import tritonclient.grpc
import tritonclient.http

from lib import decoupled, events, models, process, snippets
from lib.nodes import BALANCER
from lib.server import SLOW, free_port

# its second response never comes
FOREVER = {"IN": [1, 2], "DELAY": [0, 600_000], "WAIT": 0}
SECOND = ("    server 10.0.0.2:8000;\n", "    server 10.0.0.2:8001;\n")


@pytest.fixture
def balanced(snippet, make_server):
    """The balancer's ports by module of the client.  There is one node, because
    one parameter names the REST port of all."""
    def fill(folder):
        models.standard_repository(folder)
        decoupled.repeat(folder)
        models.identity(folder, "echo", [("IN", "INT32", [-1])],
                        parameters={"echo_parameters": "true"})

    _, (rest, grpc) = snippet("triton", 8000, 8001, fill=fill,
                              http="    inference_forward_header ^an_;")
    ports = {8000: free_port(), 8001: free_port()}
    text = snippets.read("balance", ports)
    for old, new in ((SECOND[0], ""), (SECOND[1], ""),
                     ("10.0.0.1:8000", f"127.0.0.1:{rest}"),
                     ("10.0.0.1:8001", f"127.0.0.1:{grpc}"),
                     ("port=8000", f"port={rest}")):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    balancer = make_server(config=BALANCER, wait="", http=text)
    assert process.wait_until(
        lambda: balancer.log_text().count("is ready") >= 2, 10 * SLOW)
    return {tritonclient.http: ports[8000], tritonclient.grpc: ports[8001]}


@pytest.fixture(params=[tritonclient.http, tritonclient.grpc],
                ids=["rest", "grpc"])
def api(request):
    return request.param


def infer(balanced, api, model, values, **kw):
    given = api.InferInput("IN", list(values.shape), "INT32")
    given.set_data_from_numpy(values)
    with api.InferenceServerClient(f"127.0.0.1:{balanced[api]}") as client:
        return client.infer(model, [given], **kw)


def test_a_body_beyond_nginxs_limit(balanced, api):
    values = numpy.arange(600000, dtype=numpy.int32)        # 2.4 MB
    answer = infer(balanced, api, "id_int32", values)
    assert (answer.as_numpy("OUT") == values).all()


def test_a_name_with_an_underscore_of_any_length(balanced, api):
    value = "x" * 20000
    answer = infer(balanced, api, "echo", numpy.array([1], numpy.int32),
                   headers={"an_underscore": value})
    told = answer.get_response()
    if api is tritonclient.http:
        assert told["parameters"]["an_underscore"] == value
    else:
        assert told.parameters["an_underscore"].string_param == value


def test_events_come_before_their_stream_ends(balanced):
    with events.Open(balanced[tritonclient.http],
                     events.path("repeat", "generate_stream"), FOREVER) as o:
        assert o.read()["OUT"] == 1
