"""A ModelStreamInfer whose first request fails goes on to error_page, with all
that has come of it; what follows streams on in both directions."""

import struct

import grpc
import pytest
from tritonclient.grpc import service_pb2 as pb

from lib import arena, decoupled, models, process
from lib.exposition import figure
from lib.grpc_client import (SERVICE, Client, Failure, frame, frames, infer,
                             number, numbers, status_in, tensor)
from lib.h2 import DATA, PADDED, H2, WINDOW
from lib.server import SLOW, Server, free_port

ARENA = 64 << 20
PREREAD = 65536             # http2_body_preread_size
Code = grpc.StatusCode
HEADERS = {"content-type": "application/grpc", "te": "trailers"}
STREAM = SERVICE + "ModelStreamInfer"
INT32 = [("IN", "INT32", [-1])]


def fill_far(repository):
    """Each answers with the numbers of a request; ours fail or are slow."""
    for name in ("far", "broken", "slow", "sleepy"):
        models.identity(repository, name, INT32, versions=(2,))
    models.identity(repository, "full", [("IN", "INT32", [1])], max_batch=1,
                    versions=(2,))
    decoupled.square(repository, "far_square")


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "broken", INT32,
                    parameters={"fail_execute": "out of order"})
    for name, delay in (("slow", "2000"), ("sleepy", "300")):
        models.identity(repository, name, INT32, instances=2,
                        parameters={"execute_delay_ms": delay})
    models.identity(repository, "full", [("IN", "INT32", [1])], max_batch=1,
                    parameters={"execute_delay_ms": "500"},
                    extra="dynamic_batching { default_queue_policy {"
                          " max_queue_size: 1 } }")
    decoupled.square(repository)


@pytest.fixture(scope="module")
def far():
    with Server(fill_far, http2=True) as s:
        yield s


def locations(far):
    return f"""
        location /on/ {{
            inference all; inference_intercept_errors on;
            inference_errors precise; inference_timeout 700ms;
            error_page 404 429 500 503 504 = @far;
        }}
        location @far {{
            rewrite ^/[a-z]+(/.*) $1 break; client_max_body_size 0;
            grpc_pass grpc://127.0.0.1:{far.port2};
        }}"""


@pytest.fixture(scope="module")
def server(far):
    with Server(fill, http2=True, http=f"""
    inference_memory {ARENA};
""", parts="all metrics", server=locations(far) + f"""
        location /patient/ {{
            inference all; inference_intercept_errors on;
            inference_errors precise; error_page 404 429 500 = @far;
        }}
        location /elsewhere/ {{
            inference all; inference_intercept_errors on;
            error_page 503 = @far;
        }}
        location /closed/ {{
            inference metadata; inference_intercept_errors on;
            error_page 404 500 501 = @far;
        }}
        location /buffered/ {{
            inference all; inference_intercept_errors on;
            error_page 404 = @far; client_body_buffer_size 256k;
        }}
        location /down/ {{
            inference all; inference_intercept_errors on;
            error_page 404 = @down;
        }}
        location /ours/ {{
            inference all; inference_intercept_errors on;
            error_page 404 = @ours;
        }}
        location @down {{ grpc_pass grpc://127.0.0.1:{free_port()}; }}
        location @ours {{ inference_model id_int32; }}
""") as s:
        yield s
        arena.assert_empty(s, ARENA)


@pytest.fixture(scope="module")
def peeking(far):
    """The first message is waited for before the handler has its turn."""
    with Server(fill, http2=True, http=f"""
    inference_memory {ARENA};
    limit_req_zone $inference_model zone=model:1m rate=1000r/s;
""", server=locations(far) + """
        location /limited/ {
            inference all; inference_intercept_errors on;
            error_page 404 = @far; limit_req zone=model burst=1000 nodelay;
        }
""") as s:
        yield s
        arena.assert_empty(s, ARENA)


@pytest.fixture(params=["server", "peeking"])
def either(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def on(server):
    with Client(server.port2, "/on") as c:
        yield c


def version(answer):
    """Theirs have 2."""
    assert answer.error_message == "", answer
    return answer.infer_response.model_version


def echoed(answer):
    raw = answer.infer_response.raw_output_contents[0]
    return list(struct.unpack(f"<{len(raw) // 4}i", raw))


def sized(model, size):
    """A message whose frame has so many bytes."""
    count = size // 4 - 15
    data = numbers(model, range(count), id="i")
    data = numbers(model, range(count), id="i" * (1 + size - len(frame(data))))
    assert len(frame(data)) == size
    return data


def responses(stream):
    """Of a stream by hand, without compression."""
    return [pb.ModelStreamInferResponse.FromString(body)
            for _, body in frames(stream.body)]


def wait_body(c, number_, count):
    """Until the stream has that many whole messages."""
    def whole(data):
        at = found = 0
        while at + 5 <= len(data):
            at += 5 + struct.unpack_from(">I", data, at + 1)[0]
            found += at <= len(data)
        return found
    while whole(c.streams[number_].body) < count:
        c.step()


# ---- streams that go on

@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip,
                                         grpc.Compression.Deflate])
