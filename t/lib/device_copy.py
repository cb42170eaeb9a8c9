"""Models of t/backends/device_copy.c, and requests to them."""

from lib import models
from lib.wire import tensor


def model(repository, name, kind="kind: KIND_GPU gpus: [0]", want="GPU",
          max_batch=0, extra="", labels=()):
    """OUT is IN, PATH says by which way.  labels: of the elements of OUT."""
    models.write_model(
        repository, name, f'name: "{name}"\nbackend: "device_copy"\n'
        f"max_batch_size: {max_batch}\n"
        + models.io_block("input", [("IN", "UINT8", [-1])])
        + models.io_block("output", [
            ("OUT", "UINT8", [-1], *(['label_filename: "labels.txt"']
                                     if labels else [])),
            ("PATH", "BYTES", [1])])
        + models.parameter_block({"want": want})
        + f"instance_group {{ {kind} }}\n" + extra)
    if labels:
        (repository / name / "labels.txt").write_text("\n".join(labels),
                                                      encoding="utf-8")


def chain(repository, name, steps, outputs=(), pathless=()):
    """An ensemble: models from IN to OUT, one after the other; PATH1, PATH2,
    ... are theirs, but for those that have none.  outputs: tensors between
    steps, T1 of the first, that are the ensemble's, too."""
    made, seen = [], []
    for i, step in enumerate(steps, 1):
        maps = {"OUT": "OUT" if i == len(steps) else f"T{i}"}
        if step not in pathless:
            maps["PATH"] = f"PATH{i}"
            seen.append((f"PATH{i}", "BYTES", [1]))
        made.append(models.step(
            step, {"IN": "IN" if i == 1 else f"T{i - 1}"}, maps))
    models.ensemble(
        repository, name, [("IN", "UINT8", [-1])],
        [("OUT", "UINT8", [-1])] + seen
        + [(t, "UINT8", [-1]) for t in outputs], *made)


def ask(server, name, data, outputs=("OUT", "PATH"), shape=None,
        parameters=None):
    """The answer: {output: bytes, or text of a PATH...}."""
    header = {
        "inputs": [tensor("IN", "UINT8", shape or [len(data)],
                          binary_data_size=len(data))],
        "outputs": [{"name": o, "parameters":
                     {"binary_data": not o.startswith("PATH")}}
                    for o in outputs]}
    if parameters:
        header["parameters"] = parameters
    return server.infer(name, header, data)


def result(answer):
    assert answer.status == 200, answer
    head, tail = answer.split()
    got = {}
    for output in head["outputs"]:
        if output["name"].startswith("PATH"):
            got[output["name"]] = output["data"][0]
        else:
            size = output["parameters"]["binary_data_size"]
            got[output["name"]], tail = tail[:size], tail[size:]
    assert tail == b""
    return got
