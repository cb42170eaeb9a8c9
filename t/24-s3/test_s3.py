"""Repositories in object storage: what is served, fetched, kept and told."""

import hashlib
import json
import os
import pathlib
import re
import shutil

import pytest

from lib import certificate, models, process
from lib.s3 import IN, KEY_ID, REGION, SECRET, Service, upload, works
from lib.server import SLOW
from lib.wire import tensor

# of tests that concern nothing of other services
ONLY_S3 = pytest.mark.parametrize("service", ["s3"], indirect=True)


def folders(mount):
    found = []
    for root, names, _ in os.walk(mount):
        found += [os.path.join(root, n) for n in names
                  if n.startswith("folder")]
    return found


def test_models_of_a_prefix_are_served_and_the_folder_goes(
        service, bucket, serve, mount):
    def fill(folder):
        models.identity(folder, "m1", IN)
        models.identity(folder, "m2", IN, versions=(1, 3))
    upload(service, bucket, "some/models", fill)
    service.put(bucket, "some/modelsbeside/m9/config.pbtxt", b"no")

    server = serve(service.address(f"{bucket}//some/models/"))
    works(server, "m1")
    works(server, "m2")
    assert server.get("/v2/models/m2").json()["versions"] == ["3"]
    assert server.get("/v2/models/m9").status == 404
    assert folders(mount)
    server.stop()
    assert not folders(mount)
    assert not service.gate.bad_signatures


def test_without_a_mount_directory_objects_are_kept_in_tmp(service, bucket,
                                                           serve):
    folder = pathlib.Path(f"/tmp/inference-{service.name}-{os.geteuid()}")
    before = folder.exists()
    upload(service, bucket, "", lambda f: models.identity(f, "m", IN))
    unset = [e for e in service.environment("") if "MOUNT_DIRECTORY" not in e]
    server = serve(service.address(bucket), env=unset)
    works(server, "m")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert any((folder / "objects").iterdir())
    server.stop()
    if not before:
        shutil.rmtree(folder)


def test_the_bucket_itself_is_a_repository(service, bucket, serve):
    upload(service, bucket, "", lambda f: models.identity(f, "m", IN))
    works(serve(service.address(bucket)), "m")


def test_a_backend_reads_the_files_of_its_model(service, bucket, serve):
    """The classifier of the examples, its labels and its model file."""
    source = os.path.join(os.path.dirname(__file__), "../../examples/models")
    service.upload(bucket, "ex", pathlib.Path(source).resolve())
    server = serve(service.address(f"{bucket}/ex"))
    answer = server.infer("digits", {
        "inputs": [tensor("image", "FP32", [1, 8, 8], [0.0] * 64)],
        "outputs": [{"name": "scores",
                     "parameters": {"classification": 1}}]})
    assert answer.status == 200, answer
    assert re.fullmatch(r"[-0-9.e]+:\d:.+",
                        answer.json()["outputs"][0]["data"][0])


def test_local_and_remote_repositories_side_by_side(
        service, bucket, serve, mount, make_server):
    upload(service, bucket, "r", lambda f: models.identity(f, "far", IN))
    server = make_server(
        lambda f: models.identity(f, "near", IN),
        http=f"    inference_repository {service.address(bucket + '/r')};\n",
        inference_env=service.environment(mount))
    works(server, "near")
    works(server, "far")


def test_what_is_unchanged_is_not_fetched_again(service, bucket, serve):
    def fill(folder):
        folder = models.identity(folder, "m", IN)
        (folder / "1" / "weights").write_bytes(os.urandom(1 << 20))
    upload(service, bucket, "r", fill)
    address = service.address(f"{bucket}/r")
    key = f"/{bucket}/r/m/1/weights"

    serve(address).stop()
    assert service.gate.asked[key] == 1
    serve(address).stop()
    assert service.gate.asked[key] == 1
    service.put(bucket, "r/m/1/weights", b"new")
    serve(address).stop()
    assert service.gate.asked[key] == 2


