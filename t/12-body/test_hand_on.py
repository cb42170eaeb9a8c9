"""The body is taken as it comes and handed on to the next handler."""

import hashlib
import json
import os

import pytest

from lib import models
from lib.wire import chunked, request_bytes, tensor

SIZES = [64, 100_000, 64 << 20]


def body_of(*values):
    return json.dumps({"inputs": [
        tensor("IN", "INT32", [len(values)], list(values))]}).encode()


def values_of(answer):
    assert answer.status == 200, answer
    return answer.json()["outputs"][0]["data"]


def binary_body(size):
    """(body, header length) of a request with a tensor of size bytes."""
    head = json.dumps({
        "inputs": [tensor("IN", "UINT8", [size], binary_data_size=size)],
        "parameters": {"binary_data_output": True}}).encode()
    return head + os.urandom(size), len(head)


def digest(data):
    return hashlib.sha256(data).hexdigest()


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "broken", [("IN", "UINT8", [-1])],
                    parameters={"fail_execute": "out of order"})


def fill_unready(repository):
    fill(repository)
    models.identity(repository, "unready", [("IN", "UINT8", [-1])],
                    parameters={"fail_initialize": "not today"})


# ---- error_page to a proxy

def fallback(upstream):
    return f"""
        proxy_intercept_errors off;
        client_max_body_size 0;
        location /try/ {{
            inference infer;
            inference_intercept_errors on;
            error_page 404 500 503 = @upstream;
        }}
        location @upstream {{ proxy_pass http://127.0.0.1:{upstream.port}; }}
    """


