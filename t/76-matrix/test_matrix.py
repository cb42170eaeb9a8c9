"""nginx's own modules beside ours: a row for each module, a column for each
protocol.  Each row has a server block of its own; all come over HTTP/2, and
REST and events over HTTP/1.1, too (test_keepalive)."""

import base64
import gzip
import http.client
import json
import pathlib
import socket
import ssl
import struct
import time

import hpack
import pytest

from tritonclient.grpc import service_pb2 as pb

from lib import certificate, decoupled, events, models, process
from lib.grpc_client import SERVICE, frame, frames, numbers
from lib.h2 import H2
from lib.server import SLOW, Server, free_port
from lib.upstream import Upstream

COLUMNS = ["rest", "sse", "grpc"]
INFER = "/v2/models/id_int32/infer"
STREAM = events.path("square", "generate_stream")
UNARY = SERVICE + "ModelInfer"
JSON = {"content-type": "application/json"}
USER = "Basic " + base64.b64encode(b"user:secret").decode()

# the status of gRPC for one of HTTP
GRPC = {400: 13, 401: 16, 403: 7, 404: 12, 413: 8, 503: 14}


class Answer:
    """status: of HTTP; code: of gRPC, for that protocol alone."""

    def __init__(self, protocol, stream):
        self.protocol = protocol
        self.headers = dict(stream.headers)
        self.status = int(self.headers[":status"])
        self.body = stream.body
        self.code = int(self.headers["grpc-status"]) \
            if protocol == "grpc" else None

    def numbers(self):
        """The numbers of the model's answer."""
        body = self.body
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if self.protocol == "rest":
            return json.loads(body)["outputs"][0]["data"]
        if self.protocol == "sse":
            return [e["OUT"] for e in events.parse(body)]
        reply = pb.ModelInferResponse.FromString(frames(body)[0][1])
        raw = reply.raw_output_contents[0]
        return list(struct.unpack(f"<{len(raw) // 4}i", raw))

    def __repr__(self):
        return f"{self.protocol} {self.headers} {self.body[:300]}"


def message(protocol, value):
    """(path, headers, body) of a request."""
    if protocol == "rest":
        return INFER, JSON, json.dumps({"inputs": [{
            "name": "IN", "datatype": "INT32", "shape": [1],
            "data": [value]}]}).encode()
    if protocol == "sse":
        return STREAM, JSON, json.dumps({"IN": value}).encode()
    return UNARY, {"content-type": "application/grpc", "te": "trailers"}, \
        frame(numbers("id_int32", [value]))


def send(protocol, port, headers=None, prefix="", made=None, value=2):
    path, own, body = message(protocol, value)
    with H2(port, timeout=20 * SLOW, made=made,
            decoder=hpack.Decoder()) as h2:
        stream = h2.post(prefix + path, {**own, **(headers or {})}, body)
        return Answer(protocol, h2.read(stream))


def served(answer, value=2):
    assert answer.status == 200 and answer.code in (None, 0), answer
    expected = [value] * (value if answer.protocol == "sse" else 1)
    assert answer.numbers() == expected, answer
    return answer


def rejected(answer, status):
    """An error of nginx itself; in gRPC it is in the trailers."""
    if answer.protocol == "grpc":
        assert (answer.status, answer.code) == (200, GRPC[status]), answer
        assert answer.body == b"", answer
    else:
        assert answer.status == status, answer
    return answer


