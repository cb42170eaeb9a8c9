"""Traces that go to an OpenTelemetry collector, and clients' contexts."""

import json
import os
import signal
import socket

import numpy
import pytest
import tritonclient.grpc

from lib import certificate, exposition, grpc_client, models, process
from lib.collector import Collector
from lib.grpc_client import Client, Failure
from lib.server import SLOW
from lib.wire import tensor

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
OTHER = PARENT.replace("0af", "1af")
SERVER, INTERNAL = 2, 1


def fill(repository):
    models.identity(repository, "one", [("IN", "INT32", [-1])])
    models.ensemble(
        repository, "chain", [("IN", "INT32", [-1])],
        [("OUT", "INT32", [-1])],
        models.step("one", {"IN": "IN"}, {"OUT": "m"}),
        models.step("one", {"IN": "m"}, {"OUT": "OUT"}))


@pytest.fixture
def traced(start, collector):
    def make(options="rate=1", **kw):
        return start(fill, http=f"    inference_trace otlp={collector.url}"
                     f" bsp_schedule_delay=100ms {options};", **kw)
    return make


def infer(server, model="one", headers=None, request_id=None):
    header = {"inputs": [tensor("IN", "INT32", [2], [1, 2])]}
    if request_id:
        header["id"] = request_id
    answer = server.infer(model, header, headers=headers)
    assert answer.status == 200
    assert "triton_trace" not in str(answer.split()[0])


def dropped(server):
    return exposition.scrape(server).value(
        "nginx_inference_traces_dropped_total")


def test_headers_and_authority_of_the_environment(start, tmp_path):
    """Both may be secret, so no setting and no line of the log has them."""
    tmp_path.chmod(0o755)
    authority = certificate.authority(tmp_path)
    c = Collector(certificate.signed(tmp_path, authority))
    try:
        server = start(
            fill, http=f"    inference_trace otlp={c.url} rate=1"
            " bsp_schedule_delay=100ms;", inference_env=[
                '"OTEL_EXPORTER_OTLP_HEADERS=x-no=1"',
                '"OTEL_EXPORTER_OTLP_TRACES_HEADERS=authorization=Basic%20a+b='
                ',x-team=%c3%a4,,no header,x-cut=a%0d%0ax-more=b,=c"',
                f'"OTEL_EXPORTER_OTLP_CERTIFICATE={authority[0]}"'])
        infer(server)
        c.wait(1)
        headers = {k.lower(): v for k, v in c.headers[-1].items()}
        assert headers["authorization"] == "Basic a+b="
        assert headers["x-team"].encode("latin-1") == "\u00e4".encode()
        assert not {"x-no", "x-cut", "x-more"} & set(headers)
        server.wait_log(r"\[warn\].* 3 of the headers for https://.* left out")
        assert "a+b" not in server.log_text()
        assert "a+b" not in str(server.get("/v2/trace/setting"))
    finally:
        c.close()


def test_a_collector_of_an_unknown_authority(start, tmp_path):
    c = Collector(certificate.make(tmp_path))
    try:
        server = start(fill, http=f"    inference_trace otlp={c.url} rate=1"
                       " bsp_schedule_delay=100ms;")
        infer(server)
        server.wait_log("certificate")
        assert c.posts == []
    finally:
        c.close()


def test_the_spans_of_a_request(traced, collector):
    server = traced()
    infer(server, request_id="mine")
    spans = collector.wait(1)
    assert sorted(s.name for s in spans) == ["InferRequest", "compute", "one"]
    request, model, compute = (collector.named(n)[0] for n in
                               ("InferRequest", "one", "compute"))
    assert len({s.trace for s in spans}) == 1
    assert len({s.id for s in spans}) == 3
    assert request.kind == SERVER and request.parent is None
    assert model.kind == INTERNAL and model.parent == request.id
    assert compute.parent == model.id
    assert list(request.events) == [
        "HTTP_RECV_START", "HTTP_RECV_END", "INFER_RESPONSE_COMPLETE",
        "HTTP_SEND_START", "HTTP_SEND_END"]
    assert set(model.events) == {"REQUEST_START", "QUEUE_START",
                                 "REQUEST_END"}
    assert set(compute.events) == {
        "COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START",
        "COMPUTE_END"}
    assert model.attributes == {
        "triton.model_name": "one", "triton.model_version": "1",
        "triton.trace_id": "1", "triton.trace_parent_id": "0",
        "triton.request_id": "mine"}
    assert request.start <= model.start <= compute.start
    assert collector.resources == [
        {"service.name": "triton-inference-server"}]
    assert server.get("/v2/trace/setting").json() == {
        "trace_level": ["TIMESTAMPS"], "trace_rate": "1",
        "trace_count": "-1", "trace_mode": "opentelemetry",
        "url": collector.url, "bsp_schedule_delay": "100",
        "bsp_max_queue_size": "2048", "bsp_max_export_batch_size": "512"}


def test_an_ensemble_nests(traced, collector):
    server = traced("resource=service.name=mine resource=place=here rate=1")
    infer(server, "chain")
    collector.wait(1)
    (chain,) = collector.named("chain")
    steps = collector.named("one")
    assert [s.parent for s in steps] == [chain.id, chain.id]
    assert {c.parent for c in collector.named("compute")} >= {
        s.id for s in steps}
    assert len({s.id for s in collector.spans}) == len(collector.spans)
    assert {s.attributes["triton.trace_parent_id"] for s in steps} == {
        chain.attributes["triton.trace_id"]}
    assert collector.resources == [
        {"service.name": "mine", "place": "here"}]


