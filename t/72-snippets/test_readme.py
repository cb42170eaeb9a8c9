"""The configurations of README.md: one serves, one passes nginx -t."""

import re

from lib import models
from lib.server import ROOT, free_port
from lib.wire import tensor

PAGE = (ROOT / "README.md").read_text()


def configuration(begin):
    """The indented lines that begin so."""
    (found,) = re.findall(rf"^    {re.escape(begin)}.*\n(?:    .*\n)+", PAGE,
                          re.M)
    return re.sub(r"^ {4}", "", found, flags=re.M)


def test_the_minimal_configuration_serves(make_server):
    """With paths and ports of this machine, and a core that may be tested."""
    server = make_server(models.standard_repository, start=False)
    snippet = (ROOT / "conf.d/triton.conf").read_text()
    for port, own in (("8000", server.port), ("8001", free_port())):
        snippet, count = re.subn(rf"\b{port}\b(?=.*;)", str(own), snippet)
        assert count
    (server.prefix / "triton.conf").write_text(snippet)

    text = configuration("load_module")
    of = server.fields
    temp = "".join(f" {name}_temp_path {server.prefix}/temp/{name};"
                   for name in ("client_body", "proxy", "fastcgi", "uwsgi",
                                "scgi"))
    for old, new in (
            ("/usr/lib/nginx-inference/ngx_http_inference_module.so",
             of["module"]),
            ("/usr/share/nginx-inference/conf.d", server.prefix),
            ("/srv/models", server.models),
            ("http {", f"http {{ access_log off;{temp}{of['environment']}"
             f" inference_core {of['core']}{of['core_options']};"
             f" inference_backends {of['backends']};")):
        assert old in text, old
        text = text.replace(old, str(new))
    server.conf.write_text(
        f"daemon off; user root; pid {server.prefix}/nginx.pid;"
        f" error_log {server.log} info;\n{text}")
    server.start()
    answer = server.infer("id_int32", {
        "inputs": [tensor("IN", "INT32", [1], [4])]})
    assert answer.status == 200, answer


def test_locations_of_single_models(make_server):
    text = configuration("split_clients")
    assert "listen 443 ssl;" in text
    server = make_server(start=False, http=text.replace(
        "listen 443 ssl;", f"listen 127.0.0.1:{free_port()};")
        + "    limit_req_zone $arg_x zone=ask:1m rate=9r/s;\n"
        "    inference_check off;\n")
    status, output = server.check_config()
    assert status == 0, output