def fnv_name(texts):
    """Of the cache of versions that had no better ones."""
    sums = [0xcbf29ce484222325, 0x9e3779b97f4a7c15]
    for byte in "".join(text + "\0" for text in texts).encode():
        for i in range(2):
            sums[i] = (sums[i] ^ byte) * 0x100000001b3 % (1 << 64)
            sums[i] ^= sums[i] >> 29
    return "".join(f"{s:016x}" for s in sums)


@ONLY_S3
def test_objects_that_an_older_version_has_kept(service, bucket, serve, mount):
    """Their names can be aimed at: none of them is found.  They go as unused
    ones do, in favour of others."""
    data = os.urandom(1000)

    def fill(folder):
        folder = models.identity(folder, "m", IN)
        (folder / "1" / "weights").write_bytes(data)
    upload(service, bucket, "r", fill)
    etag = hashlib.md5(data).hexdigest()
    objects = pathlib.Path(mount, f"inference-s3-{os.geteuid()}", "objects")
    objects.mkdir(0o700, parents=True)
    objects.parent.chmod(0o700)
    old = objects / (fnv_name([f"http://{service.endpoint}", bucket,
                               "r/m/1/weights", etag]) + "-1000")
    old.write_bytes(bytes(1000))
    huge = objects / ("0" * 32 + f"-{9 << 30}")
    with huge.open("wb") as f:
        f.truncate(9 << 30)                     # beyond the cache's limit

    server = serve(service.address(f"{bucket}/r"))
    (folder,) = folders(mount)
    assert pathlib.Path(folder, "1", "weights").read_bytes() == data
    server.stop()
    assert not huge.exists()
    assert {len(p.name.partition("-")[0]) for p in objects.iterdir()
            if p != old} == {64}


def test_a_large_object_comes_in_parts_and_whole(
        service, bucket, serve, mount):
    data = os.urandom((20 << 20) + 17)

    def fill(folder):
        folder = models.identity(folder, "m", IN)
        (folder / "1" / "weights").write_bytes(data)
    upload(service, bucket, "r", fill)
    server = serve(service.address(f"{bucket}/r"))
    works(server, "m")
    assert service.gate.asked[f"/{bucket}/r/m/1/weights"] == 3
    (folder,) = folders(mount)
    with open(os.path.join(folder, "1", "weights"), "rb") as f:
        assert f.read() == data


@pytest.mark.parametrize("fault", [
    dict(kind="cut before", pattern="", times=3),
    dict(kind="cut within", pattern="weights", times=2),
    dict(kind="status", pattern="", times=3, status=500),
    dict(kind="status", pattern="list", times=2, status=503,
         body=b"<Error><Code>SlowDown</Code></Error>"),
    dict(kind="slow", pattern="weights", times=1, seconds=1),
    dict(kind="status", pattern="weights", times=2, status=429),
    dict(kind="etag", pattern="weights", times=1),
    dict(kind="status", pattern="weights", times=1, status=412),
], ids=lambda f: f["kind"].replace(" ", "-") + str(f.get("status", "")))
def test_trouble_that_passes_is_not_noticed(
        service, bucket, serve, mount, fault):
    data = os.urandom(3 << 20)

    def fill(folder):
        folder = models.identity(folder, "m", IN)
        (folder / "1" / "weights").write_bytes(data)
    upload(service, bucket, "r", fill)
    service.gate.break_next(**fault)
    server = serve(service.address(f"{bucket}/r"))
    works(server, "m")
    (folder,) = folders(mount)
    with open(os.path.join(folder, "1", "weights"), "rb") as f:
        assert f.read() == data


