"""REST over HTTP/2: several requests at a time on one connection, each
connection in a thread of its own."""

import json
import random
import time

from lib.chaos.requests import PATIENCE, SMALL, Numbers, Protocol
from lib.h2 import H2
from lib.wire import infer_path


class Http2(Protocol):
    def run(self, number):
        rng = random.Random(f"{self.seed} h2 {number}")
        while self.going():
            since = self.ledger.now()
            try:
                with H2(self.server.port2, timeout=PATIENCE,
                        patient=True) as c:
                    while self.going() and c.last is None:
                        self._round(c, rng, since)
                        time.sleep(rng.uniform(0, 0.1))     # others' turn
            except TimeoutError:
                self.ledger.bad("h2", "no answer")
            except OSError as e:
                if self.server.process is not None:
                    self.ledger.closed("h2", since, repr(e))

    def _round(self, c, rng, since):
        """since: marks before the connection was opened; its end may have
        come, unread, before the requests of this round."""
        before = self.ledger.ask()
        sent, heard = {}, False
        for _ in range(rng.randint(1, 8)):
            what = Numbers(rng, sizes=SMALL)        # within all windows
            binary = rng.random() < 0.5
            headers, body = what.rest(binary)
            sent[c.post(infer_path(what.model), {
                k.lower(): v for k, v in headers.items()}, body)] = \
                what, binary
        for stream, (what, binary) in sent.items():
            try:
                got = c.read_if_taken(stream)
            except ConnectionError as e:
                if heard:
                    self.ledger.lost("h2", before, repr(e))
                else:
                    self.ledger.closed("h2", since, repr(e))
                raise
            heard = heard or got is not None
            if got is None:
                self.ledger.closed("h2", since, "GOAWAY before it")
            elif got.status != 200:
                self.ledger.bad("h2", f"{got.status} {got.body}")
            elif self._same(what, got, binary):
                self.ledger.answered("h2")
            else:
                self.ledger.bad("h2", "another request's answer")

    @staticmethod
    def _same(what, got, binary):
        if binary:
            return got.body.endswith(what.packed) and what.packed
        return json.loads(got.body)["outputs"][0]["data"] == what.values
