/*
 * inference-server.c - takes tritonserver's command line and runs nginx.
 *
 * It writes the nginx.conf that the options mean into a folder of its own,
 * runs nginx in the foreground and ends with nginx's status.  SIGTERM and
 * SIGINT become a graceful stop, a second one an immediate stop; SIGHUP and
 * SIGUSR1 are handed on.  nginx ends when this program is killed.
 */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "control_from.h"
#include "first_load.h"
#include "run_as.h"

#define MAX_REPEAT 64       /* values of one repeatable option */
#define MAX_CONNECTIONS 8192ul      /* of one nginx worker */
#define GRACE_SECS 5        /* on top of exit-timeout-secs, then SIGTERM */
#define OWN_SOCKET "launcher.sock"
#define TEMPS 5             /* temporary directories of nginx's workers */
#define LOOK_NS 200000000   /* between two looks at the first loads */

typedef struct {
    const char *value[MAX_REPEAT];
    size_t      n;
} list_t;

typedef struct {
    list_t      repositories;
    list_t      backend_configs;
    list_t      load_models;
    list_t      host_policies;
    list_t      metrics_configs;
    list_t      cuda_pools;
    list_t      gpu_limits;
    const char *rate_limit;
    list_t      rate_resources;
    const char *min_capability;
    long        pinned_pool;        /* bytes */
    list_t      cache_configs;
    const char *cache_directory;
    long        cache_bytes;        /* deprecated option; 0: not given */
    const char *backends;
    const char *agents;             /* NULL: ours */
    const char *http_address;
    long        http_port;
    bool        reuse_http_port;
    bool        strict_config;
    bool        strict_readiness;
    bool        metrics;
    bool        cpu_metrics;
    bool        gpu_metrics;
    const char *metrics_address;    /* NULL: the REST service's */
    long        metrics_port;
    long        metrics_interval_ms;
    long        workers;            /* 0: one per CPU */
    const char *control_mode;
    long        poll_secs;
    bool        namespacing;
    const char *config_name;        /* NULL: config.pbtxt */
    long        load_threads;
    long        load_retries;
    bool        exit_on_error;
    bool        peer_access;
    const char *strict_model_config;    /* deprecated; NULL: not given */
    long        verbose;
    bool        info;
    bool        warning;
    bool        error;
    long        exit_timeout_secs;
    const char *user;               /* NULL: the repository's owner          */
    const char *control_from;
    const char *request_memory;     /* in nginx's units                      */
    bool        code_upload;
    bool        client_shm;
} options_t;