def test_stream_goes_on_both_ways(on, compression):
    with on.stream(compression=compression) as stream:
        for value in range(5):
            stream.send(numbers("far", [value], id=str(value)))
            answer = stream.read()
            assert (number(answer), version(answer)) == (value, "2")
            assert answer.infer_response.id == str(value)
        stream.send(*(numbers("far", [value]) for value in range(50)))
        assert [number(x) for x in stream.read(50)] == list(range(50))
        stream.end()
        assert stream.rest() == []


@pytest.mark.parametrize("size", [100, 20_000, 60_000, PREREAD - 1])
def test_large_messages_follow(on, size):
    """No window is granted twice, and each is granted."""
    later = numbers("far", range(300_000))
    with on.stream() as stream:
        stream.send(sized("far", size))
        assert echoed(stream.read())[:5] == list(range(5))
        stream.send(*[later] * 4)
        assert all(echoed(x) == list(range(300_000)) for x in stream.read(4))
        stream.end()
        assert stream.rest() == []


def test_buffer_of_our_location_is_not_granted(server):
    """It is larger than what nginx puts aside for the next handler."""
    with Client(server.port2, "/buffered") as c, c.stream() as stream:
        stream.send(sized("far", 30_000))
        assert version(stream.read()) == "2"
        stream.send(*[numbers("far", range(100_000))] * 8)
        assert [version(x) for x in stream.read(8)] == ["2"] * 8


def test_half_closed_stream_goes_on(on):
    with on.stream() as stream:
        stream.send(numbers("far", [1]), numbers("far", [2]))
        stream.end()
        assert [number(x) for x in stream.rest()] == [1, 2]


def test_first_message_in_single_bytes(either):
    data = frame(numbers("far", [7]))
    with H2(either.port2) as c:
        stream = c.post("/on" + STREAM, HEADERS)
        for byte in data[:-1]:
            c.data(stream, bytes([byte]))
            c.sync()
        assert c.streams[stream].status is None
        c.data(stream, data[-1:])
        wait_body(c, stream, 1)
        c.data(stream, data + data[:9])
        wait_body(c, stream, 2)
        c.data(stream, data[9:], True)
        reply = c.read(stream)
        assert status_in(reply.block) == 0
        assert [(number(x), version(x)) for x in responses(reply)] \
            == [(7, "2")] * 3


@pytest.mark.parametrize("cut", [0, 3, 30])
def test_messages_in_the_first_frame(either, cut):
    """Two of them, and a part of the third."""
    data = frame(numbers("far", [1])) + frame(numbers("far", [2]))
    third = frame(numbers("far", [3]))
    with H2(either.port2) as c:
        stream = c.post("/on" + STREAM, HEADERS)
        c.data(stream, data + third[:cut])
        wait_body(c, stream, 2)
        c.data(stream, third[cut:], True)
        reply = c.read(stream)
        assert status_in(reply.block) == 0
        assert [number(x) for x in responses(reply)] == [1, 2, 3]


def test_streams_of_one_connection_are_apart(server):
    data = [frame(numbers("far", [i])) for i in range(20)]
    with H2(server.port2) as c:
        streams = [c.post("/on" + STREAM, HEADERS) for _ in data]
        for at in range(0, len(data[0]), 10):
            for stream, message in zip(streams, data):
                c.data(stream, message[at:at + 10],
                       at + 10 >= len(message))
        for i, stream in enumerate(streams):
            reply = c.read(stream)
            assert status_in(reply.block) == 0
            assert [number(x) for x in responses(reply)] == [i]


@pytest.mark.parametrize("model", ["broken", "slow"])
def test_errors_of_the_model_go_on(on, model):
    """By 500, and by 504 of inference_timeout."""
    with on.stream() as stream:
        stream.send(numbers(model, [4]))
        answer = stream.read()
        assert (number(answer), version(answer)) == (4, "2")
        stream.send(numbers("far", [5]))
        assert number(stream.read()) == 5


def test_full_queue_goes_on(server):
    """By 429: some are executed here, one after the other."""
    request = infer("full", tensor("IN", "INT32", [1, 1],
                                   struct.pack("<i", 9)))
    with Client(server.port2, "/patient") as c:
        streams = [c.stream() for _ in range(8)]
        for stream in streams:
            stream.send(request)
        assert {version(x.read()) for x in streams} == {"1", "2"}
        for stream in streams:
            stream.cancel()


