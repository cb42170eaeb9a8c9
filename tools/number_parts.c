#include "number_parts.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"

#define GPU_MAX 999999
#define SIZE_MAX_BYTES 999999999999999999   /* 18 digits                     */

static long gpu_of(const char *name, const char *text);
static void die_resource(const char *name, const char *text)
    __attribute__((noreturn));

/* "gpu:bytes" */
const char *
normal_gpu_bytes(const char *name, const char *text)
{
    long gpu = gpu_of(name, text);
    long bytes;

    if (!number_read(strchr(text, ':') + 1, 0, SIZE_MAX_BYTES, &bytes)) {
        die("--%s is gpu:bytes, not \"%s\"", name, text);
    }
    return number_text("%ld:%ld", gpu, bytes);
}

/* "gpu:fraction" */
const char *
normal_gpu_limit(const char *name, const char *text)
{
    if (text[0] == '-') {
        die("--%s expects device ID >= 0, got %.*s", name,
            (int) strcspn(text, ":"), text);
    }

    long        gpu = gpu_of(name, text);
    const char *fraction = strchr(text, ':') + 1;
    char       *end;
    double      value = strtod(fraction, &end);

    if (end == fraction || !(value >= 0.0 && value <= 1.0)) {
        die("--%s expects limit fraction to be in range [0.0, 1.0], got %s",
            name, fraction);
    }
    return number_text("%ld:%.*s", gpu, (int) (end - fraction), fraction);
}

/* The number before the colon. */
static long
gpu_of(const char *name, const char *text)
{
    long gpu;

    if (strchr(text, ':') == NULL || !number_read(text, 0, GPU_MAX, &gpu)) {
        die("--%s begins with a GPU's number and a colon, not \"%s\"", name,
            text);
    }
    return gpu;
}

/* "name:count" or "name:count:device"; device -1 is each one. */
const char *
normal_rate_resource(const char *name, const char *text)
{
    int  len = (int) strcspn(text, ":");
    long count, device = -1;

    if (len == 0 || text[len] == '\0'
        || !number_read(text + len + 1, 0, INT_MAX, &count))
    {
        die_resource(name, text);
    }

    const char *colon = strchr(text + len + 1, ':');

    if (colon != NULL && (strchr(colon + 1, ':') != NULL
                          || !number_read(colon + 1, -1, INT_MAX, &device)))
    {
        die_resource(name, text);
    }
    return device < 0 ? number_text("%.*s:%ld", len, text, count)
                      : number_text("%.*s:%ld:%ld", len, text, count, device);
}

static void
die_resource(const char *name, const char *text)
{
    die("--%s=%s: --%s option format is '<resource_name>:<count>:<device>' or "
        "'<resource_name>:<count>'", name, text, name);
}

/* Below 0 every GPU is used, as with 0. */
const char *
normal_capability(const char *name, const char *text)
{
    char  *end;
    double value = strtod(text, &end);

    if (end == text || !(value <= 1000.0)) {
        die("--%s is a number such as 7.5, not \"%s\"", name, text);
    }
    return value < 0.0 ? "0" : number_text("%.*s", (int) (end - text), text);
}

/* "first-last" */
const char *
normal_port_range(const char *name, const char *text)
{
    const char *dash = strchr(text, '-');
    long        first, last;

    if (dash == NULL || !number_read(text, 0, INT_MAX, &first)
        || !number_read(dash + 1, first, INT_MAX, &last))
    {
        die("--%s is first-last, not \"%s\"", name, text);
    }
    return number_text("%ld-%ld", first, last);
}

bool
number_read(const char *text, long min, long max, long *out)
{
    char *end;

    errno = 0;
    *out = strtol(text, &end, 10);
    return end != text && errno == 0 && *out >= min && *out <= max;
}

long
size_read(const char *text)
{
    static const char units[] = "kmg";
    char             *end;

    errno = 0;

    long        size = strtol(text, &end, 10);
    const char *unit = *end == '\0' ? NULL
        : strchr(units, tolower((unsigned char) *end));
    int         shift = unit == NULL ? 0 : 10 * (int) (unit - units + 1);

    end += unit != NULL;
    return !isdigit((unsigned char) text[0]) || *end != '\0' || errno != 0
        || size > LONG_MAX >> shift ? -1 : size << shift;
}

const char *
number_text(const char *format, ...)
{
    va_list args;
    char   *text;

    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0) {
        die("out of memory");
    }
    return text;
}

const char *
after_gpu(const char *value, long *gpu)
{
    char *colon;

    *gpu = strtol(value, &colon, 10);
    return colon + 1;
}

bool
later_for_gpu(const list_t *list, size_t at)
{
    long gpu, other;

    after_gpu(list->value[at], &gpu);
    for (size_t i = at + 1; i < list->n; i++) {
        after_gpu(list->value[i], &other);
        if (other == gpu) {
            return true;
        }
    }
    return false;
}
