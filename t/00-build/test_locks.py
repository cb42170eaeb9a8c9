"""clang's thread-safety analysis of core, and that it sees anything at all."""

import importlib.util
import re
import subprocess
import sys

from lib.server import BUILD, ROOT

PROGRAM = ROOT / "t/locks.py"

# The comment above a function, and its name.
TOLD = re.compile(r"/\*((?:(?!\*/).)*)\*/\n[\w \t*]+\n(\w+)\(", re.S)
HELD = re.compile(r"\block is held\b|\bcaller holds\b")

NEEDY = """
#include "core/base/lock.h"

typedef struct { inf_lock_t lock; int value; } box_t;

static int value_locked(const box_t *box) INF_NEEDS(box->lock);

static int
value_locked(const box_t *box)
{
    return box->value;
}

int box_value(box_t *box);

int
box_value(box_t *box)
{
    %s;
    int value = value_locked(box);
    %s;
    return value;
}
"""


def program():
    spec = importlib.util.spec_from_file_location("locks", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def analyse(tmp_path, before, after):
    source = tmp_path / "box.c"
    source.write_text(NEEDY % (before, after))
    return program().analyse(source, tmp_path, [f"-I{ROOT}", "-std=gnu17"])


def test_core_keeps_what_prototypes_say_of_locks():
    done = subprocess.run([sys.executable, PROGRAM, BUILD],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_prototype_says_which_lock_is_held():
    """Or its name; a comment is not analysed."""
    texts = [path.read_text() for path in (ROOT / "core").rglob("*.c")]
    told = [match for text in texts for match in TOLD.finditer(text)]
    assert len(told) > 1000
    assert [name for comment, name in (match.groups() for match in told)
            if HELD.search(" ".join(comment.split()))
            and not name.endswith("_locked")] == []


def test_a_lock_that_is_held_is_fine(tmp_path):
    assert analyse(tmp_path, "inf_lock(&box->lock)",
                   "inf_unlock(&box->lock)") == ""


def test_a_lock_that_is_missing_is_named(tmp_path):
    assert "requires holding mutex 'box->lock'" in analyse(tmp_path, "", "")


def test_a_lock_that_is_kept_is_named(tmp_path):
    assert "mutex 'box->lock' is still held" in analyse(
        tmp_path, "inf_lock(&box->lock)", "")
