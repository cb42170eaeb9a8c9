"""nginx -t names file, line and the offending value of a bad directive."""

import os

import pytest

from lib.server import CONFIG, Server

BAD_HTTP = [
    # directive, what the message must hold
    ("inference_env NOEQUALS;", ["NOEQUALS"]),
    ("inference_env =value;", ["=value"]),
    ('inference_env "BAD-NAME=1";', ["BAD-NAME"]),
    ("inference_env A=1; inference_env A=2;",
     ['duplicate "inference_env" of "A"']),
    ("inference_agents s3://bucket/x;", ["s3://bucket/x"]),
    ("inference_agents agents;", ["inference_agents", "agents"]),
    ("inference_agents /a; inference_agents /a/;", ["duplicate", "/a"]),
    ("inference_repository hdfs://a/b;",
     ["hdfs://a/b", "s3://", "gs://", "as://"]),
    ("inference_repository s3://host:9000/;", ["names no bucket"]),
    ("inference_repository s3://bucket!/x;", ["the bucket's name"]),
    ("inference_repository gs://;", ["names no bucket"]),
    ("inference_repository gs://host:1/x;", ["the bucket's name"]),
    ("inference_repository s3://b/x; inference_repository s3://b/x;",
     ["duplicate", "s3://b/x"]),
    ("inference_repository as://acc;", ["as://acc", "names no container"]),
    ("inference_repository as://acc.example.com/c;",
     ["as://acc.example.com/c", "storage account"]),
    ("inference_repository as://acc/c?sp=r;", ["no shared access signature"]),
    ("inference_repository as://acc/c; inference_repository as://acc/c;",
     ["duplicate", "as://acc/c"]),
    ("inference_backends s3://bucket/x;", ["s3://bucket/x"]),
    ("inference_backend_config onnxruntime nothing;",
     ["nothing", "onnxruntime"]),
    ("inference_backend_config onnxruntime =5;", ["=5"]),
    ("inference_backend_config onnxruntime a=1 a=2;", ["duplicate", "a"]),
    ("inference_backend_config onnxruntime;", ["inference_backend_config"]),
    ("inference_response_cache;", ["inference_response_cache"]),
    ("inference_response_cache a/b;", ["a/b"]),
    ("inference_response_cache local size=lots;", ["size=lots"]),
    ("inference_response_cache local size=10;", ["size=10"]),
    ("inference_response_cache local =5;", ["=5"]),
    ("inference_response_cache local big;", ["big"]),
    ("inference_response_cache local a=1 a=2;", ["duplicate", "a"]),
    ("inference_response_cache a x=1; inference_response_cache b x=1;",
     ["duplicate"]),
    ("inference_cache_directory caches;", ["caches"]),
    ("inference_memory 12q;", ["12q"]),
    ("inference_memory 100;", ["100"]),
    ("inference_memory 64m pinned=lots;", ["pinned=lots"]),
    ("inference_memory 64m pinned_arenas=lots;", ["pinned_arenas=lots"]),
    ("inference_memory 64m cuda=5;", ["cuda=5"]),
    ("inference_memory 64m responses=lots;", ["responses=lots"]),
    ("inference_memory 64m responses=1023k;", ["responses=1023k"]),
    ("inference_memory 64m responses=2m responses=2m;", ["responses=2m"]),
    ("inference_memory 64m cuda_virtual=5;", ["cuda_virtual=5"]),
    ("inference_memory 64m cuda_virtual=0:1m cuda=0:1m cuda_virtual=0:2m;",
     ["cuda_virtual=0:2m"]),
    ("inference_stuck;", ["inference_stuck"]),
    ("inference_stuck soon;", ["soon", "a time, such as 30s"]),
    ("inference_stuck -1;", ["-1"]),
    ("inference_stuck 1s; inference_stuck 1s;", ["duplicate"]),
    ("inference_shared_memory;", ["inference_shared_memory"]),
    ("inference_shared_memory 1g;", ["1g", "regions="]),
    ("inference_shared_memory regions=lots;", ["regions=lots"]),
    ("inference_shared_memory regions=4095;", ["regions=4095", "4k"]),
    ("inference_shared_memory copies=0;", ["copies=0"]),
    ("inference_shared_memory copies=1m copies=1m;", ["copies=1m"]),
    ("inference_shared_memory copies=1m; inference_shared_memory regions=1m;",
     ["duplicate"]),
    ('inference_server_id "";', ["inference_server_id"]),
    ("inference_server_id a; inference_server_id b;", ["duplicate"]),
    ("inference_memory 64m; inference_memory 64m;", ["duplicate"]),
    ("inference_log loud;", ["loud"]),
    ("inference_log info verbose=x;", ["verbose=x"]),
    ("inference_log info 3;", ["3"]),
    ("inference_log info; inference_log info;", ["duplicate"]),
    ("inference_log info format=plain;", ["format=plain"]),
    ("inference_log info format=default format=default;", ["format="]),
    ("inference_trace;", ["inference_trace"]),
    ("inference_trace on;", ["on", "file=PATH"]),
    ("inference_trace off rate=1;", ["rate=1"]),
    ("inference_trace rate=1;", ["either file=PATH or otlp=URL"]),
    ("inference_trace file=/t otlp=http://h/;", ["not both"]),
    ("inference_trace file=t;", ["inference_trace", "t"]),
    ("inference_trace file=;", ["file="]),
    ("inference_trace file=/t rate=0;", ["rate=0"]),
    ("inference_trace file=/t rate=x;", ["rate=x"]),
    ("inference_trace file=/t rate=4294967296;", ["rate=4294967296"]),
    ("inference_trace file=/t count=-1;", ["count=-1"]),
    ("inference_trace file=/t level=loud;", ["level=loud"]),
    ("inference_trace file=/t level=off level=off;", ["level=off"]),
    ("inference_trace otlp=ftp://h/;", ["ftp://h/"]),
    ("inference_trace otlp=http://;", ["http://", "no host"]),
    ("inference_trace otlp=https:///v1/traces;", ["https:///", "no host"]),
    ("inference_trace otlp=http://h:port/;", ["h:port", "invalid port"]),
    ("inference_trace otlp=http://u:p@:4318/;", ["no host"]),
    ("inference_trace otlp=http://[::1/;", ["[::1/"]),
    ("inference_trace otlp=http://[fe80::1%eth0/;", ["%eth0/"]),
    ("inference_trace otlp=http://[x%eth0]/;", ["invalid IPv6"]),
    ("inference_trace otlp=http://:/;", ["no host"]),
    ("inference_trace otlp=http://u:p@?x;", ["no host"]),
    ("inference_trace otlp=http://unix:/run/s;", ["unix:/run/s"]),
    ("inference_trace otlp=http://h/ resource=x;", ["resource=x"]),
    ("inference_trace otlp=http://h/ bsp_schedule_delay=soon;",
     ["bsp_schedule_delay=soon"]),
    ("inference_trace otlp=http://h/ bsp_max_queue_size=0;",
     ["bsp_max_queue_size=0"]),
    ("inference_trace off; inference_trace off;", ["duplicate"]),
    ("inference_auto_complete maybe;", ["maybe"]),
    ("inference_code_upload maybe;", ["maybe"]),
    ("inference_strict_readiness maybe;", ["maybe"]),
    ("inference_host_policy cpu;", ["inference_host_policy"]),
    ("inference_host_policy numa-node=0 cpu-cores=0;", ["numa-node=0"]),
    ("inference_host_policy cpu cores=0-1;", ["cores", "cpu-cores"]),
    ("inference_host_policy cpu cpu-cores=3-1;", ["cpu", "3-1"]),
    ("inference_host_policy cpu numa-node=x;", ["numa-node", "x"]),
    ("inference_host_policy cpu cpu-cores;", ["setting=value"]),
    ("inference_host_policy cpu;", ["cpu", "no setting", "cpu-cores=LIST"]),
    ("inference_host_policy cpu-cores=0;", ["name first", "cpu-cores=0"]),
    ("inference_host_policy a cpu-cores=0; inference_host_policy a"
     " cpu-cores=1;", ["duplicate", "cpu-cores"]),
    ("inference_metrics histograms=maybe;", ["histograms=maybe"]),
    ("inference_metrics cpu=on cpu=on;", ["cpu=on"]),
    ("inference_metrics interval=0;", ["interval=0"]),
    ("inference_metrics quantiles=half;", ["quantiles=half"]),
    ("inference_metrics quantiles=2:1;", ["quantiles=2:1"]),
    ("inference_metrics quantiles=0.5:0.05,0.9;", ["quantiles=0.5:0.05,0.9"]),
    ("inference_metrics quantiles=0.5:0.05,,0.9:0.01;", ["quantiles="]),
    ("inference_response_cache local size=1m key-secret=secret;",
     ["inference_response_cache secret", "not absolute"]),
    ("inference_metrics cpu=on; inference_metrics cpu=on;", ["duplicate"]),
    ("inference_model_control sometimes;", ["sometimes"]),
    ("inference_model_control explicit interval=5s;", ["interval=5s"]),
    ("inference_model_control poll interval=never;", ["interval=never"]),
    ("inference_model_control poll 5s;", ["5s"]),
    ("inference_model_control poll inotify=maybe;", ["inotify=maybe"]),
    ("inference_model_control none inotify=off;", ["inotify=off"]),
    ("inference_model_control poll inotify=on inotify=off;",
     ["inotify=off"]),
    ("inference_model_control poll interval=1s interval=2s;",
     ["interval=2s"]),
    ("inference_model_control none; inference_model_control none;",
     ["duplicate"]),
    ('inference_load_model "";', ["inference_load_model"]),
    ("inference_load_model a/b;", ["a/b"]),
    ("inference_load_model ..;", [".."]),
    ("inference_load_model m; inference_load_model m;", ["duplicate", "m"]),
    ("inference_load_model m; inference_load_model *;", ["*"]),
    ("inference_load_model *; inference_load_model m;", ["m", "alone"]),
    ("inference_load_model m;", ["inference_model_control explicit"]),
    ("inference_rate_limit on;", ['"on"', "one of: off execution_count"]),
    ("inference_errors exact;", ["exact", "one of: triton sagemaker precise"]),
    ("inference_grpc_compression 9;", ['"9"', "one of: none low"]),
    ("inference_check loud;", ["loud", "one of: off warn strict"]),
    ("inference_response_wait 1y1;", ["1y1", "a time"]),
    ('inference_server_id "";', ["a text that is not empty"]),
    ("inference_rate_limit off; inference_rate_limit off;", ["duplicate"]),
    ("inference_rate_limit_resource R1;", ["inference_rate_limit_resource"]),
    ('inference_rate_limit_resource "" 1;', ["name"]),
    ("inference_rate_limit_resource R1 -4;", ["R1", "-4"]),
    ("inference_rate_limit_resource R1 99999999999999999999;",
     ["R1", "99999999999999999999"]),
    ("inference_rate_limit_resource R1 4 gpu;", ["R1", "gpu"]),
    ("inference_rate_limit_resource R1 4 2147483648;", ["2147483648"]),
    ("inference_timeout soon;", ["inference_timeout"]),
    ("inference_tries 0;", ["inference_tries"]),
    ("inference_tries many;", ["inference_tries"]),
    ("inference_max_body big;", ["inference_max_body"]),
    ("inference_min_body_rate quick;", ["quick", "inference_min_body_rate"]),
    ("inference_min_body_rate 1k over=soon;", ["over=soon", "over=TIME"]),
    ("inference_min_body_rate 1k over=0;", ["over=0", "over=TIME"]),
    ("inference_min_body_rate 1k during=3s;", ["during=3s", "over=TIME"]),
    ("inference_min_body_rate 1k over=1s 2s;", ["inference_min_body_rate"]),
    ("inference_min_body_rate 1k; inference_min_body_rate 2k;",
     ["duplicate"]),
    ('inference_forward_header "x(";', ["x(", "inference_forward_header"]),
    ('inference_forward_header x; inference_forward_header "";',
     ["inference_forward_header"]),
    ('inference_forward_header ""; inference_forward_header x;',
     ["inference_forward_header"]),
    ("inference_deflate maybe;", ["maybe", "inference_deflate"]),
    ("inference_binary_type a/b all;", ["all", "inference_binary_type"]),
    ("inference_unheard_of on;", ["inference_unheard_of"]),
]