typedef enum {
    KIND_TEXT,
    KIND_LIST,
    KIND_NUMBER,
    KIND_BOOL,
    KIND_VERBOSE,       /* a number, or true and false */
    KIND_IGNORED,       /* taken, and said to have no effect yet */
    KIND_LATER,         /* the original knows it, this one not yet */
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

/* Directories that this program makes and removes. */
typedef struct {
    char own[PATH_MAX];             /* nginx.conf, pid, socket; mode 0700    */
    char temp[PATH_MAX];            /* holds the workers' temporary
                                       directories, and is never theirs: nginx
                                       makes these as root, in a directory of
                                       theirs it would follow their links    */
} places_t;

/* Where the built or installed pieces are. */
typedef struct {
    char nginx[PATH_MAX];
    char module[PATH_MAX];
    char core[PATH_MAX];
    char backends[PATH_MAX];
} pieces_t;

#define AT(field) offsetof(options_t, field)

static const char *const temps[TEMPS] = {
    "client_body", "proxy", "fastcgi", "uwsgi", "scgi"
};

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
    { "allow-cpu-metrics", KIND_BOOL, AT(cpu_metrics), 0, 0,
      "with those of CPU and memory (true)" },
    { "allow-gpu-metrics", KIND_BOOL, AT(gpu_metrics), 0, 0,
      "with those of GPUs (true)" },
    { "metrics-address", KIND_TEXT, AT(metrics_address), 0, 0,
      "address of the metrics (the REST service's)" },
    { "metrics-port", KIND_NUMBER, AT(metrics_port), 1, 65535,
      "their port (8002)" },
    { "metrics-interval-ms", KIND_NUMBER, AT(metrics_interval_ms), 1, INT_MAX,
      "how old the gauges of the machine may be (2000)" },
    { "metrics-config", KIND_LIST, AT(metrics_configs), 0, 0,
      "counter_latencies=, histogram_latencies=, summary_latencies=true|false"
      " or summary_quantiles=Q:ERROR,... (repeatable)" },
    { "host-policy", KIND_LIST, AT(host_policies), 0, 0,
      "policy,numa-node=N or policy,cpu-cores=A-B,... (repeatable)" },
    { "model-control-mode", KIND_TEXT, AT(control_mode), 0, 0,
      "none, explicit or poll: who changes models at run time (none)" },
    { "load-model", KIND_LIST, AT(load_models), 0, 0,
      "explicit mode: loaded at the start, alone * is all (repeatable)" },
    { "repository-poll-secs", KIND_NUMBER, AT(poll_secs), 0, 86400,
      "poll mode: seconds between two looks, 0: never (15)" },
    { "model-namespacing", KIND_BOOL, AT(namespacing), 0, 0,
      "equal names in two repositories are two models (false)" },
    { "model-config-name", KIND_TEXT, AT(config_name), 0, 0,
      "configs/NAME.pbtxt is read where a model has it" },
    { "model-load-thread-count", KIND_NUMBER, AT(load_threads), 1, 128,
      "models loaded at once (4)" },
    { "model-load-retry-count", KIND_NUMBER, AT(load_retries), 0, 1000,
      "further tries of a model that failed to load (0)" },
    { "exit-on-error", KIND_BOOL, AT(exit_on_error), 0, 0,
      "end when a model can't be loaded at the start (true)" },
    { "enable-peer-access", KIND_BOOL, AT(peer_access), 0, 0,
      "GPUs reach each other's memory directly (true)" },
    { "disable-auto-complete-config", KIND_FLAG, AT(strict_config), 0, 0,
      "backends complete no configuration" },
    { "strict-model-config", KIND_TEXT, AT(strict_model_config), 0, 0,
      "deprecated: true is the same" },
    { "strict-readiness", KIND_BOOL, AT(strict_readiness), 0, 0,
      "ready only if all models are (true)" },
    { "pinned-memory-pool-byte-size", KIND_NUMBER, AT(pinned_pool), 0,
      LONG_MAX, "pinned memory of the core (268435456)" },
    { "cuda-memory-pool-byte-size", KIND_LIST, AT(cuda_pools), 0, 0,
      "gpu:bytes, memory on that GPU (67108864 each; repeatable)" },
    { "min-supported-compute-capability", KIND_TEXT, AT(min_capability), 0, 0,
      "GPUs below it are not used (6.0)" },
    { "model-load-gpu-limit", KIND_LIST, AT(gpu_limits), 0, 0,
      "gpu:fraction of its memory that models may fill (repeatable)" },
    { "rate-limit", KIND_TEXT, AT(rate_limit), 0, 0,
      "off or execution_count: wait for resources (off)" },
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
    { "allow-code-upload", KIND_BOOL, AT(code_upload), 0, 0,
      "files of a load request may be code (false)" },
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

static void options_parse(options_t *o, int argc, char **argv);
static void take_environment(options_t *o);
static void options_set(options_t *o, const option_t *option,
    const char *value);
static void options_check(const options_t *o);
static const option_t *options_find(const char *name, size_t len);
static bool is_strict(const options_t *o);
static bool parse_bool(const char *name, const char *value);
static long parse_number(const option_t *option, const char *value);
static void check_backend_config(const char *text);
static void check_address(const char *name, const char *text);
static void check_host_policy(const char *text);
static const char *metrics_setting(const char *text, const char **value);
static void check_capability(const char *text);
static const char *after_gpu(const char *name, const char *text, long *gpu);
static bool later_for_gpu(const list_t *list, size_t at);
static void check_cache_config(const options_t *o);
static void check_rate_resource(const char *text);
static void check_path_text(const char *what, const char *text);
static void check_size(const char *name, const char *text);
static void check_control_from(const char *list);

static void places_make(places_t *places, const run_as_t *who);
static void place_make(char *path, const char *tmp, const char *suffix);
static void places_remove(const places_t *places, const run_as_t *who);
static void temp_path(char *path, const places_t *places, size_t i);
static void place_remove(const char *path);

static void pieces_find(pieces_t *p);
static bool pieces_in(pieces_t *p, const char *dir);
static bool find_nginx(char *out);

static void write_config(const places_t *places, const options_t *o,
    const pieces_t *p, const run_as_t *who);
static unsigned long connections(void);
static void write_model_control(FILE *f, const options_t *o);
static void write_quoted(FILE *f, const char *text);
static void write_quoted_word(FILE *f, const char *text);
static void write_backend_config(FILE *f, const char *text);
static void write_host_policy(FILE *f, const char *text);
static void write_cache(FILE *f, const options_t *o);
static void write_rate_limit(FILE *f, const options_t *o);
static void write_metrics(FILE *f, const options_t *o);
static void write_server(FILE *f, const options_t *o);
static void write_control(FILE *f, const options_t *o);
static void write_own_server(FILE *f, const char *dir);
static void write_listen(FILE *f, const char *address, long port, bool reuse);
static void write_memory(FILE *f, const options_t *o);

static pid_t spawn_nginx(const char *dir, const pieces_t *p,
    const sigset_t *old);
static bool any_far(const options_t *o);
static int wait_for_nginx(pid_t nginx, const sigset_t *signals,
    const options_t *o, const char *dir);
static int next_signal(const sigset_t *signals, bool stopping, bool looking,
    const options_t *o);
static int remove_entry(const char *path, const struct stat *st, int type,
    struct FTW *ftw);

static void usage(void);
static void die(const char *fmt, ...)
    __attribute__((noreturn, format(printf, 1, 2)));

int
main(int argc, char **argv)
{
    options_t options = {
        .http_address = "0.0.0.0",
        .http_port = 8000,
        .strict_readiness = true,
        .metrics = true,
        .cpu_metrics = true,
        .gpu_metrics = true,
        .metrics_port = 8002,
        .metrics_interval_ms = 2000,
        .control_mode = "none",
        .poll_secs = 15,
        .load_threads = 4,
        .exit_on_error = true,
        .peer_access = true,
        .rate_limit = "off",
        .pinned_pool = 268435456,
        .info = true,
        .warning = true,
        .error = true,
        .exit_timeout_secs = 30,
        .control_from = "loopback",
        .request_memory = "1g",
    };
    pieces_t pieces;
    places_t places;
    run_as_t who;
    char     why[512];

    options_parse(&options, argc, argv);
    take_environment(&options);
    options_check(&options);
    pieces_find(&pieces);

    if (run_as_find(&who, options.user, options.repositories.value,
                    options.repositories.n, why, sizeof(why)) != 0)
    {
        die("%s", why);
    }

    places_make(&places, &who);
    if (options.exit_on_error && strlen(places.own) + sizeof("/" OWN_SOCKET)
        > sizeof(((struct sockaddr_un *) 0)->sun_path))
    {
        fprintf(stderr, "inference-server: --exit-on-error has no effect: "
                "the path of TMPDIR is too long for a socket\n");
        options.exit_on_error = false;
    }
    write_config(&places, &options, &pieces, &who);

    sigset_t signals, old;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, &old);

    pid_t nginx = spawn_nginx(places.own, &pieces, &old);
    int   status = wait_for_nginx(nginx, &signals, &options, places.own);

    places_remove(&places, &who);
    return status;
}