# of http, of server, of location
ROWS = {
    "limit_req": ("limit_req_zone $content_type$uri zone=r:1m rate=1r/m;", "",
                  "limit_req zone=r;"),
    "limit_conn": ("limit_conn_zone $server_port zone=c:1m;", "",
                   "limit_conn c 1;"),
    "auth_basic": ("", "", "auth_basic site; auth_basic_user_file {users};"),
    "auth_request": ("", """location = /who { internal;
            if ($http_x_user = right) { return 204; } return 403; }""",
                     "auth_request /who;"),
    "satisfy": ("", "", """satisfy any; deny all;
            auth_basic site; auth_basic_user_file {users};"""),
    "mtls": ("", """ssl_certificate {certificate};
        ssl_certificate_key {key}; ssl_client_certificate {authority};
        ssl_verify_client on;""",
             "add_header X-Subject $ssl_client_s_dn always;"),
    "realip": ("", """set_real_ip_from 127.0.0.1;
        real_ip_header X-Forwarded-For;""", "allow 192.0.2.7; deny all;"),
    "proxy_protocol": ("", """set_real_ip_from 127.0.0.1;
        real_ip_header proxy_protocol;""", "allow 192.0.2.7; deny all;"),
    "map": ("map $http_x_tier $tier_allowed { default 0; gold 1; }", "",
            "if ($tier_allowed = 0) { return 403; }"),
    "geo": ("geo $is_known { default 0; 127.0.0.1 1; }", "",
            "if ($is_known = 0) { return 403; }"),
    "split_clients": ("split_clients $http_x_key $half { 50% a; * b; }", "",
                      "add_header X-Half $half always;"),
    "rewrite": ("", "rewrite ^/old/(.*)$ /$1 last;", ""),
    "internal": ("", """location /in/ { internal; inference infer generate; }
        rewrite ^/via/(.*)$ /in/$1 last;""", ""),
    "limit_except": ("", "", "limit_except POST { deny all; }"),
    "mirror": ("", """location = /copy { internal;
            proxy_pass http://127.0.0.1:{upstream}; }""", "mirror /copy;"),
    "ssi": ("", """location = /page { ssi on; ssi_types *;
            return 200 'a <!--# include virtual="/v2/models/id_int32" --> b';
        }""", "ssi on; ssi_types application/json;"),
    "addition": ("", "location = /more { return 200 more; }",
                 "add_after_body /more; addition_types application/json;"),
    "sub_filter": ("", "", """sub_filter model_name model; sub_filter_once off;
        sub_filter_types application/json text/event-stream;"""),
    "limit_rate": ("", "", "limit_rate $http_x_rate;"),
    "try_files": ("", """location @named { inference infer generate;
            add_header X-Named yes; }""", "try_files /nothing @named;"),
    "gzip": ("", "", "gzip on; gzip_min_length 1; gzip_types *;"),
    "add_header": ("", "", "add_header X-Site here always;"),
    "add_trailer": ("", "", "add_trailer X-Site here always;"),
    "access_log": ("""map $inference_verb $counts { default 1; "" 0; }
    log_format one '$http_x_key $status';""", "",
                   "access_log {log} one if=$counts;"),
    "error_page": ("""limit_req_zone $content_type$uri zone=e:1m
        rate=1r/m;""", """error_page 503 = @busy;
        location @busy { add_header X-Page busy always; return 503 busy; }""",
                   "limit_req zone=e;"),
    "body_size": ("", "client_max_body_size 4;", ""),
    "keepalive": ("", "", ""),
}
TLS = {"mtls"}
LISTEN = {"mtls": "ssl http2", "proxy_protocol": "proxy_protocol http2"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A server with a port for each row."""
    place = tmp_path_factory.mktemp("matrix")
    place.chmod(0o755)
    users = place / "users"
    users.write_text("user:{PLAIN}secret\n", encoding="utf-8")
    users.chmod(0o644)
    ca = certificate.authority(place)
    own = certificate.signed(place, ca)
    ports = {row: free_port() for row in [*ROWS, "plain"]}

    def repository(at):
        models.standard_repository(at)
        decoupled.square(at)

    with Upstream() as upstream:
        values = {"users": users, "log": place / "access.log",
                  "upstream": upstream.port, "certificate": own[0],
                  "key": own[1], "authority": ca[0]}
        config = "".join(f"""
    {before}
    server {{
        listen 127.0.0.1:{ports[row]} {LISTEN.get(row, "http2")};
        {server}
        location / {{
            inference health metadata infer generate;
            {location}
        }}
    }}""" for row, (before, server, location) in ROWS.items())
        config += f"""
    server {{
        listen 127.0.0.1:{ports["plain"]};
        location / {{ inference health metadata infer generate; }}
    }}"""
        for name, value in values.items():
            config = config.replace("{%s}" % name, str(value))

        with Server(repository, http=config, access_log="off") as s:
            s.row = ports
            s.access = values["log"]
            s.upstream = upstream
            s.authority = ca[0]
            s.client = certificate.signed(place, ca, "client")
            yield s


def test_every_row_has_a_test():
    for row in ROWS:
        assert f"test_{row}" in globals(), row


each_protocol = pytest.mark.parametrize("protocol", COLUMNS)


@each_protocol
def test_limit_req(site, protocol):
    port = site.row["limit_req"]
    served(send(protocol, port))
    rejected(send(protocol, port), 503)


@each_protocol
def test_limit_conn(site, protocol):
    port = site.row["limit_conn"]
    path, headers, body = message("sse", 200_000)
    with H2(port, window=0, timeout=20 * SLOW) as held:
        stream = held.post(path, headers, body)
        while held.streams[stream].status is None:
            held.step()
        rejected(send(protocol, port), 503)
    assert process.wait_until(
        lambda: send(protocol, port).code in (None, 0)
        and send(protocol, port).status == 200, 20 * SLOW)
    served(send(protocol, port))


@each_protocol
def test_auth_basic(site, protocol):
    port = site.row["auth_basic"]
    rejected(send(protocol, port), 401)
    rejected(send(protocol, port, {"authorization": "Basic eDp5"}), 401)
    served(send(protocol, port, {"authorization": USER}))


@each_protocol
def test_auth_request(site, protocol):
    port = site.row["auth_request"]
    rejected(send(protocol, port), 403)
    served(send(protocol, port, {"x-user": "right"}))


@each_protocol
def test_satisfy(site, protocol):
    port = site.row["satisfy"]
    rejected(send(protocol, port), 401)
    served(send(protocol, port, {"authorization": USER}))


def connect(port):
    return socket.create_connection(("127.0.0.1", port), 20 * SLOW)


@each_protocol
def test_mtls(site, protocol):
    def answer(*chain):
        context = ssl.create_default_context(cafile=site.authority)
        context.set_alpn_protocols(["h2"])
        for pair in chain:
            context.load_cert_chain(*pair)
        return send(protocol, None, made=context.wrap_socket(
            connect(site.row["mtls"]), server_hostname="localhost"))

    rejected(answer(), 400)
    assert served(answer(site.client)).headers["x-subject"] == "CN=client"


@each_protocol
def test_realip(site, protocol):
    port = site.row["realip"]
    rejected(send(protocol, port), 403)
    served(send(protocol, port, {"x-forwarded-for": "192.0.2.7"}))


@each_protocol
def test_proxy_protocol(site, protocol):
    def answer(address):
        made = connect(site.row["proxy_protocol"])
        made.sendall(f"PROXY TCP4 {address} 127.0.0.1 999 1\r\n".encode())
        return send(protocol, None, made=made)

    rejected(answer("192.0.2.8"), 403)
    served(answer("192.0.2.7"))


@each_protocol
def test_map(site, protocol):
    port = site.row["map"]
    rejected(send(protocol, port), 403)
    served(send(protocol, port, {"x-tier": "gold"}))


@each_protocol
def test_geo(site, protocol):
    served(send(protocol, site.row["geo"]))


@each_protocol
def test_split_clients(site, protocol):
    port = site.row["split_clients"]
    halves = {served(send(protocol, port, {"x-key": str(key)}))
              .headers["x-half"] for key in range(24)}
    assert halves == {"a", "b"}


@each_protocol
def test_rewrite(site, protocol):
    served(send(protocol, site.row["rewrite"], prefix="/old"))


@each_protocol
def test_internal(site, protocol):
    port = site.row["internal"]
    rejected(send(protocol, port, prefix="/in"), 404)
    served(send(protocol, port, prefix="/via"))


@each_protocol
def test_limit_except(site, protocol):
    port = site.row["limit_except"]
    served(send(protocol, port))
    with H2(port, timeout=20 * SLOW, decoder=hpack.Decoder()) as h2:
        path, own, body = message(protocol, 2)
        stream = h2.read(h2.post(path, own, body, method="PUT"))
        rejected(Answer(protocol, stream), 403)


@each_protocol
def test_mirror(site, protocol):
    site.upstream.requests.clear()
    served(send(protocol, site.row["mirror"]))
    assert process.wait_until(lambda: site.upstream.requests, 20 * SLOW)
    assert site.upstream.requests[0]["size"] == len(message(protocol, 2)[2])


@each_protocol
def test_ssi(site, protocol):
    """Its commands in an answer of ours would be commands of a client's."""
    port = site.row["ssi"]
    served(send(protocol, port))
    with H2(port, timeout=20 * SLOW, decoder=hpack.Decoder()) as h2:
        stream = h2.read(h2.post("/page", method="GET", body=b""))
        assert stream.body.startswith(b'a {"name":"id_int32"'), stream.body
        assert stream.body.endswith(b"} b")


@each_protocol
def test_addition(site, protocol):
    answer = send(protocol, site.row["addition"])
    if protocol == "rest":
        assert answer.body.endswith(b"}more")
    else:               # of other types
        served(answer)


@each_protocol
def test_sub_filter(site, protocol):
    answer = served(send(protocol, site.row["sub_filter"]))
    if protocol != "grpc":      # of another type
        assert b'"model":' in answer.body and b"model_name" not in answer.body


@each_protocol
def test_limit_rate(site, protocol):
    """More bytes than two seconds may have, one of which can be over when the
    answer begins."""
    begin = time.monotonic()
    served(send(protocol, site.row["limit_rate"],
                {"x-rate": "20" if protocol == "grpc" else "50"}))
    assert time.monotonic() - begin > 0.5


@each_protocol
def test_try_files(site, protocol):
    answer = served(send(protocol, site.row["try_files"]))
    assert answer.headers["x-named"] == "yes"


@each_protocol
def test_gzip(site, protocol):
    answer = served(send(protocol, site.row["gzip"],
                         {"accept-encoding": "gzip"}))
    assert answer.headers.get("content-encoding") == \
        (None if protocol == "grpc" else "gzip")


@each_protocol
def test_add_header(site, protocol):
    port = site.row["add_header"]
    assert served(send(protocol, port)).headers["x-site"] == "here"
    answer = send(protocol, port, prefix="/nothing")
    assert answer.status != 200 or answer.code == 12
    assert answer.headers["x-site"] == "here"


@each_protocol
def test_add_trailer(site, protocol):
    """An error of gRPC is one block, which ends the stream: with another one
    behind it, clients would look for the status there."""
    port = site.row["add_trailer"]
    assert served(send(protocol, port)).headers["x-site"] == "here"
    answer = send(protocol, port, prefix="/nothing")
    if protocol == "grpc":
        assert answer.code == 12 and "x-site" not in answer.headers, answer
    else:
        assert answer.status == 404, answer
        assert answer.headers["x-site"] == "here", answer


@each_protocol
def test_access_log(site, protocol):
    port = site.row["access_log"]
    served(send(protocol, port, {"x-key": protocol}))
    send(protocol, port, {"x-key": "other"}, prefix="/nothing")
    served(send(protocol, port, {"x-key": protocol}))
    assert process.wait_until(
        lambda: site.access.read_text().count(protocol) == 2, 20 * SLOW)
    assert "other" not in site.access.read_text()


@each_protocol
def test_error_page(site, protocol):
    """Of the error of another module."""
    port = site.row["error_page"]
    served(send(protocol, port))
    answer = rejected(send(protocol, port), 503)
    assert answer.headers["x-page"] == "busy"
    assert answer.body == (b"" if protocol == "grpc" else b"busy")


@each_protocol
def test_body_size(site, protocol):
    rejected(send(protocol, site.row["body_size"]), 413)


@each_protocol
def test_keepalive(site, protocol):
    """After answers and errors alike the connection goes on."""
    path, own, body = message(protocol, 2)
    with H2(site.row["keepalive"], timeout=20 * SLOW,
            decoder=hpack.Decoder()) as h2:
        for wrong in (False, True, False):
            stream = h2.read(h2.post(("/no" if wrong else "") + path, own,
                                     body))
            answer = Answer(protocol, stream)
            if wrong:
                rejected(answer, 404)
            else:
                served(answer)

    if protocol == "grpc":
        return

    connection = http.client.HTTPConnection(
        "127.0.0.1", site.row["plain"], timeout=20 * SLOW)
    for wrong, status in ((False, 200), (True, 404), (False, 200)):
        connection.request("POST", ("/no" if wrong else "") + path, body, own)
        made = connection.sock
        response = connection.getresponse()
        assert response.status == status, response.read()
        assert response.read()
        assert connection.sock is made is not None
    connection.close()
