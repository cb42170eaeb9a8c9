#include "trace_options.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/proto/core_options.h"
#include "die.h"
#include "number_parts.h"
#include "quoted.h"

#define COLLECTOR_PATH "/v1/traces"
#define COLLECTOR_URL  "http://localhost:4318" COLLECTOR_PATH

/* A setting of one mode, or of both. */
typedef struct {
    const char *mode;           /* "": both                                  */
    const char *name;
    bool        number;
    bool        wraps;          /* below 0: from 2^32 down, as in Triton     */
    long        min;
    long        max;            /* a number beyond it counts as that         */
} setting_t;

static const setting_t settings[] = {
    { "", "mode", false, false, 0, 0 },
    { "", "level", false, false, 0, 0 },
    { "", "rate", true, true, 0, INT_MAX },
    { "", "count", true, false, INT_MIN, INT_MAX },     /* < 0: no bound     */
    { "triton", "file", false, false, 0, 0 },
    { "triton", "log-frequency", true, true, 0, INT_MAX },
    { "opentelemetry", "url", false, false, 0, 0 },
    { "opentelemetry", "resource", false, false, 0, 0 },
    { "opentelemetry", "bsp_max_queue_size", true, false, 1, INF_BSP_MAX },
    { "opentelemetry", "bsp_schedule_delay", true, false, 0, INT_MAX },
    { "opentelemetry", "bsp_max_export_batch_size", true, false, 1,
      INF_BSP_MAX }
};

/* A setting that is in no row, which Triton takes without a word. */
static const setting_t unknown = { "", "", false, false, 0, 0 };

/* The combined settings of all options. */
typedef struct {
    bool        collector;      /* mode opentelemetry                        */
    bool        timestamps;
    bool        tensors;
    const char *file;           /* NULL: not given, like the others          */
    const char *url;
    const char *rate;
    const char *count;
    const char *frequency;
} trace_t;

static const setting_t *split(const char *name, const char *text,
    const char **value);
static const setting_t *find(const char *mode, const char *name);
static bool is(const setting_t *s, const char *name);
static const char *normal_number(const char *name, const setting_t *s,
    const char *value);
static bool is_number(const setting_t *s, const char *value);
static void collect(const options_t *o, trace_t *t);
static bool is_off(const char *level);
static void add_level(trace_t *t, const char *level);
static const char *last_of(const options_t *o, const char *name);
static bool is_given(const options_t *o, const trace_t *t);
static void warn_without_effect(const options_t *o, const trace_t *t);
static void write_number(FILE *f, const char *name, const char *value);
static void write_collector(FILE *f, const options_t *o, const trace_t *t);
static void write_url(FILE *f, const trace_t *t);
static void write_resources(FILE *f, const options_t *o);
static bool is_resource(const options_t *o, const char *key, size_t len);
static const char *number_of(const options_t *o, const char *name,
    const char *variable);
static const char *environment(const char *name);

/* Checks "[mode,]setting=value". */
const char *
normal_trace_config(const char *name, const char *text)
{
    const char      *value;
    const setting_t *s = split(name, text, &value);

    if (is(s, "level")) {
        check_trace_level(name, value);
    } else if (is(s, "mode")) {
        if (strcasecmp(value, "triton") != 0
            && strcasecmp(value, "opentelemetry") != 0)
        {
            die("--%s: mode is triton or opentelemetry, not \"%s\"", name,
                value);
        }
    } else if (is(s, "resource")) {
        if (strchr(value, '=') == NULL || value[0] == '=') {
            die("--%s: resource is KEY=VALUE, not \"%s\"", name, value);
        }
    } else if (s->number) {
        return number_text("%.*s%s", (int) (value - text), text,
                           normal_number(name, s, value));
    }
    return text;
}

void
check_trace_level(const char *name, const char *level)
{
    static const char *const others[] = {
        "TIMESTAMPS", "TENSORS", "MIN", "MAX", "TRUE", "ON"
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strcasecmp(level, others[i]) == 0) {
            return;
        }
    }
    if (!is_off(level)) {
        die("--%s: the level is OFF, TIMESTAMPS or TENSORS, not \"%s\"",
            name, level);
    }
}

