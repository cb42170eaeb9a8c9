"""examples/rate-limited: the configuration runs, and both models answer."""

import concurrent.futures
import subprocess
import sys

from lib.server import BACKENDS, CORE, MODULE, ROOT, Server

EXAMPLE = ROOT / "examples/rate-limited"


def config():
    """The example's file, with this machine's paths and port."""
    text = (EXAMPLE / "nginx.conf").read_text()
    text = text.replace("{", "{{").replace("}", "}}")
    for old, new in [
            ("/usr/lib/nginx-inference/inference-core", f"{CORE} dump=on"),
            ("/usr/lib/nginx-inference/ngx_http_inference_module.so", MODULE),
            ("/usr/lib/nginx-inference/backends", BACKENDS),
            ("/srv/models", "{models}"),
            ("/run/nginx-inference", "{prefix}"),
            ("/var/log/nginx-inference", "{prefix}"),
            ("listen 8000", "listen 127.0.0.1:{port}"),
            ("events {{ }}", "events {{ }}\ndaemon off;\nuser root;"),
            ("inference_core ", "access_log off;\n"
             "    client_body_temp_path {prefix}/temp/body;\n"
             "{environment}    inference_core ")]:
        assert text.count(old) == 1, old
        text = text.replace(old, str(new))
    return text


def test_the_example_runs():
    with Server(str(EXAMPLE / "models"), config=config()) as server:
        def send(number):
            model = "reader" if number % 3 else "archive"
            return subprocess.run(
                [sys.executable, ROOT / "examples/digits/send.py", "--url",
                 server.url, "--model", model, "--digit", str(number % 9)],
                capture_output=True, text=True)

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            for done in pool.map(send, range(18)):
                assert done.returncode == 0, done.stdout + done.stderr
        for model, count in [("reader", 12), ("archive", 6)]:
            stats = server.get(f"/v2/models/{model}/stats").json()
            assert stats["model_stats"][0]["inference_count"] == count
            group, = server.get(f"/v2/models/{model}/config").json()[
                "instance_group"]
            assert group["rate_limiter"]["resources"][0]["name"] == "turn"
