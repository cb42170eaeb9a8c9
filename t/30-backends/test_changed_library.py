"""A backend's library that is replaced while it is open is warned about when a
model of that backend is loaded: it goes on with the old one."""

import shutil

from lib import models, repository
from lib.server import BACKENDS

WARNED = r'\[warn\] .*backend "mine": .*libtriton_mine\.so has changed since'


def test_it_is_named_once_for_each_change(make_server, tmp_path):
    tmp_path.chmod(0o755)
    library = tmp_path / "mine" / "libtriton_mine.so"
    library.parent.mkdir()

    def install():
        new = library.with_suffix(".new")
        shutil.copy(BACKENDS / "identity" / "libtriton_identity.so", new)
        new.rename(library)

    install()
    server = make_server(
        lambda r: models.identity(r, "m", [("IN", "INT32", [-1])],
                                  backend="mine"),
        parts=repository.PARTS, http="    inference_model_control explicit;\n"
        f"    inference_load_model m; inference_backends {tmp_path};\n")

    def load(number):
        models.identity(server.models, "m", [("IN", "INT32", [-1])],
                        backend="mine", parameters={"number": number})
        assert repository.ask(server, "load", "m").status == 200

    load("0")
    assert "has changed since" not in server.log_text()
    for times in 1, 2:
        install()
        load(f"{times}1")
        server.wait_said("has changed since", times, 20)
        server.wait_log(WARNED)
        load(f"{times}2")
        assert server.log_text().count("has changed since") == times
