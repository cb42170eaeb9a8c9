"""Errors of loads whose configuration is wrong: Triton's words come first,
byte for byte; ours may say more behind them."""

import pytest

from lib import models
from lib.server import Server

HEAD = 'backend: "identity"\n'
IN = 'input [ { name: "IN" data_type: TYPE_INT32 dims: [ %s ] %s } ]\n'
OUT = 'output [ { name: "OUT" data_type: TYPE_INT32 dims: [ %s ] %s } ]\n'
IO = IN % (-1, "") + OUT % (-1, "")
ENDS = {"in": IN.replace("IN", "A", 1).replace("TYPE_A", "TYPE_INT32"),
        "out": OUT.replace("OUT", "B", 1)}
GPUS = "specifies invalid or unsupported gpu id 7. GPUs with at least the " \
    "minimum required CUDA compute compatibility of "
CACHE = "Response Cache does not currently support model m with "
NO_CACHE = " Please disable the response cache."
LISTS = "'int32_false_true', 'fp32_false_true' or 'bool_false_true' for " \
    "CONTROL_SEQUENCE_"
WILD = "dimension must be integer >= 1, or -1 to indicate a variable-size " \
    "dimension for m"

UNNAMED = "[request id: <id_unknown>] "


def both(dims, more=""):
    return HEAD + IN % (dims, more) + OUT % (dims, more)


def dynamic(text):
    return HEAD + IO + f"max_batch_size: 4\ndynamic_batching {{ {text} }}\n"


def sequences(text, more=""):
    return (HEAD + IN % (1, "") + OUT % (1, "") + "max_batch_size: 4\n"
            f"sequence_batching {{ {text} }}\n" + more)


def control(*controls):
    return sequences('control_input [ { name: "C" control [ '
                     + ", ".join(f"{{ kind: CONTROL_SEQUENCE_{c} }}"
                                 for c in controls) + " ] } ]")


def initial(*states):
    return sequences(
        'state { input_name: "S" output_name: "T" data_type: TYPE_INT32 '
        "dims: [ 2 ] " + " ".join(f"initial_state {{ {s} }}" for s in states)
        + " }")


def zero(name='name: "z" ', kind="INT32", dims="2"):
    return f"{name} data_type: TYPE_{kind} dims: [ {dims} ] zero_data: true"


def ensemble(*steps, more="", ins=ENDS["in"] % (-1, ""),
             out=ENDS["out"] % (-1, "")):
    return ('platform: "ensemble"\n' + ins + out
            + "ensemble_scheduling {\n" + "\n".join(steps) + " }\n" + more)


def step(model="good", ins=(("IN", "A"),), outs=(("OUT", "B"),), version=-1):
    return models.step(model, dict(ins), dict(outs)).replace(
        "model_version: -1", f"model_version: {version}")


def warmup(data, dims=4):
    return HEAD + IO + (
        'model_warmup { name: "w" batch_size: 1 inputs { key: "IN" value {'
        f" data_type: TYPE_INT32 dims: [ {dims} ] {data} }} }} }}\n")


def of_groups(text):
    return HEAD + IO + f"instance_group {{ {text} }}\n"


BOOLEAN = "START int32_false_true: [ 0, 1 ]"

