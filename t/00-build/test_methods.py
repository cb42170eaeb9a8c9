"""Lists of methods, paths and activities have all that there are."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib.server import ROOT  # noqa: E402

PROTO = ROOT / "core/proto"
RESTRICTED = (ROOT / "tools/restricted.c").read_text()
ENDPOINTS = (ROOT / "ngx_module/ngx_http_inference_endpoints.c").read_text()
ACTIVITY = "TRITONSERVER_TRACE_"
GRPC_PREFIX = "/.*[./]"     # as restricted.c writes the nginx map


def groups():
    """(name, REST paths, gRPC paths) in the order of the table."""
    table = RESTRICTED[RESTRICTED.index("groups[] = {"):]
    table = table[:table.index("};")]
    rows = re.findall(r'\{ "([\w-]+)",\s*"([^"]+)",\s*"([^"]+)" \}', table)
    assert len(rows) == table.count("{") - 1
    return rows


def first_group(path, column):
    return next((row[0] for row in groups()
                 if re.match(row[column], path)), None)


def grpc_paths():
    for file in ("grpc_service.proto", "health.proto"):
        text = (PROTO / file).read_text()
        package = re.search(r"package ([\w.]+);", text)[1]
        service = re.search(r"service (\w+)", text)[1]
        for method in re.findall(r"\brpc (\w+)", text):
            yield f"/{package}.{service}/{method}"


def test_every_grpc_method_is_of_one_group():
    """A path that the table's expressions miss would be open to anyone."""
    methods = list(grpc_paths())
    assert len(methods) > 18
    for path in methods:
        fits = [name for name, _, grpc in groups()
                if re.match(GRPC_PREFIX + grpc, path)]
        assert len(fits) == 1, f"{path}: groups {fits} of tools/restricted.c"


def test_every_rest_path_is_of_the_group_of_its_part():
    rows = re.findall(r'inference_(?:row|call)\("(/v2[^"]*)",\s*\w+,\s*'
                      r"([A-Z_]+), [\s\w]+,", ENDPOINTS)
    assert len(rows) > 30
    parts = {}
    for pattern, part in rows:
        for version in ("", "/versions/1") if "~" in pattern else ("",):
            path = pattern.replace("*", "name").replace("~", version)
            group = first_group(path, 1)
            assert group is not None, f"{path}: no group of restricted.c"
            parts.setdefault(part, set()).add(group)
    assert {part: names for part, names in parts.items()
            if len(names) != 1} == {}, "one part, several groups"


def test_every_activity_has_a_name_and_a_span():
    header = (ROOT / "core/include/triton/core/tritonserver.h").read_text()
    end = header.index("} TRITONSERVER_InferenceTraceActivity;")
    enum = header[header.rindex("enum", 0, end):end]
    wanted = re.findall(rf"{ACTIVITY}(\w+)\s*=", enum)
    assert len(wanted) > 10
    table = (ROOT / "core/server/trace_activity.c").read_text()
    assert re.findall(rf'\[{ACTIVITY}(\w+)\] =\s*\{{ "\1", INF_ACTIVITY_',
                      table) == wanted
