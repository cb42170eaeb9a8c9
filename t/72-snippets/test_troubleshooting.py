"""docs/troubleshooting.md: what it says of a status is how one gets it."""

import concurrent.futures
import json
import re
import socket

import pytest

from lib import models
from lib.server import ROOT, Server
from lib.wire import infer_path, tensor

PAGE = (ROOT / "docs/troubleshooting.md").read_text()
BODY = {"inputs": [tensor("IN", "INT32", [1], [1])]}
LOCATIONS = """
    location /small/ { inference infer; inference_max_body 10; }
    location /calls/ { inference infer grpc; }
    location /slow/ { inference infer; inference_min_body_rate 1m over=1s; }
    location /soon/ { inference infer; inference_timeout 10ms;
                      inference_errors precise; }
    location /some/ { inference infer; }
"""


def fill(folder):
    models.identity(folder, "m", [("IN", "INT32", [-1])])
    models.identity(folder, "long", [("IN", "INT32", [-1])],
                    parameters={"execute_delay_ms": "300"})


@pytest.fixture(scope="module")
def server():
    with Server(fill, server=LOCATIONS) as s:
        yield s


def ask(server, prefix="", model="m", body=BODY):
    return server.post(prefix + infer_path(model), json.dumps(body).encode())


def slow_body(server):
    """The status of a request whose body does not come."""
    with socket.create_connection(("127.0.0.1", server.port)) as s:
        s.settimeout(30)
        s.sendall(f"POST /slow{infer_path('m')} HTTP/1.1\r\nHost: x\r\n"
                  "Content-Length: 100\r\n\r\n{".encode())
        return int(s.recv(100).split()[1])


def queued(server):
    """Behind a request that the only instance executes."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = [f.result() for f in [
            pool.submit(lambda: ask(server, "/soon", "long").status)
            for _ in range(4)]]
    return max(found)


PROVOKED = {
    "400": lambda s: ask(s, body={"inputs": []}).status,
    "404": lambda s: ask(s, model="none").status,
    "408": slow_body,
    "413": lambda s: ask(s, "/small").status,
    "415": lambda s: ask(s, "/calls").status,
    "501": lambda s: s.get("/v2/systemsharedmemory/status").status,
    "504": queued,
}


@pytest.mark.parametrize("status", PROVOKED)
def test_a_status_of_the_table(server, status):
    assert re.search(rf"^\| (499, )?{status}\b", PAGE, re.M)
    assert PROVOKED[status](server) == int(status)


def test_a_location_without_health(server):
    assert re.search(r"^\| 404 \| the location serves no `health`", PAGE,
                     re.M)
    assert server.status("/some/v2/health/ready") == 404


def test_a_server_whose_model_failed(make_server):
    def broken(folder):
        fill(folder)
        (folder / "broken/1").mkdir(parents=True)

    server = make_server(broken, wait="live", server="location "
                         "/v2/repository/ { inference repository; }")
    assert server.wait_for("/v2/models/m/ready")
    answer = server.get("/v2/health/ready")
    assert re.search(rf"^\| {answer.status} \| a model is not ready", PAGE,
                     re.M)
    rows = server.post("/v2/repository/index", b"").json()
    assert [r["reason"] for r in rows if r["name"] == "broken"] != [""]