def test_requests_in_flight_are_cancelled(server, on):
    """The first fails by its timeout while others are executed, or have been
    and wait for their turn."""
    with on.stream() as stream:
        stream.send(numbers("slow", [1]), numbers("slow", [2]),
                    numbers("id_int32", [3]), numbers("slow", [4]))
        answers = stream.read(4)
        assert [number(x) for x in answers[:2] + answers[3:]] == [1, 2, 4]
        in_band(answers[2])                     # of the other server
        arena.assert_empty(server, ARENA)
        assert process.wait_until(
            lambda: figure(server, "response_arena_used_bytes") == 0,
            10 * SLOW)
        stream.send(numbers("far", [5]))
        assert number(stream.read()) == 5


def test_nothing_is_held_while_the_other_server_answers(server, on):
    with on.stream() as stream:
        stream.send(sized("far", 50_000), numbers("far", [1]))
        assert [version(x) for x in stream.read(2)] == ["2", "2"]
        arena.assert_empty(server, ARENA)
        stream.send(numbers("far", [2]))
        assert number(stream.read()) == 2


def test_stream_goes_on_to_a_model_of_ours(server):
    with Client(server.port2, "/ours") as c, c.stream() as stream:
        for value in (1, 2):
            stream.send(numbers("far", [value]))
            answer = stream.read()
            assert number(answer) == value
            assert answer.infer_response.model_name == "id_int32"


def test_log_says_that_it_goes_on(server, on):
    before = len(server.log_text())
    with on.stream() as stream:
        stream.send(numbers("far", [1]))
        assert version(stream.read()) == "2"
    text = server.log_text()[before:]
    assert "handed on to error_page: " in text
    assert "[error]" not in text


# ---- streams that keep our errors

def in_band(answer, text="unknown model"):
    assert text in answer.error_message, answer


@pytest.mark.parametrize("size", [PREREAD + 1, 300_000])
def test_first_message_without_room_fails_here(on, size):
    with on.stream() as stream:
        stream.send(sized("far", size))
        in_band(stream.read())
        stream.send(numbers("id_int32", [2]), numbers("far", [3]))
        assert number(stream.read()) == 2
        in_band(stream.read())


def test_second_message_without_room_keeps_the_stream(server):
    """It begins before the first is answered."""
    large = frame(numbers("id_int32", range(100_000)))
    with H2(server.port2, window=1 << 24) as c:
        stream = c.post("/on" + STREAM, HEADERS)
        first = frame(numbers("far", [1])) + large[:5]
        c.data(stream, first)
        c.data_in_window(stream, large[5:], len(first))
        reply = c.read(stream)
        assert status_in(reply.block) == 0
        answers = responses(reply)
        in_band(answers[0])
        assert echoed(answers[1]) == list(range(100_000))


