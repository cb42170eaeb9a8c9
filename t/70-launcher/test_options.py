"""Every option of tritonserver's: what it becomes in nginx.conf, what is only
warned of, and what ends the launcher."""

import os
import re
import subprocess

import pytest

from lib.launcher import PROGRAM, launcher_env

# option: what (value, what it says), each in a run of its own:
#   conf   is in nginx.conf, without a warning
#   warn   is taken, and one line about the option says that
#   near   is taken as another number, and a line for each one says that
#   end    ends the launcher, and says that
OPTIONS = {
    "help": [("end", None, "Usage: inference-server")],
    # ---- server
    "id": [("conf", "here", 'inference_server_id "here";'),
           ("near", "", 'the name is "triton"')],
    "exit-timeout-secs": [("conf", "7", "drain=7s;"),
                          ("conf", "7", "worker_shutdown_timeout 7s;"),
                          ("near", "-1", "taken as 0"),
                          ("near", "2147483647", "taken as 2147483"),
                          ("near", "5abc", "taken as 5"),
                          ("end", "x", "is a number from 0 to 2147483")],
    # ---- model repository
    "model-repository": [("conf", "/other", 'inference_repository "/other";'),
                         ("conf", "s3://b/p",
                          'inference_repository "s3://b/p";'),
                         ("conf", "gs://b/p/",
                          'inference_repository "gs://b/p/";'),
                         ("conf", "as://a/b?sv=1&sig=x%2F",
                          'inference_repository "as://a/b?sv=1&sig=x%2F";'),
                         ("end", "hdfs://b?sig=hidden",
                          "--model-repository=hdfs://b: repositories are")],
    "model-store": [("conf", "/other", 'inference_repository "/other";'),
                    ("end", "hdfs://b", "local directories, s3://...")],
    "exit-on-error": [("conf", "false", "inference_repository"),
                      ("end", "maybe", "is true or false")],
    "disable-auto-complete-config": [("conf", None,
                                      "inference_auto_complete off;"),
                                     ("end", "=true", "takes no value")],
    "strict-readiness": [("conf", "false",
                          'inference_strict_readiness "off";')],
    "model-control-mode": [
        ("conf", "explicit", "inference_model_control explicit;"),
        ("conf", "POLL", "inference_model_control poll;"),
        ("end", "often", "is none, explicit or poll")],
    "repository-poll-secs": [("conf", "3", None), ("end", "x", "0 to 86400"),
                             ("near", "-1", "taken as 0"),
                             ("near", "99999", "taken as 86400")],
    "load-model": [("end", "m", "--model-control-mode=explicit")],
    "model-config-name": [("conf", "wide",
                           'inference_model_config_name "wide";'),
                          ("end", "", "empty"), ("end", "a/b", "a/b")],
    "model-load-thread-count": [("conf", "2",
                                 "inference_model_load threads=2;"),
                                ("near", "0", "taken as 1"),
                                ("near", "999", "taken as 128"),
                                ("near", "2e9", "taken as 2"),
                                ("end", "9" * 30, "1 to 128")],
    "model-load-retry-count": [("conf", "2",
                                "inference_model_load retries=2;"),
                               ("near", "-1", "taken as 0")],
    "model-namespacing": [("conf", "true",
                           'inference_model_namespacing "on";')],
    "enable-peer-access": [("conf", "false", 'inference_peer_access "off";')],
    # ---- HTTP
    "allow-http": [("conf", "false", "listen 0.0.0.0:8001"),
                   ("gone", "false", "0.0.0.0:8000")],
    "http-address": [("conf", "::1", "listen [::1]:8000;"),
                     ("conf", "::1", "listen [::1]:8002;"),
                     ("conf", "ipv6:::1", "listen [::1]:8000;"),
                     ("conf", "ipv4:127.0.0.1", "listen 127.0.0.1:8002;"),
                     ("conf", "::", "listen [::]:8000 ipv6only=off;"),
                     ("end", "unix:/run/s",
                      "--metrics-port and --http-port are both unix:/run/s"),
                     ("end", "", "; without the option it is 0.0.0.0\n"),
                     ("end", "a;b", "a;b")],
    "http-port": [("conf", "123", "listen 0.0.0.0:123;"),
                  ("end", "0", "1 to 65535"), ("end", "-1", "1 to 65535"),
                  ("end", "65536", 'option "--http-port" is a number from 1 to'
                   ' 65535, not "65536"'),
                  ("end", "8001", "--grpc-port and --http-port are both")],
    "reuse-http-port": [("conf", "1", "listen 0.0.0.0:8000 reuseport;")],
    "http-header-forward-pattern": [
        ("gone", "", "inference_forward_header"),
        ("conf", 'x-\\w+"', 'inference_forward_header "x-\\\\w+\\"";')],
    "http-thread-count": [("conf", "5", "worker_processes 5;"),
                          ("near", "0", "taken as 1"),
                          ("near", "-1", "taken as 1"),
                          ("end", "x", "1 to 1024")],
    "http-max-input-size": [
        ("conf", "99", "inference_max_json_size 99;"),
        ("end", "0", "from 1")],
    "http-restricted-api": [
        ("conf", "health,statistics:x-key=v",
         'set $inference_given "$inference_rule:$http_x_key";'),
        ("conf", "inference:k=v w$\"", '"^1:v\\x20w\\x24\\x22$"'),
        ("end", "health", "group,...:header=value"),
        ("end", "health:=v", "group,...:header=value"),
        ("end", "health:k=", "group,...:header=value"),
        ("end", "heal:k=v", '"heal" is none of'),
        ("end", "heal:k=v", "unknown restricted api 'heal'"),
        ("end", "health,health:k=v", "twice"),
        ("end", "health,:k=v", "unknown restricted api ''"),
        ("end", "health:k y=v", "name of a header")],
    # ---- gRPC
    "allow-grpc": [("gone", "false", "http2"), ("conf", "1", "http2;")],
    "grpc-address": [("conf", "127.0.0.1",
                      "listen 127.0.0.1:8001 http2;"),
                     ("conf", "unix:/run/a b",
                      'listen "unix:/run/a b:8001" http2;'),
                     ("conf", "[::]", "listen [::]:8001 ipv6only=off http2;")],
    "grpc-port": [("conf", "124", "listen 0.0.0.0:124 http2;"),
                  ("end", "8002", "--metrics-port and --grpc-port are both")],
    "reuse-grpc-port": [("conf", "on",
                         "listen 0.0.0.0:8001 reuseport http2;")],
    "grpc-header-forward-pattern": [
        ("gone", "", "inference_forward_header"),
        ("conf", "x.*", 'inference_forward_header "x.*";')],
    "grpc-infer-thread-count": [("conf", "9", "worker_processes 9;"),
                                ("end", "1", "2 to 128")],
    "grpc-infer-allocation-pool-size": [("warn", "5", "no effect"),
                                        ("warn", "-1", "no effect"),
                                        ("end", "x", "number")],
    "grpc-max-response-pool-size": [("warn", "5", "no effect"),
                                    ("end", "0", "from 1")],
    "grpc-use-ssl": [("conf", "false", "8001 http2;"),
                     ("end", "true", "needs --grpc-server-cert")],
    "grpc-use-ssl-mutual": [("end", "false", "needs --grpc-server-cert")],
    "grpc-server-cert": [("warn", "/x", "--grpc-use-ssl=true"),
                         ("conf", "", "8001 http2;")],
    "grpc-server-key": [("warn", "/x", "--grpc-use-ssl=true"),
                        ("conf", "", "8001 http2;")],
    "grpc-root-cert": [("warn", "/x", "--grpc-use-ssl=true"),
                       ("conf", "", "8001 http2;")],
    "grpc-infer-response-compression-level": [
        ("conf", "none", "http2;"),
        ("conf", "high", "inference_grpc_compression high;"),
        ("end", "best", "none, low, medium or high")],
    "grpc-keepalive-time": [
        ("conf", "90500", "http2 so_keepalive=91s:20s:1;"),
        ("conf", "2147483647", "http2 so_keepalive=32767s:20s:1;"),
        ("near", "-5", "taken as 1"), ("end", "soon", "1 to")],
    "grpc-keepalive-timeout": [("warn", "5", "no effect without")],
    "grpc-keepalive-permit-without-calls": [("warn", "true", "no effect"),
                                            ("end", "x", "true or false")],
    "grpc-http2-max-pings-without-data": [("warn", "0", "no effect"),
                                          ("warn", "-1", "no effect")],
    "grpc-http2-min-recv-ping-interval-without-data": [
        ("warn", "10", "no effect")],
    "grpc-http2-max-ping-strikes": [("warn", "0", "no effect")],
    "grpc-max-connection-age": [("conf", "60000",
                                 "keepalive_time 60000ms;"),
                                ("near", "-5", "taken as 0")],
    "grpc-max-connection-age-grace": [("warn", "1",
                                       "worker_shutdown_timeout")],
    "grpc-restricted-protocol": [
        ("conf", "inference:key=v",
         '"$inference_rule:$http_triton_grpc_protocol_key"'),
        ("end", "nothing:key=v", '"nothing" is none of'),
        ("end", "nothing:key=v", "unknown restricted protocol 'nothing'")],
    # ---- logging
    "log-verbose": [("conf", "3", "verbose=3;"), ("conf", "true", "verbose=1"),
                    ("near", "-1", "taken as 0"),
                    ("near", "2x", "taken as 2"),
                    ("end", "on", "0 to")],
    "log-info": [("conf", "false", "inference_log warn"),
                 ("end", "perhaps", "perhaps")],
    "log-warning": [("warn", "false", "no effect beside --log-info=true")],
    "log-error": [("warn", "false", "no effect beside --log-info=true")],
    "log-format": [("conf", "default", "inference_log"),
                   ("warn", "ISO8601", "nginx's own"),
                   ("end", "json", "default or ISO8601")],
    "log-file": [("conf", "/var/a b", 'error_log "/var/a b" info;'),
                 ("conf", "/var/a b", '    error_log "/var/a b" notice;'),
                 ("conf", "", "error_log stderr info;")],
    # ---- SageMaker, Vertex AI
    "allow-sagemaker": [
        ("conf", "true", "listen 0.0.0.0:8080;"),
        ("conf", "true", 'if ($uri = "/ping") { set $inference_to '
         '"/v2/health/ready"; }')],
    "sagemaker-port": [("gone", "81", ":81;")],
    "sagemaker-safe-port-range": [("conf", "1-9", "inference all;"),
                                  ("conf", "0-70000", "inference all;"),
                                  ("near", "1x-9 ", "taken as 1-9"),
                                  ("end", "9-1", "is first-last"),
                                  ("end", "-1-9", "is first-last"),
                                  ("end", "9", "is first-last")],
    "sagemaker-thread-count": [("conf", "6", "worker_processes 6;"),
                               ("near", "0", "taken as 1")],
    "allow-vertex-ai": [("end", "true", "AIP_PREDICT_ROUTE"),
                        ("gone", "false", "8080")],
    "vertex-ai-port": [("gone", "81", ":81;")],
    "vertex-ai-thread-count": [("conf", "4", "worker_processes 4;"),
                               ("near", "0", "taken as 1")],
    "vertex-ai-default-model": [("gone", "m", '"m"'),
                                ("conf", "", "inference all;")],
    # ---- metrics
    "allow-metrics": [("gone", "false", "inference metrics;")],
    "allow-gpu-metrics": [("conf", "false", "inference_metrics gpu=off;")],
    "allow-cpu-metrics": [("conf", "false", "inference_metrics cpu=off;")],
    "metrics-address": [("conf", "127.0.0.1", "listen 127.0.0.1:8002;"),
                        ("conf", "", "listen 0.0.0.0:8002;"),
                        ("end", "a;b", "a;b")],
    "metrics-port": [("conf", "125", "listen 0.0.0.0:125;"),
                     ("end", "8000",
                      "--metrics-port and --http-port are both 0.0.0.0:8000")],
    "metrics-interval-ms": [("conf", "50",
                             "inference_metrics interval=50ms;"),
                            ("near", "500.5", "taken as 500"),
                            ("near", "0", "taken as 1")],
    "metrics-config": [
        ("conf", "summary_latencies=true", "inference_metrics summaries=on;"),
        ("conf", "summary_quantiles=0.5:0.05, 0.9:0.01",
         "inference_metrics quantiles=0.5:0.05,0.9:0.01;"),
        ("warn", "summary_quantiles=median", "has no effect"),
        ("warn", "summary_quantiles=2:1", "has no effect"),
        ("warn", "colour=red", "has no effect"),
        ("warn", "summary_latencies=True", "has no effect"),
        ("end", "colour", "setting=value"), ("end", "a,b=c", "a,b=c"),
        ("end", "colour=", "colour=")],
    # ---- trace
    "trace-config": [
        ("gone", "level=OFF", "inference_trace"),
        ("conf", "triton,file=/tmp/t",
         'inference_trace "file=/tmp/t" level=off;'),
        ("conf", "mode=opentelemetry", "inference_trace "
         '"otlp=http://localhost:4318/v1/traces" level=off;'),
        ("warn", "opentelemetry,url=localhost/v1", "the mode is triton"),
        ("warn", "rate=100", "go nowhere without triton,file=PATH"),
        ("warn", "triton,log-frequency=5", "go nowhere"),
        ("end", "rate=many", "from 0"), ("end", "count=many", "number"),
        ("end", "rate=99999999999", "2147483647"),
        ("end", ",level=OFF", "[triton,|opentelemetry,]setting=value"),
        ("conf", "mode=OpenTelemetry", "inference_trace"),
        ("warn", "level=TIMESTAMPS", "go nowhere without triton,file=PATH"),
        ("warn", "level=On", "go nowhere without triton,file=PATH"),
        ("gone", "level=False", "inference_trace"),
        ("conf", "Triton,file=/tmp/t", 'inference_trace "file=/tmp/t"'),
        ("end", "level=LOUD", "OFF, TIMESTAMPS or TENSORS"),
        ("warn", "triton,level=TENSORS", "no setting of that name and mode"),
        ("warn", "foo=1", "no setting of that name and mode"),
        ("end", "foo,bar=1", "[triton,|opentelemetry,]setting=value"),
        ("end", "mode=zipkin", "triton or opentelemetry"),
        ("end", "opentelemetry,resource=x", "KEY=VALUE"),
        ("end", "opentelemetry,bsp_max_queue_size=0", "from 1"),
        ("end", "zipkin,url=x", "[triton,|opentelemetry,]setting=value"),
        ("end", "level", "[triton,|opentelemetry,]setting=value")],
    # ---- backend, agent, cache, rate limit
    "backend-directory": [("conf", "/b", 'inference_backends "/b";')],
    "backend-config": [
        ("conf", "x,a=b", "inference_backend_config x a=b;"),
        ("conf", "a=b", "inference_backend_config * a=b;"),
        ("conf", 'x y,a={"b": 1};\\',
         'inference_backend_config "x y" "a={\\"b\\": 1};\\\\";'),
        ("conf", "#,a=b", 'inference_backend_config "#" a=b;'),
        ("end", "x,a=", "option format is '<backend name>,<setting>=<value>'."
         " Got x,a="),
        ("end", ",a=b", "No backend specified. --backend-config option"),
        ("end", "x", "option format is '<backend name>,<setting>=<value>'."
         " Got x")],
    "repoagent-directory": [("conf", "/a", 'inference_agents "/a";'),
                            ("end", "", "empty")],
    "cache-config": [("conf", "local,size=9999",
                      "inference_response_cache local size=9999;"),
                     ("conf", "redis,password=a ;$\"",
                      'inference_response_cache redis "password=a ;$\\"";'),
                     ("conf", "local,size=128",
                      "inference_response_cache local size=128;"),
                     ("conf", "x,size=5",
                      "inference_response_cache x size=5;"),
                     ("end", "local,size=127", "--cache-config=local,size=127:"
                      " size is bytes, or with k, m, g, from 128"),
                     ("end", "local,size=1kb", "local,size=1kb: size is"),
                     ("end", "local", "<cache name>,<setting>=<value>. "
                      "Got local")],
    "cache-directory": [("conf", "/c", 'inference_cache_directory "/c";'),
                        ("gone", "", "inference_cache_directory")],
    "rate-limit": [("conf", "execution_count",
                    'inference_rate_limit "execution_count";'),
                   ("end", "on", "off or execution_count")],
    "rate-limit-resource": [
        ("conf", "R 1:4:0", 'inference_rate_limit_resource "R 1" 4 0;'),
        ("conf", "R:0", "inference_rate_limit_resource R 0 ;"),
        ("near", "R:4x:1y", "taken as R:4:1"),
        ("near", "R:4:-1", "taken as R:4"),
        ("end", "R:-1", "<resource_name>:<count>"),
        ("end", "R:4:x", "<resource_name>:<count>"),
        ("end", "R:4:1:2", "<resource_name>:<count>"),
        ("end", ":4", "<resource_name>:<count>"),
        ("conf", 'R"\\:4', 'inference_rate_limit_resource "R\\"\\\\" 4 ;'),
        ("end", "R", "<resource_name>:<count>")],
    # ---- memory, device, shared memory
    "pinned-memory-pool-byte-size": [("conf", "5",
                                      "inference_memory 1g pinned=5;"),
                                     ("near", "-1", "taken as 0")],
    "cuda-memory-pool-byte-size": [("conf", "1:5",
                                    "inference_memory 1g cuda=1:5;"),
                                   ("near", "1x:64m", "taken as 1:64"),
                                   ("end", "-1:5", "GPU's number"),
                                   ("end", "1:-5", "gpu:bytes"),
                                   ("end", "5", "GPU's number")],
    "cuda-virtual-address-size": [
        ("conf", "1:5", "inference_memory 1g cuda_virtual=1:5;"),
        ("end", "5", "GPU's number"), ("end", "1:", "gpu:bytes")],
    "min-supported-compute-capability": [
        ("conf", "7.5", "min-compute-capability=7.5;"),
        ("near", "7.5x", "taken as 7.5"), ("near", "-1", "taken as 0"),
        ("conf", "1e1", "min-compute-capability=1e1;"),
        ("end", "new", "number such as 7.5")],
    "buffer-manager-thread-count": [("warn", "4", "no effect"),
                                    ("warn", "-1", "no effect")],
    "host-policy": [("conf", "cpu,cpu-cores=0-1",
                     "inference_host_policy cpu cpu-cores=0-1;"),
                    ("conf", "a b,cpu-cores=1",
                     'inference_host_policy "a b" cpu-cores=1;'),
                    ("end", "cpu", "<policy name>,<setting>=<value>'. "
                     "Got cpu"),
                    ("end", "cpu,nodes=1", "--host-policy=cpu,nodes=1: "
                     "Unsupported host policy setting 'nodes' is specified, "
                     "supported settings are 'numa-node', 'cpu-cores'"),
                    ("end", "cpu,numa-node=x", "--host-policy=cpu,numa-node=x:"
                     " host policy setting 'numa-node' is a number from 0"),
                    ("end", "cpu,numa-node=0x", "Got '0x'"),
                    ("end", "cpu,cpu-cores=3-1", "'cpu-cores' format is"),
                    ("end", "cpu,cpu-cores=9999", "ranges below")],
    "model-load-gpu-limit": [
        ("conf", "1:0.5", "model-load-gpu-limit-device-1=0.5;"),
        ("near", "1x:0.5y", "taken as 1:0.5"),
        ("end", "1:x", "[0.0, 1.0]"), ("end", "1:nan", "[0.0, 1.0]"),
        ("end", "-1:0.5", "expects device ID >= 0, got -1"),
        ("end", "1:2", "[0.0, 1.0]")],
    "allow-client-shm": [("conf", "false", "inference all;"),
                         ("conf", "true", "inference all shared_memory;"),
                         ("conf", "true",
                          "repository trace logging shared_memory;")],
    # ---- deprecated
    "strict-model-config": [
        ("warn", "true", "deprecated! Please use "
         "'--disable-auto-complete-config' instead.")],
    "response-cache-byte-size": [
        ("warn", "5000", "deprecated! Please use '--cache-config=local,size=N'"
         " instead."),
        ("end", "-1", "from 1"), ("end", "127", "from 128")],
    "trace-file": [
        ("warn", "/tmp/t", "use '--trace-config=triton,file=PATH' instead."),
        ("warn", "", "use '--trace-config=triton,file=PATH'")],
    "trace-level": [("warn", "OFF", "use '--trace-config=level=LEVEL'"),
                    ("warn", "TIMESTAMPS", "use '--trace-config=level="),
                    ("warn", "true", "use '--trace-config=level="),
                    ("end", "LOUD", "OFF, TIMESTAMPS or TENSORS")],
    "trace-rate": [("warn", "5", "use '--trace-config=rate=N'"),
                   ("end", "x", "from 0")],
    "trace-count": [("warn", "-1", "use '--trace-config=count=N'"),
                    ("end", "many", "number")],
    "trace-log-frequency": [
        ("warn", "5", "use '--trace-config=triton,log-frequency=N'")],
}
OURS = {
    "allow-code-upload": [("conf", "true", 'inference_code_upload "on";')],
    "client-shm-byte-size": [
        ("conf", "99999", "inference_shared_memory regions=99999;"),
        ("end", "4095", "from 4096"), ("end", "5000g", "from 4096")],
    "client-shm-copies-byte-size": [
        ("conf", "4096", "inference_shared_memory copies=4096;"),
        ("end", "0", "from 4096")],
    "model-load-timeout-secs": [
        ("conf", "5", "inference_model_load timeout=5s;"),
        ("end", "-1", "0 to")],
    "response-wait-secs": [
        ("conf", "5", 'inference_response_wait "5s";'),
        ("end", "-1", "0 to 86400")],
    "stuck-secs": [("conf", "0", 'inference_stuck "0s";'),
                   ("end", "-1", "0 to 86400")],
    "control-from": [], "print-config": [], "user": [],
    "request-memory": [
        ("conf", "3g", "inference_memory 3g responses=3g"),
        ("conf", "1073741825",
         "inference_memory 1073741825 responses=1073741825"),
        ("conf", "1m", "inference_memory 1m;"),
        ("gone", "1024M", "responses="), ("gone", "512m", "responses="),
        ("end", "1023k", "a size such as 512m, from 1m"),
        ("end", "999999999999999g", "from 1m")]
}
CASES = [(name, *case) for name, cases in (OPTIONS | OURS).items()
         for case in cases]