# The model's name is m.  Found before anything is loaded: the text of the
# index; a client is told that the poll failed.
POLLED = [
    (IO, "Invalid model name: Could not determine backend for model 'm' with "
     "no backend in model configuration. Expected model name of the form "
     "'model.<backend_name>'."),
    ('platform: "foo"\n' + IO, "unexpected platform type 'foo' for m"),
    ('platform: "ensemble"\n' + HEAD + IO, "Ensemble model 'm' must have "
     "platform type 'ensemble' and empty backend type"),
    ('platform: "tensorrt_plan"\nbackend: "onnxruntime"\n' + IO, "unexpected "
     "'platform' and 'backend' pair, got:tensorrt_plan, onnxruntime"),
    ('name: "other"\n' + HEAD + IO, "unexpected directory name 'm' for model "
     "'other', directory name must equal model name"),
    (HEAD + IO + "max_batch_size: -1\n",
     "'max_batch_size' must be non-negative value for m"),
    (dynamic("preferred_batch_size: [ 0 ]"),
     "dynamic batching preferred size must be positive for m"),
    (dynamic("preferred_batch_size: [ 9 ]"),
     "dynamic batching preferred size must be <= max batch size for m"),
    (dynamic("priority_levels: 2 default_priority_level: 3"),
     "default priority level must be in range [1, 2] for m"),
    (dynamic("priority_levels: 2 default_priority_level: 1 "
             "priority_queue_policy { key: 3 value { } }"),
     "priority queue policy must have priority level in range [1, 2] for m"),
    (dynamic("preserve_ordering: true priority_levels: 2 "
             "default_priority_level: 1"), "Only one priority level is allowed"
     " when 'preserve_ordering' is true for m"),
    (dynamic("preserve_ordering: true default_queue_policy { timeout_action: "
             "DELAY default_timeout_microseconds: 5 }"), "Queue policy can "
     "not have DELAY as timeout action when 'preserve_ordering' is true for "
     "m"),
    (sequences("", "response_cache { enable: true }\n"),
     CACHE + "sequence batching scheduler." + NO_CACHE),
    (HEAD + IO + "response_cache { enable: true }\n"
     "model_transaction_policy { decoupled: true }\n",
     CACHE + "'decoupled' transaction policy." + NO_CACHE),
    (sequences("control_input [ { control [ { kind: CONTROL_SEQUENCE_START "
               "int32_false_true: [ 0, 1 ] } ] } ]"),
     "sequence batching control tensor must have a name for m"),
    (control(BOOLEAN, BOOLEAN), "sequence batching specifies multiple "
     "CONTROL_SEQUENCE_START tensors for m"),
    (control("START"), f"sequence batching must specify either {LISTS}START "
     "for m"),
    (control(BOOLEAN + " fp32_false_true: [ 0, 1 ]"), "sequence batching "
     "specifies more than one from 'int32_false_true', 'fp32_false_true' and"
     " 'bool_false_true' for CONTROL_SEQUENCE_START for m"),
    (control("READY fp32_false_true: [ 0 ]"), "sequence batching control "
     "'fp32_false_true' must have exactly 2 entries for "
     "CONTROL_SEQUENCE_READY for m"),
    (control("CORRID data_type: TYPE_UINT64 int32_false_true: [ 0, 1 ]"),
     f"sequence batching must not specify either {LISTS}CORRID for m"),
    (control("CORRID data_type: TYPE_FP32"), "unexpected data type for "
     "control CONTROL_SEQUENCE_CORRID for m. Allowed data types are "
     "TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING"),
    (sequences("oldest { preferred_batch_size: [ 0 ] }"),
     "sequence batching preferred batch size must be positive for m"),
    (sequences("oldest { preferred_batch_size: [ 9 ] }"),
     "sequence batching preferred batch size must be <= max batch size for m"),
    (sequences("direct { minimum_slot_utilization: 1.5 }"), "sequence "
     "batching minimum slot utilization must be in range (0.0, 1.0] for m"),
    (HEAD + IO + f"ensemble_scheduling {{ {step()} }}\n", "ensemble "
     "scheduling cannot be set for model 'm' whose platform is not ensemble"),
    ('platform: "ensemble"\n' + IO, "ensemble scheduling must be set for "
     "ensemble m whose platform is ensemble"),
    (ensemble(step(), more="instance_group { }\n"),
     "instance group should not be specified for ensemble 'm'"),
    (ensemble(step(), more="optimization { }\n"),
     "optimization should not be specified for ensemble 'm'"),
    (ensemble(step(), more='model_warmup { name: "w" batch_size: 1 }\n'),
     "model_warmup can not be specified for ensemble 'm'"),
    (ensemble(), "must specify 'step' for ensemble 'm'"),
    (ensemble(step(model="")), "must specify 'model_name' in step 0 of "
     "ensemble 'm'"),
    (ensemble(step(ins=())),
     "must specify 'input_map' in step 0 of ensemble 'm'"),
    (ensemble(step(outs=())),
     "must specify 'output_map' in step 0 of ensemble 'm'"),
    (ensemble(step(), step()), "ensemble tensor 'B' can appear in an output "
     "map only once for ensemble 'm' step 1"),
    (ensemble(step(ins=(("IN", "X"),))),
     "ensemble input 'A' for ensemble m' is not used"),
    (ensemble(step(outs=(("OUT", "X"),))),
     "ensemble output 'B' for ensemble m' is not used"),
    (ensemble(step(ins=(("IN", "A"), ("IN2", "U")),
                   outs=(("OUT", "B"), ("OUT2", "U")))),
     "output 'B' for ensemble 'm' is not written: at least one of its "
     "depending tensors, 'U', is not connected"),
    (ensemble(step(outs=(("OUT", "B"), ("OUT2", "U")))),
     "ensemble tensor 'U' is unused in ensemble 'm'"),
]

