"""Trace contexts that models see: of the span above their own spans."""

import json

import pytest

from lib import models, python_backend
from lib.python_backend import TELL, TEXT, text, told

# the span's context, or what another model is told that continues the trace
CONTEXT = TELL + """
class TritonPythonModel:
    def execute(self, requests):
        return [tell(r.trace().get_context()) for r in requests]
"""
CALLER = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse(pb.InferenceRequest(
            model_name="context", requested_output_names=["OUT"],
            inputs=r.inputs(), trace=r.trace()).exec().output_tensors())
            for r in requests]
"""
STRINGS = [("IN", "BYTES", [-1])], [("OUT", "BYTES", [-1])]


def fill(repository):
    python_backend.model(repository, "context", TEXT, CONTEXT)
    python_backend.model(repository, "caller", TEXT, CALLER)
    models.ensemble(repository, "chain", *STRINGS,
                    models.step("context", {"IN": "IN"}, {"OUT": "OUT"}))


@pytest.fixture
def server(collector):
    with python_backend.serve(
            fill, http=f"    inference_trace otlp={collector.url} rate=1"
            " bsp_schedule_delay=100ms;\n") as s:
        yield s


@pytest.mark.parametrize("asked", ["context", "caller", "chain"])
def test_a_context_is_that_of_the_model_s_own_span(server, collector, asked):
    context = json.loads(told(server.infer(asked, text("x"))))
    collector.wait(1)
    (span,) = collector.named("context")
    assert context == {"traceparent": f"00-{span.trace}-{span.id}-01"}
    (above,) = collector.named(
        "InferRequest" if asked == "context" else asked)
    assert span.parent == above.id