static void
options_parse(options_t *o, int argc, char **argv)
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
        const option_t *option = options_find(name, len);

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
        options_set(o, option, value);
    }
}

static const option_t *
options_find(const char *name, size_t len)
{
    for (size_t i = 0; i < OPTIONS_N; i++) {
        const char *known = options_known[i].name;

        if (strlen(known) == len && memcmp(known, name, len) == 0) {
            return &options_known[i];
        }
    }
    return NULL;
}

static void
take_environment(options_t *o)
{
    const char *uri = getenv("AIP_STORAGE_URI");

    if (o->repositories.n == 0 && uri != NULL && uri[0] != '\0') {
        check_path_text("model-repository", uri);
        o->repositories.value[o->repositories.n++] = uri;
    }
}

static void
options_set(options_t *o, const option_t *option, const char *value)
{
    void *field = (char *) o + option->offset;

    switch (option->kind) {

    case KIND_TEXT:
        if (value[0] == '\0') {
            die("option \"--%s\" has an empty value", option->name);
        }
        check_path_text(option->name, value);
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
        check_path_text(option->name, value);
        list->value[list->n++] = value;
        return;
    }

    case KIND_NUMBER:
        *(long *) field = parse_number(option, value);
        return;

    case KIND_BOOL:
        *(bool *) field = parse_bool(option->name, value);
        return;

    case KIND_VERBOSE:
        if (strcasecmp(value, "true") == 0 || strcasecmp(value, "false") == 0) {
            *(long *) field = strcasecmp(value, "true") == 0;
            return;
        }
        *(long *) field = parse_number(option, value);
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

static bool
is_strict(const options_t *o)
{
    return o->strict_config || (o->strict_model_config != NULL
        && parse_bool("strict-model-config", o->strict_model_config));
}

static bool
parse_bool(const char *name, const char *value)
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

static long
parse_number(const option_t *option, const char *value)
{
    char *end;

    errno = 0;
    long number = strtol(value, &end, 10);

    if (end == value || *end != '\0' || errno != 0 || number < option->min
        || number > option->max)
    {
        die("option \"--%s\" is a number from %ld to %ld, not \"%s\"",
            option->name, option->min, option->max, value);
    }
    return number;
}

/* A control character could not be written into nginx.conf and read back. */
static void
check_path_text(const char *what, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char) *c < 0x20 || *c == 0x7f) {
            die("option \"--%s\" has a control character in its value", what);
        }
    }
}

