"""Scripts of njs ask our locations by subrequests: REST and events.  A
subrequest has no trailers, so gRPC is not asked here (note 4 of
docs/modules.md)."""

import json
import os
import pathlib

import pytest

from lib import decoupled, events, models
from lib.server import Server

MODULE = pathlib.Path("/usr/lib/nginx/modules/ngx_http_js_module.so")

pytestmark = pytest.mark.skipif(
    bool(os.environ.get("INF_NGINX")), reason="njs is the stock nginx's")

# the script reads its client's body, and wraps the answer that it gets
SCRIPT = """
async function ask(r) {
    const path = r.variables.asks;
    const reply = await r.subrequest(path, { method: 'POST',
                                             body: r.requestText });
    r.headersOut['Content-Type'] = 'application/json';
    r.return(200, JSON.stringify({ status: reply.status,
                                   text: reply.responseText }));
}
export default { ask };
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    place = tmp_path_factory.mktemp("njs")
    place.chmod(0o755)
    (place / "ask.js").write_text(SCRIPT, encoding="utf-8")

    def fill(repository):
        models.standard_repository(repository)
        decoupled.square(repository)

    with Server(fill, parts="health infer generate",
                main=f"load_module {MODULE};", http=f"""
    js_path {place};
    js_import ask.js;
    subrequest_output_buffer_size 1m;       # read in the subrequest's location
""", server="""
        location /ask/ {
            client_body_buffer_size 1m; client_max_body_size 1m;
            set $asks /v2/models/id_int32/infer;
            js_content ask.ask;
        }
        location /ask/events {
            set $asks /v2/models/square/generate_stream;
            js_content ask.ask;
        }
""") as s:
        yield s


def ask(server, path, body):
    answer = events.post(server.port, path, body).json()
    return answer["status"], answer["text"]


@pytest.mark.parametrize("count", [1, 3000])
def test_a_script_asks_for_an_inference(server, count):
    values = list(range(count))
    status, text = ask(server, "/ask/infer", {"inputs": [{
        "name": "IN", "datatype": "INT32", "shape": [count],
        "data": values}]})
    assert status == 200
    assert json.loads(text)["outputs"][0]["data"] == values


def test_a_script_asks_for_events(server):
    status, text = ask(server, "/ask/events", {"IN": 3})
    assert status == 200
    assert [e["OUT"] for e in events.parse(text.encode())] == [3, 3, 3]


def test_a_script_gets_an_error(server):
    status, text = ask(server, "/ask/infer", b"{")
    assert status == 400
    assert json.loads(text)["error"]
