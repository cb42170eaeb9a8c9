#include "nginx_conf.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#include "core/proto/core_options.h"
#include "die.h"
#include "number_parts.h"
#include "option_check.h"
#include "quoted.h"
#include "servers.h"
#include "trace_options.h"

#define MAX_CONNECTIONS 8192ul      /* of one nginx worker */
#define RESPONSE_MEMORY (1l << 30)      /* inference_memory's default */

static void write_main(FILE *f, const options_t *o, const pieces_t *p,
    const run_as_t *who, const char *dir);
static void write_http(FILE *f, const places_t *places);
static void write_core(FILE *f, const options_t *o, const pieces_t *p);
static long workers(const options_t *o);
static unsigned long connections(void);
static const char *log_level(const options_t *o);
static const char *nginx_level(const options_t *o);
static void write_model_control(FILE *f, const options_t *o);
static void write_settings(FILE *f, const char *directive,
    const list_t *list);
static void write_error_log(FILE *f, const options_t *o, const char *level);
static bool set_later(const list_t *list, size_t at);
static void write_core_options(FILE *f, const options_t *o);
static bool write_parameters(FILE *f, const options_t *o,
    const char *directive, const char *begin);
static void write_memory(FILE *f, const options_t *o);
static void write_sizes(FILE *f, const char *parameter, const list_t *list);
static void write_cache(FILE *f, const options_t *o);
static void write_rate_limit(FILE *f, const options_t *o);
static void write_metrics(FILE *f, const options_t *o);

void
nginx_conf_write(FILE *f, const places_t *places, const options_t *o,
    const pieces_t *p, const run_as_t *who)
{
    write_main(f, o, p, who, places->own);
    fputs("http {\n", f);
    fputs("    ", f);
    write_error_log(f, o, nginx_level(o));
    write_http(f, places);
    write_core(f, o, p);
    write_model_control(f, o);
    write_core_options(f, o);
    write_memory(f, o);
    write_cache(f, o);
    fprintf(f, "    inference_log %s verbose=%ld%s;\n", log_level(o),
            o->verbose, strcasecmp(o->log_format, "ISO8601") == 0
            ? " format=ISO8601" : "");
    trace_options_write(f, o);
    write_settings(f, "inference_host_policy", &o->host_policies);
    write_rate_limit(f, o);
    write_metrics(f, o);
    servers_write(f, o, places);
    fputs("}\n", f);

    if (fflush(f) != 0 || ferror(f)) {
        die("cannot write nginx.conf: %s", strerror(errno));
    }
}

/* Writes the directives outside http. */
static void
write_main(FILE *f, const options_t *o, const pieces_t *p,
    const run_as_t *who, const char *dir)
{
    char pid[PATH_MAX + sizeof("/nginx.pid")];

    fputs("load_module ", f);
    write_path(f, p->module);
    fputs(";\ndaemon off;\npid ", f);
    snprintf(pid, sizeof(pid), "%s/nginx.pid", dir);
    write_word(f, pid);
    fputs(";\n", f);
    /* verbose lines of the core are at info, too */
    write_error_log(f, o, o->info || o->verbose > 0 ? "info" : nginx_level(o));

    if (who->user != NULL) {
        fputs("user ", f);
        write_word(f, who->user);
        fputc(' ', f);
        write_word(f, who->group);
        fputs(";\n", f);
    }
    if (workers(o) != 0) {
        fprintf(f, "worker_processes %ld;\n", workers(o));

    } else {
        fputs("worker_processes auto;\n", f);
    }
    fprintf(f, "worker_shutdown_timeout %lds;\n",
            o->exit_timeout_secs > 0 ? o->exit_timeout_secs : 1);
    fprintf(f, "events { worker_connections %lu; }\n", connections());
}

static void
write_error_log(FILE *f, const options_t *o, const char *level)
{
    fputs("error_log ", f);
    if (o->log_file != NULL) {
        write_path(f, o->log_file);
    } else {
        fputs("stderr", f);
    }
    fprintf(f, " %s;\n", level);
}

/* The number of workers, common to all services; 0: not given. */
static long
workers(const options_t *o)
{
    long most = 0;

    for (size_t i = 0; i < SERVICES; i++) {
        most = o->service[i].threads > most ? o->service[i].threads : most;
    }
    return most;
}

static const char *
log_level(const options_t *o)
{
    return o->info ? "info" : o->warning ? "warn" : "error";
}

/* Not info: at that level nginx logs each connection closed by a client. */
static const char *
nginx_level(const options_t *o)
{
    return o->info ? "notice" : o->warning ? "warn" : o->error ? "error"
        : "crit";
}

/* The number of connections by the descriptor limit, which is raised first. */
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

/* Writes the directives for connections and requests. */
static void
write_http(FILE *f, const places_t *places)
{
    char path[PATH_MAX];

    fputs("    access_log off;\n"
          "    tcp_nodelay on;\n"
          "    merge_slashes off;\n"
          "    underscores_in_headers on;\n"
          "    ignore_invalid_headers off;\n"
          "    client_max_body_size 0;\n"
          "    gzip_types application/json application/octet-stream;\n"
          "    gzip_proxied any;\n"
          "    gzip_min_length 0;\n"
          "    gzip_http_version 1.0;\n"
          "    client_header_timeout 60s;\n"
          "    keepalive_timeout 1h;\n"
          "    keepalive_time 1d;\n"
          "    keepalive_requests 1000000000;\n"
          "    large_client_header_buffers 4 32k;\n", f);

    for (size_t i = 0; i < TEMPS; i++) {
        temp_path(path, places, i);
        fprintf(f, "    %s_temp_path ", temps[i]);
        write_word(f, path);
        fputs(";\n", f);
    }
}

