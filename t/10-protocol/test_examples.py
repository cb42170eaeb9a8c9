"""The worked examples of the protocol's reference, byte by byte."""

import json

PIX = (b'{"inputs":[{"name":"PIX","datatype":"FP32","shape":[1,4],'
       b'"data":[0.25,9,-1,3.5]}],"outputs":[{"name":"SCORES","parameters":'
       b'{"classification":2}}]}')


def test_raw_binary_example(server):
    body = bytes.fromhex("0000003f 0000803f 00000040")
    answer = server.post("/v2/models/scale/infer", body,
                         {"Inference-Header-Content-Length": "0"})
    head = (b'{"model_name":"scale","model_version":"1","outputs":[{"name":'
            b'"Y","datatype":"FP32","shape":[1,3],"parameters":'
            b'{"binary_data_size":12}}]}')
    assert answer.status == 200, answer
    assert answer.headers["inference-header-content-length"] == "136"
    assert answer.headers["content-length"] == "148"
    assert answer.body == head + body


def test_bytes_example(server):
    body = ('{"inputs":[{"name":"WORDS","datatype":"BYTES","shape":[2],'
            '"data":["hé","a\\u0000b"]}],"parameters":'
            '{"binary_data_output":true}}').encode()
    assert len(body) == 127
    answer = server.post("/v2/models/echo/infer", body)
    head = (b'{"model_name":"echo","model_version":"1","outputs":[{"name":'
            b'"WORDS_OUT","datatype":"BYTES","shape":[2],"parameters":'
            b'{"binary_data_size":14}}]}')
    assert answer.status == 200, answer
    assert answer.headers["inference-header-content-length"] == "142"
    assert answer.body == head + bytes.fromhex(
        "03000000 68c3a9 03000000 610062")


def test_classification_example(server):
    answer = server.post("/v2/models/vision/infer", PIX)
    assert answer.body == (
        b'{"model_name":"vision","model_version":"2","outputs":[{"name":'
        b'"SCORES","datatype":"BYTES","shape":[1,2],"data":'
        b'["9.000000:1:cat","3.500000:3:owl"]}]}')


def test_error_examples(server):
    answer = server.post("/v2/models/id_int32/infer", b'{"inputs":[')
    assert answer.status == 400         # ours; the original says 500
    assert "failed to parse the request JSON buffer" in answer.error
    answer = server.post("/v2/models/ghost/infer", PIX)
    assert answer.body == (b'{"error":"Request for unknown model: \'ghost\' '
                           b'is not found"}')
    assert answer.status == 404
    answer = server.get("/v2/models/id_int32/infer")
    assert answer.body == b'{"error":"Method Not Allowed"}'
    assert answer.status == 405


def test_errors_are_compact_json(server):
    for path in ("/nothing", "/v2/models/ghost", "/v2/models/ghost/infer"):
        answer = server.get(path)
        assert answer.body == json.dumps(
            answer.json(), separators=(",", ":"), ensure_ascii=False).encode()
