"""Several hundred clients that judge each answer, while a test does to the
server what it likes.

Every client sends one request after another and compares the answer with the
request.  An answer is judged by what has happened in the life of its request
(`Marks`), never by time: a connection may be lost if a worker was killed in
it, a stream may be cut if its core has died.
"""

import asyncio
import collections
import json
import random
import struct
import threading

import grpc
from tritonclient.grpc import service_pb2 as pb

from lib.grpc_client import SERVICE, infer, numbers, tensor
from lib.h2 import H2
from lib.server import SLOW
from lib.wire import infer_path, request_bytes

PATIENCE = 120 * SLOW       # then an answer is missing
ENDED = "the inference core ended before it answered"
# an idle stream, as its server and as grpcio say
LEFT = ("the worker of this stream is leaving", "Internal error from Core")
FAST, SLOWER, BATCHED, CHAIN, REPEAT = \
    "fast", "slower", "batched", "chain", "repeat"
PLAIN = (FAST, FAST, SLOWER, BATCHED, CHAIN)
SIZES = (1, 16, 200, 20_000)


DEATHS, KILLS, RELOADS = range(3)       # of cores, of workers


class Marks:
    """How often each has begun, and how often that is over; written by the
    test's thread alone."""

    def __init__(self):
        self.begun = [0, 0, 0]
        self.over = [0, 0, 0]

    def begin(self, what, count=1):
        self.begun[what] += count

    def end(self, what):
        self.over[what] = self.begun[what]

    def now(self):
        """To be told to since()."""
        return tuple(self.over)

    def since(self, before):
        """How often each may have happened."""
        return [b - o for b, o in zip(self.begun, before)]


class Ledger:
    """The end of each request."""

    def __init__(self, tries):
        self.tries = tries
        self.marks = Marks()
        self.lock = threading.Lock()
        self.results = collections.Counter()
        self.wrong = []

    def now(self):
        return self.marks.now()

    def answered(self, kind):
        with self.lock:
            self.results[kind, "answered"] += 1

    def count(self):
        with self.lock:
            return sum(n for (_, what), n in self.results.items()
                       if what == "answered")

    def lost(self, kind, before, error):
        """The connection has gone."""
        self._allow(self.marks.since(before)[KILLS], kind,
                    "lost with its worker", before, error)

    def closed(self, kind, before, error):
        """An idle connection was closed when a request was sent on it."""
        since = self.marks.since(before)
        self._allow(since[KILLS] or since[RELOADS], kind,
                    "closed while idle", before, error)

    def failed(self, kind, before, error):
        """Said so by the server; all tries may be used."""
        self._allow(ENDED in error
                    and self.marks.since(before)[DEATHS] >= self.tries,
                    kind, "out of tries", before, error)

    def cut(self, kind, before, error):
        """After a response had come."""
        self._allow(ENDED in error and self.marks.since(before)[DEATHS],
                    kind, "ended with its core", before, error)

    def bad(self, kind, error):
        self._allow(False, kind, "bad", None, error)

    def _allow(self, allowed, kind, what, before, error):
        with self.lock:
            self.results[kind, what if allowed else "WRONG"] += 1
            if not allowed:
                self.wrong.append(
                    f"{kind}: not {what}: {str(error)[:400]} since"
                    f" {before and self.marks.since(before)}")


