"""Tiny HTTP servers behind nginx: one answers with what it received, one keeps
every byte of it."""

import hashlib
import http.server
import json
import re
import socket
import ssl
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


class Recorder:
    """An HTTP/1.1 server that keeps every byte it receives.

    Each connection is a list of requests (head, body), of which the body is
    what the framing says, and of what follows the last whole one (rest): it
    is empty unless more was sent than was announced.  gate: bodies are read
    only once it is set.
    """

    def __init__(self, certificate=None):
        """certificate: (file, key file) for TLS."""
        self.tls = None
        if certificate:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(*certificate)
        self.connections = []
        self.gate = threading.Event()
        self.gate.set()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def requests(self):
        return [r for c in list(self.connections) for r in list(c.requests)]

    def forget(self):
        self.connections = [c for c in self.connections
                            if c.thread.is_alive()]
        for connection in self.connections:
            connection.requests.clear()

    def _accept(self):
        while True:
            try:
                peer = self.listener.accept()[0]
            except OSError:
                return
            connection = Recorded(self, peer)
            self.connections.append(connection)
            connection.thread.start()

    def stop(self):
        self.gate.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Recorded:
    """One connection of a Recorder, in a thread of its own."""

    def __init__(self, recorder, peer):
        self.recorder = recorder
        self.peer = peer
        self.requests = []
        self.rest = b""
        self.waiting = False            # a head is here, the gate is shut
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            if self.recorder.tls:
                self.peer = self.recorder.tls.wrap_socket(self.peer,
                                                          server_side=True)
            while self._request():
                pass
        except OSError:
            pass
        finally:
            self.peer.close()

    def _more(self):
        data = self.peer.recv(1 << 16)
        self.rest += data
        return bool(data)

    def _until(self, mark):
        while mark not in self.rest:
            if not self._more():
                return None
        found, self.rest = self.rest.split(mark, 1)
        return found

    def _exactly(self, size):
        while len(self.rest) < size:
            if not self._more():
                return None
        found, self.rest = self.rest[:size], self.rest[size:]
        return found

    def _body(self, head):
        if b"\r\ntransfer-encoding: chunked" in head.lower():
            body = b""
            while size := int(self._until(b"\r\n"), 16):
                body += self._exactly(size)
                self._until(b"\r\n")
            self._until(b"\r\n")
            return body
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        return self._exactly(int(length[1])) if length else b""

    def _request(self):
        head = self._until(b"\r\n\r\n")
        if head is None:
            return False
        self.waiting = True
        self.recorder.gate.wait()
        self.waiting = False
        body = self._body(head)
        if body is None:
            return False
        self.requests.append((head, body))
        closing = b"\r\nconnection: close" in head.lower()
        self.peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n"
                          + (b"Connection: close\r\n" if closing else b"")
                          + b"\r\nrecorded")
        return True