# Found by the load itself: (configuration, code, text).
LOADED = [
    (both(0), "model input 'IN' " + WILD),
    (both(1, "reshape { shape: [ 0 ] }"),
     "model input 'IN' reshape " + WILD.replace("dimension", "dimensions", 1)),
    (both(2, "reshape { shape: [ 3 ] }"),
     "model input 'IN' has different size for dims and reshape for m"),
    (both(-1, "reshape { shape: [ -1, -1 ] }"),
     "model input 'IN' has different number of variable-size dimensions for "
     "dims and reshape for m"),
    (both(1, "reshape { }"), "model input 'IN' cannot have empty reshape for "
     "non-batching model as scalar tensors are not supported for m"),
    (HEAD + IN % (1, "format: FORMAT_NHWC") + OUT % (1, ""),
     "model input NHWC/NCHW require 3 dims for m"),
    (HEAD + IN % (1, "is_shape_tensor: true") + OUT % (1, ""),
     "shape tensors are only supported for TensorRT platform for m"),
    (HEAD + IN % (1, "") + OUT % (1, "is_non_linear_format_io: true"),
     "Non-linear IO format is only supported for the TensorRT platform for "
     "m"),
    (HEAD + IO + 'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "T" '
     'data_type: TYPE_FP32 source_input: "X" }\n',
     "unknown source input name 'X' for m"),
    (HEAD + IO + 'batch_output { target_name: "X" source_input: "IN" }\n',
     "unknown target output name 'X' for m"),
    (HEAD + IO + 'batch_output { target_name: "OUT" target_name: "OUT" '
     'source_input: "IN" }\n',
     "target output name 'OUT' can only be specified once for m"),
    (of_groups("kind: KIND_CPU gpus: [ 0 ]"), "instance group m_0 of model m "
     "has kind KIND_CPU but specifies one or more GPUs"),
    (of_groups('name: "g" kind: KIND_MODEL gpus: [ 0 ]'), "instance group g "
     "of model m has kind KIND_MODEL but specifies one or more GPUs"),
    (of_groups("kind: KIND_GPU"), "instance group m_0 of model m has kind "
     "KIND_GPU but no GPUs are available"),
    (of_groups("kind: KIND_GPU gpus: [ 7 ]"),
     "instance group m_0 of model m " + GPUS),
    (of_groups('profile: "1"'), "instance group m_0 of model m and platform "
     "specifies profile field which is only supported for TensorRT models"),
    (initial(zero(), zero()), "initial_state field for state input 'S' must "
     "contain exactly one or zero element. Found '2' elements."),
    (initial(zero(kind="FP32")), "The data type used for 'initial_state' "
     "field of state 'S' does not match the state data type."),
    (initial(zero(name="")), "Field 'name' must be set when using "
     "initial_state for state input 'S'."),
    (initial(zero(dims="2, 1")), "Number of dimensions in 'initial_state' "
     "doesn't match the size of 'state' dimensions for state input 'S'. 2 != "
     "1"),
    (initial(zero(dims="-1")), "'initial_state' field for state input name "
     "'S' contains variable dimensions."),
    (initial(zero(dims="3")), "'initial_state' dim for input name 'S' doesn't"
     " match 'state' dim description. 3 != 2"),
    (initial('name: "z" data_type: TYPE_INT32 dims: [ 2 ]'), "initial_state "
     "setting expects state'S' to have state_data set"),
    (initial('name: "z" data_type: TYPE_INT32 dims: [ 2 ] data_file: '
             '"short"'), "initial_state setting expects 8 bytes, but the data"
     " provided from shortonly has 3 bytes."),
    (warmup("zero_data: true", dims=-1), "warmup setting expects all "
     "variable-size dimensions are specified for input 'IN'"),
    (warmup('input_data_file: "short"'), UNNAMED + "warmup setting expects 16"
     " bytes, but the data provided from shortonly has 3 bytes"),
    (warmup(""), UNNAMED
     + "warmup setting expects input 'IN' to have input_data_type set"),
    (warmup("random_data: true").replace('key: "IN"', 'key: "NO"'), UNNAMED
     + "expected 1 inputs but got 0 inputs for model 'm'. Got input(s) [], but"
     " missing required input(s) ['IN']."),
    (warmup("zero_data: true").replace("INT32 dims: [ 4", "FP32 dims: [ 4"),
     UNNAMED + "inference input 'IN' data-type is 'FP32', but model 'm' "
     "expects 'INT32'"),
    (warmup("zero_data: true", dims="4, 4"), UNNAMED + "unexpected shape for "
     "input 'IN' for model 'm'. Expected [-1], got [4,4]."),
    (warmup('input_data_file: "short"').replace("INT32", "STRING"), UNNAMED
     + "incomplete string length indicator for inference input 'IN'"),
    (HEAD + 'runtime: "libother.so"\n' + IO,
     "unable to find backend library 'libother.so' for model 'm', searched: "),
    (HEAD + 'runtime: "../x/lib.so"\n' + IO,
     "backend library name '../x/lib.so' escapes backend directory "),
    ('backend: "nowhere"\n' + IO, "unable to find backend library for backend"
     " 'nowhere', try specifying runtime on the model configuration."),
    (sequences("", 'parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { '
                   'string_value: "x.so" } }\n'),
     "TRITON_BATCH_STRATEGY_PATH cannot be specified with sequence batcher, "
     "using default batching strategy"),
]

