/*
 * core_options.h - the table of the core's options: the directive, the bounds,
 *                  and the effect of a reload of each.
 *
 * Owner    none; the table is constant.
 * Thread   any.
 * Units    those of the field, in its name; a time is in ms unless it is in
 *          us, a size in bytes.
 * Errors   none.
 * Route    [core options] -> directives, core configuration, launcher
 *
 * Type and default of an option are those of its field in core_config.proto.
 * The directive of a VALUE or GROUP row is parsed by this table alone.
 */

#ifndef INF_PROTO_CORE_OPTIONS_H
#define INF_PROTO_CORE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    INF_OPTION_OTHER,           /* parsed by its own function                */
    INF_OPTION_GROUP,           /* not an option: a directive with parameters */
    INF_OPTION_FLAG,            /* on or off                                 */
    INF_OPTION_NUMBER,
    INF_OPTION_CHOICE,          /* one of words, which count from 0          */
    INF_OPTION_TIME,
    INF_OPTION_MICROSECONDS,    /* "5us"                                     */
    INF_OPTION_SIZE,
    INF_OPTION_TEXT,            /* not empty                                 */
    INF_OPTION_QUANTILES,       /* "0.5:0.05,0.9:0.01"                       */
    INF_OPTION_CONFIG_NAME,     /* a file's name without ".pbtxt"            */
    INF_OPTION_DIRECTORY,       /* added to a list                           */
    INF_OPTION_REPOSITORY       /* likewise, or in object storage            */
} inf_option_kind_t;

typedef enum {
    INF_RELOAD_NOW,             /* applied by the running core               */
    INF_RELOAD_LOADS,           /* applied by later loads; loaded models keep
                                   their values                              */
    INF_RELOAD_CORE             /* applied by the next core                  */
} inf_option_reload_t;

typedef struct {
    const char          *directive;
    const char          *parameter; /* NULL: the value of the directive      */
    const char          *field;     /* of CoreConfig, or "message.field"     */
    const char          *setting;   /* of a list of settings, this one alone */
    const char          *words;     /* of a choice, separated by blanks      */
    const char          *usage;     /* of a group                            */
    const char          *logged;    /* name in the log of a reload; NULL:
                                       directive                             */
    int64_t              min;
    int64_t              max;       /* 0: any                                */
    const char          *option;    /* of the command line; NULL: none, or
                                       handled by the launcher               */
    const char          *help;      /* of option                             */
    const char          *unit;      /* of a time in option, in nginx's
                                       notation                              */
    int64_t              most;      /* of option, in unit; 0: max            */
    inf_option_kind_t    kind;
    inf_option_reload_t  reload;
} inf_core_option_t;

