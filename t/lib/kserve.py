"""KServe's own description of its resources: the models that are generated from
its API, without the rest of its package, which needs a hundred others."""

import importlib
import re
import sys
import types

from lib.server import ROOT

FOLDER = ROOT / "build/deps/kserve/kserve"
PLAIN = {"str": str, "bool": bool, "int": int}


def model(name):
    """The class of that name, such as V1alpha1ServingRuntime."""
    if "kserve" not in sys.modules:
        package = types.ModuleType("kserve")
        package.__path__ = [str(FOLDER)]
        sys.modules["kserve"] = package
    return getattr(importlib.import_module("kserve.models"), name)


def validate(value, kind, where=""):
    """Raises ValueError where value is no `kind`, a type of the models; types
    of Kubernetes (V1Container, ...) are left to its own schema."""
    if inner := re.fullmatch(r"list\[(.*)\]", kind):
        expect(value, list, where)
        for i, item in enumerate(value):
            validate(item, inner[1], f"{where}[{i}]")
    elif inner := re.fullmatch(r"dict\(str, (.*)\)", kind):
        expect(value, dict, where)
        for key, item in value.items():
            expect(key, str, where)
            validate(item, inner[1], f"{where}.{key}")
    elif kind in PLAIN:
        expect(value, PLAIN[kind], where)
    elif kind.startswith("V1alpha1"):
        validate_fields(value, model(kind), where)


def validate_fields(value, described, where):
    expect(value, dict, where)
    names = {name: field for field, name in described.attribute_map.items()}
    if unknown := set(value) - set(names):
        raise ValueError(f"{where} has no fields {sorted(unknown)}")
    # it wants the fields that must be there
    described(**{names[name]: item for name, item in value.items()})
    for name, item in value.items():
        validate(item, described.openapi_types[names[name]],
                 f"{where}.{name}")


def expect(value, kind, where):
    if type(value) is not kind:
        raise ValueError(f"{where} is {value!r}, no {kind.__name__}")
