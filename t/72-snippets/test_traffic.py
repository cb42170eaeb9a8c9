"""Traffic control by nginx's own directives: canary.conf, shadow.conf,
labels.conf, cache.conf and quotas.conf."""

import gzip
import json
import os
import pathlib
import re
import subprocess

import numpy
import pytest
import tritonclient.http

from lib import models, process, snippets, wire
from lib.server import NGINX, ROOT, SLOW, Server, free_port, nap
from lib.wire import tensor


def ask(value=4, **more):
    return json.dumps({"inputs": [tensor("IN", "INT32", [1], [value])],
                       **more}).encode()


def post(port, path, body, headers=None):
    return wire.fetch(port, "POST", path, body, headers)


def fill(folder):
    for name, versions in (("resnet", (3, 7)), ("resnet_next", (1,))):
        models.identity(folder, name, [("IN", "INT32", [-1])],
                        versions=versions,
                        extra="version_policy { all { } }\n")


# ---- canary.conf, labels.conf

def test_canary(snippet):
    """Every address gets one of both, and stays with it."""
    _, (port,) = snippet(
        "canary", 8000, fill=fill,
        change=[("split_clients $remote_addr", "split_clients $http_who"),
                ("5%  resnet_next", "50%  resnet_next")])
    path = "/v2/models/resnet/infer"

    def model(who):
        answer = post(port, path, ask(), {"Who": who})
        assert answer.status == 200
        assert answer.json()["outputs"][0]["data"] == [4]
        return answer.json()["model_name"]

    first = [model(f"client {i}") for i in range(40)]
    assert set(first) == {"resnet", "resnet_next"}
    assert [model(f"client {i}") for i in range(40)] == first
    assert wire.fetch(port, "GET", "/v2/models/resnet").status == 200


def test_labels(snippet):
    _, (port,) = snippet("labels", 8000, fill=fill)

    def asked(label, model="resnet"):
        return post(port, f"/v2/models/{model}/labels/{label}/infer", ask())

    assert asked("stable").json()["model_version"] == "3"
    assert asked("canary").json()["model_version"] == "7"
    assert asked("stable").json()["outputs"][0]["data"] == [4]
    assert asked("newest").status == 404
    assert asked("stable", "resnet_next").status == 404
    assert post(port, "/v2/models/resnet/infer", ask()).status == 200


# ---- shadow.conf

def test_shadow(make_server):
    """The copy is answered by the other model; the client hears of one."""
    server = make_server(
        fill, parts="health infer statistics",
        server=(ROOT / "conf.d/shadow.conf").read_text(encoding="utf-8"))

    def answered(model):
        found, = server.get(f"/v2/models/{model}/versions/"
                            f"{7 if model == 'resnet' else 1}/stats"
                            ).json()["model_stats"]
        return int(found["inference_count"])

    for i in range(3):
        answer = server.post("/v2/models/resnet/infer", ask(i))
        assert answer.status == 200
        assert answer.json()["model_name"] == "resnet"
        assert answer.json()["outputs"][0]["data"] == [i]
    assert process.wait_until(lambda: answered("resnet_next") == 3, 10 * SLOW)
    assert answered("resnet") == 3
    assert server.post("/shadow", ask()).status == 404


# ---- cache.conf

SOCKET = "/run/nginx-inference-cached.sock"


