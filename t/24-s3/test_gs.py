"""Access tokens of gs:// repositories: how they are asked for, kept and
renewed, and what is told when there are none."""

import json
import threading

import pytest

from lib import gs, models, process
from lib.s3 import IN, upload, works
from lib.server import SLOW

pytestmark = pytest.mark.parametrize("service", ["gs"], indirect=True)


@pytest.fixture(autouse=True)
def fresh(service):
    """No token is left of the test before."""
    service.grants.clear()
    service.tokens.clear()
    service.impersonators.clear()
    yield
    service.life, service.has_account = 3600, True
    service.gate.faults.clear()
    service.gate.bad_signatures.clear()


@pytest.fixture
def far(service, bucket):
    """A repository with model m; its address."""
    upload(service, bucket, "r", lambda f: models.identity(f, "m", IN))
    return service.address(f"{bucket}/r")


def environment(service, mount, **more):
    return service.environment(
        mount, **{"GOOGLE_APPLICATION_CREDENTIALS": None, **more})


@pytest.mark.parametrize("kind, grant", [
    ("service", "jwt-bearer"), ("user", "refresh_token")])
@pytest.mark.parametrize("more", [{}, {"type": None}], ids=["", "untyped"])
def test_an_account_gets_one_token(service, far, serve, mount, kind, grant,
                                   more):
    """Whose request and signature the service of tokens has checked."""
    file = service.key_file(kind, **more)
    works(serve(far, env=environment(
        service, mount, GOOGLE_APPLICATION_CREDENTIALS=file)), "m")
    assert service.kinds() == [grant]
    assert not service.gate.bad_signatures


def test_the_metadata_service_gives_a_token(service, far, serve, mount):
    works(serve(far, env=environment(
        service, mount, GCE_METADATA_HOST=service.endpoint)), "m")
    assert service.kinds() == ["metadata"]
    assert not service.gate.bad_signatures


def test_a_machine_without_an_account_is_anonymous(service, bucket, far, serve,
                                                   mount):
    service.has_account = False
    service.public.add(bucket)
    works(serve(far, env=environment(
        service, mount, GCE_METADATA_HOST=service.endpoint)), "m")
    assert service.kinds() == []


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_requests_of_an_emulator_are_anonymous(service, bucket, far, serve,
                                               mount, scheme):
    service.public.add(bucket)
    works(serve(far, env=environment(
        service, mount, CLOUD_STORAGE_EMULATOR_ENDPOINT=None,
        STORAGE_EMULATOR_HOST=scheme + service.endpoint)), "m")
    assert service.kinds() == []


def test_nobody_is_denied_in_the_services_words(service, far, serve, mount):
    server = serve(far, wait="live", env=environment(service, mount))
    server.wait_log(r"\[error\][^\n]*/r[^\n]*403, AccessDenied: Access denied"
                    r"\.[^\n]*Anonymous caller")


def test_a_credential_file_names_files(service, bucket, far, serve, mount,
                                       tmp_path):
    """The longest prefix counts, and the environment does not."""
    file = tmp_path / "cloud.json"
    file.write_text(json.dumps({"gs": {
        "": "/nowhere", f"gs://{bucket}": str(service.key_file("user"))}}),
        encoding="utf-8")
    env = environment(service, mount, TRITON_CLOUD_CREDENTIAL_PATH=file,
                      GOOGLE_APPLICATION_CREDENTIALS=service.key_file())
    server = serve(far, f"gs://x{bucket}/r", wait="live", env=env)
    assert server.wait_for("/v2/models/m/ready")
    works(server, "m")
    server.wait_log(rf"\[error\][^\n]*gs://x{bucket}/r[^\n]*cloud credentials "
                    "'/nowhere': cannot open it")
    assert service.kinds() == ["refresh_token"]


def test_a_token_that_expires_is_asked_for_again(service, far, serve):
    """A life of no time makes each request ask."""
    service.life = 0
    works(serve(far), "m")
    assert len(service.kinds()) > 2
    assert not service.gate.bad_signatures


