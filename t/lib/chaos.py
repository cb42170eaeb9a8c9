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

from lib.grpc_client import SERVICE, infer, tensor
from lib.h2 import H2
from lib.server import SLOW
from lib.wire import infer_path, request_bytes

PATIENCE = 120 * SLOW       # then an answer is missing
ENDED = "the inference core ended before it answered"
LOST = "sequence lost, start again"
NO_START = "must specify the START flag"
# an idle stream, as its server and as grpcio say
LEFT = ("the worker of this stream is leaving", "Internal error from Core")
FAST, SLOWER, BATCHED, CHAIN, REPEAT, SUM = \
    "fast", "slower", "batched", "chain", "repeat", "sum"
PLAIN = (FAST, FAST, SLOWER, BATCHED, CHAIN)
SIZES = (1, 16, 200, 20_000)


# cores that died, workers that died, reloads, cores that ended anyhow
DEATHS, KILLS, RELOADS, ENDS = range(4)


class Marks:
    """How often each has begun, and how often that is over; written by the
    test's thread alone."""

    def __init__(self):
        self.begun = [0] * 4
        self.over = [0] * 4

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

    def __init__(self):
        self.marks = Marks()
        self.asked = {}         # client: ends before its last request
        self.lock = threading.Lock()
        self.results = collections.Counter()
        self.wrong = []

    def now(self):
        return self.marks.now()

    def ask(self):
        """now(), as a client sends a request."""
        try:
            client = asyncio.current_task().get_name()
        except RuntimeError:
            client = threading.current_thread().name
        self.asked[client] = self.marks.begun[ENDS]
        return self.now()

    def most_ends(self):
        """Of cores that one request has seen."""
        return self.marks.begun[ENDS] - min(list(self.asked.values()))

    def state(self):
        """Why nothing goes on: wrong answers, and the clients whose requests
        have seen the most ends."""
        most = self.most_ends()
        return "\n".join(self.wrong[:20] + [
            f"{client} has seen {most} ends of cores"
            for client, ends in list(self.asked.items())
            if self.marks.begun[ENDS] - ends == most])

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

    def cut(self, kind, before, error):
        """After a response had come."""
        self._allow(ENDED in error and self.marks.since(before)[DEATHS],
                    kind, "ended with its core", before, error)

    def sequence_ended(self, began, before, error):
        """By the end of its core: the request under way has one error, the
        next one another."""
        self._allow(LOST in error and self.marks.since(before)[ENDS]
                    or NO_START in error and self.marks.since(began)[ENDS],
                    "sequences", "ended with its core", began, error)

    def unavailable(self, before, hint, error):
        """A call that is no inference; hint: Retry-After is there."""
        self._allow(hint and ENDED in error
                    and self.marks.since(before)[ENDS],
                    "control", "unavailable", before, error)

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
        count = rng.choice(sizes)
        self.values = list(struct.unpack(f"<{count}i",
                                         rng.randbytes(4 * count)))
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
        self.since = None           # marks before it was opened
        self.used = False           # an answer has come on it
        self.heard = False          # of the last request

    async def request(self, ledger, method, path, body, headers):
        """(status, headers, body)"""
        if self.writer is None:
            self.since, self.used = ledger.now(), False
            self.reader, self.writer = await asyncio.open_connection(
                "127.0.0.1", self.port, limit=1 << 24)
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

    def __init__(self, server, seed, rest=200, events=24, calls=60,
                 streams=20, sequences=24, control=16, h2=6):
        self.server = server
        self.seed = seed
        self.ledger = Ledger()
        self.counts = {"rest": (self._rest, rest),
                       "events": (self._events, events),
                       "calls": (self._calls, calls),
                       "stream": (self._stream, streams),
                       "sequences": (self._sequences, sequences // 2),
                       "sequence calls": (self._sequence_calls,
                                          sequences // 2),
                       "control": (self._control, control // 2),
                       "control calls": (self._control_calls,
                                         control // 2)}
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
                asyncio.create_task(self._client(name, each, i),
                                    name=f"{name} {i}")
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

    async def _ask(self, kind, connection, path, body, headers,
                   method="POST"):
        """(marks before it, the answer or None: it was judged already)"""
        before = self.ledger.ask()
        try:
            return before, await asyncio.wait_for(connection.request(
                self.ledger, method, path, body, headers), PATIENCE)
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
                self.ledger.bad("rest", f"{status} {body}")
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
                self.ledger.bad("events", f"{status} {body}")
            else:
                self._judge_events(values, body, before)
            await self._think(rng)
        connection.close()

    def _judge_events(self, values, body, before):
        got = [json.loads(e.removeprefix(b"data: "))
               for e in body.split(b"\n\n")[:-1]]
        error = got.pop()["error"] if got and "error" in got[-1] else None
        if [g["OUT"] for g in got] != values[:len(got)]:
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

    @staticmethod
    def _method(channel, name):
        """A call of it waits for a connection: without, one that is made while
        there is none fails by an earlier connection's end."""
        method = channel.unary_unary(
            SERVICE + name,
            request_serializer=getattr(
                pb, name + "Request").SerializeToString,
            response_deserializer=getattr(pb, name + "Response").FromString)

        async def call(message):
            return await method(message, timeout=PATIENCE,
                                wait_for_ready=True)
        return call

    def _rpc_failed(self, kind, before, error):
        text = error.details() or ""
        if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            self.ledger.bad(kind, "no answer")
        elif ENDED in text:
            self.ledger.bad(kind, text)
        elif text in LEFT:
            self.ledger.closed(kind, before, text)
        else:
            self.ledger.lost(kind, before, f"{error.code()} {text}")

    async def _calls(self, rng):
        async with self._channel() as channel:
            call = self._method(channel, "ModelInfer")
            while self.going:
                sent = Numbers(rng)
                before = self.ledger.ask()
                try:
                    got = await call(sent.grpc())
                except grpc.aio.AioRpcError as e:
                    self._rpc_failed("calls", before, e)
                    continue
                if got.raw_output_contents[0] != sent.packed:
                    self.ledger.bad("calls", "another request's answer")
                else:
                    self.ledger.answered("calls")
                await self._think(rng)

    # ---- sequences: each answer is the sum so far

    @staticmethod
    def _steps(rng):
        """[(value, sum, parameters)] of a new sequence."""
        name, total, steps = rng.randrange(1, 2**31), 0, []
        count = rng.randint(1, 8)
        for i in range(count):
            value = rng.randrange(1, 2**20)
            total += value
            steps.append((value, total, {
                "sequence_id": name, "sequence_start": i == 0,
                "sequence_end": i == count - 1}))
        return steps

    def _judge_step(self, got, total):
        if got == total:
            self.ledger.answered("sequences")
            return True
        self.ledger.bad("sequences", f"{got} instead of {total}")
        return False

    async def _sequences(self, rng):
        connection = Connection(self.server.port)
        while self.going:
            await self._sequence(rng, connection)
            await self._think(rng)
        connection.close()

    async def _sequence(self, rng, connection):
        """A client that has lost a connection knows no more how far the
        sequence is, and leaves it."""
        began = self.ledger.now()
        for value, total, parameters in self._steps(rng):
            before, answer = await self._ask(
                "sequences", connection, infer_path(SUM), json.dumps({
                    "inputs": [{"name": "IN", "datatype": "INT32",
                                "shape": [1, 1], "data": [value]}],
                    "parameters": parameters}).encode(), {})
            if answer is None:
                return
            status, _, body = answer
            if status != 200:
                self.ledger.sequence_ended(began, before,
                                           f"{status} {body}")
                return
            if not self._judge_step(
                    json.loads(body)["outputs"][0]["data"][0], total):
                return
            await asyncio.sleep(rng.uniform(0, 0.2))

    async def _sequence_calls(self, rng):
        async with self._channel() as channel:
            call = self._method(channel, "ModelInfer")
            while self.going:
                await self._called_sequence(rng, call)
                await self._think(rng)

    async def _called_sequence(self, rng, call):
        began = self.ledger.now()
        for value, total, parameters in self._steps(rng):
            before = self.ledger.ask()
            try:
                got = await call(infer(SUM, tensor(
                    "IN", "INT32", [1, 1], struct.pack("<i", value)),
                    options=parameters))
            except grpc.aio.AioRpcError as e:
                text = e.details() or ""
                if LOST in text or NO_START in text:
                    self.ledger.sequence_ended(began, before, text)
                else:
                    self._rpc_failed("sequences", before, e)
                return
            if not self._judge_step(struct.unpack(
                    "<i", got.raw_output_contents[0])[0], total):
                return
            await asyncio.sleep(rng.uniform(0, 0.2))

    # ---- control and statistics: each answer names what was asked for

    async def _control(self, rng):
        connection = Connection(self.server.port)
        while self.going:
            model = rng.choice(PLAIN)
            method, path, words = rng.choice([
                ("GET", "/v2", '"name":"triton"'),
                ("GET", f"/v2/models/{model}", f'"name":"{model}"'),
                ("GET", f"/v2/models/{model}/config", f'"name":"{model}"'),
                ("GET", f"/v2/models/{model}/stats", f'"name":"{model}"'),
                ("GET", "/v2/models/stats", '"model_stats":['),
                ("POST", "/v2/repository/index", "["),
                ("GET", "/metrics", "nginx_inference_requests_total ")])
            before, answer = await self._ask(
                "control", connection, path,
                b"{}" if method == "POST" else None, {}, method)
            if answer is None:
                continue
            status, headers, body = answer
            if status == 503:
                self.ledger.unavailable(before, "retry-after" in headers,
                                        f"{path}: {body}")
            elif status != 200 or words not in body.decode():
                self.ledger.bad("control", f"{path}: {status} {body[:300]}")
            else:
                self.ledger.answered("control")
            await self._think(rng)
        connection.close()

    async def _control_calls(self, rng):
        async with self._channel() as channel:
            while self.going:
                model = rng.choice(PLAIN)
                name, message, named = rng.choice([
                    ("ServerMetadata", pb.ServerMetadataRequest(),
                     lambda m: m.name == "triton"),
                    ("ModelMetadata", pb.ModelMetadataRequest(name=model),
                     lambda m, model=model: m.name == model),
                    ("ModelConfig", pb.ModelConfigRequest(name=model),
                     lambda m, model=model: m.config.name == model),
                    ("ModelStatistics", pb.ModelStatisticsRequest(name=model),
                     lambda m, model=model: m.model_stats[0].name == model),
                    ("RepositoryIndex", pb.RepositoryIndexRequest(),
                     lambda m: all(e.name for e in m.models))])
                before = self.ledger.ask()
                try:
                    got = await self._method(channel, name)(message)
                except grpc.aio.AioRpcError as e:
                    text = e.details() or ""
                    if ENDED in text:
                        self.ledger.unavailable(
                            before, e.code() == grpc.StatusCode.UNAVAILABLE,
                            f"{name}: {text}")
                    else:
                        self._rpc_failed("control", before, e)
                    continue
                if named(got):
                    self.ledger.answered("control")
                else:
                    self.ledger.bad("control", f"{name} {model}: {got}")
                await self._think(rng)

    # ---- streams

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
                timeout=PATIENCE, wait_for_ready=True)
        before = self.ledger.ask()
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
                self.ledger.bad("stream", errors[name])
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
        before = self.ledger.ask()
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
                self.ledger.bad("h2", f"{got.status} {got.body}")
            elif self._h2_same(what, got, binary):
                self.ledger.answered("h2")
            else:
                self.ledger.bad("h2", "another request's answer")

    @staticmethod
    def _h2_same(what, got, binary):
        if binary:
            return got.body.endswith(what.packed) and what.packed
        return json.loads(got.body)["outputs"][0]["data"] == what.values