/* Writes the core's program, and the directories of models and plug-ins. */
static void
write_core(FILE *f, const options_t *o, const pieces_t *p)
{
    fputs("    inference_core ", f);
    write_path(f, p->core);
    fprintf(f, " drain=%lds;\n", o->exit_timeout_secs);
    for (size_t i = 0; i < o->repositories.n; i++) {
        if (!options_given_before(&o->repositories, i)) {
            fputs("    inference_repository ", f);
            write_path(f, o->repositories.value[i]);
            fputs(";\n", f);
        }
    }
    fputs("    inference_backends ", f);
    write_path(f, o->backends != NULL ? o->backends : p->backends);
    fputs(";\n", f);
    if (o->agents != NULL) {
        fputs("    inference_agents ", f);
        write_path(f, o->agents);
        fputs(";\n", f);
    }
    write_settings(f, "inference_backend_config", &o->backend_configs);
    if (options_given(o, "http-max-input-size")) {
        fprintf(f, "    inference_max_json_size %ld;\n", o->http_max_input);
    }
}

/* Writes "[owner,]setting=value" of each; without owner for all. */
static void
write_settings(FILE *f, const char *directive, const list_t *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *text = list->value[i];
        const char *comma = strchr(text, ',');
        bool        named = comma != NULL && comma < strchr(text, '=');
        const char *setting = named ? comma + 1 : text;

        if (set_later(list, i)) {
            continue;
        }
        fprintf(f, "    %s ", directive);
        if (named) {
            write_part(f, text, (size_t) (comma - text));
        } else {
            fputc('*', f);
        }
        fputc(' ', f);
        write_part(f, setting, strlen(setting));
        fputs(";\n", f);
    }
}

/* Whether a later entry sets the same setting, which then counts. */
static bool
set_later(const list_t *list, size_t at)
{
    size_t len = strcspn(list->value[at], "=") + 1;

    for (size_t i = at + 1; i < list->n; i++) {
        if (strncmp(list->value[i], list->value[at], len) == 0) {
            return true;
        }
    }
    return false;
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
        if (!options_given_before(&o->load_models, i)) {
            fputs("    inference_load_model ", f);
            write_word(f, o->load_models.value[i]);
            fputs(";\n", f);
        }
    }
    if (options_strict(o)) {
        fputs("    inference_auto_complete off;\n", f);
    }
}

/* Writes the directives that are entirely described by the table. */
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
            write_word(f, o->core[i]);
            fputs(";\n", f);
        }
    }
}

/* Writes the given parameters of the directive after begin; returns whether
   there are any. */
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
    if (size_read(o->request_memory) > RESPONSE_MEMORY) {
        fprintf(f, " responses=%s", o->request_memory);
    }
    write_parameters(f, o, "inference_memory", "");
    write_sizes(f, "cuda", &o->cuda_pools);
    write_sizes(f, "cuda_virtual", &o->cuda_ranges);
    fputs(";\n", f);
}

static void
write_sizes(FILE *f, const char *parameter, const list_t *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (!later_for_gpu(list, i)) {
            long        gpu;
            const char *bytes = after_gpu(list->value[i], &gpu);

            fprintf(f, " %s=%ld:%s", parameter, gpu, bytes);
        }
    }
}

static void
write_cache(FILE *f, const options_t *o)
{
    if (o->cache_directory != NULL) {
        fputs("    inference_cache_directory ", f);
        write_path(f, o->cache_directory);
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
            fputs("    inference_response_cache ", f);
            write_part(f, text, (size_t) (comma - text));
        }
        if (!set_later(&o->cache_configs, i)) {
            fputc(' ', f);
            write_part(f, comma + 1, strlen(comma + 1));
        }
        if (i + 1 == o->cache_configs.n) {
            fputs(";\n", f);
        }
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

        fputs("    inference_rate_limit_resource ", f);
        write_part(f, text, name);
        fprintf(f, " %.*s %s;\n", (int) digits, count,
                count[digits] == ':' ? count + digits + 1 : "");
    }
}

static void
write_metrics(FILE *f, const options_t *o)
{
    const list_t *list = &o->metrics_configs;

    if (!o->service[SERVICE_METRICS].on) {
        return;
    }

    const char *begin = "    inference_metrics";
    bool        any = write_parameters(f, o, "inference_metrics", begin);

    for (size_t i = 0; i < list->n; i++) {
        const char *value;
        const char *name = metrics_setting(list->value[i], &value);

        if (set_later(list, i)) {
            continue;
        }
        if (name == NULL) {
            fprintf(stderr, "inference-server: --metrics-config=%s has no "
                    "effect: known are counter_latencies, histogram_latencies "
                    "and summary_latencies, which are true or false, and "
                    "summary_quantiles=Q:ERROR,...\n", list->value[i]);
            continue;
        }
        fprintf(f, "%s %s=", any ? "" : begin, name);
        for (; *value != '\0'; value++) {
            if (*value != ' ') {            /* behind commas of quantiles */
                fputc(*value, f);
            }
        }
        any = true;
    }
    if (any) {
        fputs(";\n", f);
    }
}
