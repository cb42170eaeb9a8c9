#include "nginx_conf.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#include "control_from.h"
#include "core/proto/core_options.h"
#include "die.h"
#include "option_check.h"

#define MAX_CONNECTIONS 8192ul      /* of one nginx worker */

static void write_main(FILE *f, const options_t *o, const pieces_t *p,
    const run_as_t *who, const char *dir);
static void write_http(FILE *f, const places_t *places);
static void write_core(FILE *f, const options_t *o, const pieces_t *p);
static unsigned long connections(void);
static const char *log_level(const options_t *o);
static void write_model_control(FILE *f, const options_t *o);
static void write_quoted(FILE *f, const char *text);
static void write_quoted_word(FILE *f, const char *text);
static void write_backend_config(FILE *f, const char *text);
static void write_core_options(FILE *f, const options_t *o);
static bool write_parameters(FILE *f, const options_t *o,
    const char *directive, const char *begin);
static void write_memory(FILE *f, const options_t *o);
static void write_cache(FILE *f, const options_t *o);
static void write_host_policies(FILE *f, const list_t *list);
static void write_rate_limit(FILE *f, const options_t *o);
static void write_metrics(FILE *f, const options_t *o);
static void write_server(FILE *f, const options_t *o);
static void write_control(FILE *f, const options_t *o);
static void write_own_server(FILE *f, const char *dir);
static void write_listen(FILE *f, const char *address, long port, bool reuse);

void
nginx_conf_write(const places_t *places, const options_t *o,
    const pieces_t *p, const run_as_t *who)
{
    char path[PATH_MAX + 16];

    snprintf(path, sizeof(path), "%s/nginx.conf", places->own);

    FILE *f = fopen(path, "we");

    if (f == NULL) {
        die("cannot write %s: %s", path, strerror(errno));
    }

    write_main(f, o, p, who, places->own);
    fputs("http {\n", f);
    write_http(f, places);
    write_core(f, o, p);
    write_model_control(f, o);
    write_core_options(f, o);
    write_memory(f, o);
    write_cache(f, o);
    fprintf(f, "    inference_log %s verbose=%ld;\n", log_level(o),
            o->verbose);
    write_host_policies(f, &o->host_policies);
    write_rate_limit(f, o);
    write_metrics(f, o);
    write_server(f, o);
    if (o->exit_on_error) {
        write_own_server(f, places->own);
    }
    fputs("}\n", f);

    if (ferror(f) || fclose(f) != 0) {
        die("cannot write %s: %s", path, strerror(errno));
    }
}

/* Outside http. */
static void
write_main(FILE *f, const options_t *o, const pieces_t *p,
    const run_as_t *who, const char *dir)
{
    fputs("load_module ", f);
    write_quoted(f, p->module);
    fprintf(f, ";\ndaemon off;\npid %s/nginx.pid;\n", dir);
    fprintf(f, "error_log stderr %s;\n",
            !o->error ? "crit" : o->info ? "notice" : log_level(o));

    if (who->user != NULL) {
        fputs("user ", f);
        write_quoted_word(f, who->user);
        fputc(' ', f);
        write_quoted_word(f, who->group);
        fputs(";\n", f);
    }
    if (o->workers != 0) {
        fprintf(f, "worker_processes %ld;\n", o->workers);

    } else {
        fputs("worker_processes auto;\n", f);
    }
    fprintf(f, "worker_shutdown_timeout %lds;\n",
            o->exit_timeout_secs > 0 ? o->exit_timeout_secs : 1);
    fprintf(f, "events { worker_connections %lu; }\n", connections());
}

static const char *
log_level(const options_t *o)
{
    return o->info ? "info" : o->warning ? "warn" : "error";
}

/* As many connections as the descriptor limit allows, which is raised first. */
static unsigned long
connections(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return MAX_CONNECTIONS;
    }
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_max < MAX_CONNECTIONS ? limit.rlim_max
                                            : MAX_CONNECTIONS;
}

/* How nginx takes connections and requests. */
static void
write_http(FILE *f, const places_t *places)
{
    char path[PATH_MAX];

    fputs("    access_log off;\n"
          "    tcp_nodelay on;\n"
          "    merge_slashes off;\n"
          "    underscores_in_headers on;\n"
          "    client_max_body_size 0;\n"
          "    client_header_timeout 60s;\n"
          "    keepalive_timeout 1h;\n"
          "    keepalive_time 1d;\n"
          "    keepalive_requests 1000000000;\n"
          "    large_client_header_buffers 4 32k;\n", f);

    for (size_t i = 0; i < TEMPS; i++) {
        temp_path(path, places, i);
        fprintf(f, "    %s_temp_path \"%s\";\n", temps[i], path);
    }
}

