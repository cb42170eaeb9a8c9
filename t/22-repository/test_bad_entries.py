"""Entries of a repository: each bad one has its row, the rest serves."""

import os

from lib import models, process
from lib.repository import (IN, ONE, PARTS, index, is_away, loads_of, settled,
                            works)
from lib.server import SLOW
from lib.wire import tensor

def bad(folder, name, text):
    path = models.write_model(folder, name, None)
    data = text if isinstance(text, bytes) else text.encode()
    (path / "config.pbtxt").write_bytes(data)
    return path


def good_text(name, more=""):
    return models.identity_config(name, IN) + more


def is_away(row, *words):
    assert row["state"] == "UNAVAILABLE", row
    for word in words:
        assert word in row["reason"], row


# ---- configurations

def nested(depth):
    """Messages in messages, deeper than the format has fields for."""
    return "input { " * depth


TEXTS = {
    # name: (text, words of the reason)
    "cut": (good_text("cut")[:-40], ["config.pbtxt:"]),
    "cut_in_string": ('name: "cut_in_string', ["config.pbtxt:1:"]),
    "zeros": (b"\0" * 100, ["config.pbtxt:1:1"]),
    "zero_in_name": ('name: "zero\\0in_name"\nbackend: "identity"\n',
                     ["config.pbtxt:1:", "name"]),
    "zero_byte": (b'name: "zero_byte"\0\n', ["config.pbtxt:1:"]),
    "not_utf8": (b'name: "not_utf8"\nbackend: "id\xff\xfe"\n', ["backend"]),
    "deep": (nested(100_000), ["config.pbtxt:1:"]),
    "deep_lists": ("input [" * 100_000, ["config.pbtxt:1:"]),
    "huge_number": (
        good_text("huge_number").replace(
            "max_batch_size: 0", "max_batch_size: " + "9" * 100_000),
        ["max_batch_size", "out of range"]),
    "huge_int": ('name: "huge_int" max_batch_size: 4294967296',
                 ["max_batch_size"]),
    "huge_count": (good_text("huge_count").replace(
        "count: 1", "count: 2147483647"), ["2147483647", "4096"]),
    "huge_dims": (
        'name: "huge_dims" backend: "identity"\ninput [ { name: "IN"'
        " data_type: TYPE_FP32 dims: [ 9223372036854775807, 2 ] } ]\n"
        'output [ { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] } ]\n',
        ["input[0].dims", "maximum"]),
    "many_dims": (
        'name: "many_dims" backend: "identity"\ninput [ { name: "IN"'
        " data_type: TYPE_FP32 dims: [ " + "1, " * 200_000 + "1 ] } ]\n",
        ["dimensions"]),
    "many_inputs": (
        'name: "many_inputs" backend: "identity"\n'
        + "input { }\n" * 300_000, ["input"]),
    "many_twins": (
        'name: "many_twins" backend: "identity"\n'
        + "input { name: 'A' data_type: TYPE_FP32 dims: 1 }\n" * 200_000,
        ["200000 inputs"]),
    "tensor_not_utf8": (
        good_text("tensor_not_utf8").replace('"IN"', r'"I\377"'),
        ["input[0].name", "UTF-8"]),
    "wrong_name": (good_text("another"), ["another", "directory name"]),
    "control_name": (
        'name: "control_name"\nbackend: "a\\nb\\033[2J"\n', ["backend"]),
    "long_name": (f'name: "long_name"\nbackend: "{"x" * 300}"\n',
                  ["backend"]),
}


def texts(folder):
    models.identity(folder, "good", IN)
    for name, (text, _) in TEXTS.items():
        bad(folder, name, text)
    huge = bad(folder, "huge_file", "")
    os.truncate(huge / "config.pbtxt", 1 << 30)
    path = models.write_model(folder, "fifo", None)
    os.mkfifo(path / "config.pbtxt")
    path = models.write_model(folder, "device", None)
    (path / "config.pbtxt").symlink_to("/dev/zero")
    path = models.write_model(folder, "terminal", None)
    (path / "config.pbtxt").symlink_to("/dev/tty")
    path = models.write_model(folder, "folder", None)
    (path / "config.pbtxt").mkdir()
    path = models.write_model(folder, "dangling", None)
    (path / "config.pbtxt").symlink_to("nowhere")
    path = models.write_model(folder, "loop", None)
    (path / "config.pbtxt").symlink_to("config.pbtxt")