def config(*arguments, repository=True, env=None):
    """--print-config with these options, without the machine's variables."""
    base = {name: value for name, value in launcher_env().items()
            if not name.startswith(("AIP_", "OTEL_", "SAGEMAKER_",
                                    "TRITON"))}
    return subprocess.run(
        [PROGRAM, *(["--model-repository=/tmp"] if repository else []),
         "--user=root", *arguments, "--print-config"], env=base | (env or {}),
        capture_output=True, text=True, timeout=30, check=False)


def spelled(name, value):
    if value is None or value.startswith("="):
        return [f"--{name}{value or ''}"]
    return [f"--{name}={value}"]


@pytest.mark.parametrize("name,outcome,value,text", CASES)
def test_option(name, outcome, value, text):
    done = config(*spelled(name, value) * (2 if outcome == "warn" else 1),
                  repository=name not in ("model-repository", "model-store"))
    about = [line for line in done.stderr.splitlines() if f"--{name}" in line]
    if outcome == "end":
        assert done.returncode == 1 and done.stdout == ""
        assert text in done.stderr, done.stderr
    elif outcome in ("warn", "near"):
        assert done.returncode == 0, done.stderr
        assert len(about) == 1 and text in about[0], done.stderr
    else:
        assert done.returncode == 0 and about == [], done.stderr
        assert text is None or (text in done.stdout) == (outcome == "conf"), \
            done.stdout