BAD_LOCATION = [
    ("inference grpc;", ["inference infer grpc"]),
    ("inference infer grpc grpc;", ["grpc", "twice"]),
    ("inference everything;", ["everything"]),
    ("inference;", ["inference"]),
    ("inference health health;", ["health"]),
    ("inference_model;", ["inference_model"]),
    ('inference_model "";', ["inference_model"]),
    ("inference_model m zero;", ["zero", "a positive number"]),
    ("inference_model m generat;", ["generat", "generate_stream"]),
    ("inference_model m 0;", ["0"]),
    ("inference_model m -1;", ["-1"]),
    ("inference_model m 1 explain;", ["explain"]),
    ("inference_model m 1 generate_all;", ["generate_all"]),
    ("inference_model a; inference_model b;", ["duplicate"]),
    ("inference_timeout -5;", ["inference_timeout"]),
    ("inference all; proxy_pass http://127.0.0.1:1;", ['"inference"']),
    ("proxy_pass http://127.0.0.1:1; inference all;", ['"inference"']),
    ("inference_model m; stub_status;", ['"inference_model"']),
    ("if ($arg_x) { inference_model m; proxy_pass http://127.0.0.1:1; }",
     ['"inference_model"']),
]


def check_rejected(server, directive, words):
    status, output = server.check_config()
    assert status != 0, f"accepted: {directive}\n{output}"
    text = server.conf.read_text(encoding="utf-8")
    line = text[:text.rindex(directive)].count("\n") + 1
    assert f"{server.conf}:{line}" in output, output
    for word in words:
        assert word in output, output


