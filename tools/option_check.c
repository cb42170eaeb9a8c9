#include "option_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/host_setting.h"
#include "core/base/object_address.h"
#include "core/proto/core_options.h"
#include "control_from.h"
#include "die.h"
#include "number_parts.h"
#include "restricted.h"
#include "trace_options.h"
#include "services.h"

static void check_repositories(const options_t *o);
static void check_same_directory(const char *path, const char *other);
static void check_auto_complete(const options_t *o);
static void check_model_control(const options_t *o);
static void check_cache_config(const options_t *o);
static void check_tls(const options_t *o);
static void check_without_effect(const options_t *o);
static void check_log_levels(const options_t *o);


void
options_check(const options_t *o)
{
    check_repositories(o);
    check_auto_complete(o);
    check_model_control(o);
    check_cache_config(o);
    check_tls(o);
    trace_options_check(o);
    check_without_effect(o);
    check_log_levels(o);
    services_check(o);
    restricted_check("http-restricted-api", &o->http_restricted);
    restricted_check("grpc-restricted-protocol", &o->grpc_restricted);
}

void
check_repository(const char *name, const char *value)
{
    const char *scheme = strstr(value, "://");

    if (scheme != NULL && !inf_object_address_has_scheme(value)) {
        die("--%s=%.*s: repositories are local directories, s3://..., gs://..."
            " and as://...; use a copy, a mount of it, or an S3 endpoint of "
            "that storage", name, (int) strcspn(value, "?"), value);
    }
}

static void
check_repositories(const options_t *o)
{
    if (o->repositories.n == 0) {
        die("--model-repository must be specified");
    }
    for (size_t i = 0; i < o->repositories.n; i++) {
        for (size_t k = 0; k < i; k++) {
            check_same_directory(o->repositories.value[k],
                                 o->repositories.value[i]);
        }
    }

    const char *name = options_core(o, "inference_model_config_name", NULL);

    if (name != NULL && (strchr(name, '/') != NULL || strlen(name) > 249)) {
        die("--model-config-name is the name of a file in configs/ without "
            ".pbtxt, not \"%s\"", name);
    }
}

/* The same spelling counts once; of two, no model would be unique. */
static void
check_same_directory(const char *path, const char *other)
{
    struct stat a, b;

    if (strcmp(path, other) != 0 && stat(path, &a) == 0
        && stat(other, &b) == 0 && a.st_dev == b.st_dev
        && a.st_ino == b.st_ino)
    {
        die("--model-repository=%s and --model-repository=%s are the same "
            "directory", path, other);
    }
}

static void
check_auto_complete(const options_t *o)
{
    if (options_given(o, "strict-model-config") && !o->strict_model_config
        && o->strict_config)
    {
        fputs("inference-server: --strict-model-config=false does nothing"
              " beside --disable-auto-complete-config\n", stderr);
    }
}

static void
check_model_control(const options_t *o)
{
    if (o->load_models.n != 0 && strcasecmp(o->control_mode, "explicit") != 0)
    {
        die("Use of '--load-model' requires setting "
            "'--model-control-mode=explicit' as well.");
    }
    for (size_t i = 1; i < o->load_models.n; i++) {
        if ((strcmp(o->load_models.value[i], "*") == 0)
            != (strcmp(o->load_models.value[0], "*") == 0))
        {
            die("Wildcard model name '*' must be the ONLY startup model if "
                "specified at all.");
        }
    }
}

/* Checks "policy,setting=value". */
void
check_host_policy(const char *name, const char *text)
{
    const char *comma = strchr(text, ',');
    const char *equals = comma != NULL ? strchr(comma, '=') : NULL;

    if (equals == NULL || comma == text || equals == comma + 1
        || equals[1] == '\0'
        || memchr(text, '=', (size_t) (comma - text)) != NULL)
    {
        die("--%s option format is '<policy name>,<setting>=<value>'. Got %s",
            name, text);
    }

    const char *key = number_text("%.*s", (int) (equals - comma - 1),
                                  comma + 1);
    inf_err_t  *err = inf_host_setting_check(key, equals + 1);

    if (err != NULL) {
        die("--%s=%s: %s", name, text, inf_err_msg(err));
    }
}

void
check_metrics_config(const char *name, const char *text)
{
    const char *equals = strchr(text, '=');

    if (equals == NULL || equals == text || equals[1] == '\0'
        || memchr(text, ',', (size_t) (equals - text)) != NULL)
    {
        die("--%s is setting=value, not \"%s\"", name, text);
    }
}

const char *
metrics_setting(const char *text, const char **value)
{
    static const char *const known[][2] = {
        { "counter_latencies=", "counters" },
        { "histogram_latencies=", "histograms" },
        { "summary_latencies=", "summaries" },
        { "summary_quantiles=", "quantiles" }
    };

    for (size_t i = 0; i < 4; i++) {
        size_t len = strlen(known[i][0]);

        if (strncmp(text, known[i][0], len) != 0) {
            continue;
        }
        *value = text + len;
        if (i < 3) {
            *value = strcmp(*value, "true") == 0 ? "on"
                : strcmp(*value, "false") == 0 ? "off" : NULL;
        } else if (!inf_quantiles_are_valid(*value)) {
            *value = NULL;
        }
        return *value != NULL ? known[i][1] : NULL;
    }

    return NULL;
}

