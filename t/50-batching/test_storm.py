"""Everything at once for some seconds: what the sanitizers should see.

Five models of eight instances each, one for every way through the scheduler;
four workers; clients that come, ask, give up and go at random; reloads of
nginx and of the models meanwhile.
"""

import json
import random
import threading
import time

import pytest

from lib import models, process
from lib.server import SLOW
from lib.wire import Wire, infer_path, request_bytes, tensor

SECONDS = 6
INSTANCES = 8

BATCHING = "dynamic_batching {{ max_queue_delay_microseconds: 300" \
    " preferred_batch_size: [ 4, 8 ] {} }}\n"
POLICY = "default_queue_policy { default_timeout_microseconds: 20000" \
    " allow_timeout_override: true max_queue_size: 64 }"

# name: (max_batch_size, scheduling, of an instance group, slow)
MODELS = {
    "plain": (0, "", "", True),
    "levels": (8, BATCHING.format(
        "priority_levels: 3 default_priority_level: 2 " + POLICY), "", True),
    "ordered": (8, BATCHING.format("preserve_ordering: true"), "", False),
    "cached": (8, BATCHING.format(POLICY)
               + "response_cache { enable: true }\n", "", True),
    "limited": (8, BATCHING.format(""), 'rate_limiter { resources {'
                ' name: "R" count: 1 } resources { name: "G" global: true'
                ' count: 2 } priority: 2 }', True),
}

HTTP = """    inference_model_control explicit;
    inference_load_model *;
    inference_response_cache local size=64k;
    inference_rate_limit execution_count;
    inference_rate_limit_resource R 5;
    inference_rate_limit_resource G 6;
"""


def config(name, changes=0):
    limit, scheduling, group, slow = MODELS[name]
    text = models.identity_config(
        name, [("IN", "INT32", [-1])], max_batch=limit, instances=INSTANCES,
        parameters={"execute_delay_ms": int(slow), "changes": changes},
        extra=scheduling)
    assert text.count("kind: KIND_CPU") == 1
    return text.replace("kind: KIND_CPU", "kind: KIND_CPU " + group)


def fill(repository):
    for name in MODELS:
        models.write_model(repository, name, config(name))


class Client(threading.Thread):
    def __init__(self, port, seed, until):
        super().__init__()
        self.port, self.until = port, until
        self.random = random.Random(seed)
        self.good = dict.fromkeys(MODELS, 0)
        self.rejected, self.wrong = 0, []

    def run(self):
        while time.monotonic() < self.until and not self.wrong:
            try:
                with Wire(self.port, 60) as wire:
                    for _ in range(self.random.randrange(1, 20)):
                        self.one(wire)
            except OSError:
                pass                        # a worker that reloads closes it

    def one(self, wire):
        model = self.random.choice(list(MODELS))
        limit = MODELS[model][0]
        # few different requests: the cache hits and requests wait for others
        values = [self.random.randrange(6)
                  for _ in range(self.random.randrange(1, 4))]
        shape = [1, len(values)] if limit else [len(values)]
        header = {"inputs": [tensor("IN", "INT32", shape, values)],
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
            self.good[model] += 1
        elif answer.status == 503 and model in ("levels", "cached") and (
                answer.error.endswith("Request timeout expired")
                or answer.error.endswith("Exceeds maximum queue size")):
            self.rejected += 1
        else:
            self.wrong.append((model, values, answer))


class Reloader(threading.Thread):
    """Changes a model's configuration and has it loaded again, and again."""

    def __init__(self, server, until):
        super().__init__()
        self.server, self.until = server, until
        self.random = random.Random(99)
        self.loads, self.wrong = 0, []

    def run(self):
        changes = 0
        while time.monotonic() < self.until and not self.wrong:
            name = self.random.choice(list(MODELS))
            changes += 1
            (self.server.models / name / "config.pbtxt").write_text(
                config(name, changes))
            try:
                answer = self.server.post(
                    f"/v2/repository/models/{name}/load", b"")
            except OSError:
                continue                    # a worker that reloads closes it
            if answer.status != 200:
                self.wrong.append(answer)
            self.loads += 1


@pytest.mark.parametrize("seed", [1, 2])
def test_clients_that_come_and_go_and_reloads(make_server, seed):
    """scheduling.md 9.6, and issue 6: 8 instances, 4 workers, cancels and
    reloads at random"""
    server = make_server(
        fill, workers=4, http=HTTP,
        parts="health metadata config infer repository metrics")
    until = time.monotonic() + SECONDS
    clients = [Client(server.port, seed * 100 + i, until) for i in range(16)]
    reloader = Reloader(server, until)
    for thread in clients + [reloader]:
        thread.start()
    while time.monotonic() < until:
        time.sleep(1)
        server.signal("HUP")
    for thread in clients + [reloader]:
        thread.join()

    assert not [c.wrong for c in clients if c.wrong]
    assert not reloader.wrong and reloader.loads > 0
    for name in MODELS:
        assert sum(c.good[name] for c in clients) > 10, name
    assert process.wait_until(lambda: nothing_waits(server), 20 * SLOW)


def nothing_waits(server):
    if server.status("/v2/health/ready") != 200:
        return False
    lines = [line for line in server.get("/metrics").body.decode().split("\n")
             if line.startswith("nv_inference_pending_request_count{")]
    assert lines
    return all(line.endswith(" 0") for line in lines)
