"""The reference pages are those of the tables: each row has a text, each text
a row, and what is written is current.  Examples pass nginx -t."""

import importlib.util
import re
import shutil

import pytest

from lib.server import BUILD, CONFIG, ROOT

spec = importlib.util.spec_from_file_location(
    "reference", ROOT / "tools/reference/reference.py")
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)

SECTION = re.compile(r"^### (\S+)\n(.*?)(?=^##|\Z)", re.S | re.M)
EXAMPLE = re.compile(r"```nginx\n(.*?)```", re.S)


def examples(page):
    text = (ROOT / f"docs/{page}.md").read_text()
    found = [(name, number, code) for name, body in SECTION.findall(text)
             for number, code in enumerate(EXAMPLE.findall(body))]
    return found + [("page", number, code) for number, code in
                    enumerate(EXAMPLE.findall(text.split("\n## ")[0]))]


EXAMPLES = examples("directives") + examples("variables")


@pytest.fixture(autouse=True)
def no_leaks(monkeypatch):
    """The launcher ends without freeing all."""
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")


@pytest.fixture(scope="module")
def tables():
    return reference.read_tables(BUILD)


@pytest.fixture
def docs(tmp_path, monkeypatch):
    """A copy of docs that reference.py reads and writes."""
    copy = shutil.copytree(ROOT / "docs", tmp_path / "docs")
    monkeypatch.setattr(reference, "DOCS", copy)
    return copy


def change(docs, name, old, new):
    text = (docs / name).read_text()
    assert old in text
    (docs / name).write_text(text.replace(old, new, 1))


def test_the_tables_are_complete(tables):
    """As the sources have them, which the tool does not read as text."""
    module = (ROOT / "ngx_module/ngx_http_inference_module.c").read_text()
    options = (ROOT / "core/proto/core_options.h").read_text()
    variables = (ROOT / "ngx_module/ngx_http_inference_variables.c").read_text()
    names = re.findall(r'\{ ngx_string\("(inference\w*)"\)', module)
    names += re.findall(r'\b(?:VALUE|GROUP)\("(\w+)"', options)
    assert len(names) > 30
    assert sorted(row[0] for row in tables["directive"]) == sorted(names)
    assert sorted(row[0] for row in tables["variable"]) == sorted(
        re.findall(r'\{ ngx_string\("(inference\w*)"\)', variables))


def test_pages_are_current(capsys):
    """Otherwise: make reference."""
    assert reference.main(BUILD, check=True) == 0, capsys.readouterr().err


def test_a_stale_page_is_found(docs, capsys):
    change(docs, "directives.md", "threads: 1 to 128", "threads: 1 to 129")
    assert reference.main(BUILD, check=True) == 1
    assert "docs/directives.md is stale" in capsys.readouterr().err


@pytest.mark.parametrize("page,name", [("directives", "inference_tries"),
                                       ("variables", "$inference_error")])
def test_texts_and_rows_are_the_same(docs, tables, page, name):
    change(docs, f"{page}.in", f"## {name}\n", f"## {name}_2\n")
    with pytest.raises(reference.Fault, match=re.escape(name) + ": .* 0 texts"):
        reference.PAGES[page](tables, BUILD)
    change(docs, f"{page}.in", f"## {name}_2\n",
           f"## {name}\n```nginx\n```\n## {name}_2\n```nginx\n```\n")
    with pytest.raises(reference.Fault, match="no row"):
        reference.PAGES[page](tables, BUILD)
    change(docs, f"{page}.in", f"## {name}_2\n", f"## {name}\n")
    with pytest.raises(reference.Fault, match="2 texts"):
        reference.PAGES[page](tables, BUILD)


@pytest.mark.parametrize("old,new,fault", [
    (" [hang=TIME]", "", "inference_core: Syntax lacks hang="),
    ("format=default|ISO8601]", "format=default]", "lacks the value ISO8601"),
    ("inference_log info @;", "inference_log info;", "Default needs @"),
    ("Syntax: inference_host_policy NAME", "Syntax: inference_host NAME",
     "Syntax is of inference_host"),
    ("Reload: PATH and spin: next core; ", "Reload: ", 'lacks "next core"'),
    ("Default: half of `inference_memory`\n", "",
     "inference_max_body: Default"),
    ("```nginx\ninference_peer_access", "```\ninference_peer_access",
     "inference_peer_access: there is no example"),
])
def test_a_text_that_contradicts_the_tables(docs, tables, old, new, fault):
    change(docs, "directives.in", old, new)
    with pytest.raises(reference.Fault, match=re.escape(fault)):
        reference.directives(tables, BUILD)


@pytest.mark.parametrize("old,new,fault", [
    ("--http-port=9000\n", "", "--http-port: options.in has no sample"),
    ("--http-port=9000\n", "--http-port=9000\n--stuck-secs=5\n",
     "--stuck-secs: options.in has it, and so have the tables"),
    ("--http-port=9000\n", "--http-port=9000\n--no-port=1\n",
     "--no-port: options.in has it, the launcher not"),
    ("--http-port=9000\n", "--http-port=9000: `root`\n",
     "does not become root"),
    ("--http-port=9000\n", "--http-port=9000: none\n",
     "becomes listen, not none"),
    ("--http-port=9000\n", "--http-port=8000\n", "becomes no directive"),
    ("--http-port=9000\n", "--http-port=x\n", "1 to 65535"),
])
def test_an_option_that_the_launcher_takes_otherwise(docs, tables, old, new,
                                                     fault):
    change(docs, "options.in", old, new)
    with pytest.raises(reference.Fault, match=re.escape(fault)):
        reference.options(tables, BUILD)


@pytest.mark.parametrize("name,number,code", EXAMPLES,
                         ids=[f"{e[0]}-{e[1]}" for e in EXAMPLES])
def test_examples_are_right(make_server, name, number, code):
    """In http{}, with locations in a server; without the other lines of tests
    that are once per configuration."""
    top, inside = [], []
    where = top
    for line in code.splitlines():
        if line.startswith(("location", "if")):
            where = inside
        elif line and not line[0].isspace() and line != "}":
            where = top
        where.append(line)
    assert name == "page" or re.search(rf"{re.escape(name)}\b", code)
    config = CONFIG.replace("    access_log {access_log};\n", "")
    if re.search(r"^\s*inference_core ", code, re.M):
        config = config.replace("    inference_core {core}{core_options};\n",
                                "")
    server = make_server(start=False)
    here = [(r"/usr/lib/nginx-inference/inference-core",
             server.fields["core"]),
            (r"/var/log/nginx/", f"{server.prefix}/"),
            (r"/run/nginx/", f"{server.prefix}/")]
    text = "\n".join(top)
    for old, new in here:
        text = text.replace(old, str(new))
    server.write_config(
        config, http=text + "\n    inference_check off;\n"
        if "inference_check" not in code else text,
        server=f"server_name example;\n}} server {{\n listen 127.0.0.1:"
        f"{server.port + 1};\n" + "\n".join(inside))
    status, output = server.check_config()
    assert status == 0, output
