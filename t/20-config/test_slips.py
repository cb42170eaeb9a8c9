"""nginx -t finds the commonest slips of those who write an nginx.conf: names
that no repository has, and directives that lack others.  None of them fails
it: files may come later."""

import pathlib
import re

import pytest

from lib import models
from lib.server import CONFIG

ANY = [("IN", "FP32", [-1])]


@pytest.fixture
def check(make_server):
    """Output of nginx -t, of a repository with digits (versions 1 and 3, of
    which the default policy serves 3)."""
    def fill(repository):
        models.identity(repository, "digits", ANY, versions=(1, 3))
        models.identity(repository, "resnet-50", ANY)

    def run(http="", server="", config=None, status=0):
        made = make_server(fill, start=False, http=http + "\n", server=server,
                           config=config)
        got, output = made.check_config()
        assert got == status, output
        return output
    return run


def location(words):
    return f"        location = /m {{ inference_model {words}; }}\n"


UNKNOWN = {
    "digit": 'did you mean "digits"?',
    "Digits": 'did you mean "digits"?',
    "resnet_50": 'did you mean "resnet-50"?',
    "'another one'": None,
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_model_that_no_repository_has(check, name):
    output = check(server=location(name))
    shown = name.strip("'")
    found, = re.findall(r"\[warn\] [^\n]*", output)
    assert re.search(
        rf'"inference_model {shown}" in [^\n]*nginx\.conf:\d+: no repository '
        r"has a model of that name", found)
    assert (UNKNOWN[name] or "that name") in found
    assert ("did you mean" in found) == (UNKNOWN[name] is not None)


def test_the_line_is_the_directives(check):
    output = check(server="\n\n" + location("digit"))
    file, number = re.search(r"in (/\S*):(\d+): no repository",
                             output).groups()
    line = pathlib.Path(file).read_text().splitlines()[int(number) - 1]
    assert "inference_model digit;" in line


@pytest.mark.parametrize("version,finding", [
    ("2", "the model has no version 2; it has 3"),
    ("1", "the model's version_policy leaves version 1 out; it serves 3"),
])
def test_a_version_that_is_not_served(check, version, finding):
    output = check(server=location(f"digits {version}"))
    assert re.search(r'\[warn\] [^\n]*"inference_model digits" in '
                     rf"[^\n]*nginx\.conf:\d+: {re.escape(finding)}\n", output)


def test_good_names_and_variables_are_not_doubted(check):
    output = check(
        http="inference_check strict; inference_model_control explicit;\n"
             "inference_load_model digits;\n"
             "map $arg_m $model { default digit; }\n",
        server=location("digits 3")
        + "location = /a { inference_model $model; }\n"
        + "location = /b { inference_model digits $arg_version; }\n"
        + "location = /c { inference_model digits generate; }\n")
    assert "[warn]" not in output


def test_a_model_to_load_that_no_repository_has(check):
    http = "inference_model_control explicit; inference_load_model digts;"
    output = check(http=http)
    assert re.search(r'\[warn\] [^\n]*"inference_load_model digts" in [^\n]*: '
                     r'no repository [^\n]*; did you mean "digits"\?', output)
    check(http=http + "inference_check strict;", status=1)


def test_strict_fails_where_the_model_can_never_come(check):
    strict = "inference_check strict;"
    check(http=strict, server=location("digit"), status=1)
    check(http=strict, server=location("digits 2"), status=1)
    for mode in "explicit", "poll":         # a request or a poll may load it
        output = check(http=f"{strict} inference_model_control {mode};",
                       server=location("digit"))
        assert 'did you mean "digits"?' in output


@pytest.mark.parametrize("address", ["s3://127.0.0.1:1/bucket/models",
                                     "gs://bucket/models/"])
def test_a_remote_repository_may_have_it(check, address):
    output = check(http=f"inference_repository {address};",
                   server=location("digit") + location("digits 2").replace(
                       "/m", "/n"))
    assert "no repository" not in output
    assert "the model has no version 2" in output


def test_the_parts_of_an_unknown_one_are_all_served(check):
    def part(name, **expected):
        return check(server="        location /v2/ { inference %s; }\n" % name,
                     **expected)

    named = re.search(r'unknown part "infr" in "inference"; there are: '
                      r"([a-z_ ]+) in ", part("infr", status=1))[1].split()
    named.remove("grpc")            # beside others
    assert "infer" in named
    for name in named:
        part(name)


def test_no_repository_at_all(check):
    empty = CONFIG.replace("    inference_repository {models};\n", "")
    said = r'\[warn\] [^\n]*no "inference_repository": there are no models ' \
        r"for the location in [^\n]*nginx\.conf:\d+\n"
    assert re.search(said, check(config=empty))
    for quiet in "inference_model_control explicit;", None:
        output = check(http=quiet or "", config=empty if quiet else None)
        assert "there are no models" not in output


def test_a_cache_without_its_library(check):
    output = check(http="inference_response_cache redis host=localhost;")
    assert re.search(r'\[warn\] [^\n]*response cache "redis": there is no '
                     r"redis/libtritoncache_redis\.so", output)
    check(http="inference_response_cache redis host=x; inference_check "
               "strict;", status=1)
    assert "[warn]" not in check(
        http="inference_response_cache local size=1m;")
    for settings in "", "siz=1m":
        output = check(http=f"inference_response_cache local {settings};")
        assert re.search(r'\[warn\] [^\n]*response cache "local": [^\n]*size',
                         output)


def test_cores_and_nodes_that_the_machine_lacks(check):
    output = check(http="inference_host_policy all cpu-cores=0-8000;\n"
                        "inference_host_policy none cpu-cores=8000;\n"
                        "inference_host_policy good cpu-cores=0;\n"
                        "inference_host_policy node numa-node=1000;\n")
    found = "\n".join(re.findall(r"\[warn\] [^\n]*", output))
    for policy, setting in ("all", "cpu-cores=0-8000"), ("none",
                                                         "cpu-cores=8000"):
        assert re.search(rf'host policy "{policy}": {setting}, but this '
                         r"machine has cores 0\S*", found), output
    assert '"good"' not in found
    # some kernels know no nodes
    assert len(re.findall('"node"', found)) <= 1

    strict = "inference_check strict; inference_host_policy p cpu-cores="
    check(http=strict + "8000;", status=1)
    check(http=strict + "0-8000;")          # those that are there serve


def test_resources_while_the_limiter_is_off(check):
    resource = "inference_rate_limit_resource R 4;"
    output = check(http=resource)
    assert re.search(r'\[warn\] [^\n]*"inference_rate_limit_resource" has no '
                     r'effect without "inference_rate_limit execution_count" '
                     r"in [^\n]*nginx\.conf:\d+\n", output)
    assert "[warn]" not in check(
        http=resource + "inference_rate_limit execution_count;")


def test_an_unknown_model_of_a_map_is_named_when_it_is_asked_for(make_server):
    server = make_server(
        lambda r: models.identity(r, "digits", ANY),
        http="    map $arg_m $model { default digits; old digit; }\n",
        server="        location = /m { inference_model $model; }\n")
    body = b'{"inputs":[{"name":"IN","datatype":"FP32","shape":[1],' \
        b'"data":[1]}]}'
    assert server.post("/m", body).status == 200
    assert server.post("/m?m=old", body).status == 404
    assert re.search(r'\[error\] [^\n]*inference request of model "digit" '
                     r"failed: [^\n]*'digit'[^\n]*request: \"POST /m\?m=old",
                     server.log_text())
