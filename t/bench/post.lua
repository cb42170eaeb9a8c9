-- post.lua - wrk sends one body over and over; prints its figures as JSON.
-- BENCH_BODY: file with the body; BENCH_HEADERS: "Name: value" lines.

local file = assert(io.open(os.getenv("BENCH_BODY"), "rb"))
wrk.method = "POST"
wrk.body = file:read("*a")
file:close()

for name, value in string.gmatch(os.getenv("BENCH_HEADERS") or "",
                                 "([^:\n]+): ([^\n]*)") do
    wrk.headers[name] = value
end

function done(summary, latency, requests)
    local e = summary.errors
    io.write(string.format(
        '\n{"requests":%d,"duration_us":%d,"p50_us":%d,"p99_us":%d,'
        .. '"max_us":%d,"errors":%d}\n',
        summary.requests, summary.duration, latency:percentile(50),
        latency:percentile(99), latency.max,
        e.connect + e.read + e.write + e.status + e.timeout))
end
