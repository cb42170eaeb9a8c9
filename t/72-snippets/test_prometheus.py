"""examples/prometheus and docs/metrics.md against the metrics of a server."""

import re

import promql_parser
import pytest
import yaml

from lib import models
from lib.exposition import scrape
from lib.server import ROOT, Server
from lib.wire import tensor

EXAMPLE = ROOT / "examples/prometheus"
RULES = [rule for group in
         yaml.safe_load((EXAMPLE / "alerts.yml").read_text())["groups"]
         for rule in group["rules"]]
PAGE = (ROOT / "docs/metrics.md").read_text()
ROWS = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", PAGE, re.M))
OF_GPUS = re.compile(r"nv_gpu_|nv_energy_")
NAME = re.compile(r"\b(?:nv|nginx)_\w+")
# labels that Prometheus itself adds, and those of rows that this machine lacks
ADDED = {"instance", "job", "gpu_uuid"}


@pytest.fixture(scope="module")
def text():
    """The metrics of a server that has answered and rejected something."""
    one = [("IN", "INT32", [-1])]

    def fill(folder):
        models.identity(folder, "m", one)
        models.identity(folder, "cached", one,
                        extra="response_cache { enable: true }\n")

    with Server(fill, parts="all",
                server="location = /metrics { inference metrics; }",
                http="    inference_metrics histograms=on summaries=on;\n"
                "    inference_response_cache local size=1m;\n") as server:
        body = {"inputs": [tensor("IN", "INT32", [1], [7])]}
        assert server.infer("m", body).status == 200
        assert server.infer("cached", body).status == 200
        assert server.infer("m", {"inputs": []}).status == 400
        yield scrape(server)


def test_the_page_has_every_metric(text):
    kinds = {name: family.kind for name, family in text.families.items()}
    kinds.setdefault("nv_cpu_utilization", "gauge")     # from the second on
    assert len(ROWS) > 60
    wanted = {name: kind for name, kind in ROWS.items()
              if not OF_GPUS.match(name)
              and name != "nv_inference_first_response_histogram_ms"}
    kinds.pop("nv_inference_first_response_histogram_ms", None)
    assert kinds == wanted


def test_the_page_has_the_metrics_of_gpus():
    source = (ROOT / "core/server/gpu_metrics.c").read_text()
    families = dict(re.findall(r'\] = \{ "(nv_\w+)", "(\w+)"', source))
    assert len(families) == 6
    assert families == {n: k for n, k in ROWS.items() if OF_GPUS.match(n)}


@pytest.mark.parametrize("rule", RULES, ids=[r["alert"] for r in RULES])
def test_an_alert(rule, text):
    promql_parser.parse(rule["expr"])               # raises where it is wrong
    for name in NAME.findall(rule["expr"]):
        family = re.sub(r"_(bucket|sum|count)$", "", name)
        family = name if name in ROWS else family
        assert family in ROWS, name
        if OF_GPUS.match(name):
            continue
        labels = {label for sample, labels, _ in text.families[family].samples
                  if sample == name for label in labels}
        for used in re.findall(r"by \(([^)]*)\)", rule["expr"]):
            used = {label.strip() for label in used.split(",")}
            assert used - {"le"} - ADDED <= labels, rule["expr"]
    summary = rule["annotations"]["summary"]
    known = {"model", "instance", "gpu_uuid"}
    assert set(re.findall(r"\$labels\.(\w+)", summary)) <= known
    assert rule["labels"]["severity"] in ("page", "ticket")


def test_reasons_of_failures(text):
    """The alert leaves CANCELED out, which has to be one of them."""
    reasons = {labels["reason"] for _, labels, _ in
               text.families["nv_inference_request_failure"].samples}
    assert "CANCELED" in reasons
    assert set(re.findall(r"`([A-Z]+)`", PAGE)) == reasons


def test_prometheus_reads_the_alerts():
    config = yaml.safe_load((EXAMPLE / "prometheus.yml").read_text())
    assert config["rule_files"] == ["alerts.yml"]
    assert [job["job_name"] for job in config["scrape_configs"]] \
        == ["inference"]
    assert any('job="inference"' in rule["expr"] for rule in RULES)
