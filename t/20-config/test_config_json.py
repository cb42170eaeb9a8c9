"""A configuration as clients get it, read by protobuf's own reader."""

import json

import pytest
import tritonclient.http as triton
from google.protobuf import json_format, text_format
from tritonclient.grpc import model_config_pb2

from lib import backends, models

IO = ('input [ { name: "IN" data_type: TYPE_FP32 dims: [ 2, -1, 3 ]'
      " reshape { shape: [ 1, 2, -1, 3 ] } optional: true } ]\n"
      'output [ { name: "OUT" data_type: TYPE_STRING dims: [ 1 ]'
      ' reshape { } label_filename: "labels.txt" } ]\n')

CONFIGS = {
    "plain": 'backend: "stand_in"\n' + IO.replace("reshape { }", ""),
    "batching": 'backend: "stand_in" max_batch_size: 8\n' + IO + """
        dynamic_batching {
          preferred_batch_size: [ 2, 4 ] max_queue_delay_microseconds: 100
          priority_levels: 18446744073709551615 default_priority_level: 9
          default_queue_policy { timeout_action: DELAY
            default_timeout_microseconds: 18446744073709551615
            allow_timeout_override: true max_queue_size: 4294967295 }
          priority_queue_policy { key: 18446744073709551615 value {
            max_queue_size: 3 default_timeout_microseconds: 5 } }
          priority_queue_policy { key: 2 value { } } }""",
    "groups": 'backend: "stand_in"\n' + IO.replace("reshape { }", "") + """
        instance_group [
          { count: 2 kind: KIND_CPU host_policy: "p" passive: true
            secondary_devices [ { kind: KIND_NVDLA device_id: 5 } ]
            rate_limiter { resources [ { name: "R" count: 4 },
              { name: "G" global: true count: 2 } ] priority: 2 } },
          { name: "model" kind: KIND_MODEL count: 1 } ]
        optimization { graph { level: -1 } priority: PRIORITY_MAX
          input_pinned_memory { } gather_kernel_buffer_threshold: 7
          eager_batching: true
          execution_accelerators { cpu_execution_accelerator [
            { name: "a" parameters { key: "k" value: "v" } } ] }
          cuda { graphs: true graph_spec [ { batch_size: 1
            input { key: "IN" value { dim: [ 4, 5 ] } }
            graph_lower_bound { batch_size: 1
              input { key: "IN" value { dim: [ 1 ] } } } } ] } }""",
    "words": 'backend: "stand_in"\n' + IO.replace("reshape { }", "") + r"""
        parameters { key: "b" value { string_value: "z\"\\\n\t/<>&\001" } }
        parameters { key: "a" value {
          string_value: "\303\274 \360\237\230\200" } }
        metric_tags { key: "t" value: "1" }
        cc_model_filenames { key: "7.5" value: "t4.bin" }
        default_model_filename: "any.bin"
        response_cache { enable: false }
        model_transaction_policy { decoupled: false }
        model_operations { op_library_filename: [ "a.so", "b.so" ] }
        model_metrics { metric_control [ {
          metric_identifier {
            family: "nv_inference_first_response_histogram_ms" }
          histogram_options { buckets: [ 0.1, 2.5e-7, 1e300, 7 ] } } ] }
        model_warmup [ { name: "w" batch_size: 0 count: 3
          inputs { key: "IN" value { data_type: TYPE_FP32 dims: [ 2, 4, 3 ]
            zero_data: false } }
          inputs { key: "X" value { data_type: TYPE_INT64 dims: [ 1 ]
            random_data: true } } } ]
        version_policy { specific { versions: [ 1, 9223372036854775807 ] } }
        batch_input [ { kind: BATCH_ITEM_SHAPE target_name: [ "S", "T" ]
          data_type: TYPE_INT32 source_input: "IN" } ]
        batch_output [ { target_name: "OUT" source_input: "IN"
          kind: BATCH_SCATTER_WITH_INPUT_SHAPE } ]""",
}


def fill(folder):
    for name, text in CONFIGS.items():
        path = models.write_model(folder, name, text)
        (path / "labels.txt").write_text("a\n")


@pytest.fixture(scope="module")
def served():
    from lib.server import Server
    with Server(fill, backends=backends.stand_ins("stand_in")) as s:
        yield s


def holds(message, other, path=""):
    """All that is set in message is the same in other."""
    for field, value in message.ListFields():
        at = f"{path}.{field.name}"
        found = getattr(other, field.name)
        if field.message_type is None or field.name == "parameters" \
                or field.message_type.GetOptions().map_entry:
            assert found == value, at
        elif hasattr(value, "ListFields"):
            assert other.HasField(field.name), at
            holds(value, found, at)
        else:
            assert len(found) == len(value), at
            for i, (a, b) in enumerate(zip(value, found)):
                holds(a, b, f"{at}[{i}]")


@pytest.mark.parametrize("name", CONFIGS)
def test_protobuf_reads_what_the_file_says(served, name):
    body = served.get(f"/v2/models/{name}/config").body
    answer = json_format.Parse(body, model_config_pb2.ModelConfig())
    wanted = text_format.Parse(CONFIGS[name], model_config_pb2.ModelConfig())
    holds(wanted, answer)
    assert answer.name == name
    # what was added is there, too, and no more than that
    assert answer.version_policy.WhichOneof("policy_choice") == (
        wanted.version_policy.WhichOneof("policy_choice") or "latest")
    assert answer.optimization.input_pinned_memory.enable == (
        not wanted.optimization.HasField("input_pinned_memory"))
    assert answer.optimization.output_pinned_memory.enable
    assert answer.WhichOneof("scheduling_choice") \
        == wanted.WhichOneof("scheduling_choice")
    assert answer.instance_group
    with triton.InferenceServerClient(served.url) as client:
        assert client.get_model_config(name) == json.loads(body)


