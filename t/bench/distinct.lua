-- distinct.lua - wrk sends a body whose last BENCH_DISTINCT bytes are another
-- number each time (0: always the same); prints its figures like post.lua.
-- BENCH_BODY: file with the body; BENCH_HEADERS: "Name: value" lines.

local file = assert(io.open(os.getenv("BENCH_BODY"), "rb"))
local body = file:read("*a")
file:close()

local digits = tonumber(os.getenv("BENCH_DISTINCT"))
local head = body:sub(1, #body - digits)
local number = os.time() * 1000000 % 10 ^ 12

wrk.method = "POST"
wrk.body = body
for name, value in string.gmatch(os.getenv("BENCH_HEADERS") or "",
                                 "([^:\n]+): ([^\n]*)") do
    wrk.headers[name] = value
end

function request()
    number = number + 1
    return wrk.format(nil, nil, nil, digits == 0 and body
        or head .. string.format("%0" .. digits .. ".0f", number))
end

function done(summary, latency, requests)
    local e = summary.errors
    io.write(string.format(
        '\n{"requests":%d,"duration_us":%d,"p50_us":%d,"p99_us":%d,'
        .. '"errors":%d}\n',
        summary.requests, summary.duration, latency:percentile(50),
        latency:percentile(99),
        e.connect + e.read + e.write + e.status + e.timeout))
end
