"""Metrics, as Prometheus reads them."""

import json
import re

import pytest

from lib import models, process, wire
from lib.server import ROOT, SLOW, free_port

SERVED = "location = /scrape { inference metrics; }" \
    " location /sub/ { inference metrics; }"

MODEL_FAMILIES = {
    "nv_inference_request_success": "counter",
    "nv_inference_request_failure": "counter",
    "nv_inference_count": "counter",
    "nv_inference_exec_count": "counter",
    "nv_inference_pending_request_count": "gauge",
    "nv_inference_request_duration_us": "counter",
    "nv_inference_queue_duration_us": "counter",
    "nv_inference_compute_input_duration_us": "counter",
    "nv_inference_compute_infer_duration_us": "counter",
    "nv_inference_compute_output_duration_us": "counter",
    "nv_model_load_duration_secs": "gauge",
}

LATENCIES = [f"nv_inference_{part}_duration_us" for part in (
    "request", "queue", "compute_input", "compute_infer", "compute_output")]

SUMMARIES = [name.replace("duration", "summary") for name in LATENCIES]

FIRST = "nv_inference_first_response_histogram_ms"

SAMPLE = re.compile(r'([a-z_0-9]+)(?:\{(.*)\})? (\S+)$')


def repository(folder):
    models.identity(folder, "m", [("IN", "FP32", [2])], max_batch=4,
                    extra='metric_tags { key: "team" value: "a\\"b" }')
    models.identity(folder, "cold", [("IN", "FP32", [2])])


def parse(text):
    """({family: type}, {(sample, labels): value}), or an assertion."""
    kinds, samples = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds, f"twice: {name}"
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            name, labels, value = SAMPLE.match(line).groups()
            family = re.sub("_(bucket|count|sum)$", "", name)
            assert name in kinds or family in kinds, f"untyped: {line}"
            assert (name, labels) not in samples, f"twice: {line}"
            samples[name, labels] = float(value.replace("Nan", "nan"))
    return kinds, samples


def scrape(server, path="/metrics"):
    answer = server.get(path)
    assert answer.status == 200, answer
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    return parse(answer.body.decode())


def infer(server, name, rows):
    shape = [rows, 2] if name == "m" else [2]
    data = [0.5] * (2 * rows)
    return server.post(f"/v2/models/{name}/infer", json.dumps({"inputs": [
        {"name": "IN", "datatype": "FP32", "shape": shape, "data": data}
    ]}).encode())


def until(condition):
    assert process.wait_until(condition, 20 * SLOW)


@pytest.fixture
def metered(make_server):
    def make(http=""):
        return make_server(repository, http=http, server=SERVED,
                           parts="health infer metrics")
    return make


M = '_team="a\\"b",model="m",version="1"'
COLD = 'model="cold",version="1"'


def test_families_types_labels_and_counts(metered):
    server = metered()
    kinds, samples = scrape(server)
    assert MODEL_FAMILIES.items() <= kinds.items()
    assert kinds["nv_cpu_memory_total_bytes"] == "gauge"
    assert FIRST not in kinds and not set(SUMMARIES) & set(kinds)
    assert samples["nv_inference_request_success", COLD] == 0

    for rows in (1, 3):
        assert infer(server, "m", rows).status == 200
    # an answer goes out before its backend has reported it
    until(lambda: scrape(server)[1][
        "nv_inference_exec_count", M] == 2)
    kinds, samples = scrape(server)
    assert samples["nv_inference_request_success", M] == 2
    assert samples["nv_inference_count", M] == 4
    assert samples["nv_inference_request_success", COLD] == 0
    assert samples["nv_inference_pending_request_count", M] == 0
    assert samples["nv_model_load_duration_secs", M] > 0
    for reason in ("REJECTED", "CANCELED", "BACKEND", "OTHER"):
        assert samples["nv_inference_request_failure",
                       M.replace("version", f'reason="{reason}",version')] == 0
    assert 0 < samples["nv_cpu_memory_used_bytes", None] \
        <= samples["nv_cpu_memory_total_bytes", None]


def test_cpu_utilisation_is_a_share_of_what_passed(metered):
    server = metered("    inference_metrics interval=1ms;")
    until(lambda: "nv_cpu_utilization" in scrape(server)[0])
    value = scrape(server)[1]["nv_cpu_utilization", None]
    assert 0 <= value <= 1


def test_a_location_of_metrics_alone_may_have_any_name(metered):
    server = metered()
    for path in ("/metrics", "/metrics/", "/scrape", "/sub/metrics"):
        assert "nv_inference_count" in scrape(server, path)[0]
    for path in ("/scrape/x", "/metric", "/sub/v2/health/live"):
        assert server.get(path).status == 404
    assert wire.fetch(server.port, "POST", "/metrics", b"").status == 405


def test_the_snippet_of_conf_d_serves_them(make_server):
    text = (ROOT / "conf.d/metrics.conf").read_text(encoding="utf-8")
    port = free_port()
    make_server(repository, http=text.replace(
        "listen 8002", f"listen 127.0.0.1:{port}"))
    answer = wire.fetch(port, "GET", "/metrics")
    assert answer.status == 200
    assert b"nv_inference_count" in answer.body
    assert wire.fetch(port, "GET", "/v2/health/live").status == 404


def test_metrics_are_served_only_where_they_are_listed(make_server):
    server = make_server(repository)
    assert server.get("/metrics").status == 404


def test_summaries_and_histograms_when_asked_for(metered):
    server = metered("    inference_metrics cpu=off histograms=on"
                     " summaries=on quantiles=0.5:0.05,0.9:0.01;")
    assert infer(server, "m", 2).status == 200
    until(lambda: scrape(server)[1][
        "nv_inference_exec_count", M] == 1)
    kinds, samples = scrape(server)
    assert not [name for name in kinds if name.startswith("nv_cpu")]

    for name in SUMMARIES:
        assert kinds[name] == "summary"
        assert samples[name + "_count", M] == 1
        for q in ("0.5", "0.9"):
            value = samples[name, f'{M},quantile="{q}"']
            total = samples[name + "_sum", M]
            assert abs(value - total) <= total / 50
            assert samples[name, f'{COLD},quantile="{q}"'] \
                != samples[name, f'{COLD},quantile="{q}"']      # Nan

    assert kinds[FIRST] == "histogram"
    assert samples[FIRST + "_count", M] == 1
    assert samples[FIRST + "_count", COLD] == 0
    bounds = [labels.split("le=")[1].strip('"') for name, labels in samples
              if name == FIRST + "_bucket" and labels.startswith(M)]
    assert bounds == ["100", "500", "2000", "5000", "+Inf"]
    assert samples[FIRST + "_bucket", M + ',le="+Inf"'] == 1


def test_without_counters_rows_stay_zero_and_gauges_move(metered):
    server = metered("    inference_metrics counters=off;")
    assert infer(server, "m", 2).status == 200
    kinds, samples = scrape(server)
    assert samples["nv_inference_request_success", M] == 0
    assert samples["nv_inference_count", M] == 0
    assert not set(LATENCIES) & set(kinds)
    assert samples["nv_model_load_duration_secs", M] > 0
