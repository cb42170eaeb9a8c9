"""nginx -t says which directives contradict each other, and where."""

import re

import pytest

from lib.server import Server

CONFLICTS = [
    ("location /x/ {\n inference infer;\n inference_peek on; }",
     r'"inference_peek" beside "inference" in \S+:\d+: it is for locations '
     "of other handlers, this one has the variables anyway"),
    ("location /x/ {\n inference_peek on;\n inference_model m; }",
     r'"inference_peek" beside "inference_model" in \S+:\d+'),
    ("location /x/ {\n inference infer;\n proxy_pass http://127.0.0.1; }",
     r'"inference" in a location that something behind it answers in '
     r"\S+:\d+"),
    ("location /x/ {\n proxy_pass http://127.0.0.1;\n inference infer; }",
     r'"inference" in a location that something else answers already in '
     r"\S+:\d+"),
    ("location /x/ {\n inference_model m;\n grpc_pass 127.0.0.1:1; }",
     r'"inference_model" in a location that something behind it answers in '
     r"\S+:\d+"),
    ("location /x/ {\n inference infer;\n inference_model m; }",
     r'"inference" and "inference_model" in one location in \S+:\d+'),
    ("location /x/ {\n inference_model $inference_model; }",
     r'"inference_model \$inference_model" names itself: the variable has '
     r"what this directive says in \S+:\d+"),
    ("location /x/ {\n inference_model ${inference_model}_b; }",
     r'"inference_model \$\{inference_model\}_b" names itself'),
    ("location /x/ {\n inference_peek maybe; }",
     r'invalid value "maybe" in "inference_peek" directive, it must be "on" '
     r'or "off" in \S+:\d+'),
    ("inference_intercept_errors on;\ninference_intercept_errors on;",
     r'"inference_intercept_errors" directive is duplicate in \S+:\d+'),
    ("location /x/ {\n if ($uri) { inference_peek on; } }",
     r'"inference_peek" directive is not allowed here in \S+:\d+')]


@pytest.mark.parametrize("text,said", CONFLICTS, ids=range(len(CONFLICTS)))
def test_conflict(make_server, text, said):
    server = make_server(start=False, server=text)
    status, output = server.check_config()
    assert status != 0
    assert re.search(said, output), output
    line = int(re.search(r"nginx\.conf:(\d+)", output)[1])
    lines = server.conf.read_text().splitlines()
    assert "inference" in lines[line - 1]


ALLOWED = ["inference_peek on; location /x/ { inference infer; }",
           "location /x/ { inference infer; inference_peek off; }",
           "inference_peek on; location /x/ { inference_model m; }",
           "location /x/ { inference_peek on; return 204; }",
           "location ~ ^/x/ { inference_peek on; return 204; }",
           "set $inference_models m;\n"
           "location /x/ { inference_model $inference_models; }"]


@pytest.mark.parametrize("text", ALLOWED, ids=range(len(ALLOWED)))
def test_no_conflict(make_server, text):
    status, output = make_server(start=False, server=text).check_config()
    assert status == 0, output


PROXY = "proxy_pass http://127.0.0.1:1;"
PAGE = "error_page 404 = @other;"
OTHER = "\nlocation @other { " + PROXY + " }"
IDLE = [(f"location /x/ {{\n {PROXY}\n {line} }}", line.split()[0])
        for line in (
            "inference_timeout 1s;", "inference_tries 2;",
            "inference_max_body 1m;", "inference_min_body_rate 1k;",
            "inference_errors precise;", "inference_deflate on;",
            "inference_intercept_errors on;", "inference_forward_header x;",
            "inference_grpc_compression low;")]


@pytest.mark.parametrize("text,name", IDLE, ids=[name for _, name in IDLE])
def test_setting_of_no_effect(make_server, text, name):
    server = make_server(start=False, server=text)
    status, output = server.check_config()
    assert status == 0
    found = re.search(rf'\[warn\] .*"{name}" has no effect in a location '
                      r"that another handler answers in \S+:(\d+)", output)
    lines = server.conf.read_text().splitlines()
    assert name in lines[int(found[1]) - 1]


@pytest.mark.parametrize("inside", ["inference infer;", "inference_model m;"])
def test_error_page_of_no_effect(make_server, inside):
    server = make_server(start=False, server=f"""location /x/ {{
{inside} {PAGE} }}""" + OTHER)
    status, output = server.check_config()
    assert status == 0
    found = re.search(r'\[warn\] .*"error_page 404" has no effect on errors of '
                      r'"\w+" without "inference_intercept_errors on" in the '
                      r"location in \S+:(\d+)", output)
    assert inside in server.conf.read_text().splitlines()[int(found[1]) - 1]


QUIET = [
    f"inference_timeout 1s; location /x/ {{ {PROXY} }}",
    f"location /x/ {{ {PROXY} inference_timeout 1s;\n"
    "location /x/y/ { inference infer; } }",
    "location /x/ { inference_timeout 1s; inference infer; }",
    f"location /x/ {{ inference_peek on; {PROXY} }}",
    PAGE + OTHER + " location /x/ { inference infer; }",
    "location /x/ { inference infer; inference_intercept_errors on; "
    + PAGE + " }" + OTHER,
    "inference_intercept_errors on; location /x/ { inference infer; "
    + PAGE + " }" + OTHER,
    "location /x/ { inference infer; inference_intercept_errors off; "
    + PAGE + " }" + OTHER,
    "location /x/ { inference infer; error_page 401 429 503 = @other; }"
    + OTHER,
    "location /x/ { inference infer; if ($arg_x) { return 404; } " + PAGE
    + " }" + OTHER,
    "location /x/ { internal; inference infer; " + PAGE + " }" + OTHER]


@pytest.mark.parametrize("text", QUIET, ids=range(len(QUIET)))
def test_no_warning(make_server, text):
    status, output = make_server(start=False, server=text).check_config()
    assert status == 0 and "no effect" not in output
