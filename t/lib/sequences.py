"""Models of the sequences backend, and requests whose order is known."""

import json

from lib import backends, models, process
from lib.batches import Gate
from lib.server import SLOW
from lib.wire import infer_path, request_bytes, tensor

START = ('{ name: "START" control [ { kind: CONTROL_SEQUENCE_START'
         ' int32_false_true: [ 0, 1 ] } ] }')
END = ('{ name: "END" control [ { kind: CONTROL_SEQUENCE_END'
       ' int32_false_true: [ 0, 1 ] } ] }')
READY = ('{ name: "READY" control [ { kind: CONTROL_SEQUENCE_READY'
         ' int32_false_true: [ 0, 1 ] } ] }')


def corrid(datatype="UINT64"):
    return ('{ name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID'
            f' data_type: TYPE_{datatype} }} ] }}')


def controls(*entries):
    return "control_input [ " + ", ".join(entries) + " ]\n"


ALL = controls(START, END, READY, corrid())
LONG = "max_sequence_idle_microseconds: 600000000\n"    # nothing is reaped


def state(dims="1", more=""):
    return ('state [ { input_name: "STATE_IN" output_name: "STATE_OUT"'
            f' data_type: TYPE_INT32 dims: [ {dims} ] {more} }} ]\n')


ZERO = ('initial_state: { name: "zero" data_type: TYPE_INT32 dims: [ 1 ]'
        ' zero_data: true }')


class Sent:
    """A request that is under way on a connection of its own."""

    def __init__(self, connection, value):
        self.connection = connection
        self.value = value
        self.response = None

    def answer(self):
        if self.response is None:
            self.response = self.connection.read()
            self.connection.close()
        return self.response

    def told(self):
        """The backend's parameters of a good answer."""
        answer = self.answer()
        assert answer.status == 200, answer
        return answer.json()["parameters"]

    def data(self):
        answer = self.answer()
        assert answer.status == 200, answer
        return answer.json()["outputs"][0]["data"]

    def rejected(self):
        """(status, text) of an answer that is an error."""
        answer = self.answer()
        assert answer.status != 200, answer
        return answer.status, answer.error

    def leave(self):
        """The client is gone."""
        self.connection.close()


