"""How requests to an Azure Blob Storage are authorized."""

import json

import pytest

from lib import models
from lib.azure import ACCOUNT, KEY, SECRET, SIGNATURE
from lib.s3 import IN, upload, works

pytestmark = pytest.mark.parametrize("service", ["as"], indirect=True)

ALL_PARTS = "health metadata config infer repository"


@pytest.fixture
def model(service, bucket):
    """Address of a repository with model m."""
    upload(service, bucket, "r", lambda f: models.identity(f, "m", IN))
    yield service.address(f"{bucket}/r")
    service.gate.bad_signatures.clear()
    service.gate.faults.clear()
    service.life = 3600


def test_an_endpoint_with_the_account_in_its_path(service, model, serve,
                                                  mount):
    """As an emulator's; the account of the environment replaces the
    address's."""
    server = serve(model.replace(ACCOUNT, "other"), env=service.environment(
        mount, AZURE_STORAGE_ACCOUNT=ACCOUNT,
        AZURE_STORAGE_SERVICE_ENDPOINT=f"{service.url}/{ACCOUNT}/"))
    works(server, "m")
    assert not service.gate.bad_signatures


def test_an_account_with_its_domain(service, model, serve):
    works(serve(model.replace(ACCOUNT, f"{ACCOUNT}.blob.core.windows.net")),
          "m")
    assert not service.gate.bad_signatures


def test_a_wrong_key_is_told_with_the_services_words(service, model, serve,
                                                     mount):
    server = serve(model, wait="live", env=service.environment(
        mount, AZURE_STORAGE_KEY="d3Jvbmc="))
    server.wait_log(r"\[error\][^\n]*403, AuthenticationFailed: The MAC")
    assert "d3Jvbmc=" not in server.log_text()


@pytest.mark.parametrize("name, value, words", [
    ("AZURE_STORAGE_KEY", "hidden!key",
     "the key of the storage account is not base64"),
    ("AZURE_STORAGE_AUTH_TYPE", "sas", "AZURE_STORAGE_AUTH_TYPE: 'sas'"),
    ("AZURE_STORAGE_SERVICE_ENDPOINT", "BlobEndpoint=http://h;sig=hidden",
     "AZURE_STORAGE_SERVICE_ENDPOINT is not http:// or https://"),
    ("AZURE_STORAGE_SERVICE_ENDPOINT", "http://127.0.0.1:1/a?sig=hidden",
     "AZURE_STORAGE_SERVICE_ENDPOINT is not http:// or https://"),
    ("AZURE_STORAGE_SERVICE_ENDPOINT", "http://127.0.0.1:1/a",
     "127.0.0.1 port 1"),
])
def test_a_wrong_variable_is_named(service, model, serve, mount, name, value,
                                   words):
    server = serve(model, wait="live",
                   env=service.environment(mount, **{name: value}))
    line = server.wait_log(r"\[error\][^\n]*can't be listed[^\n]*",
                           seconds=30).group()
    assert words in line
    assert "hidden" not in line


def test_a_shared_access_signature_in_the_address(
        service, bucket, model, serve, mount):
    """It is shown nowhere; the container has no other model."""
    env = service.environment(mount, AZURE_STORAGE_KEY=None)
    models_and_metrics = f"{ALL_PARTS} metrics"
    server = serve(f"{model}?{SIGNATURE}", env=env, parts=models_and_metrics,
                   http="    inference_model_namespacing on;\n"
                   "    inference_model_control poll interval=200ms;\n")
    works(server, "m")
    assert not service.gate.bad_signatures
    shown = server.get("/metrics").body + server.post(
        "/v2/repository/index", b"").body
    assert model.encode() in shown and b"sig=" not in shown

    service.remove(bucket, "r/m/config.pbtxt")
    service.put(bucket, "r/m/config.pbtxt", b"wrong")
    server.wait_log(r"\[error\][^\n]*" + model)
    assert "hidden" not in server.log_text()


