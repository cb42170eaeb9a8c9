"""A directory that comes to a local repository in mode none is named in the
log, once."""

import shutil

from lib import models, preload, process
from lib.repository import EXPLICIT, IN, PARTS, ask, wait_state, works
from lib.server import SLOW

NONE = "    inference_model_control none;\n"
POLL = "    inference_model_control poll interval=1h;\n"


def model(folder, name):
    models.identity(folder, name, IN)


def one(folder):
    model(folder, "a")


def named(server, path):
    return server.log_text().count(f"new directory '{path}' is ignored")


def wait_named(server, path):
    assert process.wait_until(lambda: named(server, path), 20 * SLOW), \
        server.log_text()[-3000:]


def hup(server, **fields):
    words = "configuration generation "
    generation = server.log_text().count(words)
    server.write_config(**fields)
    server.signal("HUP")
    assert process.wait_until(
        lambda: server.log_text().count(words) > generation, 20 * SLOW)


def test_each_new_directory_is_named_once(make_server):
    server = make_server(one, parts=PARTS, log_level="notice")
    root = server.models
    model(root, "made")
    wait_named(server, root / "made")
    line, = (s for s in server.log_text().splitlines() if "is ignored" in s)
    assert "[notice]" in line
    for words in ("inference_model_control is none", "restart nginx",
                  "poll or explicit", "--model-control-mode"):
        assert words in line

    model(server.prefix, "moved")
    (server.prefix / "moved").rename(root / "moved")
    wait_named(server, root / "moved")

    shutil.rmtree(root / "made")
    model(root, "made")
    model(root / "a", "2")
    (root / "notes.txt").write_text("x")
    (root / "odd\nname").mkdir()
    wait_named(server, root / "odd\\x0aname")
    assert server.log_text().count("is ignored") == 3
    works(server, "a")
    assert server.get("/v2/models/made/ready").status != 200

    (root / "odd\nname").rmdir()
    server.kill()
    server.start()
    works(server, "made")
    works(server, "moved")


def test_only_in_mode_none(make_server):
    server = make_server(one, parts=PARTS, http=EXPLICIT)
    model(server.models, "b")
    assert ask(server, "load", "b").status == 200

    hup(server, http=POLL)
    model(server.models, "c")
    wait_state(server, "c", "READY")

    hup(server, http=NONE)
    model(server.models, "d")
    wait_named(server, server.models / "d")

    hup(server, http=EXPLICIT)
    model(server.models, "e")
    assert ask(server, "load", "e").status == 200
    assert server.log_text().count("is ignored") == 1


def test_repositories_that_come_and_go(make_server):
    server = make_server(one, parts=PARTS)
    more = server.prefix / "more"
    model(more, "b")
    hup(server, http=f"    inference_repository {more};\n"
        "    inference_repository s3://http://127.0.0.1:1/nowhere/models;\n")
    model(more, "c")
    wait_named(server, more / "c")
    model(server.models, "d")
    wait_named(server, server.models / "d")

    hup(server, http="")
    model(more, "e")
    model(server.models, "f")
    wait_named(server, server.models / "f")
    assert server.log_text().count("is ignored") == 3
    assert "nowhere' is not watched" not in server.log_text()


def test_without_inotify_one_line_says_so(make_server):
    server = make_server(one, parts=PARTS,
                         inference_env=[preload.environment("no_inotify")])
    words = "repositories are not watched for new directories: inotify"
    server.wait_said(words)
    line, = (s for s in server.log_text().splitlines() if words in s)
    assert "[info]" in line
    model(server.models, "b")
    works(server, "a")
    assert "is ignored" not in server.log_text()