def test_no_option_is_missing():
    done = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 1 and done.stdout == ""
    listed = re.findall(r"^  --([a-z0-9-]+)", done.stderr, re.M)
    assert len(listed) == len(set(listed))
    assert set(listed) == set(OPTIONS) | set(OURS)
    assert len(OPTIONS) == 91           # with --help
    assert re.findall(r"\(([^()]+)\) \(\1\)", done.stderr) == []
    groups = re.findall(r"^([A-Z].*):$", done.stderr, re.M)
    assert groups == [
        "Server", "Logging", "Model Repository", "HTTP", "GRPC", "Sagemaker",
        "Vertex", "Metrics", "Tracing", "Backend", "Repository Agent",
        "Response Cache", "Rate Limiter", "Memory/Device Management",
        "DEPRECATED", "Not in tritonserver"]


@pytest.mark.parametrize("options,line", [
    (["triton,file=/tmp/a b", "level=TIMESTAMPS", "level=TENSORS", "rate=5",
      "count=7", "triton,log-frequency=3"],
     'inference_trace "file=/tmp/a b" log_frequency=3 '
     "level=timestamps,tensors rate=5 count=7;"),
    (["triton,file=/t", "level=TENSORS", "level=OFF", "level=TIMESTAMPS",
      "count=-1", "rate=1", "rate=2"],
     'inference_trace "file=/t" level=timestamps rate=2;'),
    (["mode=opentelemetry", "opentelemetry,url=localhost:1/v1/traces",
      "level=TIMESTAMPS", "rate=0", "triton,file=/t",
      "opentelemetry,resource=service.name=a b",
      "opentelemetry,resource=k=v", "opentelemetry,bsp_schedule_delay=50",
      "opentelemetry,bsp_max_queue_size=9"],
     'inference_trace "otlp=http://localhost:1/v1/traces" '
     '"resource=service.name=a b" "resource=k=v" bsp_max_queue_size=9 '
     "bsp_schedule_delay=50ms level=timestamps rate=0;")])