def test_a_signature_goes_to_its_account_alone(service, bucket, model, serve,
                                               mount, tmp_path):
    """Other credentials are not looked for: neither the environment's account
    nor a file without one for the address."""
    file = tmp_path / "credentials.json"
    file.write_text('{"s3": {}}')
    for more in ({"AZURE_STORAGE_ACCOUNT": "other",
                  "AZURE_STORAGE_AUTH_TYPE": "sas"},
                 {"TRITON_CLOUD_CREDENTIAL_PATH": file}):
        works(serve(f"{model}?{SIGNATURE}",
                    env=service.environment(mount, **more)), "m")
    assert not service.gate.bad_signatures


def test_a_shared_access_signature_that_has_ended(service, bucket, model,
                                                  serve, mount):
    """Another one comes with a reload."""
    env = service.environment(mount, AZURE_STORAGE_KEY=None)
    server = serve(f"{model}?sv=1&sig=hidden", wait="live", env=env)
    server.wait_log(r"\[error\][^\n]*403, AuthenticationFailed")
    server.write_config(
        http=f"    inference_repository {model}?{SIGNATURE};\n")
    server.signal("HUP")
    assert server.wait_for("/v2/models/m/ready")
    works(server, "m")
    assert "hidden" not in server.log_text()


def test_a_container_that_anybody_may_read(service, bucket, model, serve,
                                           mount):
    env = service.environment(mount, AZURE_STORAGE_KEY=None)
    server = serve(model, env=env, wait="live",
                   http="    inference_model_control poll interval=200ms;\n")
    server.wait_log(r"\[error\][^\n]*404, ResourceNotFound")
    service.public.add(bucket)
    assert server.wait_for("/v2/models/m/ready")
    works(server, "m")


def identity(service, mount, kind, **more):
    return service.environment(
        mount, AZURE_STORAGE_KEY=None, AZURE_STORAGE_AUTH_TYPE=kind, **more)


def metadata(service):
    return {"AZURE_POD_IDENTITY_AUTHORITY_HOST": service.url}


@pytest.mark.parametrize("kind", ["managed_identity", "default"])
def test_a_machines_identity(service, model, serve, mount, kind):
    """A proxy does not see it."""
    service.grants.clear()
    host = f"http://localhost:{service.port}"
    server = serve(model, env=identity(
        service, mount, kind, AZURE_STORAGE_CLIENT_ID="id+1",
        AZURE_POD_IDENTITY_AUTHORITY_HOST=host,
        http_proxy="http://127.0.0.1:1", no_proxy="127.0.0.1"))
    works(server, "m")
    assert service.grants == [(
        "/metadata/identity/oauth2/token?api-version=2018-02-01"
        "&resource=https%3A%2F%2Fstorage.azure.com%2F&client_id=id%2B1",
        None)]
    assert not service.gate.bad_signatures


def test_the_identity_of_an_app(service, model, serve, mount):
    service.grants.clear()
    server = serve(model, env=identity(
        service, mount, "managed_identity", IDENTITY_HEADER=SECRET,
        IDENTITY_ENDPOINT=f"{service.url}/msi/token"))
    works(server, "m")
    (path, _), = service.grants
    assert path.startswith("/msi/token?api-version=2019-08-01&resource=")
    assert SECRET not in server.log_text()


@pytest.mark.parametrize("proof", ["file", "secret"])
def test_a_service_principal(service, model, serve, mount, tmp_path, proof):
    """A proxy does not see what goes to this machine unencrypted."""
    file = tmp_path / "federated"
    file.write_text("a.b.c")
    service.grants.clear()
    more = {"AZURE_FEDERATED_TOKEN_FILE": file} if proof == "file" else {
        "AZURE_CLIENT_SECRET": "hidden&secret"}
    server = serve(model, env=identity(
        service, mount, "default", AZURE_TENANT_ID="tenant",
        AZURE_CLIENT_ID="client",
        AZURE_AUTHORITY_HOST=f"http://localhost:{service.port}",
        http_proxy="http://127.0.0.1:1", no_proxy="127.0.0.1", **more))
    works(server, "m")
    (path, form), = service.grants
    assert path == "/tenant/oauth2/v2.0/token"
    assert "client_assertion=a.b.c" in form or proof == "secret"
    assert "client_secret=hidden%26secret" in form or proof == "file"
    assert "hidden" not in server.log_text()


