"""An S3 service for tests: moto behind a gate that checks and breaks.

The gate computes the signature of every request anew, counts what was asked
for, and does to chosen requests what networks and services do.
"""

import collections
import hashlib
import hmac
import http.client
import http.server
import logging
import pathlib
import re
import socket
import ssl
import tempfile
import threading
import time
import urllib.parse

import boto3
from moto.server import ThreadedMotoServer

from lib.wire import tensor

KEY_ID, SECRET, REGION = "test-key", "test/secret+key", "eu-test-1"
IN = [("IN", "FP32", [-1])]         # of the models that works() asks


def upload(service, bucket, prefix, fill):
    with tempfile.TemporaryDirectory() as directory:
        fill(pathlib.Path(directory))
        service.upload(bucket, prefix, pathlib.Path(directory))


def works(server, model, value=1.5):
    answer = server.infer(model, {"inputs": [
        tensor("IN", "FP32", [2], [value, 2])]})
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"] == [value, 2]


class Service:
    """with Service() as s: s.put("bucket", "key", b"...")

    pair: (certificate, key) of a service that speaks TLS."""

    name = "s3"
    scheme = "s3://"
    authorities = "AWS_CA_BUNDLE"       # variable: those that a core trusts

    def __init__(self, pair=None):
        self.pair = pair

    def __enter__(self):
        self.moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0,
                                       verbose=False)
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self.moto.start()
        host, port = self.moto.get_host_and_port()
        self.inner = (host, port)
        self.client = boto3.client(
            "s3", endpoint_url=f"http://{host}:{port}", region_name=REGION,
            aws_access_key_id=KEY_ID, aws_secret_access_key=SECRET)
        self.open_gate()
        return self

    def open_gate(self):
        self.gate = Gate(self, self.handler)
        if self.pair:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.pair)
            self.gate.socket = context.wrap_socket(self.gate.socket,
                                                   server_side=True)
        self.port = self.gate.server_address[1]
        threading.Thread(target=self.gate.serve_forever, daemon=True).start()

    def close_gate(self):
        self.gate.shutdown()
        self.gate.server_close()

    def __exit__(self, *_):
        self.close_gate()
        self.moto.stop()

    @property
    def endpoint(self):
        return f"127.0.0.1:{self.port}"

    def address(self, path):
        scheme = "https://" if self.pair else ""
        return f"s3://{scheme}{self.endpoint}/{path}"

    def variables(self, mount, **more):
        """The environment of a core that asks this service."""
        return dict(AWS_ACCESS_KEY_ID=KEY_ID, AWS_SECRET_ACCESS_KEY=SECRET,
                    AWS_DEFAULT_REGION=REGION,
                    TRITON_AWS_MOUNT_DIRECTORY=mount, **more)

    def environment(self, mount, **more):
        """The same as lines of inference_env."""
        return [f'"{k}={v}"'
                for k, v in self.variables(mount, **more).items()]

    def bucket(self, name):
        self.client.create_bucket(Bucket=name, CreateBucketConfiguration={
            "LocationConstraint": REGION})
        return name

    def put(self, bucket, key, data=b""):
        self.client.put_object(Bucket=bucket, Key=key, Body=data)

    def remove(self, bucket, key):
        self.client.delete_object(Bucket=bucket, Key=key)

    @staticmethod
    def endless_page(keys):
        """Of a listing that always has more."""
        return b"<ListBucketResult><IsTruncated>true</IsTruncated>" \
            b"<NextContinuationToken>more</NextContinuationToken>" + b"".join(
                b"<CommonPrefixes><Prefix>r/m%d/</Prefix></CommonPrefixes>" % i
                for i in range(keys)) + b"</ListBucketResult>"

    def upload(self, bucket, prefix, directory):
        """A repository directory, file by file; empty directories as marks."""
        for path in sorted(directory.rglob("*")):
            name = path.relative_to(directory).as_posix()
            key = f"{prefix}/{name}" if prefix else name
            if path.is_file():
                self.put(bucket, key, path.read_bytes())
            elif not any(path.iterdir()):
                self.put(bucket, key + "/")


