"""generate and generate_stream through Python's http client."""

import http.client
import json

from lib.server import SLOW


class Answer:
    """Status, headers and body of a request that was read to its end."""

    def __init__(self, response):
        self.status = response.status
        self.headers = {k.lower(): v for k, v in response.getheaders()}
        self.body = response.read()

    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        assert list(self.json()) == ["error"]
        return self.json()["error"]

    def events(self):
        return parse(self.body)

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:400]}"


def parse(body):
    """The objects of a body of events, each exactly `data: JSON` and an
    empty line."""
    found = []
    for event in body.split(b"\n\n")[:-1]:
        assert event.startswith(b"data: ") and b"\n" not in event, event
        found.append(json.loads(event[6:]))
    assert not body or body.endswith(b"\n\n")
    return found


class Open:
    """A request whose events are read one by one."""

    def __init__(self, port, path, body, headers=None, seconds=30):
        self.connection = http.client.HTTPConnection(
            "127.0.0.1", port, timeout=seconds * SLOW)
        self.connection.request("POST", path, encode(body), headers or {})
        self.response = None

    def begin(self):
        """Waits for the head."""
        if self.response is None:
            self.response = self.connection.getresponse()
        return self.response

    def read(self):
        """The next event, or None at the end."""
        line = self.begin().readline()
        if not line:
            return None
        assert line.startswith(b"data: "), line
        assert self.response.readline() == b"\n"
        return json.loads(line[6:])

    def rest(self):
        return list(iter(self.read, None))

    def close(self):
        if self.response is not None:
            self.response.close()
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def encode(body):
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def path(model, verb="generate", version=None):
    version = "" if version is None else f"/versions/{version}"
    return f"/v2/models/{model}{version}/{verb}"


def post(port, path_, body, headers=None, seconds=60):
    with Open(port, path_, body, headers, seconds) as o:
        return Answer(o.begin())
