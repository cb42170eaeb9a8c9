#!/bin/sh
# run.sh - from a bare Debian to an answered request: installs what is
# missing, builds, serves examples/models on port 8000 (INF_PORT) and asks the
# model what a handwritten digit is.  The server is left running; its files are
# in build/run (INF_RUN).
#
#   sh examples/run.sh          start and ask
#   sh examples/run.sh stop     stop the server

set -eu

cd "$(dirname "$0")/.."
root=$(pwd)
port=${INF_PORT:-8000}
run=${INF_RUN:-$root/build/run}
PATH=$PATH:/usr/sbin:/sbin

main()
{
    if [ "${1:-}" = stop ]; then
        stop_server
        exit 0
    fi

    began=$(date +%s)
    sh t/setup.sh examples
    sh tools/build.sh build
    stop_server
    write_config
    nginx -p "$run" -c "$run/nginx.conf" -e "$run/error.log"
    wait_ready
    build/venv/bin/python examples/digits/send.py --url "127.0.0.1:$port"
    first=$(($(date +%s) - began))
    send_picture
    cat <<END

The first answer came after $first s.

The server goes on at http://127.0.0.1:$port/v2 (log: ${run#"$root/"}/error.log).
Stop it with: sh examples/run.sh stop
END
}

# A PNG file goes in, a word comes out: the ensemble read_digit.  Its answer is
# JSON with the bytes of the word behind it, which four bytes precede: its
# length.
send_picture()
{
    cat <<END

A PNG file of another one, to the model read_digit:

curl -s 127.0.0.1:$port/v2/models/read_digit/infer -H 'Inference-Header-Content-Length: 0' \\
    --data-binary @examples/digits/seven.png | tr -cd '[:print:]'

END
    curl -sf "127.0.0.1:$port/v2/models/read_digit/infer" \
        -H 'Inference-Header-Content-Length: 0' \
        --data-binary @examples/digits/seven.png | tr -cd '[:print:]'
    echo
}

stop_server()
{
    pid=$(cat "$run/nginx.pid" 2>/dev/null || true)
    # the file may be older than the machine's last start
    if [ -z "$pid" ] || ! grep -qs "$run/nginx.conf" "/proc/$pid/cmdline" \
        || ! kill -QUIT "$pid" 2>/dev/null; then
        return 0
    fi
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.1
    done
}

write_config()
{
    user=
    [ "$(id -u)" != 0 ] || user="user root;"

    mkdir -p "$run/temp"
    : > "$run/error.log"
    cat > "$run/nginx.conf" <<END
# written by examples/run.sh
load_module $root/build/ngx_http_inference_module.so;
$user
pid $run/nginx.pid;
error_log $run/error.log info;
events { worker_connections 1024; }
http {
    access_log $run/access.log;
    client_body_temp_path $run/temp/body;
    proxy_temp_path $run/temp/proxy;
    fastcgi_temp_path $run/temp/fastcgi;
    uwsgi_temp_path $run/temp/uwsgi;
    scgi_temp_path $run/temp/scgi;

    inference_core       $root/build/inference-core;
    inference_repository $root/examples/models;
    inference_backends   $root/build/backends;

    server {
        listen $port;
        location / { inference all; }
    }
}
END
}

wait_ready()
{
    tries=0
    until curl -sf -o /dev/null "http://127.0.0.1:$port/v2/health/ready"; do
        tries=$((tries + 1))
        if [ $tries -ge 300 ]; then
            echo "run.sh: the server is not ready after 30 s:" >&2
            tail -20 "$run/error.log" >&2
            exit 1
        fi
        sleep 0.1
    done
}

main "$@"