def test_padding_takes_room(server):
    """The client may send less than the buffer holds: its window is granted
    before it has to wait for it."""
    data = frame(numbers("far", range(1000)))
    with H2(server.port2) as c:
        stream = c.post("/on" + STREAM, HEADERS)
        for at in range(WINDOW // 257):
            c.frame(DATA, PADDED, stream,
                    b"\xff" + data[at:at + 1] + bytes(255))
        while not c.streams[stream].grants:
            c.step()
        c.data(stream, data[WINDOW // 257:], True)
        reply = c.read(stream)
        assert status_in(reply.block) == 0
        in_band(responses(reply)[0])


def test_error_after_a_response_stays_here(on):
    with on.stream() as stream:
        stream.send(numbers("id_int32", [1]))
        assert number(stream.read()) == 1
        stream.send(numbers("far", [2]), numbers("id_int32", [3]))
        in_band(stream.read())
        assert number(stream.read()) == 3


def test_error_behind_a_slow_request_stays_here(on):
    with on.stream() as stream:
        stream.send(numbers("sleepy", [1]), numbers("far", [2]),
                    numbers("id_int32", [3]))
        assert number(stream.read()) == 1
        in_band(stream.read())
        assert number(stream.read()) == 3


def test_response_of_a_later_request_keeps_the_stream(server):
    """That of a decoupled model overtakes the first request."""
    with Client(server.port2, "/on") as c, c.stream() as stream:
        stream.send(numbers("slow", [1]), numbers("square", [2]))
        assert [number(x) for x in stream.read(2)] == [2, 2]
        in_band(stream.read(), "timeout")
        stream.send(numbers("id_int32", [3]))
        assert number(stream.read()) == 3


def test_request_without_responses_keeps_the_stream(on):
    """It was carried out here; nothing is sent of it."""
    with on.stream() as stream:
        stream.send(numbers("square", [0]), numbers("far", [1]))
        in_band(stream.read())
        stream.send(numbers("id_int32", [2]))
        assert number(stream.read()) == 2


def test_status_that_is_not_named_stays_here(server):
    with Client(server.port2, "/elsewhere") as c, c.stream() as stream:
        stream.send(numbers("far", [1]), numbers("id_int32", [2]))
        in_band(stream.read())
        assert number(stream.read()) == 2


def test_names_that_limits_have_seen_stay_here(peeking):
    """Nobody would hold the later messages against them."""
    with Client(peeking.port2, "/limited") as c, c.stream() as stream:
        stream.send(numbers("far", [1]))
        in_band(stream.read())
        stream.send(numbers("id_int32", [2]))
        in_band(stream.read(), "depend on model and version")


def test_part_that_is_not_served_stays_here(server):
    with Client(server.port2, "/closed") as c, c.stream() as stream:
        stream.send(numbers("far", [1]))
        with pytest.raises(Failure) as caught:
            stream.read()
        assert caught.value.code == Code.UNIMPLEMENTED


def test_broken_frames_fail_here(server):
    with H2(server.port2) as c:
        stream = c.post("/on" + STREAM, HEADERS)
        c.data(stream, frame(b"", flag=7))
        assert status_in(c.read(stream).block) not in (None, 0)


# ---- streams that succeed where they might have gone on

def test_stream_of_ours_in_odd_pieces(either):
    """The bytes that a preview has taken are read, but not taken once more."""
    data = b"".join(frame(numbers("id_int32", range(i, i + 900)))
                    for i in range(40))
    with H2(either.port2, window=1 << 24) as c:
        for piece in (1777, 5000, 16384):
            stream = c.post("/on" + STREAM, HEADERS)
            c.data(stream, data[:piece])
            c.data_in_window(stream, data[piece:], piece)
            reply = c.read(stream)
            assert status_in(reply.block) == 0
            assert [echoed(x) for x in responses(reply)] \
                == [list(range(i, i + 900)) for i in range(40)]


def test_message_that_is_half_there_at_the_first_response(server):
    first, second = (frame(numbers("id_int32", [v] * 500)) for v in (1, 2))
    for cut in (1, 5, 6, 1000, len(second) - 1):
        with H2(server.port2) as c:
            stream = c.post("/on" + STREAM, HEADERS)
            c.data(stream, first + second[:cut])
            wait_body(c, stream, 1)
            c.data(stream, second[cut:], True)
            reply = c.read(stream)
            assert [echoed(x) for x in responses(reply)] \
                == [[1] * 500, [2] * 500]


def test_many_requests_behind_a_slow_one(on):
    """More than the room for a preview, and than the requests of a call."""
    with on.stream() as stream:
        stream.send(numbers("sleepy", [0]), *(
            numbers("id_int32", [i]) for i in range(1, 2000)))
        assert [number(x) for x in stream.read(2000)] == list(range(2000))
        stream.end()
        assert stream.rest() == []


def test_stream_without_messages_ends_well(on):
    with on.stream() as stream:
        stream.end()
        assert stream.rest() == []


# ---- clients and servers that are gone

def test_client_that_leaves(server):
    data = frame(numbers("slow", range(5000)))
    with H2(server.port2) as c:
        for sent in (0, 3, 1000, len(data)):
            stream = c.post("/on" + STREAM, HEADERS)
            if sent:
                c.data(stream, data[:sent])
            c.sync()
            c.reset(stream)
        stream = c.post("/on" + STREAM, HEADERS)
        c.data(stream, frame(numbers("far", [1])))
        wait_body(c, stream, 1)
        c.reset(stream)
        c.sync()
        c.post("/on" + STREAM, HEADERS)
        c.data(stream + 2, data[:1000])
        c.sync()
    arena.assert_empty(server, ARENA)


def test_server_that_is_down_is_a_status(server):
    with Client(server.port2, "/down") as c, c.stream() as stream:
        stream.send(numbers("far", [1]))
        with pytest.raises(Failure) as caught:
            stream.read()
        assert caught.value.code == Code.UNAVAILABLE


def test_idle_stream_of_a_leaving_worker_ends_here(far):
    with Server(models.standard_repository, http2=True, server=f"""
        location /on/ {{
            inference all; inference_intercept_errors on;
            error_page 500 503 = @far;
        }}
        location @far {{
            rewrite ^/on(/.*) $1 break;
            grpc_pass grpc://127.0.0.1:{far.port2};
        }}
""") as s, H2(s.port2, patient=True) as c:
        stream = c.post("/on" + STREAM, HEADERS)
        c.sync()
        s.signal("HUP")
        assert status_in(c.read(stream).block) == 14
