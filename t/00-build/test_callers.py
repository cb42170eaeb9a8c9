"""Each function of core has a caller in what is built for users.

A call from a test alone keeps dead code alive.  A name that a plug-in or a
table refers to counts as a call; the C API is called from outside.  A function
that a single file names is static.
"""

import pathlib
import re
import sys
from collections import Counter

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib import c_source  # noqa: E402
from lib.server import ROOT  # noqa: E402

PRODUCT = ("core", "ngx_module", "backends", "tools")
DEFINITION = re.compile(r"^(?!typedef|extern|#|static(?! inline))"
                        r"[A-Za-z_][\w \t*()]*\n(\w+)\(", re.M)
API = re.compile(r"TRITON[A-Z]+_|inf_core_main$")

# Functions that are there to be watched by tests, or for them alone.
WATCHED = {
    "inf_channel_region_size": "the size that a region really has",
    "inf_channel_stats": "counts of a channel",
    "inf_client_abandon": "a client that leaves in any order of completions",
    "inf_client_connected": "whether the welcome has come",
    "inf_client_find": "whether a slot id is still valid",
    "inf_client_stats": "counts of a channel, the worker's",
    "inf_config_validate": "the first finding of inf_config_find alone",
    "inf_cuda_ipc_get": "a client's half of a CUDA region",
    "inf_ensemble_pending": "requests under way",
    "inf_eventfd_watch_clear": "for pollers that are level-triggered",
    "inf_instance_groups_validate": "the first finding alone, likewise",
    "inf_memory_gpu_usage": "bytes taken of a pool",
    "inf_pause_count": "models that wait",
    "inf_poll_counts": "polls so far",
    "inf_rate_limiter_copies": "resources as they were counted",
    "inf_rate_limiter_used": "resources in use",
    "inf_split_done": "the end of a message that a test splits itself",
    "inf_watch_count": "directories that are watched",
}

# Functions that one file alone calls, and that are not static.
PAIRED = {
    "inf_run_free",                 # with inf_run_new
    "inf_run_new",                  # inline, the compiler takes *out for NULL
}


def uncalled(files):
    """Functions defined in core that nothing names but their prototypes."""
    named, declared, defined = Counter(), Counter(), Counter()
    for path, text in files:
        code = c_source.without_comments(text)
        named.update(re.findall(r"\w+", code))
        if path.startswith("core/"):
            defined.update(DEFINITION.findall(code))
        if path.endswith(".h"):
            declared.update(name for name, *_ in c_source.prototypes(text))
    return {name for name, times in defined.items() if not API.match(name)
            and named[name] <= times + declared[name]}


def product():
    for folder in PRODUCT:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".c", ".cc", ".h"):
                yield str(path.relative_to(ROOT)), path.read_text()


def test_every_function_has_a_caller():
    found = uncalled(product())
    assert found - set(WATCHED) == set(), \
        "only tests call these: delete them, or say in WATCHED why they stay"
    assert set(WATCHED) - found == set(), "these have callers now"


def of_one_file(files, tests):
    """Functions of core that a header declares, and one file alone calls."""
    files, tests = list(files), list(tests)
    words = {path: Counter(re.findall(r"\w+", c_source.without_comments(text)))
             for path, text in files + tests}
    prototypes = Counter()
    for path, text in files:
        if path.startswith("core/") and path.endswith(".h"):
            prototypes.update(name for name, *_ in c_source.prototypes(text))
    home = {name: path for path, text in files
            if path.startswith("core/") and not path.endswith(".h")
            for name in DEFINITION.findall(c_source.without_comments(text))}
    return {name for name, path in home.items()
            if prototypes[name] and not API.match(name)
            and sum(found[name] for found in words.values())
            == words[path][name] + prototypes[name]}


def test_a_function_of_one_file_is_static():
    tests = [(str(path), path.read_text())
             for path in sorted((ROOT / "t").rglob("*.[ch]"))]
    assert of_one_file(product(), tests) == PAIRED, \
        "make these static, or say in PAIRED why they are not"


def test_a_function_of_one_file_is_found():
    files = [("core/a.h",
              "/* a.h */\n\nvoid inf_a(void);\nvoid inf_b(void);\n"),
             ("core/a.c", "void\ninf_a(void)\n{\n    inf_b();\n}\n\n"
              "void\ninf_b(void)\n{\n}\n")]
    assert of_one_file(files, []) == {"inf_a", "inf_b"}
    assert of_one_file(files, [("t/a.c", "inf_a();")]) == {"inf_b"}


def test_a_function_without_a_caller_is_found():
    files = [
        ("core/a.h", "/* a.h */\n\nvoid inf_a(void);\nvoid inf_b(void);\n"
         "static inline int\ninf_c(void)\n{\n    return 0;\n}\n"),
        ("core/a.c", "void\ninf_a(void)\n{\n    helper();\n}\n\n"
         "void\ninf_b(void)\n{\n    /* inf_a() */\n}\n\n"
         "static void\nhelper(void)\n{\n}\n"),
        ("ngx_module/b.c", "void\nngx_d(void)\n{\n    inf_b();\n}\n"),
    ]
    assert uncalled(files) == {"inf_a", "inf_c"}
