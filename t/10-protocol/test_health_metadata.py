"""Health, metadata and config: the read-only parts."""

import json

import pytest

from lib import models, wire
from lib.server import Server

ALL_EXTENSIONS = {      # that Triton has
    "classification", "sequence", "model_repository",
    "model_repository(unload_dependents)", "schedule_policy",
    "model_configuration", "system_shared_memory", "cuda_shared_memory",
    "binary_tensor_data", "parameters", "statistics", "trace", "logging"}
EXTENSIONS = {"classification", "binary_tensor_data", "parameters",
              "schedule_policy", "sequence", "statistics",
              "model_configuration"}


def test_live_and_ready(server):
    for path in ("/v2/health/live", "/v2/health/ready"):
        answer = server.get(path)
        assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize("path", [
    "/v2/models/id_fp32/ready", "/v2/models/id_versions/versions/1/ready",
    "/v2/models/id_versions/versions/3/ready"])
def test_model_ready(server, path):
    answer = server.get(path)
    assert (answer.status, answer.body) == (200, b"")


def test_query_string_is_ignored(server):
    assert server.get("/v2/health/live?a=1&b=/v2/health").status == 200


def test_server_metadata(server):
    answer = server.get("/v2")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/json")
    data = answer.json()
    assert data["name"] == "triton"
    assert data["version"]
    assert EXTENSIONS <= set(data["extensions"])
    assert len(set(data["extensions"])) == len(data["extensions"])
    assert set(data["extensions"]) <= ALL_EXTENSIONS


def test_model_metadata(server):
    answer = server.get("/v2/models/id_batch")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.json() == {
        "name": "id_batch", "versions": ["1"], "platform": "identity",
        "inputs": [{"name": "IN", "datatype": "FP32", "shape": [-1, 4]}],
        "outputs": [{"name": "OUT", "datatype": "FP32", "shape": [-1, 4]}]}


def test_model_metadata_keeps_the_order_of_keys(server):
    keys = list(json.loads(server.get("/v2/models/id_batch").body))
    assert keys == ["name", "versions", "platform", "inputs", "outputs"]


@pytest.mark.parametrize("datatype", models.ALL_DATATYPES)
def test_metadata_names_the_datatype(server, datatype):
    data = server.get(f"/v2/models/id_{datatype.lower()}").json()
    assert data["inputs"] == [
        {"name": "IN", "datatype": datatype, "shape": [-1]}]


def test_metadata_lists_all_or_the_asked_version(server):
    assert server.get("/v2/models/id_versions").json()["versions"] \
        == ["1", "3"]
    one = server.get("/v2/models/id_versions/versions/1").json()
    assert one["versions"] == ["1"]


def test_model_config(server):
    answer = server.get("/v2/models/id_batch/config")
    assert answer.status == 200
    config = answer.json()
    assert config["name"] == "id_batch"
    assert config["backend"] == "identity"
    assert config["max_batch_size"] == 8
    assert config["input"][0]["name"] == "IN"
    assert config["input"][0]["data_type"] == "TYPE_FP32"
    assert config["input"][0]["dims"] == [4]            # numbers, not text
    assert config["instance_group"][0]["kind"] == "KIND_CPU"
    assert config["instance_group"][0]["count"] == 1
    assert config["version_policy"]["latest"]["num_versions"] == 1
    assert config["default_model_filename"] == ""       # zero values printed


def test_config_rewrites_64_bit_integers_to_numbers(server):
    config = server.get("/v2/models/id_versions/config").json()
    assert config["version_policy"]["specific"]["versions"] == [1, 3]
    with_version = server.get("/v2/models/id_versions/versions/3/config")
    assert with_version.json() == config