class Sequences:
    """One server with models of the sequences backend, `m` by default."""

    def __init__(self, make_server, folder):
        self.make_server, self.folder = make_server, folder
        self.gates, self.wanted = {}, {}
        self.server = None

    def model(self, batching, name="m", *, max_batch=4, dims="1",
              instances=1, inputs=(), extra="", ragged=False, backend=True,
              decoupled=False, **parameters):
        place = self.folder / name
        place.mkdir(exist_ok=True)
        place.chmod(0o777)
        self.gates[name] = Gate(place)
        parameters = dict({"gate": self.gates[name].path,
                           "record": place / "record"}, **parameters)
        option = ("allow_ragged_batch: true",) if ragged else ()
        if decoupled:
            extra += "model_transaction_policy { decoupled: true }\n"
        self.wanted[name] = models.identity_config(
            name, [("IN", "INT32", [dims], *option), *inputs],
            outputs=[("OUT", "INT32", [-1])], max_batch=max_batch,
            instances=instances, backend="sequences", parameters=parameters,
            extra=f"sequence_batching {{ {batching} }}\n" + extra)
        return self

    def start(self, batching=None, also=None, **kw):
        if batching is not None:
            names = ("max_batch", "dims", "instances", "inputs", "extra",
                     "ragged", "decoupled", "does", "update", "delay_ms",
                     "later_ms")
            self.model(batching, **{n: kw.pop(n) for n in names if n in kw})

        def fill(repository):
            for name, text in self.wanted.items():
                models.write_model(repository, name, text)
            if also:
                also(repository)

        kw["server"] = "location = /scrape { inference metrics; }\n" \
            + kw.get("server", "")
        kw.setdefault("parts",
                      "health metadata config infer statistics repository")
        kw["http"] = f"    inference_backends {backends.build('sequences')};" \
            "\n" + kw.get("http", "")
        self.server = self.make_server(fill, **kw)
        return self.server

    def scale(self, count, model="m"):
        """Of a server in explicit mode: so many instances from now on."""
        text = self.wanted[model]
        at = text.index("instance_group [ { count: ")
        rest = text[at:].split("kind", 1)[1]
        text = f"{text[:at]}instance_group [ {{ count: {count} kind{rest}"
        self.wanted[model] = text
        (self.server.models / model / "config.pbtxt").write_text(text)
        answer = self.server.post(f"/v2/repository/models/{model}/load", b"")
        assert answer.status == 200, answer

    # ---- requests

    def send(self, id, value=1, start=False, end=False, *, model="m",
             shape=None, parameters=None, request=None):
        """A request on its way; it may not have arrived yet."""
        values = value if isinstance(value, list) else [value]
        if shape is None:
            batched = "max_batch_size: 0" not in self.wanted.get(model, "")
            shape = [1, len(values)] if batched else [len(values)]
        given = dict(parameters or {})
        if id is not None:
            given["sequence_id"] = id
        if start:
            given["sequence_start"] = True
        if end:
            given["sequence_end"] = True
        body = {"inputs": [tensor("IN", "INT32", shape, values)],
                "parameters": given}
        if request is not None:
            body["id"] = request
        connection = self.server.wire(10)
        connection.send(request_bytes("POST", infer_path(model),
                                      json.dumps(body).encode()))
        return Sent(connection, value)

    def ask(self, *arguments, **kw):
        sent = self.send(*arguments, **kw)
        sent.answer()
        return sent

    def queue(self, *arguments, model="m", **kw):
        """send, and the request has arrived and waits."""
        before = self.queued(model)
        sent = self.send(*arguments, model=model, **kw)
        self.wait_queued(before + 1, model)
        return sent

    def queue_all(self, id, values, model="m", ends=True, **kw):
        """A sequence from its start to its end, in order."""
        return [self.queue(id, value, start=i == 0,
                           end=ends and i == len(values) - 1, model=model,
                           **kw)
                for i, value in enumerate(values)]

    def hold(self, model="m", id=999, ends=True):
        """Execution 0 runs, a sequence of one request, and goes on so until
        release(): all that is sent meanwhile waits."""
        self.gates[model].close()
        sent = self.send(id, 0, start=True, end=ends, model=model)
        self.gates[model].wait_entered()
        return sent

    def release(self, model="m"):
        self.gates[model].open()

    def open_all(self):
        for gate in self.gates.values():
            gate.open_all()

    # ---- what came of it

    def executions(self, model="m"):
        """The inputs of the backend, an execution after the other."""
        file = self.folder / model / "record"
        lines = file.read_text().splitlines() if file.exists() else []
        return sorted((json.loads(line) for line in lines),
                      key=lambda e: e["execution"])

    def metric(self, name, model="m", **labels):
        labels["model"] = model
        for line in self.server.get("/scrape").body.decode().splitlines():
            if line.startswith(name + "{") and all(
                    f'{k}="{v}"' in line for k, v in labels.items()):
                return float(line.split(" ")[-1])
        return 0

    def queued(self, model="m"):
        return int(self.metric("nv_inference_pending_request_count", model))

    def wait_queued(self, count, model="m"):
        assert process.wait_until(lambda: self.queued(model) == count,
                                  8 * SLOW, 0.002), self.queued(model)

    def statistics(self, model="m"):
        answer = self.server.get(f"/v2/models/{model}/stats")
        return answer.json()["model_stats"][0]

    def batches(self, model="m"):
        """{batch size: executions}"""
        return {int(b["batch_size"]): int(b["compute_infer"]["count"])
                for b in self.statistics(model)["batch_stats"]}


def ready(row):
    return row["inputs"]["READY"]["data"] == [1]


def ids(execution):
    """Ids of the rows of an execution, None for those without a request."""
    return [None if "READY" in r["inputs"] and not ready(r)
            else r["number"] if r["text"] is None else r["text"]
            for r in execution["rows"]]


def places(executions):
    """{id: places in the batch that it had}"""
    found = {}
    for execution in executions:
        for place, id in enumerate(ids(execution)):
            if id is not None:
                found.setdefault(id, set()).add(
                    (execution["instance"], place))
    return found


def values(executions, id):
    """The inputs of the backend for that sequence, in order."""
    return [row["inputs"]["IN"]["data"] for e in executions
            for row, name in zip(e["rows"], ids(e)) if name == id]
