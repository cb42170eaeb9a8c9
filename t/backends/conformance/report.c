/* report.c - see report.h */

#include "report.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
cf_check(cf_report_t *r, bool holds, const char *what)
{
    r->checks++;
    if (holds) {
        return;
    }

    cf_event("FAILED", what);
    int n = snprintf(r->text + r->len, sizeof(r->text) - r->len, "%s%s",
        r->len > 0 ? "; " : "", what);
    if (n > 0) {
        r->len += (size_t) n;
    }
    if (r->len >= sizeof(r->text)) {
        r->len = sizeof(r->text) - 1;
    }
}

void
cf_succeeds(cf_report_t *r, TRITONSERVER_Error *err, const char *what)
{
    char text[512];

    if (err == NULL) {
        r->checks++;
        return;
    }

    snprintf(text, sizeof(text), "%s (got: %s)", what,
        TRITONSERVER_ErrorMessage(err));
    TRITONSERVER_ErrorDelete(err);
    cf_check(r, false, text);
}

void
cf_fails(cf_report_t *r, TRITONSERVER_Error *err,
    TRITONSERVER_Error_Code code, const char *what)
{
    char text[512];

    if (err != NULL && TRITONSERVER_ErrorCode(err) == code
        && TRITONSERVER_ErrorMessage(err)[0] != '\0')
    {
        r->checks++;

    } else {
        snprintf(text, sizeof(text), "%s (got: %s)", what, err == NULL
            ? "success" : TRITONSERVER_ErrorMessage(err));
        cf_check(r, false, text);
    }
    TRITONSERVER_ErrorDelete(err);
}

TRITONSERVER_Error *
cf_report_error(const cf_report_t *r)
{
    return r->len == 0 ? NULL
        : TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, r->text);
}

void
cf_event(const char *what, const char *name)
{
    const char *path = getenv("INF_CONFORMANCE_EVENTS");
    char        line[1024];

    if (path == NULL) {
        return;
    }

    int n = snprintf(line, sizeof(line), "%s %s\n", what, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

    if (fd < 0) {
        return;
    }
    if (n >= (int) sizeof(line)) {
        n = sizeof(line) - 1;
        line[n - 1] = '\n';
    }
    if (write(fd, line, (size_t) n) != n) {
        perror(path);
    }
    close(fd);
}
