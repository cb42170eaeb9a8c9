"""Nodes behind a balancer: small servers that say about themselves what a test
wants, and an nginx that is the balancer alone."""

import contextlib
import http.server
import threading

BALANCER = """\
load_module {module};
daemon {daemon};
worker_processes {workers};
user {user};
pid {prefix}/nginx.pid;
error_log {prefix}/error.log {log_level};
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    client_body_temp_path {prefix}/temp/body;
    proxy_temp_path {prefix}/temp/proxy;
    fastcgi_temp_path {prefix}/temp/fastcgi;
    uwsgi_temp_path {prefix}/temp/uwsgi;
    scgi_temp_path {prefix}/temp/scgi;
{http}
    server {{
        listen 127.0.0.1:{port};
{server}
    }}
}}
"""

PROXY = """\
        location / {
            proxy_pass http://nodes;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
        }
"""


def upstream(ports, method="queue interval=20ms", server="", more=""):
    servers = "".join(f"        server 127.0.0.1:{p}{server};\n"
                      for p in ports)
    return (f"    upstream nodes {{\n{servers}"
            f"        inference_balance {method};\n{more}    }}\n")


def balancer(make_server, ports, method="queue interval=20ms", *, server=PROXY,
             more="", start=True, **kw):
    """An nginx without a core, whose upstream "nodes" has these ports."""
    return make_server(config=BALANCER, wait="", start=start, server=server,
                       http=upstream(ports, method, more=more), **kw)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        node = self.server
        page = node.pages.get(self.path)
        if page is not None:
            node.asked.append(self.path)
            node.gate.wait(20)
            with contextlib.suppress(OSError):
                self.wfile.write(page)
            self.close_connection = True
            return
        node.probes.append(dict(self.headers))
        with node.lock:
            node.to_drop, drop = max(node.to_drop - 1, 0), node.to_drop > 0
            node.to_hold, hold = max(node.to_hold - 1, 0), node.to_hold > 0
        if hold:
            node.held.wait(20)
            with contextlib.suppress(OSError):
                self.wfile.write(b"HTTP/1.1 503 Late\r\n\r\n")
        if drop or hold:
            self.close_connection = True
            return
        if node.raw is not None:
            self.wfile.write(node.raw)
            self.close_connection = True
            return
        self.send_response(200 if node.ready else 503)
        if node.report is not None:
            self.send_header("Endpoint-Load-Metrics", node.report)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        node = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if node.closes_kept and getattr(self, "kept", False):
            self.close_connection = True
            return
        self.kept = True
        with node.lock:
            node.received.append(body)
        node.gate.wait(20)
        if node.raw_answer is not None:
            with contextlib.suppress(OSError):
                self.wfile.write(node.raw_answer)
            self.close_connection = True
            return
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(node.status)
            self.send_header("Content-Length", str(len(node.answer)))
            self.end_headers()
            self.wfile.write(node.answer)

    def log_message(self, *_):
        pass


class Node(http.server.ThreadingHTTPServer):
    """queue: what it reports; report: the whole header; raw: its bytes in the
    place of an answer; answer, raw_answer: the same for a POST; to_drop: so
    many probes to come get no answer; to_hold: so many wait for `held` and are
    told 503; closes_kept: a connection's second POST gets no answer; pages: the
    bytes that a GET of another path gets, and asked: those that came."""

    daemon_threads = True

    def __init__(self, queue=0):
        super().__init__(("127.0.0.1", 0), Handler)
        self.port = self.server_address[1]
        self.ready = True
        self.raw = self.raw_answer = None
        self.status, self.answer = 200, b"{}"
        self.lock = threading.Lock()
        self.received, self.probes = [], []
        self.pages, self.asked = {}, []
        self.gate = threading.Event()
        self.gate.set()
        self.to_drop = self.to_hold = 0
        self.held = threading.Event()
        self.closes_kept = False
        self.set_queue(queue)
        self.thread = threading.Thread(target=self.serve_forever, daemon=True,
                                       args=(0.02,))
        self.thread.start()

    def set_queue(self, queue):
        self.report = None if queue is None \
            else f"TEXT named_metrics.queue_depth={queue}"

    def probed(self, count=2):
        """A function for wait_until: so many probes more have come."""
        before = len(self.probes)
        return lambda: len(self.probes) >= before + count

    def stop(self):
        self.gate.set()
        self.held.set()
        self.shutdown()
        self.server_close()
        self.thread.join()
