"""The contents of a worker's request arena, as a client can find out."""

from lib import process
from lib.server import SLOW
from lib.wire import request_bytes


def asks_to_continue(server, size, model="id_uint8"):
    """The status of a request that only announces size bytes, without the
    limit that is each request's."""
    with server.wire() as connection:
        connection.send(request_bytes(
            "POST", f"/unlimited/v2/models/{model}/infer", headers={
                "Expect": "100-continue", "Content-Length": str(size),
                "Inference-Header-Content-Length": "0"}))
        return connection.read().status


def assert_empty(server, size, seconds=10):
    """A body as large as the whole arena is welcome: not a byte is in use.

    size: inference_memory of a server with one worker.
    """
    assert process.wait_until(
        lambda: asks_to_continue(server, size) == 100, seconds * SLOW), \
        "the request arena is still in use"
