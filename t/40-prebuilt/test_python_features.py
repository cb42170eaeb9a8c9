"""Other features of a model in Python: metrics, logs, parameters, codes, calls
of decoupled models, its own life; through nginx and through the prebuilt front
end."""

import json
import re

import pytest

from lib import decoupled, models, prebuilt, process, wire
from lib.front_end import FrontEnd
from lib.server import Server

MISSING = prebuilt.missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

TEXT = (models.io_block("input", [("IN", "BYTES", [-1])])
        + models.io_block("output", [("OUT", "BYTES", [-1])]))

COUNTING = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        labels = {"model": args["model_name"], "quote": 'a"b'}
        self.families = [
            pb.MetricFamily(name="t_calls", description="calls so far",
                            kind=pb.MetricFamily.COUNTER),
            pb.MetricFamily(name="t_level", description="the level",
                            kind=pb.MetricFamily.GAUGE),
            pb.MetricFamily(name="t_sizes", description="sizes seen",
                            kind=pb.MetricFamily.HISTOGRAM)]
        self.calls = self.families[0].Metric(labels=labels)
        self.level = self.families[1].Metric(labels=labels)
        self.sizes = self.families[2].Metric(labels=labels,
                                             buckets=[1, 2.5, 10])
    def execute(self, requests):
        answers = []
        for request in requests:
            given = pb.get_input_tensor_by_name(request, "IN")
            for word in given.as_numpy():
                self.calls.increment(1)
                self.level.set(float(word))
                self.sizes.observe(float(word))
            assert self.level.value() == float(given.as_numpy()[-1])
            answers.append(pb.InferenceResponse(
                [pb.Tensor("OUT", given.as_numpy())]))
        return answers
"""

LOGGING = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        log = pb.Logger
        log.log_info("t says info")
        log.log_warn("t says warn")
        log.log_error("t says error \\"quoted\\"")
        log.log_verbose("t says verbose")
        return [pb.InferenceResponse([pb.Tensor("OUT",
            pb.get_input_tensor_by_name(r, "IN").as_numpy())])
            for r in requests]
"""

CODES = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            word = pb.get_input_tensor_by_name(request, "IN").as_numpy()[0]
            answers.append(pb.InferenceResponse(error=pb.TritonError(
                "as told", getattr(pb.TritonError, word.decode()))))
        return answers
"""

TELLER = """\
import json
import numpy
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUT", numpy.array(
            [json.dumps({
                "correlation": request.correlation_id(),
                "flags": request.flags(), "timeout": request.timeout(),
                "wanted": list(request.requested_output_names())}).encode()],
            dtype=object))]) for request in requests]
"""

STREAM_CALLER = """\
import numpy
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            count = int(pb.get_input_tensor_by_name(
                request, "IN").as_numpy()[0])
            call = pb.InferenceRequest(
                model_name="repeat", requested_output_names=["OUT", "IDX"],
                inputs=[pb.Tensor("IN", numpy.arange(
                            count, dtype=numpy.int32) * 10),
                        pb.Tensor("DELAY", numpy.zeros(
                            count, dtype=numpy.uint32)),
                        pb.Tensor("WAIT", numpy.zeros(
                            1, dtype=numpy.uint32))])
            got = []
            for response in call.exec(decoupled=True):
                if response.has_error():
                    got.append(response.error().message())
                elif response.output_tensors():
                    got.append(str(pb.get_output_tensor_by_name(
                        response, "OUT").as_numpy()[0]))
            answers.append(pb.InferenceResponse([pb.Tensor(
                "OUT", numpy.array([" ".join(got).encode()],
                                   dtype=object))]))
        return answers
"""

LIFE = """\
import pathlib
import triton_python_backend_utils as pb

class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "IN", "data_type": "TYPE_STRING",
                          "dims": [-1]})
        config.add_output({"name": "OUT", "data_type": "TYPE_STRING",
                           "dims": [-1]})
        config.set_max_batch_size(0)
        return config
    def initialize(self, args):
        self.place = pathlib.Path(args["model_repository"]).parents[1]
        (self.place / "initialized").touch()
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUT",
            pb.get_input_tensor_by_name(r, "IN").as_numpy())])
            for r in requests]
    def finalize(self):
        (self.place / "finalized").touch()
"""

BROKEN = """\
class TritonPythonModel:
    def initialize(self, args):
        raise RuntimeError("no such thing here")