def test_a_token_that_is_valid_no_more_is_asked_for_again(
        service, bucket, far, serve):
    server = serve(far, http="    inference_model_control poll "
                   "interval=200ms;\n")
    works(server, "m")
    service.revoke()
    upload(service, bucket, "r", lambda f: models.identity(f, "n", IN))
    assert server.wait_for("/v2/models/n/ready")
    works(server, "n")
    assert service.kinds() == ["jwt-bearer"] * 2
    assert " 401" not in server.log_text()
    assert {problem for _, problem in service.gate.bad_signatures} == {
        "Authentication required."}


def test_requests_of_one_time_ask_for_one_token(service, bucket, serve):
    """The four parts of an object, all of which are answered 401."""
    upload(service, bucket, "r", lambda f: models.identity(
        f, "m", IN).joinpath("1/weights").write_bytes(bytes(32 << 20)))
    service.gate.break_next(kind="status", pattern="weights", times=4,
                            status=401, barrier=threading.Barrier(4))
    works(serve(service.address(f"{bucket}/r")), "m")
    assert service.kinds() == ["jwt-bearer"] * 2


def test_a_token_that_is_not_taken_is_asked_for_twice(service, far, serve):
    """A request asks for another one once."""
    service.gate.break_next(
        kind="status", pattern="list-type", times=2, status=401,
        body=b"<Error><Code>AuthenticationRequired</Code></Error>")
    server = serve(far, wait="live")
    server.wait_log(r"\[error\][^\n]*/r[^\n]*401, AuthenticationRequired")
    assert len(service.kinds()) == 2


@pytest.mark.parametrize("fault", [
    dict(kind="cut before"), dict(kind="cut within"),
    dict(kind="status", status=503), dict(kind="status", status=429),
], ids=lambda f: f["kind"].replace(" ", "-") + str(f.get("status", "")))
def test_trouble_of_the_token_service_that_passes_is_not_noticed(
        service, far, serve, fault):
    service.gate.break_next(pattern="/token", times=2, **fault)
    works(serve(far), "m")


@pytest.mark.parametrize("keys, kind, words", [
    ({"refresh_token": "old"}, "user", "http://[^ ]*/token: HTTP status 400, "
     "invalid_grant: Bad Request"),
    ({"client_email": "other"}, "service", "invalid_grant: claims"),
    ({"private_key": "no key"}, "service",
     '"private_key": it is no RSA key in PEM'),
    ({"client_secret": None}, "user", '"client_secret" is missing'),
    ({"type": "gdch_service_account"}, "user",
     '"type" must be authorized_user, service_account, external_account or '
     "impersonated_service_account, not 'gdch_service_account'"),
    ({"token_uri": "http://example.com/token"}, "user",
     '"token_uri" must begin with https://'),
], ids=lambda v: next(iter(v)) if isinstance(v, dict) else "")
def test_a_file_that_gives_no_token_is_named(service, far, serve, mount, keys,
                                             kind, words):
    file = service.key_file(kind, **keys)
    server = serve(far, wait="live", env=environment(
        service, mount, GOOGLE_APPLICATION_CREDENTIALS=file))
    server.wait_log(rf"\[error\][^\n]*/r[^\n]*cloud credentials '{file}': "
                    rf"[^\n]*{words}")
    log = server.log_text()
    for secret in ("s&ecret", "s%26ecret", "PRIVATE KEY", "ya29"):
        assert secret not in log


def source(service, kind):
    if kind == "file":
        return {"file": str(service.subject_file(f"{gs.SUBJECT}\n"))}
    if kind == "json":
        text = json.dumps({"id_token": gs.SUBJECT})
        return {"file": str(service.subject_file(text)), "format": {
            "type": "json", "subject_token_field_name": "id_token"}}
    return {"url": f"{service.local}/subject",
            "headers": {"Metadata": "True"}, "format": {
                "type": "json", "subject_token_field_name": "value"}}


@pytest.mark.parametrize("kind", ["file", "json", "url"])
def test_another_providers_token_is_exchanged(service, far, serve, mount,
                                              kind):
    """A proxy does not see what goes to this machine unencrypted."""
    file = service.external_file(credential_source=source(service, kind))
    works(serve(far, env=environment(
        service, mount, GOOGLE_APPLICATION_CREDENTIALS=file,
        http_proxy="http://127.0.0.1:1", no_proxy="127.0.0.1")), "m")
    assert service.grants == [("exchange", gs.SCOPE)]
    assert not service.gate.bad_signatures


