"""Files and configurations that are wrong: each load fails with a reason that
says where, and the other models serve on."""

import json
import pathlib
import re
import shutil
import struct

import numpy
import pytest
import treelite

from lib import forests, models, repository
from lib.server import BACKENDS, Server
from lib.wire import tensor


@pytest.fixture(scope="module")
def files():
    """{kind: (file name, content)}"""
    made = {"xgboost": forests.xgb_legacy(), "xgboost_ubj": forests.xgb_ubj(),
            "xgboost_json": forests.xgb_binary(),
            "lightgbm": forests.lgb_regression(),
            "treelite_checkpoint": forests.skl_gradient_boosting()}
    return {k: (f.filename, f.content) for k, f in made.items()}


@pytest.fixture(scope="module")
def served(files):
    def fill(directory):
        name, content = files["xgboost_json"]
        models.write_model(directory, "good", 'backend: "trees"', (1,),
                           {1: {name: content}})

    with Server(fill, parts=repository.PARTS,
                http=repository.EXPLICIT) as server:
        assert repository.ask(server, "load", "good").status == 200
        yield server
        assert ask(server, "good", [1, 2, 3, 4]).status == 200


def ask(server, name, data, shape=None):
    return server.infer(name, {"inputs": [
        tensor("input__0", "FP32", shape or [1, len(data)], data)]})


def reason(server, content, filename, config="", backend="trees",
           **parameters):
    """Why a model with that file does not load."""
    path = pathlib.Path(server.models)
    shutil.rmtree(path / "bad", ignore_errors=True)
    models.write_model(path, "bad", f'backend: "{backend}"\n' + config
                       + models.parameter_block(parameters), (1,),
                       {1: {filename: content} if filename else {}})
    answer = repository.ask(server, "load", "bad")
    assert answer.status != 200, (filename, parameters)
    assert ask(server, "good", [1, 2, 3, 4]).status == 200
    return json.loads(answer.body)["error"]


@pytest.mark.parametrize("kind", [
    "xgboost", "xgboost_ubj", "xgboost_json", "treelite_checkpoint"])
