"""C as text: the structs of a file with their fields, a header's prototypes.

Enough for this tree's layout, where a declaration ends its line.
"""

import dataclasses
import re

TOKEN = re.compile(r"""/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""",
                   re.S)
STRUCT = re.compile(r"\b(?:struct|union)\b[^;{}()]*\{")
PROTOTYPE = re.compile(r"^(?!typedef|extern|struct|enum|union|#|_Static)"
                       r"[A-Za-z_][\w \t\n*()]*?\b(\w+)\([^;{}]*;", re.M)
# A field's comment that speaks for those below it, up to an empty line.
GROUP = re.compile(r"/\* (these are|set in \w+\(\)|relaxed)|\ball these\b")
ATTRIBUTE = re.compile(r"__attribute__\(\(.*?\)\)")


@dataclasses.dataclass
class Field:
    name: str
    code: str       # the declaration
    line: int
    comment: str    # on its own lines
    above: str      # the comment that its group of lines begins with: on
                    # lines above, or an earlier field's


def without_comments(text):
    """Comments and strings become blanks; every offset and line stays."""
    return TOKEN.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def closed_by(code, at):
    """The offset of the brace that closes the one before at."""
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        at += 1
    return at - 1


def structs(text):
    """(name, fields) of each struct and union, nested ones too."""
    code = without_comments(text)
    for match in STRUCT.finditer(code):
        end = closed_by(code, match.end())
        head = re.findall(r"\w+", match[0])
        name = re.match(r"\}\s*(\w*)", code[end:])[1] or head[-1]
        yield name, fields(text, code, match.end(), end)


def fields(text, code, at, end):
    found = []
    above = ""
    while (stop := field_end(code, at, end)) is not None:
        before, declaration = text[at:stop], code[at:stop]
        start = at + len(declaration) - len(declaration.lstrip())
        gap = text[at:start]
        if found and "/*" in gap.split("\n")[0]:   # the field before's
            gap = gap.partition("*/")[2]
        if "/*" in gap:
            above = " ".join(gap[gap.rindex("/*"):].split())
        elif re.search(r"\n\s*\n", gap):
            above = ""
        own = re.match(r"[ \t]*(/\*.*?\*/)", text[stop + 1:], re.S)
        inner = "".join(re.findall(r"/\*.*?\*/", before[start - at:], re.S)) \
            if "{" not in before else ""
        names = re.findall(r"\w+", re.sub(r"\[.*?\]|:\s*\d+|\)\(.*", "",
                                          code[start:stop]))
        comment = " ".join(((own[1] if own else "") + inner).split())
        if GROUP.search(comment):
            above = comment
        found.append(Field(names[-1], " ".join(code[start:stop].split()),
                           text.count("\n", 0, start) + 1, comment, above))
        at = stop + 1
    return found


def field_end(code, at, end):
    depth = 0
    for i in range(at, end):
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(code[i], 0)
        if code[i] == ";" and depth == 0:
            return i
    return None


def prototypes(text):
    """(name, line, whether it has a comment or shares its group's)."""
    code = list(ATTRIBUTE.sub(lambda m: " " * len(m[0]),
                              without_comments(text)))
    depth = 0
    for i, sign in enumerate(code):         # a body ends its head
        depth -= sign == "}"
        if sign == "{":
            code[i] = ";" if depth == 0 else " "
        elif depth > 0 and sign != "\n":
            code[i] = " "
        depth += sign == "{"
    shared, ended = False, 0
    for match in PROTOTYPE.finditer("".join(code)):
        above = text[ended:match.start()]
        lines = text[:match.start()].rstrip(" ").split("\n")
        if lines[-2].endswith("*/") and len(lines) > 1:
            shared = True
        elif re.search(r"\n\s*\n", above) or not ended:
            shared = False
        after = text[match.end():].split("\n")[0]
        ended = match.end()
        if text[ended - 1] == ";":          # a body explains itself
            yield (match[1], text.count("\n", 0, match.start()) + 1,
                   shared or "/*" in after)
