#include "start_log.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "core/base/object_address.h"
#include "core/proto/core_options.h"
#include "index_rows.h"
#include "table.h"

static void write_prefix(FILE *f, const options_t *o, int line);
static void add_list(table_t *t, const char *name, const list_t *list);
static void add_sizes(table_t *t, const char *name, const list_t *list);
static void add_core(table_t *t, const char *name, const options_t *o,
    const char *directive, const char *parameter, const char *otherwise);
static void add_metadata(table_t *t, char *text);
static const char *mode(const options_t *o);
static const char *as_number(bool flag);

void
start_log_models(FILE *f, const options_t *o, char *index)
{
    table_t     t = { .columns = 3 };
    index_row_t row;

    if (!o->info) {
        return;
    }

    table_add(&t, "Model", "Version", "Status");
    while (index_row_next(&index, &row)) {
        char status[4096];

        if (row.state[0] == '\0') {
            continue;                       /* never loaded                  */
        }
        snprintf(status, sizeof(status), "%s%s%s", row.state,
                 row.reason[0] == '\0' ? "" : ": ", row.reason);
        table_add(&t, row.name, row.version, status);
    }

    write_prefix(f, o, __LINE__);
    fputc('\n', f);
    table_print(f, &t);
    table_free(&t);
}

void
start_log_options(FILE *f, const options_t *o, char *metadata)
{
    table_t t = { .columns = 2 };
    char    number[64];

    if (!o->info) {
        return;
    }

    table_add(&t, "Option", "Value");
    if (metadata != NULL) {
        add_metadata(&t, metadata);
    }
    add_list(&t, "model_repository_path", &o->repositories);
    table_add(&t, "model_control_mode", mode(o));
    for (size_t i = 0; i < o->load_models.n; i++) {
        snprintf(number, sizeof(number), "startup_models_%zu", i);
        table_add(&t, number, o->load_models.value[i]);
    }
    table_add(&t, "strict_model_config", as_number(options_strict(o)));
    add_core(&t, "model_config_name", o, "inference_model_config_name", NULL,
             "");
    add_core(&t, "rate_limit", o, "inference_rate_limit", NULL, "OFF");
    add_core(&t, "pinned_memory_pool_byte_size", o, "inference_memory",
             "pinned", "268435456");
    add_sizes(&t, "cuda_memory_pool_byte_size", &o->cuda_pools);
    table_add(&t, "min_supported_compute_capability",
              o->min_capability != NULL ? o->min_capability : "7.5");
    add_core(&t, "strict_readiness", o, "inference_strict_readiness", NULL,
             "1");
    snprintf(number, sizeof(number), "%ld", o->exit_timeout_secs);
    table_add(&t, "exit_timeout", number);
    table_add(&t, "cache_enabled", as_number(o->cache_configs.n != 0
                                             || o->cache_bytes != 0));

    write_prefix(f, o, __LINE__);
    fputc('\n', f);
    table_print(f, &t);
    table_free(&t);
}

/* Adds name, version and extensions, in that order. */
static void
add_metadata(table_t *t, char *text)
{
    char  extensions[1024] = "";
    char *word;

    for (int i = 0; (word = index_string_next(&text)) != NULL; i++) {
        size_t len = strlen(extensions);

        if (i == 1) {
            table_add(t, "server_id", word);

        } else if (i == 3) {
            table_add(t, "server_version", word);

        } else if (i > 4) {
            snprintf(extensions + len, sizeof(extensions) - len, "%s%s",
                     len == 0 ? "" : " ", word);
        }
    }
    table_add(t, "server_extensions", extensions);
}

static void
add_list(table_t *t, const char *name, const list_t *list)
{
    for (size_t i = 0; i < list->n; i++) {
        char  indexed[64];
        char *shown = strndup(list->value[i],
                              inf_object_address_shown(list->value[i]));

        snprintf(indexed, sizeof(indexed), "%s[%zu]", name, i);
        table_add(t, indexed, shown != NULL ? shown : "");
        free(shown);
    }
}

/* Adds "gpu:bytes". */
static void
add_sizes(table_t *t, const char *name, const list_t *list)
{
    for (size_t i = 0; i < list->n; i++) {
        char        indexed[64];
        const char *text = list->value[i];
        size_t      gpu = strcspn(text, ":");

        snprintf(indexed, sizeof(indexed), "%s{%.*s}", name, (int) gpu, text);
        table_add(t, indexed, text + gpu + 1);
    }
}

static void
add_core(table_t *t, const char *name, const options_t *o,
    const char *directive, const char *parameter, const char *otherwise)
{
    const char *value = options_core(o, directive, parameter);

    if (value == NULL) {
        value = otherwise;

    } else if (strcmp(value, "on") == 0 || strcmp(value, "off") == 0) {
        value = strcmp(name, "rate_limit") == 0 ? "OFF"
              : as_number(strcmp(value, "on") == 0);

    } else if (strcasecmp(value, "execution_count") == 0) {
        value = "EXEC_COUNT";
    }
    table_add(t, name, value);
}

static const char *
mode(const options_t *o)
{
    return strcasecmp(o->control_mode, "explicit") == 0 ? "MODE_EXPLICIT"
         : strcasecmp(o->control_mode, "poll") == 0 ? "MODE_POLL"
         : "MODE_NONE";
}

static const char *
as_number(bool flag)
{
    return flag ? "1" : "0";
}

void
start_log_services(FILE *f, const options_t *o)
{
    static const service_id_t order[] = {
        SERVICE_GRPC, SERVICE_HTTP, SERVICE_SAGEMAKER, SERVICE_VERTEX,
        SERVICE_METRICS
    };

    for (size_t i = 0; o->info && i < SERVICES; i++) {
        const service_t *s = &o->service[order[i]];

        if (s->on) {
            write_prefix(f, o, __LINE__);
            fprintf(f, "\"Started %s at %s:%ld\"\n", s->name, s->address,
                    s->port);
        }
    }
}

/* Writes "I0610 00:39:01.123456 4242 file.c:77] ", or with an ISO 8601 date. */
static void
write_prefix(FILE *f, const options_t *o, int line)
{
    struct timeval now;
    struct tm      tm;
    char           text[64];
    bool           iso = strcasecmp(o->log_format, "ISO8601") == 0;

    gettimeofday(&now, NULL);
    gmtime_r(&now.tv_sec, &tm);
    strftime(text, sizeof(text), iso ? "%Y-%m-%dT%H:%M:%SZ I" : "I%m%d %T",
             &tm);
    if (iso) {
        fprintf(f, "%s %d %s:%d] ", text, (int) getpid(), "start_log.c", line);
        return;
    }
    fprintf(f, "%s.%06ld %d %s:%d] ", text, (long) now.tv_usec,
            (int) getpid(), "start_log.c", line);
}