class Numbers:
    """The tensor of a request, which its answer must have, too."""

    def __init__(self, rng, models=PLAIN, sizes=SIZES):
        self.model = rng.choice(models)
        self.values = [rng.randrange(-2**31, 2**31)
                       for _ in range(rng.choice(sizes))]
        self.batched = self.model == BATCHED
        if self.batched:
            self.values = self.values[:4] + [0] * (4 - len(self.values))
        self.packed = struct.pack(f"<{len(self.values)}i", *self.values)
        self.shape = [1, 4] if self.batched else [len(self.values)]

    def rest(self, binary):
        """(head, whole body)"""
        entry = {"name": "IN", "datatype": "INT32", "shape": self.shape}
        if not binary:
            entry["data"] = self.values
            return {}, json.dumps({"inputs": [entry]}).encode()
        entry["parameters"] = {"binary_data_size": len(self.packed)}
        head = json.dumps({"inputs": [entry], "parameters": {
            "binary_data_output": True}}).encode()
        return {"Inference-Header-Content-Length": str(len(head))}, \
            head + self.packed

    def same(self, headers, body, binary):
        if not binary:
            return json.loads(body)["outputs"][0]["data"] == self.values
        size = int(headers["inference-header-content-length"])
        return body[size:] == self.packed

    def grpc(self, **kw):
        return infer(self.model, tensor("IN", "INT32", self.shape,
                                        self.packed), **kw)


def repeated(values, delay=1, **kw):
    n = len(values)
    return infer(REPEAT,
                 tensor("IN", "INT32", [n], struct.pack(f"<{n}i", *values)),
                 tensor("DELAY", "UINT32", [n], struct.pack("<I", delay) * n),
                 tensor("WAIT", "UINT32", [1], bytes(4)), **kw)


