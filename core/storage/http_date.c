#include "core/storage/http_date.h"

#include <stdio.h>
#include <string.h>

#define NS_PER_SECOND 1000000000

static const char days[7][4] = {
    "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"
};
static const char months[12][4] = {
    "Jan", "Feb", "Mar", "Apr", "May", "Jun",
    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"
};

void
inf_http_date_format(time_t seconds, char out[INF_HTTP_DATE_BYTES])
{
    char text[64];
    struct tm tm;

    gmtime_r(&seconds, &tm);
    snprintf(text, sizeof(text), "%s, %02d %s %04d %02d:%02d:%02d GMT",
        days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900,
        tm.tm_hour, tm.tm_min, tm.tm_sec);
    snprintf(out, INF_HTTP_DATE_BYTES, "%.*s", (int) INF_HTTP_DATE_BYTES - 1,
        text);
}

int64_t
inf_http_date_parse(const char *text)
{
    char again[INF_HTTP_DATE_BYTES];
    char month[4];
    struct tm tm = { 0 };

    if (sscanf(text, "%*3s, %2d %3s %4d %2d:%2d:%2d GMT", &tm.tm_mday, month,
        &tm.tm_year, &tm.tm_hour, &tm.tm_min, &tm.tm_sec) != 6)
    {
        return -1;
    }
    while (tm.tm_mon < 12 && strcmp(months[tm.tm_mon], month) != 0) {
        tm.tm_mon++;
    }
    if (tm.tm_mon == 12) {
        return -1;
    }

    /* a date that is written as the same text has all its parts in range */
    tm.tm_year -= 1900;
    time_t seconds = timegm(&tm);
    if (seconds < 0 || seconds >= INT64_MAX / NS_PER_SECOND) {
        return -1;
    }
    inf_http_date_format(seconds, again);
    return strcmp(again, text) == 0 ? (int64_t) seconds * NS_PER_SECOND : -1;
}