static void
options_check(const options_t *o)
{
    if (o->repositories.n == 0) {
        die("--model-repository must be given");
    }
    if (o->strict_model_config != NULL) {
        fputs("inference-server: '--strict-model-config' has been deprecated!"
              " Please use '--disable-auto-complete-config' instead.\n",
              stderr);
        if (!parse_bool("strict-model-config", o->strict_model_config)
            && o->strict_config)
        {
            fputs("inference-server: --strict-model-config=false does nothing"
                  " beside --disable-auto-complete-config\n", stderr);
        }
    }
    if (o->config_name != NULL && (strchr(o->config_name, '/') != NULL
        || strlen(o->config_name) > 249))
    {
        die("--model-config-name is the name of a file in configs/ without "
            ".pbtxt, not \"%s\"", o->config_name);
    }
    if (o->agents != NULL && o->agents[0] == '\0') {
        die("--repoagent-directory must not be empty");
    }
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
    check_address("http-address", o->http_address);
    if (o->metrics_address != NULL) {
        check_address("metrics-address", o->metrics_address);
    }
    if (o->metrics && o->metrics_port == o->http_port) {
        die("--metrics-port and --http-port are both %ld", o->http_port);
    }
    for (size_t i = 0; i < o->host_policies.n; i++) {
        check_host_policy(o->host_policies.value[i]);
    }
    for (size_t i = 0; i < o->metrics_configs.n; i++) {
        const char *value;

        metrics_setting(o->metrics_configs.value[i], &value);
    }
    for (size_t i = 0; i < o->backend_configs.n; i++) {
        check_backend_config(o->backend_configs.value[i]);
    }
    check_cache_config(o);
    for (size_t i = 0; i < o->cuda_pools.n; i++) {
        const char *text = o->cuda_pools.value[i];
        const char *bytes = after_gpu("cuda-memory-pool-byte-size", text,
                                      NULL);

        if (bytes[0] == '\0' || strlen(bytes) > 18
            || strspn(bytes, "0123456789") != strlen(bytes))
        {
            die("--cuda-memory-pool-byte-size is gpu:bytes, not \"%s\"",
                text);
        }
    }
    for (size_t i = 0; i < o->gpu_limits.n; i++) {
        const char *text = o->gpu_limits.value[i];
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
    if (strcmp(o->rate_limit, "off") != 0
        && strcmp(o->rate_limit, "execution_count") != 0)
    {
        die("--rate-limit is off or execution_count, not \"%s\"",
            o->rate_limit);
    }
    for (size_t i = 0; i < o->rate_resources.n; i++) {
        check_rate_resource(o->rate_resources.value[i]);
    }
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

/* The part of text behind its GPU's number. */
static const char *
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

/* The last word on a GPU counts. */
static bool
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

/* The parameter of inference_metrics, and its value, that a metrics-config
   means. */
static const char *
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

/* The pieces lie beside this program, or where `make install` puts them. */
static void
pieces_find(pieces_t *p)
{
    char    self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (n < 0) {
        die("cannot find this program: %s", strerror(errno));
    }
    self[n] = '\0';

    char *dir = dirname(self);
    char  lib[PATH_MAX + 32];

    snprintf(lib, sizeof(lib), "%s/../lib/nginx-inference", dir);
    if (!pieces_in(p, dir) && !pieces_in(p, lib)) {
        die("ngx_http_inference_module.so and inference-core are neither in "
            "%s nor in %s", dir, lib);
    }
    if (!find_nginx(p->nginx)) {
        die("no nginx: not in $INFERENCE_NGINX, on the PATH, nor in "
            "/usr/sbin");
    }
}

static bool
pieces_in(pieces_t *p, const char *dir)
{
    char path[PATH_MAX + 64];

    snprintf(path, sizeof(path), "%s/ngx_http_inference_module.so", dir);
    if (realpath(path, p->module) == NULL) {
        return false;
    }
    snprintf(path, sizeof(path), "%s/inference-core", dir);
    if (realpath(path, p->core) == NULL) {
        return false;
    }
    snprintf(path, sizeof(path), "%s/backends", dir);
    return realpath(path, p->backends) != NULL;
}

static bool
find_nginx(char *out)
{
    const char *named = getenv("INFERENCE_NGINX");

    if (named != NULL && named[0] != '\0') {
        return realpath(named, out) != NULL && access(out, X_OK) == 0;
    }

    const char *path = getenv("PATH");
    char       *dirs;

    if (asprintf(&dirs, "%s:/usr/sbin:/usr/local/sbin",
                 path != NULL ? path : "") < 0)
    {
        die("out of memory");
    }

    bool  found = false;
    char *rest = dirs;
    char *dir;

    while (!found && (dir = strsep(&rest, ":")) != NULL) {
        char name[PATH_MAX];

        if (snprintf(name, sizeof(name), "%s/nginx", dir)
                < (int) sizeof(name)
            && dir[0] == '/' && access(name, X_OK) == 0)
        {
            found = realpath(name, out) != NULL;
        }
    }
    free(dirs);
    return found;
}

static void
places_make(places_t *places, const run_as_t *who)
{
    const char *tmp = getenv("TMPDIR");

    if (tmp == NULL || tmp[0] == '\0') {
        tmp = "/tmp";
    }

    place_make(places->own, tmp, "");
    place_make(places->temp, tmp, "temp-");
    if (who->changes && chmod(places->temp, 0711) != 0) {
        die("cannot open %s to user %s: %s", places->temp, who->user,
            strerror(errno));
    }
}

static void
place_make(char *path, const char *tmp, const char *suffix)
{
    int n = snprintf(path, PATH_MAX, "%s/inference-server-%sXXXXXX", tmp,
                     suffix);

    if (n >= PATH_MAX || mkdtemp(path) == NULL) {
        die("cannot make a directory %s: %s", path, strerror(errno));
    }
}

/* The content of the workers' directories is removed as their user: a link
   that a worker puts there meanwhile leads root nowhere. */
static void
places_remove(const places_t *places, const run_as_t *who)
{
    char path[PATH_MAX];

    if (who->changes && seteuid(who->uid) == 0) {
        for (size_t i = 0; i < TEMPS; i++) {
            temp_path(path, places, i);
            place_remove(path);
        }
        if (seteuid(0) != 0) {
            return;
        }
        for (size_t i = 0; i < TEMPS; i++) {
            temp_path(path, places, i);
            rmdir(path);
        }
        rmdir(places->temp);

    } else if (!who->changes) {
        place_remove(places->temp);
    }

    place_remove(places->own);
}

static void
temp_path(char *path, const places_t *places, size_t i)
{
    int n = snprintf(path, PATH_MAX, "%s/%s", places->temp, temps[i]);

    if (n >= PATH_MAX) {
        die("the path of %s is too long", places->temp);
    }
}

static void
place_remove(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void
write_config(const places_t *places, const options_t *o, const pieces_t *p,
    const run_as_t *who)
{
    const char *dir = places->own;
    char        path[PATH_MAX + 16];

    snprintf(path, sizeof(path), "%s/nginx.conf", dir);

    FILE *f = fopen(path, "we");

    if (f == NULL) {
        die("cannot write %s: %s", path, strerror(errno));
    }

    const char *level = o->info ? "info" : o->warning ? "warn" : "error";

    fputs("load_module ", f);
    write_quoted(f, p->module);
    fprintf(f, ";\ndaemon off;\npid %s/nginx.pid;\n", dir);
    fprintf(f, "error_log stderr %s;\n",
            !o->error ? "crit" : o->info ? "notice" : level);

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
    fputs("http {\n"
          "    access_log off;\n"
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
    write_model_control(f, o);
    if (is_strict(o)) {
        fputs("    inference_auto_complete off;\n", f);
    }
    write_memory(f, o);
    write_cache(f, o);
    fprintf(f, "    inference_log %s verbose=%ld;\n", level, o->verbose);
    for (size_t i = 0; i < o->host_policies.n; i++) {
        write_host_policy(f, o->host_policies.value[i]);
    }
    write_rate_limit(f, o);
    write_metrics(f, o);
    write_server(f, o);
    if (o->exit_on_error) {
        write_own_server(f, dir);
    }
    fputs("}\n", f);

    if (ferror(f) || fclose(f) != 0) {
        die("cannot write %s: %s", path, strerror(errno));
    }
}

static void
write_model_control(FILE *f, const options_t *o)
{
    if (strcasecmp(o->control_mode, "explicit") == 0) {
        fputs("    inference_model_control explicit;\n", f);

    } else if (strcasecmp(o->control_mode, "poll") == 0) {
        fprintf(f, "    inference_model_control poll interval=%lds;\n",
                o->poll_secs);
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
    fprintf(f, "    inference_strict_readiness %s;\n"
            "    inference_model_namespacing %s;\n"
            "    inference_model_load threads=%ld retries=%ld;\n"
            "    inference_code_upload %s;\n",
            o->strict_readiness ? "on" : "off", o->namespacing ? "on" : "off",
            o->load_threads, o->load_retries, o->code_upload ? "on" : "off");
    if (o->config_name != NULL) {
        fputs("    inference_model_config_name ", f);
        write_quoted_word(f, o->config_name);
        fputs(";\n", f);
    }
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
write_memory(FILE *f, const options_t *o)
{
    fprintf(f, "    inference_peer_access %s;\n"
            "    inference_memory %s pinned=%ld",
            o->peer_access ? "on" : "off", o->request_memory, o->pinned_pool);
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

static void
write_host_policy(FILE *f, const char *text)
{
    const char *comma = strchr(text, ',');

    fprintf(f, "    inference_host_policy %.*s %s;\n", (int) (comma - text),
            text, comma + 1);
}

static void
write_rate_limit(FILE *f, const options_t *o)
{
    fprintf(f, "    inference_rate_limit %s;\n", o->rate_limit);
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

    fprintf(f, "    inference_metrics interval=%ldms cpu=%s gpu=%s",
            o->metrics_interval_ms, o->cpu_metrics ? "on" : "off",
            o->gpu_metrics ? "on" : "off");
    for (size_t i = 0; i < list->n; i++) {
        const char *value, *other;
        const char *name = metrics_setting(list->value[i], &value);
        bool        last = true;

        for (size_t k = i + 1; k < list->n; k++) {
            last = last && strcmp(metrics_setting(list->value[k], &other),
                                  name) != 0;
        }
        if (last) {
            fprintf(f, " %s=%s", name, value);
        }
    }
    fputs(";\n", f);

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

static pid_t
spawn_nginx(const char *dir, const pieces_t *p, const sigset_t *old)
{
    char  conf[PATH_MAX + 16];
    char *argv[] = { (char *) p->nginx, "-p", (char *) dir, "-c", conf,
                     "-e", "stderr", NULL };
    pid_t launcher = getpid();

    snprintf(conf, sizeof(conf), "%s/nginx.conf", dir);

    pid_t pid = fork();

    if (pid < 0) {
        die("cannot fork: %s", strerror(errno));
    }
    if (pid > 0) {
        return pid;
    }

    /* A terminal's Ctrl-C is for the launcher, which makes it graceful. */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (getppid() != launcher) {
        _exit(1);
    }

    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (null >= 0) {
        dup2(null, STDIN_FILENO);
    }
    sigprocmask(SIG_SETMASK, old, NULL);
    execv(p->nginx, argv);
    fprintf(stderr, "inference-server: cannot run %s: %s\n", p->nginx,
            strerror(errno));
    _exit(127);
}

static bool
any_far(const options_t *o)
{
    for (size_t i = 0; i < o->repositories.n; i++) {
        if (strncmp(o->repositories.value[i], "s3://", 5) == 0) {
            return true;
        }
    }
    return false;
}

static int
wait_for_nginx(pid_t nginx, const sigset_t *signals, const options_t *o,
    const char *dir)
{
    bool stopping = false;
    bool failed = false;
    bool looking = o->exit_on_error;
    char path[PATH_MAX + sizeof(OWN_SOCKET)];

    snprintf(path, sizeof(path), "%s/" OWN_SOCKET, dir);

    for (;;) {
        int status;
        int sig = next_signal(signals, stopping, looking, o);

        if (sig < 0 && errno == EAGAIN && looking && !stopping) {
            first_load_t verdict = first_load_ask(path, any_far(o));

            looking = verdict == FIRST_LOAD_PENDING;
            if (verdict == FIRST_LOAD_FAILED) {
                fprintf(stderr, "inference-server: failed to load all models, "
                        "and --exit-on-error is true\n");
                kill(nginx, SIGQUIT);
                stopping = true;
                failed = true;
            }
            continue;
        }
        if (sig < 0 && errno == EAGAIN) {
            fprintf(stderr, "inference-server: work in flight did not end in "
                    "time; stopping at once\n");
            kill(nginx, SIGTERM);
            continue;
        }

        switch (sig) {

        case SIGTERM:
        case SIGINT:
            kill(nginx, stopping ? SIGTERM : SIGQUIT);
            stopping = true;
            break;

        case SIGHUP:
        case SIGUSR1:
            kill(nginx, sig);
            break;

        default:
            break;
        }

        if (waitpid(nginx, &status, WNOHANG) == nginx) {
            return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                   : failed ? 1 : WEXITSTATUS(status);
        }
    }
}

/* -1 with EAGAIN: none came while there was patience. */
static int
next_signal(const sigset_t *signals, bool stopping, bool looking,
    const options_t *o)
{
    struct timespec patience = {
        .tv_sec = stopping ? o->exit_timeout_secs + GRACE_SECS : 0,
        .tv_nsec = stopping ? 0 : LOOK_NS
    };

    return stopping || looking ? sigtimedwait(signals, NULL, &patience)
                               : sigwaitinfo(signals, NULL);
}

static int
remove_entry(const char *path, const struct stat *st, int type,
    struct FTW *ftw)
{
    (void) st;
    (void) type;
    (void) ftw;

    return remove(path);
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
    exit(1);
}

static void
die(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fputs("inference-server: ", stderr);
    vfprintf(stderr, fmt, args);
    fputs("\n(--help lists the options)\n", stderr);
    va_end(args);
    exit(1);
}
