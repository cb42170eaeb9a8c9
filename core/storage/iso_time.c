#include "core/storage/iso_time.h"

#include <string.h>
#include <time.h>

int64_t
inf_iso_time_parse(const char *text)
{
    struct tm tm = { 0 };
    int64_t fraction_ns = 0;
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

    if (end == NULL) {
        return -1;
    }
    if (*end == '.') {
        end++;
        for (int64_t unit = 100000000; *end >= '0' && *end <= '9'; end++) {
            fraction_ns += (*end - '0') * unit;
            unit /= 10;
        }
    }
    if (strcmp(end, "Z") != 0) {
        return -1;
    }

    time_t seconds = timegm(&tm);
    return seconds < 0 || seconds >= INT64_MAX / 1000000000 ? -1
        : (int64_t) seconds * 1000000000 + fraction_ns;
}