def test_trace_configs(options, line):
    done = config(*(f"--trace-config={o}" for o in options))
    assert done.returncode == 0, done.stderr
    assert f"    {line}\n" in done.stdout


COLLECTOR = "--trace-config=mode=opentelemetry"


@pytest.mark.parametrize("variables,more,line", [
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1/",
      "OTEL_RESOURCE_ATTRIBUTES": "a=1,service.name=x,b=2=3,",
      "OTEL_BSP_SCHEDULE_DELAY": "7", "OTEL_BSP_MAX_QUEUE_SIZE": "8",
      "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "3"}, [],
     '"otlp=http://c:1/v1/traces" "resource=a=1" "resource=b=2=3" '
     "bsp_max_queue_size=8 bsp_max_export_batch_size=3 "
     "bsp_schedule_delay=7ms"),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1",
      "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "d:2/t"}, [],
     '"otlp=http://d:2/t"'),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "", "OTEL_RESOURCE_ATTRIBUTES": ""}, [],
     '"otlp=http://localhost:4318/v1/traces"'),
    ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:1",
      "OTEL_RESOURCE_ATTRIBUTES": "a=1,ab=2", "OTEL_BSP_SCHEDULE_DELAY": "7"},
     ["url=http://e:3/t", "resource=a=4", "bsp_schedule_delay=9"],
     '"otlp=http://e:3/t" "resource=ab=2" "resource=a=4" '
     "bsp_schedule_delay=9ms"),
    ({"OTEL_BSP_SCHEDULE_DELAY": "7"}, ["bsp_schedule_delay=0"],
     '"otlp=http://localhost:4318/v1/traces" bsp_schedule_delay=1ms')])