static bool
is_off(const char *level)
{
    return strcasecmp(level, "OFF") == 0 || strcasecmp(level, "FALSE") == 0;
}

const char *
normal_trace_rate(const char *name, const char *value)
{
    return normal_number(name, find("", "rate"), value);
}

const char *
normal_trace_count(const char *name, const char *value)
{
    return normal_number(name, find("", "count"), value);
}

const char *
normal_trace_frequency(const char *name, const char *value)
{
    return normal_number(name, find("triton", "log-frequency"), value);
}

void
trace_options_check(const options_t *o)
{
    trace_t t;

    collect(o, &t);
    warn_without_effect(o, &t);
    if (!t.collector && t.file != NULL && (t.timestamps || t.tensors)
        && t.rate != NULL && strtol(t.rate, NULL, 10) == 0)
    {
        die("--trace-config: rate=0 needs mode=opentelemetry");
    }
}

void
trace_options_write(FILE *f, const options_t *o)
{
    trace_t t;

    collect(o, &t);
    if (!is_given(o, &t)) {
        return;
    }

    fputs("    inference_trace ", f);
    if (t.collector) {
        write_collector(f, o, &t);
    } else {
        write_path_after(f, "file=", t.file);
        write_number(f, "log_frequency", t.frequency);
    }
    fprintf(f, " level=%s%s%s", t.timestamps ? "timestamps" : "",
            t.timestamps && t.tensors ? "," : "", t.tensors ? "tensors"
            : t.timestamps ? "" : "off");
    write_number(f, "rate", t.rate);
    if (t.count != NULL && strtol(t.count, NULL, 10) >= 0) {
        write_number(f, "count", t.count);
    }
    fputs(";\n", f);
}

/* The setting named by text, and its value. */
static const setting_t *
split(const char *name, const char *text, const char **value)
{
    const char *equals = strchr(text, '=');
    const char *comma = strchr(text, ',');
    const char *key = comma != NULL && comma < equals ? comma + 1 : text;
    size_t      mode = key > text ? (size_t) (comma - text) : 0;

    if (equals == NULL || equals == key || equals[1] == '\0' || comma == text
        || (mode != 0 && strncasecmp(text, "triton,", mode + 1) != 0
            && strncasecmp(text, "opentelemetry,", mode + 1) != 0))
    {
        die("--%s is [triton,|opentelemetry,]setting=value, not \"%s\"", name,
            text);
    }

    *value = equals + 1;

    char key_text[64], mode_text[16];

    snprintf(key_text, sizeof(key_text), "%.*s", (int) (equals - key), key);
    snprintf(mode_text, sizeof(mode_text), "%.*s", (int) mode, text);

    const setting_t *s = find(mode_text, key_text);

    return s != NULL ? s : &unknown;
}

/* NULL: none. */
static const setting_t *
find(const char *mode, const char *name)
{
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        if (strcasecmp(settings[i].mode, mode) == 0
            && strcmp(settings[i].name, name) == 0)
        {
            return &settings[i];
        }
    }
    return NULL;
}

static bool
is(const setting_t *s, const char *name)
{
    return strcmp(s->name, name) == 0;
}

static const char *
normal_number(const char *name, const setting_t *s, const char *value)
{
    long n;

    if (!number_read(value, s->wraps ? INT_MIN : s->min, INT_MAX, &n)) {
        die("--%s: %s is a number from %ld to %ld, not \"%s\"", name,
            s->name, s->min, s->max, value);
    }
    n = n > s->max ? s->max : n;
    return n < 0 && s->wraps ? number_text("%u", (unsigned) n)
                             : number_text("%ld", n);
}

static bool
is_number(const setting_t *s, const char *value)
{
    char *end;
    long  n = strtol(value, &end, 10);

    return *end == '\0' && strpbrk(value, "+ ") == NULL && n >= s->min
        && n <= s->max;
}

/* Collects the settings, deprecated options first: the last value of a setting
   counts. */
