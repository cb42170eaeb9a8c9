"""gRPC messages up to the protocol's own limit, 2 GiB less a byte: issue 16.

Memory follows what has come, not what was announced.  A message of MESSAGE
bytes goes through unary calls and streams; `make test-large` has the limit
itself, which takes 6 GiB of memory and a minute.
"""

import os
import random
import struct
import time
import zlib

import pytest
from hpack import Decoder
from tritonclient.grpc import service_pb2 as pb

from lib import arena, models
from lib.grpc_client import SERVICE, frame, infer, status_in, tensor
from lib.h2 import H2, WINDOW
from lib.server import SLOW, Server
from lib.unharmed import bounded, memory, unharmed

LIMIT = (1 << 31) - 1
MESSAGE = int(os.environ.get("INF_MESSAGE", 64 << 20))
ARENA = MESSAGE + LIMIT
METHODS = ["ModelInfer", "ModelStreamInfer"]
METADATA = {"content-type": "application/grpc", "te": "trailers"}
PIECE = 1 << 14                 # of a frame
GRANT = 1 << 24
TENSOR = random.Random(16).randbytes(PIECE)     # and the same again
RAW_INPUT = b"\x3a"             # raw_input_contents of ModelInferRequest
FAULT = "which exceeds gRPC's byte size limit 2147483647."


@pytest.fixture(scope="module")
def server():
    with Server(models.standard_repository, http2=True, http=f"""
    inference_memory {ARENA} responses={ARENA};
    inference_max_body 0;
""") as s:
        s.idle = memory(s)
        yield s
        arena.assert_empty(s, ARENA)


def begin(connection, method, size, data=b""):
    """A call whose message has size bytes, of which some are sent."""
    stream = connection.post(SERVICE + method, METADATA)
    connection.data(stream, frame(data, size=size))
    return stream


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


def head_of(size):
    """(the message before its tensor, the tensor's length)."""
    rest = size
    while True:
        head = infer("id_uint8", tensor("IN", "UINT8", [rest])) \
            .SerializeToString() + RAW_INPUT + varint(rest)
        if len(head) + rest == size:
            return head, rest
        rest = size - len(head)


def send(connection, number, size):
    """The tensor of a message, as the windows permit; its checksum."""
    stream, head = connection.streams[number], head_of(size)[0]
    room, left, sum_ = WINDOW - 5 - len(head), size - len(head), 0
    while left and not stream.ended:
        room += sum(stream.grants)
        stream.grants.clear()
        piece = TENSOR[:min(room, left, PIECE)]
        if not piece:
            connection.step()
            continue
        sum_ = zlib.crc32(piece, sum_)
        room, left = room - len(piece), left - len(piece)
        connection.data(number, piece, left == 0)
    return sum_


def receive(connection, number, skip):
    """(first bytes of the body, checksum of all but `skip` bytes, bytes of
    the whole); only the first are kept."""
    stream, first, sum_, count, given = \
        connection.streams[number], b"", 0, 0, 0
    while True:
        data, stream.body = stream.body, b""
        first += data[:1000 - len(first)] if len(first) < 1000 else b""
        sum_ = zlib.crc32(data[max(0, skip - count):], sum_)
        count += len(data)
        given += len(data)
        if given >= GRANT:
            connection.give(number, given)
            connection.give(0, given)
            given = 0
        if stream.ended:
            return first, sum_, count
        connection.step()


def text_of(block):
    """grpc-message; nginx has no dynamic table."""
    return dict(Decoder().decode(block))["grpc-message"]


@pytest.mark.parametrize("method", METHODS)
def test_what_is_announced_takes_no_memory(server, method):
    """Forty messages of the greatest length, of which 60,000 bytes come."""
    head, _ = head_of(LIMIT)
    before = memory(server)
    with unharmed(server), H2(server.port2) as c:
        for _ in range(40):
            begin(c, method, LIMIT, head + TENSOR * 3)
        c.sync()
        bounded(server, before, 64 << 20)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [LIMIT + 1, (1 << 32) - 1])
def test_messages_beyond_the_limit(server, method, size):
    """Five bytes suffice."""
    with H2(server.port2) as c:
        reply = c.read(begin(c, method, size))
    assert (status_in(reply.block), reply.body) == (8, b"")
    assert f"Received message larger than max ({size} vs. {LIMIT})" \
        in text_of(reply.block)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [MESSAGE - 64, MESSAGE])
def test_large_messages(server, method, size):
    """A message of the limit is read; its response has a few bytes more, and
    does not fit into a message."""
    head, length = head_of(size)
    began = time.monotonic()
    with unharmed(server), H2(server.port2, GRANT * 4, 120 * SLOW) as c:
        number = begin(c, method, size, head)
        sent = send(c, number, size)
        came = time.monotonic()
        skip = len(frame(b"")) + reply_head(method, length)
        first, sum_, count = receive(c, number, skip)
        block = c.streams[number].block
    print(f"{method} {size}: sent in {came - began:.1f} s, answered in "
          f"{time.monotonic() - came:.1f} s, "
          f"{memory(server) - server.idle >> 20} MiB more than idle")
    if count == skip + length:
        assert size <= LIMIT - 64 and sum_ == sent
        assert struct.unpack(">BI", first[:5]) == (0, count - 5)
        assert status_in(block) == 0
    elif method == "ModelInfer":
        assert size > LIMIT - 64 and count == 0
        assert status_in(block) == 3 and FAULT in text_of(block)
    else:
        assert size > LIMIT - 64 and status_in(block) == 0
        reply = pb.ModelStreamInferResponse.FromString(first[5:])
        assert FAULT in reply.error_message
    # unused pages go back to the system bit by bit, so this is the most
    bounded(server, server.idle, 2 * size + (64 << 20))


def reply_head(method, length):
    """Bytes of a response before its tensor."""
    response = pb.ModelInferResponse(
        model_name="id_uint8", model_version="1", outputs=[
            pb.ModelInferResponse.InferOutputTensor(
                name="OUT", datatype="UINT8", shape=[length])])
    streamed = method == "ModelStreamInfer"
    if streamed:
        response.parameters["triton_final_response"].bool_param = True
    size = response.ByteSize() + 1 + len(varint(length))
    if streamed:
        size += 1 + len(varint(size + length))
    return size