def test_variables_of_opentelemetry(variables, more, line):
    """They count where no option does, and with a collector alone."""
    more = [f"--trace-config=opentelemetry,{m}" for m in more]
    done = config(COLLECTOR, "--trace-config=level=TIMESTAMPS", *more,
                  env=variables)
    assert done.returncode == 0, done.stderr
    assert f"    inference_trace {line} level=timestamps;\n" in done.stdout
    assert "OTEL_" not in done.stderr
    done = config("--trace-config=triton,file=/t", env=variables)
    assert '    inference_trace "file=/t" level=off;\n' in done.stdout


@pytest.mark.parametrize("name,value", [
    ("OTEL_BSP_MAX_QUEUE_SIZE", "0"), ("OTEL_BSP_SCHEDULE_DELAY", "5s"),
    ("OTEL_BSP_MAX_QUEUE_SIZE", "1000001"),
    ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "9" * 30),
    ("OTEL_RESOURCE_ATTRIBUTES", "a"), ("OTEL_RESOURCE_ATTRIBUTES", "=a"),
    ("OTEL_RESOURCE_ATTRIBUTES", "a=" + "b" * 1100),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c\n;:1")])
def test_variables_of_opentelemetry_without_effect(name, value):
    done = config(COLLECTOR, "--trace-config=level=TIMESTAMPS",
                  env={name: value})
    assert done.returncode == 0
    assert ('    inference_trace "otlp=http://localhost:4318/v1/traces" '
            "level=timestamps;\n") in done.stdout
    (line,) = [text for text in done.stderr.splitlines() if "OTEL_" in text]
    assert "no effect" in line


def test_older_trace_options():
    done = config("--trace-file=t", "--trace-level=TIMESTAMPS",
                  "--trace-rate=4", "--trace-count=-1",
                  "--trace-log-frequency=2", "--trace-config=rate=8")
    assert f'    inference_trace "file={os.getcwd()}/t" log_frequency=2 ' \
        "level=timestamps rate=8;\n" in done.stdout, done.stderr


@pytest.mark.parametrize("count", ["-1", "-2"])
def test_traces_without_a_bound(count):
    done = config("--trace-config=triton,file=/t", "--trace-config=rate=8",
                  f"--trace-config=count={count}")
    assert '    inference_trace "file=/t" level=off rate=8;\n' in done.stdout


@pytest.mark.parametrize("option,line", [
    ("--log-verbose=-1", "inference_log info verbose=0;"),
    ("--exit-timeout-secs=5abc", "drain=5s;"),
    ("--http-port=80abc", "listen 0.0.0.0:80;"),
    ("--grpc-keepalive-time=-5", "so_keepalive=1s:20s:1;"),
    ("--metrics-interval-ms=500.5", "inference_metrics interval=500ms;"),
    ("--model-load-thread-count=0", "inference_model_load threads=1;"),
    ("--model-load-retry-count=-1", "inference_model_load retries=0;"),
    ("--http-thread-count=0", "worker_processes 1;")])
def test_numbers_beyond_their_bounds(option, line):
    """Triton starts, too, and serves in a way that is as near."""
    done = config(option)
    assert done.returncode == 0
    assert f"inference-server: {option}: a number from " in done.stderr
    assert line in done.stdout


@pytest.mark.parametrize("options,line", [
    (["cuda-memory-pool-byte-size=0:64m"], "inference_memory 1g cuda=0:64;"),
    (["cuda-virtual-address-size=0:1g"],
     "inference_memory 1g cuda_virtual=0:1;"),
    (["rate-limit-resource=R:4x"], "inference_rate_limit_resource R 4 ;"),
    (["rate-limit-resource=R:4:1x"], "inference_rate_limit_resource R 4 1;"),
    (["rate-limit-resource=R:4:-1"], "inference_rate_limit_resource R 4 ;"),
    (["model-load-gpu-limit=0:0.5x"], "model-load-gpu-limit-device-0=0.5;"),
    (["min-supported-compute-capability=-1"], "min-compute-capability=0;"),
    (["trace-file=/t", "trace-rate=5x"], "level=off rate=5;"),
    (["trace-file=/t", "trace-config=rate=-1"], "level=off rate=4294967295;"),
    (["trace-file=/t", "trace-count=5x"], "level=off count=5;"),
    (["trace-file=/t", "trace-config=triton,log-frequency=-2"],
     "log_frequency=4294967294 level=off;"),
    (["trace-config=mode=opentelemetry",
      "trace-config=opentelemetry,bsp_max_queue_size=5x"],
     "bsp_max_queue_size=5 level=off;"),
    (["trace-config=mode=opentelemetry",
      "trace-config=opentelemetry,bsp_max_export_batch_size=2147483647"],
     "bsp_max_export_batch_size=1000000 level=off;"),
    (["trace-file=/t", "trace-level=true"], "level=timestamps;"),
    (["trace-file=/t", "trace-config=level=On",
      "trace-config=level=tensors"], "level=timestamps,tensors;"),
    (["trace-file=/t", "trace-config=level=On",
      "trace-config=level=false"], "level=off;")])
def test_numbers_and_levels_within_values(options, line):
    """As Triton takes them: text behind a number is left out; a queue has a
    bound of its own."""
    done = config(*[f"--{option}" for option in options])
    assert done.returncode == 0, done.stderr
    assert line in done.stdout
    taken = [text for text in done.stderr.splitlines() if "taken as" in text]
    assert len(taken) == ("level" not in options[-1]), done.stderr
    assert all(f"--{options[-1]}: taken as " in text for text in taken)


def test_an_empty_name_is_the_servers_own():
    done = config("--id=here", "--id=")
    assert "inference_server_id" not in done.stdout
    done = config("--id=", "--id", "here")
    assert 'inference_server_id "here";' in done.stdout


def test_words_end_where_getopt_ends_them():
    assert config("--id=x", "--").returncode == 1     # --print-config behind
    base = [PROGRAM, "--model-repository=/tmp", "--user=root",
            "--print-config", "--"]
    done = subprocess.run(base, capture_output=True, text=True, check=False,
                          env=launcher_env())
    assert done.returncode == 0 and "inference all;" in done.stdout
    done = subprocess.run([*base, "x"], capture_output=True, text=True,
                          check=False, env=launcher_env())
    assert done.returncode == 1
    assert 'unexpected argument "--"' in done.stderr


@pytest.mark.parametrize("address,fits", [("127.0.0.1", True),
                                          ("0.0.0.0", False)])
def test_the_range_of_ports_is_of_sagemakers_address(address, fits):
    """A service at another address may have any port, as in Triton."""
    done = config("--allow-sagemaker=true", f"--http-address={address}",
                  f"--grpc-address={address}",
                  "--sagemaker-safe-port-range=9000-9009")
    assert done.returncode == (not fits), done.stderr
    assert fits or "--http-port=8000 is not in " \
        "--sagemaker-safe-port-range=9000-9009" in done.stderr


def test_all_models_may_be_named_twice():
    done = config("--model-control-mode=explicit", "--load-model=*",
                  "--load-model=*")
    assert done.stdout.count('inference_load_model "*";') == 1, done.stderr


def test_rate_0_without_a_collector():
    done = config("--trace-config=triton,file=/t",
                  "--trace-config=level=TIMESTAMPS", "--trace-config=rate=0")
    assert done.returncode == 1
    assert "rate=0 needs mode=opentelemetry" in done.stderr


def test_clients_that_read_slowly():
    """Triton's backends wait without end, and others wait behind them."""
    assert 'inference_response_wait "1s";' in config().stdout


def test_log_format_of_the_core():
    done = config("--log-format=ISO8601")
    assert "inference_log info verbose=0 format=ISO8601;" in done.stdout


@pytest.mark.parametrize("env,options,text", [
    ({"AIP_PREDICT_ROUTE": "/p;", "AIP_HEALTH_ROUTE": "/h"},
     ["--allow-vertex-ai=1"], 'AIP_PREDICT_ROUTE is "/p;"'),
    ({"AIP_PREDICT_ROUTE": "/p"}, ["--allow-vertex-ai=1"],
     "AIP_HEALTH_ROUTE"),
    ({"AIP_PREDICT_ROUTE": "/p", "AIP_HEALTH_ROUTE": "/h"},
     ["--allow-vertex-ai=1"], "--vertex-ai-default-model"),
    ({"AIP_PREDICT_ROUTE": "/p", "AIP_HEALTH_ROUTE": "/h"},
     ["--allow-vertex-ai=1", "--model-control-mode=explicit"],
     "--vertex-ai-default-model"),
    ({"AIP_PREDICT_ROUTE": "/p", "AIP_HEALTH_ROUTE": "/h"},
     ["--allow-vertex-ai=1", "--vertex-ai-default-model=a$b"], "a$b"),
    ({"AIP_HTTP_PORT": "x", "AIP_PREDICT_ROUTE": "/p",
      "AIP_HEALTH_ROUTE": "/h"},
     ["--allow-vertex-ai=1", "--vertex-ai-default-model=m"], "AIP_HTTP_PORT"),
    ({"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": 'a"b'},
     ["--allow-sagemaker=1"], 'a"b'),
    ({"SAGEMAKER_TRITON_PING_MODE": 'live"; } evil on; {'},
     ["--allow-sagemaker=1"], "SAGEMAKER_TRITON_PING_MODE is ready or live"),
    ({"SAGEMAKER_TRITON_INFERENCE_TYPE": "guess"},
     ["--allow-sagemaker=1"], "infer, generate or generate_stream"),
    ({"AIP_STORAGE_URI": "hdfs://bucket/models"}, [], "hdfs://bucket/models"),
])
def test_wrong_environment(env, options, text):
    done = config(*options, repository="AIP_STORAGE_URI" not in env, env=env)
    assert done.returncode == 1 and text in done.stderr, done.stderr


def test_environment():
    done = config(env={"TRITON_SERVER_CPU_ONLY": "1"})
    assert "inference_metrics gpu=off;" in done.stdout
    done = config("--allow-sagemaker=1", env={
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "m",
        "SAGEMAKER_TRITON_INFERENCE_TYPE": "generate",
        "SAGEMAKER_TRITON_PING_MODE": "live"})
    assert '"/v2/models/m/generate"' in done.stdout
    assert '"/v2/health/live"' in done.stdout
    done = config("--load-model=m", "--model-control-mode=explicit", env={
        "AIP_MODE": "PREDICTION", "AIP_HTTP_PORT": "99",
        "AIP_PREDICT_ROUTE": "/p", "AIP_HEALTH_ROUTE": "/h"})
    assert "listen 0.0.0.0:99;" in done.stdout
    assert "listen 0.0.0.0:8000" not in done.stdout
    assert "http2" not in done.stdout
    done = config("--allow-http=1", "--allow-vertex-ai=0",
                  env={"AIP_MODE": "PREDICTION"})
    assert "listen 0.0.0.0:8000" in done.stdout
    assert "listen 0.0.0.0:8080" not in done.stdout


@pytest.mark.parametrize("option,values,line", [
    ("backend-config", ["x,a=1", "x,ab=2", "y,a=3", "x,a=4"], [
        "inference_backend_config x ab=2;", "inference_backend_config y a=3;",
        "inference_backend_config x a=4;"]),
    ("cache-config", ["local,size=5000", "local,a=b", "local,size=6000"],
     ["inference_response_cache local a=b size=6000;"]),
    ("host-policy", ["p,numa-node=0", "p,numa-node=1"],
     ["inference_host_policy p numa-node=1;"]),
    ("metrics-config", ["summary_latencies=true", "summary_latencies=false"],
     ["inference_metrics summaries=off;"])])
def test_the_last_value_of_a_setting_counts(option, values, line):
    done = config(*[f"--{option}={value}" for value in values])
    directive = line[0].split()[0]
    assert [text.strip() for text in done.stdout.splitlines()
            if text.strip().startswith(directive)] == line, done.stderr


def test_options_that_are_settings_of_backends():
    done = config("--min-supported-compute-capability=7.5",
                  "--model-load-gpu-limit=0:0.5", "--model-load-gpu-limit=1:1",
                  "--model-load-gpu-limit=0:0.25",
                  "--backend-config=min-compute-capability=6.0",
                  "--backend-config=model-load-gpu-limit-device-1=0.1")
    assert re.findall(r"inference_backend_config (.*);", done.stdout) == [
        "* min-compute-capability=7.5", "* model-load-gpu-limit-device-1=1",
        "* model-load-gpu-limit-device-0=0.25"]


@pytest.mark.parametrize("other", ["{0}/", "{0}/../{1}", "{0}-link"])
def test_a_repository_has_one_spelling(tmp_path, other):
    """In Triton no model of the two is unique."""
    path = tmp_path / "models"
    path.mkdir()
    (tmp_path / "models-link").symlink_to(path)
    other = other.format(path, path.name)
    done = config(f"--model-repository={path}", f"--model-store={other}",
                  repository=False)
    assert done.returncode == 1
    assert f"--model-repository={path} and --model-repository={other} are " \
        "the same directory" in done.stderr
    done = config(*[f"--model-repository={path}"] * 2, repository=False)
    assert done.stdout.count("inference_repository ") == 1, done.stderr


@pytest.mark.parametrize("named,only", [
    (["*"], "alone"), (["*", "*"], "alone"), (["m"], "m"), (["m", "m"], "m"),
    (["m", "n"], None)])
def test_the_only_model_may_be_named_twice(tmp_path, named, only):
    """Without a default model, Vertex AI's requests go to it."""
    (tmp_path / "alone").mkdir()
    done = config(f"--model-repository={tmp_path}", "--allow-vertex-ai=1",
                  "--model-control-mode=explicit",
                  *[f"--load-model={name}" for name in named],
                  repository=False,
                  env={"AIP_PREDICT_ROUTE": "/p", "AIP_HEALTH_ROUTE": "/h"})
    assert done.returncode == (only is None), done.stderr
    assert (f'"/v2/models/{only}/infer"' in done.stdout) == (only is not None)


def test_an_option_may_be_repeated_often():
    models = [f"m{i}" for i in range(500)]
    done = config("--model-control-mode=explicit",
                  *[f"--load-model={name}" for name in models])
    assert re.findall(r'inference_load_model "(.*)";', done.stdout) == models


@pytest.mark.parametrize("short,text", [
    ("--model-control=explicit", "inference_model_control explicit;"),
    ("--disable-auto", "inference_auto_complete off;"),
    ("--log-v=2", "verbose=2;"),
    ("--exit-t=9", "drain=9s;")])
def test_names_may_be_cut_short(short, text):
    """As getopt_long takes them, as long as one name alone begins so."""
    done = config(short)
    assert done.returncode == 0 and text in done.stdout, done.stderr


@pytest.mark.parametrize("service", ["http", "grpc", "metrics"])
def test_a_service_that_is_off_may_have_any_address(service):
    """As in Triton."""
    given = [f"--{service}-port=0", f"--{service}-address=a/b"]
    others = [] if service == "metrics" else ["--metrics-address=127.0.0.1"]
    done = config(*given, *others)
    assert done.returncode == 1 and f"--{service}-port" in done.stderr
    done = config(*given, *others, f"--allow-{service}=false")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert "a/b" not in done.stdout


@pytest.mark.parametrize("port", ["-1", "70000"])
def test_a_port_of_a_service_that_is_off_is_any_number(port):
    for name in ("http", "grpc", "metrics", "sagemaker", "vertex-ai"):
        off = f"--allow-{name}=false"
        done = config(off, f"--{name}-port={port}")
        assert done.returncode == 0 and done.stderr == "", done.stderr
        done = config(off, f"--{name}-port=none")
        assert done.returncode == 1
        assert f'"--{name}-port" is a number' in done.stderr


@pytest.mark.parametrize("short,text", [
    ("--log-f", '"--log-f" is ambiguous: --log-format, --log-file\n'),
    ("--model-s", None),
    ("--model", '"--model" is ambiguous: --model-repository, '
                "--model-store, ..."),
    ("--stuck", 'unknown option "--stuck"')])
def test_short_names_that_fit_several(short, text):
    """Our own options have no short ones."""
    done = config(f"{short}=/tmp")
    assert done.returncode == (text is not None)
    assert text is None or text in done.stderr, done.stderr


def test_platforms_ask_from_outside():
    done = config("--http-address=127.0.0.1", "--allow-sagemaker=1")
    assert "listen 127.0.0.1:8000;" in done.stdout
    assert "listen 0.0.0.0:8080;" in done.stdout


def test_levels_of_the_log():
    """Of the core's lines, of nginx's own, whose info has a line for each
    connection, and of the launcher's requests."""
    for options, levels in [
            ([], ["info", "notice"]), (["--log-info=0"], ["warn"] * 2),
            (["--log-info=0", "--log-warning=0"], ["error"] * 2),
            (["--log-info=0", "--log-warning=0", "--log-error=0"],
             ["crit"] * 2),
            (["--log-error=0"], ["info", "notice"]),
            (["--log-info=0", "--log-error=0"], ["warn"] * 2),
            (["--log-info=0", "--log-verbose=1"], ["info", "warn"])]:
        done = config(*options)
        found = re.findall("error_log stderr (.*);", done.stdout)
        assert found == [*levels, "crit"], options
