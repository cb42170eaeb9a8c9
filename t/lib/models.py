"""Model repositories written on the fly."""

import pathlib

CONFIG_TYPE = {"BYTES": "STRING"}

ALL_DATATYPES = ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8",
                 "INT16", "INT32", "INT64", "FP16", "BF16", "FP32", "FP64",
                 "BYTES"]

SIZE = {"BOOL": 1, "UINT8": 1, "UINT16": 2, "UINT32": 4, "UINT64": 8,
        "INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8, "FP16": 2, "BF16": 2,
        "FP32": 4, "FP64": 8}


def config_type(datatype):
    return "TYPE_" + CONFIG_TYPE.get(datatype, datatype)


def io_block(kind, entries):
    blocks = []
    for entry in entries:
        name, datatype, dims = entry[:3]
        extra = entry[3] if len(entry) > 3 else ""
        dims = ", ".join(str(d) for d in dims)
        blocks.append(f'  {{ name: "{name}" data_type: {config_type(datatype)}'
                      f' dims: [ {dims} ] {extra} }}')
    return f"{kind} [\n" + ",\n".join(blocks) + "\n]\n"


def parameter_block(parameters):
    return "".join(
        f'parameters {{ key: "{k}" value {{ string_value: "{v}" }} }}\n'
        for k, v in (parameters or {}).items())


def write_model(repository, name, config, versions=(1,), files=None):
    """config: text of config.pbtxt or None; files: {version: {name: bytes}}."""
    directory = pathlib.Path(repository) / name
    for version in versions:
        (directory / str(version)).mkdir(parents=True, exist_ok=True)
    for version, content in (files or {}).items():
        for file, data in content.items():
            path = directory / str(version) / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    if config is not None:
        (directory / "config.pbtxt").write_text(config, encoding="utf-8")
    return directory


def step(model, inputs, outputs):
    """A step of an ensemble; both maps as in its configuration."""
    def maps(kind, pairs):
        return "".join(f' {kind} {{ key: "{k}" value: "{v}" }}'
                       for k, v in pairs.items())
    return (f'step {{ model_name: "{model}" model_version: -1'
            + maps("input_map", inputs) + maps("output_map", outputs) + " }")


def ensemble(repository, name, inputs, outputs, *steps, extra=""):
    write_model(
        repository, name, 'platform: "ensemble"\n'
        + io_block("input", inputs)
        + io_block("output", outputs) + extra
        + "ensemble_scheduling {\n  " + "\n  ".join(steps) + "\n}\n")


def identity_config(name, inputs, outputs=None, max_batch=0, instances=1,
                    backend="identity", parameters=None, extra=""):
    """outputs default to the inputs, IN... renamed OUT... .

    The identity backend copies input number i to output number i.
    """
    if outputs is None:
        outputs = [(output_name(e[0]), *e[1:3]) for e in inputs]
    return (f'name: "{name}"\nbackend: "{backend}"\n'
            f"max_batch_size: {max_batch}\n"
            + io_block("input", inputs) + io_block("output", outputs)
            + f"instance_group [ {{ count: {instances} kind: KIND_CPU }} ]\n"
            + parameter_block(parameters) + extra)


def output_name(name):
    return name.replace("IN", "OUT") if "IN" in name else name + "_OUT"


def identity(repository, name, inputs, versions=(1,), **kw):
    return write_model(repository, name, identity_config(name, inputs, **kw),
                       versions)


def standard_repository(repository):
    """The models of most protocol tests."""
    for datatype in ALL_DATATYPES:
        identity(repository, "id_" + datatype.lower(),
                 [("IN", datatype, [-1])])
    identity(repository, "id_fixed", [("IN", "INT32", [2, 3])])
    identity(repository, "id_any", [("IN", "FP32", [-1, -1])])
    identity(repository, "id_batch", [("IN", "FP32", [4])], max_batch=8)
    identity(repository, "id_pair",
             [("IN0", "INT32", [-1]), ("IN1", "FP32", [-1])])
    identity(repository, "id_versions", [("IN", "INT32", [-1])],
             versions=(1, 3, 7),
             extra="version_policy { specific { versions: [ 1, 3 ] } }\n")
    scores = identity(
        repository, "vision", [("PIX", "FP32", [4])],
        outputs=[("SCORES", "FP32", [4], 'label_filename: "labels.txt"')],
        max_batch=4, versions=(2,))
    (scores / "labels.txt").write_text("dog\ncat\nhen\nowl\n",
                                       encoding="utf-8")
    identity(repository, "vision_plain", [("IN", "INT32", [-1])])
    identity(repository, "scale", [("X", "FP32", [-1])],
             outputs=[("Y", "FP32", [-1])], max_batch=8)
    identity(repository, "echo", [("WORDS", "BYTES", [-1])],
             outputs=[("WORDS_OUT", "BYTES", [-1])])
