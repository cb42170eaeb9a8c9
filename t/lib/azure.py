"""An Azure Blob Storage for tests: the gate of s3.py, which computes the Shared
Key signature of every request anew, knows access tokens and shared access
signatures, and gives tokens as identity services do."""

import base64
import email.utils
import hashlib
import hmac
import itertools
import json
import urllib.parse
from xml.sax.saxutils import escape

from lib import s3

ACCOUNT = "account1"
KEY = base64.b64encode(b"the account's key").decode()
# a shared access signature
SIGNATURE = "sv=2021-12-02&sr=c&sp=rl&sig=hidden%2Fsignature%3D"
SECRET = "local-secret"             # of App Service's identity endpoint
PAGE = 1000                         # entries of a listing's page
VERSION = "2021-12-02"


class Service(s3.Service):
    name = "as"
    scheme = "as://"
    authorities = "REQUESTS_CA_BUNDLE"

    def __init__(self, pair=None):
        super().__init__(pair)
        self.containers = {}        # name: {blob: (data, ETag)}
        self.etags = itertools.count(0x8DC0000000)
        self.key = KEY
        self.tokens = set()         # which are valid
        self.life = 3600            # of a new token, in seconds
        self.grants = []            # path and query, and form, of each token
        self.public = set()         # containers that anybody may read

    def __enter__(self):
        self.open_gate()
        return self

    def __exit__(self, *_):
        self.close_gate()

    @property
    def url(self):
        return f"{'https' if self.pair else 'http'}://{self.endpoint}"

    def address(self, path):
        return f"as://{ACCOUNT}/{path}"

    def variables(self, mount, **more):
        """more replaces variables; None leaves one out."""
        values = {"AZURE_STORAGE_SERVICE_ENDPOINT": self.url,
                  "AZURE_STORAGE_KEY": self.key,
                  "TRITON_AZURE_MOUNT_DIRECTORY": mount, **more}
        return {k: v for k, v in values.items() if v is not None}

    def bucket(self, name):
        self.containers[name] = {}
        return name

    def put(self, bucket, key, data=b""):
        self.containers[bucket][key] = data, f"0x{next(self.etags):X}"

    def remove(self, bucket, key):
        self.containers[bucket].pop(key, None)

    def revoke(self):
        """Tokens of before are valid no more."""
        with self.gate.lock:
            self.tokens.clear()

    @staticmethod
    def endless_page(keys):
        blobs = "".join(row(f"r/m{i}/", None) for i in range(keys))
        return page(blobs, "more")