void
check_restricted(const char *name, const char *value)
{
    restricted_t rule;

    restricted_parse(&rule, name, value);
}

/* Checks "backend,setting=value", or "setting=value" for all backends. */
void
check_backend_config(const char *name, const char *text)
{
    const char *comma = strchr(text, ',');
    const char *equals = strchr(text, '=');

    if (comma == text) {
        die("No backend specified. --%s option format is <backend name>,"
            "<setting>=<value> or <setting>=<value>. Got %s", name, text);
    }
    if (equals == NULL || equals == text || equals[1] == '\0'
        || (comma != NULL && equals == comma + 1))
    {
        die("--%s option format is '<backend name>,<setting>=<value>'. Got %s",
            name, text);
    }
}

/* Checks that the files exist: nginx's message would name the generated
   file. */
static void
check_tls(const options_t *o)
{
    const char *const files[] = { o->ssl_cert, o->ssl_key, o->ssl_root };
    const char *const names[] = { "cert", "key" };

    if (!options_tls(o)) {
        if (files[0] != NULL || files[1] != NULL || files[2] != NULL) {
            fputs("inference-server: --grpc-server-cert, --grpc-server-key "
                  "and --grpc-root-cert have no effect without "
                  "--grpc-use-ssl=true\n", stderr);
        }
        return;
    }

    for (size_t i = 0; i < 2; i++) {
        if (files[i] == NULL) {
            die("--grpc-use-ssl needs --grpc-server-%s", names[i]);
        }
    }
    if (o->ssl_mutual && o->ssl_root == NULL) {
        die("--grpc-use-ssl-mutual=true needs --grpc-root-cert");
    }
    for (size_t i = 0; i < 3; i++) {
        if (files[i] != NULL && strchr(files[i], '$') != NULL) {
            die("%s: nginx takes $ in the name of such a file for a variable",
                files[i]);
        }
        if (files[i] != NULL && access(files[i], R_OK) != 0) {
            die("cannot read %s: %s", files[i], strerror(errno));
        }
    }
}

bool
options_tls(const options_t *o)
{
    return o->ssl || options_given(o, "grpc-use-ssl-mutual");
}

static void
check_without_effect(const options_t *o)
{
    if (strcasecmp(o->log_format, "default") != 0) {
        fputs("inference-server: --log-format: the tables at the start have "
              "this format; of other lines the core's have it behind nginx's "
              "own time\n", stderr);
    }
    if (options_given(o, "grpc-keepalive-timeout")
        && !options_given(o, "grpc-keepalive-time"))
    {
        fputs("inference-server: --grpc-keepalive-timeout has no effect "
              "without --grpc-keepalive-time\n", stderr);
    }
}

/* Checks log levels: a level of nginx includes more severe lines. */
static void
check_log_levels(const options_t *o)
{
    const char *less = o->info ? "info" : "warning";

    if (!o->warning && o->info) {
        fputs("inference-server: --log-warning=false has no effect beside "
              "--log-info=true\n", stderr);
    }
    if (!o->error && (o->info || o->warning)) {
        fprintf(stderr, "inference-server: --log-error=false has no effect "
                "beside --log-%s=true\n", less);
    }
}

/* Checks "cache,setting=value", all of the same cache. */
static void
check_cache_config(const options_t *o)
{
    for (size_t i = 0; i < o->cache_configs.n; i++) {
        const char *first = o->cache_configs.value[0];
        const char *text = o->cache_configs.value[i];
        const char *comma = strchr(text, ',');
        const char *equals = strchr(text, '=');

        if (comma == NULL || comma == text) {
            die("No cache specified. --cache-config option format is <cache "
                "name>,<setting>=<value>. Got %s", text);
        }
        if (equals == NULL || equals <= comma + 1 || equals[1] == '\0') {
            die("--cache-config option format is '<cache name>,<setting>="
                "<value>'. Got %s", text);
        }
        if (strncmp(text, first, (size_t) (comma - text) + 1) != 0) {
            die("found multiple cache configurations, but only a single cache "
                "is currently supported (--cache-config=%s is another than "
                "\"%s\")", text, first);
        }
        if (strncmp(text, "local,size=", 11) == 0
            && size_read(text + 11) < INF_LOCAL_CACHE_MIN)
        {
            die("--cache-config=%s: size is bytes, or with k, m, g, from %d",
                text, INF_LOCAL_CACHE_MIN);
        }
    }
    if (o->cache_bytes != 0 && o->cache_configs.n != 0) {
        die("Error: Incompatible flags --response-cache-byte-size and "
            "--cache-config both provided. Please provide one or the other.");
    }
}

void
check_request_memory(const char *name, const char *text)
{
    if (size_read(text) < INF_MEMORY_MIN) {
        die("--%s is a size such as 512m, from 1m, not \"%s\"", name, text);
    }
}

void
check_control_from(const char *name, const char *list)
{
    char part[CONTROL_FROM_PART_MAX];

    if (control_from_check(list, part) != 0) {
        die("--%s is all, none, or a list of loopback, addresses "
            "and address/bits; \"%s\" in \"%s\" is none of these", name,
            part, list);
    }
}
