#include "option_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "control_from.h"
#include "die.h"

static void check_each(const list_t *list, void (*check)(const char *text));
static void check_repositories(const options_t *o);
static void check_auto_complete(const options_t *o);
static void check_model_control(const options_t *o);
static void check_addresses(const options_t *o);
static void check_address(const char *name, const char *text);
static void check_host_policy(const char *text);
static void check_metrics_config(const char *text);
static void check_backend_config(const char *text);
static void check_cache_config(const options_t *o);
static void check_cuda_pool(const char *text);
static void check_gpu_limit(const char *text);
static void check_capability(const char *text);
static void check_rate_resource(const char *text);
static void check_size(const char *name, const char *text);
static void check_control_from(const char *list);

void
options_check(const options_t *o)
{
    check_repositories(o);
    check_auto_complete(o);
    check_model_control(o);
    check_addresses(o);
    check_each(&o->host_policies, check_host_policy);
    check_each(&o->metrics_configs, check_metrics_config);
    check_each(&o->backend_configs, check_backend_config);
    check_cache_config(o);
    check_each(&o->cuda_pools, check_cuda_pool);
    check_each(&o->gpu_limits, check_gpu_limit);
    check_each(&o->rate_resources, check_rate_resource);
    if (o->min_capability != NULL) {
        check_capability(o->min_capability);
    }
    check_size("request-memory", o->request_memory);
    check_control_from(o->control_from);
    if (o->client_shm) {
        fputs("inference-server: --allow-client-shm: shared memory is not "
              "served yet\n", stderr);
    }
}

static void
check_each(const list_t *list, void (*check)(const char *text))
{
    for (size_t i = 0; i < list->n; i++) {
        check(list->value[i]);
    }
}

static void
check_repositories(const options_t *o)
{
    if (o->repositories.n == 0) {
        die("--model-repository must be given");
    }

    const char *name = options_core(o, "inference_model_config_name", NULL);

    if (name != NULL && (strchr(name, '/') != NULL || strlen(name) > 249)) {
        die("--model-config-name is the name of a file in configs/ without "
            ".pbtxt, not \"%s\"", name);
    }
    if (o->agents != NULL && o->agents[0] == '\0') {
        die("--repoagent-directory must not be empty");
    }
}

static void
check_auto_complete(const options_t *o)
{
    if (o->strict_model_config != NULL) {
        fputs("inference-server: '--strict-model-config' has been deprecated!"
              " Please use '--disable-auto-complete-config' instead.\n",
              stderr);
        if (!option_bool("strict-model-config", o->strict_model_config)
            && o->strict_config)
        {
            fputs("inference-server: --strict-model-config=false does nothing"
                  " beside --disable-auto-complete-config\n", stderr);
        }
    }
}

static void
check_model_control(const options_t *o)
{
    if (strcasecmp(o->control_mode, "none") != 0
        && strcasecmp(o->control_mode, "explicit") != 0
        && strcasecmp(o->control_mode, "poll") != 0)
    {
        die("--model-control-mode is none, explicit or poll, not \"%s\"",
            o->control_mode);
    }
    if (o->load_models.n != 0 && strcasecmp(o->control_mode, "explicit") != 0)
    {
        die("use of --load-model requires setting "
            "--model-control-mode=explicit as well");
    }
    for (size_t i = 0; o->load_models.n > 1 && i < o->load_models.n; i++) {
        if (strcmp(o->load_models.value[i], "*") == 0) {
            die("wildcard model name '*' must be the only --load-model if "
                "specified at all");
        }
    }
}

static void
check_addresses(const options_t *o)
{
    check_address("http-address", o->http_address);
    if (o->metrics_address != NULL) {
        check_address("metrics-address", o->metrics_address);
    }
    if (o->metrics && o->metrics_port == o->http_port) {
        die("--metrics-port and --http-port are both %ld", o->http_port);
    }
}

static void
check_address(const char *name, const char *text)
{
    if (strpbrk(text, "\"\\ \t;{}'/") != NULL) {
        die("--%s is an address, not \"%s\"", name, text);
    }
}

/* "policy,setting=value"; nginx looks at the value. */
static void
check_host_policy(const char *text)
{
    const char *comma = strchr(text, ',');
    const char *equals = comma != NULL ? strchr(comma, '=') : NULL;

    if (equals == NULL || comma == text || equals == comma + 1
        || equals[1] == '\0' || strpbrk(text, "\"\\ \t;{}'$") != NULL
        || memchr(text, '=', (size_t) (comma - text)) != NULL)
    {
        die("--host-policy is policy,setting=value, not \"%s\"", text);
    }
}

static void
check_metrics_config(const char *text)
{
    const char *value;

    metrics_setting(text, &value);
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
        if (i == 3) {
            if (**value == '\0'
                || strspn(*value, "0123456789.:,") != strlen(*value))
            {
                die("--metrics-config=%s: quantiles are Q:ERROR,...", text);
            }
        } else if (strcmp(*value, "true") == 0 || strcmp(*value, "false") == 0)
        {
            *value = strcmp(*value, "true") == 0 ? "on" : "off";
        } else {
            die("--metrics-config=%s: true or false is expected", text);
        }
        return known[i][1];
    }

    die("--metrics-config=%s: known are counter_latencies, "
        "histogram_latencies, summary_latencies and summary_quantiles", text);
}

