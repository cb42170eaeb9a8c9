"""A tiny HTTP server behind nginx: answers with what it received."""

import hashlib
import http.server
import json
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _body(self):
        """Length and hash of the body, never the whole of it in memory."""
        digest, size = hashlib.sha256(), 0
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while chunk := int(self.rfile.readline().split(b";")[0], 16):
                data = self.rfile.read(chunk)
                digest.update(data)
                size += chunk
                self.rfile.readline()
            self.rfile.readline()
            return size, digest.hexdigest()
        left = int(self.headers.get("Content-Length", 0))
        while left:
            data = self.rfile.read(min(left, 1 << 20))
            if not data:
                break
            digest.update(data)
            size += len(data)
            left -= len(data)
        return size, digest.hexdigest()

    def _answer(self):
        size, digest = self._body()
        record = {"method": self.command, "path": self.path, "size": size,
                  "sha256": digest,
                  "headers": {k.lower(): v for k, v in self.headers.items()}}
        with self.server.lock:
            self.server.requests.append(record)
        body = json.dumps(record).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = _answer

    def log_message(self, *_):
        pass


class Upstream(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, status=200):
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = status
        self.requests = []
        self.lock = threading.Lock()
        self.port = self.server_address[1]
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def stop(self):
        self.shutdown()
        self.server_close()
        self.thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
