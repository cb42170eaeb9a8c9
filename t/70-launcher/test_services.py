"""inference-server's listeners, its log at the start, and its end: with ports,
files and exit codes of Triton's command line."""

import json
import re
import shutil
import signal
import socket
import struct
import subprocess

import numpy
import pytest
import tritonclient.grpc as grpc
from tritonclient.utils import InferenceServerException

from lib import backends, certificate, models, process, wire
from lib.grpc_client import Client, Failure, infer, tensor
from lib.launcher import PROGRAM, launcher_env, rejected
from lib.regions import Object
from lib.server import NGINX, SLOW, free_port, nap

BODY = (b'{"inputs":[{"name":"IN","datatype":"FP32","shape":[1],'
        b'"data":[2.5]}]}')
INFER = "/v2/models/one/infer"


def post(launcher, path, headers=None, body=BODY, port=None):
    return wire.fetch(port or launcher.port, "POST", path, body, headers)


def curl(*arguments):
    """Status and headers of an answer over HTTP/2."""
    done = subprocess.run(
        ["curl", "-sS", "-i", "-k", "--max-time", str(20 * SLOW), "-X",
         "POST", *map(str, arguments)], capture_output=True, text=True,
        check=False)
    if done.returncode != 0:
        return None, done.stderr
    head = done.stdout.replace("\r", "").partition("\n\n")[0].splitlines()
    return int(head[0].split()[1]), dict(
        line.lower().split(": ", 1) for line in head[1:] if ": " in line)


def call(launcher, method, *headers, scheme="http", how=()):
    given = ["content-type: application/grpc", "te: trailers", *headers]
    return curl("--http2" if scheme == "https" else "--http2-prior-knowledge",
                *[part for h in given for part in ("-H", h)],
                "-d", "", *how, f"{scheme}://127.0.0.1:{launcher.grpc_port}"
                f"/inference.GRPCInferenceService/{method}")


# ---- the log at the start

