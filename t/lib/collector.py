"""An OpenTelemetry collector: OTLP over HTTP, in its JSON form."""

import http.server
import json
import ssl
import threading

from lib import process
from lib.server import SLOW


class Span:
    """One span, with its lists as dictionaries."""

    def __init__(self, raw):
        self.raw = raw
        self.name = raw["name"]
        self.kind = raw["kind"]
        self.trace = raw["traceId"]
        self.id = raw["spanId"]
        self.parent = raw.get("parentSpanId")
        self.start = int(raw["startTimeUnixNano"])
        self.end = int(raw["endTimeUnixNano"])
        self.events = {e["name"]: int(e["timeUnixNano"])
                       for e in raw["events"]}
        self.attributes = {a["key"]: list(a["value"].values())[0]
                           for a in raw["attributes"]}
        assert len(self.trace) == 32 and len(self.id) == 16
        assert self.start <= self.end
        assert all(self.start <= ns <= self.end
                   for ns in self.events.values())


class Collector:
    """Keeps what is posted to url; status: what posts are answered with.

    pair: (certificate, key) of one that speaks TLS."""

    def __init__(self, pair=None):
        self.posts = []
        self.headers = []
        self.resources = []
        self.spans = []
        self.status = 200
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(self.path, self.headers, body)
                self.send_response(collector.status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                      Handler)
        if pair:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*pair)
            self.server.socket = context.wrap_socket(self.server.socket,
                                                     server_side=True)
        self.url = f"http{'s' if pair else ''}://127.0.0.1:" \
            f"{self.server.server_port}/v1/traces"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def take(self, path, headers, body):
        assert path == "/v1/traces"
        assert headers["Content-Type"] == "application/json"
        self.headers.append(headers)
        spans = []
        for resource in json.loads(body)["resourceSpans"]:
            self.resources.append({
                a["key"]: a["value"]["stringValue"]
                for a in resource["resource"]["attributes"]})
            for scope in resource["scopeSpans"]:
                assert scope["scope"]["name"] == "triton-server"
                spans += map(Span, scope["spans"])
        self.posts.append(spans)
        if self.status == 200:
            self.spans += spans

    def wait(self, requests):
        """The spans of so many requests, once they are there."""
        assert process.wait_until(
            lambda: len(self.named("InferRequest")) >= requests, 20 * SLOW), \
            [s.name for s in self.spans]
        assert len(self.named("InferRequest")) == requests
        return list(self.spans)

    def named(self, name):
        return [s for s in self.spans if s.name == name]

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
