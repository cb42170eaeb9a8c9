#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/proto/core_options.h"
#include "die.h"
#include "option_check.h"

#define AT(field) offsetof(options_t, field)

typedef enum {
    KIND_TEXT,
    KIND_LIST,
    KIND_NUMBER,
    KIND_BOOL,
    KIND_VERBOSE,       /* a number, or true and false */
    KIND_IGNORED,       /* taken, and said to have no effect yet */
    KIND_LATER,         /* Triton knows it, this one not yet */
    KIND_FLAG           /* given or not, no value */
} kind_t;

typedef struct {
    const char *name;
    kind_t      kind;
    size_t      offset;             /* into options_t */
    long        min;
    long        max;
    const char *help;
} option_t;

static const option_t options_known[] = {
    { "model-repository", KIND_LIST, AT(repositories), 0, 0,
      "folder of models (repeatable; required, or AIP_STORAGE_URI)" },
    { "model-store", KIND_LIST, AT(repositories), 0, 0,
      "the same" },
    { "backend-directory", KIND_TEXT, AT(backends), 0, 0,
      "folder of backends (default: ours)" },
    { "repoagent-directory", KIND_TEXT, AT(agents), 0, 0,
      "folder of repository agents (default: ours)" },
    { "backend-config", KIND_LIST, AT(backend_configs), 0, 0,
      "[backend,]setting=value (repeatable)" },
    { "cache-config", KIND_LIST, AT(cache_configs), 0, 0,
      "cache,setting=value (repeatable, one cache: local,size=...)" },
    { "cache-directory", KIND_TEXT, AT(cache_directory), 0, 0,
      "folder of cache libraries (default: the built-in cache alone)" },
    { "response-cache-byte-size", KIND_NUMBER, AT(cache_bytes), 1, LONG_MAX,
      "the same as cache-config local,size=N" },
    { "http-address", KIND_TEXT, AT(http_address), 0, 0,
      "address of the REST service (0.0.0.0)" },
    { "http-port", KIND_NUMBER, AT(http_port), 1, 65535,
      "its port (8000)" },
    { "reuse-http-port", KIND_BOOL, AT(reuse_http_port), 0, 0,
      "share the port with other processes (false)" },
    { "http-thread-count", KIND_NUMBER, AT(workers), 1, 1024,
      "nginx worker processes (one per CPU)" },
    { "grpc-address", KIND_IGNORED, 0, 0, 0,
      "taken; gRPC is not served yet" },
    { "grpc-port", KIND_IGNORED, 0, 0, 0,
      "taken; gRPC is not served yet" },
    { "allow-metrics", KIND_BOOL, AT(metrics), 0, 0,
      "serve /metrics (true)" },
    { "metrics-address", KIND_TEXT, AT(metrics_address), 0, 0,
      "address of the metrics (the REST service's)" },
    { "metrics-port", KIND_NUMBER, AT(metrics_port), 1, 65535,
      "their port (8002)" },
    { "metrics-config", KIND_LIST, AT(metrics_configs), 0, 0,
      "counter_latencies=, histogram_latencies=, summary_latencies=true|false"
      " or summary_quantiles=Q:ERROR,... (repeatable)" },
    { "host-policy", KIND_LIST, AT(host_policies), 0, 0,
      "policy,numa-node=N or policy,cpu-cores=A-B,... (repeatable)" },
    { "model-control-mode", KIND_TEXT, AT(control_mode), 0, 0,
      "none, explicit or poll: who changes models at run time (none)" },
    { "load-model", KIND_LIST, AT(load_models), 0, 0,
      "explicit mode: loaded at the start, alone * is all (repeatable)" },
    { "exit-on-error", KIND_BOOL, AT(exit_on_error), 0, 0,
      "end when a model can't be loaded at the start (true)" },
    { "disable-auto-complete-config", KIND_FLAG, AT(strict_config), 0, 0,
      "backends complete no configuration" },
    { "strict-model-config", KIND_TEXT, AT(strict_model_config), 0, 0,
      "deprecated: true is the same" },
    { "cuda-memory-pool-byte-size", KIND_LIST, AT(cuda_pools), 0, 0,
      "gpu:bytes, memory on that GPU (67108864 each; repeatable)" },
    { "min-supported-compute-capability", KIND_TEXT, AT(min_capability), 0, 0,
      "GPUs below it are not used (6.0)" },
    { "model-load-gpu-limit", KIND_LIST, AT(gpu_limits), 0, 0,
      "gpu:fraction of its memory that models may fill (repeatable)" },
    { "rate-limit-resource", KIND_LIST, AT(rate_resources), 0, 0,
      "name:count[:device], so many copies exist (repeatable)" },
    { "log-verbose", KIND_VERBOSE, AT(verbose), 0, INT_MAX,
      "level of verbose lines, 0: none (0)" },
    { "log-info", KIND_BOOL, AT(info), 0, 0,
      "log informational lines (true)" },
    { "log-warning", KIND_BOOL, AT(warning), 0, 0, "log warnings (true)" },
    { "log-error", KIND_BOOL, AT(error), 0, 0, "log errors (true)" },
    { "exit-timeout-secs", KIND_NUMBER, AT(exit_timeout_secs), 0, 86400,
      "how long work in flight may take at the end (30)" },
    { "user", KIND_TEXT, AT(user), 0, 0,
      "root only: who workers, core and backends are (repository's owner)" },
    { "control-from", KIND_TEXT, AT(control_from), 0, 0,
      "who may load models, change trace and log settings: all, none, or a "
      "list of loopback, addresses and address/bits (loopback)" },
    { "allow-client-shm", KIND_BOOL, AT(client_shm), 0, 0,
      "taken; shared memory is not served yet (false)" },
    { "request-memory", KIND_TEXT, AT(request_memory), 0, 0,
      "memory for requests' bodies, of each worker: bytes, or with k, m, g "
      "(1g)" },

    { "allow-grpc", KIND_LATER, 0, 0, 0, NULL },
    { "allow-http", KIND_LATER, 0, 0, 0, NULL },
    { "allow-sagemaker", KIND_LATER, 0, 0, 0, NULL },
    { "allow-vertex-ai", KIND_LATER, 0, 0, 0, NULL },
    { "buffer-manager-thread-count", KIND_LATER, 0, 0, 0, NULL },
    { "cuda-virtual-address-size", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-header-forward-pattern", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-http2-max-ping-strikes", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-http2-max-pings-without-data", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-http2-min-recv-ping-interval-without-data", KIND_LATER, 0, 0, 0,
      NULL },
    { "grpc-infer-allocation-pool-size", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-infer-response-compression-level", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-infer-thread-count", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-keepalive-permit-without-calls", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-keepalive-time", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-keepalive-timeout", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-max-connection-age", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-max-connection-age-grace", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-max-response-pool-size", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-restricted-protocol", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-root-cert", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-server-cert", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-server-key", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-use-ssl", KIND_LATER, 0, 0, 0, NULL },
    { "grpc-use-ssl-mutual", KIND_LATER, 0, 0, 0, NULL },
    { "http-header-forward-pattern", KIND_LATER, 0, 0, 0, NULL },
    { "http-max-input-size", KIND_LATER, 0, 0, 0, NULL },
    { "http-restricted-api", KIND_LATER, 0, 0, 0, NULL },
    { "id", KIND_LATER, 0, 0, 0, NULL },
    { "log-file", KIND_LATER, 0, 0, 0, NULL },
    { "log-format", KIND_LATER, 0, 0, 0, NULL },
    { "reuse-grpc-port", KIND_LATER, 0, 0, 0, NULL },
    { "sagemaker-port", KIND_LATER, 0, 0, 0, NULL },
    { "sagemaker-safe-port-range", KIND_LATER, 0, 0, 0, NULL },
    { "sagemaker-thread-count", KIND_LATER, 0, 0, 0, NULL },
    { "trace-config", KIND_LATER, 0, 0, 0, NULL },
    { "trace-count", KIND_LATER, 0, 0, 0, NULL },
    { "trace-file", KIND_LATER, 0, 0, 0, NULL },
    { "trace-level", KIND_LATER, 0, 0, 0, NULL },
    { "trace-log-frequency", KIND_LATER, 0, 0, 0, NULL },
    { "trace-rate", KIND_LATER, 0, 0, 0, NULL },
    { "vertex-ai-default-model", KIND_LATER, 0, 0, 0, NULL },
    { "vertex-ai-port", KIND_LATER, 0, 0, 0, NULL },
    { "vertex-ai-thread-count", KIND_LATER, 0, 0, 0, NULL },
};

#define OPTIONS_N (sizeof(options_known) / sizeof(options_known[0]))

static void set_defaults(options_t *o);
static void parse(options_t *o, int argc, char **argv);
static void take_environment(options_t *o);
static void set(options_t *o, const option_t *option, const char *value);
static const option_t *find(const char *name, size_t len);
static size_t find_core(const char *name, size_t len);
static void set_core(options_t *o, size_t at, const char *value);
static void check_choice(const inf_core_option_t *option, const char *value);
static long parse_number(const char *name, long min, long max,
    const char *value);
static void check_text(const char *what, const char *text);
static void usage(void) __attribute__((noreturn));

void
options_take(options_t *o, int argc, char **argv)
{
    set_defaults(o);
    parse(o, argc, argv);
    take_environment(o);
    options_check(o);
}

static void
set_defaults(options_t *o)
{
    *o = (options_t) {
        .http_address = "0.0.0.0",
        .http_port = 8000,
        .metrics = true,
        .metrics_port = 8002,
        .control_mode = "none",
        .exit_on_error = true,
        .info = true,
        .warning = true,
        .error = true,
        .exit_timeout_secs = 30,
        .control_from = "loopback",
        .request_memory = "1g",
        .core = calloc(inf_core_options_count, sizeof(char *))
    };
    if (o->core == NULL) {
        die("out of memory");
    }
}

static void
parse(options_t *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];

        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            usage();
        }
        if (strncmp(word, "--", 2) != 0 || word[2] == '\0') {
            die("unexpected argument \"%s\"", word);
        }

        const char     *name = word + 2;
        const char     *equals = strchr(name, '=');
        size_t          len = equals ? (size_t) (equals - name) : strlen(name);
        const option_t *option = find(name, len);
        size_t          core = find_core(name, len);

        if (core < inf_core_options_count) {
            const char *value = equals ? equals + 1 : argv[++i];

            if (value == NULL) {
                die("option \"--%.*s\" needs a value", (int) len, name);
            }
            set_core(o, core, value);
            continue;
        }
        if (option == NULL) {
            die("unknown option \"--%.*s\"", (int) len, name);
        }
        if (option->kind == KIND_LATER) {
            die("option \"--%s\" is not supported yet", option->name);
        }
        if (option->kind == KIND_FLAG) {
            if (equals != NULL) {
                die("option \"--%s\" takes no value", option->name);
            }
            *(bool *) ((char *) o + option->offset) = true;
            continue;
        }

        const char *value = equals ? equals + 1 : argv[++i];

        if (value == NULL) {
            die("option \"--%s\" needs a value", option->name);
        }
        set(o, option, value);
    }
}