def table_after(text, head):
    """The rows of the table whose first column is called that."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines)
              if line.startswith(f"| {head} "))
    assert re.fullmatch(r"I\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ \S+:\d+\] ",
                        lines[at - 2])
    rule = lines[at - 1]
    assert re.fullmatch(r"(\+-+)+\+", rule) and lines[at + 1] == rule
    end = lines.index(rule, at + 2)
    assert all(len(line) == len(rule) for line in lines[at:end])
    return [tuple(cell.strip() for cell in line.strip("|").split("|"))
            for line in lines[at + 2:end]]


def test_tables_of_models_and_options(launch, repository):
    launcher = launch("--id=mine", "--rate-limit=execution_count",
                      "--cuda-memory-pool-byte-size=0:5",
                      "--strict-readiness=false")
    log = launcher.wait_log("Started Metrics Service")
    assert table_after(log, "Model") == [("one", "1", "READY"),
                                         ("slow", "1", "READY")]
    options = dict(table_after(log, "Option"))
    assert options["server_id"] == "mine"
    assert options["model_repository_path[0]"] == str(repository)
    assert options["model_control_mode"] == "MODE_NONE"
    assert options["rate_limit"] == "EXEC_COUNT"
    assert options["strict_readiness"] == "0"
    assert options["cuda_memory_pool_byte_size{0}"] == "5"
    assert options["exit_timeout"] == "30"
    metadata = wire.fetch(launcher.port, "GET", "/v2").json()
    assert metadata["name"] == "mine"
    assert options["server_version"] == metadata["version"]
    assert options["server_extensions"].split() == metadata["extensions"]
    for name, port in (("HTTPService", launcher.port),
                       ("GRPCInferenceService", launcher.grpc_port),
                       ("Metrics Service", launcher.metrics_port)):
        assert f'"Started {name} at 127.0.0.1:{port}"' in log.replace(
            "0.0.0.0", "127.0.0.1")


def test_models_that_failed_are_in_the_table(begin, repository):
    models.write_model(repository, "homeless", models.identity_config(
        "homeless", [("IN", "FP32", [-1])], backend="nowhere"), (1,))
    server = begin(f"--model-repository={repository}")
    assert server.process.wait(30 * SLOW) == 1
    log = server.log.read_text()
    rows = {row[0]: row for row in table_after(log, "Model")}
    assert rows["one"] == ("one", "1", "READY")
    assert rows["homeless"][1] == "1"
    assert rows["homeless"][2].startswith("UNAVAILABLE: ")
    assert "failed to load model homeless, version 1: " in log
    assert log.count("error: creating server: Internal - failed to load all"
                     " models\n") == 1
    assert "Started" not in log

    server = begin(f"--model-repository={repository}",
                   "--exit-on-error=false", "--strict-readiness=false")
    server.wait_ready()
    assert "UNAVAILABLE" in server.wait_log("Started HTTPService")
    server.stop()


def test_log_file_has_all_lines(launch, tmp_path):
    log = tmp_path / "all.log"
    log.write_text("before\n")
    launcher = launch(f"--log-file={log}", "--log-format=ISO8601")
    assert process.wait_until(lambda: "Started HTTP" in log.read_text(),
                              10 * SLOW)
    text = log.read_text()
    assert text.startswith("before\n")
    assert "inference: core" in text and "| READY" in text
    assert re.search(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ I \d+ ", text, re.M)
    assert "READY" not in launcher.log.read_text()
    assert launcher.stop() == 0


def test_models_of_the_start_are_in_the_table(launch):
    launcher = launch("--model-control-mode=explicit", "--load-model=slow",
                      "--load-model=one")
    log = launcher.wait_log("Started Metrics Service")
    options = dict(table_after(log, "Option"))
    assert options["startup_models_0"] == "slow"
    assert options["startup_models_1"] == "one"


def test_no_table_without_informational_lines(launch):
    launcher = launch("--log-info=false")
    nap(1)
    text = launcher.log.read_text()
    assert "+---" not in text and "Started" not in text


# ---- exit codes

def test_what_is_cut_off_is_a_failure(launch, repository):
    models.identity(repository, "slower", [("IN", "FP32", [-1])],
                    parameters={"execute_delay_ms": "5000"})
    launcher = launch("--exit-timeout-secs=1")
    with wire.Wire(launcher.port, 20 * SLOW) as connection:
        connection.send(wire.request_bytes(
            "POST", "/v2/models/slower/infer", BODY))
        nap(0.3)
        launcher.process.send_signal(signal.SIGTERM)
        assert launcher.process.wait(60 * SLOW) == 1


def test_an_open_stream_is_no_failure(launch):
    """The one request that executes is answered, what its client sends after
    that is rejected."""
    launcher = launch()
    stopping = "GRPC server is shutting down and has stopped accepting new " \
        "requests."
    data = struct.pack("<f", 2.5)
    with Client(launcher.grpc_port) as c, c.stream() as stream:
        stream.send(infer("slow", tensor("IN", "FP32", [1], data)))
        assert process.wait_until(
            lambda: b"nginx_inference_requests_total 1\n" in wire.fetch(
                launcher.metrics_port, "GET", "/metrics").body, 20 * SLOW)
        launcher.process.send_signal(signal.SIGTERM)
        assert process.wait_until(
            lambda: not launcher.status("/v2/health/live"), 20 * SLOW)
        stream.send(infer("one", tensor("IN", "FP32", [1], data), id="late"))
        assert stream.read().infer_response.raw_output_contents[0] == data
        late = stream.read()
        assert late.error_message == stopping
        assert late.infer_response.id == "late"
        with pytest.raises(Failure) as e:
            while True:
                stream.send(infer("one", tensor("IN", "FP32", [1], data)))
                assert stream.read().error_message == stopping
                nap(0.1)
        assert e.value.text == stopping
        assert launcher.process.wait(60 * SLOW) == 0


# ---- addresses and ports

@pytest.mark.parametrize("option", ["http-port", "grpc-port", "metrics-port"])
def test_a_port_that_is_taken_is_named(repository, option):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ports = {name: free_port() for name in ("http-port", "grpc-port",
                                                "metrics-port")}
        ports[option] = port
        text = rejected(f"--model-repository={repository}",
                       "--http-address=127.0.0.1", "--grpc-address=127.0.0.1",
                       *[f"--{name}={p}" for name, p in ports.items()])
        service = {"http-port": "HTTP", "grpc-port": "GRPC",
                   "metrics-port": "Metrics"}[option]
        assert f"failed to start {service} service: Unavailable - Socket " \
            f"'127.0.0.1:{port}' already in use (--{option})" in text


@pytest.mark.parametrize("address", ["no.such.host.invalid", "1.2.3.4.5",
                                     "::zz"])
def test_an_address_that_is_none_is_named(repository, address):
    text = rejected(f"--model-repository={repository}",
                   f"--http-address={address}")
    assert f'the address of the HTTP service is "{address}"' in text


def test_unix_sockets(launch, repository, tmp_path):
    """gRPC's has the port behind its path, as Triton's.  A socket of a process
    that has ended is replaced."""
    path = str(tmp_path / "m")
    with socket.socket(socket.AF_UNIX) as ended:
        ended.bind(path)
    options = [f"--grpc-address=unix:{tmp_path}/g",
               f"--metrics-address=unix:{path}"]
    launcher = launch(*options, "--grpc-keepalive-time=1000",
                      "--reuse-grpc-port=true")
    at = f"unix:{tmp_path}/g:{launcher.grpc_port}"
    log = launcher.wait_log("Started Metrics Service")
    assert f"Started GRPCInferenceService at {at}" in log
    with grpc.InferenceServerClient(at) as client:
        assert {row.name for row in client.get_model_repository_index().models
                } == {"one", "slow"}
    done = subprocess.run(["curl", "-sS", "--unix-socket", path,
                           "http://localhost/metrics"], capture_output=True,
                          text=True, check=False)
    assert "nv_inference_count" in done.stdout, done.stderr
    options += [f"--model-repository={repository}", "--allow-http=false"]
    text = rejected(*options)
    assert f"Socket 'unix:{path}:8002' already in use" in text
    launcher.stop()
    assert not any(p.is_socket() for p in tmp_path.iterdir())
    (tmp_path / "m").write_text("a file")
    assert f"Socket 'unix:{path}:8002' already in use" in rejected(*options)
    assert (tmp_path / "m").read_text() == "a file"
    assert "is longer than 107 bytes" in rejected(
        *options, f"--grpc-address=unix:/{'long' * 30}")


def test_sagemaker_ports_lie_in_their_range():
    text = rejected("--model-repository=/tmp", "--allow-sagemaker=true",
                   "--sagemaker-safe-port-range=8000-8001")
    assert "--metrics-port=8002 is not in" in text
    text = rejected("--model-repository=/tmp", "--allow-sagemaker=true",
                   "--sagemaker-safe-port-range=9-8")
    assert "first-last" in text


def test_without_http_there_is_metrics_still(begin, repository):
    server = begin(f"--model-repository={repository}",
                   "--allow-http=false", "--allow-grpc=false")
    server.wait_log("Started Metrics Service")
    assert wire.fetch(server.metrics_port, "GET", "/metrics").status == 200
    assert server.status("/v2/health/live") == 0
    server.stop()


# ---- restrictions

def test_restricted_groups_of_http(begin, repository):
    launcher = begin(f"--model-repository={repository}",
                     "--http-restricted-api=inference,health:X-Ops=s$ \"x",
                     "--http-restricted-api=model-repository:x-ops=two")
    launcher.wait_log("Started HTTPService")
    for path in (INFER, "/v2/models/one/versions/1/infer"):
        answer = post(launcher, path, {"x-ops": "s$ \"X"})
        assert answer.status == 403
        assert answer.error == "This API is restricted, expecting header" \
            " 'X-Ops'"
        assert post(launcher, path).status == 403
        assert post(launcher, path, {"x-ops": "two"}).status == 403
        assert post(launcher, path, {"x-ops": "s$ \"x"}).status == 200
    assert launcher.status("/v2/health/live") == 403
    assert launcher.status("/v2/models/one/ready") == 403
    for path in ("/v2", "/v2/models/one", "/v2/models/one/config",
                 "/v2/models/stats", "/v2/models/one/stats"):
        assert launcher.status(path) == 200, path
    index = "/v2/repository/index"
    assert post(launcher, index, body=b"").status == 403
    assert post(launcher, index, {"x-ops": "s$ \"x"}, b"").status == 403
    assert post(launcher, index, {"x-ops": "two"}, b"").status == 200
    assert launcher.stop() == 0


@pytest.mark.parametrize("path", [
    "/v2/models/one/%69nfer", "//v2/models/one/infer", "/v2//models/one/infer",
    "/v2/models/one/./infer", "/v2/models/x/../one/infer",
    "/v2/models/one%2Finfer", "/v2/models/%6Fne/infer", "/v2/models/one/infer/",
    "/v2/models/one/infer;x", "/v2/models/one/infer%0A"])
def test_no_spelling_gets_by_a_restriction(launch, path):
    launcher = launch("--http-restricted-api=inference:k=v")
    assert post(launcher, path).status in (403, 404)


@pytest.mark.parametrize("group,path,method", [
    ("metadata", "/v2", "GET"),
    ("metadata", "/v2/models/one/versions/1", "GET"),
    ("inference", "/v2/models/one/generate_stream", "POST"),
    ("shared-memory", "/v2/systemsharedmemory/status", "GET"),
    ("shared-memory", "/v2/cudasharedmemory/region/a/register", "POST"),
    ("model-config", "/v2/models/one/versions/1/config", "GET"),
    ("model-repository", "/v2/repository/models/one/load", "POST"),
    ("statistics", "/v2/models/stats", "GET"),
    ("statistics", "/v2/models/one/versions/1/stats", "GET"),
    ("trace", "/v2/models/one/trace/setting", "GET"),
    ("logging", "/v2/logging", "POST")])
def test_each_group_has_its_paths(launch, group, path, method):
    launcher = launch(f"--http-restricted-api={group}:k=v",
                      "--model-control-mode=explicit", "--load-model=one")
    assert wire.fetch(launcher.port, method, path, b"").status == 403
    assert wire.fetch(launcher.port, method, path, b"",
                      {"K": "v"}).status not in (0, 403)


def test_statistics_are_no_metadata(launch):
    launcher = launch("--http-restricted-api=metadata:k=v")
    for path, status in (("/v2/models/stats", 200), ("/v2/models/one", 403),
                         ("/v2/models/stats/versions/1", 403)):
        assert wire.fetch(launcher.port, "GET", path).status == status


def test_restricted_groups_of_grpc(launch):
    launcher = launch("--grpc-restricted-protocol=model-config,trace:key=v")
    for method in ("ModelConfig", "TraceSetting"):
        status, headers = call(launcher, method)
        assert status == 200 and headers["grpc-status"] == "14"
        assert headers["content-type"] == "application/grpc"
        assert headers["grpc-message"] == "this protocol is restricted," \
            " expecting header 'triton-grpc-protocol-key'"
        assert call(launcher, method, "triton-grpc-protocol-key: V")[1][
            "grpc-status"] == "14"
        assert call(launcher, method, "triton-grpc-protocol-key: v")[1].get(
            "grpc-status") != "14"
    assert call(launcher, "ServerLive")[1].get("grpc-status") != "14"


REST_PATHS = (INFER, "/v2/health/live", "/v2/models/one/config",
              "/v2/models/stats", "/v2/repository/index", "/v2/logging",
              "/v2/trace/setting", "/v2/repository/models/one/load",
              "/v2/systemsharedmemory/region/r/register",
              "/v2/systemsharedmemory/status")


@pytest.mark.parametrize("tls", (False, True))
def test_grpc_is_all_that_its_port_has(launch, tmp_path, tls):
    """A request that the module does not take for gRPC is REST, also where
    its content type begins alike: no rule of this port knows its paths."""
    args = ["--control-from=none", "--model-control-mode=explicit",
            "--load-model=one", "--http-restricted-api=inference:key=v",
            "--grpc-restricted-protocol=inference,model-config,statistics,"
            "shared-memory:key=v"]
    versions = ["--http2-prior-knowledge"]
    if tls:
        cert, key = certificate.make(tmp_path)
        args += ["--grpc-use-ssl=1", f"--grpc-server-cert={cert}",
                 f"--grpc-server-key={key}"]
        versions = ["--http1.1", "--http2"]
    launcher = launch(*args)
    url = f"http{'s' if tls else ''}://127.0.0.1:{launcher.grpc_port}"
    for version in versions:
        for kind in ("application/grpc-web", "application/grpcx",
                     "application/json",
                     *(["application/grpc"] if "1.1" in version else [])):
            for path in REST_PATHS:
                status, said = curl(version, "-H", f"content-type: {kind}",
                                    "-d", "", url + path)
                assert status == 415, (version, kind, path, said)
                assert said["content-type"] == "application/json"
    status, _ = curl(versions[-1], "-d", "", url + INFER)
    assert status == 415


def test_who_may_not_control_may_not_by_grpc(launch):
    launcher = launch("--control-from=none")
    for method in ("RepositoryIndex", "RepositoryModelLoad", "LogSettings"):
        status, headers = call(launcher, method)
        assert status == 200 and headers["grpc-status"] == "7", method
        assert "--control-from=none" in headers["grpc-message"]


def client(launcher, **kw):
    return grpc.InferenceServerClient(f"127.0.0.1:{launcher.grpc_port}", **kw)


def ask(connection):
    tensor = grpc.InferInput("IN", [1], "FP32")
    tensor.set_data_from_numpy(numpy.array([2.5], numpy.float32))
    result = connection.infer("one", [tensor], client_timeout=20 * SLOW)
    return result.as_numpy("OUT").tolist()


def test_a_compressed_message_may_be_as_long_as_others(launch):
    launcher = launch()
    data = numpy.zeros(20 << 20, numpy.float32)
    value = grpc.InferInput("IN", [data.size], "FP32")
    value.set_data_from_numpy(data)
    with client(launcher) as connection:
        result = connection.infer("one", [value], compression_algorithm="gzip")
        assert (result.as_numpy("OUT") == data).all()


def rejection(function, *arguments, **kw):
    with pytest.raises(InferenceServerException) as said:
        function(*arguments, **kw)
    return said.value.status(), said.value.message()


def test_a_client_of_grpc(launch):
    """Everybody may infer, this machine alone may load models."""
    launcher = launch("--model-control-mode=explicit", "--load-model=one",
                      "--grpc-infer-response-compression-level=high",
                      "--grpc-keepalive-time=5000",
                      "--grpc-max-connection-age=60000")
    with client(launcher) as connection:
        assert connection.is_server_ready()
        assert ask(connection) == [2.5]
        connection.load_model("slow")
        assert connection.is_model_ready("slow")
        connection.unload_model("slow")
    launcher.stop()

    launcher = launch("--model-control-mode=explicit", "--load-model=one",
                      "--control-from=none",
                      "--grpc-restricted-protocol=metadata:key=v")
    with client(launcher) as connection:
        assert ask(connection) == [2.5]
        status, text = rejection(connection.load_model, "slow")
        assert status == "StatusCode.PERMISSION_DENIED"
        assert "--control-from=none" in text
        status, text = rejection(connection.get_server_metadata)
        assert status == "StatusCode.UNAVAILABLE"
        assert text == "This protocol is restricted, expecting header" \
            " 'triton-grpc-protocol-key'"
        assert connection.get_server_metadata(
            headers={"triton-grpc-protocol-key": "v"}).name == "triton"


# ---- TLS

def test_grpc_over_tls(launch, tmp_path):
    cert, key = certificate.make(tmp_path)
    launcher = launch("--grpc-use-ssl=true", f"--grpc-server-cert={cert}",
                      f"--grpc-server-key={key}",
                      "--grpc-restricted-protocol=health:key=v")
    status, headers = call(launcher, "ServerLive", scheme="https")
    assert status == 200 and headers["grpc-status"] == "14"
    assert call(launcher, "ServerLive")[0] is None      # not in the clear
    launcher.stop()

    launcher = launch("--grpc-use-ssl=true", f"--grpc-server-cert={cert}",
                      f"--grpc-server-key={key}")
    options = [("grpc.ssl_target_name_override", "localhost")]
    with client(launcher, ssl=True, root_certificates=str(cert),
                channel_args=options) as connection:
        assert ask(connection) == [2.5]


def test_clients_with_certificates_alone(launch, tmp_path):
    cert, key = certificate.make(tmp_path)
    launcher = launch("--grpc-use-ssl-mutual=true",
                      f"--grpc-server-cert={cert}", f"--grpc-server-key={key}",
                      f"--grpc-root-cert={cert}",
                      "--grpc-restricted-protocol=health:key=v")
    status, headers = call(launcher, "ServerLive", scheme="https")
    assert status == 200 and headers["grpc-status"] == "13"
    assert "http status 400" in headers["grpc-message"].lower()
    status, headers = call(launcher, "ServerLive", scheme="https",
                           how=("--cert", cert, "--key", key))
    assert status == 200 and headers["grpc-status"] == "14"


def test_tls_needs_its_files(tmp_path):
    cert, key = certificate.make(tmp_path)
    given = ["--model-repository=/tmp", f"--grpc-server-cert={cert}"]
    assert "--grpc-server-key" in rejected(*given, "--grpc-use-ssl=1")
    (tmp_path / "a$b").write_text("")
    assert "a$b" in rejected(*given, "--grpc-use-ssl=1",
                             f"--grpc-server-key={tmp_path}/a$b")
    given.append(f"--grpc-server-key={key}")
    assert "--grpc-root-cert" in rejected(*given, "--grpc-use-ssl-mutual=1")
    assert "/nowhere" in rejected(*given, "--grpc-root-cert=/nowhere",
                                 "--grpc-use-ssl-mutual=1")


# ---- SageMaker, Vertex AI

def unmatched(answer):
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/json"
    assert answer.error == "not found on this port"


def test_sagemaker(launch):
    port = free_port()
    launcher = launch(
        "--allow-sagemaker=true", f"--sagemaker-port={port}",
        "--http-restricted-api=inference:k=v",
        env={"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "one"})
    assert wire.fetch(port, "GET", "/ping").status == 200
    for path in ("/invocations", "/models/one/invoke"):
        assert post(launcher, path, port=port).status == 403
        answer = post(launcher, path, {"k": "v"}, port=port)
        assert answer.status == 200, answer
        assert answer.json()["outputs"][0]["data"] == [2.5]
    assert post(launcher, "/models/two/invoke", {"k": "v"},
                port=port).status == 404
    for path in ("/", "/models/", "/models/one/two", "/v2/archives", INFER):
        unmatched(wire.fetch(port, "POST", path, BODY, {"k": "v"}))


def test_sagemaker_loads_models(launch, repository, tmp_path):
    """A multi-model endpoint; the platform is on this machine."""
    port = free_port()
    launcher = launch(
        "--allow-sagemaker=true", f"--sagemaker-port={port}",
        "--model-control-mode=explicit",
        "--http-restricted-api=model-repository:k=v")
    url = tmp_path / "ml" / "0123" / "model"
    shutil.copytree(repository / "one", url)
    key = {"k": "v", "X-Amzn-SageMaker-Target-Model": "a.tar.gz"}
    text = json.dumps({"model_name": "two", "url": f"{url}/"}).encode()
    row = {"modelName": "two", "modelUrl": str(url.parent)}

    def ask(method, path, body=None, headers=key):
        return wire.fetch(port, method, path, body, headers)

    assert ask("POST", "/models", text, {}).status == 403
    assert ask("POST", "/models/two/invoke", BODY).status == 404
    assert ask("POST", "/models", text).status == 200
    assert ask("POST", "/models", text).status == 409
    assert ask("GET", "/models").json() == {"models": [row]}
    assert ask("GET", "/models/two").json() == row
    answer = ask("POST", "/models/two/invoke", BODY)
    assert answer.json()["outputs"][0]["data"] == [2.5]
    for headers in ({}, {**key, "Origin": "http://page"}):
        assert ask("DELETE", "/models/two", None, headers).status == 403
    assert ask("DELETE", "/models/two").status == 200
    assert ask("DELETE", "/models/two").status == 404
    assert ask("GET", "/models/two").status == 404
    assert ask("GET", "/models").json() == {"models": []}
    assert wire.fetch(launcher.port, "GET", "/v2/archives", None,
                      key).status == 404


def test_sagemaker_tells_of_a_model_that_lacks_memory(launch, repository):
    models.identity(repository, "hungry", [("IN", "FP32", [-1])],
                    backend="failing",
                    parameters={"fail": "execute-memory"})
    port = free_port()
    launcher = launch(
        "--allow-sagemaker=true", f"--sagemaker-port={port}",
        f"--backend-directory={backends.build('failing')}",
        "--exit-on-error=false", "--strict-readiness=false")
    assert post(launcher, "/models/hungry/invoke", port=port).status == 507
    assert post(launcher, "/v2/models/hungry/infer").status == 500


def test_sagemaker_loads_for_those_who_may(launch):
    port = free_port()
    launch("--allow-sagemaker=true", f"--sagemaker-port={port}",
           "--model-control-mode=explicit", "--control-from=10.1.2.3")
    answer = wire.fetch(port, "POST", "/models", b"{}")
    assert answer.status == 403
    assert "may not control the server" in answer.error


@pytest.mark.parametrize("kind", ["generate", "generate_stream"])
def test_sagemaker_generates(launch, kind):
    port = free_port()
    launcher = launch(
        "--allow-sagemaker=true", f"--sagemaker-port={port}",
        env={"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "one",
             "SAGEMAKER_TRITON_INFERENCE_TYPE": kind})
    want = b'{"OUT":2.5,"model_name":"one","model_version":"1"}'
    if kind == "generate_stream":
        want = b"data: " + want + b"\n\n"
    answer = post(launcher, "/invocations", body=b'{"IN": 2.5}', port=port)
    assert (answer.status, answer.body) == (200, want)


VERTEX = {"AIP_PREDICT_ROUTE": "/predict", "AIP_HEALTH_ROUTE": "/health"}


def test_vertex_ai(launch):
    port = free_port()
    launcher = launch(
        "--allow-vertex-ai=true", f"--vertex-ai-port={port}",
        "--vertex-ai-default-model=one", env=VERTEX)
    assert wire.fetch(port, "GET", "/health").status == 200
    answer = post(launcher, "/predict", port=port)
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"] == [2.5]
    to = "X-Vertex-Ai-Triton-Redirect"
    for path in ("v2/models/one/stats", "/v2/models/one/stats"):
        answer = wire.fetch(port, "GET", "/predict", b"", {to: path})
        assert answer.status == 200 and "model_stats" in answer.json()
    for path in ("v2/repository/index", "v2/../v2/repository/index"):
        assert post(launcher, "/predict", {to: path}, b"",
                    port=port).status == 404
    for path in ("v2/repository/models/one/load",
                 "/v2/repository/models/one/unload"):
        answer = post(launcher, "/predict", {to: path}, b"", port=port)
        assert answer.status == 403
        assert "over this port" in answer.error
    for path in ("/", INFER, "/predict/x"):
        unmatched(post(launcher, path, port=port))


def test_vertex_ai_posts_every_request(launch):
    port = free_port()
    launcher = launch(
        "--allow-vertex-ai=true", f"--vertex-ai-port={port}",
        "--vertex-ai-default-model=one",
        "--http-restricted-api=metadata,model-config:k=v", env=VERTEX)

    def redirected(path, headers=None):
        return post(launcher, "/predict", {
            "X-Vertex-Ai-Triton-Redirect": path, **(headers or {})}, port=port)

    for path, found in (("v2/models/stats", "model_stats"),
                        ("v2/models/slow/stats", "slow"),
                        ("metrics", "nv_inference_count"),
                        ("v2/health/live", ""), ("v2/models/one/ready", "")):
        answer = redirected(path)
        assert answer.status == 200 and found in answer.body.decode()
    for path, found in (("v2", "extensions"), ("v2/models/one", "platform"),
                        ("v2/models/one/config", "version_policy")):
        answer = redirected(path)
        assert answer.status == 403
        assert answer.error == "This API is restricted, expecting header 'k'"
        answer = redirected(path, {"k": "v"})
        assert answer.status == 200 and found in answer.body.decode()
    assert redirected("v2/models/slow/infer").json()["model_name"] == "slow"
    unmatched(redirected("nowhere"))
    launcher.stop()

    launcher = launch(
        "--allow-vertex-ai=true", f"--vertex-ai-port={port}",
        "--vertex-ai-default-model=one", "--allow-metrics=false", env=VERTEX)
    unmatched(redirected("metrics"))


def test_platforms_announce_binary_tensors_by_the_media_type(launch):
    _, platforms = on_platforms(launch)
    text = json.dumps({
        "inputs": [{"name": "IN", "datatype": "FP32", "shape": [1],
                    "parameters": {"binary_data_size": 4}}],
        "parameters": {"binary_data_output": True}}).encode()
    data = struct.pack("<f", 2.5)
    for ask, name in zip(platforms, ("sagemaker", "vertex-ai")):
        media = f"application/vnd.{name}-triton.binary+json;json-header-size="
        answer = ask(text + data, {"Content-Type": f"{media}{len(text)}"})
        assert answer.status == 200, answer
        assert answer.body.endswith(b"}" + data)
        size = len(answer.body) - 4
        assert answer.headers["inference-header-content-length"] == str(size)
        assert answer.headers["content-type"] == (
            f"{media}{size}" if name == "sagemaker"
            else "application/octet-stream")
        assert ask(text + data,
                   {"Content-Type": f"x/{media}{len(text)}"}).status == 400


def on_platforms(launch, *options):
    """A function for each platform: posts to its route of the model."""
    port, vertex = free_port(), free_port()
    launcher = launch(
        "--allow-sagemaker=true", f"--sagemaker-port={port}",
        "--allow-vertex-ai=true", f"--vertex-ai-port={vertex}",
        "--vertex-ai-default-model=one", *options,
        env={"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "one", **VERTEX})
    return launcher, (
        lambda body, headers=None: post(launcher, "/invocations", headers,
                                        body, port),
        lambda body, headers=None: post(launcher, "/predict", headers, body,
                                        vertex))


def in_regions(region="r"):
    def there(offset):
        return {"shared_memory_region": region, "shared_memory_byte_size": 8,
                "shared_memory_offset": offset}

    return json.dumps({
        "inputs": [{"name": "IN", "datatype": "FP32", "shape": [2],
                    "parameters": there(0)}],
        "outputs": [{"name": "OUT", "parameters": there(64)}]}).encode()


def test_platforms_and_client_shared_memory(launch):
    """Registered and listed over REST's port, as in Triton, and not over those
    of the platforms."""
    launcher, platforms = on_platforms(launch, "--allow-client-shm=true")
    data = numpy.array([1.5, -2], numpy.float32).tobytes()
    o = Object(4096, data)
    try:
        assert post(launcher, "/v2/systemsharedmemory/region/r/register",
                    body=json.dumps({"key": o.key, "byte_size": 4096})
                    .encode()).status == 200
        for ask in platforms:
            o[64:72] = bytes(8)
            answer = ask(in_regions())
            assert answer.status == 200, answer
            assert o[64:72] == data
            answer = ask(in_regions("nobody"))
            assert answer.status == 404
            assert answer.error \
                == "Unable to find shared memory region: 'nobody'"
        for call in ("region/r/unregister", "unregister", "region/s/register",
                     "register", "status", "region/r/status"):
            for kind in ("system", "cuda"):
                answer = platforms[1](b"{}", {
                    "X-Vertex-Ai-Triton-Redirect":
                    f"v2/{kind}sharedmemory/{call}"})
                assert answer.status == 403 and answer.error
        answer = platforms[1](b"", {"X-Vertex-Ai-Triton-Redirect":
                                    "v2/systemsharedmemory/region/r/"
                                    "un%72egister"})
        assert answer.status in (403, 404)
        assert platforms[0](in_regions()).status == 200     # it is still there
    finally:
        o.close()


def test_platforms_without_client_shared_memory(launch):
    _, platforms = on_platforms(launch)
    for ask in platforms:
        answer = ask(in_regions())
        assert answer.status == 501
        assert "Client shared memory is disabled." in answer.error


def test_vertex_ai_by_its_environment(begin, repository):
    port = free_port()
    server = begin("--model-control-mode=explicit", "--load-model=one",
                   env=dict(VERTEX, AIP_MODE="PREDICTION",
                            AIP_HTTP_PORT=str(port),
                            AIP_STORAGE_URI=str(repository)))
    log = server.wait_log("Started Metrics")
    assert "HTTPService at" in log and f":{port}" in log
    assert "GRPCInferenceService" not in log
    assert server.status("/v2/health/live") == 0
    assert post(server, "/predict", port=port).status == 200
    server.stop()


def test_vertex_ai_takes_the_only_model(launch, tmp_path):
    port = free_port()
    single = tmp_path / "single"
    single.mkdir()
    models.identity(single, "only", [("IN", "FP32", [-1])])
    (single / "notes.txt").write_text("no model")
    launcher = launch(
        f"--model-repository={single}", "--allow-vertex-ai=true",
        f"--vertex-ai-port={port}", env=VERTEX)
    answer = post(launcher, "/predict", port=port)
    assert (answer.status, answer.json()["model_name"]) == (200, "only")


# ---- the file itself

def test_the_config_is_one_that_nginx_takes(tmp_path, repository):
    """As it is printed, but for the directories that only a start makes."""
    cert, key = certificate.make(tmp_path)
    done = subprocess.run(
        [PROGRAM, f"--model-repository={repository}", "--user=root",
         "--http-restricted-api=health:k=v", "--allow-sagemaker=1",
         "--grpc-use-ssl=1", f"--grpc-server-cert={cert}",
         f"--grpc-server-key={key}", "--grpc-keepalive-time=1000",
         "--grpc-max-connection-age=5000", "--metrics-config="
         "histogram_latencies=true", "--cuda-virtual-address-size=0:1048576",
         '--backend-config=py "x,a={"b": \'#\'};$x \\',
         "--backend-config=#,a=b",
         "--backend-config=py,a=1", "--backend-config=py,a=2",
         '--cache-config=local,size=5000', '--cache-config=local,x="} $y;#\\',
         '--host-policy={ p;,cpu-cores=0', '--rate-limit-resource="R;}\\:1',
         "--http-restricted-api=inference:k=" + "Az09-_.~+/=" * 200,
         "--exit-timeout-secs=2147483", "--id=a\\\"b;} $c",
         "--print-config"], env=launcher_env(), capture_output=True,
        text=True, check=False)
    assert done.returncode == 0
    own = tmp_path / "own"
    own.mkdir()
    text = re.sub(r"/\S*inference-server-(temp-)?XXXXXX", str(own),
                  done.stdout)
    for port in ("8000", "8001", "8002", "8080"):
        text = text.replace(f"0.0.0.0:{port}", f"127.0.0.1:{free_port()}")
    (own / "nginx.conf").write_text(text)
    tested = subprocess.run(
        [NGINX, "-t", "-p", own, "-c", own / "nginx.conf", "-e", "stderr"],
        env=launcher_env(), capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stderr


@pytest.mark.parametrize("option,directive", [
    ("--cache-config=a/b,size=5", "inference_response_cache"),
    ("--http-header-forward-pattern=(", "inference_forward_header")])
def test_a_line_that_nginx_rejects_can_be_printed(repository, option,
                                                  directive):
    """The last line says how: the file is removed by then."""
    options = [f"--model-repository={repository}", "--user=root", option,
               *[f"--{name}-port={free_port()}"
                 for name in ("http", "grpc", "metrics")]]
    words = rejected(*options)
    number, = re.findall(r"\[emerg\].*/nginx\.conf:(\d+)$", words, re.M)
    assert "--print-config print the nginx.conf" in words.splitlines()[-1]
    printed = subprocess.run([PROGRAM, *options, "--print-config"],
                             env=launcher_env(), capture_output=True,
                             text=True, check=True)
    assert directive in printed.stdout.splitlines()[int(number) - 1]
    if directive == "inference_forward_header":
        assert f'an error of "{directive}" is about {option}\n' in words


def test_names_of_headers_may_have_any_character(launch, repository):
    """nginx drops names with a dot unless it is told otherwise."""
    models.identity(repository, "told", [("IN", "FP32", [-1])],
                    parameters={"echo_parameters": "true"})
    launcher = launch("--http-header-forward-pattern=^my",
                      "--grpc-header-forward-pattern=^my")
    answer = post(launcher, "/v2/models/told/infer", {"my.own_name": "a"})
    assert answer.json()["parameters"] == {"my.own_name": "a"}
    with Client(launcher.grpc_port) as client:
        answer = client.infer("told", tensor("IN", "FP32", [1], bytes(4)),
                              metadata=[("my.own_name", "b")])
        assert answer.parameters["my.own_name"].string_param == "b"


def test_traces(launch, tmp_path):
    path = tmp_path / "traces"
    launcher = launch(f"--trace-config=triton,file={path}",
                      "--trace-config=level=TIMESTAMPS",
                      "--trace-config=rate=1")
    assert post(launcher, INFER).status == 200
    assert process.wait_until(
        lambda: path.exists() and "HTTP_SEND_END" in path.read_text(),
        10 * SLOW)
    names = [e["timestamps"][0]["name"] for e in json.loads(path.read_text())
             if "timestamps" in e]
    assert {"REQUEST_START", "COMPUTE_START", "REQUEST_END"} <= set(names)
    settings = wire.fetch(launcher.port, "GET", "/v2/trace/setting").json()
    assert settings["trace_file"] == str(path)
