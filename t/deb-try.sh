#!/bin/sh
# deb-try.sh - the trial of installed packages (deb.sh), as root of a clean
# Debian with a network of its own.

set -eu

examples=/usr/share/nginx-inference/examples

say()
{
    echo "deb-try: $*"
}

fail()
{
    say "FAILED: $*" >&2
    tail -30 /var/log/nginx/error.log >&2 || true
    exit 1
}

wait_until()
{
    tries=0
    until "$@" > /dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fail "$*"
        sleep 0.1
    done
}

stop()
{
    pid=$(cat /run/nginx.pid)
    kill -QUIT "$pid"
    wait_until sh -c "! kill -0 $pid"
}

say "$(nginx -v 2>&1), $(dpkg-query -W -f '${Version}' nginx-inference-core)"

# ---- what the packages have set up

[ "$(readlink -e /etc/nginx/modules-enabled/50-mod-http-inference.conf)" \
    = /usr/share/nginx/modules-available/mod-http-inference.conf ] \
    || fail "no link in modules-enabled"
id inference > /dev/null || fail "no user inference"
logrotate -d /etc/logrotate.d/nginx-inference-core 2>&1 | grep -q '^error' \
    && fail "logrotate rejects its file"
command -v systemd-analyze > /dev/null || fail "no systemd-analyze"
systemd-analyze verify --man=no inference-core.service nginx.service 2>&1 \
    | grep -E 'inference' && fail "systemd rejects a unit"

# ---- five lines, and the examples answer

# the models of the backends that are installed
models=$examples/models
if [ ! -d /usr/lib/nginx-inference/backends/onnxruntime ]; then
    models=/srv/models
    mkdir -p $models
    cp -R $examples/models/identity $models/
fi
cat > /etc/nginx/conf.d/inference.conf <<END
inference_repository $models;
include /usr/share/nginx-inference/conf.d/triton.conf;
END
nginx -t -q || fail "nginx -t"
nginx
wait_until curl -sf 127.0.0.1:8000/v2/health/ready

answer=$(curl -sf 127.0.0.1:8000/v2/models/identity/infer -d '{"inputs": [{
    "name": "INPUT0", "datatype": "FP32", "shape": [2], "data": [3, 4]}]}') \
    || fail "identity: $answer"
case $answer in
*'"data":[3.0,4.0]'*|*'"data":[3,4]'*) say "identity answers" ;;
*) fail "identity: $answer" ;;
esac
if [ $models = $examples/models ]; then
    python3 $examples/digits/send.py --digit 7 --url 127.0.0.1:8000 \
        | grep -q seven || fail "digits does not know a seven"
    say "digits answers"
fi

# ---- packages that are installed again do not end the core

core=$(pgrep -f 'inference-core --supervised')
apt-get -qq install -y --reinstall --no-install-recommends /debs/*.deb \
    > /tmp/reinstall.log 2>&1 || { cat /tmp/reinstall.log; fail reinstall; }
nginx -s reload
wait_until curl -sf 127.0.0.1:8000/v2/health/ready
kill -0 "$core" || fail "the core has ended"

# ---- and removed ones leave an nginx that works

stop
rm /etc/nginx/conf.d/inference.conf
apt-get -qq purge -y libnginx-mod-http-inference nginx-inference-core \
    > /dev/null 2>&1 || fail purge
nginx -t -q || fail "nginx -t after the purge"
for left in /etc/nginx/modules-enabled/*inference* /etc/logrotate.d/*inference* \
    /usr/lib/nginx-inference; do
    [ ! -e "$left" ] && [ ! -L "$left" ] || fail "$left is left"
done
say "removed"
