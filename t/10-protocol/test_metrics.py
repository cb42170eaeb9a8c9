"""Where metrics are served, and what the settings put in or leave out."""

import json

import pytest

from lib import models, process, wire
from lib.exposition import scrape
from lib.server import ROOT, SLOW, free_port

SERVED = "location = /scrape { inference metrics; }" \
    " location /sub/ { inference metrics; }"

LATENCIES = {f"nv_inference_{part}_duration_us" for part in (
    "request", "queue", "compute_input", "compute_infer", "compute_output")}

SUMMARIES = {name.replace("duration", "summary") for name in LATENCIES}

FIRST = "nv_inference_first_response_histogram_ms"


def repository(folder):
    models.identity(folder, "m", [("IN", "FP32", [2])], max_batch=4)
    models.identity(folder, "cold", [("IN", "FP32", [2])])


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


def names(server):
    return set(scrape(server).families)


def test_what_is_there_unless_asked_otherwise(metered):
    found = names(metered())
    assert LATENCIES < found
    assert {"nv_inference_count", "nv_inference_request_failure",
            "nv_cpu_memory_total_bytes",
            "nv_pinned_memory_pool_used_bytes"} < found
    assert FIRST not in found and not SUMMARIES & found
    assert not [n for n in found if "seconds" in n or "cache" in n]


def test_cpu_utilisation_is_a_share_of_what_passed(metered):
    server = metered("    inference_metrics interval=1ms;")
    until(lambda: "nv_cpu_utilization" in names(server))
    assert 0 <= scrape(server).value("nv_cpu_utilization") <= 1


def test_a_location_of_metrics_alone_may_have_any_name(metered):
    server = metered()
    for path in ("/metrics", "/metrics/", "/scrape", "/sub/metrics"):
        assert "nv_inference_count" in scrape(server, path).families
    for path in ("/scrape/x", "/metric", "/sub/v2/health/live"):
        assert server.get(path).status == 404
    assert wire.fetch(server.port, "POST", "/metrics", b"").status == 405


def test_the_snippet_of_conf_d_serves_them(make_server):
    text = (ROOT / "conf.d/metrics.conf").read_text(encoding="utf-8")
    port = free_port()
    make_server(repository, http=text.replace(
        "listen 8002", f"listen 127.0.0.1:{port}"))
    for path in ("/metrics", "/metrics/"):
        answer = wire.fetch(port, "GET", path)
        assert answer.status == 200
        assert b"nv_inference_count" in answer.body
    for path in ("/v2/health/live", "/metrics/v2/health/live"):
        assert wire.fetch(port, "GET", path).status == 404


def test_metrics_are_served_only_where_they_are_listed(make_server):
    server = make_server(repository)
    assert server.get("/metrics").status == 404


@pytest.mark.parametrize("settings,there,not_there", [
    ("cpu=off", LATENCIES, {"nv_cpu_memory_total_bytes"}),
    ("histograms=on", {FIRST, "nginx_inference_queue_duration_seconds"},
     SUMMARIES),
    ("summaries=on", SUMMARIES,
     {FIRST, "nginx_inference_queue_duration_seconds"}),
    ("counters=off histograms=on summaries=on",
     {FIRST, "nginx_inference_request_duration_seconds"} | SUMMARIES,
     LATENCIES),
])
def test_settings(metered, settings, there, not_there):
    found = names(metered(f"    inference_metrics {settings};"))
    assert there <= found
    assert not not_there & found


def test_quantiles(metered):
    server = metered("    inference_metrics summaries=on"
                     " quantiles=0.25:0.05,0.75:0.01;")
    text = scrape(server)
    assert {ls["quantile"] for _, ls, _ in
            text.families["nv_inference_queue_summary_us"].samples
            if "quantile" in ls} == {"0.25", "0.75"}


def test_without_counters_rows_stay_zero_and_the_rest_moves(metered):
    server = metered("    inference_metrics counters=off histograms=on"
                     " summaries=on;")
    assert infer(server, "m", 2).status == 200
    until(lambda: scrape(server).value(
        "nv_inference_queue_summary_us_count", model="m") == 1)
    text = scrape(server)
    assert text.value("nv_inference_request_success", model="m") == 0
    assert text.value("nv_inference_count", model="m") == 0
    assert text.value("nv_model_load_duration_secs", model="m") > 0
    assert text.value("nginx_inference_request_duration_seconds_count",
                      model="m") == 1
    assert text.value(FIRST + "_count", model="m") == 1
    assert text.value(FIRST + "_count", model="cold") == 0


def test_rows_go_with_their_model(make_server):
    server = make_server(repository, parts="all repository metrics",
                         http="    inference_model_control explicit;\n"
                              "    inference_load_model *;\n")
    assert {ls["model"] for _, ls, _ in
            scrape(server).families["nv_inference_count"].samples} \
        == {"m", "cold"}
    for name in ("m", "cold"):
        assert server.post(f"/v2/repository/models/{name}/unload",
                           b"").status == 200
    until(lambda: not [n for n in names(server)
                       if n.startswith("nv_inference")])
    assert "nv_cpu_memory_total_bytes" in names(server)