/* In the order of the log of a reload. */
#define INF_CORE_OPTIONS(VALUE, GROUP, OPTION)                                \
    VALUE("inference_repository", .field = "repositories",                    \
        .kind = INF_OPTION_REPOSITORY, .reload = INF_RELOAD_NOW)              \
    VALUE("inference_backends", .field = "backend_directories",               \
        .kind = INF_OPTION_DIRECTORY, .reload = INF_RELOAD_LOADS)             \
    VALUE("inference_agents", .field = "agent_directories",                   \
        .kind = INF_OPTION_DIRECTORY, .reload = INF_RELOAD_LOADS)             \
    VALUE("inference_server_id", .field = "server_id",                        \
        .kind = INF_OPTION_TEXT, .reload = INF_RELOAD_CORE, .option = "id",   \
        .help = "name in the server's metadata")                              \
    OPTION("inference_env", .field = "environment",                           \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_backend_config", .field = "backend_settings",           \
        .reload = INF_RELOAD_LOADS)                                           \
    OPTION("inference_backend_config", .field = "backend_settings",           \
        .setting = INF_MIN_CAPABILITY_KEY, .reload = INF_RELOAD_CORE,         \
        .logged = "inference_backend_config " INF_MIN_CAPABILITY_KEY)         \
    OPTION("inference_response_cache", .field = "cache_name",                 \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_response_cache", .field = "cache_config",               \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_response_cache", .field = "cache_settings",             \
        .reload = INF_RELOAD_CORE)                                            \
    VALUE("inference_cache_directory", .field = "cache_directories",          \
        .kind = INF_OPTION_DIRECTORY, .reload = INF_RELOAD_CORE)              \
    OPTION("inference_memory", .parameter = "responses",                      \
        .field = "response_arena_bytes", .kind = INF_OPTION_SIZE,             \
        .min = 1048576, .reload = INF_RELOAD_CORE)                            \
    OPTION("inference_memory", .parameter = "pinned",                         \
        .field = "pinned_pool_bytes", .kind = INF_OPTION_SIZE,                \
        .reload = INF_RELOAD_CORE, .option = "pinned-memory-pool-byte-size",  \
        .help = "pinned memory of the core (268435456)")                      \
    OPTION("inference_memory", .parameter = "pinned_arenas",                  \
        .field = "pinned_arena_bytes", .kind = INF_OPTION_SIZE,               \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_memory", .parameter = "cuda", .field = "cuda_pools",    \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_memory", .field = "cuda_virtual_sizes",                 \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_core", .parameter = "drain", .field = "drain_ms",       \
        .kind = INF_OPTION_TIME, .reload = INF_RELOAD_NOW)                    \
    OPTION("inference_core", .parameter = "hang", .field = "hang_ms",         \
        .kind = INF_OPTION_TIME, .max = INT32_MAX, .reload = INF_RELOAD_NOW)  \
    OPTION("inference_core", .parameter = "spin", .field = "spin_us",         \
        .kind = INF_OPTION_MICROSECONDS, .max = INF_SPIN_US_MAX,              \
        .reload = INF_RELOAD_CORE, .logged = "inference_core spin=")          \
    VALUE("inference_response_wait", .field = "response_wait_ms",             \
        .kind = INF_OPTION_TIME, .max = INT32_MAX, .reload = INF_RELOAD_CORE, \
        .option = "response-wait-secs", .unit = "s", .most = 86400,           \
        .help = "seconds that a model waits for a client that takes none of " \
        "its responses")                                                      \
    VALUE("inference_stuck", .field = "stuck_ms", .kind = INF_OPTION_TIME,    \
        .max = INT32_MAX, .reload = INF_RELOAD_NOW, .option = "stuck-secs",   \
        .unit = "s", .most = 86400,                                           \
        .help = "an instance that executes for more seconds is stuck, and a " \
        "model without any other is not ready; 0: none is (60)")              \
    OPTION("inference_core", .parameter = "dump", .field = "dump",            \
        .kind = INF_OPTION_FLAG, .reload = INF_RELOAD_NOW)                    \
    OPTION("inference_core", .field = "external_path",                        \
        .reload = INF_RELOAD_CORE, .logged = "inference_core external=")      \
    OPTION("inference_core", .field = "external_users",                       \
        .reload = INF_RELOAD_CORE, .logged = "external_users")                \
    OPTION("inference_log", .field = "log.info", .reload = INF_RELOAD_NOW)    \
    OPTION("inference_log", .field = "log.warn", .reload = INF_RELOAD_NOW)    \
    OPTION("inference_log", .field = "log.error", .reload = INF_RELOAD_NOW)   \
    OPTION("inference_log", .parameter = "verbose", .field = "log.verbose",   \
        .kind = INF_OPTION_NUMBER, .max = INT32_MAX,                          \
        .reload = INF_RELOAD_NOW)                                             \
    OPTION("inference_log", .parameter = "format", .field = "log.format",     \
        .kind = INF_OPTION_CHOICE, .words = "default ISO8601",                \
        .reload = INF_RELOAD_NOW)                                             \
    OPTION("inference_trace", .field = "trace.timestamps",                    \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_trace", .field = "trace.tensors",                       \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_trace", .parameter = "rate", .field = "trace.rate",     \
        .kind = INF_OPTION_NUMBER, .max = UINT32_MAX,                         \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_trace", .parameter = "count", .field = "trace.count",   \
        .kind = INF_OPTION_NUMBER, .max = INT32_MAX,                          \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_trace", .parameter = "log_frequency",                   \
        .field = "trace.log_frequency", .kind = INF_OPTION_NUMBER,            \
        .max = UINT32_MAX, .reload = INF_RELOAD_CORE)                         \
    OPTION("inference_trace", .parameter = "file", .field = "trace.file",     \
        .kind = INF_OPTION_TEXT, .reload = INF_RELOAD_CORE)                   \
    OPTION("inference_trace", .parameter = "otlp", .field = "trace.url",      \
        .kind = INF_OPTION_TEXT, .reload = INF_RELOAD_CORE)                   \
    OPTION("inference_trace", .field = "trace.resources",                     \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_trace", .parameter = "bsp_max_queue_size",              \
        .field = "trace.bsp_max_queue_size", .kind = INF_OPTION_NUMBER,       \
        .min = 1, .max = INF_BSP_MAX, .reload = INF_RELOAD_CORE)              \
    OPTION("inference_trace", .parameter = "bsp_schedule_delay",              \
        .field = "trace.bsp_schedule_delay_ms", .kind = INF_OPTION_TIME,      \
        .min = 1, .max = INT32_MAX, .reload = INF_RELOAD_CORE)                \
    OPTION("inference_trace", .parameter = "bsp_max_export_batch_size",       \
        .field = "trace.bsp_max_export_batch_size",                           \
        .kind = INF_OPTION_NUMBER, .min = 1, .max = INF_BSP_MAX,              \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_model_control", .field = "model_control",               \
        .kind = INF_OPTION_CHOICE, .words = "none explicit poll",             \
        .reload = INF_RELOAD_NOW)                                             \
    OPTION("inference_model_control", .parameter = "interval",                \
        .field = "poll_interval_ms", .kind = INF_OPTION_TIME,                 \
        .reload = INF_RELOAD_NOW, .option = "repository-poll-secs",           \
        .unit = "s", .most = 86400,                                           \
        .help = "poll mode: seconds between two polls, 0: never (15)")        \
    OPTION("inference_model_control", .parameter = "inotify",                 \
        .field = "poll_inotify", .kind = INF_OPTION_FLAG,                     \
        .reload = INF_RELOAD_NOW)                                             \
    OPTION("inference_load_model", .field = "load_models",                    \
        .reload = INF_RELOAD_NOW)                                             \
    OPTION("inference_model", .field = "named_models",                        \
        .reload = INF_RELOAD_NOW)                                             \
    OPTION("inference", .field = "client_shared_memory",                      \
        .reload = INF_RELOAD_NOW, .logged = "inference shared_memory")        \
    OPTION("inference", .field = "client_archives",                           \
        .reload = INF_RELOAD_NOW, .logged = "inference archives")             \
    GROUP("inference_shared_memory",                                          \
        .usage = "invalid or duplicate parameter \"%V\" of "                  \
        "\"inference_shared_memory\": it takes regions= and copies=, sizes "  \
        "from 4k on")                                                         \
    OPTION("inference_shared_memory", .parameter = "regions",                 \
        .field = "shared_memory_region_bytes", .kind = INF_OPTION_SIZE,       \
        .min = 4096, .reload = INF_RELOAD_NOW,                                \
        .option = "client-shm-byte-size",                                     \
        .help = "bytes of all system regions of clients (a quarter of the "   \
        "machine's memory)")                                                  \
    OPTION("inference_shared_memory", .parameter = "copies",                  \
        .field = "shared_memory_copy_bytes", .kind = INF_OPTION_SIZE,         \
        .min = 4096, .reload = INF_RELOAD_NOW,                                \
        .option = "client-shm-copies-byte-size",                              \
        .help = "bytes of copies of inputs in regions (1073741824)")          \
    VALUE("inference_auto_complete", .field = "auto_complete",                \
        .kind = INF_OPTION_FLAG, .reload = INF_RELOAD_LOADS)                  \
    VALUE("inference_code_upload", .field = "code_upload",                    \
        .kind = INF_OPTION_FLAG, .reload = INF_RELOAD_LOADS,                  \
        .option = "allow-code-upload",                                        \
        .help = "files of a load request may be code (false)")                \
    VALUE("inference_max_json_size", .field = "max_json_bytes",               \
        .kind = INF_OPTION_SIZE, .min = 1, .reload = INF_RELOAD_NOW)          \
    VALUE("inference_strict_readiness", .field = "strict_readiness",          \
        .kind = INF_OPTION_FLAG, .reload = INF_RELOAD_NOW,                    \
        .option = "strict-readiness",                                         \
        .help = "ready only if all models are (true)")                        \
    VALUE("inference_model_namespacing", .field = "model_namespacing",        \
        .kind = INF_OPTION_FLAG, .reload = INF_RELOAD_CORE,                   \
        .option = "model-namespacing",                                        \
        .help = "equal names in two repositories are two models (false)")     \
    VALUE("inference_model_config_name", .field = "model_config_name",        \
        .kind = INF_OPTION_CONFIG_NAME, .reload = INF_RELOAD_CORE,            \
        .option = "model-config-name",                                        \
        .help = "configs/NAME.pbtxt is read where a model has it")            \
    GROUP("inference_model_load",                                             \
        .usage = "invalid parameter \"%V\" of "                               \
        "\"inference_model_load\": it takes threads=, 1 to 128, and "         \
        "retries=, 0 to 1000, and timeout=TIME, once each")                   \
    OPTION("inference_model_load", .parameter = "threads",                    \
        .field = "load_threads", .kind = INF_OPTION_NUMBER, .min = 1,         \
        .max = 128, .reload = INF_RELOAD_CORE,                                \
        .option = "model-load-thread-count",                                  \
        .help = "models loaded at once (4)")                                  \
    OPTION("inference_model_load", .parameter = "retries",                    \
        .field = "load_retries", .kind = INF_OPTION_NUMBER, .max = 1000,      \
        .reload = INF_RELOAD_LOADS, .option = "model-load-retry-count",       \
        .help = "further tries of a model that failed to load (0)")           \
    OPTION("inference_model_load", .parameter = "timeout",                    \
        .field = "load_timeout_ms", .kind = INF_OPTION_TIME,                  \
        .max = INT32_MAX, .reload = INF_RELOAD_LOADS,                         \
        .option = "model-load-timeout-secs", .unit = "s", .most = 2000000,    \
        .help = "seconds after which the build of a version that has not "    \
        "returned is given up; 0: none is (1800)")                            \
    VALUE("inference_peer_access", .field = "peer_access",                    \
        .kind = INF_OPTION_FLAG, .reload = INF_RELOAD_CORE,                   \
        .option = "enable-peer-access",                                       \
        .help = "GPUs reach each other's memory directly (true)")             \
    OPTION("inference_metrics", .field = "metrics.enabled",                   \
        .reload = INF_RELOAD_CORE)                                            \
    GROUP("inference_metrics",                                                \
        .usage = "invalid or duplicate parameter "                            \
        "\"%V\" of \"inference_metrics\": it takes cpu=, gpu=, counters=, "   \
        "histograms= and summaries=on|off, quantiles=Q:ERROR,... and "        \
        "interval=TIME")                                                      \
    OPTION("inference_metrics", .parameter = "cpu", .field = "metrics.cpu",   \
        .kind = INF_OPTION_FLAG, .reload = INF_RELOAD_CORE,                   \
        .option = "allow-cpu-metrics",                                        \
        .help = "with those of CPU and memory (true)")                        \
    OPTION("inference_metrics", .parameter = "gpu", .field = "metrics.gpu",   \
        .kind = INF_OPTION_FLAG, .reload = INF_RELOAD_CORE,                   \
        .option = "allow-gpu-metrics", .help = "with those of GPUs (true)")   \
    OPTION("inference_metrics", .parameter = "counters",                      \
        .field = "metrics.counters", .kind = INF_OPTION_FLAG,                 \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_metrics", .parameter = "histograms",                    \
        .field = "metrics.histograms", .kind = INF_OPTION_FLAG,               \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_metrics", .parameter = "summaries",                     \
        .field = "metrics.summaries", .kind = INF_OPTION_FLAG,                \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_metrics", .parameter = "quantiles",                     \
        .field = "metrics.quantiles", .kind = INF_OPTION_QUANTILES,           \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_metrics", .parameter = "interval",                      \
        .field = "metrics.interval_ms", .kind = INF_OPTION_TIME, .min = 1,    \
        .reload = INF_RELOAD_CORE, .option = "metrics-interval-ms",           \
        .unit = "ms", .most = INT32_MAX,                                      \
        .help = "how old the gauges of the machine may be (2000)")            \
    VALUE("inference_rate_limit", .field = "rate_limit",                      \
        .kind = INF_OPTION_CHOICE, .words = "off execution_count",            \
        .reload = INF_RELOAD_CORE, .option = "rate-limit",                    \
        .help = "off or execution_count: wait for resources (off)")           \
    OPTION("inference_rate_limit_resource", .field = "rate_limit_resources",  \
        .reload = INF_RELOAD_CORE)                                            \
    OPTION("inference_host_policy", .field = "host_policies",                 \
        .reload = INF_RELOAD_LOADS)

/* A setting of all backends that the core uses too: GPUs with a lower compute
   capability are not used. */
#define INF_MIN_CAPABILITY_KEY "min-compute-capability"

#define INF_SPIN_US_MAX 1000

/* Traces in the queue to a collector, and in one export. */
#define INF_BSP_MAX 1000000

/* Bytes of inference_memory, and of the cache "local". */
#define INF_MEMORY_MIN      1048576
#define INF_LOCAL_CACHE_MIN 128

/* Parses the first of INF_OPTION_QUANTILES; false: it is not QUANTILE:ERROR,
   both from 0 to 1. */
bool inf_quantile_parse(const char *text, double *quantile);

/* Whether text is quantiles, as in a configuration: of digits alone. */
bool inf_quantiles_are_valid(const char *text);

extern const inf_core_option_t inf_core_options[];
extern const size_t inf_core_options_count;

#endif /* INF_PROTO_CORE_OPTIONS_H */
