"""conf.d/tls.conf with HTTP/3 switched on: REST through aioquic."""

import asyncio
import json
import ssl

import pytest
from aioquic.asyncio import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration

from lib import certificate, events
from lib.curl import curl
from lib.grpc_client import frame, infer
from lib.server import SLOW, has_http3

pytestmark = pytest.mark.skipif(not has_http3(),
                                reason="nginx has no HTTP/3")


class Client(QuicConnectionProtocol):
    """One connection; a request is a stream of it."""

    def __init__(self, *arguments, **kw):
        super().__init__(*arguments, **kw)
        self.http = H3Connection(self._quic)
        self.answers = {}
        self.ended = {}

    def quic_event_received(self, event):
        for told in self.http.handle_event(event):
            answer = self.answers.get(getattr(told, "stream_id", None))
            if isinstance(told, HeadersReceived):
                answer[0].update(told.headers)
            elif isinstance(told, DataReceived):
                answer[1].extend(told.data)
            if getattr(told, "stream_ended", False):
                self.ended[told.stream_id].set()

    async def fetch(self, method, path, body=b"", headers=()):
        """(status, headers, body)"""
        stream = self._quic.get_next_available_stream_id()
        self.answers[stream] = ({}, bytearray())
        self.ended[stream] = asyncio.Event()
        self.http.send_headers(stream, [
            (b":method", method), (b":scheme", b"https"),
            (b":authority", b"localhost"), (b":path", path),
            (b"content-length", str(len(body)).encode()), *headers])
        self.http.send_data(stream, body, end_stream=True)
        self.transmit()
        await asyncio.wait_for(self.ended[stream].wait(), 60 * SLOW)
        found, data = self.answers[stream]
        return int(found[b":status"]), found, bytes(data)


@pytest.fixture
def http3(snippet, tmp_path):
    """(port, file of the authority)"""
    tmp_path.chmod(0o755)
    by = certificate.authority(tmp_path)
    cert, key = certificate.signed(tmp_path, by)
    _, (port,) = snippet("tls", 8443, switch_on=("listen     8443 quic",
                                                 "add_header Alt-Svc"),
                         files={"server_crt": cert, "server_key": key})
    return port, by[0]


def run(http3, work):
    """The result of work(client), on a connection of its own."""
    port, authority = http3
    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=H3_ALPN, server_name="localhost",
        cafile=str(authority), verify_mode=ssl.CERT_REQUIRED)

    async def main():
        async with connect("127.0.0.1", port, configuration=configuration,
                           create_protocol=Client) as client:
            return await work(client)

    return asyncio.run(main())


def ask(values):
    return json.dumps({"inputs": [{
        "name": "IN", "datatype": "INT32", "shape": [len(values)],
        "data": values}]}).encode()


def test_clients_learn_of_it(http3):
    port, authority = http3
    _, head = curl("--cacert", authority, "-I", "-X", "GET",
                   f"https://localhost:{port}/v2/health/live")
    assert f'alt-svc: h3=":{port}"; ma=86400'.encode() in head.lower()


def test_calls(http3):
    async def work(client):
        for path in (b"/v2/health/live", b"/v2/health/ready", b"/v2",
                     b"/v2/models/id_int32", b"/v2/models/id_int32/config",
                     b"/v2/models/stats"):
            status, _, _ = await client.fetch(b"GET", path)
            assert status == 200, path
        assert (await client.fetch(b"GET", b"/v2/models/ghost"))[0] == 404
        assert (await client.fetch(b"POST", b"/v2/models/ghost/infer",
                                   ask([1])))[0] == 404
        assert (await client.fetch(b"POST", b"/v2/models/id_int32/infer",
                                   b"{"))[0] == 400

    run(http3, work)


def test_many_inferences_at_a_time(http3):
    async def one(client, i):
        status, _, body = await client.fetch(
            b"POST", b"/v2/models/id_int32/infer", ask([i, -i]))
        assert status == 200
        assert json.loads(body)["outputs"][0]["data"] == [i, -i]

    async def work(client):
        await asyncio.gather(*[one(client, i) for i in range(50)])

    run(http3, work)


def test_large_binary_tensors(http3):
    data = bytes(range(256)) * 8192

    async def work(client):
        return await client.fetch(
            b"POST", b"/v2/models/id_uint8/infer", data,
            [(b"inference-header-content-length", b"0")])

    status, headers, body = run(http3, work)
    assert status == 200
    assert body[int(headers[b"inference-header-content-length"]):] == data


def test_events(http3):
    async def work(client):
        return await client.fetch(
            b"POST", b"/v2/models/id_int32/generate_stream", b'{"IN": 3}')

    status, headers, body = run(http3, work)
    assert status == 200
    assert headers[b"content-type"].startswith(b"text/event-stream")
    assert [e["OUT"] for e in events.parse(body)] == [3]


def test_calls_of_grpc_are_not_served(http3):
    """Limits would not know their model; the path is none of REST's."""
    async def work(client):
        status, headers, _ = await client.fetch(
            b"POST", b"/inference.GRPCInferenceService/ModelInfer",
            frame(infer("id_int32")),
            [(b"content-type", b"application/grpc"), (b"te", b"trailers")])
        assert status == 404
        assert b"grpc-status" not in headers
        status, _, _ = await client.fetch(
            b"POST", b"/v2/models/id_int32/infer", ask([1]))
        assert status == 200

    run(http3, work)
