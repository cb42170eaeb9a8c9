"""Everything at once for some seconds: what the sanitizers should see."""

import json
import random
import threading
import time

from lib import models
from lib.wire import Wire, infer_path, request_bytes, tensor

SECONDS = 4

BATCHING = "dynamic_batching {{ max_queue_delay_microseconds: 300" \
    " preferred_batch_size: [ 4, 8 ] {} }}\n"


def fill(repository):
    models.identity(
        repository, "levels", [("IN", "INT32", [-1])], max_batch=8,
        instances=8, extra=BATCHING.format(
            "priority_levels: 3 default_priority_level: 2"
            " default_queue_policy { default_timeout_microseconds: 20000"
            " allow_timeout_override: true max_queue_size: 64 }"))
    models.identity(
        repository, "ordered", [("IN", "INT32", [-1])], max_batch=8,
        instances=8, extra=BATCHING.format("preserve_ordering: true"))


class Client(threading.Thread):
    def __init__(self, port, seed, until):
        super().__init__()
        self.port, self.until = port, until
        self.random = random.Random(seed)
        self.good, self.refused, self.wrong = 0, 0, []

    def run(self):
        while time.monotonic() < self.until and not self.wrong:
            try:
                with Wire(self.port, 60) as wire:
                    for _ in range(self.random.randrange(1, 20)):
                        self.one(wire)
            except OSError:
                pass                        # a worker that reloads closes it

    def one(self, wire):
        model = self.random.choice(["levels", "ordered"])
        values = [self.random.randrange(1000)
                  for _ in range(self.random.randrange(1, 4))]
        header = {"inputs": [tensor("IN", "INT32", [1, len(values)],
                                    values)],
                  "parameters": {"priority": self.random.randrange(4),
                                 "timeout": self.random.choice(
                                     [0, 500, 100000])}}
        if self.random.random() < 0.1:      # asks and does not wait
            wire.next().send(request_bytes("POST", infer_path(model),
                                           json.dumps(header).encode()))
            raise ConnectionAbortedError
        answer = wire.infer(model, header)
        if answer.status == 200 \
                and answer.json()["outputs"][0]["data"] == values:
            self.good += 1
        elif answer.status == 503 and model == "levels" and (
                answer.error.endswith("Request timeout expired")
                or answer.error.endswith("Exceeds maximum queue size")):
            self.refused += 1
        else:
            self.wrong.append((values, answer))


def test_clients_that_come_and_go_and_reloads(make_server):
    server = make_server(fill, workers=4)
    until = time.monotonic() + SECONDS
    clients = [Client(server.port, i, until) for i in range(16)]
    for client in clients:
        client.start()
    while time.monotonic() < until:
        time.sleep(1)
        server.signal("HUP")
    for client in clients:
        client.join()
    assert not [c.wrong for c in clients if c.wrong]
    assert sum(c.good for c in clients) > 100
