"""Model Analyzer: remote and local, unmodified."""

import csv
import json
import os
import re
import subprocess

import pytest

from lib import models, perf_analyzer, process
from lib.launcher import PROGRAM, Launcher, launcher_env
from lib.server import NGINX, ROOT, free_port

ANALYZER = ROOT / "build" / "model-analyzer" / "bin" / "model-analyzer"

FLAGS = dict(zip((f.removeprefix("--")
                  for f in perf_analyzer.SHORT[::2]),
                 perf_analyzer.SHORT[1::2]))


@pytest.fixture
def repository(tmp_path):
    tmp_path.chmod(0o755)
    path = tmp_path / "models"
    path.mkdir()
    models.identity(path, "plain", [("IN", "FP32", [16])], max_batch=8)
    return path


@pytest.fixture
def launch(tmp_path):
    made = []

    def start(*arguments):
        made.append(Launcher(tmp_path, *arguments))
        made[0].wait_ready()
        return made[0]

    yield start
    for launcher in made:
        assert launcher.stop() == 0
        assert not complaints(launcher.log.read_text())


def complaints(log):
    return re.findall(r"^[EW]\d{4} .*|.*\[(?:warn|error|alert|emerg)\].*",
                      log, re.MULTILINE)


def profile(tmp_path, repository, ports, **settings):
    """{variant: throughputs} of a run."""
    http, grpc, metrics = ports
    config = tmp_path / "analyzer.json"         # JSON is YAML
    config.write_text(json.dumps({
        "model_repository": str(repository),
        "checkpoint_directory": str(tmp_path / "checkpoints"),
        "export_path": str(tmp_path / "export"),
        "output_model_repository_path": str(tmp_path / "variants"),
        "override_output_model_repository": True,
        "perf_analyzer_path": str(perf_analyzer.PROGRAM),
        "triton_http_endpoint": f"127.0.0.1:{http}",
        "triton_grpc_endpoint": f"127.0.0.1:{grpc}",
        "triton_metrics_url": f"http://127.0.0.1:{metrics}/metrics",
        "duration_seconds": 1,
        "skip_detailed_reports": True,
        "profile_models": {"plain": {"cpu_only": True,
                                     "perf_analyzer_flags": FLAGS}},
        **settings}), encoding="utf-8")
    (tmp_path / "export").mkdir()
    done = subprocess.run(
        [ANALYZER, "profile", "-v", "-f", config], cwd=tmp_path,
        env={**perf_analyzer.environment(), "INFERENCE_NGINX": NGINX},
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=600, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert " ERROR" not in said, said
    found = {}
    with open(tmp_path / "export/results/metrics-model-inference.csv",
              newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["Model Config Path"], []).append(
                float(row["Throughput (infer/sec)"]))
    assert all(rate > 0 for rates in found.values() for rate in rates), said
    return found


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_remote(tmp_path, repository, launch, protocol):
    """A model that the server has, at two concurrencies."""
    server = launch(f"--model-repository={repository}",
                    "--model-control-mode=explicit", "--load-model=plain")
    found = profile(
        tmp_path, repository,
        (server.port, server.grpc_port, server.metrics_port),
        triton_launch_mode="remote", client_protocol=protocol,
        reload_model_disable=True, run_config_search_disable=True,
        concurrency=[1, 2])
    assert {k: len(v) for k, v in found.items()} == {
        "plain_config_default": 2}


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_remote_variants(tmp_path, repository, launch, protocol):
    """Variants that it writes, and has the server load and unload.

    It asks whether each model of the index is ready; over REST the answer for
    one that is not loaded is an error in the log.
    """
    loaded = [] if protocol == "grpc" else ["--load-model=plain"]
    (tmp_path / "variants").mkdir()
    server = launch(f"--model-repository={repository}",
                    f"--model-repository={tmp_path / 'variants'}",
                    "--model-control-mode=explicit", *loaded)
    found = profile(
        tmp_path, repository,
        (server.port, server.grpc_port, server.metrics_port),
        triton_launch_mode="remote", client_protocol=protocol,
        run_config_search_max_concurrency=1,
        run_config_search_max_instance_count=2,
        run_config_search_max_model_batch_size=1)
    assert sorted(found) == ["plain_config_0", "plain_config_1",
                             "plain_config_default"]


def test_local(tmp_path, repository):
    """inference-server in the place of tritonserver, started often."""
    log = tmp_path / "server.log"
    before = set(process.descendants(os.getpid()))
    environment = {k: v for k, v in launcher_env().items()
                   if k not in os.environ}
    found = profile(
        tmp_path, repository, (free_port(), free_port(), free_port()),
        triton_launch_mode="local", triton_server_path=str(PROGRAM),
        triton_output_path=str(log), triton_server_environment=environment,
        run_config_search_max_concurrency=2,
        run_config_search_max_instance_count=2,
        run_config_search_max_model_batch_size=2)
    assert {k: len(v) for k, v in found.items()} == {
        name: 2 for name in ["plain_config_default", *(
            f"plain_config_{i}" for i in range(4))]}
    assert set(process.descendants(os.getpid())) == before, "left running"
    assert not complaints(log.read_text())