def test_a_truncated_file(served, files, kind):
    name, content = files[kind]
    for part in (0, 3, 10, 60, 200, len(content) // 2, len(content) - 1):
        text = reason(served, content[:part], name)
        assert name in text, text


def test_a_truncated_checkpoint_at_every_byte(served, files):
    """The first tree and all in front of it."""
    name, content = files["treelite_checkpoint"]
    for part in range(0, 700, 23):
        text = reason(served, content[:part], name)
        assert "the file ends in" in text, text


def test_a_truncated_text_file(served, files):
    """treelite would take what is there for the model."""
    name, content = files["lightgbm"]
    whole = len(content.split(b"end of trees")[0])
    for part in (0, 10, 100, whole // 3, whole // 2, whole - 1, whole + 5):
        text = reason(served, content[:part], name)
        assert "ends before the end of its trees" in text, text


@pytest.mark.parametrize("kind", [
    "xgboost", "xgboost_ubj", "xgboost_json", "lightgbm",
    "treelite_checkpoint"])
def test_garbage(served, files, kind):
    name, _ = files[kind]
    noise = numpy.random.default_rng(1).bytes(5000)
    for content in (noise, b"\0" * 5000, b"\xff" * 5000, b"hello\n" * 50):
        text = reason(served, content, name)
        assert name in text, text


def test_a_file_of_another_kind(served, files):
    for kind in files:
        for other, (_, content) in files.items():
            if other != kind:
                text = reason(served, content, "mine.bin",
                              'default_model_filename: "mine.bin"\n',
                              model_type=kind)
                assert "mine.bin" in text, (kind, other, text)


@pytest.mark.parametrize("kind", ["xgboost_ubj", "xgboost_json"])
def test_xgboost_model_of_a_later_format(served, files, kind):
    """XGBoost 3 writes UBJSON into a file that is called xgboost.model."""
    name, content = files[kind]
    text = reason(served, content, "xgboost.model")
    assert f"({name}, model_type {kind})" in text, text


def test_json_that_is_nested_too_deep(served):
    """treelite's parser would need more stack than there is."""
    text = reason(served, b'{"version":[1,2,3],"x":' + b"[" * 10 ** 6,
                  "xgboost.json", xgboost_allow_unknown_field="true")
    assert "nested deeper than 200 levels" in text, text


@pytest.mark.parametrize("key", ["feature_names", "attributes"])
def test_ubjson_that_is_nested_too_deep(served, key):
    """The same of what treelite reads of every file."""
    head = b"{i\x07learner{i" + bytes([len(key)]) + key.encode()
    inner = b"[" if key == "feature_names" else b"{i\x01a"
    text = reason(served, head + inner * 10 ** 6, "xgboost.ubj")
    assert "nested deeper than 200 levels" in text, text


def test_ubjson_with_values_of_no_bytes(served):
    """treelite would count to 2^60."""
    text = reason(served, b"{i\x06Config[$Z#L" + struct.pack(">q", 2 ** 60),
                  "xgboost.ubj")
    assert "not UBJSON" in text, text


@pytest.mark.parametrize("field, at, value, named", [
    ("left_child", 0, 10 ** 8, "left_child"),
    ("left_child", 0, -10 ** 8, "left_child"),
    ("left_child", 0, 0, "left_child"),
    ("right_child", 0, 2 ** 31 - 1, "right_child"),
    ("num_leaves", 0, -5, "num_leaves"),
    ("num_leaves", 0, 10 ** 6, "leaf_value"),
    ("num_cat", 0, 10 ** 6, "cat_boundaries"),
    ("cat_boundaries", 1, 10 ** 8, "cat_boundaries"),
    ("threshold", 0, 10 ** 8, "threshold"),
    ("threshold", 0, -1, "threshold"),
    ("num_class", 0, 10 ** 9, "num_class"),
    ("objective", 0, "", "objective")])
def test_a_text_file_that_leads_out_of_itself(served, field, at, value,
                                              named):
    """treelite would read what lies behind its arrays, or never end."""
    made = forests.lgb_categories()

    def change(line):
        words = line.group(2).split(b" ")
        words[at] = str(value).encode()
        return line.group(1) + (b" ".join(words) if value != "" else b"")

    content, changed = re.subn(rb"(?m)^(%s=)(.*)$" % field.encode(), change,
                               made.content, count=1)
    text = reason(served, content, made.filename)
    assert changed == 1 and f'"{named}"' in text, text


def test_zeros_that_are_missing_values(served):
    """treelite would send them where zero goes by the threshold."""
    made = forests.text_of(forests.of_lightgbm(
        forests.DIABETES, forests.DIABETES_Y, zero_as_missing=True),
        forests.DIABETES)
    text = reason(served, made.content, made.filename)
    assert "tree 0 takes zeros for missing values (zero_as_missing)" in text


def ubjson(value):
    """As XGBoost writes it, but that every value has its own type."""
    if isinstance(value, dict):
        return b"{" + b"".join(ubjson(k)[1:] + ubjson(v)
                               for k, v in value.items()) + b"}"
    if isinstance(value, list):
        return b"[" + b"".join(map(ubjson, value)) + b"]"
    if isinstance(value, str):
        return b"SL" + struct.pack(">q", len(value)) + value.encode()
    if isinstance(value, float):
        return b"d" + struct.pack(">f", value)
    return b"L" + struct.pack(">q", value)


@pytest.fixture(scope="module")
def categories():
    return forests.xgb_categories().content


FIELDS = [
    ("categories_segments", lambda a: [10 ** 8] + a[1:], None),
    ("categories_segments", lambda a: [-1] + a[1:], None),
    ("categories_segments", lambda a: a[:-1], None),
    ("categories_segments", lambda a: [0] * len(a), None),
    ("categories_sizes", lambda a: [10 ** 9] + a[1:], None),
    ("categories_sizes", lambda a: [-1] + a[1:], None),
    ("categories_sizes", lambda a: a[1:], None),
    ("categories_nodes", lambda a: a + [10 ** 6],
     "categories_segments"),
    ("categories_nodes", lambda a: a[::-1], None),
    ("categories", lambda a: a[:3], "categories_sizes"),
    ("left_children", lambda a: [10 ** 8] + a[1:], None),
    ("left_children", lambda a: [-2] + a[1:], None),
    ("left_children", lambda a: [2 ** 32 + 1] + a[1:], None),
    ("right_children", lambda a: [2 ** 31 - 1] + a[1:], None),
    ("right_children", lambda a: a[1:], None),
    ("split_indices", lambda a: [2 ** 32] + a[1:], None),
    ("split_indices", lambda a: [-3] + a[1:], "a test of feature -3"),
    ("split_indices", lambda a: [3] + a[1:], "feature"),
    ("split_indices", lambda a: a[1:], None),
    ("split_type", lambda a: a[1:], None),
    ("split_conditions", lambda a: a[1:], None),
    ("parents", lambda a: [], None),
    ("default_left", lambda a: a[:1], None),
    ("loss_changes", lambda a: a[:1], None),
    ("sum_hessian", lambda a: a[:1], None)]


@pytest.mark.parametrize("write, filename", [
    (lambda v: json.dumps(v).encode(), "xgboost.json"),
    (ubjson, "xgboost.ubj")])
def test_a_tree_of_xgboost_that_leads_out_of_itself(served, categories,
                                                    write, filename):
    """treelite would read what lies behind its arrays."""
    for field, change, named in FIELDS:
        model = json.loads(categories)
        trees = model["learner"]["gradient_booster"]["model"]["trees"]
        trees[1][field] = change(trees[1][field])
        text = reason(served, write(model), filename)
        assert "tree 1" in text and filename in text, (field, text)
        assert (named or f'"{field}"') in text, (field, text)


def test_numbers_and_texts_that_are_longer_than_they_look(served, categories):
    """Integers beyond 64 bits, and a count behind an escape and zeros."""
    for value in (9223372038733824000, 2 ** 64 - 1, 2 ** 70, 1.5, "1", None):
        model = json.loads(categories)
        trees = model["learner"]["gradient_booster"]["model"]["trees"]
        trees[1]["categories_segments"][0] = value
        text = reason(served, json.dumps(model).encode(), "xgboost.json")
        assert '"categories_segments" of tree 1' in text, (value, text)

    model = json.loads(categories)
    trees = model["learner"]["gradient_booster"]["model"]["trees"]
    trees[1]["tree_param"]["num_nodes"] = "NODES"
    trees[1]["left_children"][0] = 10 ** 8
    content = json.dumps(model).replace("NODES", "\\u0030" + "0" * 63 + "5")
    text = reason(served, content.encode(), "xgboost.json")
    assert "tree 1" in text, text


@pytest.mark.parametrize("write, filename", [
    (lambda v: json.dumps(v).encode(), "xgboost.json"),
    (ubjson, "xgboost.ubj")])
@pytest.mark.parametrize("path, value", [
    (("gradient_booster", "model", "tree_info"), [0]),
    (("gradient_booster", "model", "trees", 0, "tree_param", "num_nodes"),
     str(2 ** 31 - 1)),
    (("gradient_booster", "model", "trees", 0, "tree_param", "num_nodes"),
     "-5"),
    (("gradient_booster", "model", "trees", 0, "tree_param",
      "size_leaf_vector"), str(2 ** 31 - 1)),
    (("learner_model_param", "num_target"), "0"),
    (("learner_model_param", "num_target"), str(2 ** 31 - 1)),
    (("learner_model_param", "num_class"), str(2 ** 31 - 1)),
    (("learner_model_param", "num_class"), "many"),
    (("learner_model_param", "base_score"), "[" * 10 ** 6)])
def test_a_model_of_xgboost_with_a_wrong_count(served, categories, write,
                                               filename, path, value):
    model = json.loads(categories)
    part = model["learner"]
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    text = reason(served, write(model), filename)
    assert f'"{path[-1]}"' in text and filename in text, text


def test_a_field_that_is_there_twice(served, categories):
    """treelite would put one behind the other."""
    text = reason(served, categories.replace(
        b'"categories_nodes":', b'"categories_n\\u006fdes":[0],'
        b'"categories_nodes":', 1), "xgboost.json")
    assert '"categories_nodes" is there twice' in text, text


def edited(content, **fields):
    """The checkpoint with arrays of its first tree replaced."""
    model = treelite.Model.deserialize_bytes(content)
    tree = model.get_tree_accessor(0)
    for name, value in fields.items():
        if name in ("num_feature", "target_id", "class_id", "num_class",
                    "leaf_vector_shape", "base_scores", "num_target"):
            model.get_header_accessor().set_field(name, value)
        else:
            array = tree.get_field(name).copy()
            for at, number in value.items():
                array[at] = number
            tree.set_field(name, array)
    return model.serialize_bytes()


@pytest.mark.parametrize("fields, words", [
    ({"cleft": {0: 0}}, "reached by two ways"),
    ({"cright": {0: 1}}, "reached by two ways"),
    ({"cleft": {1: 1}}, "a test of feature -1"),
    ({"cleft": {0: 10 ** 6}}, "is none of the"),
    ({"cright": {0: -5}}, "is none of the"),
    ({"split_index": {0: 4}}, "a test of feature 4"),
    ({"split_index": {0: -1}}, "a test of feature -1"),
    ({"cmp": {0: 9}}, "an operator of number 9"),
    ({"node_type": {0: 2}, "category_list_begin": {0: 5}}, "categories 5"),
    ({"leaf_vector_end": {-1: 9}}, "a leaf of"),
    ({"num_feature": numpy.array([2], "int32")}, "a test of feature"),
    ({"num_feature": numpy.array([-2], "int32")}, "-2 features"),
    ({"target_id": numpy.array([0], "int32")}, "\"target_id\" has 1"),
    ({"class_id": numpy.array([7] * 10, "int32")}, "\"class_id\" is 7"),
    ({"num_class": numpy.array([0], "int32")}, "0 classes"),
    ({"num_class": numpy.array([2 ** 30], "int32")}, "classes"),
    ({"leaf_vector_shape": numpy.array([1, 3], "int32")}, "values for"),
    ({"base_scores": numpy.array([], "float64")}, "\"base_scores\" has 0"),
    ({"num_target": numpy.array([3], "int32")}, "\"num_class\" has 1")])
def test_a_model_that_leads_out_of_itself(served, files, fields, words):
    name, content = files["treelite_checkpoint"]
    text = reason(served, edited(content, **fields), name)
    assert words in text, text


def test_an_unknown_postprocessor(served, files):
    name, content = files["treelite_checkpoint"]
    text = reason(served, content.replace(
        struct.pack("<Q", 7) + b"sigmoid", struct.pack("<Q", 7) + b"mysmoid"),
        name)
    assert "mysmoid" in text, text


@pytest.mark.parametrize("parameters, words", [
    ({"model_type": "catboost"},
     "catboost not recognized as a valid serialization format."),
    ({"threshold": "half"}, "half"),
    ({"threshold": "nan"}, "threshold"),
    ({"output_class": "maybe"}, "output_class"),
    ({"predict_proba": "2"}, "predict_proba"),
    ({"transfer_threshold": "-1"}, "transfer_threshold"),
    ({"xgboost_allow_unknown_field": "x"}, "xgboost_allow_unknown_field")])
def test_a_parameter_that_is_wrong(served, files, parameters, words):
    name, content = files["xgboost_json"]
    text = reason(served, content, name, **parameters)
    assert words in text and "bad" in text, text


def test_tensors_that_are_not_the_file_s(served, files):
    name, content = files["xgboost_json"]

    def said(inputs, outputs):
        return reason(served, content, name, "max_batch_size: 4\n"
                      + models.io_block("input", inputs)
                      + models.io_block("output", outputs))

    right_in = [("input__0", "FP32", [4])]
    right_out = [("output__0", "FP32", [1])]
    assert "[-1,5]" in said([("input__0", "FP32", [5])], right_out)
    assert "FP64" in said([("input__0", "FP64", [4])], right_out)
    assert "input 'x'" in said([("x", "FP32", [4])], right_out)
    assert "[-1,3]" in said(right_in, [("output__0", "FP32", [3])])
    assert "output 'y'" in said(right_in, [("y", "FP32", [1])])
    text = said(right_in, right_out + [("treeshap_output", "FP32", [5])])
    assert "treeshap_output" in text and "SHAP" in text


def test_no_file_and_no_kind(served, files):
    text = reason(served, b"", "")
    assert "xgboost.ubj" in text and "model.txt" in text, text
    text = reason(served, b"", "", model_type="lightgbm")
    assert "model.txt" in text, text
    text = reason(served, b"x", "a.bin",
                  'default_model_filename: "a.bin"\n')
    assert "model_type" in text, text


def test_an_instance_on_a_gpu_that_is_not_there(served, files):
    name, content = files["xgboost_json"]
    text = reason(served, content, name,
                  "instance_group { kind: KIND_GPU gpus: [ 0 ] }\n")
    assert "GPU" in text, text


def test_requests_that_do_not_fit(served):
    for data, shape in (([1, 2, 3], [1, 3]), ([1] * 5, [1, 5]),
                        ([1] * 4, [4]), ([1] * 8, [1, 2, 4])):
        assert ask(served, "good", data, shape).status == 400


def test_without_the_library(make_server, files, tmp_path):
    """The backend alone in a directory: the reason names the package."""
    alone = tmp_path / "backends/trees"
    alone.mkdir(parents=True)
    shutil.copy(BACKENDS / "trees/libtriton_trees.so", alone)
    name, content = files["xgboost_json"]
    server = make_server(lambda r: models.write_model(
        r, "m", 'backend: "trees"', (1,), {1: {name: content}}),
        parts=repository.PARTS, http=repository.EXPLICIT,
        backends=tmp_path / "backends")
    answer = repository.ask(server, "load", "m")
    assert answer.status != 200
    text = json.loads(answer.body)["error"]
    assert "treelite==" in text and str(alone) in text, text

    for library in (BACKENDS / "trees").glob("lib*.so*"):
        if "triton" not in library.name:
            shutil.copy(library, alone)         # as an installation has them
    assert repository.ask(server, "load", "m").status == 200, answer
