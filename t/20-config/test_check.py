"""nginx -t names everything that is wrong with the models, and loads none."""

import fcntl
import os
import re
import subprocess
import sys

import pytest

from lib import models, preload
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
    r"batch/config\.pbtxt:2:3: max_batch_size\)",
    r"syntax/config\.pbtxt:2:11: [^\n]*nmae",
    r"nowhere[^\n]*backend/config\.pbtxt:2:1: backend\)",
    r"other[^\n]*twice/config\.pbtxt:1:1: name\)",
    r"twice/config\.pbtxt:3:1: max_batch_size\)",
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


def test_what_would_fail_later_on_any_machine_is_found(make):
    head = 'backend: "identity"\n'
    state = (head + "sequence_batching { state {\n input_name: \"A\" "
             'output_name: "B" data_type: TYPE_FP32 dims: 2\n'
             " initial_state { data_type: TYPE_FP32 dims: 2 } } }\n")

    def fill(repository):
        bad(repository, "cpu", head + "instance_group { }\n"
            "instance_group {\n kind: KIND_CPU\n gpus: 0 }\n")
        bad(repository, "kind", head + "instance_group {\n kind: 9 }\n")
        bad(repository, "profile", head + "instance_group {\n"
            ' name: "g" profile: "1" }\n')
        bad(repository, "state", state)
        bad(repository, "gpu", head + "instance_group [ { gpus: 0 },"
            " { kind: KIND_GPU gpus: 7 } ]\n")       # there may be such

    status, output = make(fill).check_config()
    assert status == 0, output
    for finding in (
            r"instance group cpu_1 of model cpu has kind KIND_CPU but"
            r" specifies one or more GPUs \([^\n]*cpu/config\.pbtxt:5:2:"
            r" instance_group\[1\]\.gpus\)",
            r"kind/config\.pbtxt:3:2: instance_group\[0\]\.kind\)",
            r"instance group g of model profile and platform specifies"
            r" profile field [^\n]*profile/config\.pbtxt:3:12:"
            r" instance_group\[0\]\.profile\)",
            r"Field 'name' must be set [^\n]*state/config\.pbtxt:4:2: ",
            r"to have state_data set [^\n]*state/config\.pbtxt:4:2: "):
        assert len(re.findall(finding, output)) == 1, (finding, output)
    assert "/gpu/" not in output


def test_a_missing_agent_is_found_in_the_file_that_names_it(make):
    def fill(repository):
        folder = models.identity(repository, "m", GOOD)
        (folder / "configs").mkdir()
        (folder / "configs/mine.pbtxt").write_text(
            "# one\n" + (folder / "config.pbtxt").read_text()
            + 'model_repository_agents {\n  agents { name: "gone" }\n}\n')

    server = make(fill, http="inference_model_config_name mine;")
    lines = len((server.models / "m/configs/mine.pbtxt").read_text()
                .splitlines())
    status, output = server.check_config()
    assert status == 0, output
    assert re.search(rf"gone[^\n]*m/configs/mine\.pbtxt:{lines - 1}:12: ",
                     output), output


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


def test_a_word_it_does_not_know_is_rejected(make):
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


DESCRIPTORS = f"""\
#!{sys.executable}
import os
for fd in range(3, 5000):
    try:
        os.fstat(fd)
    except OSError:
        continue
    print("warn: fd", fd)
"""


@pytest.mark.parametrize("kernel", ["of_this_machine", "old_kernel"])
def test_the_check_gets_no_descriptor_but_its_configuration(make, tmp_path,
                                                            kernel):
    """However many nginx has open, and however the kernel closes them."""
    program = tmp_path / "core"
    program.write_text(DESCRIPTORS)
    program.chmod(0o755)
    server = make(core=program)
    if kernel == "old_kernel":
        server.env["LD_PRELOAD"] = " ".join(filter(None, [
            server.env.get("LD_PRELOAD"), str(preload.library(kernel))]))

    with open("/dev/null", "rb") as null:
        high = [fcntl.fcntl(null, fcntl.F_DUPFD, n) for n in (64, 1500, 4000)]
    try:
        status, output = server.check_config(pass_fds=high)
    finally:
        for fd in high:
            os.close(fd)
    assert status == 0, output
    assert re.findall(r"inference: fd (\d+)", output) == ["5"], output


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


NOT_BELOW_0 = r"Expected integer, got: - \(0 or more\)"
BATCHING = r"dynamic_batching\."

# the policy, where in it the finding stands, the finding, its field; a file
# that cannot be parsed has none
POLICIES = [
    ("max_queue_delay_microseconds: -1", "-1", NOT_BELOW_0, None),
    ("max_queue_delay_microseconds: 1.5", "1.5", "Expected integer, got: 1.5",
     None),
    ("preferred_batch_size: [ 4, 9 ]", "9", "<= max",
     BATCHING + r"preferred_batch_size\[1\]"),
    ("preferred_batch_size: 0", "preferred", "positive",
     BATCHING + r"preferred_batch_size\[0\]"),
    ("preferred_batch_size: -2", "preferred", "positive",
     BATCHING + r"preferred_batch_size\[0\]"),
    ("priority_levels: 2", "", r"range \[1, 2\]",
     BATCHING + r"default_priority_level"),
    ("priority_levels: 2 default_priority_level: 3", "default", r"\[1, 2\]",
     BATCHING + r"default_priority_level"),
    ("priority_levels: -1", "-1", NOT_BELOW_0, None),
    ("priority_levels: 2 default_priority_level: 1"
     " priority_queue_policy { key: 3 value { } }", "priority_queue",
     r"\[1, 2\]", BATCHING + r"priority_queue_policy\[3\]"),
    ("default_queue_policy { default_timeout_microseconds: -5 }", "-5",
     NOT_BELOW_0, None),
    ("default_queue_policy { max_queue_size: -1 }", "-1", NOT_BELOW_0, None),
    ("default_queue_policy { timeout_action: WAIT }", "WAIT", "WAIT", None),
    ("preserve_ordering: true priority_levels: 2 default_priority_level: 1",
     None, "preserve_ordering", BATCHING + "priority_levels"),
    ("preserve_ordering: true default_queue_policy {"
     " timeout_action: DELAY default_timeout_microseconds: 1 }",
     "default_queue", "DELAY", BATCHING + r"default_queue_policy"),
]


