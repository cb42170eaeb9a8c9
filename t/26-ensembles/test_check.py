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


# name of the ensemble: (text, place)
FINDINGS = {
    "absent": (r"ensemble absent contains models that are not available or "
               r"ambiguous: nowhere",
        r"17:5: ensemble_scheduling\.step\[1\]\.model_name"),
    "version": (r"ensemble 'version' depends on 'm' whose required version "
                r"3 is not loaded\.",
        r"12:5: ensemble_scheduling\.step\[0\]\.model_version"),
    "zero": (r"version 0 is not loaded\.",
        r"12:5: ensemble_scheduling\.step\[0\]\.model_version"),
    "kinds": (r"in ensemble kinds, ensemble tensor x: inconsistent data "
              r"type: TYPE_FP32 is inferred from model m while TYPE_INT8 is "
              r"inferred from model bytes",
        r"16:3: ensemble_scheduling\.step\[1\]"),
    "shapes": (r"inconsistent shape",
        r"10:3: ensemble_scheduling\.step\[0\]"),
    "batches": (r"ensemble batches allows maximum batch size 4, but it "
                r"contains model few which only allows maximum batch size "
                r"to be 2",
        r"\d+:\d+: ensemble_scheduling\.step\[0\]"),
    "names": (r"non-existing input IN in model other_names",
        r"10:3: ensemble_scheduling\.step\[0\]"),
    "self": (r"circular dependency between ensembles: self -> ... -> self "
             r"-> self",
        r"9:1: ensemble_scheduling"),
    "circle_a": (r"circular dependency between ensembles: circle_a -> ... "
                 r"-> circle_b -> circle_a \(circle_a -> circle_b -> "
                 r"circle_a\)",
        r"9:1: ensemble_scheduling"),
    "circle_b": (r"circular dependency between ensembles: circle_b -> ... "
                 r"-> circle_a -> circle_b \(circle_b -> circle_a -> "
                 r"circle_b\)",
        r"9:1: ensemble_scheduling"),
}


@pytest.fixture
def check(make_server):
    def run(fill, **kw):
        return make_server(fill, start=False, **kw).check_config()
    return run


def test_all_that_does_not_fit_is_found(check):
    status, output = check(wrong)
    assert status == 0, output
    for name, (text, place) in FINDINGS.items():
        assert re.search(rf"{text}[^\n]* \([^\n]*/{name}/config\.pbtxt:"
                         rf"{place}\)", output), (name, output)
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