FILES = {
    "huge_file": "larger than the limit",
    "fifo": "is not a regular file",
    "device": "is not a regular file",
    "terminal": "is not a regular file",
    "folder": "is not a regular file",
    "dangling": "failed to follow link",
    "loop": "Too many levels of symbolic links",
}


def test_every_bad_configuration_has_its_reason(make_server):
    server = make_server(texts, wait="live", parts=PARTS)
    assert server.wait_for("/v2/models/good/ready")
    found = settled(server)
    for name, (_, words) in TEXTS.items():
        assert len(found[name]) == 1, found[name]
        is_away(found[name][0], *words)
    for name, word in FILES.items():
        assert len(found[name]) == 1, found[name]
        is_away(found[name][0], word)
    assert found["good"] == [{"name": "good", "version": "1",
                              "state": "READY"}]
    works(server)
    assert server.get("/v2/health/live").status == 200
    assert server.get("/v2/health/ready").status == 400
    assert "\033" not in server.log_text()          # nobody forges a line
    assert not [line for line in server.log_text().splitlines()
                if line.startswith("b")]


def extreme(folder):
    """Odd, but as it may be."""
    models.identity(folder, "bytes", IN, extra=(
        r'parameters { key: "latin" value { string_value: "caf\351" } }'
        r' metric_tags { key: "k" value: "\377\n\"" }'))
    models.identity(folder, "limits", IN, max_batch=4, extra="""
        dynamic_batching {
          priority_levels: 18446744073709551615
          default_priority_level: 18446744073709551615
          max_queue_delay_microseconds: 18446744073709551615
          default_queue_policy {
            default_timeout_microseconds: 18446744073709551615
            max_queue_size: 4294967295 } }
        version_policy { latest { num_versions: 4294967295 } }
        parameters { key: "digits" value {
          string_value: "\\":[18446744073709551615" } }\n""")
    models.identity(folder, "many", [(f"I{i}", "FP32", [1])
                                     for i in range(5000)])


def test_what_is_extreme_but_right_serves(make_server):
    server = make_server(extreme, parts=PARTS + " metrics")
    config = server.get("/v2/models/bytes/config").json()
    assert config["parameters"]["latin"]["string_value"] == "caf?"
    assert config["metric_tags"]["k"] == '?\n"'
    works(server, "bytes")
    config = server.get("/v2/models/limits/config").json()
    batching = config["dynamic_batching"]
    assert batching["priority_levels"] == 2 ** 64 - 1
    assert batching["default_priority_level"] == 2 ** 64 - 1
    assert batching["max_queue_delay_microseconds"] == 2 ** 64 - 1
    assert batching["default_queue_policy"][
        "default_timeout_microseconds"] == 2 ** 64 - 1
    assert batching["preferred_batch_size"] == [4]
    assert config["parameters"]["digits"]["string_value"] \
        == '":[18446744073709551615'
    answer = server.infer("limits", {"inputs": [
        tensor("IN", "FP32", [4, 1], [1, 2, 3, 4])]})
    assert answer.status == 200, answer         # the batch is full
    answer = server.infer("many", {"inputs": [
        tensor(f"I{i}", "FP32", [1], [i]) for i in range(5000)]})
    assert answer.status == 200, answer
    assert len(answer.json()["outputs"]) == 5000
    assert r'{_k="?\n\"",' in server.get("/metrics").body.decode()


# ---- entries of the repository and of a model's directory

LONGEST = "n" * 255
ODD = ['quo"te', "back\\slash", "a b", "dots...", "...", ".hidden",
       "gr\u00fc\u00dfe \U0001f600", "-v", "%41", "a;b", "$HOME", "<b>",
       LONGEST]


