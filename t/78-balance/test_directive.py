"""Errors of inference_balance in nginx -t."""

import pytest

from lib.nodes import balancer


def check(make_server, method, *, more="", first="", ports=(9,)):
    server = balancer(make_server, ports, method, more=more, start=False)
    text = server.conf.read_text()
    server.conf.write_text(text.replace(
        "        inference_balance", f"{first}        inference_balance"))
    return server.check_config()


@pytest.mark.parametrize("method", [
    "queue", "queue interval=10ms",
    "queue port=8000 uri=/under/v2/health/ready",
    "queue sequence=$http_x_sequence_id interval=1h"])
def test_good_ones(make_server, method):
    status, text = check(make_server, method, more="        keepalive 8;\n")
    assert status == 0, text


@pytest.mark.parametrize("method, said", [
    ("depth", 'unknown method "depth" in "inference_balance"; there is:'
     " queue"),
    ("queue port=0", 'invalid or duplicate parameter "port=0"'),
    ("queue port=65536", 'invalid or duplicate parameter "port=65536"'),
    ("queue port=1 port=2", 'invalid or duplicate parameter "port=2"'),
    ("queue interval=9ms", 'invalid or duplicate parameter "interval=9ms"'),
    ("queue interval=2h", 'invalid or duplicate parameter "interval=2h"'),
    ("queue interval=soon", 'invalid or duplicate parameter "interval=soon"'),
    ("queue uri=v2", 'invalid or duplicate parameter "uri=v2"'),
    ("queue sequence=", 'invalid or duplicate parameter "sequence="'),
    ("queue fast", 'invalid or duplicate parameter "fast"'),
    ("queue sequence=id", "holds no variable"),
    ("queue; inference_balance queue", "is duplicate")])
def test_bad_ones_are_named(make_server, method, said):
    status, text = check(make_server, method)
    assert status != 0
    assert said in text
    assert "nginx.conf:" in text


def test_it_is_for_upstreams(make_server):
    server = balancer(make_server, [9], start=False)
    text = server.conf.read_text()
    server.conf.write_text(text.replace(
        "location / {", "location / { inference_balance queue;"))
    status, text = server.check_config()
    assert status != 0
    assert '"inference_balance" directive is not allowed here' in text


@pytest.mark.parametrize("other", ["least_conn", "ip_hash", "random",
                                   "hash $uri consistent"])
def test_another_method_beside_it(make_server, other):
    status, text = check(make_server, "queue", first=f"        {other};\n")
    assert status != 0
    assert '"inference_balance" directive stands behind another balancing' \
        in text
    status, text = check(make_server, "queue", more=f"        {other};\n")
    assert status != 0
    assert 'is followed by another balancing method in' in text
    assert 'of upstream "nodes"' in text
    assert "nginx.conf:" in text


def test_keepalive_stands_behind_it(make_server):
    status, text = check(make_server, "queue", first="        keepalive 8;\n")
    assert status != 0
    assert 'or behind "keepalive"' in text


def test_backups_before_and_behind_it(make_server):
    backup = "        server 127.0.0.1:10 backup;\n"
    for where in ("first", "more"):
        status, text = check(make_server, "queue", **{where: backup})
        assert status == 0, text


def test_too_many_servers(make_server):
    status, text = check(make_server, "queue", ports=range(1, 258))
    assert status != 0
    assert "has 257 addresses" in text
    status, text = check(make_server, "queue", ports=range(1, 257),
                         more="        server 127.0.0.1:300 backup;\n")
    assert status != 0
    assert "has 257 addresses" in text
