"""The manifests: the schemas of Kubernetes and KServe take them, and they name
options, paths and metrics that exist."""

import re
import subprocess

import kubernetes_validate
import pytest
import yaml

from lib import kserve, models
from lib.launcher import PROGRAM, launcher_env
from lib.server import ROOT

FOLDER = ROOT / "packaging/kubernetes"
VERSIONS = ["1.29", "1.37"]

# of KServe's documentation; its schema takes any text
PROTOCOLS = {"v1", "v2", "grpc-v1", "grpc-v2"}


def documents(name):
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def containers():
    deployment = documents("deployment.yaml")[0]
    runtime, = documents("kserve-runtime.yaml")
    return [deployment["spec"]["template"]["spec"]["containers"][0],
            runtime["spec"]["containers"][0]]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["deployment.yaml", "autoscaler.yaml"])
def test_schemas(name, version):
    for document in documents(name):
        kubernetes_validate.validate(document, version, strict=True)


def test_the_schema_would_find_a_fault():
    document = documents("deployment.yaml")[0]
    spec = document["spec"]["template"]["spec"]
    spec["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, VERSIONS[-1], strict=True)


def test_runtime_of_kserve():
    runtime, = documents("kserve-runtime.yaml")
    assert runtime["apiVersion"] == "serving.kserve.io/v1alpha1"
    kserve.validate(runtime, f"V1alpha1{runtime['kind']}")
    spec = runtime["spec"]
    assert set(spec["protocolVersions"]) <= PROTOCOLS
    container, = spec["containers"]
    assert container["name"] == "kserve-container"
    # the container by the schema of a pod
    kubernetes_validate.validate(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
         "spec": {"containers": [container]}}, VERSIONS[-1], strict=True)


def rename(spec):
    spec["protocolVersion"] = spec.pop("protocolVersions")


def quote(spec):
    spec["supportedModelFormats"][0]["autoSelect"] = "true"


def misname(spec):
    spec["supportedModelFormats"][0]["autoselect"] = True


def number(spec):
    spec["annotations"]["prometheus.kserve.io/port"] = 8002


def empty(spec):
    del spec["containers"]


@pytest.mark.parametrize("fault, said", [
    (rename, "spec has no fields ['protocolVersion']"),
    (quote, "supportedModelFormats[0].autoSelect is 'true'"),
    (misname, "supportedModelFormats[0] has no fields ['autoselect']"),
    (number, "port is 8002"), (empty, "`containers`")])
def test_kserve_s_schema_would_find_a_fault(fault, said):
    runtime, = documents("kserve-runtime.yaml")
    fault(runtime["spec"])
    with pytest.raises(ValueError) as raised:
        kserve.validate(runtime, "V1alpha1ServingRuntime")
    assert said in str(raised.value)


def test_arguments_are_the_launcher_s():
    """It prints the configuration that they mean."""
    for container in containers():
        command, *arguments = container["args"]
        assert command == "inference-server"
        done = subprocess.run(
            [PROGRAM, "--print-config",
             *(re.sub(r"repository=.*", "repository=/", a)
               for a in arguments)],
            env=launcher_env(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        ports = {int(n) for n in re.findall(r"listen +\S*?(\d+)[ ;]",
                                            done.stdout)}
        assert {p["containerPort"] for p in container["ports"]} <= ports
        assert "/v2/health" in str(container["readinessProbe"])


def test_the_pod_ends_before_it_is_killed():
    spec = documents("deployment.yaml")[0]["spec"]["template"]["spec"]
    container = spec["containers"][0]
    timeout, = [int(a.split("=")[1]) for a in container["args"]
                if a.startswith("--exit-timeout-secs=")]
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert timeout + pause < spec["terminationGracePeriodSeconds"]


def test_the_autoscaler_s_metric_is_ours(make_server):
    autoscaler, = documents("autoscaler.yaml")
    rule, = documents("prometheus-adapter.yaml")[0]["rules"]["custom"]
    name = autoscaler["spec"]["metrics"][0]["pods"]["metric"]["name"]
    assert rule["name"]["as"] == name
    series = rule["seriesQuery"].split("{")[0]
    assert rule["name"]["matches"] == f"^{series}$"
    assert autoscaler["spec"]["scaleTargetRef"]["name"] == \
        documents("deployment.yaml")[0]["metadata"]["name"]
    server = make_server(models.standard_repository, parts="health metrics")
    assert f"\n{series}{{" in server.get("/metrics").body.decode()