def entries(folder):
    models.identity(folder, "good", IN)
    for name in ODD:
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(
            models.identity_config("", IN).replace('name: ""\n', "", 1))
    (folder / "file").write_text("no model")
    os.mkfifo(folder / "a_fifo")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    (folder / "there").symlink_to("back")
    (folder / "back").symlink_to("there")
    (folder / "deep").symlink_to("/".join(["x"] * 2000))
    for name in (b"tab\there", b"line\nbreak", b"not\xffutf8", b"del\x7f"):
        os.mkdir(os.path.join(os.fsencode(folder), name))
    outside = folder.parent / "outside"
    models.identity(outside, "elsewhere", IN)
    (folder / "elsewhere").symlink_to(outside / "elsewhere")
    (folder / "itself").symlink_to(".")
    (folder / "above").symlink_to("..")
    (folder / "empty").mkdir()


def test_every_bad_entry_has_its_row(make_server):
    server = make_server(entries, wait="live", parts=PARTS)
    assert server.wait_for("/v2/models/good/ready")
    found = settled(server)
    for name in ("good", "elsewhere", *ODD):
        assert found[name] == [{"name": name, "version": "1",
                                "state": "READY"}], found[name]
    for name, words in {
            "dangling": "can't be followed: No such file",
            "loop": "can't be followed: Too many levels",
            "there": "can't be followed: Too many levels",
            "back": "can't be followed: Too many levels",
            "tab\\x09here": "control characters",
            "line\\x0abreak": "control characters",
            "del\\x7f": "control characters",
            "not\\xffutf8": "valid UTF-8",
            "itself": "Could not determine backend",
            "above": "Could not determine backend",
            "empty": "Could not determine backend"}.items():
        assert len(found[name]) == 1, found[name]
        is_away(found[name][0], words)
        assert "version" not in found[name][0]
    assert "file" not in found and "a_fifo" not in found
    for name in ("good", "elsewhere"):
        works(server, name)
    assert [r["name"] for r in index(server, ready=True)] == sorted(
        ["good", "elsewhere", *ODD], key=os.fsencode)


def version_folders(folder):
    def model(name, policy="all {}"):
        path = folder / name
        path.mkdir()
        (path / "config.pbtxt").write_text(models.identity_config(
            name, IN, extra=f"version_policy {{ {policy} }}\n"))
        return path

    odd = model("odd")
    for name in ("0", "1", "9", "10", "00001", "003", "abc", "1.bak", "-1",
                 "+5", " 7", "99999999999999999999", "9223372036854775808",
                 "1234567890123456789012345", "warmup", "configs", "v" * 255,
                 "x\ny"):
        (odd / name).mkdir()
    (odd / "9223372036854775807").mkdir()
    (odd / "2").write_text("a file")
    (odd / "3").symlink_to("9")
    (odd / "4").symlink_to("nowhere")
    (odd / "5").symlink_to("5")
    os.mkfifo(odd / "6")
    only = model("only_odd")
    for name in ("00001", "1.bak", "-1", "99999999999999999999"):
        (only / name).mkdir()
    for name, policy in {"latest": "latest { num_versions: 1 }",
                         "none_of_it": "latest {}",
                         "some": "specific { versions: [ 1, 7 ] }",
                         "missing": "specific { versions: [ 7 ] }"}.items():
        path = model(name, policy)
        for version in ("1", "9", "10"):
            (path / version).mkdir()
    path = model("by_default")
    (path / "config.pbtxt").write_text(models.identity_config(
        "by_default", IN, extra="version_policy {}\n"))
    for version in ("9", "10"):
        (path / version).mkdir()