@pytest.mark.parametrize("directive,words", BAD_HTTP,
                         ids=[b[0] for b in BAD_HTTP])
def test_bad_http_directive_is_rejected(make_server, directive, words):
    server = make_server(http="    " + directive, start=False)
    check_rejected(server, directive, words)


@pytest.mark.parametrize("directive", [
    "inference_repository as://acc?sig=hidden;",
    "inference_repository as://acc/c?sp=hidden;",
    "inference_repository as://acc/c?sig=hidden; inference_repository "
    "as://acc/c?sig=hidden;",
    "inference_repository https://as://acc/c?sig=hidden;",
    "inference_repository as:/acc?sig=hidden;",
    "inference_repository as://acc/?sig=hidden;",
])
def test_a_signature_in_a_bad_directive_is_not_told(make_server, directive):
    server = make_server(http="    " + directive, start=False)
    status, output = server.check_config()
    assert status != 0 and "/acc" in output
    assert "hidden" not in output


@pytest.mark.parametrize("directive,words", BAD_LOCATION,
                         ids=[b[0] for b in BAD_LOCATION])
def test_bad_location_directive_is_rejected(make_server, directive, words):
    server = make_server(server=f"location /x {{ {directive} }}",
                         start=False)
    check_rejected(server, directive, words)


