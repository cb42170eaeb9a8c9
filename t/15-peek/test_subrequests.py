"""A subrequest of another module is about the request that it belongs to: a
service that decides about access, or gets a copy, is told model and version."""

import grpc
import pytest

from lib import models, process
from lib.grpc_client import Client, Failure, number, numbers
from lib.server import SLOW, Server, free_port
from lib.upstream import Upstream

Code = grpc.StatusCode
PATH = "/v2/models/%s/versions/1/infer"
TOLD = """internal; proxy_pass_request_body off;
            proxy_set_header Content-Length "";
            proxy_set_header X-Asked
                "$inference_model/$inference_version/$inference_verb";"""


@pytest.fixture(scope="module")
def server():
    """Access by the model is another server's; copies go to upstream."""
    port = free_port()
    with Upstream() as upstream, Server(
            models.standard_repository, http2=True, http=f"""
    server {{
        listen 127.0.0.1:{port};
        location / {{
            if ($http_x_asked ~ ^id_fp32/) {{ return 403; }}
            return 204;
        }}
    }}""", server=f"""
        location /asked/ {{ auth_request /who; inference infer; }}
        location /one {{ auth_request /who; inference_model id_fp32 1; }}
        location = /who {{ {TOLD} proxy_pass http://127.0.0.1:{port}; }}
        location /routed/ {{
            inference_peek on; auth_request /routed/who;
            proxy_pass http://127.0.0.1:{port};
            location /routed/inference. {{
                grpc_pass grpc://127.0.0.1:$server_port;
                rewrite ^/routed(.*) $1 break;
            }}
            location = /routed/who {{
                {TOLD} proxy_pass http://127.0.0.1:{port};
            }}
            location = /routed/copy {{
                {TOLD} proxy_pass http://127.0.0.1:{upstream.port};
            }}
        }}
        location /copied/ {{ mirror /copy; inference infer; }}
        location /other {{ auth_request /copy; }}
        location = /copy {{
            {TOLD} proxy_pass http://127.0.0.1:{upstream.port};
        }}
""") as s:
        s.upstream = upstream
        yield s


def told(server):
    """The requests that the upstream has seen since the last time."""
    requests = server.upstream.requests
    assert process.wait_until(lambda: requests, 20 * SLOW)
    return requests.pop()["headers"]["x-asked"]


def denied(call):
    with pytest.raises(Failure) as caught:
        call()
    assert caught.value.code == Code.PERMISSION_DENIED, caught.value


def test_access_of_rest_by_another_server(server):
    path = "/asked" + PATH
    assert server.post(path % "id_fp32", b"{}").status == 403
    assert server.post(path % "id_int32", b"{}").status == 400
    assert server.post("/one", b"{}").status == 403


def test_access_of_grpc_by_another_server(server):
    with Client(server.port2, "/asked") as c:
        assert c.numbers("id_int32", [5]) == [5]
        denied(lambda: c.numbers("id_fp32", [5]))
        with c.stream() as stream:
            stream.send(numbers("id_fp32", [7]))
            denied(stream.read)


def test_messages_keep_to_the_names_that_another_server_has_seen(server):
    with Client(server.port2, "/asked") as c, c.stream() as stream:
        stream.send(numbers("id_int32", [7]))
        assert number(stream.read()) == 7
        stream.send(numbers("id_fp32", [7]))
        assert "depend on model and version" in stream.read().error_message


def test_access_where_the_server_that_decides_inherits_inference_peek(server):
    """Its own path says nothing of a model."""
    path = "/routed" + PATH
    assert server.post(path % "id_fp32", b"{}").status == 403
    assert server.post(path % "id_int32", b"{}").status == 204
    with Client(server.port2, "/routed") as c:
        assert c.numbers("id_int32", [5]) == [5]
        denied(lambda: c.numbers("id_fp32", [5]))


def test_a_copy_has_the_names(server):
    server.post("/copied" + PATH % "id_int32", b"{}")
    assert told(server) == "id_int32/1/infer"
    with Client(server.port2, "/copied") as c:
        c.numbers("id_int32", [5])
    assert told(server) == "id_int32//infer"


def test_a_request_without_names_has_none(server):
    server.get("/other" + PATH % "id_int32")
    assert told(server) == "//"