def one_model(lines):
    return lambda repository: bad(
        repository, "m", 'backend: "identity" max_batch_size: 8\n' + lines
        + models.io_block("input", GOOD)
        + models.io_block("output", [("OUT", "FP32", [-1])]))


def found_at(output, line, place, finding, field):
    """finding stands where place, the end of a line's piece, begins."""
    column = r"\d+" if place is None else line.index(place) + 1
    at = rf"m/config\.pbtxt:2:{column}: "
    return re.search(rf"{at}[^\n]*{finding}" if field is None
                     else rf"{finding}[^\n]* \([^\n]*{at}{field}\)", output)


@pytest.mark.parametrize("policy,place,finding,field", POLICIES,
                         ids=[p[0] for p in POLICIES])
def test_an_impossible_policy_is_named_with_its_place(make, policy, place,
                                                      finding, field):
    line = f"dynamic_batching {{ {policy} }}\n"
    server = make(one_model(line), http="inference_check strict;")
    status, output = server.check_config()
    assert status != 0
    assert found_at(output, line, place, finding, field), output


LIMITED = "inference_check strict; inference_rate_limit execution_count;\n"
COUNT = r"instance_group\[0\]\.rate_limiter\.resources\[0\]\.count"


@pytest.mark.parametrize("resource,place,finding,field,more", [
    ('name: "R" count: 0', "count: 0", "must be at least 1", COUNT, ""),
    ('name: "R"', None, "must be at least 1", COUNT, ""),
    ('name: "R" count: -1', "-1", NOT_BELOW_0, None, ""),
    ('name: "R" count: 5', "count: 5", "limited to 4.*is 5", COUNT,
     "inference_rate_limit_resource R 4;"),
    ('name: "R" count: 5', "count: 5", "limited to 0", COUNT,
     "inference_rate_limit_resource R 10 10;"),
    ('name: "R" count: 1', "count: 1", "limited to 0", COUNT,
     "inference_rate_limit_resource S 10;"),
], ids=str)
def test_a_resource_that_cannot_be_had_is_named(make, resource, place,
                                                finding, field, more):
    """scheduling.md 5.3, before anything is loaded, and 5.9"""
    line = "instance_group { kind: KIND_CPU rate_limiter {" \
        f" resources {{ {resource} }} }} }}\n"
    status, output = make(one_model(line), http=LIMITED + more).check_config()
    assert status != 0
    assert found_at(output, line, place, finding, field), output
    if "-1" not in resource:            # off, nothing is even looked at
        server = make(one_model(line), http="inference_check strict;")
        assert server.check_config()[0] == 0


def test_two_models_that_mean_different_resources(make):
    """scheduling.md 5.4, before anything is loaded"""
    def fill(repository):
        for name, scope in (("one", ""), ("two", "global: true")):
            bad(repository, name, 'backend: "identity"\n'
                "instance_group { kind: KIND_CPU rate_limiter {"
                f' resources {{ name: "R" {scope} count: 1 }} }} }}\n'
                + models.io_block("input", GOOD)
                + models.io_block("output", [("OUT", "FP32", [-1])]))
    status, output = make(fill, http=LIMITED).check_config()
    assert status != 0
    assert re.search(r"two/config\.pbtxt:2:\d+: instance_group\[0\]\.rate_"
                     r"limiter\.resources\[0\]\.global\)", output), output


def test_what_a_load_would_log_is_a_line_like_others(make):
    server = make(lambda r: models.identity(
        r, "m", GOOD, extra="version_policy { specific { versions: [ 1, 7 ] }"
                            " }\n"))
    status, output = server.check_config()
    assert status == 0
    assert re.search(r"\[warn\] inference: version 7 is specified for",
                     output), output


STATE = """\
sequence_batching {
  oldest { max_candidate_sequences: 4 }
  iterative_sequence: true
  state { input_name: "A" output_name: "B" data_type: TYPE_INT32 dims: [ -1 ]
    initial_state { name: "first" data_type: TYPE_INT32 dims: [ 3 ]
      data_file: "three" } }
}
"""


@pytest.mark.parametrize("content,finding", [
    (bytes(12), None),
    (bytes(11), r"states/config\.pbtxt[^\n]*three"),
    (None, r"states/config\.pbtxt[^\n]*three")])
def test_what_sequences_begin_with(make, content, finding):
    def fill(repository):
        folder = models.identity(repository, "states", GOOD, max_batch=4,
                                 extra=STATE)
        (folder / "initial_state").mkdir()
        if content is not None:
            (folder / "initial_state" / "three").write_bytes(content)

    status, output = make(fill, http="inference_check strict;").check_config()
    assert (status == 0) == (finding is None), output
    assert finding is None or re.search(finding, output), output