@pytest.mark.parametrize("model", ["ghost", "broken", "unready/versions/1"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("how", ["length", "chunked"])
def test_error_page_proxies_the_same_body(make_server, upstream, model, size,
                                          how):
    """ghost gives 404 and unready 503 before the model runs, broken 500."""
    server = make_server(fill_unready, wait="live",
                         server=fallback(upstream))
    for name in ("broken", "id_int32"):
        assert server.wait_for(f"/v2/models/{name}/ready")
    assert server.wait_for("/v2/models/unready/versions/1/ready", status=503)
    body, length = binary_body(size)
    path = f"/try/v2/models/{model}/infer"
    headers = {"Inference-Header-Content-Length": str(length)}
    with server.wire(120) as connection:
        if how == "length":
            answer = connection.post(path, body, headers)
        else:
            connection.send(request_bytes("POST", path, headers=dict(
                headers, **{"Transfer-Encoding": "chunked"})))
            connection.send(chunked(body, 1 << 20))
            answer = connection.read()
        assert answer.status == 200, answer
        seen = answer.json()
        assert seen["method"] == "POST"
        assert seen["size"] == len(body)
        assert seen["sha256"] == digest(body)
        assert seen["headers"]["inference-header-content-length"] \
            == str(length)
        assert values_of(connection.post("/v2/models/id_int32/infer",
                                         body_of(1))) == [1]


def test_body_beyond_the_arena_is_handed_on_or_rejected(make_server,
                                                       upstream):
    server = make_server(fill, http="    inference_memory 4m;",
                         server=fallback(upstream))
    body, length = binary_body(16 << 20)            # beyond the arena
    with server.wire(60) as connection:
        answer = connection.post(
            "/try/v2/models/id_uint8/infer", body,
            {"Inference-Header-Content-Length": str(length)})
        if answer.status == 200:
            assert answer.json()["sha256"] == digest(body)
        else:
            assert answer.status in (413, 503), answer


def test_error_page_to_a_static_answer(make_server):
    server = make_server(fill, server="""
        location /try/ {
            inference infer; inference_intercept_errors on;
            error_page 500 =200 /sorry;
        }
        location = /sorry { default_type text/plain; return 200 "later"; }
    """)
    body, length = binary_body(1000)
    with server.wire() as connection:
        answer = connection.post(
            "/try/v2/models/broken/infer", body,
            {"Inference-Header-Content-Length": str(length)})
        assert (answer.status, answer.body) == (200, b"later")
        assert values_of(connection.post("/v2/models/id_int32/infer",
                                         body_of(1))) == [1]


@pytest.mark.parametrize("page", ["@second", "/second"])
def test_error_page_to_another_model(make_server, page):
    """The first model's failure is answered by the second, same body; that
    nginx makes a GET of it on the way to an address does not matter."""
    second = page if page[0] == "@" else f"= {page}"
    server = make_server(fill, server=f"""
        location = /first {{ inference_model broken;
                             inference_intercept_errors on;
                             error_page 500 503 = {page}; }}
        location = /early {{ return 503; error_page 503 = {page};
                             recursive_error_pages on; }}
        location {second} {{ inference_model id_uint8; }}
    """)
    for size in SIZES[:2]:
        body, length = binary_body(size)
        for path in ("/first", "/early"):
            answer = server.post(path, body, {
                "Inference-Header-Content-Length": str(length)})
            assert answer.status == 200, answer
            assert answer.split()[1] == body[length:]
            assert answer.split()[0]["model_name"] == "id_uint8"
    assert server.get("/early").status == 405
    assert server.get("/second").status == 405 or page[0] == "@"


def test_an_upstream_sends_the_body_to_a_model(make_server):
    server = make_server(fill, server="""
        location = /asked { proxy_pass http://127.0.0.1:$server_port/told; }
        location = /told { add_header X-Accel-Redirect /inside; return 204; }
        location = /inside { internal; inference_model id_uint8; }
        location = /looked { try_files /none /inside; }
    """)
    body, length = binary_body(1000)
    head = {"Inference-Header-Content-Length": str(length)}
    for path in ("/asked", "/looked"):
        answer = server.post(path, body, head)
        assert answer.status == 200, answer
        assert answer.split()[1] == body[length:]
        with server.wire() as connection:
            assert connection.request("GET", path, body, head).status == 405


def test_own_error_text_without_an_error_page(make_server):
    server = make_server(fill)
    answer = server.infer("broken", {"inputs": [
        tensor("IN", "UINT8", [1], [1])]})
    assert answer.status == 500
    assert "out of order" in answer.error


# ---- mirror: before and behind

@pytest.mark.parametrize("size", [64, 300_000, 5 << 20])
def test_mirror_of_an_inference_request(make_server, upstream, size):
    """mirror reads the body first: our handler finds it read already."""
    server = make_server(fill, server=f"""
        client_max_body_size 0;
        location /mirrored/ {{ inference infer; mirror /copy; }}
        location = /copy {{
            internal;
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
    """)
    body, length = binary_body(size)
    answer = server.post(
        "/mirrored/v2/models/id_uint8/infer", body,
        {"Inference-Header-Content-Length": str(length)})
    assert answer.status == 200, answer
    assert answer.split()[1] == body[length:]
    from lib.process import wait_until
    assert wait_until(lambda: upstream.requests, 10)
    assert upstream.requests[0]["sha256"] == digest(body)


@pytest.mark.parametrize("size", [64, 300_000, 5 << 20])
def test_mirror_into_a_model(make_server, upstream, size):
    """Traffic for another server is tried on a model: a subrequest."""
    server = make_server(fill, server=f"""
        client_max_body_size 0;
        location /real {{
            mirror /shadow;
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
        location = /shadow {{ internal; inference_model id_uint8; }}
    """)
    body, length = binary_body(size)
    with server.wire(60) as connection:
        for _ in range(3):
            answer = connection.post(
                "/real", body,
                {"Inference-Header-Content-Length": str(length)})
            assert answer.status == 200, answer
            assert answer.json()["sha256"] == digest(body)


def test_mirror_to_a_slow_model_and_a_client_that_leaves(make_server,
                                                         upstream):
    def slow(repository):
        fill(repository)
        models.identity(repository, "slow", [("IN", "INT32", [-1])],
                        parameters={"execute_delay_ms": "300"})

    server = make_server(slow, server=f"""
        location /real {{ mirror /shadow;
                          proxy_pass http://127.0.0.1:{upstream.port}; }}
        location = /shadow {{ internal; inference_model slow; }}
    """)
    for _ in range(5):
        connection = server.wire()
        connection.send(request_bytes("POST", "/real", body_of(1)))
        connection.close()
    assert values_of(server.post("/v2/models/id_int32/infer",
                                 body_of(4))) == [4]


# ---- bodies that somebody read before

@pytest.mark.parametrize("size", [64, 300_000, 5 << 20])
def test_body_in_a_temp_file(make_server, size):
    """mirror reads it, client_body_in_file_only puts all of it on disk."""
    server = make_server(fill, server="""
        client_max_body_size 0;
        location /file/ {
            inference infer;
            client_body_in_file_only clean;
            client_body_buffer_size 16k;
            mirror /nothing;
        }
        location = /nothing { internal; return 204; }
    """)
    body, length = binary_body(size)
    with server.wire(60) as connection:
        for _ in range(3):
            answer = connection.post(
                "/file/v2/models/id_uint8/infer", body,
                {"Inference-Header-Content-Length": str(length)})
            assert answer.status == 200, answer
            assert answer.split()[1] == body[length:]


def test_compressed_body_that_was_read_before(make_server):
    import gzip
    server = make_server(fill, server="""
        location /m/ { inference infer; mirror /nothing; }
        location = /nothing { internal; return 204; }
    """)
    body = gzip.compress(body_of(*range(30000)))
    answer = server.post("/m/v2/models/id_int32/infer", body,
                         {"Content-Encoding": "gzip"})
    assert values_of(answer) == list(range(30000))


# ---- subrequests

def test_auth_request_to_a_model(make_server):
    """The subrequest's status decides who gets in."""
    server = make_server(fill, start=False, server="""
        root {prefix}/page;
        location = /guarded { auth_request /ask; try_files /in =404; }
        location = /health-guard { auth_request /alive;
                                   try_files /in =404; }
        location = /ghost-guard { auth_request /ghost; try_files /in =404; }
        location = /ask { internal; inference_model id_int32; }
        location = /alive { internal; rewrite ^ /v2/health/ready break;
                            inference health; }
        location = /ghost { internal;
                            rewrite ^ /v2/models/ghost/ready break;
                            inference health; }
    """)
    server.fields["server"] = server.fields["server"].replace(
        "{prefix}", str(server.prefix))
    page = server.prefix / "page"
    page.mkdir()
    (page / "in").write_text("in")
    server.write_config()
    server.start()
    with server.wire() as connection:
        for _ in range(3):
            # a GET has no body: the model has nothing to say yes to
            assert connection.get("/guarded").status == 500
            answer = connection.next().get("/health-guard")
            assert (answer.status, answer.body) == (200, b"in")
            assert connection.next().get("/ghost-guard").status == 500
            assert connection.next().get("/v2/health/live").status == 200


def test_auth_request_with_the_body(make_server):
    """POST: mirror has read the body, so the model sees it."""
    server = make_server(fill, server="""
        location = /guarded {
            mirror /nothing; auth_request /ask;
            proxy_pass http://127.0.0.1:{port}/v2/models/id_int32/infer;
        }
        location = /rejected {
            mirror /nothing; auth_request /ask-broken;
            proxy_pass http://127.0.0.1:{port}/v2/models/id_int32/infer;
        }
        location = /nothing { internal; return 204; }
        location = /ask { internal; inference_model id_int32; }
        location = /ask-broken { internal; inference_model broken; }
    """, start=False)
    server.write_config(server_port(server))
    server.start()
    with server.wire() as connection:
        answer = connection.post("/guarded", body_of(1, 2))
        assert values_of(answer) == [1, 2]
        assert connection.post("/rejected", body_of(1)).status == 500
        assert values_of(connection.post("/v2/models/id_int32/infer",
                                         body_of(3))) == [3]


def server_port(server):
    """CONFIG with the port filled into the location text too."""
    from lib.server import CONFIG
    text = server.fields["server"].replace("{port}", str(server.port))
    server.fields["server"] = text
    return CONFIG


def test_ssi_includes_health_metadata_and_inference(make_server):
    server = make_server(fill, server="""
        location /page/ {
            root {prefix};
            ssi on; ssi_types *;
        }
        location = /answer { inference_model id_int32; }
        location = /state { rewrite ^ /v2/models/id_int32 break;
                            inference metadata; }
    """, start=False)
    server.fields["server"] = server.fields["server"].replace(
        "{prefix}", str(server.prefix))
    page = server.prefix / "page"
    page.mkdir()
    (page / "index.shtml").write_text(
        'before <!--# include virtual="/state" --> middle '
        '<!--# include virtual="/v2/models/ghost" --> after')
    server.write_config()
    server.start()
    with server.wire() as connection:
        for _ in range(3):
            answer = connection.get("/page/index.shtml")
            assert answer.status == 200, answer
            text = answer.body.decode()
            assert text.startswith("before {") and text.endswith(" after")
            assert '"name":"id_int32"' in text
            assert "'ghost' is not found" in text


# ---- internal redirects

def test_rewrite_and_internal_redirect_before_the_body(make_server):
    server = make_server(fill, server="""
        location /short/ { rewrite ^/short/(.*)$ /v2/models/$1/infer last; }
        location = /tried { try_files /none @model; }
        location @model { inference_model id_int32; }
    """)
    for _ in range(3):
        assert values_of(server.post("/short/id_int32", body_of(1))) == [1]
        assert values_of(server.post("/tried", body_of(2))) == [2]


def test_inference_behind_a_proxy_of_the_same_nginx(make_server):
    server = make_server(fill, start=False, server="""
        client_max_body_size 0;
        location /via/ { proxy_pass http://127.0.0.1:{port}/;
                         proxy_request_buffering off;
                         proxy_http_version 1.1; }
    """)
    server.write_config(server_port(server))
    server.start()
    body, length = binary_body(3 << 20)
    answer = server.post("/via/v2/models/id_uint8/infer", body, {
        "Inference-Header-Content-Length": str(length)})
    assert answer.status == 200, answer
    assert answer.split()[1] == body[length:]
