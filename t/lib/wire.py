"""HTTP/1.1 by hand: what a client library would never send or show."""

import json
import socket


class Response:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers          # names in lower case
        self.body = body

    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json()["error"]

    def split(self):
        """(JSON object, binary tail) of an inference response."""
        size = self.headers.get("inference-header-content-length")
        size = len(self.body) if size is None else int(size)
        return json.loads(self.body[:size]), self.body[size:]

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


class Wire:
    """One connection.  read() takes exactly one response off it."""

    def __init__(self, port, timeout=20.0, tls=None):
        """tls: an ssl.SSLContext."""
        self.port = port
        self.timeout = timeout
        self.tls = tls
        self._open()

    def _open(self):
        self.socket = socket.create_connection(("127.0.0.1", self.port),
                                               self.timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls:
            self.socket = self.tls.wrap_socket(self.socket)
        self.buffer = b""
        self.closing = False    # the last answer said `Connection: close`

    def next(self):
        """Ready for another request: a new one where the server closes."""
        if self.closing:
            self.close()
            self._open()
        return self

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        self.socket.sendall(data)

    def _more(self):
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("closed by the server")
        self.buffer += data

    def _line(self):
        while b"\r\n" not in self.buffer:
            self._more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def _exactly(self, size):
        parts, have = [self.buffer], len(self.buffer)
        while have < size:
            data = self.socket.recv(1 << 18)
            if not data:
                raise ConnectionError("closed in the body")
            parts.append(data)
            have += len(data)
        whole = b"".join(parts)
        self.buffer = whole[size:]
        return whole[:size]

    def read(self, head=False):
        """head: the request was HEAD, so no body follows."""
        status = int(self._line().split(b" ", 2)[1])
        headers = {}
        while line := self._line():
            name, value = line.split(b":", 1)
            headers[name.strip().lower().decode()] = value.strip().decode()
        self.closing = headers.get("connection", "").lower() == "close"
        if status == 100:
            return Response(100, headers, b"")
        body = b""
        if head or status in (204, 304):
            pass
        elif headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int(self._line().split(b";")[0], 16):
                body += self._exactly(size)
                self._line()
            self._line()
        elif "content-length" in headers:
            body = self._exactly(int(headers["content-length"]))
        else:
            try:
                while True:
                    self._more()
            except ConnectionError:
                body, self.buffer = self.buffer, b""
        return Response(status, headers, body)

    def request(self, method, path, body=None, headers=None):
        self.next().send(request_bytes(method, path, body, headers))
        return self.read(head=method == "HEAD")

    def get(self, path, **kw):
        return self.request("GET", path, **kw)

    def post(self, path, body, headers=None):
        return self.request("POST", path, body, headers)

    def infer(self, model, header, tail=b"", headers=None, version=""):
        """header: dict or bytes; tail: binary tensors after it."""
        if not isinstance(header, bytes):
            header = json.dumps(header).encode()
        headers = dict(headers or {})
        if tail:
            headers.setdefault("Inference-Header-Content-Length",
                               str(len(header)))
        return self.post(infer_path(model, version), header + tail, headers)


def infer_path(model, version=""):
    version = f"/versions/{version}" if version else ""
    return f"/v2/models/{model}{version}/infer"


def request_bytes(method, path, body=None, headers=None):
    headers = dict(headers or {})
    headers.setdefault("Host", "localhost")
    if body is not None and "Transfer-Encoding" not in headers:
        headers.setdefault("Content-Length", str(len(body)))
    head = f"{method} {path} HTTP/1.1\r\n" + "".join(
        f"{k}: {v}\r\n" for k, v in headers.items())
    return head.encode() + b"\r\n" + (body or b"")


def chunked(data, size):
    """data as a chunked body of chunks of size bytes."""
    out = []
    for i in range(0, len(data), size):
        piece = data[i:i + size]
        out.append(b"%x\r\n%s\r\n" % (len(piece), piece))
    return b"".join(out) + b"0\r\n\r\n"


def fetch(port, method, path, body=None, headers=None):
    with Wire(port) as wire:
        return wire.request(method, path, body, headers)


def tensor(name, datatype, shape, data=None, **parameters):
    """One entry of `inputs`; data goes in as JSON, parameters as they are."""
    entry = {"name": name, "datatype": datatype, "shape": list(shape)}
    if data is not None:
        entry["data"] = data
    if parameters:
        entry["parameters"] = parameters
    return entry
