"""Parts that may be missing or broken, and the errors."""

from lib import models, process
from lib.server import SLOW


def repository(folder):
    models.identity(folder, "good", [("IN", "FP32", [2])])
    models.write_model(folder, "broken", 'backend: "nowhere"\n')


def failed(server):
    assert process.wait_until(
        lambda: "model=broken version=1 failed" in server.log_text(),
        20 * SLOW)
    assert server.wait_for("/v2/models/good/ready")


def test_a_failed_model_makes_the_server_unready(make_server):
    server = make_server(repository, wait="live")
    failed(server)
    assert server.get("/v2/health/ready").status == 400


def test_unless_readiness_is_not_strict(make_server):
    server = make_server(repository, http="    inference_strict_readiness off;")
    failed(server)
    assert server.get("/v2/health/ready").status == 200


def test_without_completion_a_model_needs_its_configuration(make_server):
    def bare(folder):
        repository(folder)
        models.write_model(folder, "x.identity", None)

    server = make_server(bare, wait="live",
                         http="    inference_auto_complete off;")
    failed(server)
    assert server.get("/v2/models/x.identity/ready").status != 200
    assert process.wait_until(
        lambda: "x.identity/config.pbtxt" in server.log_text(), 20 * SLOW)