@pytest.mark.parametrize("life, wanted", [(None, "3600s"), (600, "600s")])
def test_an_exchanged_token_impersonates_an_account(service, far, serve, mount,
                                                    life, wanted):
    more = {} if life is None else {
        "service_account_impersonation": {"token_lifetime_seconds": life}}
    file = service.external_file(
        service_account_impersonation_url=service.target_url, **more)
    works(serve(far, env=environment(
        service, mount, GOOGLE_APPLICATION_CREDENTIALS=file,
        http_proxy="http://127.0.0.1:1", no_proxy="127.0.0.1")), "m")
    assert service.grants == [
        ("exchange", gs.ALL),
        ("impersonate", {"scope": [gs.SCOPE], "lifetime": wanted,
                         "delegates": []})]
    assert not service.gate.bad_signatures


@pytest.mark.parametrize("kind, grant", [
    ("service", "jwt-bearer"), ("user", "refresh_token"),
    ("external", "exchange")])
def test_an_account_impersonates_another(service, far, serve, mount, kind,
                                         grant):
    first = service.external_file() if kind == "external" \
        else service.key_file(kind)
    file = service.key_file(
        type="impersonated_service_account", private_key=None,
        service_account_impersonation_url=service.target_url,
        delegates=["projects/-/serviceAccounts/d@x.com"],
        source_credentials=json.loads(first.read_text(encoding="utf-8")))
    works(serve(far, env=environment(
        service, mount, GOOGLE_APPLICATION_CREDENTIALS=file)), "m")
    assert service.kinds() == [grant, "impersonate"]
    assert service.grants[1][1]["delegates"] == [
        "projects/-/serviceAccounts/d@x.com"]


def test_the_other_providers_token_is_read_anew(service, far, serve, mount):
    """Its provider replaces the file; a token of no life ends at once."""
    service.life = 0
    subject = service.subject_file()
    file = service.external_file(
        credential_source={"file": str(subject)},
        service_account_impersonation_url=service.target_url)
    server = serve(far, http="    inference_model_control explicit;\n",
                   parts="health metadata config infer repository",
                   wait="live", env=environment(
                       service, mount, GOOGLE_APPLICATION_CREDENTIALS=file))
    load = "/v2/repository/models/m/load"
    assert server.post(load, b"").status == 200
    subject.write_text("expired", encoding="utf-8")
    answer = server.post(load, b"")
    assert answer.status >= 400 and b"/sts: HTTP status 400, invalid_grant: " \
        b"no such exchange" in answer.body, answer
    subject.write_text(gs.SUBJECT, encoding="utf-8")
    assert server.post(load, b"").status == 200


@pytest.mark.parametrize("keys, words", [
    ({"audience": "other"}, "/sts: HTTP status 400, invalid_grant: no such"),
    ({"credential_source": {"file": "/nowhere"}},
     "\"credential_source\": '/nowhere': cannot open it"),
    ({"credential_source": {"url": "http://127.0.0.1:1/hidden?hidden"}},
     '"credential_source": http://127.0.0.1:1/hidden: '),
    ({"credential_source": {"file": "/dev/null"}},
     '"credential_source": its token is empty'),
    ({"credential_source": {"file": "/dev/null", "format": {
        "type": "json", "subject_token_field_name": "a"}}},
     '"credential_source": it is no JSON with the string "a"'),
    ({"service_account_impersonation_url": "/v1/nobody"},
     "/v1/nobody: HTTP status 404"),
    ({"service_account_impersonation_url": gs.TARGET, "token": "forgotten"},
     "HTTP status 403, PERMISSION_DENIED: Permission 'iam.serviceAccounts."),
], ids=lambda v: next(iter(v)) if isinstance(v, dict) else "")
def test_an_exchange_that_gives_no_token_is_told(service, far, serve, mount,
                                                 keys, words):
    url = "service_account_impersonation_url"
    if url in keys:
        keys = {**keys, url: f"{service.local}{keys[url]}"}
    if keys.pop("token", None):
        service.gate.break_next(
            kind="status", pattern="generateAccessToken", times=10 ** 6,
            status=403, body=json.dumps({"error": {
                "code": 403, "status": "PERMISSION_DENIED", "message":
                "Permission 'iam.serviceAccounts.getAccessToken' denied",
            }}).encode())
    file = service.external_file(**keys)
    server = serve(far, wait="live", env=environment(
        service, mount, GOOGLE_APPLICATION_CREDENTIALS=file))
    line = server.wait_log(rf"\[error\][^\n]*/r[^\n]*cloud credentials "
                           rf"'{file}': [^\n]*", seconds=30).group()
    assert words in line
    log = server.log_text()
    for secret in ("ya29", gs.SUBJECT, "?hidden"):
        assert secret not in log


