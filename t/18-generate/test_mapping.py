"""Members of the JSON become tensors and parameters."""

import json

import pytest

FAILED = "failed to parse the request JSON buffer: "
INNER = "Converting keyword: 'parameters': "


@pytest.mark.parametrize("datatype,values", [
    ("bool", [True, False]), ("uint8", [0, 255]), ("uint16", [0, 65535]),
    ("uint32", [0, 2**32 - 1]), ("uint64", [0, 2**64 - 1]),
    ("int8", [-128, 127]), ("int16", [-2**15, 2**15 - 1]),
    ("int32", [-2**31, 2**31 - 1]), ("int64", [-2**63, 2**63 - 1]),
    ("fp32", [0.5, -3.0, 1e30]), ("fp64", [0.1, -1e300, 5.0]),
    ("bytes", ["", "a", "\u00e9\u4e16\U0001f600 \"\\/\n\t\x00", "x" * 70_000])])
def test_datatypes(ask, datatype, values):
    def out(answer):
        assert answer.status == 200, answer
        return answer.json()["OUT"]

    assert out(ask(f"id_{datatype}", {"IN": values})) == values
    for value in values:
        # one element is a scalar, whether it came as one or not
        assert out(ask(f"id_{datatype}", {"IN": value})) == value
        assert out(ask(f"id_{datatype}", {"IN": [value]})) == value


def test_a_byte_order_mark_may_come_first(ask):
    answer = ask("id_int32", b'\xef\xbb\xbf{"IN": [7]}')
    assert answer.json()["OUT"] == 7


@pytest.mark.parametrize("datatype,value", [
    ("bool", 1), ("bool", "true"), ("uint8", -1), ("uint8", 256),
    ("uint64", 2**64), ("int8", 128), ("int32", 1.0), ("int32", True),
    ("int32", "1"), ("int32", 2**31), ("int64", 2**63), ("fp32", "1"),
    ("fp32", False), ("bytes", 1), ("bytes", True), ("int32", None),
    ("bytes", None), ("int32", {}), ("bytes", {"a": "b"})])
def test_values_that_do_not_fit(ask, datatype, value):
    for v in (value, [value]):
        answer = ask(f"id_{datatype}", {"IN": v})
        assert answer.status == 400, answer
        assert "'IN'" in answer.error


@pytest.mark.parametrize("model,value,flat", [
    ("id_int32", [[1, 2], [3, 4]], [1, 2, 3, 4]), ("id_int32", [1, [2]], [1, 2]),
    ("id_bytes", [[["a"]], ["b"]], ["a", "b"]), ("id_int32", [[]], []),
    ("rows", [[1, 2], [3, 4]], [1, 2, 3, 4]), ("id_int32", [[[5]]], 5)])
def test_a_tensor_may_be_arrays_of_arrays(ask, model, value, flat):
    answer = ask(model, {"IN": value})
    assert answer.status == 200, answer
    assert answer.json()["OUT"] == flat


@pytest.mark.parametrize("model,value", [
    ("id_int32", [[1, "2"]]), ("id_bytes", [["a"], 1]),
    ("id_bytes", ["a", {"b": "c"}]), ("id_bytes", [["a", {"b": "c"}]])])
def test_a_tensor_has_elements_of_its_datatype(ask, model, value):
    answer = ask(model, {"IN": value})
    assert answer.status == 400
    assert answer.error.endswith(
        f"(input 'IN' is one {model[3:].upper()} or an array of them)")


@pytest.mark.parametrize("word,shown", [
    ("NaN", b"NaN"), ("Infinity", b"Infinity"), ("-Infinity", b"-Infinity")])
def test_bare_words(ask, word, shown):
    answer = ask("id_fp32", b'{"IN": [%s, 1]}' % word.encode())
    assert b'"OUT":[' + shown + b",1.0]" in answer.body


@pytest.mark.parametrize("datatype", ["fp16", "bf16"])
def test_halves_are_no_json(ask, datatype):
    answer = ask(f"id_{datatype}", {"IN": 1})
    assert answer.status == 400
    assert answer.error == (
        f"receiving {datatype.upper()} data via JSON is not supported. Please "
        "use the binary data format for input IN")


def shapes(server, body):
    """Of the outputs that `many` makes of these inputs."""
    whole = {"IN_STATIC": [1] * 4, "IN_LAST": [1] * 6, "IN_FIRST": [1] * 2,
             "IN_BOTH": [1], "IN_WORD": "w"}
    return {**whole, **body}


@pytest.mark.parametrize("name,counts,wrong", [
    ("IN_STATIC", [4], [1, 3, 5, 8]), ("IN_LAST", [6, 12, 60], [1, 3, 7, 9]),
    ("IN_FIRST", [2, 4, 10], [1, 3]), ("IN_BOTH", [1, 2, 7], []),
    ("IN_WORD", [1], [2])])