def test_unknown_variable_is_rejected(make_server):
    """nginx itself looks variables up, when the whole file has been read."""
    server = make_server(
        server="location /x { inference_model $undefined_variable; }",
        start=False)
    status, output = server.check_config()
    assert status != 0
    assert 'unknown "undefined_variable" variable' in output


@pytest.mark.parametrize("value,words", [
    ("/nonexistent/core", ["/nonexistent/core"]),
    ("{core} drain=never", ["drain=never"]),
    ("{core} hang=never", ["hang=never"]),
    ("{core} spin=5", ["spin=5"]),
    ("{core} spin=99999us", ["spin=99999us"]),
    ("{core} colour=red", ["colour=red"]),
])
def test_bad_core_is_rejected(make_server, value, words):
    server = make_server(start=False)
    directive = "inference_core " + value.format(core=server.fields["core"])
    server.write_config(CONFIG.replace("inference_core {core}", directive))
    check_rejected(server, directive, words)


@pytest.mark.parametrize("directive", [
    "inference_core", "inference_env A=1", "inference_repository /x",
    "inference_backends /x", "inference_agents /x",
    "inference_log info", "inference_memory 64m",
    "inference_response_cache local size=1m", "inference_cache_directory /x",
    "inference_model_control none", "inference_load_model m",
    "inference_strict_readiness on"])