static const option_t *
find(const char *name, size_t len)
{
    for (size_t i = 0; i < OPTIONS_N; i++) {
        const char *known = options_known[i].name;

        if (strlen(known) == len && memcmp(known, name, len) == 0) {
            return &options_known[i];
        }
    }
    return NULL;
}

/* Those of the core that the table has; the number of rows: none. */
static size_t
find_core(const char *name, size_t len)
{
    size_t i = 0;

    for (; i < inf_core_options_count; i++) {
        const char *known = inf_core_options[i].option;

        if (known != NULL && strlen(known) == len
            && memcmp(known, name, len) == 0)
        {
            break;
        }
    }
    return i;
}

static void
usage(void)
{
    fputs("usage: inference-server --model-repository=FOLDER [options]\n\n",
          stderr);
    for (size_t i = 0; i < OPTIONS_N; i++) {
        if (options_known[i].help != NULL) {
            fprintf(stderr, "  --%-22s %s\n", options_known[i].name,
                    options_known[i].help);
        }
    }
    for (size_t i = 0; i < inf_core_options_count; i++) {
        if (inf_core_options[i].option != NULL) {
            fprintf(stderr, "  --%-22s %s\n", inf_core_options[i].option,
                    inf_core_options[i].help);
        }
    }
    exit(1);
}