def test_an_answer_without_a_token_is_told(service, far, serve):
    service.gate.break_next(kind="status", pattern="/token", times=10 ** 6,
                            status=200, body=b'{"secret": "ya29.x')
    server = serve(far, wait="live")
    server.wait_log(r"\[error\][^\n]*/r[^\n]*/token: the answer is no JSON")
    assert "ya29" not in server.log_text()


@pytest.mark.parametrize("size, body", [
    (100, b"longer" * 100), (100, b"shorter"), (20 << 20, bytes(1000))],
    ids=["longer", "shorter", "parts"])
def test_an_object_that_the_service_decompresses_is_named(
        service, bucket, far, serve, size, body):
    """It does so without Content-Length, and looks at no range."""
    service.put(bucket, "r/bad/config.pbtxt",
                models.identity_config("bad", IN).encode())
    service.put(bucket, "r/bad/1/weights", bytes(size))
    service.gate.break_next(
        kind="headers", pattern="weights", times=10 ** 6, body=body,
        status=200, headers={"X-Goog-Stored-Content-Encoding": "gzip",
                             "X-Goog-Stored-Content-Length": str(size)})
    server = serve(far, wait="live")
    assert server.wait_for("/v2/models/m/ready")
    line = server.wait_log(r"\[error\][^\n]*bad[^\n]*weights[^\n]*").group()
    assert 'the metadata "Content-Encoding: gzip"' in line
    path = f"/{bucket}/r/bad/1/weights"
    assert service.gate.asked[path] <= 4            # not again and again


def test_an_object_of_no_encoding_is_taken(service, bucket, far, serve):
    service.gate.break_next(
        kind="headers", pattern="config", times=10 ** 6,
        headers={"X-Goog-Stored-Content-Encoding": "identity"})
    works(serve(far), "m")


def test_no_such_service(service, serve, mount):
    server = serve("gs://bucket/r", wait="live", env=environment(
        service, mount, CLOUD_STORAGE_EMULATOR_ENDPOINT="http://127.0.0.1:1"))
    server.wait_log(r"\[error\][^\n]*gs://bucket/r[^\n]*onnect", seconds=30)


def test_models_serve_while_tokens_are_waited_for(service, far, mount,
                                                  make_server):
    service.gate.fall_silent()
    try:
        server = make_server(
            lambda f: models.identity(f, "near", IN), wait="live",
            http=f"    inference_repository {far};\n",
            inference_env=service.environment(mount))
        assert server.wait_for("/v2/models/near/ready")
        assert process.wait_until(lambda: service.gate.kept > 0, 20 * SLOW)
        works(server, "near")
        assert server.get("/v2/health/ready").status == 400
    finally:
        service.gate.speak()
    assert server.wait_for("/v2/health/ready")
    works(server, "m")


def test_the_end_waits_for_no_token(service, far, serve):
    """stop() looks for what is left and kills nobody."""
    service.gate.fall_silent()
    try:
        server = serve(far, wait="live")
        assert process.wait_until(lambda: service.gate.kept > 0, 20 * SLOW)
        server.stop()
    finally:
        service.gate.speak()


def test_a_key_of_another_account_is_told(service, far, serve, mount,
                                         tmp_path):
    key = gs.Account(tmp_path).pem.read_text(encoding="ascii")
    file = service.key_file(private_key=key)
    server = serve(far, wait="live", env=environment(
        service, mount, GOOGLE_APPLICATION_CREDENTIALS=file))
    server.wait_log(rf"\[error\][^\n]*'{file}'[^\n]*Invalid JWT Signature")
