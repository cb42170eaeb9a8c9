"""Decoupled models in C, each with its library beside it."""

import pathlib
import shutil

from lib import backends


def repeat(repository, name="repeat"):
    """examples/backends/repeat as a user has it."""
    place = pathlib.Path(repository) / name
    (place / "1").mkdir(parents=True)
    shutil.copy(backends.example("repeat"), place)
    shutil.copy(backends.EXAMPLES / "repeat/config.pbtxt", place)


def square(repository, name="square", instances=1, policy=True):
    """t/backends/square.c: n gives n responses; without the policy the model
    is not decoupled, and should not do so."""
    place = pathlib.Path(repository) / name
    (place / "1").mkdir(parents=True)
    shutil.copy(backends.build("square") / "square/libtriton_square.so",
                place)
    (place / "config.pbtxt").write_text(
        'backend: "square"\n'
        f'instance_group {{ kind: KIND_CPU count: {instances} }}\n'
        f'model_transaction_policy {{ decoupled: {str(policy).lower()} }}\n'
        'input { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] }\n'
        'output { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] }\n',
        encoding="utf-8")
