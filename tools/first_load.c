#define _GNU_SOURCE

#include "first_load.h"

#include <stdlib.h>
#include <string.h>

#include "own_socket.h"

static first_load_t judge(const char *answer);
static bool is_ready(const char *path);

first_load_t
first_load_ask(const char *path, bool remote, char **index)
{
    first_load_t verdict = FIRST_LOAD_PENDING;
    char        *answer = own_ask(path, "POST /v2/repository/index HTTP/1.0"
                                  "\r\nHost: localhost\r\n"
                                  "Content-Length: 0\r\n\r\n");

    *index = NULL;
    if (answer != NULL) {
        verdict = judge(answer);
    }
    if (verdict == FIRST_LOAD_GOOD && remote && !is_ready(path)) {
        verdict = FIRST_LOAD_PENDING;
    }
    if (verdict == FIRST_LOAD_PENDING) {
        free(answer);
        return verdict;
    }

    *index = answer;
    return verdict;
}

static bool
is_ready(const char *path)
{
    char *answer = own_ask(path, "GET /v2/health/ready HTTP/1.0\r\n"
                           "Host: localhost\r\n\r\n");
    bool  ready = answer != NULL
        && strncmp(strchrnul(answer, ' '), " 200", 4) == 0;

    free(answer);
    return ready;
}

/* Quotes within a reason are escaped: such a text is a row's own.  Another
   error than that there is no core yet: a repository can't be listed. */
static first_load_t
judge(const char *answer)
{
    const char *body = strstr(answer, "\r\n\r\n");
    const char *status = strchr(answer, ' ');

    if (body == NULL || status == NULL || strncmp(status, " 503", 4) == 0
        || strncmp(status, " 502", 4) == 0)
    {
        return FIRST_LOAD_PENDING;
    }
    if (strncmp(status, " 200", 4) != 0) {
        return FIRST_LOAD_FAILED;
    }
    if (strstr(body, "\"state\":\"LOADING\"") != NULL) {
        return FIRST_LOAD_PENDING;
    }
    return strstr(body, "\"state\":\"UNAVAILABLE\"") != NULL
        ? FIRST_LOAD_FAILED : FIRST_LOAD_GOOD;
}