"""


MODELS = ["repeat", "counting", "logging", "codes", "teller", "stream_caller",
          "life"]


def fill(repository):
    decoupled.repeat(repository)
    for name, config, source in [
            ("counting", TEXT, COUNTING), ("logging", TEXT, LOGGING),
            ("codes", TEXT, CODES),
            ("teller", TEXT, TELLER),
            ("stream_caller", TEXT, STREAM_CALLER), ("life", "", LIFE),
            ("broken", TEXT, BROKEN)]:
        prebuilt.model(repository, name, config, source)


@pytest.fixture(scope="module")
def front_end():
    with FrontEnd(fill, backends=prebuilt.folder(), metrics=True,
                  arguments=["--exit-on-error", "false",
                             "--strict-readiness", "false"]) as s:
        yield s
        place = s.prefix
        assert (place / "initialized").exists()
        assert not (place / "finalized").exists()


@pytest.fixture(scope="module")
def nginx():
    with Server(fill, backends=prebuilt.folder(),
                inference_env=prebuilt.environment(),
                log_level="debug", http="    inference_log info verbose=1;",
                server="        location = /metrics { inference metrics; }"
                ).start("live") as s:
        for name in MODELS:         # one is broken: it is never ready
            assert s.wait_for(f"/v2/models/{name}/ready")
        s.wait_log("model=broken version=1 failed to load")
        yield s


@pytest.fixture(params=["nginx", "front_end"])
def either(request):
    return request.getfixturevalue(request.param)


def infer(server, model, words=("x",), **more):
    body = json.dumps(dict({"inputs": [wire.tensor(
        "IN", "BYTES", [len(words)], list(words))]}, **more)).encode()
    return server.post(f"/v2/models/{model}/infer", body)


def out(answer):
    assert answer.status == 200, answer
    return answer.json()["outputs"][0]["data"]


def row(text, name, **labels):
    """The value of one series."""
    for line in text.splitlines():
        match = re.fullmatch(r'(\w+)\{(.*)\} (\S+)', line)
        if match and match[1] == name and all(
                f'{k}="{v}"' in match[2] for k, v in labels.items()):
            return float(match[3])
    return None


def test_metrics(either):
    labels = {"model": "counting", "quote": 'a\\"b'}
    assert out(infer(either, "counting", ["1", "2", "7", "40"]))

    def ask():
        return either.metrics() if isinstance(either, FrontEnd) \
            else either.get("/metrics").body.decode()

    text = ask()
    assert "# HELP t_calls calls so far\n# TYPE t_calls counter\n" in text
    assert "# TYPE t_level gauge\n" in text
    assert "# TYPE t_sizes histogram\n" in text
    assert row(text, "t_calls", **labels) == 4
    assert row(text, "t_level", **labels) == 40
    for limit, count in [("1", 1), ("2.5", 2), ("10", 3), (r"+Inf", 4)]:
        assert row(text, "t_sizes_bucket", le=limit, **labels) == count
    assert row(text, "t_sizes_sum", **labels) == 50
    assert row(text, "t_sizes_count", **labels) == 4
    # the backend counts after it has answered
    assert process.wait_until(lambda: row(
        ask(), "nv_inference_request_success", model="counting") == 1, 10)


def test_logs(either):
    assert out(infer(either, "logging")) == ["x"]
    for level in ("info", "warn", 'error "quoted"'):
        text = f"t says {level}"
        assert process.wait_until(
            lambda text=text: text in either.log_text()
            or text.replace('"', '\\"') in either.log_text(), 10), \
            either.log_text()[-2000:]


def test_verbose_logs_when_wanted(nginx, front_end):
    infer(nginx, "logging")
    infer(front_end, "logging")
    nginx.wait_log("t says verbose")
    assert "t says verbose" not in front_end.log_text()


@pytest.mark.parametrize("code,status", [
    ("UNKNOWN", 400), ("INTERNAL", 500), ("NOT_FOUND", 404),
    ("INVALID_ARG", 400), ("UNAVAILABLE", 503), ("UNSUPPORTED", 501),
    ("ALREADY_EXISTS", 400), ("CANCELLED", 400)])
def test_codes(either, code, status):
    answer = infer(either, "codes", [code])
    assert answer.status == status
    assert "as told" in answer.error


def test_what_a_request_tells(either):
    answer = infer(either, "teller", outputs=[{"name": "OUT"}], parameters={
        "sequence_id": 7, "sequence_start": True, "timeout": 5000000})
    told = json.loads(out(answer)[0])
    assert told == {"correlation": 7, "flags": 1, "timeout": 5000000,
                    "wanted": ["OUT"]}


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_stream_of_another_model(either, count):
    assert out(infer(either, "stream_caller", [str(count)])) == [
        " ".join(str(n * 10) for n in range(count))]


def test_a_model_completes_its_configuration(either):
    config = either.get("/v2/models/life/config").json()
    assert [t["name"] for t in config["input"]] == ["IN"]
    assert out(infer(either, "life", ["a", "b"])) == ["a", "b"]


def test_why_a_model_does_not_load(either):
    assert either.get("/v2/models/broken/ready").status in (400, 404, 503)
    assert "no such thing here" in either.log_text()


def test_the_end_is_told_to_the_model():
    server = FrontEnd(lambda r: prebuilt.model(r, "life", "", LIFE),
                      backends=prebuilt.folder()).start()
    place, kept = server.prefix, server._remove
    server._remove = lambda: None
    try:
        server.stop()
        assert (place / "finalized").exists()
    finally:
        kept()