class Handler(s3.Handler):
    def do_POST(self):
        self.form = self.rfile.read(int(
            self.headers["Content-Length"])).decode()
        self.do_GET()

    def decide(self, path, query):
        if path == "/metadata/identity/oauth2/token":
            return self.issue("Metadata", "true")
        if path == "/msi/token":
            return self.issue("X-IDENTITY-HEADER", SECRET)
        if self.command == "POST":
            return self.issue(None, None)

        # an emulator's paths begin with the account
        resource = path.removeprefix(f"/{ACCOUNT}")
        container, *name = urllib.parse.unquote(resource)[1:].split("/", 1)
        denied = self.problem(container, path, query)
        return self.deny(*denied) if denied else self.ask_container(
            container, name, query)

    def issue(self, header, value):
        """These give numbers as strings, a tenant does not."""
        service = self.server.service
        form = None if header else self.form
        with self.server.lock:
            service.grants.append((self.path, form))
            token = f"token-{len(service.grants)}"
            service.tokens.add(token)
        if header and self.headers[header] != value:
            return 400, {}, json.dumps({
                "error": "invalid_request",
                "error_description": f"no {header}"}).encode()
        return 200, {"Content-Type": "application/json"}, json.dumps({
            "access_token": token, "token_type": "Bearer",
            "expires_in": str(service.life) if header else service.life,
        }).encode()

    def ask_container(self, container, name, query):
        query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        blobs = self.server.service.containers.get(container)
        if blobs is None:
            return 404, {}, error("ContainerNotFound", "The specified"
                                  " container does not exist.")
        if not name:
            if (query.get("comp"), query.get("restype")) != ("list",
                                                             "container"):
                return 400, {}, error("InvalidQueryParameterValue", "comp")
            return 200, {}, listing(blobs, query)

        if name[0] not in blobs:
            return 404, {}, error("BlobNotFound", "The specified blob does not"
                                  " exist.\nRequestId:1")
        data, etag = blobs[name[0]]
        headers = {"ETag": f'"{etag}"'}
        if self.headers["If-Match"] not in (None, headers["ETag"]):
            return 412, {}, error("ConditionNotMet", "The condition is not"
                                  " met.")
        if self.headers["Range"]:
            first, last = self.headers["Range"].removeprefix("bytes=").split(
                "-")
            return 206, headers, data[int(first):int(last) + 1]
        return 200, headers, data

    def problem(self, container, path, query):
        """(status, code, message) of a request that is denied, or None."""
        service = self.server.service
        text = self.headers["Authorization"]
        if self.headers["x-ms-version"] != VERSION:
            return 400, "InvalidHeaderValue", "x-ms-version"
        if text is None:
            if container in service.public or SIGNATURE in query:
                return None
            if "sig=" in query:
                return 403, "AuthenticationFailed", "Signature did not match."
            return 404, "ResourceNotFound", "The resource does not exist."
        if text.startswith("Bearer "):
            with self.server.lock:
                known = text.removeprefix("Bearer ") in service.tokens
            return None if known else (401, "InvalidAuthenticationInfo",
                                       "The token has expired.")

        signed = base64.b64encode(hmac.new(
            base64.b64decode(service.key), self.string_to_sign(path, query),
            hashlib.sha256).digest()).decode()
        return None if text == f"SharedKey {ACCOUNT}:{signed}" else (
            403, "AuthenticationFailed", "The MAC signature is not the same.")

    def string_to_sign(self, path, query):
        """Shared Key of the Blob service, from its documentation."""
        email.utils.parsedate_to_datetime(self.headers["x-ms-date"])
        lines = ["GET"] + [self.headers[name] or "" for name in (
            "Content-Encoding", "Content-Language", "Content-Length",
            "Content-MD5", "Content-Type", "Date", "If-Modified-Since",
            "If-Match", "If-None-Match", "If-Unmodified-Since", "Range")]
        lines += sorted(f"{name.lower()}:{' '.join(value.split())}"
                        for name, value in self.headers.items()
                        if name.lower().startswith("x-ms-"))
        lines += [f"/{ACCOUNT}{path}"]
        lines += [f"{name.lower()}:{value}" for name, value in sorted(
            urllib.parse.parse_qsl(query, keep_blank_values=True))]
        return "\n".join(lines).encode()


def error(code, text):
    return (f'\ufeff<?xml version="1.0" encoding="utf-8"?><Error><Code>{code}'
            f"</Code><Message>{text}</Message></Error>").encode()


def listing(blobs, query):
    """A page; the marker is the name that the next one begins with."""
    prefix = query.get("prefix", "")
    entries = {}                                # by name; None: a BlobPrefix
    for name in sorted(blobs):
        if not name.startswith(prefix):
            continue
        first, slash, _ = name.removeprefix(prefix).partition("/")
        if "delimiter" in query and slash:
            entries[prefix + first + "/"] = None
        else:
            entries[name] = blobs[name]
    left = [n for n in sorted(entries) if n >= query.get("marker", "")]
    size = min(PAGE, int(query.get("maxresults", PAGE)))
    return page("".join(row(n, entries[n]) for n in left[:size]),
                "".join(left[size:size + 1]))


def page(rows, marker):
    return (f'\ufeff<?xml version="1.0" encoding="utf-8"?><EnumerationResults'
            f' ServiceEndpoint="https://x/" ContainerName="c"><Blobs>{rows}'
            f"</Blobs><NextMarker>{escape(marker)}</NextMarker>"
            "</EnumerationResults>").encode()


def row(name, blob):
    """XML cannot hold all characters."""
    if "\ufffe" in name:
        shown = f'<Name Encoded="true">{urllib.parse.quote(name, "")}</Name>'
    else:
        shown = f"<Name>{escape(name)}</Name>"
    if blob is None:
        return f"<BlobPrefix>{shown}</BlobPrefix>"
    data, etag = blob
    return (f"<Blob>{shown}<Properties><Creation-Time>x</Creation-Time>"
            "<Last-Modified>Sat, 21 Nov 2026 15:24:46 GMT</Last-Modified>"
            f"<Etag>{etag}</Etag><Content-Length>{len(data)}</Content-Length>"
            "</Properties><OrMetadata /></Blob>")


Service.handler = Handler