static void
collect(const options_t *o, trace_t *t)
{
    *t = (trace_t) {
        .file = o->trace_file,
        .rate = o->trace_rate,
        .count = o->trace_count,
        .frequency = o->trace_log_frequency
    };
    for (size_t i = 0; i < o->trace_levels.n; i++) {
        add_level(t, o->trace_levels.value[i]);
    }

    for (size_t i = 0; i < o->trace_configs.n; i++) {
        const char      *value;
        const setting_t *s = split("trace-config", o->trace_configs.value[i],
            &value);

        if (is(s, "level")) {
            add_level(t, value);
        } else if (is(s, "mode")) {
            t->collector = strcasecmp(value, "opentelemetry") == 0;
        } else if (is(s, "rate")) {
            t->rate = value;
        } else if (is(s, "count")) {
            t->count = value;
        } else if (is(s, "file")) {
            t->file = value;
        } else if (is(s, "log-frequency")) {
            t->frequency = value;
        } else if (is(s, "url")) {
            t->url = value;
        }
    }
}

/* Adds a level; OFF removes the earlier ones. */
static void
add_level(trace_t *t, const char *level)
{
    if (is_off(level)) {
        t->timestamps = false;
        t->tensors = false;
    } else if (strcasecmp(level, "TENSORS") == 0) {
        t->tensors = true;
    } else {
        t->timestamps = true;
    }
}

/* The last value; NULL: not given. */
static const char *
last_of(const options_t *o, const char *name)
{
    const char *last = NULL;

    for (size_t i = 0; i < o->trace_configs.n; i++) {
        const char      *value;
        const setting_t *s = split("trace-config", o->trace_configs.value[i],
            &value);

        if (is(s, name)) {
            last = value;
        }
    }
    return last;
}

/* Warns of unknown settings, of settings of the other mode, and, without a
   destination of traces, of all except "off": then requests cannot turn traces
   on either. */
static void
warn_without_effect(const options_t *o, const trace_t *t)
{
    const char *mode = t->collector ? "opentelemetry" : "triton";

    for (size_t i = 0; i < o->trace_configs.n; i++) {
        const char      *text = o->trace_configs.value[i];
        const char      *value;
        const setting_t *s = split("trace-config", text, &value);

        if (options_given_before(&o->trace_configs, i)) {
            continue;
        }
        if (s == &unknown) {
            fprintf(stderr, "inference-server: --trace-config=%s has no "
                    "effect: there is no setting of that name and mode\n",
                    text);
        } else if (s->mode[0] != '\0' && strcmp(s->mode, mode) != 0) {
            fprintf(stderr, "inference-server: --trace-config=%s has no "
                    "effect: the mode is %s\n", text, mode);
        } else if (!is_given(o, t) && !is(s, "mode")
                   && !(is(s, "level") && is_off(value)))
        {
            fprintf(stderr, "inference-server: --trace-config=%s has no "
                    "effect: traces go nowhere without triton,file=PATH or "
                    "mode=opentelemetry\n", text);
        }
    }
    if (!is_given(o, t) && (o->trace_rate != NULL || o->trace_count != NULL
                            || o->trace_log_frequency != NULL
                            || (o->trace_levels.n > 0
                                && (t->timestamps || t->tensors))))
    {
        fputs("inference-server: the options for traces have no effect: they "
              "go nowhere without --trace-config=triton,file=PATH or "
              "mode=opentelemetry\n", stderr);
    }
}

/* Whether there is a destination for traces, now or for requests that turn them
   on. */
static bool
is_given(const options_t *o, const trace_t *t)
{
    return t->collector ? last_of(o, "mode") != NULL : t->file != NULL;
}

static void
write_number(FILE *f, const char *name, const char *value)
{
    if (value != NULL) {
        fprintf(f, " %s=%s", name, value);
    }
}