def test_version_folders_of_every_kind(make_server):
    server = make_server(version_folders, wait="live", parts=PARTS)
    assert server.wait_for("/v2/models/odd/ready")
    found = settled(server)

    def versions(name):
        return [r["version"] for r in found[name] if r["state"] == "READY"]

    assert versions("odd") == ["0", "1", "3", "9", "10",
                               "9223372036854775807"]
    assert versions("latest") == ["10"]
    assert versions("some") == ["1"]
    assert versions("by_default") == ["9", "10"]
    for name in ("only_odd", "none_of_it", "missing"):
        assert len(found[name]) == 1
        is_away(found[name][0], "at least one version must be available "
                f"under the version policy of model '{name}'")
    for word in ("'00001' which contains leading zeros",
                 "'1.bak' which fails to convert", "'-1' which fails",
                 "'99999999999999999999' whose number is above",
                 "'x\\x0ay' which fails", "'4' which can't be followed",
                 "version 7 is specified for model"):
        assert process.wait_until(lambda: word in server.log_text(),
                                  20 * SLOW), word
    for version in ("0", "9223372036854775807"):
        answer = server.infer("odd", ONE, version=version)
        assert answer.status == 200, answer
        assert answer.json()["model_version"] == version


def test_links_that_lead_back_are_looked_at_once(make_server):
    """Each level has ten links to the next: ten to the eighth, if followed
    every time."""
    def fill(folder):
        path = models.identity(folder, "maze", IN)
        for i in range(10):
            (path / f"self{i}").symlink_to(".")
            (path / "1" / f"up{i}").symlink_to("..")
        for level in range(8):
            (path / f"level{level}").mkdir()
            for i in range(10):
                (path / f"level{level}" / f"next{i}").symlink_to(
                    f"../level{level + 1}")
        models.identity(folder, "good", IN)

    server = make_server(fill, parts=PARTS, http="    "
                         "inference_model_control poll interval=200ms;\n")
    works(server, "maze")
    models.identity(server.models, "late", IN)
    assert server.wait_for("/v2/models/late/ready")
    (server.models / "maze" / "level7" / "x").write_text("")
    assert process.wait_until(lambda: loads_of(server, "maze") == 2,
                              20 * SLOW)


# ---- what the user may not read

def locked(folder):
    models.identity(folder, "good", IN)
    for name in ("locked", "half", "secret", "labels", "files"):
        models.identity(folder, name, IN)
    (folder / "locked").chmod(0)
    (folder / "half" / "1").chmod(0)
    (folder / "secret" / "config.pbtxt").chmod(0)
    (folder / "labels" / "config.pbtxt").write_text(
        models.identity_config("labels", IN, outputs=[
            ("OUT", "FP32", [-1], 'label_filename: "labels.txt"')]))
    (folder / "labels" / "labels.txt").write_text("a\n")
    (folder / "labels" / "labels.txt").chmod(0)


def test_unreadable_folders_hurt_only_themselves(make_server):
    server = make_server(
        locked, wait="live", parts=PARTS, user="nobody nogroup",
        http="    inference_model_control poll interval=200ms;\n")
    assert server.wait_for("/v2/models/good/ready")
    found = settled(server)
    is_away(found["locked"][0], "can't be read", "Permission denied",
            str(server.models / "locked"))
    is_away(found["secret"][0], "config.pbtxt", "Permission denied")
    is_away(found["labels"][0], "labels.txt", "Permission denied")
    works(server)
    works(server, "half")                   # identity reads no file
    assert server.get("/v2/health/ready").status == 400

    for name in ("locked", "half/1", "secret/config.pbtxt",
                 "labels/labels.txt"):      # and it is seen when they open
        (server.models / name).chmod(0o755)
    assert server.wait_for("/v2/health/ready")
    for name in ("locked", "half", "secret", "labels"):
        works(server, name)

    (server.models / "good").chmod(0)       # what serves goes on
    models.identity(server.models, "late", IN)
    assert server.wait_for("/v2/models/late/ready")
    works(server)
    server.models.chmod(0)
    try:
        assert server.post("/v2/repository/index", b"").status == 500
        for name in ("good", "late", "half"):
            works(server, name)
    finally:
        server.models.chmod(0o755)
        (server.models / "good").chmod(0o755)
    assert process.wait_until(lambda: not any(
        "reason" in r for r in index(server)), 20 * SLOW), index(server)