def test_a_client_s_context_is_traced_after_the_count(traced, collector):
    server = traced("rate=2 count=1")
    for _ in range(4):
        infer(server)
    collector.wait(1)
    for _ in range(3):
        infer(server, headers={"traceparent": PARENT})
        infer(server)
    collector.wait(4)
    assert [r.parent for r in collector.named("InferRequest")].count(SPAN) \
        == 3
    assert server.get("/v2/trace/setting").json()["trace_count"] == "0"


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_client_s_context_forces_a_trace(traced, collector, protocol):
    server = traced("rate=0")
    headers = {"traceparent": PARENT, "tracestate": "v=1,w=2"}
    if protocol == "http":
        infer(server)
        infer(server, headers=headers)
        infer(server)
    else:
        client = tritonclient.grpc.InferenceServerClient(
            f"127.0.0.1:{server.port2}")
        data = tritonclient.grpc.InferInput("IN", [2], "INT32")
        data.set_data_from_numpy(numpy.array([5, 6], numpy.int32))
        for h in ({}, headers, {}):
            client.infer("one", [data], headers=h)
        client.close()
    spans = collector.wait(1)
    (request,) = collector.named("InferRequest")
    assert request.parent == SPAN
    assert {s.trace for s in spans} == {TRACE}
    assert {s.raw["traceState"] for s in spans} == {"v=1,w=2"}


@pytest.mark.parametrize("header", [
    "", "00", PARENT[:-1], PARENT + "-x", "ff" + PARENT[2:],
    PARENT.upper(), PARENT.replace(TRACE, "0" * 32),
    PARENT.replace(SPAN, "0" * 16), PARENT.replace("-", "_")])
def test_a_context_that_is_none_forces_nothing(traced, collector, header):
    server = traced("rate=0")
    infer(server, headers={"traceparent": header, "tracestate": "v=1"})
    infer(server, headers={"traceparent": PARENT, "tracestate": "x" * 600})
    (request,) = [s for s in collector.wait(1) if s.name == "InferRequest"]
    assert request.trace == TRACE
    assert "traceState" not in request.raw


NAMES = ["triton_traceparent", "triton_tracestate", "traceparent"]


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_is_no_context(traced, collector, name):
    """Only headers are, with any names of a client's parameters, and however
    it writes the name."""
    server = traced("rate=0", server="        inference_forward_header ^t;\n"
                    "        underscores_in_headers on;\n")
    reserved = name.startswith("triton_")
    spelled = json.dumps({name: PARENT})
    for text in (spelled, spelled.replace("t", "\\u0074", 1)):
        answer = server.post("/v2/models/one/infer", json.dumps({
            "inputs": [tensor("IN", "INT32", [1], [1])],
            "parameters": "HERE"}).replace('"HERE"', text).encode())
        assert answer.status == (400 if reserved else 200), answer
        assert not reserved or "reserved for Triton usage" in answer.error
        # in generate no key is reserved, as in Triton
        answer = server.post(
            "/v2/models/one/generate",
            ('{"IN": 1, "parameters": ' + text + "}").encode())
        assert answer.status == 200 and b"trace" not in answer.body
    with Client(server.port2) as client:
        given = grpc_client.tensor("IN", "INT32", [1], {"int_contents": [1]})
        if reserved:
            with pytest.raises(Failure, match="reserved for Triton usage"):
                client.infer("one", given, options={name: PARENT})
        else:
            client.infer("one", given, options={name: PARENT})
    if reserved:
        answer = server.infer("one", {"inputs": [
            tensor("IN", "INT32", [1], [1])]}, headers={name: PARENT})
        assert answer.status == 400 and "is reserved for" in answer.error
    infer(server, headers={"traceparent": OTHER})
    assert {s.trace for s in collector.wait(1)} == {OTHER.split("-")[1]}


def test_a_context_of_a_later_version(traced, collector):
    server = traced("rate=0")
    infer(server, headers={"traceparent": "01" + PARENT[2:] + "-more"})
    assert collector.wait(1)[0].trace == TRACE


def test_a_collector_that_fails_costs_no_request(traced, collector):
    server = traced("rate=1 bsp_max_queue_size=8")
    collector.status = 503
    for _ in range(40):
        infer(server)
    server.wait_log(f"collector {collector.url}: traces are lost: "
                    "HTTP status 503")
    server.wait_log(r"\d+ traces were dropped")
    assert dropped(server) > 0
    collector.status = 200

    def arrives():                      # the queue may still be full
        infer(server, request_id="last")
        return [s for s in collector.named("one")
                if s.attributes.get("triton.request_id") == "last"]

    assert process.wait_until(arrives, 20 * SLOW)


def test_no_collector_at_all(start):
    server = start(fill, http="    inference_trace "
                   "otlp=http://127.0.0.1:9/v1/traces "
                   "bsp_schedule_delay=10ms rate=1;")
    for _ in range(20):
        infer(server)
    server.wait_log("traces are lost: ")
    assert process.wait_until(lambda: dropped(server) == 20, 20 * SLOW)


def test_the_end_brings_away_what_is_queued(start, collector):
    server = start(fill, http="    inference_trace "
                   f"otlp={collector.url} bsp_schedule_delay=1h rate=1;")
    for _ in range(7):
        infer(server)
    server.stop()
    assert len(collector.named("InferRequest")) == 7
    assert len(collector.posts) == 1


def test_the_end_waits_for_no_silent_collector(start):
    """The next core's requests would wait, too."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1/traces"
        server = start(fill, http="    inference_trace "
                       f"otlp={url} bsp_max_export_batch_size=1 rate=1;")
        for _ in range(40):
            infer(server)
        core = server.core()
        os.kill(core, signal.SIGQUIT)
        server.next_core(core, 20)
        server.wait_log(r"\b\d+ traces were dropped")
        infer(server)
        server.stop()
