"""Settings of module, core and launcher are read by something, and the core's
options are the launcher's."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib.server import ROOT  # noqa: E402

MODULE = ROOT / "ngx_module"
OPTIONS = (ROOT / "core/proto/core_options.h").read_text()

# ---- what is parsed is used

WRITTEN = re.compile(r"ngx_conf_(init|merge)_|ngx_array_init|NGX_CONF_UNSET")


def fields(struct):
    """The members of one of ngx_http_inference.h's structures."""
    text = (MODULE / "ngx_http_inference.h").read_text()
    end = text.index(f"}} {struct};")
    body = text[text.rindex("typedef struct {", 0, end):end]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return re.findall(r"(\w+)(?::1)?;", body)


def test_every_setting_is_read():
    source = "\n".join(line for path in sorted(MODULE.glob("*.c"))
                       for line in path.read_text().splitlines()
                       if not WRITTEN.search(line))
    settings = [field for struct in ("main_conf_t", "loc_conf_t")
                for field in fields(f"ngx_http_inference_{struct}")]
    assert len(settings) > 20
    unread = {field for field in settings if not re.search(
        rf"\b(imcf|ilcf|conf)->{field}\b(?!\s*=[^=])", source)}
    assert unread == set()


def test_every_option_of_the_core_is_one_of_the_launcher():
    """If it has a name for the command line."""
    launcher = (ROOT / "tools/option_table.c").read_text()
    options = re.findall(r'\.option = "([\w-]+)"', OPTIONS)
    assert len(options) > 10
    assert sorted(re.findall(
        r'\{ "([\w-]+)", GROUP_\w+, \.kind = KIND_CORE\b', launcher)) \
        == sorted(options)


def test_every_option_of_the_core_is_read():
    """By something that is not the table, nor fills it in."""
    filled_in_by = {"api_options.c", "core_options.h"}
    source = "\n".join(path.read_text()
                       for path in (*sorted((ROOT / "core").rglob("*.[ch]")),
                                    *sorted(MODULE.glob("*.c")))
                       if path.name not in filled_in_by)
    options = re.findall(r'\.field = "(?:\w+\.)?(\w+)"', OPTIONS)
    assert len(options) > 40
    unread = {field for field in options if not re.search(
        rf"(->|config\.)(n_)?{field}\b(?!\s*=[^=])", source)}
    assert unread == set()


def test_the_version_of_the_backend_interface():
    """As documents say it to those who bring prebuilt backends."""
    header = (ROOT / "core/include/triton/core/tritonbackend.h").read_text()
    version = ".".join(re.search(
        rf"#define TRITONBACKEND_API_VERSION_{part} (\d+)", header)[1]
        for part in ("MAJOR", "MINOR"))
    for page in ("docs/migrating.md", "README.md"):
        assert re.findall(r"for version (\S+) of Triton's backend interface",
                          (ROOT / page).read_text()) == [version], page