@pytest.mark.parametrize("fault, words", [
    (dict(kind="status", status=403, body=b"<Error><Code>AccessDenied</Code>"
          b"<Message>Access Denied</Message></Error>"),
     "403, AccessDenied: Access Denied"),
    (dict(kind="etag"), "changed while it was fetched"),
    (dict(kind="status", status=500), "500"),
    (dict(kind="longer"), "more than 1000 bytes"),
], ids=["denied", "etag", "broken", "longer"])
def test_trouble_that_stays_hurts_one_model(
        service, bucket, serve, fault, words):
    def fill(folder):
        models.identity(folder, "good", IN)
        folder = models.identity(folder, "bad", IN)
        (folder / "1" / "weights").write_bytes(os.urandom(1000))
    upload(service, bucket, "r", fill)
    service.gate.break_next(pattern="bad/1/weights", times=1000, **fault)
    try:
        server = serve(service.address(f"{bucket}/r"), wait="live")
        assert server.wait_for("/v2/models/good/ready")
        works(server, "good")
        line = server.wait_log(r"\[error\][^\n]*bad[^\n]*weights[^\n]*",
                               seconds=30).group()
        assert words in line
        assert server.get("/v2/models/bad/ready").status != 200
    finally:
        service.gate.faults.clear()


@pytest.mark.parametrize("size", [1000, 20 << 20], ids=["whole", "parts"])
def test_an_object_that_is_stored_compressed_comes_as_it_is_stored(
        service, bucket, serve, mount, size):
    """In Google's service with Cache-Control: no-transform."""
    data = os.urandom(size)

    def fill(folder):
        folder = models.identity(folder, "m", IN)
        (folder / "1" / "weights").write_bytes(data)
    upload(service, bucket, "r", fill)
    service.gate.break_next(
        kind="headers", pattern="weights", times=10,
        headers={"Content-Encoding": "gzip",
                 "x-goog-stored-content-encoding": "gzip"})
    works(serve(service.address(f"{bucket}/r")), "m")
    (folder,) = folders(mount)
    with open(os.path.join(folder, "1", "weights"), "rb") as f:
        assert f.read() == data


@ONLY_S3
def test_wrong_secret_is_told_with_the_services_words(
        service, bucket, serve, mount):
    upload(service, bucket, "r", lambda f: models.identity(f, "m", IN))
    env = service.environment(mount)
    env[1] = '"AWS_SECRET_ACCESS_KEY=wrong"'
    server = serve(service.address(f"{bucket}/r"), wait="live", env=env)
    server.wait_log(r"\[error\][^\n]*r[^\n]*403, SignatureDoesNotMatch")
    service.gate.bad_signatures.clear()


def test_no_such_bucket(service, serve):
    server = serve(service.address("no-such-bucket/r"), wait="live")
    server.wait_log(r"\[error\][^\n]*no-such-bucket[^\n]*"
                    "(NoSuchBucket|ContainerNotFound)")


@ONLY_S3
def test_no_such_service(service, serve):
    server = serve("s3://127.0.0.1:1/bucket/r", wait="live")
    server.wait_log(r"\[error\][^\n]*127\.0\.0\.1:1/bucket[^\n]*onnect",
                    seconds=30)


@pytest.mark.parametrize("service", ["s3", "as"], indirect=True)
def test_a_service_of_a_private_authority(service, serve, mount, tmp_path):
    """Without the variable the system's authorities decide."""
    tmp_path.chmod(0o755)
    authority = certificate.authority(tmp_path)
    with type(service)(certificate.signed(tmp_path, authority)) as private:
        private.bucket("own")
        upload(private, "own", "r", lambda f: models.identity(f, "m", IN))
        address = private.address("own/r")
        works(serve(address, env=private.environment(
            mount, **{service.authorities: authority[0]})), "m")
        assert not private.gate.bad_signatures

        server = serve(address, env=private.environment(mount), wait="live")
        server.wait_log(r"\[error\][^\n]*own/r[^\n]*certificate",
                        seconds=30)
        server = serve(address, wait="live", env=private.environment(
            mount, **{service.authorities: tmp_path / "nowhere"}))
        server.wait_log(r"\[error\][^\n]*own/r[^\n]*nowhere", seconds=30)