class Gate(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, service, handler):
        super().__init__(("127.0.0.1", 0), handler)
        self.service = service
        self.lock = threading.Lock()
        self.asked = collections.Counter()      # by path
        self.bytes = 0                          # sent in bodies
        self.bad_signatures = []                # requests not allowed
        self.secrets = {KEY_ID: SECRET}
        self.faults = []
        self.speaks = threading.Event()         # else nobody is answered
        self.speaks.set()
        self.kept = 0                           # who waits now

    def fall_silent(self):
        """Requests are taken and not answered, until speak()."""
        self.speaks.clear()

    def speak(self):
        self.speaks.set()

    def break_next(self, kind, pattern="", times=1, **how):
        """Does kind to the next requests whose path and query match."""
        with self.lock:
            self.faults.append(dict(kind=kind, pattern=re.compile(pattern),
                                    times=times, **how))

    def fault_for(self, target):
        with self.lock:
            for fault in self.faults:
                if fault["times"] > 0 and fault["pattern"].search(target):
                    fault["times"] -= 1
                    return fault
        return None

    def handle_error(self, request, client_address):
        pass                                    # the core cut it off


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        gate = self.server
        path, _, query = self.path.partition("?")
        with gate.lock:
            gate.asked[urllib.parse.unquote(path)] += 1

        with gate.lock:
            gate.kept += 1
        gate.speaks.wait(600)
        with gate.lock:
            gate.kept -= 1

        fault = gate.fault_for(self.path) or {"kind": None}
        if "barrier" in fault:
            fault["barrier"].wait(600)          # for others of this fault
        if fault["kind"] == "cut before":
            self.cut()
            return
        if fault["kind"] == "status":
            self.answer(fault["status"], {}, fault.get("body", b""))
            return
        if fault["kind"] == "slow":
            time.sleep(fault["seconds"])

        status, headers, body = self.decide(path, query)
        if fault["kind"] == "etag":
            headers["ETag"] = '"0123456789abcdef0123456789abcdef"'
        if fault["kind"] == "headers":
            headers |= fault["headers"]
            body = fault.get("body", body)
            status = fault.get("status", status)
        if fault["kind"] == "longer":
            body += bytes(1 << 20)
        if fault["kind"] == "cut within":
            self.answer(status, headers, body, cut=len(body) // 2)
            return
        self.answer(status, headers, body)

    def decide(self, path, query):
        """(status, headers, body)"""
        problem = self.signature_problem(path, query)
        return self.ask_inner() if problem is None else self.deny(
            403, "SignatureDoesNotMatch", problem)

    def deny(self, status, code, message, details=""):
        with self.server.lock:
            self.server.bad_signatures.append((self.path, message))
        if details:
            details = f"<Details>{details}</Details>"
        return status, {}, (f"<Error><Code>{code}</Code><Message>{message}"
                            f"</Message>{details}</Error>").encode()

    def ask_inner(self):
        connection = http.client.HTTPConnection(*self.server.service.inner)
        headers = {k: v for k, v in self.headers.items()
                   if k.lower() in ("range", "if-match")}
        headers["Host"] = "127.0.0.1"
        headers |= self.inner_credentials()
        connection.request("GET", self.path, headers={
            k: v for k, v in headers.items() if v})
        answer = connection.getresponse()
        body = answer.read()
        headers = {k: v for k, v in answer.getheaders() if k.lower() in
                   ("etag", "content-type", "content-range", "last-modified")}
        connection.close()
        return answer.status, headers, body

    def inner_credentials(self):
        """The inner service looks at keys only by name."""
        return {"Authorization": self.headers.get("Authorization", ""),
                "X-Amz-Date": self.headers.get("X-Amz-Date", "")}

    def answer(self, status, headers, body, cut=None):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with self.server.lock:
            self.server.bytes += len(body)
        if cut is not None:
            self.wfile.write(body[:cut])
            self.wfile.flush()
            self.cut()
            return
        self.wfile.write(body)

    def cut(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    # ---- AWS Signature Version 4, from its documentation

    def signature_problem(self, path, query):
        text = self.headers.get("Authorization")
        if text is None:
            return "not signed"
        match = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/"
            r"aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})",
            text)
        if not match:
            return f"malformed: {text}"
        key_id, day, region, names, signature = match.groups()
        secret = self.server.secrets.get(key_id)
        if secret is None:
            return f"unknown key {key_id}"

        names = names.split(";")
        for wanted in ("host", "x-amz-content-sha256", "x-amz-date"):
            if wanted not in names:
                return f"{wanted} is not signed"
        if names != sorted(names):
            return "signed headers are not sorted"
        payload = self.headers["x-amz-content-sha256"]
        query = "&".join(sorted(query.split("&")))
        lines = "".join(f"{n}:{' '.join(self.headers[n].split())}\n"
                        for n in names)
        request = f"GET\n{path}\n{query}\n{lines}\n{';'.join(names)}\n{payload}"
        scope = f"{day}/{region}/s3/aws4_request"
        to_sign = "\n".join([
            "AWS4-HMAC-SHA256", self.headers["x-amz-date"], scope,
            hashlib.sha256(request.encode()).hexdigest()])
        key = ("AWS4" + secret).encode()
        for part in (day, region, "s3", "aws4_request", to_sign):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return None if key.hex() == signature else f"signature of {request!r}"


Service.handler = Handler
