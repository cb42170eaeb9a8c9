"""The part of triton_python_backend_utils that is pure Python, without a
server."""

import importlib
import struct
import sys

import ml_dtypes
import numpy as np
import pytest

from lib.server import ROOT

PACKAGE = ROOT / "backends/python/package"


@pytest.fixture(scope="module", autouse=True)
def package():
    sys.path.insert(0, str(PACKAGE))
    yield
    sys.path.remove(str(PACKAGE))


def load(name):
    return importlib.import_module(name)


@pytest.fixture
def types():
    return load("_pb_datatypes")


@pytest.fixture
def config():
    return load("_pb_model_config").ModelConfig(
        '{"name": "m", "max_batch_size": 4,'
        ' "input": [{"name": "I", "data_type": "TYPE_FP32", "dims": [3]},'
        ' {"name": "J", "data_type": "TYPE_INVALID", "dims": []}],'
        ' "output": [{"name": "O", "data_type": "TYPE_FP32", "dims": [3]}]}')


# ---- datatypes

def test_every_datatype_goes_both_ways(types):
    for name, kind in types.TRITON_STRING_TO_NUMPY.items():
        number = types.numpy_to_triton_type(kind)
        assert np.dtype(types.triton_to_numpy_type(number)) == np.dtype(kind)
        assert types.numpy_to_triton_type(np.dtype(kind)) == number
        assert types.triton_string_to_numpy(name) is kind
    assert [types.numpy_to_triton_type(k) for k in (
        np.bool_, np.uint8, np.uint16, np.uint32, np.uint64, np.int8,
        np.int16, np.int32, np.int64, np.float16, np.float32, np.float64,
        np.object_)] == list(range(1, 14))


def test_types_without_a_datatype(types):
    assert types.numpy_to_triton_type(np.bytes_) == 13
    assert types.numpy_to_triton_type(np.dtype("S7")) == 13
    for kind in (np.str_, np.complex64, np.datetime64, None,
                 ml_dtypes.bfloat16):
        assert types.numpy_to_triton_type(kind) is None
    for number in (0, 14, 99, -1):
        assert types.triton_to_numpy_type(number) is None
    for name in ("TYPE_BF16", "FP32", ""):
        with pytest.raises(KeyError):
            types.triton_string_to_numpy(name)


@pytest.mark.parametrize("array", [
    np.array([b"a", b"", b"\0\xff"], dtype=object),
    np.array([[b"a", b"bc"], [b"d", b""]], dtype=object),
    np.array([b"x" * 70000], dtype=object),
    np.array([b"ab", b"c"]),
], ids=["flat", "square", "long", "bytes_"])
def test_bytes_go_both_ways(types, array):
    data = types.serialize_byte_tensor(array)
    assert isinstance(data, bytes)
    back = types.deserialize_bytes_tensor(data)
    assert back.dtype == object and back.ndim == 1
    assert list(back) == list(array.ravel())
    assert list(types.deserialize_bytes_tensor(memoryview(data))) \
        == list(back)


def test_bytes_of_other_objects(types):
    data = types.serialize_byte_tensor(
        np.array(["\u00e9", 7, None], dtype=object))
    assert list(types.deserialize_bytes_tensor(data)) == [
        "\u00e9".encode(), b"7", b"None"]


def test_bytes_in_c_order(types):
    turned = np.array([[b"a", b"b"], [b"c", b"d"]], dtype=object).T
    assert list(types.deserialize_bytes_tensor(
        types.serialize_byte_tensor(turned))) == [b"a", b"c", b"b", b"d"]


def test_no_bytes(types):
    assert types.serialize_byte_tensor(np.zeros([0], dtype=object)) == ()
    assert types.serialize_byte_tensor(np.zeros([2])) is None
    assert types.deserialize_bytes_tensor(b"").shape == (0,)


@pytest.mark.parametrize("data", [b"\1", b"\1\0\0\0", b"\2\0\0\0a",
                                  b"\xff\xff\xff\xffabc"])
def test_bytes_that_are_cut_off(types, data):
    with pytest.raises(struct.error):
        types.deserialize_bytes_tensor(data)


# ---- errors

def test_codes_are_read_only():
    errors = load("_pb_errors")
    with pytest.raises(AttributeError):
        errors.TritonError.INTERNAL = 5
    with pytest.raises(AttributeError):
        errors.TritonError.NO_SUCH_CODE     # pylint: disable=W0104
    assert errors.TritonError("m").code() == errors.TritonError.INTERNAL
    assert errors.TritonError("m", 7).code() is errors.TritonError.CANCELLED
    assert errors.TritonError("m").NOT_FOUND == 2
    with pytest.raises(TypeError):
        errors.TritonError("m", 8)


# ---- looking up

class Named:
    def __init__(self, name):
        self._name = name

    def name(self):
        return self._name


class Holder:
    def __init__(self, *names):
        self.tensors = [Named(n) for n in names]

    def inputs(self):
        return self.tensors

    output_tensors = inputs


def test_tensors_by_name():
    lookup = load("_pb_lookup")
    holder = Holder("A", "B")
    for find in (lookup.get_input_tensor_by_name,
                 lookup.get_output_tensor_by_name):
        assert find(holder, "B") is holder.tensors[1]
        assert find(holder, "C") is None


def test_entries_of_a_configuration(config):
    lookup = load("_pb_lookup")
    document = config.as_dict()
    assert lookup.get_input_config_by_name(document, "I")["dims"] == [3]
    assert lookup.get_output_config_by_name(document, "O")["dims"] == [3]
    assert lookup.get_input_config_by_name(document, "O") is None
    assert lookup.get_output_config_by_name({}, "O") is None
    decoupled = lookup.using_decoupled_model_transaction_policy
    assert decoupled(document) is False
    assert decoupled({"model_transaction_policy": {"decoupled": True}})