@ONLY_S3
def test_a_credential_file_with_two_services(
        service, bucket, serve, mount, tmp_path):
    upload(service, bucket, "r", lambda f: models.identity(f, "m", IN))
    with Service() as other:
        other.gate.secrets = {"other-key": "other-secret"}
        other.bucket("elsewhere")
        upload(other, "elsewhere", "", lambda f: models.identity(f, "n", IN))
        file = tmp_path / "cloud.json"
        file.write_text(json.dumps({"s3": {
            "": {"key_id": "nobody", "secret_key": "x"},
            service.address(bucket): {
                "key_id": KEY_ID, "secret_key": SECRET, "region": REGION},
            f"s3://{other.endpoint}": {
                "key_id": "other-key", "secret_key": "other-secret"}}}))
        server = serve(
            service.address(f"{bucket}/r"),
            f"s3://http://{other.endpoint}/elsewhere",
            f"s3://{other.endpoint}/elsewhere", wait="live",
            env=[f'"TRITON_CLOUD_CREDENTIAL_PATH={file}"',
                 f'"TRITON_AWS_MOUNT_DIRECTORY={mount}"'])
        assert server.wait_for("/v2/models/m/ready")
        works(server, "m")
        server.wait_log(r"\[error\][^\n]*unknown key nobody")
        server.stop()
        assert not service.gate.bad_signatures


def test_keys_that_make_no_file_name_hurt_one_model(service, bucket, serve):
    upload(service, bucket, "r", lambda f: models.identity(f, "good", IN))
    upload(service, bucket, "r", lambda f: models.identity(f, "bad", IN))
    service.put(bucket, "r/bad/1/a//b", b"x")
    server = serve(service.address(f"{bucket}/r"), wait="live")
    assert server.wait_for("/v2/models/good/ready")
    server.wait_log(r"\[error\][^\n]*bad[^\n]*a//b[^\n]*no file name")


@pytest.mark.parametrize("service", ["s3", "gs"], indirect=True)
def test_a_key_with_a_control_character_hurts_one_model(service, bucket,
                                                        serve):
    """XML can't hold it; a service encodes it when it is asked to."""
    upload(service, bucket, "r", lambda f: models.identity(f, "good", IN))
    service.put(bucket, "r/b\x07d/config.pbtxt", b"x")
    server = serve(service.address(f"{bucket}/r"), wait="live",
                   parts="health metadata config infer repository")
    assert server.wait_for("/v2/models/good/ready")
    rows = json.loads(server.post("/v2/repository/index", b"").body)
    assert {r["name"]: "control" in r.get("reason", "") for r in rows} == {
        "good": False, "b\\x07d": True}


def test_a_thousand_models_and_one(service, bucket, serve):
    """More keys than a page holds."""
    upload(service, bucket, "r", lambda f: models.identity(f, "m", IN))
    for i in range(1001):
        service.put(bucket, f"r/m/1/part{i:04}", b"x")
    works(serve(service.address(f"{bucket}/r")), "m")


def test_a_mount_folder_that_is_not_there(service, bucket, serve):
    upload(service, bucket, "r", lambda f: models.identity(f, "m", IN))
    server = serve(service.address(f"{bucket}/r"), wait="live",
                   env=service.environment("/nonexistent"))
    server.wait_log(r"\[error\][^\n]*m[^\n]*Failed to create local temp "
                    r"folder: /nonexistent")


def test_a_reload_of_nginx_adds_a_bucket_and_removes_it(
        service, bucket, mount, make_server):
    """Its storage is closed, and the copies gone, with its last model."""
    upload(service, bucket, "r", lambda f: models.identity(f, "far", IN))
    server = make_server(lambda f: models.identity(f, "near", IN),
                         inference_env=service.environment(mount))
    core = server.core()
    line = f"    inference_repository {service.address(bucket + '/r')};\n"

    for _ in range(2):
        server.write_config(http=line)
        server.signal("HUP")
        assert server.wait_for("/v2/models/far/ready")
        works(server, "far")
        assert folders(mount)
        server.write_config(http="")
        server.signal("HUP")
        assert server.wait_for("/v2/models/far/ready", status=404)
        works(server, "near")
        assert process.wait_until(lambda: not folders(mount), 20 * SLOW)
    assert server.cores() == [core]
    assert not service.gate.bad_signatures