def test_main_directive_is_not_allowed_in_a_location(make_server, directive):
    server = make_server(server=f"location /x {{ {directive}; }}",
                         start=False)
    check_rejected(server, directive, ["not allowed here"])


GOOD = """
    inference_env A=1;
    inference_env "B=two words";
    inference_backend_config onnxruntime default-max-batch-size=8 x=;
    inference_response_cache local size=64m;
    inference_cache_directory /usr/lib/nginx-inference/caches;
    inference_memory 64m pinned=16m cuda=0:64m;
    inference_shared_memory regions=2g copies=4k;
    inference_log warn verbose=2;
    inference_host_policy cpu numa-node=0 cpu-cores=0-3,5;
    inference_host_policy gpu_0 cpu-cores=0;
    inference_auto_complete off;
    inference_code_upload on;
    inference_strict_readiness off;
    inference_metrics cpu=off counters=on histograms=on summaries=on
                      quantiles=0.5:0.05,0.99:0.001 interval=500ms;
    inference_rate_limit execution_count;
    inference_rate_limit_resource R1 10;
    inference_rate_limit_resource R1 8;
    inference_rate_limit_resource "R 2" 5 0;
    inference_timeout 5s;
    inference_tries 5;
    inference_deflate on;
    inference_binary_type a/b requests;
    inference_forward_header ^x-;
    inference_forward_header "^y{1,2}$";
    inference_max_body 0;
    inference_min_body_rate 10k over=5s;
"""


def test_every_directive_with_a_good_value_is_accepted(make_server):
    server = make_server(start=False, http=GOOD, server="""
        location /a { inference all; inference_timeout 100ms; }
        location ~ ^/ask/(?<m>[a-z]+)$ { inference_model $m; }
        location /b { inference_model m 2 infer; inference_tries 1; }
        location /c { inference_model m$arg_v $arg_version; }
        location /d { inference metrics; }
    """)
    status, output = server.check_config()
    assert status == 0, output
    assert "[emerg]" not in output


@pytest.mark.parametrize("url", [
    "http://h", "https://h:4318/v1/traces?a=b", "http://[::1]:4318/v1/traces",
    "http://user:word@collector.example/v1/traces", "http://h/a@b:c",
    "http://[fe80::1%25eth0]:4318/", "http://[fe80::1%eth0]", "http://h:/",
    "http://[::1]:", "http://u:p@h?a=/b@:c"])
def test_urls_of_collectors_are_accepted(make_server, url):
    """And no name is resolved: the core does that."""
    server = make_server(start=False,
                         http=f"    inference_trace otlp={url};")
    status, output = server.check_config()
    assert status == 0, output


def test_missing_repository_folder_is_a_warning_only(make_server):
    server = make_server(
        start=False, http="    inference_repository /nonexistent/models;")
    status, output = server.check_config()
    assert status == 0, output
    assert "/nonexistent/models" in output


def test_check_starts_nothing_and_leaves_nothing(make_server):
    server = make_server(start=False)
    status, output = server.check_config()
    assert status == 0, output
    assert server.cores() == []


def test_configuration_without_inference_needs_no_core(make_server):
    """The module is loaded, no location uses it: nginx as ever."""
    server = make_server(config="""
load_module {module};
daemon off; worker_processes 1; user root; pid {prefix}/nginx.pid;
error_log {prefix}/error.log info;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {prefix}/temp/b; proxy_temp_path {prefix}/temp/p;
    fastcgi_temp_path {prefix}/temp/f; uwsgi_temp_path {prefix}/temp/u;
    scgi_temp_path {prefix}/temp/s;
    server {{ listen 127.0.0.1:{port}; location / {{ return 200 ok; }} }}
}}
""", wait="")
    assert server.wait_for("/")
    assert server.cores() == []


def test_server_is_a_server():
    """The harness itself: a Server that was never started leaves nothing."""
    server = Server()
    try:
        assert server.conf.is_file() and server.port > 0
    finally:
        server.stop()
    assert not server.prefix.exists() or os.environ.get("INF_KEEP")