@pytest.mark.parametrize("path,status,text", [
    ("/v2/models/ghost", 404,
     "Request for unknown model: 'ghost' is not found"),
    ("/v2/models/ghost/config", 404, "'ghost' is not found"),
    ("/v2/models/ghost/ready", 404, "'ghost' is not found"),
    ("/v2/models/id_fp32/versions/9", 404,
     "Request for unknown model: 'id_fp32' version 9 is not found"),
    ("/v2/models/id_fp32/versions/9/config", 404, "version 9 is not found"),
    ("/v2/models/id_fp32/versions/9/ready", 404, "version 9 is not found"),
    ("/v2/models/id_fp32/versions/99999999999999999999", 400,
     "99999999999999999999"),
    ("/v2/models/id_versions/versions/7", 404, "version 7 is not found"),
])
def test_lookup_failure(server, path, status, text):
    answer = server.get(path)
    assert answer.status == status
    assert text in answer.error


@pytest.mark.parametrize("path", [
    "/", "/v1", "/v2/", "//v2", "/v2/models", "/v2/models/",
    "/v2/models//ready", "/v2/health", "/v2/health/", "/v2/health/Ready",
    "/v2/models/id_fp32/", "/v2/models/id_fp32/versions/x",
    "/v2/models/id_fp32/versions/1x/ready", "/v2/models/id_fp32/versions/",
    "/v2/models/id_fp32/nothing", "/v2/models/id_fp32/infer/",
    "/v2%2Fhealth%2Flive", "/v2/./health/live", "/v2/x/../health/live",
    "/V2/health/live"])
def test_unmatched_path_is_404(server, path):
    answer = server.get(path)
    assert answer.status == 404, answer
    assert answer.json() == {"error": "Not Found"}


def test_percent_escapes_are_not_decoded(server):
    answer = server.get("/v2/models/id%5Ffp32")
    assert answer.status == 404
    assert "id%5Ffp32" in answer.error


@pytest.mark.parametrize("method,path", [
    ("POST", "/v2"), ("POST", "/v2/health/live"), ("PUT", "/v2"),
    ("POST", "/v2/models/id_fp32"), ("POST", "/v2/models/id_fp32/config"),
    ("GET", "/v2/models/id_fp32/infer"), ("DELETE", "/v2/models/id_fp32"),
    ("PUT", "/v2/models/id_fp32/infer"), ("OPTIONS", "/v2")])
def test_wrong_method_is_405(server, method, path):
    with server.wire() as connection:
        body = b"{}" if method in ("POST", "PUT") else None
        answer = connection.request(method, path, body)
        assert answer.status == 405
        assert answer.json() == {"error": "Method Not Allowed"}
        assert connection.get("/v2/health/live").status == 200


@pytest.mark.parametrize("path", ["/v2", "/v2/health/live",
                                  "/v2/models/id_fp32/infer"])
def test_head_is_405_without_a_body(server, path):
    with server.wire() as connection:
        assert connection.request("HEAD", path).status == 405
        assert connection.get("/v2/health/live").status == 200


def test_health_request_with_a_body_keeps_the_connection(server):
    with server.wire() as connection:
        answer = connection.request("GET", "/v2/health/live", b"x" * 100000)
        assert answer.status == 200
        assert connection.get("/v2/health/live").status == 200


def test_parts_not_listed_are_not_served(make_server):
    server = make_server(models.standard_repository, server="""
        location /health/ { inference health; }
        location /meta/ { inference metadata config; }
    """, parts="health")
    for path, status in [
            ("/v2/health/live", 200), ("/v2", 404), ("/v2/models/echo", 404),
            ("/v2/models/echo/config", 404), ("/v2/models/echo/ready", 200),
            ("/health/v2/health/live", 200), ("/health/v2", 404),
            ("/meta/v2", 200), ("/meta/v2/models/echo/config", 200),
            ("/meta/v2/health/live", 404)]:
        assert server.get(path).status == status, path
    assert server.post("/v2/models/echo/infer", b"{}").status == 404


