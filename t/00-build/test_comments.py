"""Headers and structs explain themselves.

Every prototype of a header has a comment, or shares its group's.  Every lock
says what it guards; in a struct with a lock each field that it does not guard
has a comment, and each atomic field everywhere says its memory order.
Comments and documents are plain technical English.  A line has 80 columns.
"""

import ast
import io
import pathlib
import re
import subprocess
import sys
import tokenize

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib import c_source  # noqa: E402
from lib.server import ROOT  # noqa: E402

HEADERS = ["core", "ngx_module", "backends", "tools"]
SOURCES = ["core", "ngx_module", "backends", "tools"]

LOCK = re.compile(r"(?:inf_lock_t|pthread_(?:mutex|rwlock|spinlock)_t) \w+$")
STATIC_LOCK = re.compile(r"^ *static (?:inf_lock_t|pthread_mutex_t) +(\w+) ="
                         r".*$", re.M)
COUNTS = dict(zip("two three four five six seven eight".split(), range(2, 9)))

# How an atomic field is read and written: an order of C11's, or a lock.
ORDER = re.compile(r"relaxed|acquire|release|acq_rel|seq_cst|lock")


def files(folders, suffixes):
    """(path from the root, text)"""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.suffix in suffixes:
                yield name, path.read_text()


def structs():
    for file, text in files(SOURCES, (".c", ".h")):
        for name, fields in c_source.structs(text):
            yield file, name, fields


def guarded(fields, lock):
    """How many fields after the lock its comment speaks for."""
    comment = lock.comment
    left = fields[fields.index(lock) + 1:]
    if re.search(r"guards (the rest|what follows|all below)", comment):
        return len(left)
    if match := re.search(r"guards the next (\w+)", comment):
        assert len(left) >= COUNTS[match[1]], f"{lock.name}: {comment}"
        return COUNTS[match[1]]
    if match := re.search(r"guards .*?(\w+)[^\w]*\*/$", comment):
        names = [field.name for field in left]
        if match[1] in names:
            return names.index(match[1]) + 1
    return 0


def test_prototypes():
    found = [(file, line, name, told)
             for file, text in files(HEADERS, (".h",))
             for name, line, told in c_source.prototypes(text)]
    assert len(found) > 1000
    assert [f"{file}:{line}: {name}" for file, line, name, told in found
            if not told] == []


def test_locks():
    locks = [(file, field) for file, _, fields in structs()
             for field in fields if LOCK.match(field.code)]
    assert len(locks) > 20
    assert [f"{file}:{field.line}: {field.code}" for file, field in locks
            if not re.search(r"rank|guards", field.comment)] == []


def test_locks_of_a_file():
    """They are variables, with a comment on their line or the one above."""
    locks, silent = 0, []
    for file, text in files(SOURCES, (".c", ".h", ".cc")):
        for match in STATIC_LOCK.finditer(text):
            locks += 1
            above = text[:match.start()].rstrip()
            if not (above.endswith("*/") or "/*" in match[0]):
                silent.append(f"{file}: {match[1]}")
    assert locks > 5
    assert silent == []


def test_fields_beside_a_lock():
    silent = []
    for file, name, fields in structs():
        covered = 0
        locks = [field for field in fields if LOCK.match(field.code)]
        for field in fields if locks else []:
            covered -= 1
            if field in locks:
                covered = guarded(fields, field) + 1
            elif covered <= 0 and not (field.comment or field.above):
                silent.append(f"{file}:{field.line}: {name}.{field.name}")
    assert silent == []


def test_atomic_fields():
    atomic = [(file, name, field) for file, name, fields in structs()
              for field in fields
              if re.match(r"(const )?(_Alignas\(\d+\) )?(_Atomic|atomic_)",
                          field.code)]
    assert len(atomic) > 60
    assert [f"{file}:{field.line}: {name}.{field.name}"
            for file, name, field in atomic
            if not ORDER.search(field.comment or field.above)] == []


def test_columns():
    assert [f"{file}:{number}"
            for file, text in files(SOURCES, (".c", ".h", ".cc"))
            for number, line in enumerate(text.splitlines(), 1)
            if len(line) > 80] == []


# ---- words

# A sentence's subject is a noun that names the thing; a header's five words
# begin a sentence, too.
SUBJECT = re.compile(r"(?:^|[.:;!?] +)(?:Who|Whoever|What|Whatever)\b"
                     r"|\b(?:Owner|Thread|Units|Errors|Route) +"
                     r"(?i:who|what)(?:ever)?\b")
WORDS = re.compile(r"\b(whoever|whatever|refus(?:e|ed|es|ing|al)|folders?"
                   r"|strangers?|burial|buried|mercy|fillers?|haste|lookers?"
                   r"|reviver|guests?|kin|taken apart|made again)\b", re.I)

# A name of the code in a comment.
NAME = re.compile(r"[\w.]+\(\)")

# Our own prose; the ABI's headers are Triton's.
PROSE = ["*.c", "*.h", "*.py", "*.sh", "*.md",
         ":!core/include/triton"]


def c_comments(text):
    for found in c_source.TOKEN.finditer(text):
        if found[0].startswith("/*"):
            yield re.sub(r"(?m)^[ *]+|[*/ ]+$", "",
                                        found[0][2:-2])


def python_comments(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)):
            yield ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string.strip("# -")


def shell_comments(text):
    return (line.strip("# ") for line in text.splitlines()
            if line.lstrip().startswith("#"))


def document(text):
    """Its paragraphs, without code."""
    text = re.sub(r"```.*?```|`[^`]*`|^    .*$", "_", text,
                  flags=re.S | re.M)
    return (re.sub(r"^[-#*>| ]+", "", part)
            for part in re.split(r"\n\s*\n|\n(?=[-#|*])", text))


READERS = {".c": c_comments, ".h": c_comments, ".py": python_comments,
           ".md": document}


def test_words():
    listed = subprocess.run(["git", "ls-files", "--", *PROSE], cwd=ROOT,
                            capture_output=True, text=True, check=True)
    names = listed.stdout.split()
    assert len(names) > 1000
    found = []
    for name in names:
        path = ROOT / name
        if path == pathlib.Path(__file__) or not path.exists():
            continue
        read = READERS.get(path.suffix, shell_comments)
        for comment in read(path.read_text()):
            comment = " ".join(NAME.sub("_", comment).split())
            found += [f"{name}: {match[0]} ({comment[:60]})"
                      for match in (SUBJECT.search(comment),
                                    WORDS.search(comment)) if match]
    assert found == []