# (configuration, code, text): `failed to open' and others that are no
# INVALID_ARG.
OTHER_CODES = [
    (initial('name: "z" data_type: TYPE_INT32 dims: [ 2 ] data_file: "no"'),
     "Internal", "failed to open text file for read {m}/initial_state/no: No "
     "such file or directory"),
    (warmup('input_data_file: "no"'), "Internal", "failed to open text file "
     "for read {m}/warmup/no: No such file or directory"),
    (HEAD + IN % (1, "") + OUT % (1, 'label_filename: "no.txt"'), "Internal",
     "failed to open text file for read {m}/no.txt: No such file or "
     "directory"),
    (HEAD + IN % (1, "") + OUT % (1, 'label_filename: "../x.txt"'),
     "Unsupported", "label file path '{m}/../x.txt' is outside model "
     "directory "),
    (dynamic("") + 'parameters { key: "TRITON_BATCH_STRATEGY_PATH" value { '
     'string_value: "x.so" } }\n', "Not found", "Batching library path not "
     "found: {m}/x.so"),
]

# Of ensembles and versions: behind "load failed for model 'm': " at once.
NO_VERSION = [
    (HEAD + IO + "version_policy { latest { } }\n", "at least one version must"
     " be available under the version policy of model 'm'\n"),
    (ensemble(step(model="none")), "ensemble m contains models that are not "
     "available or ambiguous: none\n"),
    (ensemble(step(version=9)), "ensemble 'm' depends on 'good' whose "
     "required version 9 is not loaded.\n"),
    (ensemble(step(model="failing")), "ensemble 'm' depends on 'failing' which"
     " has no loaded version. Model 'failing' loading failed with error: "
     "version 1 is at UNAVAILABLE state: Internal: not today;\n"),
    (ensemble(step(model="m")), "circular dependency between ensembles: m -> "
     "... -> m -> m"),
    (ensemble(step(), ins=ENDS["in"].replace("INT32", "FP32") % (-1, "")),
     "in ensemble m, ensemble tensor A: inconsistent data type: TYPE_FP32 is "
     "inferred from model m while TYPE_INT32 is inferred from model good\n"),
    (ensemble(step(), ins=ENDS["in"] % ("-1, 2", "")), "in ensemble m, "
     "ensemble tensor A: inconsistent shape: [-1,2] is inferred from model m"
     " while [-1] is inferred from model good\n"),
    (ensemble(step(ins=(("NO", "A"),))), "in ensemble m, ensemble tensor A is "
     "mapping to non-existing input NO in model good\n"),
    (ensemble(step(outs=(("NO", "B"),))), "in ensemble m, ensemble tensor B is"
     " mapped from non-existing output NO in model good\n"),
    (ensemble(step(model="pair", ins=(("IN0", "A"),), outs=(("OUT0", "B"),))),
     "in ensemble m, input IN1 in model pair is not mapped to any ensemble "
     "tensors\n"),
    (ensemble(step(model="few"), more="max_batch_size: 8\n",
              ins=ENDS["in"] % (1, ""), out=ENDS["out"] % (1, "")),
     "ensemble m allows maximum batch size 8, but it contains model few which"
     " only allows maximum batch size to be 4\n"),
    (ensemble(step(model="many"), more="response_cache { enable: true }\n"),
     CACHE + "'decoupled' transaction policy." + NO_CACHE),
]