def test_a_prefix_that_no_key_has_is_not_there(service, bucket, serve):
    """Until one has; what goes later leaves an empty repository."""
    service.put(bucket, "typo", b"an object, no folder")
    server = serve(service.address(f"{bucket}/typo"), wait="live",
                   parts="health metadata config infer repository",
                   http="    inference_model_control poll interval=200ms;\n")
    server.wait_log(f"/typo' can't be listed: '{service.scheme}[^']*/typo' "
                    "is not there")
    assert server.get("/v2/health/ready").status == 400
    assert "typo" in server.post("/v2/repository/index", b"").error
    upload(service, bucket, "typo", lambda f: models.identity(f, "m", IN))
    assert server.wait_for("/v2/health/ready")
    works(server, "m")
    for key in ("typo/m/1/", "typo/m/config.pbtxt"):
        service.remove(bucket, key)
    assert server.wait_for("/v2/models/m/ready", status=404)
    # a poll between the two removals finds a model that fails to load
    assert server.wait_for("/v2/health/ready")
    assert server.post("/v2/repository/index", b"").body == b"[]"


def test_the_mark_of_a_folder_is_an_empty_repository(service, bucket, serve):
    service.put(bucket, "r/", b"")
    server = serve(service.address(f"{bucket}/r"), wait="live")
    assert server.wait_for("/v2/health/ready")


def test_objects_of_the_names_of_directories(service, bucket, serve):
    """Some programs leave one for each directory."""
    upload(service, bucket, "r", lambda f: models.identity(
        f, "m", IN).joinpath("1/x").write_bytes(b"x"))
    for key in ("r", "r/m", "r/m/1", "r/m/1/x/y"):
        service.put(bucket, key)
    server = serve(service.address(f"{bucket}/r"), wait="live",
                   parts="health metadata config infer repository",
                   http="    inference_model_control explicit;\n")
    answer = server.post("/v2/repository/models/m/load", b"")
    assert answer.status == 200, answer
    works(server, "m")


def test_an_empty_bucket_holds_no_models(service, bucket, serve):
    """A prefix in it is there as soon as it has a key."""
    server = serve(service.address(bucket), wait="live",
                   parts="health metadata config infer repository",
                   http="    inference_model_control poll interval=200ms;\n")
    assert server.wait_for("/v2/health/ready")
    answer = server.post("/v2/repository/index", b"")
    assert (answer.status, answer.body) == (200, b"[]")
    upload(service, bucket, "", lambda f: models.identity(f, "m", IN))
    assert server.wait_for("/v2/models/m/ready")
    works(server, "m")


def test_keys_with_odd_characters(service, serve):
    """Ends of addresses as Triton reads them, and marks of directories."""
    dot = "-" if service.name == "as" else "."
    bucket = service.bucket(f"b{dot}with{dot}dots-{os.urandom(4).hex()}")
    service.put(bucket, "a b/+plus/")                   # directory marks
    service.put(bucket, "a b/+plus/m/1/")
    for name in ("m", "\u00fc m+", "100%", "a'b&c=d;e"):
        service.put(bucket, f"a b/+plus/{name}/config.pbtxt",
                    models.identity_config(name, IN).encode())
        service.put(bucket, f"a b/+plus/{name}/1/data +%41&?#.bin", b"x")
    server = serve(f'"{service.address(bucket + "//a b/+plus/")}"',
                   wait="live",
                   parts="health metadata config infer repository")
    assert server.wait_for("/v2/models/m/ready")
    assert server.wait_for("/v2/health/ready")
    rows = json.loads(server.post("/v2/repository/index", b"").body)
    assert {r["name"]: r["state"] for r in rows} == {
        n: "READY" for n in ("m", "\u00fc m+", "100%", "a'b&c=d;e")}
    works(server, "m")
    assert not service.gate.bad_signatures


