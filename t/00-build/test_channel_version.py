"""A change of the channel is a new version of it.

`channel-versions.txt` has what each version is made of: the size of each
struct of core/include/channel.h, and the number of each method.  A package's
other half may be the version before, so that must not change any more.
"""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib.server import ROOT  # noqa: E402

HEADER = ROOT / "core/include/channel.h"
LIST = pathlib.Path(__file__).with_name("channel-versions.txt")
PROGRAM = """
#include <stdio.h>
#include "core/include/channel.h"
int main(void) { %s return 0; }
"""


def listed():
    """{version: its lines}; a line without a blank first is a version."""
    found = {}
    for line in LIST.read_text().splitlines():
        if match := re.match(r"version (\d+)$", line):
            lines = found.setdefault(int(match[1]), [])
        elif line.startswith("    "):
            lines.append(line.strip())
    return found


def now(tmp_path, text):
    """Its version and lines, as the compiler has them."""
    structs = re.findall(r"^\} (inf_\w+_t);", text, re.M)
    enums = re.findall(r"typedef enum \{[^}]*\} (inf_\w+_t);", text)
    structs = [name for name in structs if name not in enums]
    methods = re.findall(r"^    (INF_METHOD_\w+)", text, re.M)
    assert len(structs) > 10 and len(methods) > 15
    body = 'printf("%u\\n", INF_CHANNEL_VERSION);'
    for name in structs:
        body += f'printf("{name} %zu\\n", sizeof({name}));'
    for name in methods:
        body += f'printf("{name} %d\\n", {name});'
    source = tmp_path / "channel.c"
    (tmp_path / "core/include").mkdir(parents=True, exist_ok=True)
    (tmp_path / "core/include/channel.h").write_text(text)
    source.write_text(PROGRAM % body)
    program = tmp_path / "channel"
    subprocess.run(["cc", "-std=gnu17", f"-I{tmp_path}", f"-I{ROOT}",
                    "-o", program, source], check=True)
    lines = subprocess.run([program], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    return int(lines[0]), lines[1:]


def verdict(tmp_path, text):
    version, lines = now(tmp_path, text)
    known = listed()
    if version not in known:
        return f"version {version} has no list in {LIST.name}"
    changed = sorted(set(lines) ^ set(known[version]))
    return f"not those of version {version}, make a new one: {changed}" \
        if changed else ""


def test_the_channel_is_what_its_version_says(tmp_path):
    assert verdict(tmp_path, HEADER.read_text()) == ""


def test_a_change_without_a_new_version_is_found(tmp_path):
    text = HEADER.read_text()
    more = text.replace("    INF_METHOD_STATUS,\n",
                        "    INF_METHOD_STATUS,\n    INF_METHOD_NEXT,\n")
    assert more != text
    assert "INF_METHOD_NEXT 21" in verdict(tmp_path, more)
    wider = re.sub(r"^\} inf_ref_t;", "    uint32_t more;\n} inf_ref_t;", text,
                   flags=re.M)
    assert wider != text
    assert "inf_ref_t 12" in verdict(tmp_path, wider)


def test_a_version_without_a_list_is_found(tmp_path):
    text, version = HEADER.read_text(), max(listed())
    newer = re.sub(rf"(INF_CHANNEL_VERSION +){version}u",
                   rf"\g<1>{version + 1}u", text)
    assert newer != text
    assert "has no list" in verdict(tmp_path, newer)