# ---- a model's configuration

def test_tensors_are_added(config):
    new = {"name": "N", "data_type": "TYPE_INT8", "dims": [1],
           "optional": True}
    config.add_input(dict(new))
    config.add_output({"name": "P", "data_type": "TYPE_INT8", "dims": [-1]})
    assert config.as_dict()["input"][2] == new
    assert config.as_dict()["output"][1]["name"] == "P"


def test_empty_entries_are_completed_and_equal_ones_kept(config):
    config.add_input({"name": "J", "data_type": "TYPE_INT8", "dims": [2]})
    config.add_input({"name": "I", "data_type": "TYPE_FP32", "dims": [3],
                      "optional": True})
    assert config.as_dict()["input"] == [
        {"name": "I", "data_type": "TYPE_FP32", "dims": [3],
         "optional": True},
        {"name": "J", "data_type": "TYPE_INT8", "dims": [2]}]


def test_a_configuration_without_tensors():
    config = load("_pb_model_config").ModelConfig('{"name": "m"}')
    config.add_output({"name": "O", "data_type": "TYPE_FP32", "dims": [3]})
    config.set_max_batch_size(8)
    assert config.as_dict()["output"][0]["name"] == "O"
    assert config.as_dict()["max_batch_size"] == 8


@pytest.mark.parametrize("kind,tensor,text", [
    ("input", {"name": "N", "data_type": "TYPE_FP32", "dims": [1],
               "label": 1},
     "input 'N' in auto-complete-config function for model 'm' contains "
     "property other than 'name', 'data_type', 'dims' and 'optional'."),
    ("output", {"name": "N", "data_type": "TYPE_FP32", "dims": [1],
                "optional": True},
     "output 'N' in auto-complete-config function for model 'm' contains "
     "property other than 'name', 'data_type' and 'dims'."),
    ("input", {"data_type": "TYPE_FP32", "dims": [1]},
     "input in auto-complete-config function for model 'm' is missing "
     "'name' property."),
    ("input", {"data_type": "TYPE_FP32", "label": 1},
     "input in auto-complete-config function for model 'm' contains "
     "property other than"),
    ("output", {"name": "N", "dims": [1]},
     "output 'N' in auto-complete-config function for model 'm' is missing "
     "'data_type' property."),
    ("input", {"name": "N", "data_type": "TYPE_FP32"},
     "input 'N' in auto-complete-config function for model 'm' is missing "
     "'dims' property."),
    ("input", {"name": "I", "data_type": "TYPE_INT8", "dims": [3]},
     "unable to load model 'm', configuration expects datatype TYPE_FP32 "
     "for input 'I', model provides TYPE_INT8"),
    ("output", {"name": "O", "data_type": "TYPE_INT8", "dims": [3]},
     "unable to load model 'm', configuration expects datatype TYPE_FP32 "
     "for output 'O', model provides TYPE_INT8"),
    ("input", {"name": "I", "data_type": "TYPE_FP32", "dims": [4, 1]},
     "model 'm', tensor 'I': the model expects dims [4, 1] but the model "
     "configuration specifies dims [3]"),
])
def test_tensors_that_do_not_fit(config, kind, tensor, text):
    before = str(config.as_dict())
    with pytest.raises(ValueError) as e:
        getattr(config, f"add_{kind}")(tensor)
    assert text in str(e.value)
    assert str(config.as_dict()) == before


def test_optional_must_agree(config):
    config.add_input({"name": "I", "data_type": "TYPE_FP32", "dims": [3],
                      "optional": True})
    with pytest.raises(ValueError) as e:
        config.add_input({"name": "I", "data_type": "TYPE_FP32",
                          "dims": [3], "optional": False})
    assert "the model expects optional False but the model configuration " \
        "specifies optional True" in str(e.value)


def test_batch_size(config):
    config.set_max_batch_size(4)
    config.set_max_batch_size(9)
    assert config.as_dict()["max_batch_size"] == 9
    with pytest.raises(ValueError) as e:
        config.set_max_batch_size(8)
    assert str(e.value) == (
        "configuration specified max_batch_size 9, but in "
        "auto-complete-config function for model 'm' specified "
        "max_batch_size 8")


def test_scheduler(config):
    config.set_dynamic_batching()
    config.as_dict()["dynamic_batching"]["preferred_batch_size"] = [2]
    config.set_dynamic_batching()
    assert config.as_dict()["dynamic_batching"] == {
        "preferred_batch_size": [2]}
    for other in ("sequence_batching", "ensemble_scheduling"):
        config.as_dict()[other] = {}
        with pytest.raises(ValueError) as e:
            config.set_dynamic_batching()
        assert str(e.value) == (
            f"Configuration specified scheduling_choice as '{other}', but "
            "auto-complete-config function for model 'm' tries to set "
            "scheduling_choice as 'dynamic_batching'")
        del config.as_dict()[other]


def test_transaction_policy(config):
    config.set_model_transaction_policy({})
    config.set_model_transaction_policy({"decoupled": True})
    config.set_model_transaction_policy({"decoupled": True})
    assert config.as_dict()["model_transaction_policy"] == {
        "decoupled": True}
    with pytest.raises(ValueError) as e:
        config.set_model_transaction_policy({"decoupled": False})
    assert str(e.value) == (
        "trying to change decoupled property in auto-complete-config for "
        "model 'm', which is already set to 'True'.")
    with pytest.raises(ValueError) as e:
        config.set_model_transaction_policy({"coupled": False})
    assert str(e.value) == (
        "model transaction property in auto-complete-config function for "
        "model 'm' contains property other than 'decoupled'.")