def test_the_folder_of_a_model_goes_with_it(service, bucket, serve, mount):
    """One copy for all its versions; none of a model that failed."""
    def fill(folder):
        models.identity(folder, "m", IN, versions=(1, 2),
                        extra="version_policy { all {} }\n")
        models.identity(folder, "bad", IN, backend="nowhere")
    upload(service, bucket, "r", fill)
    server = serve(service.address(f"{bucket}/r"), wait="live",
                   http="    inference_model_control explicit;\n",
                   parts="health metadata config infer repository")
    for _ in range(2):
        assert server.post("/v2/repository/models/m/load", b"").status == 200
        works(server, "m")
        assert server.post("/v2/repository/models/bad/load", b"").status == 400
        assert len(folders(mount)) == 1
        assert server.post("/v2/repository/models/m/unload", b"").status == 200
        assert process.wait_until(lambda: not folders(mount), 20 * SLOW)


def test_what_is_removed_from_a_bucket_is_seen(service, bucket, serve):
    """The newest version goes, then a file, then the model."""
    upload(service, bucket, "r", lambda f: models.identity(
        f, "m", IN, versions=(1, 2)))
    upload(service, bucket, "r", lambda f: models.identity(f, "other", IN))
    server = serve(service.address(f"{bucket}/r"),
                   http="    inference_model_control poll interval=200ms;\n")
    assert server.get("/v2/models/m").json()["versions"] == ["2"]
    service.remove(bucket, "r/m/2/")
    assert process.wait_until(lambda: server.get(
        "/v2/models/m").json().get("versions") == ["1"], 20 * SLOW)
    for key in ("r/m/1/", "r/m/config.pbtxt"):
        service.remove(bucket, key)
    assert server.wait_for("/v2/models/m/ready", status=404)
    works(server, "other")


@ONLY_S3
def test_credentials_that_are_renewed(service, bucket, serve, mount, tmp_path):
    """A key that has ended is looked up anew in its file."""
    upload(service, bucket, "r", lambda f: models.identity(f, "m", IN))
    file = tmp_path / "cloud.json"

    def write(key_id, secret):
        file.write_text(json.dumps({"s3": {"": {
            "key_id": key_id, "secret_key": secret, "region": REGION}}}))

    write("first", "secret-1")
    service.gate.secrets["first"] = "secret-1"
    try:
        server = serve(
            service.address(f"{bucket}/r"), wait="live",
            http="    inference_model_control explicit;\n",
            parts="health metadata config infer repository",
            env=[f'"TRITON_CLOUD_CREDENTIAL_PATH={file}"',
                 f'"TRITON_AWS_MOUNT_DIRECTORY={mount}"'])
        assert server.post("/v2/repository/models/m/load", b"").status == 200
        works(server, "m")
        del service.gate.secrets["first"]               # it has ended
        assert server.post("/v2/repository/index", b"").status == 500
        works(server, "m")
        service.gate.secrets["second"] = "secret-2"
        write("second", "secret-2")
        assert server.post("/v2/repository/index", b"").status == 200
        assert server.post("/v2/repository/models/m/load", b"").status == 200
        works(server, "m")
    finally:
        service.gate.secrets.pop("first", None)
        service.gate.secrets.pop("second", None)
        service.gate.bad_signatures.clear()


@ONLY_S3
def test_a_token_that_has_expired_is_looked_up_anew(service, bucket, serve):
    """S3 answers 400."""
    upload(service, bucket, "r", lambda f: models.identity(f, "m", IN))
    service.gate.break_next(
        kind="status", status=400, body=b"<Error><Code>ExpiredToken</Code>"
        b"<Message>The provided token has expired.</Message></Error>")
    works(serve(service.address(f"{bucket}/r")), "m")


@pytest.mark.parametrize("keys", [0, 100_000])
def test_a_listing_without_an_end(service, bucket, serve, keys):
    """A service that always has more hurts its own models only."""
    upload(service, bucket, "r", lambda f: models.identity(f, "m", IN))
    service.gate.break_next(kind="status", pattern="list", status=200,
                            times=10 ** 6, body=service.endless_page(keys))
    try:
        server = serve(service.address(f"{bucket}/r"), wait="live")
        server.wait_log(r"\[error\][^\n]*the listing has no end: [^\n]*",
                        seconds=60)
        assert server.get("/v2/health/live").status == 200
        assert server.get("/v2/health/ready").status == 400
    finally:
        service.gate.faults.clear()
