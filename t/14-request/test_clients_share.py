"""conf.d/endpoint.conf as it stands, its commented limits switched on."""

import contextlib
import re

from lib import models
from lib.server import ROOT, SLOW
from lib.process import wait_until
from lib.wire import Wire, request_bytes

RAW = {"Inference-Header-Content-Length": "0"}


def limited():
    text = (ROOT / "conf.d/endpoint.conf").read_text()
    zone = re.search(r"#     (limit_conn_zone [^;]*;)", text)[1]
    return zone, re.sub(r"# (limit_conn\w*  *[\w ]+;)", r"\1", text)


def test_client_with_too_many_requests_at_a_time_is_429(make_server):
    zone, locations = limited()
    server = make_server(models.standard_repository, http="    " + zone,
                         server=locations)
    most = int(re.search(r"limit_conn +clients (\d+)", locations)[1])
    path = "/ask/id_uint8"
    with contextlib.ExitStack() as stack:
        slow = []
        for _ in range(most):
            connection = stack.enter_context(Wire(server.port, 20 * SLOW))
            connection.send(request_bytes("POST", path, headers={
                **RAW, "Content-Length": "10"}) + b"x")
            slow.append(connection)
        assert wait_until(lambda: server.post(path, b"x", RAW).status == 429,
                          10 * SLOW)
        # the other locations have no such limit
        assert server.post("/v2/models/id_uint8/infer", b"x",
                           RAW).status == 200
        for connection in slow:
            connection.send(b"y" * 9)
            assert connection.read().status == 200
    assert wait_until(lambda: server.post(path, b"x", RAW).status == 200,
                      10 * SLOW)
