"""Warm-up: where its data may come from, and what a bad sample costs."""

import json
import os

from lib import models, process
from lib.server import SLOW
from lib.wire import tensor

IN = [("IN", "FP32", [-1])]


def sample(dims="dims: 4", data='input_data_file: "data"', name="IN",
           type_="TYPE_FP32", more="batch_size: 1"):
    return (f'model_warmup {{ name: "s" {more} inputs {{ key: "{name}" value'
            f" {{ data_type: {type_} {dims} {data} }} }} }}\n")


# name: (the sample, words of the reason)
BAD = {
    "above": (sample(data='input_data_file: "../secret"'),
              ["must stay within"]),
    "absolute": (sample(data='input_data_file: "/etc/passwd"'),
                 ["must stay within"]),
    "link": (sample(data='input_data_file: "link"'), ["is outside"]),
    "dangling": (sample(data='input_data_file: "dangling"'), ["dangling"]),
    "gone": (sample(data='input_data_file: "gone"'), ["No such file"]),
    "fifo": (sample(data='input_data_file: "fifo"'), ["not a regular file"]),
    "folder": (sample(data='input_data_file: "sub"'),
               ["not a regular file"]),
    "sparse": (sample(data='input_data_file: "sparse"'),
               ["larger than the limit"]),
    "short": (sample(dims="dims: 100"),
              ["expects 400 bytes", "only has 20 bytes"]),
    "variable": (sample(dims="dims: -1"), ["all variable-size dimensions"]),
    "huge": (sample(dims="dims: 9223372036854775807", data="zero_data: true"),
             ["larger than"]),
    "nothing": (sample(data=""), ["input_data_type"]),
    "wide": (sample(more="batch_size: 4294967295"), ["batch_size"]),
    "unknown": (sample(name="OTHER"), ["warmup sample 's'"]),
    "other_type": (sample(type_="TYPE_INVALID", data="zero_data: true"),
                   ["data_type"]),
}

FINE = {
    "file": sample(), "longer": sample(dims="dims: 2"),
    "sub": sample(data='input_data_file: "sub/data"'),
    "inner": sample(data='input_data_file: "inner"'),
    "skipped": sample(dims="dims: -1", more="batch_size: 0"),
    "zeros": sample(data="zero_data: false", more="batch_size: 1 count: 3"),
    "random": sample(data="random_data: true"),
}


def fill(folder):
    models.identity(folder, "good", IN)
    (folder.parent / "secret").write_bytes(bytes(16))
    for name, text in [*FINE.items(), *((n, t) for n, (t, _) in BAD.items())]:
        path = models.identity(folder, name, IN, extra=text) / "warmup"
        (path / "sub").mkdir(parents=True)
        (path / "data").write_bytes(bytes(20))
        (path / "sub" / "data").write_bytes(bytes(20))
        (path / "inner").symlink_to("sub/data")
        (path / "link").symlink_to("../../../secret")
        (path / "dangling").symlink_to("nowhere")
        os.mkfifo(path / "fifo")
        (path / "sparse").write_bytes(b"")
        os.truncate(path / "sparse", 1 << 40)


def test_samples_come_from_the_models_folder(make_server):
    server = make_server(fill, wait="live",
                         parts="health metadata config infer repository")

    def index():
        return {r["name"]: r for r in json.loads(
            server.post("/v2/repository/index", b"").body)}

    assert process.wait_until(lambda: not any(
        r["state"] == "LOADING" for r in index().values()), 30 * SLOW)
    rows = index()
    for name in ("good", *FINE):
        assert rows[name]["state"] == "READY", rows[name]
        answer = server.infer(name, {"inputs": [
            tensor("IN", "FP32", [1], [1.5])]})
        assert answer.status == 200, answer
    for name, (_, words) in BAD.items():
        assert rows[name]["state"] == "UNAVAILABLE", rows[name]
        for word in words:
            assert word in rows[name]["reason"], rows[name]
