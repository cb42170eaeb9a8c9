"""At level notice error_log has the life of the core and its models: started,
ready, failed and why, unloaded.  All else of the core's stays at info."""

from lib import models
from lib.server import SLOW


def fill(repository):
    models.identity(repository, "good", [("IN", "INT32", [-1])])
    models.identity(repository, "bad", [("IN", "INT32", [-1])],
                    backend="nobody")


def test_life_of_core_and_models(make_server):
    server = make_server(
        fill, wait="live", log_level="notice", parts="health repository",
        http="    inference_model_control explicit;\n"
             "    inference_load_model good;\n"
             "    inference_load_model bad;\n")
    for words in (r"\[notice\] .*core \d+ starts",
                  r"\[notice\] .*backend \"identity\" loaded from",
                  r"\[notice\] .*model=good version=1 is ready after \d+",
                  r"\[(warn|error)\] .*model=bad.*nobody"):
        assert server.wait_log(words, 20 * SLOW), words
    assert server.post("/v2/repository/models/good/unload", b"").status == 200
    assert server.wait_log(r"\[notice\] .*model=good version=1 is unloaded",
                           20 * SLOW)
    assert "is connected" not in server.log_text()
