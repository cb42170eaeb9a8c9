"""A Google Cloud Storage for tests: the gate of s3.py asks for access tokens
instead of signatures, and gives them as Google's services of tokens do."""

import base64
import hashlib
import json
import subprocess
import time
import urllib.parse

from lib import s3

SCOPE = "https://www.googleapis.com/auth/devstorage.read_only"
EMAIL = "robot@project.iam.gserviceaccount.com"
USER = {"client_id": "id+1", "client_secret": "s&ecret",
        "refresh_token": "1//re=fresh"}
ALL = "https://www.googleapis.com/auth/cloud-platform"
AUDIENCE = "//iam.googleapis.com/projects/1/workloadIdentityPools/p"
JWT = "urn:ietf:params:oauth:token-type:jwt"
SUBJECT = "other.provider's+token"
TARGET = "/v1/projects/-/serviceAccounts/target@x.com:generateAccessToken"
METADATA = "/computeMetadata/v1/instance/service-accounts/default/token"
# the signature's padding: RFC 8017, section 9.2, of SHA-256
DIGEST_INFO = bytes.fromhex("3031300d060960864801650304020105000420")


class Account:
    """An RSA key in files of directory: the account of a service."""

    def __init__(self, directory):
        self.pem = directory / "account.pem"
        subprocess.run(["openssl", "genrsa", "-out", self.pem, "2048"],
                       check=True, capture_output=True)
        done = subprocess.run(
            ["openssl", "rsa", "-in", self.pem, "-modulus", "-noout"],
            check=True, capture_output=True, text=True)
        self.modulus = int(done.stdout.strip().partition("=")[2], 16)

    def signed(self, data, signature):
        """Whether signature is RS256 of data."""
        size = (self.modulus.bit_length() + 7) // 8
        tail = b"\0" + DIGEST_INFO + hashlib.sha256(data).digest()
        wanted = b"\0\1" + b"\xff" * (size - 2 - len(tail)) + tail
        number = pow(int.from_bytes(signature, "big"), 65537, self.modulus)
        return len(signature) == size and number.to_bytes(
            size, "big") == wanted


class Service(s3.Service):
    name = "gs"
    scheme = "gs://"

    def __init__(self, directory):
        super().__init__()
        self.directory = directory
        self.account = Account(directory)
        self.life = 3600            # of tokens, in seconds
        self.tokens = set()         # which are valid
        self.grants = []            # kind and what was shown, of each token
        self.public = set()         # buckets that anybody may read
        self.has_account = True     # the machine, at the metadata service
        self.impersonators = set()  # tokens of those who may

    def address(self, path):
        return f"gs://{path}"

    @property
    def token_uri(self):
        return f"http://{self.endpoint}/token"

    def key_file(self, kind="service", **more):
        """A file of credentials; more replaces keys, None removes one."""
        keys = dict(type="authorized_user", **USER) if kind == "user" else {
            "type": "service_account", "client_email": EMAIL,
            "private_key_id": "key-1",
            "private_key": self.account.pem.read_text(encoding="ascii")}
        keys = {**keys, "token_uri": self.token_uri, **more}
        path = self.directory / f"{kind}-{len(list(self.directory.iterdir()))}"
        path.write_text(json.dumps({k: v for k, v in keys.items()
                                    if v is not None}), encoding="utf-8")
        return path

    @property
    def local(self):
        """A name that no_proxy does not have."""
        return f"http://localhost:{self.port}"

    @property
    def target_url(self):
        return f"{self.local}{TARGET}"

    def subject_file(self, text=SUBJECT):
        files = len(list(self.directory.iterdir()))
        path = self.directory / f"subject-{files}"
        path.write_text(text, encoding="utf-8")
        return path

    def external_file(self, **more):
        """Credentials of another provider, whose token is in a file."""
        keys = {"type": "external_account", "audience": AUDIENCE,
                "subject_token_type": JWT,
                "token_url": f"{self.local}/sts", **more}
        if "credential_source" not in keys:
            keys["credential_source"] = {"file": str(self.subject_file())}
        return self.key_file("external", **{
            "token_uri": None, "client_email": None, "private_key": None,
            "private_key_id": None, **keys})

    def variables(self, mount, **more):
        """more replaces variables; None leaves one out."""
        values = {"CLOUD_STORAGE_EMULATOR_ENDPOINT":
                  f"http://{self.endpoint}/",
                  "GOOGLE_APPLICATION_CREDENTIALS": None,
                  "TRITON_GCS_MOUNT_DIRECTORY": mount, **more}
        if "GOOGLE_APPLICATION_CREDENTIALS" not in more:
            values["GOOGLE_APPLICATION_CREDENTIALS"] = self.key_file()
        return {k: v for k, v in values.items() if v is not None}

    def kinds(self):
        with self.gate.lock:
            return [kind for kind, _ in self.grants]

    def revoke(self):
        """Tokens of before are valid no more."""
        with self.gate.lock:
            self.tokens.clear()