/* The core's program, and where models and plug-ins lie. */
static void
write_core(FILE *f, const options_t *o, const pieces_t *p)
{
    fputs("    inference_core ", f);
    write_quoted(f, p->core);
    fprintf(f, " drain=%lds;\n", o->exit_timeout_secs);
    for (size_t i = 0; i < o->repositories.n; i++) {
        fputs("    inference_repository ", f);
        write_quoted(f, o->repositories.value[i]);
        fputs(";\n", f);
    }
    fputs("    inference_backends ", f);
    write_quoted(f, o->backends != NULL ? o->backends : p->backends);
    fputs(";\n", f);
    if (o->agents != NULL) {
        fputs("    inference_agents ", f);
        write_quoted(f, o->agents);
        fputs(";\n", f);
    }
    for (size_t i = 0; i < o->backend_configs.n; i++) {
        write_backend_config(f, o->backend_configs.value[i]);
    }
}

static void
write_backend_config(FILE *f, const char *text)
{
    const char *comma = strchr(text, ',');

    if (comma == NULL || comma > strchr(text, '=')) {
        fprintf(f, "    inference_backend_config * %s;\n", text);
        return;
    }
    fprintf(f, "    inference_backend_config %.*s %s;\n",
            (int) (comma - text), text, comma + 1);
}

static void
write_model_control(FILE *f, const options_t *o)
{
    if (strcasecmp(o->control_mode, "explicit") == 0) {
        fputs("    inference_model_control explicit;\n", f);

    } else if (strcasecmp(o->control_mode, "poll") == 0) {
        fputs("    inference_model_control poll", f);
        write_parameters(f, o, "inference_model_control", "");
        fputs(";\n", f);
    }
    for (size_t i = 0; i < o->load_models.n; i++) {
        const char *name = o->load_models.value[i];
        bool        again = false;

        for (size_t k = 0; k < i; k++) {
            again |= strcmp(o->load_models.value[k], name) == 0;
        }
        if (!again) {
            fputs("    inference_load_model ", f);
            write_quoted_word(f, name);
            fputs(";\n", f);
        }
    }
    if (options_strict(o)) {
        fputs("    inference_auto_complete off;\n", f);
    }
}

/* Directives that the table has all of. */
static void
write_core_options(FILE *f, const options_t *o)
{
    for (size_t i = 0; i < inf_core_options_count; i++) {
        const inf_core_option_t *row = &inf_core_options[i];

        if (row->kind == INF_OPTION_GROUP
            && strcmp(row->directive, "inference_metrics") != 0)
        {
            char begin[64];

            snprintf(begin, sizeof(begin), "    %s", row->directive);
            if (write_parameters(f, o, row->directive, begin)) {
                fputs(";\n", f);
            }
        } else if (row->parameter == NULL && o->core[i] != NULL) {
            fprintf(f, "    %s ", row->directive);
            write_quoted_word(f, o->core[i]);
            fputs(";\n", f);
        }
    }
}

/* Those of the directive that were given, after begin; whether any was. */
static bool
write_parameters(FILE *f, const options_t *o, const char *directive,
    const char *begin)
{
    bool any = false;

    for (size_t i = 0; i < inf_core_options_count; i++) {
        const inf_core_option_t *row = &inf_core_options[i];

        if (o->core[i] != NULL && row->parameter != NULL
            && strcmp(row->directive, directive) == 0)
        {
            fprintf(f, "%s %s=%s", any ? "" : begin, row->parameter,
                    o->core[i]);
            any = true;
        }
    }
    return any;
}

static void
write_memory(FILE *f, const options_t *o)
{
    fprintf(f, "    inference_memory %s", o->request_memory);
    write_parameters(f, o, "inference_memory", "");
    for (size_t i = 0; i < o->cuda_pools.n; i++) {
        if (!later_for_gpu(&o->cuda_pools, i)) {
            long        gpu;
            const char *bytes = after_gpu("", o->cuda_pools.value[i], &gpu);

            fprintf(f, " cuda=%ld:%s", gpu, bytes);
        }
    }
    fputs(";\n", f);

    if (o->min_capability != NULL) {
        fprintf(f, "    inference_backend_config * "
                "min-compute-capability=%s;\n", o->min_capability);
    }
    for (size_t i = 0; i < o->gpu_limits.n; i++) {
        if (!later_for_gpu(&o->gpu_limits, i)) {
            long        gpu;
            const char *part = after_gpu("", o->gpu_limits.value[i], &gpu);

            fprintf(f, "    inference_backend_config * "
                    "model-load-gpu-limit-device-%ld=%s;\n", gpu, part);
        }
    }
}

