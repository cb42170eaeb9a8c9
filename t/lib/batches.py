"""Models of the batches backend, and requests sent side by side."""

import concurrent.futures
import pathlib

from lib import backends, models, process
from lib.server import SLOW
from lib.wire import tensor


class Gate:
    """Holds executions of a batches model."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / "gate"

    def close(self, execution=0):
        pathlib.Path(f"{self.path}.{execution}").touch()

    def open(self, execution=0):
        pathlib.Path(f"{self.path}.{execution}").unlink()

    def open_all(self):
        """The gates still closed."""
        for file in self.path.parent.glob(self.path.name + ".[0-9]*"):
            file.unlink()

    def entered(self, execution=0):
        """The file that the execution makes when it begins."""
        return pathlib.Path(f"{self.path}.entered.{execution}")

    def wait_entered(self, execution=0, seconds=10):
        assert process.wait_until(
            self.entered(execution).exists, seconds * SLOW, 0.005), \
            f"execution {execution} did not begin"


class Batching:
    """One server with one batches model `m`."""

    def __init__(self, make_server, gate, pool):
        self.make_server, self.gate, self.pool = make_server, gate, pool
        self.server = None

    def start(self, batching, *, max_batch=8, inputs=None, instances=1,
              hold=0, extra="", also=None, parameters=None, **kw):
        folder = backends.build("batches")
        parameters = dict(parameters or {}, gate=self.gate.path)

        def fill(repository):
            models.identity(
                repository, "m", inputs or [("IN", "INT32", [1])],
                outputs=[("OUT", "INT32", [-1])], max_batch=max_batch,
                instances=instances, backend="batches",
                parameters=parameters,
                extra=extra if batching is None
                else f"dynamic_batching {{ {batching} }}\n" + extra)
            if also:
                also(repository / "m")

        env = [f"TRITONSERVER_DELAY_SCHEDULER={hold}"] if hold else []
        kw["server"] = "location = /scrape { inference metrics; }\n" \
            + kw.get("server", "")
        kw["http"] = f"    inference_backends {folder};\n" \
            + kw.get("http", "")
        self.server = self.make_server(fill, inference_env=env, **kw)
        return self.server

    def ask(self, value, rows=1, width=1, name="IN", **parameters):
        """A future: the response to rows of width times value."""
        header = {"inputs": [tensor(name, "INT32", [rows, width],
                                    [value] * rows * width)],
                  "parameters": parameters}
        return self.pool.submit(self.server.infer, "m", header)

    def ask_all(self, values, **kw):
        return [self.ask(v, **kw) for v in values]

    def metric(self, name, **labels):
        """The model's sample of that name; 0 if there is none."""
        for line in self.server.get("/scrape").body.decode().splitlines():
            if line.startswith(name + "{") and all(
                    f'{k}="{v}"' in line for k, v in labels.items()):
                return float(line.split(" ")[-1])
        return 0

    def wait_queued(self, count):
        assert process.wait_until(
            lambda: self.metric("nv_inference_pending_request_count")
            == count, 10 * SLOW), self.server.get("/scrape").body.decode()


def told(future):
    """The backend's parameters of a good answer."""
    answer = future.result(30 * SLOW)
    assert answer.status == 200, answer
    return answer.json()["parameters"]


def data(future):
    return future.result(30 * SLOW).json()["outputs"][0]["data"]


def executions(futures):
    """{execution: sorted numbers of the requests in it}"""
    found = {}
    for i, future in enumerate(futures):
        found.setdefault(told(future)["execution"], []).append(i)
    return {k: sorted(v) for k, v in sorted(found.items())}


def sizes(futures):
    return [len(v) for v in executions(futures).values()]


JOINED = """max_batch_size: 4
dynamic_batching { max_queue_delay_microseconds: 10000000
                   preferred_batch_size: 4 }
"""


def one_is_wrong(server, model, wrong, right):
    """Inputs of one row, four of them JOINED in a batch: the wrong one has an
    error, which is returned, the others have their answers, too."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(
            lambda i: server.infer(model, {"inputs": wrong if i == 2
                                           else right}), range(4)))
    assert [a.status == 200 for a in answers] == [True, True, False, True], \
        answers
    row = server.get(f"/v2/models/{model}/stats").json()["model_stats"][0]
    assert [b["batch_size"] for b in row["batch_stats"]] == [4]
    assert row["inference_stats"]["success"]["count"] == 3
    assert row["inference_stats"]["fail"]["count"] == 1
    assert len({str(answers[i].json()["outputs"]) for i in (0, 1, 3)}) == 1
    return answers[2].json()["error"]