def test_a_token_that_is_valid_no_more_is_asked_for_anew(
        service, model, serve, mount):
    service.grants.clear()
    server = serve(model, wait="live", parts=ALL_PARTS,
                   http="    inference_model_control explicit;\n",
                   env=identity(service, mount, "managed_identity",
                                **metadata(service)))
    load = "/v2/repository/models/m/load"
    assert server.post(load, b"").status == 200
    assert len(service.grants) == 1
    service.revoke()
    assert server.post(load, b"").status == 200
    assert len(service.grants) == 2
    works(server, "m")


def test_a_token_near_its_end_is_asked_for_anew(service, model, serve, mount):
    service.grants.clear()
    service.life = 0
    server = serve(model, wait="live", parts=ALL_PARTS,
                   http="    inference_model_control explicit;\n",
                   env=identity(service, mount, "managed_identity",
                                **metadata(service)))
    assert server.post("/v2/repository/models/m/load", b"").status == 200
    works(server, "m")
    before = len(service.grants)
    assert before > 1
    assert server.post("/v2/repository/index", b"").status == 200
    assert len(service.grants) > before
    assert not service.gate.bad_signatures


def test_an_identity_service_that_says_no(service, model, serve, mount):
    """A passing error is tried again; one that stays is told."""
    service.gate.break_next("status", "identity", status=500, times=2)
    env = identity(service, mount, "managed_identity", **metadata(service))
    works(serve(model, env=env), "m")

    service.gate.break_next(
        "status", "identity", status=400, times=10 ** 6,
        body=b'{"error":"invalid_request","error_description":"Identity not'
        b' found"}')
    server = serve(model, env=env, wait="live")
    line = server.wait_log(r"\[error\][^\n]*can't be listed[^\n]*").group()
    assert "/metadata/identity/oauth2/token" in line
    assert "400, invalid_request: Identity not found" in line


def test_a_credential_file(service, bucket, model, serve, mount, tmp_path):
    """A key that has ended is looked up anew in it."""
    file = tmp_path / "cloud.json"

    def write(key):
        file.write_text(json.dumps({"as": {
            "": {"account_str": ACCOUNT, "account_key": "d3Jvbmc="},
            service.address(bucket): {"account_key": key}}}))

    write(KEY)
    server = serve(
        model, wait="live", parts=ALL_PARTS,
        http="    inference_model_control explicit;\n",
        env=service.environment(
            mount, AZURE_STORAGE_KEY="ZW52aXJvbm1lbnQ=",
            TRITON_CLOUD_CREDENTIAL_PATH=file))
    load = "/v2/repository/models/m/load"
    assert server.post(load, b"").status == 200
    works(server, "m")
    service.key = "c2Vjb25k"
    try:
        assert server.post("/v2/repository/index", b"").status == 500
        write(service.key)
        assert server.post(load, b"").status == 200
        works(server, "m")
    finally:
        service.key = KEY


def test_names_that_xml_cannot_hold(service, bucket, serve):
    def fill(folder):
        folder = models.identity(folder, "m", IN)
        (folder / "1" / "a%41 \ufffe").write_bytes(b"x")
        (folder / "1" / "b%41").write_bytes(b"x")
    upload(service, bucket, "r", fill)
    works(serve(service.address(f"{bucket}/r")), "m")
    assert service.gate.asked[f"/{bucket}/r/m/1/a%41 \ufffe"] == 1
    assert service.gate.asked[f"/{bucket}/r/m/1/b%41"] == 1
