#include "first_load.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/object_address.h"
#include "index_rows.h"
#include "own_socket.h"

static bool any_remote(const options_t *o);
static first_load_t judge(const char *answer, const options_t *o);
static bool any_failed(char *rows, const options_t *o);
static bool has_failed(const options_t *o, const index_row_t *row);
static char *cache_failure(const char *path);
static bool is_at_start(const options_t *o, const index_row_t *row);
static bool is_ready(const char *path);

first_load_t
first_load_ask(const char *path, const options_t *o, char **index)
{
    first_load_t verdict = FIRST_LOAD_PENDING;
    char        *answer = own_ask(path, "POST /v2/repository/index HTTP/1.0"
                                  "\r\nHost: localhost\r\n"
                                  "Content-Length: 0\r\n\r\n");

    *index = NULL;
    if (answer != NULL) {
        verdict = judge(answer, o);
    }
    if (verdict == FIRST_LOAD_GOOD && any_remote(o) && !is_ready(path)) {
        verdict = FIRST_LOAD_PENDING;
    }
    if (verdict == FIRST_LOAD_PENDING) {
        free(answer);
        return verdict;
    }

    *index = answer;
    return verdict;
}

/* The index is an object with an error where a repository can't be listed. */
bool
first_load_explain(FILE *f, const char *path, const options_t *o,
    first_load_t verdict, const char *index)
{
    char       *cache = cache_failure(path);
    char       *rows = strdup(index);
    char       *at = rows;
    const char *why = cache != NULL ? cache
        : verdict == FIRST_LOAD_FAILED ? "failed to load all models" : NULL;
    index_row_t row;

    while (rows != NULL && index_row_next(&at, &row)) {
        if (has_failed(o, &row)) {
            fprintf(f, "inference-server: failed to load model %s%s%s: %s\n",
                    row.name, row.version[0] == '\0' ? "" : ", version ",
                    row.version, row.reason);

        } else if (row.name[0] == '\0') {
            why = row.reason;
        }
    }
    if (why != NULL && o->exit_on_error) {
        fprintf(f, "error: creating server: Internal - %s\n", why);
    }
    free(rows);
    free(cache);
    return why != NULL;
}

/* Why there is no response cache, to be freed; NULL: nothing is missing, or no
   answer.  Quotes within a text are escaped, so the key cannot occur in one. */
static char *
cache_failure(const char *path)
{
    static const char key[] = "\"cache_failure\":";
    char *answer = own_ask(path, "GET /status HTTP/1.0\r\n"
                           "Host: localhost\r\n\r\n");
    char *at = answer != NULL ? strstr(answer, key) : NULL;
    char *text = NULL;

    if (at != NULL) {
        at += sizeof(key) - 1;
        text = index_string_next(&at);
    }
    text = text != NULL && text[0] != '\0' ? strdup(text) : NULL;
    free(answer);
    return text;
}

/* Whether the row tells of a load at the start that failed; a model that a
   request has unloaded since has not. */
static bool
has_failed(const options_t *o, const index_row_t *row)
{
    return strcmp(row->state, "UNAVAILABLE") == 0
        && strcmp(row->reason, "unloaded") != 0 && is_at_start(o, row);
}

/* Whether the model of the row is loaded at the start, not later by a
   request. */
static bool
is_at_start(const options_t *o, const index_row_t *row)
{
    if (strcasecmp(o->control_mode, "explicit") != 0) {
        return true;
    }
    for (size_t i = 0; i < o->load_models.n; i++) {
        if (strcmp(o->load_models.value[i], "*") == 0
            || strcmp(o->load_models.value[i], row->name) == 0)
        {
            return true;
        }
    }
    return false;
}

static bool
any_remote(const options_t *o)
{
    for (size_t i = 0; i < o->repositories.n; i++) {
        if (inf_object_address_has_scheme(o->repositories.value[i])) {
            return true;
        }
    }
    return false;
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

/* The result from an answer.  Quotes within a reason are escaped, so the text
   cannot occur in one.  Any error other than a missing core means that a
   repository cannot be listed. */
static first_load_t
judge(const char *answer, const options_t *o)
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

    char *rows = strdup(body);
    bool  failed = rows != NULL && any_failed(rows, o);

    free(rows);
    return rows == NULL ? FIRST_LOAD_PENDING        /* asked again later     */
         : failed ? FIRST_LOAD_FAILED : FIRST_LOAD_GOOD;
}

/* Whether any model failed; rows is overwritten. */
static bool
any_failed(char *rows, const options_t *o)
{
    index_row_t row;

    while (index_row_next(&rows, &row)) {
        if (has_failed(o, &row)) {
            return true;
        }
    }
    return false;
}