/* OpenTelemetry's environment variables count where no option does. */
static void
write_collector(FILE *f, const options_t *o, const trace_t *t)
{
    const char *delay = number_of(o, "bsp_schedule_delay",
        "OTEL_BSP_SCHEDULE_DELAY");

    write_url(f, t);
    write_resources(f, o);
    write_number(f, "bsp_max_queue_size", number_of(o, "bsp_max_queue_size",
        "OTEL_BSP_MAX_QUEUE_SIZE"));
    write_number(f, "bsp_max_export_batch_size", number_of(o,
        "bsp_max_export_batch_size", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"));
    if (delay != NULL) {                    /* 1 ms: as soon as it may be */
        fprintf(f, " bsp_schedule_delay=%sms",
                strtol(delay, NULL, 10) == 0 ? "1" : delay);
    }
}

static void
write_url(FILE *f, const trace_t *t)
{
    const char *url = t->url != NULL ? t->url
        : environment("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    const char *base = environment("OTEL_EXPORTER_OTLP_ENDPOINT");
    char        joined[2048];

    if (url == NULL && base != NULL) {
        size_t len = strlen(base);
        int    n = snprintf(joined, sizeof(joined), "%.*s" COLLECTOR_PATH,
            (int) (base[len - 1] == '/' ? len - 1 : len), base);
        if (n < 0 || (size_t) n >= sizeof(joined)) {
            die("OTEL_EXPORTER_OTLP_ENDPOINT is longer than 2 KiB");
        }
        url = joined;
    }
    if (url == NULL) {
        url = COLLECTOR_URL;
    }
    write_word_after(f, strstr(url, "://") != NULL ? "otlp=" : "otlp=http://",
                     url);
}

/* Those of OTEL_RESOURCE_ATTRIBUTES ("key=value,key=value") without the name of
   the service, which is the server's or an option's, then the options'. */
static void
write_resources(FILE *f, const options_t *o)
{
    const char *next = environment("OTEL_RESOURCE_ATTRIBUTES");

    while (next != NULL && *next != '\0') {
        char        text[1024];
        size_t      len = strcspn(next, ",");
        const char *equals = memchr(next, '=', len);

        snprintf(text, sizeof(text), "%.*s", (int) len, next);
        if (equals == NULL || equals == next || len >= sizeof(text)) {
            fprintf(stderr, "inference-server: \"%s\" in "
                    "OTEL_RESOURCE_ATTRIBUTES has no effect: it is not "
                    "key=value of at most 1 KiB\n", text);
        } else if (!is_resource(o, next, (size_t) (equals - next))) {
            fputc(' ', f);
            write_word_after(f, "resource=", text);
        }
        next += len + (next[len] == ',');
    }

    for (size_t i = 0; i < o->trace_configs.n; i++) {
        const char      *value;
        const setting_t *s = split("trace-config", o->trace_configs.value[i],
            &value);

        if (is(s, "resource")) {
            fputc(' ', f);
            write_word_after(f, "resource=", value);
        }
    }
}

/* Whether the server or an option gives the attribute key. */
static bool
is_resource(const options_t *o, const char *key, size_t len)
{
    const char name[] = "service.name";

    if (len == sizeof(name) - 1 && memcmp(key, name, len) == 0) {
        return true;
    }
    for (size_t i = 0; i < o->trace_configs.n; i++) {
        const char      *value;
        const setting_t *s = split("trace-config", o->trace_configs.value[i],
            &value);

        if (is(s, "resource") && strncmp(value, key, len) == 0
            && value[len] == '=')
        {
            return true;
        }
    }
    return false;
}

/* Of the last option, or of the variable where that is valid. */
static const char *
number_of(const options_t *o, const char *name, const char *variable)
{
    const setting_t *s = find("opentelemetry", name);
    const char      *value = last_of(o, name);

    if (value != NULL) {
        return value;
    }
    value = environment(variable);
    if (value == NULL || is_number(s, value)) {
        return value;
    }
    fprintf(stderr, "inference-server: %s=%s has no effect: it is not a number "
            "from %ld to %ld\n", variable, value, s->min, s->max);
    return NULL;
}

/* NULL where it is not set, empty, or has control characters. */
static const char *
environment(const char *name)
{
    const char *value = getenv(name);

    if (value == NULL || value[0] == '\0') {
        return NULL;
    }
    for (const char *c = value; *c != '\0'; c++) {
        if ((unsigned char) *c < ' ' || *c == 0x7f) {
            fprintf(stderr, "inference-server: %s has no effect: it has "
                    "control characters\n", name);
            return NULL;
        }
    }
    return value;
}
