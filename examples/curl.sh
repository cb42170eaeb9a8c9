#!/bin/sh
# curl.sh - the API by hand:  sh examples/curl.sh [localhost:8000]

set -eu
url=http://${1:-localhost:8000}/v2

show()
{
    echo
    echo "\$ curl $*"
    curl -sS --fail-with-body "$@"
    echo
}

# is the server there, is the model ready (status 200), what does it take
show -o /dev/null -w '%{http_code}' "$url/health/ready"
show -o /dev/null -w '%{http_code}' "$url/models/digits/ready"
show "$url/models/digits"
show "$url/models/digits/config"

# numbers as JSON, both ways
show "$url/models/identity/infer" -d '{"inputs":[{"name":"INPUT0",
    "datatype":"FP32","shape":[3],"data":[1.5,2,-3]}]}'

# one sheet of white paper: the three best guesses with their labels
paper=$(printf '0,%.0s' $(seq 63))0
show "$url/models/digits/infer" -d '{"inputs":[{"name":"image",
    "datatype":"FP32","shape":[1,8,8],"data":['"$paper"']}],
    "outputs":[{"name":"scores","parameters":{"classification":3}}]}'

# raw bytes in (three float numbers), JSON header and raw bytes out
printf '\000\000\200\077\000\000\000\100\000\000\100\100' |
    curl -sS --fail-with-body "$url/models/identity/infer" \
        -H 'Inference-Header-Content-Length: 0' --data-binary @- | cat -v
echo