def test_a_client_that_waits_for_a_model_writes_no_errors(server):
    """Not ready is an answer; a question that makes no sense is an error."""
    line = r'\[(\w+)\] [^\n]*model_ready request of model "awaited" failed: '
    assert server.get("/v2/models/awaited/ready").status == 404
    assert server.wait_log(line + "Request for unknown model")[1] == "info"
    version = "9" * 20
    assert server.get(
        f"/v2/models/awaited/versions/{version}/ready").status == 400
    assert server.wait_log(f"{line}[^\n]*{version}")[1] == "error"


@pytest.mark.parametrize("method,path", [
    ("GET", "/v2/systemsharedmemory/status"),
    ("POST", "/v2/systemsharedmemory/region/r/register"),
    ("POST", "/v2/cudasharedmemory/unregister")])
def test_shared_memory_is_never_implied(whole, method, path):
    body = b"{}" if method == "POST" else None
    with whole.wire() as connection:
        for prefix in ("", "/api"):
            answer = connection.request(method, prefix + path, body)
            assert answer.status == 501, answer
            assert answer.error == "Client shared memory is disabled. List" \
                " 'shared_memory' in this location's 'inference' to enable it" \
                " (the option --allow-client-shm=true of inference-server)."
        assert connection.request(method, "/scrape" + path,
                                  body).status == 404


@pytest.fixture(scope="module")
def whole():
    with Server(models.standard_repository, parts="all", server="""
        location /api/ { inference all; }
        location /scrape/ { inference metrics; }
    """) as s:
        yield s


def test_a_server_that_is_not_ready_fails_for_nginx_too(make_server):
    def fill(repository):
        models.identity(repository, "bad", [("IN", "FP32", [-1])],
                        parameters={"fail_initialize": "no luck today"})

    server = make_server(fill, wait="live", server="""
        location /health/ {
            inference health;
            add_header X-Status "$inference_status" always;
        }
        location /page/ {
            inference health; inference_intercept_errors on;
            error_page 400 =503 /busy;
        }
        location = /busy { return 503 "come again"; }
    """)
    server.wait_log("no luck today")
    answer = server.get("/health/v2/health/ready")
    assert (answer.status, answer.body) == (400, b"")
    assert answer.headers["content-type"] == "text/plain"
    assert answer.headers["x-status"] == "Unavailable"
    answer = server.get("/page/v2/health/ready")
    assert (answer.status, answer.body) == (503, b"come again")
    answer = server.get("/health/v2/health/live")
    assert (answer.status, answer.headers["x-status"]) == (200, "OK")


def test_one_failed_model_keeps_ready_at_400(make_server):
    def fill(repository):
        models.identity(repository, "good", [("IN", "FP32", [-1])])
        models.identity(repository, "bad", [("IN", "FP32", [-1])],
                        parameters={"fail_initialize": "no luck today"})

    server = make_server(fill, wait="live")
    assert server.wait_for("/v2/models/good/ready")
    server.wait_log("no luck today")
    answer = server.get("/v2/health/ready")
    assert (answer.status, answer.body) == (400, b"")
    assert server.get("/v2/models/bad/ready").status in (404, 503)
    answer = server.infer("bad", {"inputs": []})
    assert answer.status in (404, 503)
    assert "Request for unknown model: 'bad'" in answer.error
    one = server.infer("good", {"inputs": [
        wire.tensor("IN", "FP32", [1], [1.5])]})
    assert one.status == 200


def test_empty_repository_is_ready(make_server):
    server = make_server()
    assert server.get("/v2/health/ready").status == 200
    assert server.get("/v2/models/any").status == 404


def test_server_ends_cleanly_at_once(make_server):
    server = make_server(models.standard_repository, wait="")
    server.stop("TERM")


def test_two_servers_do_not_meet():
    def fill(name):
        return lambda repository: models.identity(
            repository, name, [("IN", "FP32", [-1])])

    with Server(fill("one")) as a, Server(fill("two")) as b:
        assert a.core() != b.core()
        assert a.get("/v2/models/one").status == 200
        assert a.get("/v2/models/two").status == 404
        assert b.get("/v2/models/two").status == 200
