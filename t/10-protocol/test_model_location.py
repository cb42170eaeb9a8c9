"""inference_model: a location is one model's endpoint."""

import json

import pytest

from lib import models
from lib.server import Server
from lib.wire import tensor

LOCATIONS = """
    location = /fixed     { inference_model id_int32; }
    location = /old       { inference_model id_versions 1; }
    location = /verb      { inference_model id_int32 infer; }
    location = /both      { inference_model id_versions 3 infer; }
    location ~ ^/ask/(?<m>[a-z0-9_]+)$              { inference_model $m; }
    location ~ ^/ask/(?<m>[a-z0-9_]+)/(?<v>[0-9a-z]+)$ {
        inference_model $m $v;
    }
    location = /mapped    { inference_model $chosen; }
    location = /canary    { inference_model $canary; }
    location = /argument  { inference_model id_$arg_kind; }
    location = /empty     { inference_model $arg_nothing; }
    location = /rewritten { rewrite ^ /ask/id_int32 last; }
    location /if          {
        if ($arg_old) { inference_model id_versions 1; }
        inference_model id_versions;
    }
"""

HTTP = """
    map $http_x_team $chosen { default id_int32; blue id_versions; }
    split_clients $http_x_user $canary { 30% id_versions; * id_int32; }
"""


@pytest.fixture(scope="module")
def server():
    with Server(models.standard_repository, server=LOCATIONS,
                http=HTTP) as s:
        yield s


BODY = json.dumps({"inputs": [tensor("IN", "INT32", [2], [1, 2])]}).encode()


def ask(server, path, headers=None, body=BODY):
    answer = server.post(path, body, headers)
    assert answer.status == 200, answer
    data = answer.json()
    assert data["outputs"][0]["data"] == [1, 2]
    return data["model_name"], data["model_version"]


@pytest.mark.parametrize("path,model,version", [
    ("/fixed", "id_int32", "1"), ("/fixed?any=thing", "id_int32", "1"),
    ("/old", "id_versions", "1"), ("/verb", "id_int32", "1"),
    ("/both", "id_versions", "3"), ("/ask/id_int32", "id_int32", "1"),
    ("/ask/id_versions", "id_versions", "3"),
    ("/ask/id_versions/1", "id_versions", "1"),
    ("/argument?kind=int32", "id_int32", "1"),
    ("/argument?kind=versions", "id_versions", "3"),
    ("/rewritten", "id_int32", "1")])
def test_location_names_the_model(server, path, model, version):
    assert ask(server, path) == (model, version)


def test_map_chooses(server):
    assert ask(server, "/mapped") == ("id_int32", "1")
    assert ask(server, "/mapped", {"X-Team": "blue"}) == ("id_versions", "3")


def test_split_clients_is_a_canary(server):
    names = [ask(server, "/canary", {"X-User": f"user{i}"})[0]
             for i in range(200)]
    assert 20 < names.count("id_versions") < 110
    again = [ask(server, "/canary", {"X-User": f"user{i}"})[0]
             for i in range(200)]
    assert names == again


def test_binary_and_raw_modes_work_there_too(server):
    answer = server.post("/fixed", bytes(8),
                         {"Inference-Header-Content-Length": "0"})
    assert answer.status == 200, answer
    assert answer.split()[1] == bytes(8)


@pytest.mark.parametrize("path,status,text", [
    ("/ask/ghost", 404, "'ghost' is not found"),
    ("/ask/id_versions/9", 404, "version 9 is not found"),
    ("/ask/id_versions/x1", 400, "x1"), ("/empty", 404, "")])
def test_errors(server, path, status, text):
    answer = server.post(path, BODY)
    assert answer.status == status, answer
    assert text in answer.error


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
def test_only_post(server, method):
    with server.wire() as connection:
        body = b"" if method in ("PUT",) else None
        answer = connection.request(method, "/fixed", body)
        assert answer.status == 405
        assert connection.get("/v2/health/live").status == 200


def test_access_rules_of_nginx_hold(make_server):
    server = make_server(models.standard_repository, server="""
        location = /closed { inference_model id_int32; deny all; }
        location = /limited { inference_model id_int32;
                              limit_except POST { deny all; } }
    """)
    assert server.post("/closed", BODY).status == 403
    assert server.post("/limited", BODY).status == 200


def test_if_chooses_another_version(server):
    assert ask(server, "/if") == ("id_versions", "3")
    assert ask(server, "/if?old=1") == ("id_versions", "1")
