"""nginx -t names everything that is wrong with the models, and loads none."""

import re
import subprocess

import pytest

from lib import models
from lib.server import CORE, Server

GOOD = [("IN", "FP32", [-1])]


def bad(repository, name, text):
    models.write_model(repository, name, text)


def wrong_in_five_ways(repository):
    models.identity(repository, "good", GOOD)
    bad(repository, "batch", 'backend: "identity"\n  max_batch_size: -1\n')
    bad(repository, "syntax", 'backend: "identity"\ninput [ { nmae: "x" } ]\n')
    bad(repository, "backend", '\nbackend: "nowhere"\n')
    bad(repository, "twice", 'name: "other"\nbackend: "identity"\n'
        "max_batch_size: -3\n")
    (repository / "versionless").mkdir(parents=True)
    models.identity(repository, "versionless", GOOD, versions=())


FINDINGS = [
    r"batch/config\.pbtxt:2:3: max_batch_size: ",
    r"syntax/config\.pbtxt:2:11: [^\n]*nmae",
    r"backend/config\.pbtxt:2:1: backend: [^\n]*nowhere",
    r"twice/config\.pbtxt:1:1: name: [^\n]*other",
    r"twice/config\.pbtxt:3:1: max_batch_size: ",
    r"versionless[^\n]*version",
]


@pytest.fixture
def make(make_server):
    return lambda *args, **kw: make_server(*args, start=False, **kw)


@pytest.mark.parametrize("word", ["", "inference_check warn;"])
def test_all_findings_are_printed_at_once_and_fail_nothing(make, word):
    server = make(wrong_in_five_ways, http=word)
    status, output = server.check_config()
    assert status == 0, output
    for finding in FINDINGS:
        assert re.search(r"\[warn\][^\n]*" + finding, output), (
            finding, output)
    assert "good" not in output.replace(str(server.prefix), "")


def test_strict_fails_the_test_and_counts(make):
    server = make(wrong_in_five_ways, http="inference_check strict;")
    status, output = server.check_config()
    assert status != 0
    assert re.search(r"\[emerg\][^\n]*6 findings", output), output
    for finding in FINDINGS:
        assert re.search(finding, output), finding


def test_strict_passes_good_models(make):
    server = make(lambda r: models.identity(r, "good", GOOD),
                  http="inference_check strict;")
    status, output = server.check_config()
    assert status == 0, output
    assert "[warn]" not in output


def test_off_looks_at_nothing(make):
    server = make(wrong_in_five_ways, http="inference_check off;")
    status, output = server.check_config()
    assert status == 0
    assert "config.pbtxt" not in output


def test_nothing_is_loaded(make):
    """A library of rubbish is a library as far as files tell."""
    def fill(repository):
        folder = models.write_model(repository, "m", 'backend: "rubbish"\n')
        (folder / "libtriton_rubbish.so").write_text("not a library")
    status, output = make(fill, http="inference_check strict;").check_config()
    assert status == 0, output


def test_it_looks_as_the_user_that_serves(make):
    def fill(repository):
        models.identity(repository, "hidden", GOOD)
        (repository / "hidden").chmod(0o700)
    server = make(fill, user="nobody nogroup", http="inference_check strict;")
    status, output = server.check_config()
    assert status != 0
    assert re.search(r"hidden[^\n]*(denied|read)", output), output


def test_start_never_fails_because_of_a_model(make_server):
    server = make_server(wrong_in_five_ways, wait="live",
                         http="inference_check strict;")
    assert server.wait_for("/v2/models/good/ready")


def test_a_word_it_does_not_know_is_refused(make):
    server = make(http="inference_check loud;")
    status, output = server.check_config()
    assert status != 0
    assert "loud" in output


def test_a_program_that_is_no_core_is_named(make, tmp_path):
    program = tmp_path / "core"
    program.write_text("#!/bin/sh\nexit 9\n")
    program.chmod(0o755)
    server = make(core=program)
    status, output = server.check_config()
    assert status == 0
    assert re.search(r"\[warn\][^\n]*check of the models ended early", output)
    server = make(core=program, http="inference_check strict;")
    assert server.check_config()[0] != 0


def test_by_hand_with_a_file(tmp_path):
    repository = tmp_path / "models"
    wrong_in_five_ways(repository)
    file = tmp_path / "core.pbtxt"
    file.write_text(f'repositories: "{repository}"\n')
    done = subprocess.run([CORE, "--check", file], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    assert re.search(r"^error: [^\n]*" + FINDINGS[0], done.stdout, re.M)

    file.write_text("repositories: 5\n")
    done = subprocess.run([CORE, "--check", file], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "core.pbtxt:1:15" in done.stderr