def cache_below(folder, port):
    text = snippets.read("cache", {8000: port})
    for old, new in (("/var/lib/nginx/inference", f"{folder}/files"),
                     (SOCKET, f"{folder}/sock")):
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def cached(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    port = free_port()
    text = cache_below(folder, port)
    with Server(fill, http=text, parts="health infer statistics") as server:
        server.front = port
        yield server


@pytest.mark.skipif(bool(os.environ.get("INF_NGINX")),
                    reason="the paths are Debian's nginx's")
def test_the_paths_of_the_cache_can_be_made():
    """nginx makes the last part of each."""
    text = snippets.read("cache")
    path, = re.findall(r"proxy_cache_path (\S+)", text)
    socket, = re.findall(r"listen unix:(\S+);", text)
    options = subprocess.run([NGINX, "-V"], capture_output=True, text=True,
                             check=True).stderr

    def built_in(option):
        return re.search(rf"--{option}=(\S+)", options)[1]

    assert pathlib.Path(path).parent \
        == pathlib.Path(built_in("http-proxy-temp-path")).parent
    assert pathlib.Path(socket).parent \
        == pathlib.Path(built_in("pid-path")).parent
    assert f"proxy_pass          http://unix:{socket};" in text


def executions(server, model="resnet"):
    return sum(int(m["execution_count"]) for m in server.get(
        f"/v2/models/{model}/stats").json()["model_stats"])


def through(server, body, path="/v2/models/resnet/infer", headers=None):
    """(what the cache says, the answer)"""
    answer = post(server.front, path, body, headers)
    return answer.headers["x-cache-status"], answer


def test_the_cache_answers_without_an_execution(cached):
    how, first = through(cached, ask(1))
    assert (how, first.status) == ("MISS", 200)
    before = executions(cached)
    how, second = through(cached, ask(1))
    assert (how, second.status) == ("HIT", 200)
    assert second.body == first.body
    assert executions(cached) == before
    # without blanks it is the same request
    how, third = through(cached, json.dumps(
        json.loads(ask(1)), separators=(",", ":")).encode())
    assert how == "HIT" and third.body == first.body


@pytest.mark.parametrize("other", [
    {"body": ask(22)}, {"body": ask(21, id="a")}, {"body": ask(21, id="b")},
    {"body": ask(21, parameters={"p": 1})},
    {"body": ask(21, parameters={"p": 2})},
    {"body": ask(21, parameters={"p": "1"})},
    {"body": ask(21, parameters={"binary_data_output": True})},
    {"body": ask(21, outputs=[{"name": "OUT"}])},
    {"body": ask(21, outputs=[{"name": "OUT",
                               "parameters": {"binary_data": True}}])},
    {"body": ask(21), "path": "/v2/models/resnet/versions/3/infer"},
    {"body": ask(21), "path": "/v2/models/resnet_next/infer"}])
def test_another_request_is_another_entry(cached, other):
    through(cached, ask(21))
    how, first = through(cached, **other)
    assert (how, first.status) == ("MISS", 200), first
    how, second = through(cached, **other)
    assert how == "HIT" and second.body == first.body
    assert second.headers.get("inference-header-content-length") \
        == first.headers.get("inference-header-content-length")


@pytest.mark.parametrize("body, headers", [
    (ask(30, parameters={"sequence_id": 4, "sequence_start": True}), {}),
    (gzip.compress(ask(30)), {"Content-Encoding": "gzip"}),
    (json.dumps({"inputs": [tensor("IN", "INT32", [300000],
                                   [1234] * 300000)]}).encode(), {}),
    (b"{", {}),
    (ask(30) + b"x", {"Inference-Header-Content-Length": str(len(ask(30)))}),
    (ask(30), {"Inference-Header-Content-Length": "9999"}),
    (ask(30), {"Inference-Header-Content-Length": "-1"}),
    (ask(30), {"Inference-Header-Content-Length": str(len(ask(30))),
               "inference-header-content-length": "0"})],
    ids=["sequence", "compressed", "long", "cut", "longer than its header",
         "header longer than it", "negative header", "two headers"])
def test_these_pass_by_the_cache(cached, body, headers):
    first, again = (through(cached, body, headers=headers)
                    for _ in range(2))
    assert first[0] == again[0] == "BYPASS"
    assert first[1].status == again[1].status


def test_errors_are_not_kept(cached):
    for _ in range(2):
        how, answer = through(cached, ask(40),
                              path="/v2/models/ghost/infer")
        assert (how, answer.status) == ("MISS", 404)


def test_binary_tensors_of_a_client(cached):
    def infer(client, values):
        given = tritonclient.http.InferInput("IN", [len(values)], "INT32")
        given.set_data_from_numpy(numpy.array(values, numpy.int32))
        answer = client.infer("resnet", [given])
        return answer.as_numpy("OUT").tolist()

    with tritonclient.http.InferenceServerClient(
            f"127.0.0.1:{cached.front}") as client:
        assert infer(client, [5, 6]) == [5, 6]
        before = executions(cached)
        assert infer(client, [5, 6]) == [5, 6]
        assert executions(cached) == before
        assert infer(client, [5, 7]) == [5, 7]
        assert executions(cached) == before + 1


def test_raw_bodies(cached):
    raw = {"Inference-Header-Content-Length": "0"}
    first = through(cached, b"\1\0\0\0", headers=raw)
    again = through(cached, b"\1\0\0\0", headers=raw)
    other = through(cached, b"\2\0\0\0", headers=raw)
    assert (first[0], again[0], other[0]) == ("MISS", "HIT", "MISS")
    assert again[1].body == first[1].body != other[1].body


def test_a_raw_body_does_not_answer_for_the_same_json(tmp_path_factory):
    """The media type says that all of it is a tensor."""
    port = free_port()
    kind = "application/vnd.sagemaker-triton.binary+json"
    text = cache_below(tmp_path_factory.mktemp("kind"), port)
    body = ask(50)
    body += b" " * (-len(body) % 4)
    with Server(fill, http=f"inference_binary_type {kind};\n{text}",
                parts="health infer") as server:
        server.front = port
        how, raw = through(server, body, headers={
            "Content-Type": f"{kind};JSON-Header-Size=0"})
        assert (how, raw.status) == ("BYPASS", 200)
        assert raw.body.endswith(body)
        how, answer = through(server, body)
        assert how == "MISS"
        assert answer.json()["outputs"][0]["data"] == [50]


def test_a_body_that_is_passed_on_unread_has_no_digest(tmp_path_factory):
    """Else the first half of one body could stand for the whole of another."""
    port = free_port()
    text = cache_below(tmp_path_factory.mktemp("unread"), port)
    assert "proxy_cache_lock " in text
    text = text.replace("proxy_cache_lock ", "proxy_request_buffering off;"
                        " proxy_cache_lock ")
    raw = {"Inference-Header-Content-Length": "0"}
    with Server(fill, http=text, parts="health infer") as server:
        server.front = port
        whole = b"\1\0\0\0"
        head = wire.request_bytes("POST", "/v2/models/resnet/infer",
                             headers={**raw, "Content-Length": "8"})
        with wire.Wire(port) as connection:
            connection.send(head + whole)
            nap(0.3)
            connection.send(b"\2\0\0\0")
            answer = connection.read()
            assert answer.headers["x-cache-status"] == "BYPASS"
        # one that came at once is there as a whole, and is its own entry
        how, answer = through(server, whole, headers=raw)
        assert how == "MISS" and answer.body.endswith(whole)


def test_a_killed_nginx_leaves_its_socket(make_server, tmp_path):
    """The line of nginx.service's drop-in removes it."""
    port = free_port()
    socket = tmp_path / "sock"
    server = make_server(fill, http=cache_below(tmp_path, port),
                         allow_alarms=["failed \\(98: ",
                                       "still could not bind"])
    server.kill()
    assert socket.is_socket()
    said = f"bind() to unix:{socket} failed (98: "
    with pytest.raises(AssertionError, match=re.escape(said)):
        server.start()

    drop_in = ROOT / "packaging/nginx.service.d/inference.conf"
    line, = re.findall(r"^ExecStartPre=(.*)$", drop_in.read_text(), re.M)
    assert line.endswith(f" {SOCKET}")
    command = line.replace(SOCKET, str(socket)).split()
    subprocess.run(command, check=True)
    subprocess.run(command, check=True)         # also where there is none
    server.start()
    assert post(port, "/v2/models/resnet/infer", ask()).status == 200


# ---- quotas.conf

def test_quotas(snippet, tmp_path):
    keys = tmp_path / "api-keys.map"
    keys.write_text('"k-small" small-shop;\n"k-other" small-other;\n'
                    '"k-large" works;\n')
    _, (port,) = snippet("quotas", 8000, fill=fill,
                         files={"api-keys_map": keys})

    def statuses(key, count):
        return [post(port, "/v2/models/resnet/infer", ask(),
                     {"X-API-Key": key} if key else None).status
                for _ in range(count)]

    small = statuses("k-small", 60)
    assert small[:21] == [200] * 21 and 429 in small
    assert set(small) == {200, 429}
    assert statuses("k-other", 21) == [200] * 21
    assert statuses("k-large", 60) == [200] * 60
    assert statuses("k-nobody", 1) == statuses(None, 1) == [401]