def test_what_is_not_said_is_there_as_zeros(served):
    config = served.get("/v2/models/plain/config").json()
    assert list(config) == [
        "name", "platform", "backend", "runtime", "version_policy",
        "max_batch_size", "input", "output", "batch_input", "batch_output",
        "optimization", "instance_group", "default_model_filename",
        "cc_model_filenames", "metric_tags", "parameters", "model_warmup"]
    assert config["input"] == [{
        "name": "IN", "data_type": "TYPE_FP32", "format": "FORMAT_NONE",
        "dims": [2, -1, 3], "reshape": {"shape": [1, 2, -1, 3]},
        "is_shape_tensor": False, "allow_ragged_batch": False,
        "optional": True, "is_non_linear_format_io": False}]
    assert config["output"] == [{
        "name": "OUT", "data_type": "TYPE_STRING", "dims": [1],
        "label_filename": "labels.txt", "is_shape_tensor": False,
        "is_non_linear_format_io": False}]
    assert config["version_policy"] == {"latest": {"num_versions": 1}}
    assert config["optimization"] == {
        "priority": "PRIORITY_DEFAULT",
        "input_pinned_memory": {"enable": True},
        "output_pinned_memory": {"enable": True},
        "gather_kernel_buffer_threshold": 0, "eager_batching": False}
    assert config["instance_group"] == [{
        "name": "plain", "kind": "KIND_CPU", "count": 1, "gpus": [],
        "secondary_devices": [], "profile": [], "passive": False,
        "host_policy": ""}]


def test_wide_integers_are_what_readers_expect(served):
    """Numbers where Triton has numbers, strings where it has those."""
    batching = served.get("/v2/models/batching/config").json()[
        "dynamic_batching"]
    assert batching["priority_levels"] == 2 ** 64 - 1
    assert list(batching["priority_queue_policy"]) in (
        ["2", "18446744073709551615"], ["18446744073709551615", "2"])
    assert batching["default_queue_policy"][
        "default_timeout_microseconds"] == 2 ** 64 - 1
    groups = served.get("/v2/models/groups/config").json()
    assert groups["instance_group"][0]["secondary_devices"] == [
        {"kind": "KIND_NVDLA", "device_id": "5"}]
    spec = groups["optimization"]["cuda"]["graph_spec"][0]
    assert spec["input"] == {"IN": {"dim": ["4", "5"]}}
    words = served.get("/v2/models/words/config").json()
    assert words["version_policy"] == {
        "specific": {"versions": [1, 2 ** 63 - 1]}}
    assert words["model_warmup"][0]["inputs"]["IN"] == {
        "data_type": "TYPE_FP32", "dims": [2, 4, 3], "zero_data": False}


# model: (files of version 1, what the configuration says,
#         backend, platform, default_model_filename)
PLATFORMS = {
    "plan": (["model.plan"], "", "tensorrt", "tensorrt_plan", "model.plan"),
    "saved": (["model.savedmodel/x"], "", "tensorflow",
              "tensorflow_savedmodel", "model.savedmodel"),
    "graph": (["model.graphdef"], "", "tensorflow", "tensorflow_graphdef",
              "model.graphdef"),
    "onnx": (["model.onnx"], "", "onnxruntime", "onnxruntime_onnx",
             "model.onnx"),
    "onnx_folder": (["model.onnx/model.onnx"], "", "onnxruntime",
                    "onnxruntime_onnx", "model.onnx"),
    "xml": (["model.xml"], "", "openvino", "", "model.xml"),
    "torch": (["model.pt"], "", "pytorch", "pytorch_libtorch", ""),
    "torch2": (["model.pt2"], "", "pytorch", "torch_aoti", ""),
    "torch_said": ([], 'backend: "pytorch"', "pytorch", "pytorch_libtorch",
                   "model.pt"),
    "script": (["model.py"], "", "python", "", "model.py"),
    "said": ([], 'platform: "tensorrt_plan"', "tensorrt", "tensorrt_plan",
             "model.plan"),
    "file": ([], 'default_model_filename: "model.graphdef"', "tensorflow",
             "tensorflow_graphdef", "model.graphdef"),
    "mine": (["model.plan"], 'backend: "stand_in" platform: "odd"'
             ' default_model_filename: "sub/own"', "stand_in", "odd",
             "sub/own"),
    "a.stand_in": ([], "", "stand_in", "", "model.stand_in"),
}


def test_every_platform_finds_its_backend(make_server):
    def fill_platforms(folder):
        for name, (files, text, *_) in PLATFORMS.items():
            models.write_model(folder, name, text + "\n" + IO.replace(
                "reshape { }", ""), files={1: {f: b"x" for f in files}})
            (folder / name / "labels.txt").write_text("a\n")

    server = make_server(fill_platforms, backends=backends.stand_ins(
        *{backend for _, _, backend, _, _ in PLATFORMS.values()}))
    for name, (_, _, *wanted) in PLATFORMS.items():
        config = server.get(f"/v2/models/{name}/config").json()
        assert [config["backend"], config["platform"],
                config["default_model_filename"]] == wanted, name
        metadata = server.get(f"/v2/models/{name}").json()
        assert metadata["platform"] == (config["platform"]
                                        or config["backend"])