class Handler(s3.Handler):
    def do_POST(self):
        self.body = self.rfile.read(
            int(self.headers["Content-Length"])).decode()
        self.form = dict(urllib.parse.parse_qsl(self.body,
                                                keep_blank_values=True))
        self.do_GET()

    def decide(self, path, query):
        service = self.server.service
        if path == METADATA:
            return self.metadata(service)
        if path == "/subject":
            return self.subject()
        if self.command == "POST":
            ask = {"/token": self.grant, "/sts": self.exchange,
                   TARGET: self.impersonate}
            return ask[path](service) if path in ask else (404, {}, b"")

        shown = self.headers.get("Authorization")
        bucket = urllib.parse.unquote(path).split("/")[1]
        if shown is None and bucket not in service.public:
            return self.deny(403, "AccessDenied", "Access denied.",
                             "Anonymous caller does not have access.")
        with self.server.lock:
            known = shown is None or shown in service.tokens
        if not known:
            return self.deny(401, "AuthenticationRequired",
                             "Authentication required.")
        status, headers, body = self.ask_inner()
        return status, headers, body.replace(
            b"<LastModified>", b"<Generation>1700000000000001</Generation>"
            b"<MetaGeneration>1</MetaGeneration><LastModified>")

    def inner_credentials(self):
        return {"Authorization": f"AWS4-HMAC-SHA256 Credential={s3.KEY_ID}/"
                f"20260101/{s3.REGION}/s3/aws4_request, SignedHeaders=host, "
                "Signature=0"}

    def metadata(self, service):
        if self.headers.get("Metadata-Flavor") != "Google":
            return self.deny(403, "Forbidden", "no Metadata-Flavor")
        if not service.has_account:
            return 404, {}, b"<html>not found</html>"
        return self.issue(service, "metadata", None)

    def grant(self, service):
        kind = self.form.get("grant_type")
        if kind == "refresh_token":
            shown = {k: v for k, v in self.form.items() if k != "grant_type"}
            problem = None if shown == USER else "Bad Request"
            scopes = SCOPE, ALL                     # that the user has given
        elif kind == "urn:ietf:params:oauth:grant-type:jwt-bearer":
            shown, problem = self.read_assertion(service)
            scopes = shown["scope"],
        else:
            shown, problem = None, f"unknown grant {kind}"
        if problem:
            body = {"error": "invalid_grant", "error_description": problem}
            return 400, {}, json.dumps(body).encode()
        return self.issue(service, kind.rpartition(":")[2], shown, scopes)

    def subject(self):
        """Another provider's token, for those who may have it."""
        if self.headers["Metadata"] != "True":
            return 403, {}, b"no Metadata"
        return 200, {}, json.dumps({"value": SUBJECT}).encode()

    def exchange(self, service):
        """RFC 8693."""
        shown = dict(self.form)
        scope = shown.pop("scope", None)
        wanted = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type":
                "urn:ietf:params:oauth:token-type:access_token",
            "audience": AUDIENCE, "subject_token_type": JWT,
            "subject_token": SUBJECT}
        if shown != wanted or scope not in (SCOPE, ALL):
            return 400, {}, json.dumps({
                "error": "invalid_grant",
                "error_description": "no such exchange"}).encode()
        return self.issue(service, "exchange", scope, (scope,))

    def impersonate(self, service):
        """generateAccessToken of the IAM Service Account Credentials API."""
        with self.server.lock:
            known = self.headers["Authorization"] in service.impersonators
        if not known or self.headers["Content-Type"] != "application/json":
            return 403, {}, json.dumps({"error": {
                "code": 403, "status": "PERMISSION_DENIED", "message":
                "Permission 'iam.serviceAccounts.getAccessToken' denied",
            }}).encode()
        asked = json.loads(self.body)
        assert asked["scope"] == [SCOPE], asked
        _, _, body = self.issue(service, "impersonate", asked)
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ",
                            time.gmtime(time.time() + service.life))
        return 200, {}, json.dumps({
            "accessToken": json.loads(body)["access_token"],
            "expireTime": end}).encode()

    def read_assertion(self, service):
        """(claims, problem)"""
        text = self.form["assertion"].encode()
        signed, _, signature = text.rpartition(b".")
        header, claims = (json.loads(decoded(p)) for p in signed.split(b"."))
        now = time.time()
        if not service.account.signed(signed, decoded(signature)):
            return claims, "Invalid JWT Signature."
        if header != {"alg": "RS256", "typ": "JWT", "kid": "key-1"}:
            return claims, f"header {header}"
        if claims["aud"] != service.token_uri or claims["iss"] != EMAIL \
                or claims["scope"] not in (SCOPE, ALL):
            return claims, f"claims {claims}"
        if not (now - 60 < claims["iat"] <= now + 1
                and claims["exp"] == claims["iat"] + 3600):
            return claims, "Invalid JWT: iat or exp"
        return claims, None

    def issue(self, service, kind, shown, scopes=(SCOPE,)):
        with self.server.lock:
            service.grants.append((kind, shown))
            token = f"ya29.{kind}-{len(service.grants)}"
            if SCOPE in scopes:
                service.tokens.add(f"Bearer {token}")
            if ALL in scopes:
                service.impersonators.add(f"Bearer {token}")
        return 200, {}, json.dumps({
            "access_token": token, "expires_in": service.life,
            "token_type": "Bearer"}).encode()


def decoded(text):
    return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))


Service.handler = Handler