class Connection:
    """HTTP/1.1 in the event loop."""

    def __init__(self, port):
        self.port = port
        self.reader = self.writer = None
        self.since = None           # marks when it was opened
        self.used = False           # an answer has come on it
        self.heard = False          # of the last request

    async def request(self, ledger, method, path, body, headers):
        """(status, headers, body), or None: there was none."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(
                "127.0.0.1", self.port, limit=1 << 24)
            self.since, self.used = ledger.now(), False
        self.heard = False
        self.writer.write(request_bytes(method, path, body, headers))
        answer = await self._read()
        self.used = True
        if answer[1].get("connection", "").lower() == "close":
            self.close()
        return answer

    async def _read(self):
        line = await self.reader.readuntil(b"\r\n")
        self.heard = True
        headers = {}
        while (field := await self.reader.readuntil(b"\r\n")) != b"\r\n":
            name, value = field.decode().split(":", 1)
            headers[name.strip().lower()] = value.strip()
        body = b""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readuntil(b"\r\n")
        elif "content-length" in headers:
            body = await self.reader.readexactly(
                int(headers["content-length"]))
        return int(line.split()[1]), headers, body

    def close(self):
        if self.writer is not None:
            self.writer.close()
            self.reader = self.writer = None


class Clients:
    """All of them, in threads of their own, until stop()."""

    def __init__(self, server, seed, tries, rest=200, events=24, calls=60,
                 streams=20, h2=6):
        self.server = server
        self.seed = seed
        self.ledger = Ledger(tries)
        self.counts = {"rest": (self._rest, rest),
                       "events": (self._events, events),
                       "calls": (self._calls, calls),
                       "stream": (self._stream, streams)}
        self.going = True
        self.threads = [threading.Thread(target=self._loop)] + [
            threading.Thread(target=self._h2, args=(i,)) for i in range(h2)]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.going = False
        for t in self.threads:
            t.join()

    def _loop(self):
        async def run():
            await asyncio.gather(*(
                self._client(name, each, i)
                for name, (each, count) in self.counts.items()
                for i in range(count)))
        asyncio.run(run())

    async def _client(self, name, each, number):
        rng = random.Random(f"{self.seed} {name} {number}")
        try:
            await each(rng)
        except Exception as e:      # pylint: disable=broad-except
            self.ledger.bad(name, f"the client itself: {e!r}")

    async def _think(self, rng):
        await asyncio.sleep(rng.uniform(0.1, 0.6))

    # ---- HTTP/1

    async def _ask(self, kind, connection, path, body, headers):
        """The answer, or None: it was judged already."""
        before = self.ledger.now()
        try:
            return before, await asyncio.wait_for(connection.request(
                self.ledger, "POST", path, body, headers), PATIENCE)
        except TimeoutError:
            self.ledger.bad(kind, "no answer")
        except (OSError, asyncio.IncompleteReadError) as e:
            if connection.used and not connection.heard:
                self.ledger.closed(kind, connection.since, repr(e))
            else:
                self.ledger.lost(kind, before, repr(e))
        connection.close()
        return before, None

    async def _rest(self, rng):
        connection = Connection(self.server.port)
        while self.going:
            sent, binary = Numbers(rng), rng.random() < 0.5
            headers, body = sent.rest(binary)
            before, answer = await self._ask(
                "rest", connection, infer_path(sent.model), body, headers)
            if answer is None:
                continue
            status, headers, body = answer
            if status != 200:
                self.ledger.failed("rest", before, f"{status} {body}")
            elif not sent.same(headers, body, binary):
                self.ledger.bad("rest", "another request's answer")
            else:
                self.ledger.answered("rest")
            await self._think(rng)
        connection.close()

    async def _events(self, rng):
        connection = Connection(self.server.port)
        path = f"/v2/models/{REPEAT}/generate_stream"
        while self.going:
            values = [rng.randrange(2**31) for _ in range(rng.randint(1, 40))]
            before, answer = await self._ask(
                "events", connection, path, json.dumps({
                    "IN": values, "DELAY": [2] * len(values),
                    "WAIT": 0}).encode(), {})
            if answer is None:
                continue
            status, _, body = answer
            if status != 200:
                self.ledger.failed("events", before, f"{status} {body}")
            else:
                self._judge_events(values, body, before)
            await self._think(rng)
        connection.close()

    def _judge_events(self, values, body, before):
        got = [json.loads(e.removeprefix(b"data: "))
               for e in body.split(b"\n\n")[:-1]]
        error = got.pop()["error"] if got and "error" in got[-1] else None
        numbers_ = [g["OUT"] for g in got]
        if numbers_ != values[:len(got)]:
            self.ledger.bad("events", "another request's events")
        elif error is not None:
            self.ledger.cut("events", before, error)
        elif len(got) != len(values):
            self.ledger.bad("events", f"{len(got)} of {len(values)} events")
        else:
            self.ledger.answered("events")

    # ---- gRPC

    def _channel(self):
        return grpc.aio.insecure_channel(
            f"127.0.0.1:{self.server.port2}",
            [("grpc.use_local_subchannel_pool", 1),
             ("grpc.max_receive_message_length", -1),
             ("grpc.initial_reconnect_backoff_ms", 50),
             ("grpc.max_reconnect_backoff_ms", 200)])

    def _rpc_failed(self, kind, before, error):
        text = error.details() or ""
        if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            self.ledger.bad(kind, "no answer")
        elif ENDED in text:
            self.ledger.failed(kind, before, text)
        elif text in LEFT:
            self.ledger.closed(kind, before, text)
        else:
            self.ledger.lost(kind, before, f"{error.code()} {text}")

    async def _calls(self, rng):
        async with self._channel() as channel:
            call = channel.unary_unary(
                SERVICE + "ModelInfer",
                request_serializer=pb.ModelInferRequest.SerializeToString,
                response_deserializer=pb.ModelInferResponse.FromString)
            while self.going:
                sent = Numbers(rng)
                before = self.ledger.now()
                try:
                    got = await call(sent.grpc(), timeout=PATIENCE)
                except grpc.aio.AioRpcError as e:
                    self._rpc_failed("calls", before, e)
                    continue
                if got.raw_output_contents[0] != sent.packed:
                    self.ledger.bad("calls", "another request's answer")
                else:
                    self.ledger.answered("calls")
                await self._think(rng)

    async def _stream(self, rng):
        async with self._channel() as channel:
            while self.going:
                await self._one_stream(channel, rng)
                await self._think(rng)

    async def _one_stream(self, channel, rng):
        stream = channel.stream_stream(
            SERVICE + "ModelStreamInfer",
            request_serializer=pb.ModelInferRequest.SerializeToString,
            response_deserializer=pb.ModelStreamInferResponse.FromString)(
                timeout=PATIENCE)
        before = self.ledger.now()
        plain, many = {}, {}
        try:
            for i in range(rng.randint(1, 12)):
                if rng.random() < 0.3:
                    many[f"r{i}"] = [rng.randrange(2**31)
                                     for _ in range(rng.randint(1, 20))]
                    await stream.write(repeated(many[f"r{i}"], id=f"r{i}"))
                else:
                    sent = Numbers(rng, (FAST, SLOWER, CHAIN))
                    plain[str(i)] = sent
                    await stream.write(sent.grpc(id=str(i)))
            await stream.done_writing()
            answers = [a async for a in stream]
            if (code := await stream.code()) != grpc.StatusCode.OK:
                raise AssertionError(f"{code} {await stream.details()}")
        except grpc.aio.AioRpcError as e:
            self._rpc_failed("stream", before, e)
            return
        except (asyncio.InvalidStateError, grpc.aio.UsageError) as e:
            self.ledger.lost("stream", before, repr(e))
            return
        self._judge_stream(answers, plain, many, before)

    def _judge_stream(self, answers, plain, many, before):
        order, got, errors = [], collections.defaultdict(list), {}
        for a in answers:
            name = a.infer_response.id
            if a.error_message:
                errors[name] = a.error_message
            elif a.infer_response.raw_output_contents:
                got[name].append(a.infer_response)
            if name in plain:
                order.append(name)
        if order != list(plain):
            self.ledger.bad("stream", f"the order is {order}")
        for name, sent in plain.items():
            if name in errors:
                self.ledger.failed("stream", before, errors[name])
            elif len(got[name]) != 1 \
                    or got[name][0].raw_output_contents[0] != sent.packed:
                self.ledger.bad("stream", f"{name}: {len(got[name])}"
                                " answers, or another request's")
            else:
                self.ledger.answered("stream")
        for name, values in many.items():
            have = [self._out(r) for r in got[name]]
            if have != values[:len(have)]:
                self.ledger.bad("stream", f"{name}: another's responses")
            elif name in errors:
                self.ledger.cut("stream", before, errors[name])
            elif len(have) != len(values):
                self.ledger.bad("stream", f"{name}: {len(have)} of"
                                f" {len(values)} responses")
            else:
                self.ledger.answered("stream")

    @staticmethod
    def _out(response):
        for output, raw in zip(response.outputs,
                               response.raw_output_contents):
            if output.name == "OUT":
                return struct.unpack("<i", raw)[0]
        return None

    # ---- REST over HTTP/2

    def _h2(self, number):
        rng = random.Random(f"{self.seed} h2 {number}")
        while self.going:
            since = self.ledger.now()
            try:
                with H2(self.server.port2, timeout=PATIENCE,
                        patient=True) as c:
                    while self.going and c.last is None:
                        self._h2_round(c, rng)
            except TimeoutError:
                self.ledger.bad("h2", "no answer")
            except OSError as e:
                if self.server.process is not None:
                    self.ledger.closed("h2", since, repr(e))

    def _h2_round(self, c, rng):
        before = self.ledger.now()
        sent = {}
        for _ in range(rng.randint(1, 8)):
            what = Numbers(rng, sizes=SIZES[:3])    # within all windows
            binary = rng.random() < 0.5
            headers, body = what.rest(binary)
            sent[c.post(infer_path(what.model), {
                k.lower(): v for k, v in headers.items()}, body)] = \
                what, binary
        for stream, (what, binary) in sent.items():
            try:
                got = c.read_if_taken(stream)
            except ConnectionError as e:
                self.ledger.lost("h2", before, repr(e))
                raise
            if got is None:
                self.ledger.closed("h2", before, "GOAWAY before it")
            elif got.status != 200:
                self.ledger.failed("h2", before, f"{got.status} {got.body}")
            elif self._h2_same(what, got, binary):
                self.ledger.answered("h2")
            else:
                self.ledger.bad("h2", "another request's answer")

    @staticmethod
    def _h2_same(what, got, binary):
        if binary:
            return got.body.endswith(what.packed) and what.packed
        return json.loads(got.body)["outputs"][0]["data"] == what.values
