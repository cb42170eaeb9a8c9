#!/usr/bin/env python3
"""Writes the reference pages: the tables of the module and of the launcher,
merged with a text for each row.

    python3 tools/reference/reference.py BUILD           writes the pages
    python3 tools/reference/reference.py BUILD --check   says what is not so

A page docs/NAME.md has its texts in docs/NAME.in.  BUILD is a directory that
tools/build.sh has filled: nginx's headers, the generated messages, and the
launcher, which says what its options become.
"""

import collections
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
WIDTH = 100                     # of a block with syntax and default

# How a value is written, by the kind of its row.
PLACEHOLDERS = {
    "flag": "on|off", "number": "NUMBER", "time": "TIME", "size": "SIZE",
    "microseconds": "Nus", "text": "TEXT", "quantiles": "Q:ERROR,...",
    "config_name": "NAME", "directory": "DIRECTORY",
    "repository": "DIRECTORY|s3://...|gs://...|as://..."}
NO_BOUND = (0, 2 ** 31 - 1, 2 ** 32 - 1)
GROUPS = {"DEPRECATED": "Deprecated"}       # of options: their headings
LABELS = ("Syntax", "Default", "Context", "Values", "Reload", "Option")
GIVEN = ("Syntax", "Default", "Reload")         # by texts


WRITTEN = ("<!-- Written by tools/reference/reference.py from {} and the"
           " tables: change those. -->")


class Fault(Exception):
    """A text and a table contradict each other."""


# ---- tables

class Option:
    """A row of the core's options."""

    def __init__(self, fields):
        (self.directive, self.parameter, self.setting, self.kind, words,
         low, high, self.reload, self.type, self.default, self.option,
         self.help) = fields
        self.words = words.split()
        self.low, self.high = int(low), int(high)

    def known_default(self):
        """As nginx.conf has it; None: the table does not know it."""
        if self.kind == "other" or self.type == "list" or self.default == "":
            return None
        if self.kind == "choice":
            return self.words[int(self.default)]
        if self.type != "number":
            return self.default
        if int(self.default) < self.low:
            return None         # stands for something that is not a number
        return quantity(int(self.default), self.kind)

    def bounds(self):
        """Empty: there are none."""
        if self.kind not in ("number", "time", "size", "microseconds"):
            return ""
        low = quantity(self.low, self.kind)
        if self.high not in NO_BOUND:
            return f"{low} to {quantity(self.high, self.kind)}"
        return f"{low} or more" if self.low else ""

    def value(self):
        return "|".join(self.words) or PLACEHOLDERS[self.kind]


