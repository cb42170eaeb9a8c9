"""States are enums: no struct has more than three booleans that change.

A boolean is a bool, atomic or not, or a field of one bit.  It is constant, and
no state, if its comment, or the comment that its group of fields begins with,
has the word "constant" or says in which function it is set.  An atomic field
changes, for a constant needs no atomic, unless its own comment says otherwise.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib import c_source  # noqa: E402
from lib.server import ROOT  # noqa: E402

MOST = 3
BOOLEAN = re.compile(r"(?:(?:_Atomic|const|volatile) )*"
                     r"(?:bool|_Bool|_Atomic\(bool\)|atomic_bool|atomic_flag)"
                     r" [\w, ]+$|unsigned \w+ ?: ?1$")
CONSTANT = re.compile(r"\bconstant\b|\bset in \w+\(\)")


def is_state(field):
    if not BOOLEAN.match(field.code):
        return False
    if CONSTANT.search(field.comment):
        return False
    return "tomic" in field.code or not CONSTANT.search(field.above)


def state_booleans(text):
    """(struct, names of its booleans that change), of all its structs."""
    for name, fields in c_source.structs(text):
        yield name, [each for field in fields if is_state(field)
                     for each in names(field.code)]


def names(code):
    return re.findall(r"(\w+)(?: ?: ?1)?(?:,|$)", code)


def test_no_struct_has_more_than_three():
    found = [(path, name, booleans)
             for folder in ("core", "ngx_module", "backends", "tools")
             for path in sorted((ROOT / folder).rglob("*.[ch]"))
             for name, booleans in state_booleans(path.read_text())]
    assert sum(len(booleans) for _, _, booleans in found) > 300
    assert [f"{path.relative_to(ROOT)}: {name} has {len(booleans)} booleans "
            f"that change ({', '.join(booleans)}): make those that are one "
            "state an enum, or mark constants"
            for path, name, booleans in found if len(booleans) > MOST] == []


SAMPLE = """
typedef struct {
    int            size;
    bool           has_shape;           /* these are constant          */
    bool           optional;

    _Atomic bool   dead;                /* release, acquire            */
    bool           writable;            /* constant: the caller's      */
    bool           first, second;
    unsigned       third:1;
    unsigned       width:4;
    bool          *failed;
    struct {
        bool       ready;
    } inner;
    _Atomic(bool)  closed;
} sample_t;
"""


def test_booleans_are_found_and_constants_are_not():
    found = dict(state_booleans(SAMPLE))
    assert found == {
        "sample_t": ["dead", "first", "second", "third", "closed"],
        "inner": ["ready"]}


def test_an_atomic_field_is_no_constant_of_its_group():
    text = SAMPLE.replace("\n\n    _Atomic bool", "\n    _Atomic bool")
    assert dict(state_booleans(text))["sample_t"] == ["dead", "closed"]
