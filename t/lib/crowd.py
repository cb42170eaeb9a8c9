"""Clients of every protocol, while nginx is reloaded or upgraded.

Each request has a number, which nginx logs when it has read the request's
head.  A client may lose a request that nginx has never read: a connection
that was idle for nginx was closed.  Such losses are counted apart; any other
request must be answered, and answered rightly.
"""

import collections
import contextlib
import itertools
import json
import os
import re
import threading
import time

from tritonclient.grpc import service_pb2 as pb

from lib import decoupled, grpc_client, models, process
from lib.h2 import H2
from lib.server import SLOW
from lib.wire import Wire, request_bytes, tensor

HTTP = """    log_format crowd '$http_x_number $status $request_completion '
        '"$inference_status" "$inference_grpc_status" $request_uri';
"""
SERVER = "        access_log crowd.log crowd;\n"
# a stream has no status
GOOD = re.compile(r'\d+ 200 OK "(OK" "-|OK" "0|-" "0)" /')
INFER = "/v2/models/id_uint8/infer"
MESSAGES = 8            # of a stream
EVENTS = 4              # of a generate_stream


def fill(repository):
    models.identity(repository, "id_uint8", [("IN", "UINT8", [-1])],
                    instances=4)
    decoupled.repeat(repository)


class Unread(Exception):
    """HTTP/2 has told that the server has not taken the request."""


class Polite(H2):
    """Ends after a GOAWAY when its streams have ended."""

    def step(self):
        super().step()
        if self.last is not None and self.number > self.last:
            raise Unread

    def send(self, headers, body):
        """A whole exchange, as the windows permit."""
        number = self.post(INFER, headers)
        self.data_in_window(number, body)
        self.read(number)
        return self.streams.pop(number)


class Rest1:
    """HTTP/1.1 on a kept connection."""

    def __init__(self, server, size):
        self.server = server
        self.size = size
        self.connection = None

    def ask(self, number):
        head, tail = binary(self.size)
        if self.connection is None:
            self.connection = Wire(self.server.port, 120 * SLOW)
        answer = self.connection.next().infer(
            "id_uint8", head, tail, {"X-Number": str(number)})
        assert answer.status == 200, answer
        assert answer.split()[1] == tail, "another answer"

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


class Rest2(Rest1):
    """HTTP/2."""

    def ask(self, number):
        head, tail = binary(self.size)
        if self.connection is None:
            self.connection = Polite(self.server.port2, 1 << 30, 120 * SLOW,
                                     patient=True)
        connection = self.connection
        answer = connection.send(
            {"x-number": str(number), "content-length": str(
                len(head) + len(tail)),
             "inference-header-content-length": str(len(head))}, head + tail)
        if connection.last is not None:
            self.close()
        assert answer.status == 200 and answer.reset is None, answer.body
        assert answer.body.endswith(tail), "another answer"


class Grpc:
    """Unary calls."""

    def __init__(self, server, size):
        self.client = grpc_client.Client(server.port2, seconds=120)
        self.size = size

    def request(self):
        tail = os.urandom(self.size)
        return grpc_client.infer("id_uint8", grpc_client.tensor(
            "IN", "UINT8", [len(tail)], tail)), tail

    def ask(self, number):
        request, tail = self.request()
        answer = self.client.unary(
            grpc_client.SERVICE + "ModelInfer", request,
            pb.ModelInferResponse, metadata=[("x-number", str(number))])
        assert answer.raw_output_contents[0] == tail, "another answer"

    def close(self):
        pass                    # the channel connects again by itself

    def end(self):
        self.client.close()


class GrpcStream(Grpc):
    """A stream of some messages, one after another."""

    def ask(self, number):
        with self.client.stream(
                metadata=[("x-number", str(number))]) as stream:
            for _ in range(MESSAGES):
                request, tail = self.request()
                stream.send(request)
                answer = stream.read()
                assert answer.error_message == "", answer.error_message
                assert answer.infer_response.raw_output_contents[0] == tail
            stream.end()
            assert stream.rest() == []


class Sse:
    """generate_stream, on a connection of its own."""

    def __init__(self, server, size):
        self.server = server
        self.body = json.dumps({
            "IN": list(range(EVENTS)), "DELAY": [20] * EVENTS, "WAIT": [0],
            "pad": "x" * size}).encode()

    def ask(self, number):
        with Wire(self.server.port, 120 * SLOW) as connection:
            connection.send(request_bytes(
                "POST", "/v2/models/repeat/generate_stream", self.body,
                {"X-Number": str(number)}))
            answer = connection.read()
        assert answer.status == 200, answer
        events = [json.loads(event[6:])
                  for event in answer.body.split(b"\n\n")[:-1]]
        assert [e["OUT"] for e in events] == list(range(EVENTS)), events

    def close(self):
        pass


KINDS = {"http1": Rest1, "http2": Rest2, "grpc": Grpc, "stream": GrpcStream,
         "sse": Sse}


def binary(size):
    tail = os.urandom(size)
    return json.dumps({
        "inputs": [tensor("IN", "UINT8", [size], binary_data_size=size)],
        "parameters": {"binary_data_output": True}}).encode(), tail


class Crowd:
    """Clients of each kind with bodies of each size, until stop()."""

    def __init__(self, server, sizes=(1 << 10, 1 << 20), kinds=KINDS):
        self.server = server
        self.numbers = itertools.count(1)
        self.answered = collections.Counter()       # by kind and size
        self.failures = {}                          # by number
        self.lock = threading.Lock()
        self.going = True
        self.names = [(kind, size) for kind in kinds for size in sizes
                      # parameters of generate are small
                      if kind != "sse" or size == min(sizes)]
        self.threads = [threading.Thread(target=self._run, args=name)
                        for name in self.names]

    def _run(self, kind, size):
        client = KINDS[kind](self.server, size)
        while self.going:
            number = next(self.numbers)
            try:
                client.ask(number)
            except Exception as e:      # pylint: disable=broad-except
                client.close()
                with self.lock:
                    self.failures[number] = f"{kind} {size}: {e!r}"
                time.sleep(0.01)
            else:
                with self.lock:
                    self.answered[kind, size] += 1
        client.close()
        with contextlib.suppress(AttributeError):
            client.end()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.going = False
        for thread in self.threads:
            thread.join()

    def wait_for_more(self, count=1, seconds=120):
        """Until each client has had so many further answers."""
        with self.lock:
            before = dict(self.answered)

        def all_have():
            with self.lock:
                return all(self.answered[name] >= before.get(name, 0) + count
                           for name in self.names)

        assert process.wait_until(all_have, seconds * SLOW), (
            before, self.answered, self.failures)

    def check(self):
        """After stop: what nginx has read was answered.  Returns how many
        requests were lost that it has not read."""
        lines = [line for line in (self.server.prefix / "crowd.log")
                 .read_text().splitlines() if not line.startswith("- ")]
        bad = [line for line in lines if not GOOD.match(line)]
        assert not bad, f"{len(bad)} of {len(lines)}: {bad[:20]}"
        seen = {int(line.split()[0]) for line in lines}
        failed = {n: why for n, why in self.failures.items() if n in seen}
        assert not failed, dict(list(failed.items())[:20])
        return len(self.failures)
