"""No room on the disk for what a model needs: it says so, the rest serves."""

import json
import os

import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from lib import models, process
from lib.full_disk import FullDisk
from lib.repository import EXPLICIT, IN, PARTS, rows, works
from lib.s3 import Service
from lib.server import BUILD, SLOW

CONFIG = {
    "backend": "identity",
    "input": [{"name": "IN", "data_type": "TYPE_FP32", "dims": [-1]}],
    "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [-1]}]}
FULL = "No space left on device"


@pytest.fixture
def disk(tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "disk").mkdir()
    return FullDisk(tmp_path / "disk")


def row(server, model):
    """Models of other machines come when those have been listed."""
    assert process.wait_until(lambda: rows(server, model), 30 * SLOW)
    found, = rows(server, model)
    return found


def private(disk):
    """The files on the disk of models that came with a request."""
    return sorted(n for n in os.listdir(disk.folder)
                  if n.startswith("inference-"))


@pytest.mark.parametrize("room", [0, 1, 1 << 20])
def test_files_of_a_request_that_find_no_room(make_server, disk, room):
    server = make_server(
        lambda f: models.identity(f, "good", IN), parts=PARTS, http=EXPLICIT
        + "    inference_load_model good;\n",
        inference_env=disk.environment() + [f"TMPDIR={disk.folder}"])
    config = json.dumps(dict(CONFIG))
    files = {"file:1/data": os.urandom(2 << 20), "file:1/more": b"x"}
    with triton.InferenceServerClient(server.url) as c:
        c.load_model("sent", config=config, files=files)
        works(server, "sent")
        assert len(private(disk)) == 1

        disk.fill(room)
        for model in ("sent", "other", "good"):
            with pytest.raises(InferenceServerException,
                               match="failed to poll from model"):
                c.load_model(model, config=config, files=files)
        server.wait_log(r"\[error\][^\n]*other[^\n]*" + FULL)
        assert len(private(disk)) == 1          # nothing half-made is left
        assert FULL in row(server, "good")["reason"]
        assert row(server, "good")["state"] == "READY"
        works(server)
        works(server, "sent")                   # as it was

        disk.clear()
        for model in ("sent", "other", "good"):
            c.load_model(model, config=config, files=files)
            works(server, model)
        assert len(private(disk)) == 3
    server.stop()
    assert not private(disk)


def fill_bucket(service, name):
    service.bucket(name)
    for model, size in (("small", 100), ("large", 3 << 20)):
        service.put(name, f"r/{model}/config.pbtxt",
                    models.identity_config(model, IN).encode())
        service.put(name, f"r/{model}/1/data", os.urandom(size))
    return service.address(f"{name}/r")


@pytest.mark.parametrize("room", [0, 1 << 20])
def test_fetched_models_that_find_no_room(make_server, disk, room):
    with Service() as service:
        bucket = f"full-{room}"
        address = fill_bucket(service, bucket)
        disk.fill(room)
        server = make_server(
            lambda f: models.identity(f, "good", IN), parts=PARTS,
            wait="live", http=EXPLICIT + f"    inference_repository {address};"
            "\n    inference_load_model *;\n",
            inference_env=disk.environment()
            + service.environment(disk.folder))
        assert server.wait_for("/v2/models/good/ready")
        assert process.wait_until(lambda: FULL in row(server, "large").get(
            "reason", ""), 30 * SLOW), rows(server, "large")
        assert row(server, "large")["state"] == "UNAVAILABLE"
        works(server)
        # small ones fit unless there was no room at all
        assert process.wait_until(
            lambda: row(server, "small").get("state", "LOADING") != "LOADING",
            30 * SLOW)
        if room == 0:
            assert FULL in row(server, "small")["reason"]
        left = [n for _, _, names in os.walk(disk.folder) for n in names]
        assert not [n for n in left if n.startswith("fetch-")], left
        assert server.get("/v2/health/ready").status == 400

        disk.clear()
        with triton.InferenceServerClient(server.url) as c:
            c.load_model("large")
            c.load_model("small")
        works(server, "large")
        works(server, "small")
        assert server.wait_for("/v2/health/ready")

        path = server.models / "good" / "1" / "data"    # not of that disk
        disk.fill(0)
        path.write_text("new")
        with triton.InferenceServerClient(server.url) as c:
            c.load_model("good")
            service.put(bucket, "r/large/1/data", os.urandom(3 << 20))
            with pytest.raises(InferenceServerException):
                c.load_model("large")
            assert FULL in row(server, "large")["reason"]
            works(server, "large")              # the old one goes on
            np.testing.assert_array_equal(
                c.get_model_config("large")["name"], "large")


def test_an_agents_folder_that_finds_no_room(make_server, disk):
    """The files of an agent are of no use then."""
    agent = ('model_repository_agents { agents { name: "xor" parameters {'
             ' key: "key" value: "90" } } }\n')

    def fill(folder):
        models.identity(folder, "good", IN)
        models.identity(folder, "secret", IN, extra=agent)

    disk.fill(0)
    server = make_server(
        fill, parts=PARTS, wait="live", http=EXPLICIT
        + f"    inference_agents {BUILD / 't-agents'};\n"
        "    inference_load_model *;\n",
        inference_env=disk.environment() + [f"TMPDIR={disk.folder}"])
    assert server.wait_for("/v2/models/good/ready")
    assert process.wait_until(lambda: FULL in row(server, "secret").get(
        "reason", ""), 20 * SLOW), row(server, "secret")
    works(server)
    assert not private(disk)
    disk.clear()
    with triton.InferenceServerClient(server.url) as c:
        c.load_model("secret")
    works(server, "secret")
    assert len(private(disk)) == 1
