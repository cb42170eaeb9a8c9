"""Several hundred clients that judge each answer, while a test does to the
server what it likes.

Every client sends one request after another and compares the answer with the
request.  An answer is judged by what has happened in the life of its request
(`Marks`), never by time: a connection may be lost if a worker was killed in
it, a stream may be cut if its core has died.
"""

import asyncio
import random
import threading

from lib.chaos.grpc_calls import Calls
from lib.chaos.grpc_streams import Streams
from lib.chaos.http2 import Http2
from lib.chaos.ledger import Ledger
from lib.chaos.rest import Rest


class Clients:
    """All of them, in threads of their own, until the end of the block."""

    def __init__(self, server, seed, rest=200, events=24, calls=60,
                 streams=20, sequences=24, control=16, h2=6):
        self.seed = seed
        self.ledger = Ledger()
        self.going = True

        def of(protocol):
            return protocol(server, self.ledger, seed, lambda: self.going)

        http, grpc = of(Rest), of(Calls)
        self.counts = {"rest": (http.infer, rest),
                       "events": (http.events, events),
                       "calls": (grpc.infer, calls),
                       "stream": (of(Streams).run, streams),
                       "sequences": (http.sequences, sequences // 2),
                       "sequence calls": (grpc.sequences, sequences // 2),
                       "control": (http.control, control // 2),
                       "control calls": (grpc.control, control // 2)}
        self.threads = [threading.Thread(target=self._loop)] + [
            threading.Thread(target=of(Http2).run, args=(i,))
            for i in range(h2)]

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