def test_elements_become_a_shape(ask, server, name, counts, wrong):
    value = "w" if name == "IN_WORD" else 1
    for n in counts:
        answer = ask("many", shapes(server, {name: [value] * n}))
        assert answer.status == 200, answer
        got = answer.json()[name.replace("IN", "OUT")]
        # identity answers bytes in the same shape: as many elements
        assert (got if isinstance(got, list) else [got]) == [value] * n
    for n in wrong:
        answer = ask("many", shapes(server, {name: [value] * n}))
        assert answer.status == 400
        assert answer.error == f"The schema can not convert input '{name}'" \
            " to tensor with proper shape"


def test_the_batch_takes_the_rest(ask):
    assert ask("rows", {"IN": [1, 2]}).json()["OUT"] == [1, 2]
    assert ask("rows", {"IN": list(range(16))}).json()["OUT"] == \
        list(range(16))
    answer = ask("rows", {"IN": [1, 2, 3]})
    assert "The schema can not convert" in answer.error
    answer = ask("rows", {"IN": [0] * 18})
    assert "batch-size must be <= 8" in answer.error
    # an inner dimension goes before it
    assert ask("row", {"IN": ["a"] * 20}).json()["OUT"] == ["a"] * 20


def test_an_open_dimension_may_be_0(ask):
    for model in ("id_int32", "id_bytes", "id_any", "row"):
        answer = ask(model, {"IN": []})
        assert answer.status == 200, answer
        assert answer.json()["OUT"] == []
    assert "The schema can not convert" in ask("id_fixed", {"IN": []}).error
    assert "batch-size must be >= 1" in ask("rows", {"IN": []}).error


def test_parameters(ask):
    """All that is no input is one, anywhere, under any name."""
    asked = {"IN": [1], "text": "t\u00e9", "yes": True, "no": False,
             "number": -2**63, "half": 0.5, "large": 2**63, "sequence_id": 7,
             "priority": 1, "timeout": 5, "triton_enable_empty_final_response":
             True, "parameters": {"inner": "i", "sequence_start": True}}
    got = ask("told", asked).json()
    want = {**asked, **asked["parameters"], "large": float(2**63)}
    for name in ("IN", "parameters"):
        del want[name]
    for name, value in want.items():
        assert got[name] == value and isinstance(got[name], type(value)), name
    assert sorted(got) == sorted([*want, "OUT", "model_name",
                                  "model_version"])


def test_inputs_among_the_parameters(ask):
    answer = ask("id_pair", {"IN0": 1, "parameters": {"IN1": [0.5]}})
    assert answer.json()["OUT1"] == 0.5


@pytest.mark.parametrize("value", [[1], ["a"], {}, {"a": 1}, None, []])
def test_parameters_that_are_none(ask, value):
    for body, where in (({"IN": 1, "p": value}, ""),
                        ({"IN": 1, "parameters": {"p": value}}, INNER)):
        answer = ask("id_int32", body)
        assert answer.status == 400, answer
        assert answer.error == where + "parameter 'p' has invalid type. It " \
            "should be either 'int', 'bool', or 'string'."


@pytest.mark.parametrize("value", [1, "a", [], None, True])
def test_the_parameters_are_an_object(ask, value):
    answer = ask("id_int32", {"IN": 1, "parameters": value})
    assert (answer.status, answer.error) == (
        400, "Expected JSON object for keyword: 'parameters': attempt to "
        "access JSON non-object as object")


def test_an_input_with_the_name_of_the_parameters(ask):
    for value in ([1], {}):
        answer = ask("named", {"parameters": value})
        assert answer.status == 400
    assert "'parameters'" in ask("named", {"parameters": {}}).error


def test_the_id(ask):
    got = ask("told", {"IN": 1, "id": "first"}).json()
    assert got["id"] == "first"
    answer = ask("id_int32", {"id": "broken"})
    assert answer.error.startswith("[request id: broken] ")
    # also where the model has an input of that name
    assert ask("ided", {"id": "second"}).json() == {
        "id": "second", "id_OUT": "second", "model_name": "ided",
        "model_version": "1"}
    # an id among the parameters is a parameter
    got = ask("told", {"IN": 1, "parameters": {"id": "inner"}}).json()
    assert got["id"] == "inner"
    for wrong in (1, None, True, ["a"], "a\x00b"):
        answer = ask("id_int32", {"IN": 1, "id": wrong})
        assert answer.status == 400, answer
        assert "id" in answer.error