/* "backend,setting=value", or "setting=value" for all backends */
static void
check_backend_config(const char *text)
{
    const char *comma = strchr(text, ',');
    const char *equals = strchr(text, '=');

    if (equals == NULL) {
        die("--backend-config is [backend,]setting=value, not \"%s\"", text);
    }
    if (equals == text || comma == text || equals == comma + 1) {
        die("--backend-config=%s: a name is missing", text);
    }
    if (strpbrk(text, "\"\\ \t;{}'") != NULL) {
        die("--backend-config=%s: quotes, blanks and braces are not "
            "supported", text);
    }
}

/* "cache,setting=value", all of one cache */
static void
check_cache_config(const options_t *o)
{
    const char *first = o->cache_configs.value[0];

    for (size_t i = 0; i < o->cache_configs.n; i++) {
        const char *text = o->cache_configs.value[i];
        const char *comma = strchr(text, ',');
        const char *equals = strchr(text, '=');

        if (comma == NULL || equals == NULL || comma == text
            || equals <= comma + 1)
        {
            die("--cache-config is cache,setting=value, not \"%s\"", text);
        }
        if (strpbrk(text, "\"\\ \t;{}'$") != NULL) {
            die("--cache-config=%s: quotes, blanks, braces and $ are not "
                "supported", text);
        }
        if (strncmp(text, first, (size_t) (comma - text) + 1) != 0) {
            die("--cache-config=%s: a server has one cache, and \"%s\" is "
                "another", text, first);
        }
    }
    if (o->cache_bytes != 0 && o->cache_configs.n != 0) {
        die("--response-cache-byte-size and --cache-config can't both be "
            "given");
    }
}

static void
check_cuda_pool(const char *text)
{
    const char *bytes = after_gpu("cuda-memory-pool-byte-size", text,
                                  NULL);

    if (bytes[0] == '\0' || strlen(bytes) > 18
        || strspn(bytes, "0123456789") != strlen(bytes))
    {
        die("--cuda-memory-pool-byte-size is gpu:bytes, not \"%s\"",
            text);
    }
}

static void
check_gpu_limit(const char *text)
{
    const char *fraction = after_gpu("model-load-gpu-limit", text, NULL);
    char       *end;
    double      value = strtod(fraction, &end);

    if (strspn(fraction, "0123456789.") != strlen(fraction)
        || end == fraction || *end != '\0' || value < 0 || value > 1)
    {
        die("--model-load-gpu-limit expects limit fraction to be in "
            "range [0.0, 1.0], got \"%s\"", text);
    }
}

const char *
after_gpu(const char *name, const char *text, long *gpu)
{
    size_t digits = strspn(text, "0123456789");

    if (digits == 0 || digits > 6 || text[digits] != ':') {
        die("--%s begins with a GPU's number and a colon, not \"%s\"", name,
            text);
    }
    if (gpu != NULL) {
        *gpu = strtol(text, NULL, 10);
    }
    return text + digits + 1;
}

bool
later_for_gpu(const list_t *list, size_t at)
{
    long gpu, other;

    after_gpu("", list->value[at], &gpu);
    for (size_t i = at + 1; i < list->n; i++) {
        after_gpu("", list->value[i], &other);
        if (other == gpu) {
            return true;
        }
    }
    return false;
}

/* "name:count" or "name:count:device" */
static void
check_rate_resource(const char *text)
{
    size_t name = strcspn(text, ":");
    const char *count = text + name + (text[name] == ':');
    size_t digits = strspn(count, "0123456789");
    const char *device = count + digits + (count[digits] == ':');
    size_t device_digits = strspn(device, "0123456789");

    if (name == 0 || digits == 0 || digits > 18 || device_digits > 9
        || device[device_digits] != '\0'
        || (count[digits] == ':' && device_digits == 0))
    {
        die("--rate-limit-resource=%s: --rate-limit-resource option format is "
            "'<resource_name>:<count>:<device>' or '<resource_name>:<count>'",
            text);
    }
    if (strtoll(count, NULL, 10) == 0) {
        die("--rate-limit-resource=%s: the count is at least 1", text);
    }
    if (strpbrk(text, "\"\\") != NULL) {
        die("--rate-limit-resource=%s: quotes and backslashes are not "
            "supported", text);
    }
}

static void
check_capability(const char *text)
{
    char *end;

    strtod(text, &end);
    if (strspn(text, "0123456789.") != strlen(text) || end == text
        || *end != '\0' || strlen(text) > 6)
    {
        die("--min-supported-compute-capability is a number such as 7.5, not "
            "\"%s\"", text);
    }
}

/* As nginx writes sizes; it looks at the least one. */
static void
check_size(const char *name, const char *text)
{
    size_t digits = strspn(text, "0123456789");

    if (digits == 0 || digits > 15 || strlen(text) > digits + 1
        || (text[digits] != '\0' && strchr("kKmMgG", text[digits]) == NULL))
    {
        die("--%s is a size such as 512m, not \"%s\"", name, text);
    }
}

static void
check_control_from(const char *list)
{
    char part[CONTROL_FROM_PART_MAX];

    if (control_from_check(list, part) != 0) {
        die("--control-from is all, none, or a list of loopback, addresses "
            "and address/bits; \"%s\" in \"%s\" is none of these", part,
            list);
    }
}