static void
take_environment(options_t *o)
{
    const char *uri = getenv("AIP_STORAGE_URI");

    if (o->repositories.n == 0 && uri != NULL && uri[0] != '\0') {
        check_text("model-repository", uri);
        o->repositories.value[o->repositories.n++] = uri;
    }
}

static void
set(options_t *o, const option_t *option, const char *value)
{
    void *field = (char *) o + option->offset;

    switch (option->kind) {

    case KIND_TEXT:
        if (value[0] == '\0') {
            die("option \"--%s\" has an empty value", option->name);
        }
        check_text(option->name, value);
        *(const char **) field = value;
        return;

    case KIND_LIST: {
        list_t *list = field;

        if (list->n == MAX_REPEAT) {
            die("more than %d times \"--%s\"", MAX_REPEAT, option->name);
        }
        if (value[0] == '\0') {
            die("option \"--%s\" has an empty value", option->name);
        }
        check_text(option->name, value);
        list->value[list->n++] = value;
        return;
    }

    case KIND_NUMBER:
        *(long *) field = parse_number(option->name, option->min, option->max,
                                       value);
        return;

    case KIND_BOOL:
        *(bool *) field = option_bool(option->name, value);
        return;

    case KIND_VERBOSE:
        if (strcasecmp(value, "true") == 0 || strcasecmp(value, "false") == 0) {
            *(long *) field = strcasecmp(value, "true") == 0;
            return;
        }
        *(long *) field = parse_number(option->name, option->min, option->max,
                                       value);
        return;

    case KIND_IGNORED:
        fprintf(stderr, "inference-server: --%s: %s\n", option->name,
                option->help);
        return;

    case KIND_LATER:
    case KIND_FLAG:
        return;
    }
}