def fill(repository):
    models.identity(repository, "good", [("IN", "INT32", [-1])])
    models.identity(repository, "few", [("IN", "INT32", [1])], max_batch=4)
    models.identity(repository, "many", [("IN", "INT32", [-1])],
                    extra="model_transaction_policy { decoupled: true }\n")
    models.identity(repository, "pair", [("IN0", "INT32", [-1]),
                                         ("IN1", "INT32", [-1])])
    models.identity(repository, "failing", [("IN", "INT32", [-1])],
                    parameters={"fail_initialize": "not today"})
    folder = models.write_model(repository, "m", "")
    for name in ("initial_state", "warmup"):
        (folder / name).mkdir()
        (folder / name / "short").write_bytes(b"abc")


@pytest.fixture(scope="module")
def server():
    with Server(fill, parts="health repository", http="""
    inference_model_control explicit;
    inference_response_cache local size=1m;
""") as s:
        yield s


def load(server, config):
    (server.models / "m/config.pbtxt").write_text(config, encoding="utf-8")
    return server.post("/v2/repository/models/m/load", b"")


@pytest.mark.parametrize("config,text", POLLED)
def test_before_the_load(server, config, text):
    answer = load(server, config)
    assert (answer.status, answer.error) == (500, "failed to load 'm', failed "
                                             "to poll from model repository")
    row = next(r for r in server.post("/v2/repository/index", b"").json()
               if r["name"] == "m")
    assert row["state"] == "UNAVAILABLE"
    assert row["reason"].startswith(text), row


@pytest.mark.parametrize("config,code,text", [
    *((c, "Invalid argument", t) for c, t in LOADED), *OTHER_CODES])
def test_by_the_load(server, config, code, text):
    answer = load(server, config)
    assert answer.status == 400, answer
    assert answer.error.startswith(
        "load failed for model 'm': version 1 is at UNAVAILABLE state: "
        f"{code}: " + text.replace("{m}", str(server.models / "m"))
    ), answer.error
    assert answer.error.endswith(";\n")


@pytest.mark.parametrize("config,text", NO_VERSION)
def test_without_a_version(server, config, text):
    answer = load(server, config)
    assert answer.status == 400, answer
    assert answer.error.startswith("load failed for model 'm': " + text), \
        answer.error