@pytest.mark.parametrize("body,why", [
    (b"", "The document is empty. at 0"),
    (b'{"IN": 1', "Missing a comma or '}' after an object member. at 8"),
    (b'{"IN": [1, 2}', "Missing a comma or ']' after an array element. at 12"),
    (b'{"IN": 1} x', "The document root must not be followed by other values."
     " at 10"),
    (b'{"IN": 1, "p": 1, "\\u0070": 2}', "A member appears twice. at 18"),
    (b'{"IN": 1, "parameters": {}, "parameters": {}}',
     "A member appears twice. at 28"),
    (b'{"IN": 1, "p": "\xff"}', "Invalid UTF-8 in string. at 15"),
    (b'{"IN": 1, "\xc0\x80": 1}', "Invalid UTF-8 in string. at 10"),
    (b'{"IN": 1, "a\\u0000": 1}', "NUL character in a name. at 10")])
def test_text_that_is_no_request(ask, body, why):
    for verb in ("generate", "generate_stream"):
        answer = ask("id_int32", body, verb)
        assert answer.status == 400
        assert answer.headers["content-type"] == "application/json"
        assert answer.error == FAILED + why


@pytest.mark.parametrize("body", [b"[]", b"1", b'"x"', b" null"])
def test_a_request_is_an_object(ask, body):
    for verb in ("generate", "generate_stream"):
        answer = ask("id_int32", body, verb)
        assert (answer.status, answer.error) == (
            400, "attempt to get members for non-object: the request is no"
            " object")


@pytest.mark.parametrize("body,why", [
    (b'{"IN": 1, "IN": 2}', "input 'IN' already exists in request"),
    (b'{"IN": 1, "p": 1, "\\u0049N": "a"}',
     "input 'IN' already exists in request"),
    (b'{"IN": 1, "parameters": {"IN": 2}}',
     INNER + "input 'IN' already exists in request"),
    (b'{"IN": 1, "p": 1, "parameters": {"p": 2}}',
     INNER + FAILED + "A member appears twice. at 33")])
def test_a_name_appears_twice(ask, body, why):
    for verb in ("generate", "generate_stream"):
        answer = ask("id_int32", body, verb)
        assert (answer.status, answer.error) == (400, why)


def test_depth_is_bounded(ask):
    for n in (127, 100_000):
        answer = ask("id_int32", b'{"IN": 1, "deep": ' + b"[" * n + b"]" * n
                     + b"}")
        assert answer.status == 400, n
    assert "nested too deeply" in answer.error


def test_many_members(ask):
    body = {f"p{i}": i for i in range(16_383)}
    assert ask("id_int32", {"IN": 1, **body}).status == 200
    answer = ask("id_int32", {"IN": 1, **body, "one": "more"})
    assert answer.status == 400
    assert answer.error == "the request has more than 16384 members"


def test_numbers_out_of_range(ask):
    answer = ask("id_int32", b'{"IN": 1, "p": 1e999}')
    assert (answer.status, answer.error) == (
        400, "parameter 'p': the number is out of range")


@pytest.mark.parametrize("count", [3000, 200_000])
def test_long_requests(ask, count):
    """Up to 16 KiB are read where requests are taken in, more elsewhere."""
    values = list(range(count))
    assert ask("id_int32", {"IN": values}).json()["OUT"] == values
    words = [f"word{i}\n" for i in values]
    body = {"WORDS": words, "text": "t" * count}
    assert ask("echo", body).json()["WORDS_OUT"] == words
    answer = ask("id_int32", {"IN": values + ["x"]})
    assert answer.status == 400


def test_missing_and_unknown_models(ask):
    for verb in ("generate", "generate_stream"):
        answer = ask("nobody", {"IN": 1}, verb)
        assert (answer.status, answer.error) == (
            404, "Request for unknown model: 'nobody' is not found")
        answer = ask("id_versions", {"IN": 1}, verb, version=3)
        assert answer.status == 200
        answer = ask("id_versions", {"IN": 1}, verb, version=9)
        assert answer.status == 404
        assert "version 9 is not found" in answer.error
        answer = ask("id_pair", {"IN0": 1}, verb)
        assert answer.status == 400
        assert answer.error == (
            "[request id: <id_unknown>] expected 2 inputs but got 1 inputs for"
            " model 'id_pair'. Got input(s) ['IN0'], but missing required "
            "input(s) ['IN1']. Please provide all required input(s).")


def test_the_answer_is_in_the_order_of_its_names(ask):
    answer = ask("told", {"IN": 1, "zz": 1, "A": 2, "id": "i", "model": 3})
    names = list(json.loads(answer.body, object_pairs_hook=list))
    assert [name for name, _ in names] == [
        "A", "OUT", "id", "model", "model_name", "model_version", "zz"]
