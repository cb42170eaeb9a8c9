"""Every configuration snippet of the project's first documents loads.

Parts that a snippet leaves out (a name, a backend, tensors) are added; the
backends are one that takes any model, under the names that the snippets call
for, and a fake driver has the GPUs.
"""

import json
import re

import pytest

from lib import backends, models, process, seeds
from lib.server import BUILD, SLOW

SNIPPETS = seeds.snippets()
NAMES = ["stand_in", "tensorrt", "tensorflow", "onnxruntime", "pytorch"]
IO = ('input [ { name: "INPUT" data_type: TYPE_INT32 dims: [ 4 ] } ]\n'
      'output [ { name: "OUTPUT" data_type: TYPE_INT32 dims: [ 4 ] } ]\n')


def whole(name, text):
    """The snippet as a model's configuration."""
    if not re.search(r"^\s*(platform|backend)\s*:", text, re.M):
        text += '\nbackend: "stand_in"\n'
    if not re.search(r"^\s*input\s*(:|\[|\{)", text, re.M):
        text += IO
    named = re.search(r'^\s*name: "([^"]+)"', text)
    return (named.group(1), text) if named else (name, text)


def is_ensemble(text):
    return "ensemble" in text


@pytest.mark.skipif(not SNIPPETS, reason="the documents are not there")
def test_every_snippet_loads(make_server):
    """Ensembles have members, which the documents don't show: they are tested
    where ensembles are."""
    wanted = [(place, *whole("at_" + place.replace(":", "_"), text))
              for place, text in SNIPPETS if not is_ensemble(text)]
    assert len(wanted) >= 10 and len(SNIPPETS) >= 14
    assert len({name for _, name, _ in wanted}) == len(wanted)

    def fill(folder):
        for _, name, text in wanted:
            path = models.write_model(folder, name, text)
            (path / "initial_state").mkdir()
            (path / "initial_state" / "initial_state_data").write_bytes(
                bytes(4))

    server = make_server(
        fill, wait="live", backends=backends.stand_ins(*NAMES),
        parts="health metadata config infer repository",
        http="    inference_backend_config * min-compute-capability=1;\n",
        inference_env=[
            f"INFERENCE_CUDA_DRIVER={BUILD / 't-cuda/libfake-cuda.so'}",
            "FAKE_CUDA_DEVICES=3"])

    def index():
        return json.loads(server.post("/v2/repository/index", b"").body)

    assert process.wait_until(lambda: not any(
        r.get("state") in (None, "LOADING") for r in index()), 30 * SLOW)
    rows = {r["name"]: r for r in index()}
    for place, name, text in wanted:
        row = rows[name]
        assert row["state"] == "READY", (place, row)
        config = server.get(f"/v2/models/{name}/config").json()
        counts = re.findall(r"instance_group.*?count: (\d+)", text, re.S)
        if counts:
            assert config["instance_group"][0]["count"] == int(counts[0])
        for field in ("host_policy", "gpus", "rate_limiter",
                      "sequence_batching", "max_candidate_sequences",
                      "iterative_sequence", "initial_state", "data_file"):
            assert (field in text) <= (
                f'"{field}":' in json.dumps(config).replace('": ', '":'))
