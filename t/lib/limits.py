"""Models with rate limiters, asked side by side."""

import pathlib

from lib import backends, models, process
from lib.batches import Gate
from lib.server import SLOW
from lib.wire import tensor


class Limited:
    """One server; each model has a limiter and either a gate or a record."""

    def __init__(self, make_server, folder, pool):
        self.make_server, self.folder, self.pool = make_server, folder, pool
        self.gates = {}
        self.wanted = []
        self.server = None

    def model(self, name, limiter, *, backend="batches", extra="", more="",
              max_batch=8, **parameters):
        """more: what else stands in the model's instance groups."""
        if backend == "batches":
            (self.folder / name).mkdir()
            self.gates[name] = Gate(self.folder / name)
            parameters["gate"] = self.gates[name].path
        else:
            parameters["record"] = self.folder / "record"
        text = models.identity_config(
            name, [("IN", "INT32", [1])], outputs=[("OUT", "INT32", [-1])],
            max_batch=max_batch, backend=backend, parameters=parameters,
            extra=extra)
        group = "kind: KIND_CPU"
        assert group in text
        text = text.replace(group, f"{group} rate_limiter {{ {limiter} }}")
        self.wanted.append((name, text + more))

    def start(self, *lines, mode="execution_count", **kw):
        def fill(repository):
            for name, text in self.wanted:
                models.write_model(repository, name, text)

        folder = backends.build("batches")
        backends.build("recorder", folder)
        kw["http"] = (f"    inference_rate_limit {mode};\n"
                      + "".join(f"    inference_rate_limit_resource {x};\n"
                                for x in lines) + kw.get("http", ""))
        kw["server"] = "location = /scrape { inference metrics; }\n"
        self.server = self.make_server(fill, backends=folder, **kw)
        return self.server

    def ask(self, name, rows=1):
        header = {"inputs": [tensor("IN", "INT32", [rows, 1], [1] * rows)]}
        return self.pool.submit(self.server.infer, name, header)

    def metric(self, metric, name):
        for line in self.server.get("/scrape").body.decode().splitlines():
            if line.startswith(metric + "{") and f'model="{name}"' in line:
                return float(line.split(" ")[-1])
        return 0

    def wait_queued(self, name, count):
        assert process.wait_until(
            lambda: self.metric("nv_inference_pending_request_count", name)
            == count, 10 * SLOW), self.server.get("/scrape").body.decode()

    def entered(self, name, execution=0):
        return pathlib.Path(
            f"{self.gates[name].path}.entered.{execution}").exists()

    def lines(self):
        return [line.split() for line in
                (self.folder / "record").read_text().splitlines()]

    def executed(self):
        """Names of models, in the order of their executions."""
        return [w[1].split("_")[0] for w in self.lines() if w[0] == "exec"]

    def at_once(self):
        """How many executions ran at the same time, at the most."""
        now = most = 0
        for word in self.lines():
            now += {"exec": 1, "done": -1}.get(word[0], 0)
            most = max(most, now)
        return most


def good(futures):
    for future in futures:
        answer = future.result(60 * SLOW)
        assert answer.status == 200, answer
    return futures