static void
write_cache(FILE *f, const options_t *o)
{
    if (o->cache_directory != NULL) {
        fputs("    inference_cache_directory ", f);
        write_quoted(f, o->cache_directory);
        fputs(";\n", f);
    }
    if (o->cache_bytes != 0) {
        fprintf(f, "    inference_response_cache local size=%ld;\n",
                o->cache_bytes);
    }
    for (size_t i = 0; i < o->cache_configs.n; i++) {
        const char *text = o->cache_configs.value[i];
        const char *comma = strchr(text, ',');

        if (i == 0) {
            fprintf(f, "    inference_response_cache %.*s",
                    (int) (comma - text), text);
        }
        fprintf(f, " %s%s", comma + 1,
                i + 1 < o->cache_configs.n ? "" : ";\n");
    }
}

/* "policy,setting=value" */
static void
write_host_policies(FILE *f, const list_t *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *text = list->value[i];
        const char *comma = strchr(text, ',');

        fprintf(f, "    inference_host_policy %.*s %s;\n",
                (int) (comma - text), text, comma + 1);
    }
}

static void
write_rate_limit(FILE *f, const options_t *o)
{
    for (size_t i = 0; i < o->rate_resources.n; i++) {
        const char *text = o->rate_resources.value[i];
        size_t      name = strcspn(text, ":");
        const char *count = text + name + 1;
        size_t      digits = strcspn(count, ":");

        fprintf(f, "    inference_rate_limit_resource \"%.*s\" %.*s %s;\n",
                (int) name, text, (int) digits, count,
                count[digits] == ':' ? count + digits + 1 : "");
    }
}

/* Of a setting given twice the last value counts. */
static void
write_metrics(FILE *f, const options_t *o)
{
    const list_t *list = &o->metrics_configs;

    if (!o->metrics) {
        return;
    }

    const char *begin = "    inference_metrics";
    bool        any = write_parameters(f, o, "inference_metrics", begin);

    for (size_t i = 0; i < list->n; i++) {
        const char *value, *other;
        const char *name = metrics_setting(list->value[i], &value);
        bool        last = true;

        for (size_t k = i + 1; k < list->n; k++) {
            last = last && strcmp(metrics_setting(list->value[k], &other),
                                  name) != 0;
        }
        if (last) {
            fprintf(f, "%s %s=%s", any ? "" : begin, name, value);
            any = true;
        }
    }
    if (any) {
        fputs(";\n", f);
    }

    fputs("    server {\n", f);
    write_listen(f, o->metrics_address != NULL ? o->metrics_address
                 : o->http_address, o->metrics_port, false);
    fputs("        location / {\n"
          "            inference metrics;\n"
          "        }\n"
          "    }\n", f);
}

static void
write_server(FILE *f, const options_t *o)
{
    fputs("    server {\n", f);
    write_listen(f, o->http_address, o->http_port, o->reuse_http_port);
    fputs("        location / {\n"
          "            inference all;\n"
          "        }\n", f);
    write_control(f, o);
    fputs("    }\n", f);
}

/* Endpoints that change the server for others: one location, so that all of
   them, later also trace and log settings, have the same clients. */
static void
write_control(FILE *f, const options_t *o)
{
    fputs("        location ~ \"^/v2/(repository/|logging$"
          "|(models/.+/)?trace/setting$)\" {\n"
          "            inference repository;\n", f);
    control_from_write(f, o->control_from);
    fputs("        }\n", f);
    control_from_write_answer(f, o->control_from);
}

/* For the launcher's own questions, whatever the others are. */
static void
write_own_server(FILE *f, const char *dir)
{
    fprintf(f, "    server {\n"
            "        listen \"unix:%s/" OWN_SOCKET "\";\n"
            "        location / { inference repository health; }\n"
            "    }\n", dir);
}

static void
write_listen(FILE *f, const char *address, long port, bool reuse)
{
    bool v6 = strchr(address, ':') != NULL && address[0] != '[';

    fprintf(f, "        listen %s%s%s:%ld%s;\n", v6 ? "[" : "", address,
            v6 ? "]" : "", port, reuse ? " reuseport" : "");
}

static void
write_quoted(FILE *f, const char *text)
{
    char full[PATH_MAX];

    /* nginx would read a relative path from its own prefix */
    if (text[0] != '/' && strstr(text, "://") == NULL
        && realpath(text, full) != NULL)
    {
        text = full;
    }

    write_quoted_word(f, text);
}

static void
write_quoted_word(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            fputc('\\', f);
        }
        fputc(*text, f);
    }
    fputc('"', f);
}
