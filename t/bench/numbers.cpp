/*
 * numbers.cpp - floats of JSON read and printed: core/proto/number.h beside
 *               double-conversion, fast_float and the C++ library, in one run.
 *
 * Every one of them has to read the same values and to print texts that read
 * back as the same value, before any is timed.  C++ because the others have no
 * C API.
 */

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <double-conversion/double-conversion.h>
#include <fast_float/fast_float.h>

extern "C" {
#include "core/proto/number.h"
}

namespace {

using double_conversion::DoubleToStringConverter;
using double_conversion::StringToDoubleConverter;

constexpr int COUNT = 4096;
constexpr int ROUNDS = 41;
constexpr int TURNS = 50;               /* of all values in a round */

struct reader {
    const char *name;
    size_t (*read)(const char *p, const char *end, float *out);
    std::vector<double> ns;
};

struct writer {
    const char *name;
    size_t (*write)(char *dst, float v);
    std::vector<double> ns;
};

size_t
read_ours(const char *p, const char *end, float *out)
{
    inf_number_t n;
    size_t len = inf_number_read(p, end, &n);

    *out = len != 0 ? inf_number_float(&n) : 0;
    return len;
}

size_t
read_fast_float(const char *p, const char *end, float *out)
{
    auto r = fast_float::from_chars(p, end, *out);
    return r.ec == std::errc() ? static_cast<size_t>(r.ptr - p) : 0;
}

size_t
read_library(const char *p, const char *end, float *out)
{
    auto r = std::from_chars(p, end, *out);
    return r.ec == std::errc() ? static_cast<size_t>(r.ptr - p) : 0;
}

size_t
read_double_conversion(const char *p, const char *end, float *out)
{
    static const StringToDoubleConverter converter(
        StringToDoubleConverter::ALLOW_TRAILING_JUNK, 0, 0, nullptr, nullptr);
    int len = 0;

    *out = converter.StringToFloat(p, static_cast<int>(end - p), &len);
    return static_cast<size_t>(len);
}

size_t
write_library(char *dst, float v)
{
    return static_cast<size_t>(
        std::to_chars(dst, dst + INF_NUMBER_MAX_TEXT, v).ptr - dst);
}

size_t
write_double_conversion(char *dst, float v)
{
    double_conversion::StringBuilder text(dst, INF_NUMBER_MAX_TEXT);

    DoubleToStringConverter::EcmaScriptConverter().ToShortestSingle(v, &text);
    size_t len = static_cast<size_t>(text.position());
    text.Finalize();
    return len;
}

double
now_ns()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e9
           + static_cast<double>(t.tv_nsec);
}

void
die(const char *name, const char *what, const std::string &text)
{
    fprintf(stderr, "numbers: %s %s \"%s\"\n", name, what, text.c_str());
    exit(1);
}

double
median(std::vector<double> v)
{
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

/* One array as it stands in a request. */
struct sample {
    const char *name;
    std::vector<float> values;
    std::string text;
    std::vector<size_t> at;
};

sample
make_sample(const char *name, const char *format)
{
    sample s{name, {}, {}, {}};
    uint64_t random = 88172645463325252u;

    for (int i = 0; i < COUNT; i++) {
        double sum = 0;
        for (int k = 0; k < 12; k++) {          /* close to a normal one */
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            sum += static_cast<double>(random >> 11) * 0x1p-53;
        }

        char text[64];
        snprintf(text, sizeof text, format, sum - 6);
        s.at.push_back(s.text.size());
        s.values.push_back(strtof(text, nullptr));
        s.text += text;
        s.text += ',';
    }
    return s;
}

void
check(const sample &s, const reader &r)
{
    for (int i = 0; i < COUNT; i++) {
        const char *p = s.text.data() + s.at[i];
        float v;
        size_t len = r.read(p, s.text.data() + s.text.size(), &v);
        if (p[len] != ',' || v != s.values[i]) {
            die(r.name, "misreads", std::string(p, 16));
        }
    }
}

void
check(const sample &s, const writer &w)
{
    for (float v : s.values) {
        char text[INF_NUMBER_MAX_TEXT + 1];
        text[w.write(text, v)] = '\0';
        if (strtof(text, nullptr) != v) {
            die(w.name, "misprints", text);
        }
    }
}

double
time_reader(const sample &s, const reader &r)
{
    const char *end = s.text.data() + s.text.size();
    float sum = 0;
    double begin = now_ns();

    for (int turn = 0; turn < TURNS; turn++) {
        for (const char *p = s.text.data(); p != end; p++) {
            float v;
            p += r.read(p, end, &v);
            sum += v;
        }
    }

    double ns = (now_ns() - begin) / (TURNS * COUNT);
    volatile float sink = sum;
    (void) sink;
    return ns;
}

double
time_writer(const sample &s, const writer &w)
{
    static char out[COUNT * (INF_NUMBER_MAX_TEXT + 1)];
    double begin = now_ns();

    for (int turn = 0; turn < TURNS; turn++) {
        char *p = out;
        for (float v : s.values) {
            p += w.write(p, v);
            *p++ = ',';
        }
        volatile char sink = *out;
        (void) sink;
    }
    return (now_ns() - begin) / (TURNS * COUNT);
}

template <typename T>
void
report(const char *what, const sample &s, const std::vector<T> &all)
{
    for (const T &t : all) {
        printf("%-6s %-14s %-18s %6.1f ns %6.2f\n", what, s.name, t.name,
               median(t.ns), median(t.ns) / median(all.front().ns));
    }
}

}   // namespace

int
main()
{
    printf("%-6s %-14s %-18s %9s %6s\n", "", "floats", "by", "each",
           "ours=1");

    for (const sample &s : {make_sample("6 decimals", "%.6f"),
                            make_sample("9 digits", "%.9g"),
                            make_sample("17 digits", "%.17g")})
    {
        std::vector<reader> readers{
            {"ours", read_ours, {}}, {"fast_float", read_fast_float, {}},
            {"std::from_chars", read_library, {}},
            {"double-conversion", read_double_conversion, {}}};
        std::vector<writer> writers{
            {"ours", inf_number_write_float, {}},
            {"std::to_chars", write_library, {}},
            {"double-conversion", write_double_conversion, {}}};

        for (const reader &r : readers) {
            check(s, r);
        }
        for (const writer &w : writers) {
            check(s, w);
        }
        for (int round = 0; round < ROUNDS; round++) {
            for (reader &r : readers) {
                r.ns.push_back(time_reader(s, r));
            }
            for (writer &w : writers) {
                w.ns.push_back(time_writer(s, w));
            }
        }
        report("read", s, readers);
        report("print", s, writers);
    }
    return 0;
}
