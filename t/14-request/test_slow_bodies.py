"""inference_min_body_rate: bodies that come too slowly are answered 408."""

import time

import pytest

from lib import arena, models
from lib.h2 import H2
from lib.server import SLOW, Server
from lib.wire import Wire, request_bytes

ARENA = 64 << 20
UINT8 = "/v2/models/id_uint8/infer"
RAW = {"Inference-Header-Content-Length": "0"}


@pytest.fixture(scope="module")
def server():
    with Server(models.standard_repository, http2=True, http=f"""
        inference_memory {ARENA}; inference_max_body 0;
        inference_min_body_rate 100k over=1s;
    """, server="""
        location /any/ { inference infer; inference_min_body_rate 0; }
        location /least/ { inference infer;
                           inference_min_body_rate 5 over=2s; }
        location /page/ {
            inference infer; inference_intercept_errors on;
            error_page 408 = /sorry;
        }
        location = /sorry { return 200 "later"; }
        location /lingers/ { inference infer; lingering_timeout 300s;
                             lingering_time 300s; }
    """) as s:
        yield s
        arena.assert_empty(s, ARENA)


def begin(server, path, headers=None, size=1 << 20):
    connection = Wire(server.port, 30 * SLOW)
    connection.send(request_bytes("POST", path, headers={
        **RAW, **(headers or {"Content-Length": str(size)})}))
    return connection


@pytest.mark.parametrize("sent", [0, 1, 50_000])
@pytest.mark.parametrize("how", ["length", "chunked"])
def test_body_that_stops_is_408_and_closed(server, sent, how):
    headers = {"Transfer-Encoding": "chunked"} if how == "chunked" else None
    with begin(server, UINT8, headers) as connection:
        data = b"x" * sent
        if how == "chunked" and sent:
            data = b"%x\r\n%s\r\n" % (sent, data)
        connection.send(data)
        answer = connection.read()
        assert answer.status == 408, answer
        assert "inference_min_body_rate" in answer.error
        assert answer.headers["connection"] == "close"
        assert connection.socket.recv(1) == b""


def test_body_takes_no_room_while_its_connection_lingers(server):
    with begin(server, "/lingers" + UINT8) as connection:
        connection.send(bytes(50_000))
        assert connection.read().status == 408
        arena.assert_empty(server, ARENA)
        connection.send(b"x")           # nginx still takes what comes


def test_body_that_drips_is_408(server):
    """Each piece comes long before client_body_timeout."""
    with begin(server, UINT8) as connection:
        answer = None
        connection.socket.settimeout(0.05)
        while answer is None:
            try:
                connection.send(b"x" * 100)
                answer = connection.read()
            except TimeoutError:
                continue
        assert answer.status == 408, answer


def test_first_quick_bytes_do_not_pay_for_slow_ones_later(server):
    with begin(server, UINT8, size=20 << 20) as connection:
        connection.send(bytes(19 << 20))
        assert connection.read().status == 408


def test_stream_that_stops_is_408_and_others_on_its_connection_go_on(server):
    with H2(server.port2, 1 << 30, 30 * SLOW) as connection:
        slow = connection.post(UINT8, {**lower(RAW),
                                       "content-length": "1000000"})
        connection.data(slow, bytes(1000))
        good = connection.read(connection.post(UINT8, lower(RAW), b"good"))
        assert good.status == 200
        stream = connection.read(slow)
        assert stream.status == 408
        assert b"inference_min_body_rate" in stream.body
        good = connection.read(connection.post(UINT8, lower(RAW), b"again"))
        assert good.status == 200


def lower(headers):
    return {k.lower(): v for k, v in headers.items()}


def test_rate_is_the_locations(server):
    """0: any; and one that is met although it takes several times `over`.

    The stream's bytes are fewer a second than one of nginx's buffers holds.
    """
    with begin(server, "/any" + UINT8, size=10) as idle, \
            begin(server, "/least" + UINT8, size=300) as slow, \
            H2(server.port2, 1 << 30, 30 * SLOW) as connection:
        number = connection.post("/least" + UINT8, {
            **lower(RAW), "content-length": "3000"})
        for i in range(30):
            slow.send(b"x" * 10)
            connection.data(number, b"y" * 100, end=i == 29)
            time.sleep(0.15)
        answer = slow.read()
        assert answer.status == 200, answer
        assert answer.split()[1] == b"x" * 300
        stream = connection.read(number)
        assert stream.status == 200, stream.body
        assert stream.body.endswith(b"y" * 3000)
        idle.send(b"x" * 10)
        assert idle.read().status == 200


def test_error_page_does_not_get_half_a_body(server):
    with begin(server, "/page" + UINT8) as connection:
        connection.send(b"x" * 1000)
        answer = connection.read()
        assert answer.status == 408, answer
        assert answer.error


def test_time_in_the_model_is_no_time_of_the_body(make_server):
    server = make_server(
        lambda r: models.identity(r, "slow", [("IN", "UINT8", [-1])],
                                  parameters={"execute_delay_ms": "900"}),
        http="    inference_min_body_rate 1m over=200ms;")
    answer = server.post("/v2/models/slow/infer", b"x", RAW)
    assert answer.status == 200, answer