/* Kept as nginx.conf is to have it. */
static void
set_core(options_t *o, size_t at, const char *value)
{
    const inf_core_option_t *option = &inf_core_options[at];
    const char              *unit = option->unit != NULL ? option->unit : "";
    int64_t                  max = option->most != 0 ? option->most
                                                     : option->max;
    size_t                   size = strlen(value) + 8;
    char                    *text;

    if (value[0] == '\0' && (option->kind == INF_OPTION_CHOICE
        || option->kind == INF_OPTION_CONFIG_NAME))
    {
        die("option \"--%s\" has an empty value", option->option);
    }
    check_text(option->option, value);
    text = malloc(size);
    if (text == NULL) {
        die("out of memory");
    }

    switch (option->kind) {
    case INF_OPTION_FLAG:
        strcpy(text, option_bool(option->option, value) ? "on" : "off");
        break;
    case INF_OPTION_NUMBER:
    case INF_OPTION_TIME:
    case INF_OPTION_SIZE:
        snprintf(text, size, "%ld%s", parse_number(option->option,
                 (long) option->min, max != 0 ? (long) max : LONG_MAX, value),
                 unit);
        break;
    case INF_OPTION_CHOICE:
        check_choice(option, value);
        strcpy(text, value);
        break;
    default:
        strcpy(text, value);
        break;
    }
    o->core[at] = text;
}

/* words: "a b" or "a b c" */
static void
check_choice(const inf_core_option_t *option, const char *value)
{
    char        list[128] = "";
    const char *word = option->words;

    while (*word != '\0') {
        size_t len = strcspn(word, " ");
        size_t end = strlen(list);

        if (strlen(value) == len && memcmp(word, value, len) == 0) {
            return;
        }
        snprintf(list + end, sizeof(list) - end, "%s%.*s",
                 end == 0 ? "" : word[len] == '\0' ? " or " : ", ",
                 (int) len, word);
        word += len + (word[len] == ' ');
    }
    die("--%s is %s, not \"%s\"", option->option, list, value);
}

static long
parse_number(const char *name, long min, long max, const char *value)
{
    char *end;

    errno = 0;
    long number = strtol(value, &end, 10);

    if (end == value || *end != '\0' || errno != 0 || number < min
        || number > max)
    {
        die("option \"--%s\" is a number from %ld to %ld, not \"%s\"", name,
            min, max, value);
    }
    return number;
}

const char *
options_core(const options_t *o, const char *directive, const char *parameter)
{
    for (size_t i = 0; i < inf_core_options_count; i++) {
        const inf_core_option_t *option = &inf_core_options[i];
        bool same = parameter == NULL || option->parameter == NULL
            ? parameter == option->parameter
            : strcmp(option->parameter, parameter) == 0;

        if (o->core[i] != NULL && same
            && strcmp(option->directive, directive) == 0)
        {
            return o->core[i];
        }
    }
    return NULL;
}

/* A control character could not be written into nginx.conf and read back. */
static void
check_text(const char *what, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char) *c < 0x20 || *c == 0x7f) {
            die("option \"--%s\" has a control character in its value", what);
        }
    }
}

bool
option_bool(const char *name, const char *value)
{
    static const char *const yes[] = { "true", "on", "1" };
    static const char *const no[] = { "false", "off", "0" };

    for (size_t i = 0; i < 3; i++) {
        if (strcasecmp(value, yes[i]) == 0) {
            return true;
        }
        if (strcasecmp(value, no[i]) == 0) {
            return false;
        }
    }
    die("option \"--%s\" is true or false, not \"%s\"", name, value);
}

bool
options_strict(const options_t *o)
{
    return o->strict_config || (o->strict_model_config != NULL
        && option_bool("strict-model-config", o->strict_model_config));
}
