"""A running nginx in front of tritonserver becomes the server by a reload."""

import re

import pytest

from bench.peer import Peer
from lib import migrations, prebuilt, process
from lib.server import BACKENDS, CORE, MODULE, SLOW, free_port

FOLDER = migrations.EXAMPLES / "nginx-proxy"
BEFORE = (FOLDER / "before.conf").read_text()
AFTER = (FOLDER / "after.conf").read_text()
USER = "ada:lovelace"
MISSING = prebuilt.missing()


def test_five_lines():
    assert 0 < migrations.edited(BEFORE, AFTER) <= 5


def here(text, server, peer, grpc_port):
    """For this machine: ports, files and processes of the test."""
    ports = {"127.0.0.1:8010": f"127.0.0.1:{peer.port}",
             "127.0.0.1:8011": f"127.0.0.1:{peer.port2}",
             "listen 8000": f"listen 127.0.0.1:{server.port}",
             "listen 8001": f"listen 127.0.0.1:{grpc_port}"}
    for old, new in ports.items():
        text = text.replace(old, new)
    text = text.replace("/etc/nginx", str(server.prefix))
    text = text.replace("/srv/models", str(server.models))
    inside = "access_log off;" + "".join(
        f" {name}_temp_path {server.prefix}/temp/{name};" for name in
        ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    if "load_module" in text:
        text = re.sub("load_module .*;", f"load_module {MODULE};", text)
        inside += (f" inference_core {CORE}{server.fields['core_options']};"
                   f" inference_backends {BACKENDS};"
                   + server.fields["environment"])
    text = text.replace("http {", "http { " + inside, 1)
    return (f"daemon off; user root; pid {server.prefix}/nginx.pid;"
            f" error_log {server.log} info;\n{text}")


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_a_reload_switches(make_server, tmp_path):
    server = make_server(migrations.repository, start=False)
    (server.prefix / "models.htpasswd").write_text(
        USER.replace(":", ":{PLAIN}") + "\n")
    grpc_port = free_port()
    peer = Peer(server.models, tmp_path, grpc=True,
                backends=migrations.peer_backends(tmp_path))
    try:
        server.conf.write_text(here(BEFORE, server, peer, grpc_port))
        server.start("")
        assert process.wait_until(
            lambda: server.status("/v2/health/ready") == 401, 20)
        assert server.cores() == []
        before = (migrations.rest_answers(server.port, USER),
                  migrations.grpc_answers(grpc_port))
        server.conf.write_text(here(AFTER, server, peer, grpc_port))
        server.signal("HUP")
        server.core()
    finally:
        peer.stop()         # from now on nginx itself answers
    assert process.wait_until(
        lambda: migrations.is_ready(server.port, USER), 30 * SLOW)
    assert (migrations.rest_answers(server.port, USER),
            migrations.grpc_answers(grpc_port)) == before
    assert before[0]["infer"][0] == before[0]["binary"][0] == 200
    assert server.status("/v2/health/ready") == 401
