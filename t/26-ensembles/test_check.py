"""nginx -t names what is wrong between ensembles and their models."""

import re

import pytest

from lib import models


def step(name, version="-1", source="IN", target="OUT"):
    return (f'  step {{\n    model_name: "{name}"\n'
            f'    model_version: {version}\n'
            f'    input_map {{ key: "IN" value: "{source}" }}\n'
            f'    output_map {{ key: "OUT" value: "{target}" }}\n  }}\n')


def ensemble(folder, name, *steps, datatype="FP32", max_batch=0):
    """The first step begins in line 10."""
    models.write_model(
        folder, name, f'platform: "ensemble"\nmax_batch_size: {max_batch}\n'
        + models.io_block("input", [("IN", datatype, [4])])
        + models.io_block("output", [("OUT", datatype, [4])])
        + "ensemble_scheduling {\n" + "".join(steps) + "}\n")


def identity(folder, name, datatype="FP32", dims=(4,), **kw):
    models.identity(folder, name, [("IN", datatype, dims)], **kw)


def good(folder):
    ensemble(folder, "good", step("m", target="x"), step("wild", source="x"))
    ensemble(folder, "above", step("good", "1"))
    identity(folder, "m")
    identity(folder, "wild", dims=(-1,))


def wrong(folder):
    good(folder)
    identity(folder, "bytes", datatype="INT8")
    identity(folder, "long", dims=(5,))
    identity(folder, "few", max_batch=2)
    models.identity(folder, "other_names", [("X", "FP32", [4])])
    models.write_model(folder, "unknown_tensors", 'backend: "identity"\n')
    ensemble(folder, "absent", step("m", target="x"),
             step("nowhere", source="x"))
    ensemble(folder, "version", step("m", "3"))
    ensemble(folder, "zero", step("m", "0"))
    ensemble(folder, "kinds", step("m", target="x"),
             step("bytes", source="x", target="y"), step("m", source="y"))
    ensemble(folder, "shapes", step("long"))
    ensemble(folder, "batches", step("few"), max_batch=4)
    ensemble(folder, "names", step("other_names"))
    ensemble(folder, "self", step("self"))
    ensemble(folder, "circle_a", step("circle_b"))
    ensemble(folder, "circle_b", step("circle_a"))
    ensemble(folder, "cant_tell", step("unknown_tensors"))


FINDINGS = {
    "absent": r":17:5: ensemble_scheduling\.step\[1\]\.model_name: ensemble "
              r"absent contains models that are not available or ambiguous: "
              r"nowhere",
    "version": r":12:5: ensemble_scheduling\.step\[0\]\.model_version: "
               r"ensemble 'version' depends on 'm' whose required version 3 "
               r"is not loaded\.",
    "zero": r":12:5: ensemble_scheduling\.step\[0\]\.model_version: "
            r"[^\n]*version 0 is not loaded\.",
    "kinds": r":16:3: ensemble_scheduling\.step\[1\]: in ensemble kinds, "
             r"ensemble tensor x: inconsistent data type: TYPE_FP32 is "
             r"inferred from model m while TYPE_INT8 is inferred from model "
             r"bytes",
    "shapes": r":10:3: ensemble_scheduling\.step\[0\]: [^\n]*inconsistent "
              r"shape",
    "batches": r":\d+:\d+: ensemble_scheduling\.step\[0\]: ensemble batches "
               r"allows maximum batch size 4, but it contains model few which"
               r" only allows maximum batch size to be 2",
    "names": r":10:3: ensemble_scheduling\.step\[0\]: [^\n]*non-existing "
             r"input IN in model other_names",
    "self": r":9:1: ensemble_scheduling: circular dependency between "
            r"ensembles: self -> self",
    "circle_a": r":9:1: ensemble_scheduling: circular dependency between "
                r"ensembles: circle_a -> circle_b -> circle_a",
    "circle_b": r":9:1: ensemble_scheduling: circular dependency between "
                r"ensembles: circle_b -> circle_a -> circle_b",
}


@pytest.fixture
def check(make_server):
    def run(fill, **kw):
        return make_server(fill, start=False, **kw).check_config()
    return run


def test_all_that_does_not_fit_is_found(check):
    status, output = check(wrong)
    assert status == 0, output
    for name, words in FINDINGS.items():
        assert re.search(rf"/{name}/config\.pbtxt{words}", output), (
            name, output)
    found = re.findall(r"\[warn\][^\n]*/(\w+)/config\.pbtxt", output)
    assert sorted(found) == sorted(FINDINGS), output


def test_what_fits_passes(check):
    status, output = check(good, http="inference_check strict;")
    assert status == 0, output
    assert "config.pbtxt" not in output


def test_what_lies_elsewhere_may_be_there(check):
    """Nobody looks into a bucket for a test of nginx's configuration."""
    status, output = check(
        lambda r: ensemble(r, "e", step("far")),
        http="inference_check strict; inference_repository s3://b/p;")
    assert status == 0, output


def test_composing_models_in_another_repository(check, tmp_path):
    identity(tmp_path, "m")
    tmp_path.chmod(0o755)
    status, output = check(
        lambda r: ensemble(r, "e", step("m")),
        http=f"inference_check strict; inference_repository {tmp_path};")
    assert status == 0, output