def quantity(number, kind):
    """In the largest unit that leaves a whole number."""
    if kind == "microseconds":
        return f"{number}us"
    if kind == "time":
        units = ((60000, "m"), (1000, "s"), (1, "ms"))
    elif kind == "size":
        units = ((1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k"), (1, ""))
    else:
        units = ((1, ""),)
    return next((f"{number // size}{unit}" for size, unit in units
                 if number and number % size == 0), "0")


def read_tables(build):
    """{first word of a line: its rows}, as tables.c prints them."""
    nginx = build / "nginx-src"
    includes = [ROOT, ROOT / "core/include", nginx / "objs/inference_gen"] + [
        nginx / place for place in (
            "objs", "src/core", "src/event", "src/event/modules",
            "src/event/quic", "src/os/unix", "src/http", "src/http/modules",
            "src/http/v2", "src/http/v3")]
    sources = [ROOT / "tools/reference/tables.c", ROOT / "tools/option_table.c",
               ROOT / "core/proto/core_options.c",
               nginx / "objs/inference_gen/core_config.pb-c.c"] + [
        ROOT / f"ngx_module/ngx_http_inference_{name}.c"
        for name in ("module", "location", "variables")]
    with tempfile.TemporaryDirectory() as directory:
        program = pathlib.Path(directory, "tables")
        subprocess.run(
            [os.environ.get("CC", "cc"), "-std=gnu17", "-D_GNU_SOURCE", "-O0",
             "-static", "-Wl,--unresolved-symbols=ignore-all",
             *(f"-I{place}" for place in includes), "-o", program, *sources],
            check=True)
        printed = subprocess.run([program], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout
    tables = {}
    for line in printed.splitlines():
        first, *rest = line.split("\t")
        tables.setdefault(first, []).append(rest)
    return tables


# ---- texts

class Section:
    """A heading, the labels below it, and the text after them."""

    def __init__(self, heading):
        self.heading, self.labels, self.lines = heading, {}, []

    def text(self):
        return "\n".join(self.lines).strip("\n")


def read_texts(path):
    """Its sections: the title's, and then those of groups, with headings of
    one sign, and of rows, with headings of two."""
    sections = []
    label, in_code = None, False
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            in_code = not in_code
        if not in_code and re.match(r"##? ", line):
            section, label = Section(line), None
            sections.append(section)
        elif not any(section.lines) and (found := re.match(
                rf"({'|'.join(GIVEN)}): +(.*)", line)):
            label = found[1]
            section.labels[label] = found[2]
        elif label and not section.lines and line.startswith("  "):
            section.labels[label] += " " + line.strip()
        else:
            section.lines.append(line)
    return sections


# ---- one directive

def own_and_parameters(options):
    return ([o for o in options if not o.parameter],
            [o for o in options if o.parameter])


def syntax(name, row, options, given, is_group):
    kind, words = row[1], row[2].split()
    own, parameters = own_and_parameters(options)
    own = [o for o in own if o.kind != "other"]
    if not given:
        if kind != "other":
            given = f"{name} {'|'.join(words) or PLACEHOLDERS[kind]}"
        elif len(own) == 1 and not parameters:
            given = f"{name} {own[0].value()}"
        elif is_group:
            given = " ".join([name] + [f"[{o.parameter}={o.value()}]"
                                       for o in parameters])
        else:
            raise Fault(f"{name}: Syntax is not in the tables")
    for o in parameters:
        if f"{o.parameter}=" not in given:
            raise Fault(f"{name}: Syntax lacks {o.parameter}=")
    for word in words + [w for o in options for w in o.words]:
        if not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", given):
            raise Fault(f"{name}: Syntax lacks the value {word}")
    if given.split()[0] != name:
        raise Fault(f"{name}: Syntax is of {given.split()[0]}")
    return given + ";"


def default(name, row, options, given):
    kind, of_location = row[1], row[3]
    own, parameters = own_and_parameters(options)
    known = [f"{o.parameter}={o.known_default()}" for o in parameters
             if o.known_default() is not None]
    if kind in ("number", "time", "size") and of_location:
        number = int(of_location)
        if number >= 0:
            known.append(quantity(number, kind))
    elif of_location:
        known.append(of_location)
    if len(own) == 1 and own[0].known_default() is not None:
        known.insert(0, own[0].known_default())
    if given:
        if known and "@" not in given:
            raise Fault(f"{name}: Default needs @, where the tables put "
                        + " ".join(known))
        if "@" in given and not known:
            raise Fault(f"{name}: Default has an @, but the tables know none")
        return given.replace("@", " ".join(known))
    if known:
        return f"{name} {' '.join(known)};"
    if options and all(o.type == "list" for o in options):
        return "none"
    raise Fault(f"{name}: Default is not in the tables")


def values(options):
    return "; ".join((f"{o.parameter}: " if o.parameter else "") + o.bounds()
                     for o in options if o.bounds())


def reload_effect(name, row, options, given):
    kinds = []
    for o in options:
        if o.reload not in kinds:
            kinds.append(o.reload)
    if not options:
        if not given and row[0] == "http":
            raise Fault(f"{name}: Reload is not in the tables")
        return given or "in new workers"
    if given:
        if "location" not in row[0]:
            for kind in kinds:
                if kind not in given:
                    raise Fault(f'{name}: Reload lacks "{kind}"')
        return given
    if len(kinds) == 1:
        return kinds[0]
    if any(not o.parameter for o in options):
        raise Fault(f"{name}: Reload is not in the tables")
    return "; ".join(
        ", ".join(o.parameter for o in options if o.reload == kind)
        + f": {kind}" for kind in kinds)


def launcher_options(options):
    return ", ".join(f"--{o.option}" for o in options if o.option)


def labelled(label, text):
    """Label and text in columns, folded."""
    return textwrap.fill(text, WIDTH, initial_indent=f"{label + ':':10}",
                         subsequent_indent=" " * 10, break_long_words=False,
                         break_on_hyphens=False)


def directive(section, row, options, is_group):
    name = section.heading[3:]
    given = section.labels
    if "```nginx" not in section.text():
        raise Fault(f"{name}: there is no example")
    found = {"Syntax": syntax(name, row, options, given.get("Syntax"),
                              is_group),
             "Default": default(name, row, options, given.get("Default")),
             "Context": row[0],
             "Values": values(options),
             "Reload": reload_effect(name, row, options, given.get("Reload")),
             "Option": launcher_options(options)}
    lines = [labelled(label, found[label]) for label in LABELS if found[label]]
    return ["#" + section.heading, "", "```", *lines, "```", "",
            section.text(), ""]


# ---- pages

def check_names(sections, names, what):
    """Every row has one text, and every text a row."""
    texts = [s.heading[3:] for s in sections if s.heading.startswith("## ")]
    for name in names:
        if texts.count(name) != 1:
            raise Fault(f"{name}: {what} has {texts.count(name)} texts for it")
    for name in texts:
        if name not in names:
            raise Fault(f"{name}: {what} has a text for it, the tables have"
                        " no row")


def page(name, names, write):
    """The page with write()'s lines for each section of a row; the contents
    are a line for each group."""
    source = DOCS / f"{name}.in"
    sections = read_texts(source)
    check_names(sections, names, source.name)
    contents, body = [], []
    for section in sections[1:]:
        heading = section.heading
        if heading.startswith("## "):
            body += write(section)
            anchor = heading[3:].lower().replace("$", "").replace(" ", "-")
            contents[-1] += f" [`{heading[3:]}`](#{anchor})"
        else:
            contents.append(f"- {heading[2:]}:")
            body += ["#" + heading, "", section.text(), ""]
    contents = [textwrap.fill(line, 120, subsequent_indent="  ",
                              break_long_words=False, break_on_hyphens=False)
                for line in contents]
    lines = [WRITTEN.format(source.name), "", sections[0].heading, "",
             sections[0].text(), "", *contents, "", *body]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip("\n") + "\n"


def directives(tables, _build):
    rows = {row[0]: row[1:] for row in tables["directive"]}
    options = [Option(row) for row in tables["option"]]
    groups = {row[0] for row in tables["group"]}

    def write(section):
        name = section.heading[3:]
        return directive(section, rows[name],
                         [o for o in options if o.directive == name],
                         name in groups)

    return page("directives", list(rows), write)


def variables(tables, _build):
    return page("variables", ["$" + row[0] for row in tables["variable"]],
                lambda section: ["#" + section.heading, "", section.text(),
                                 ""])


# ---- options of the launcher

def print_config(server, options):
    """The lines of the nginx.conf that these mean, counted."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("AIP_", "SAGEMAKER_", "TRITON"))}
    env |= {"AIP_PREDICT_ROUTE": "/predict", "AIP_HEALTH_ROUTE": "/health"}
    words = " ".join(options)
    base = [] if re.search(r"--model-(repository|store)=", words) \
        else ["--model-repository=/models"]
    base += [] if "--user=" in words else ["--user=root"]
    done = subprocess.run(
        [server, *base, *options, "--print-config"], env=env, text=True,
        capture_output=True, check=False)
    if done.returncode != 0:
        raise Fault(f"{words}: {done.stderr.strip()}")
    return collections.Counter(
        re.sub(r"inference-server-(temp-)?\w+", "", line.strip())
        for line in done.stdout.splitlines())


def first_words(lines):
    words = [re.match(r"[a-z]\w*", line) for line in lines]
    return list(dict.fromkeys(word[0] for word in words if word))


def becomes(server, sample):
    """The names of directives, or the text that the sample gives."""
    sample, _, text = sample.partition(": ")
    options, _, beside = (shlex.split(part) if part != " with " else part
                          for part in sample.partition(" with "))
    before = print_config(server, beside)
    after = print_config(server, beside + options)
    changed = first_words((after - before) + (before - after))
    if text.startswith("none"):
        if changed and options != ["--print-config"]:
            raise Fault(f"{sample}: becomes {' '.join(changed)}, not none")
        return text
    for word in re.findall(r"`(\w+)`", text):
        if word not in changed:
            raise Fault(f"{sample}: does not become {word}")
    if text:
        return text
    words = [word for word in first_words(after - before)
             if word not in ("server", "location")]
    if not words:
        raise Fault(f"{sample}: becomes no directive")
    return ", ".join(linked(word) for word in words)


def linked(name):
    if name.startswith("inference"):
        return f"[`{name}`](directives.md#{name})"
    return f"`{name}`"


def option_row(name, core, fields, place):
    _, standard, text, deprecated, no_effect = fields
    if core:
        text = core.help
        if found := re.fullmatch(r"(.*) \(([^()]*)\)", text):
            text, standard = found.groups()
    if no_effect:
        text = f"no effect: {no_effect}"
    if deprecated:
        text += f" (deprecated: `--{deprecated}`)"
    cells = (f"`--{name}`", standard, place, text)
    return "| " + " | ".join(cell.replace("|", "\\|")
                             for cell in cells) + " |"


def place_of(name, core, no_effect, samples, build):
    """Where the option is in nginx.conf."""
    if (core or no_effect) and name in samples:
        raise Fault(f"--{name}: options.in has it, and so have the tables")
    if core:
        return linked(core.directive) + (
            f" `{core.parameter}=`" if core.parameter else "")
    if no_effect:
        return ""
    if name not in samples:
        raise Fault(f"--{name}: options.in has no sample of it")
    return becomes(build / "inference-server", samples.pop(name))


def options(tables, build):
    source = (DOCS / "options.in").read_text(encoding="utf-8")
    samples = {re.match(r"--([\w-]+)", line)[1]: line
               for line in source.splitlines() if line.startswith("--")}
    cores = {o.option: o for o in map(Option, tables["option"]) if o.option}
    lines = [WRITTEN.format("options.in"), "",
             source[:source.index("\n--")].strip("\n")]
    last = None
    for name, group, *fields in tables["launcher"]:
        if name == "help":
            continue
        core = cores.get(name)
        place = place_of(name, core, fields[4], samples, build)
        if group != last:
            lines += ["", "## " + GROUPS.get(group, group), "",
                      "| option | default | in nginx.conf | meaning |",
                      "|---|---|---|---|"]
            last = group
        lines.append(option_row(name, core, fields, place))
    if samples:
        raise Fault(f"--{min(samples)}: options.in has it, the launcher not")
    return "\n".join(lines) + "\n"


PAGES = {"directives": directives, "variables": variables, "options": options}


def main(build, check):
    build = pathlib.Path(build).resolve()
    tables = read_tables(build)
    faults = 0
    for name, write in PAGES.items():
        path = DOCS / f"{name}.md"
        try:
            text = write(tables, build)
        except Fault as fault:
            print(fault, file=sys.stderr)
            faults += 1
            continue
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            if check:
                print(f"docs/{name}.md is stale: python3"
                      " tools/reference/reference.py BUILD", file=sys.stderr)
                faults += 1
            else:
                path.write_text(text, encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], len(sys.argv) == 3))
