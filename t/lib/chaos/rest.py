"""REST over HTTP/1.1: inferences, events, sequences and calls."""

import asyncio
import json

from lib.chaos.requests import (PATIENCE, PLAIN, REPEAT, SUM, Numbers,
                                Protocol, steps)
from lib.wire import infer_path, request_bytes


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


class Rest(Protocol):
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

    async def infer(self, rng):
        connection = Connection(self.server.port)
        while self.going():
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
            await self.think(rng)
        connection.close()

    async def events(self, rng):
        connection = Connection(self.server.port)
        path = f"/v2/models/{REPEAT}/generate_stream"
        while self.going():
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
            await self.think(rng)
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

    # ---- sequences

    async def sequences(self, rng):
        connection = Connection(self.server.port)
        while self.going():
            await self._sequence(rng, connection)
            await self.think(rng)
        connection.close()

    async def _sequence(self, rng, connection):
        """A client that has lost a connection knows no more how far the
        sequence is, and leaves it."""
        began = self.ledger.now()
        for value, total, parameters in steps(rng):
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
            if not self.judge_step(
                    json.loads(body)["outputs"][0]["data"][0], total):
                return
            await asyncio.sleep(rng.uniform(0, 0.2))

    # ---- control and statistics: each answer names what was asked for

    async def control(self, rng):
        connection = Connection(self.server.port)
        while self.going():
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
            await self.think(rng)
        connection.close()
