#include "option_table.h"

#include <limits.h>
#include <string.h>

#include "core/proto/core_options.h"
#include "number_parts.h"
#include "option_check.h"
#include "trace_options.h"
#include "options.h"

#define AT(field) offsetof(options_t, field)

/* Reasons shared by several options. */
#define BY_NGINX_PINGS                                                        \
    "nginx answers every PING and sends none; "                               \
    "--grpc-keepalive-time finds dead connections by TCP"

const char *const option_groups[GROUPS] = {
    [GROUP_GLOBAL] = "",
    [GROUP_SERVER] = "Server",
    [GROUP_LOGGING] = "Logging",
    [GROUP_REPOSITORY] = "Model Repository",
    [GROUP_HTTP] = "HTTP",
    [GROUP_GRPC] = "GRPC",
    [GROUP_SAGEMAKER] = "Sagemaker",
    [GROUP_VERTEX] = "Vertex",
    [GROUP_METRICS] = "Metrics",
    [GROUP_TRACING] = "Tracing",
    [GROUP_BACKEND] = "Backend",
    [GROUP_AGENT] = "Repository Agent",
    [GROUP_CACHE] = "Response Cache",
    [GROUP_RATE_LIMIT] = "Rate Limiter",
    [GROUP_MEMORY] = "Memory/Device Management",
    [GROUP_DEPRECATED] = "DEPRECATED",
    [GROUP_OURS] = "Not in tritonserver"
};

const option_t option_table[] = {
    { "help", GROUP_GLOBAL, KIND_HELP, .help = "this text" },

    { "id", GROUP_SERVER, .kind = KIND_CORE,
      .empty = "the name is \"triton\"" },
    { "exit-timeout-secs", GROUP_SERVER, KIND_NUMBER, AT(exit_timeout_secs),
      .standard = "30",
      .help = "seconds that work in flight may take at the end",
      .max = INT_MAX / 1000, .nearest = true },

    { "log-verbose", GROUP_LOGGING, KIND_VERBOSE, AT(verbose), .standard = "0",
      .help = "level of verbose lines, 0: none", .max = INT_MAX,
      .nearest = true },
    { "log-info", GROUP_LOGGING, KIND_BOOL, AT(info), .standard = "true",
      .help = "log informational lines" },
    { "log-warning", GROUP_LOGGING, KIND_BOOL, AT(warning), .standard = "true",
      .help = "log warnings" },
    { "log-error", GROUP_LOGGING, KIND_BOOL, AT(error), .standard = "true",
      .help = "log errors" },
    { "log-format", GROUP_LOGGING, KIND_CHOICE, AT(log_format),
      .standard = "default",
      .help = "default or ISO8601: of the tables and lines at the start; "
      "others have nginx's time in front", .words = "default ISO8601" },
    { "log-file", GROUP_LOGGING, KIND_OPTIONAL, AT(log_file),
      .help = "file that the log is appended to (stderr)" },

    { "model-repository", GROUP_REPOSITORY, KIND_LIST, AT(repositories),
      .help = "directory of models, s3://, gs:// or as://... (repeatable; "
      "required, or AIP_STORAGE_URI)", .check = check_repository },
    { "model-store", GROUP_REPOSITORY, KIND_LIST, AT(repositories),
      .help = "the same", .check = check_repository },
    { "exit-on-error", GROUP_REPOSITORY, KIND_BOOL, AT(exit_on_error),
      .standard = "true",
      .help = "end when a model can't be loaded at the start" },
    { "disable-auto-complete-config", GROUP_REPOSITORY, KIND_FLAG,
      AT(strict_config), .help = "backends complete no configuration" },
    { "strict-readiness", GROUP_REPOSITORY, .kind = KIND_CORE },
    { "model-control-mode", GROUP_REPOSITORY, KIND_CHOICE, AT(control_mode),
      .standard = "none",
      .help = "none, explicit or poll: who changes models at run time",
      .words = "none explicit poll" },
    { "repository-poll-secs", GROUP_REPOSITORY, .kind = KIND_CORE,
      .nearest = true },
    { "load-model", GROUP_REPOSITORY, KIND_LIST, AT(load_models),
      .help = "explicit mode: loaded at the start, alone * is all "
      "(repeatable)" },
    { "model-config-name", GROUP_REPOSITORY, .kind = KIND_CORE },
    { "model-load-thread-count", GROUP_REPOSITORY, .kind = KIND_CORE,
      .nearest = true },
    { "model-load-retry-count", GROUP_REPOSITORY, .kind = KIND_CORE,
      .nearest = true },
    { "model-namespacing", GROUP_REPOSITORY, .kind = KIND_CORE },
    { "enable-peer-access", GROUP_REPOSITORY, .kind = KIND_CORE },

    { "allow-http", GROUP_HTTP, KIND_BOOL, AT(service[SERVICE_HTTP].on),
      .standard = "true", .help = "serve HTTP/REST" },
    { "http-address", GROUP_HTTP, KIND_TEXT, AT(service[SERVICE_HTTP].address),
      .standard = "0.0.0.0", .help = "its address, or unix:PATH" },
    { "http-port", GROUP_HTTP, KIND_TEXT, AT(service[SERVICE_HTTP].port_text),
      .standard = "8000", .help = "its port" },
    { "reuse-http-port", GROUP_HTTP, KIND_BOOL,
      AT(service[SERVICE_HTTP].reuse), .standard = "false",
      .help = "share the port with other processes" },
    { "http-header-forward-pattern", GROUP_HTTP, KIND_OPTIONAL,
      AT(http_forward), .help = "a regular expression: inferences get headers "
      "whose names match it as parameters" },
    { "http-thread-count", GROUP_HTTP, KIND_NUMBER,
      AT(service[SERVICE_HTTP].threads),
      .help = "nginx worker processes, of all services: the largest of these "
      "counts (one per CPU)", .min = 1, .max = 1024, .nearest = true },
    { "http-max-input-size", GROUP_HTTP, KIND_NUMBER, AT(http_max_input),
      .standard = "67108864",
      .help = "bytes of a request's JSON, and of the tensors in it",
      .min = 1, .max = LONG_MAX },
    { "http-restricted-api", GROUP_HTTP, KIND_LIST, AT(http_restricted),
      .help = "api,...:header=value: requests of these groups need that "
      "header (repeatable)", .check = check_restricted },

    { "allow-grpc", GROUP_GRPC, KIND_BOOL, AT(service[SERVICE_GRPC].on),
      .standard = "true", .help = "serve gRPC" },
    { "grpc-address", GROUP_GRPC, KIND_TEXT, AT(service[SERVICE_GRPC].address),
      .standard = "0.0.0.0",
      .help = "its address, or unix:PATH, to which the port is added" },
    { "grpc-port", GROUP_GRPC, KIND_TEXT, AT(service[SERVICE_GRPC].port_text),
      .standard = "8001", .help = "its port" },
    { "reuse-grpc-port", GROUP_GRPC, KIND_BOOL,
      AT(service[SERVICE_GRPC].reuse), .standard = "false",
      .help = "share the port with other processes" },
    { "grpc-header-forward-pattern", GROUP_GRPC, KIND_OPTIONAL,
      AT(grpc_forward), .help = "the same of metadata" },
    { "grpc-infer-thread-count", GROUP_GRPC, KIND_NUMBER,
      AT(service[SERVICE_GRPC].threads), .help = "as --http-thread-count",
      .min = 2, .max = 128 },
    { "grpc-infer-allocation-pool-size", GROUP_GRPC, KIND_NUMBER,
      .help = "no effect", .min = INT_MIN, .max = INT_MAX,
      .no_effect = "a request's memory is nginx's pool and the request arena "
      "(--request-memory)" },
    { "grpc-max-response-pool-size", GROUP_GRPC, KIND_NUMBER,
      .help = "no effect", .min = 1, .max = INT_MAX,
      .no_effect = "a stream's responses wait in the core's response arena, "
      "which is bounded" },
    { "grpc-use-ssl", GROUP_GRPC, KIND_BOOL, AT(ssl), .standard = "false",
      .help = "TLS, with certificate and key" },
    { "grpc-use-ssl-mutual", GROUP_GRPC, KIND_BOOL, AT(ssl_mutual),
      .standard = "false",
      .help = "TLS; true: clients need a certificate that --grpc-root-cert "
      "signs" },
    { "grpc-server-cert", GROUP_GRPC, KIND_OPTIONAL, AT(ssl_cert),
      .help = "file of the server's certificates (PEM)" },
    { "grpc-server-key", GROUP_GRPC, KIND_OPTIONAL, AT(ssl_key),
      .help = "file of its key (PEM)" },
    { "grpc-root-cert", GROUP_GRPC, KIND_OPTIONAL, AT(ssl_root),
      .help = "file of the certificates that sign those of clients (PEM)" },
    { "grpc-infer-response-compression-level", GROUP_GRPC, KIND_CHOICE,
      AT(compression), .standard = "none", .help = "none, low, medium or high",
      .words = "none low medium high" },
    { "grpc-keepalive-time", GROUP_GRPC, KIND_NUMBER, AT(keepalive_ms),
      .standard = "7200000",
      .help = "ms until TCP probes an idle connection (so_keepalive)",
      .min = 1, .max = INT_MAX, .nearest = true },
    { "grpc-keepalive-timeout", GROUP_GRPC, KIND_NUMBER,
      AT(keepalive_timeout_ms), .standard = "20000",
      .help = "ms until a probe without answer closes it", .min = 1,
      .max = INT_MAX, .nearest = true },
    { "grpc-keepalive-permit-without-calls", GROUP_GRPC, KIND_BOOL,
      .help = "no effect",
      .no_effect = "TCP probes a connection with and without calls" },
    { "grpc-http2-max-pings-without-data", GROUP_GRPC, KIND_NUMBER,
      .help = "no effect", .min = INT_MIN, .max = INT_MAX,
      .no_effect = BY_NGINX_PINGS },
    { "grpc-http2-min-recv-ping-interval-without-data", GROUP_GRPC,
      KIND_NUMBER, .help = "no effect", .min = INT_MIN, .max = INT_MAX,
      .no_effect = BY_NGINX_PINGS },
    { "grpc-http2-max-ping-strikes", GROUP_GRPC, KIND_NUMBER,
      .help = "no effect", .min = INT_MIN, .max = INT_MAX,
      .no_effect = BY_NGINX_PINGS },
    { "grpc-max-connection-age", GROUP_GRPC, KIND_NUMBER,
      AT(connection_age_ms), .standard = "0",
      .help = "ms after which a connection takes no new calls "
      "(keepalive_time), 0: never", .max = INT_MAX, .nearest = true },
    { "grpc-max-connection-age-grace", GROUP_GRPC, KIND_NUMBER,
      .help = "no effect", .min = INT_MIN, .max = INT_MAX,
      .no_effect = "calls of an old connection run to their end; "
      "--exit-timeout-secs (worker_shutdown_timeout) is their bound when the "
      "server ends" },
    { "grpc-restricted-protocol", GROUP_GRPC, KIND_LIST, AT(grpc_restricted),
      .help = "group,...:key=value: calls of these groups need "
      "triton-grpc-protocol-KEY (repeatable)", .check = check_restricted },

    { "allow-sagemaker", GROUP_SAGEMAKER, KIND_BOOL,
      AT(service[SERVICE_SAGEMAKER].on), .standard = "false",
      .help = "serve /ping, /invocations and /models" },
    { "sagemaker-port", GROUP_SAGEMAKER, KIND_TEXT,
      AT(service[SERVICE_SAGEMAKER].port_text), .standard = "8080",
      .help = "their port" },
    { "sagemaker-safe-port-range", GROUP_SAGEMAKER, KIND_TEXT,
      AT(sagemaker_range), .help = "first-last: the other ports at "
      "0.0.0.0 lie in it", .normal = normal_port_range },
    { "sagemaker-thread-count", GROUP_SAGEMAKER, KIND_NUMBER,
      AT(service[SERVICE_SAGEMAKER].threads), .help = "as --http-thread-count",
      .min = 1, .max = 1024, .nearest = true },

    { "allow-vertex-ai", GROUP_VERTEX, KIND_BOOL,
      AT(service[SERVICE_VERTEX].on),
      .help = "serve AIP_HEALTH_ROUTE and AIP_PREDICT_ROUTE (true where "
      "AIP_MODE is PREDICTION)" },
    { "vertex-ai-port", GROUP_VERTEX, KIND_TEXT,
      AT(service[SERVICE_VERTEX].port_text),
      .help = "their port (AIP_HTTP_PORT or 8080)" },
    { "vertex-ai-thread-count", GROUP_VERTEX, KIND_NUMBER,
      AT(service[SERVICE_VERTEX].threads), .help = "as --http-thread-count",
      .min = 1, .max = 1024, .nearest = true },
    { "vertex-ai-default-model", GROUP_VERTEX, KIND_OPTIONAL, AT(vertex_model),
      .help = "the model of the predict route (the only --load-model, or "
              "the only one of a local repository)" },

    { "allow-metrics", GROUP_METRICS, KIND_BOOL,
      AT(service[SERVICE_METRICS].on), .standard = "true",
      .help = "serve /metrics" },
    { "allow-gpu-metrics", GROUP_METRICS, .kind = KIND_CORE },
    { "allow-cpu-metrics", GROUP_METRICS, .kind = KIND_CORE },
    { "metrics-address", GROUP_METRICS, KIND_OPTIONAL,
      AT(service[SERVICE_METRICS].address),
      .help = "address of the metrics, or unix:PATH (--http-address)" },
    { "metrics-port", GROUP_METRICS, KIND_TEXT,
      AT(service[SERVICE_METRICS].port_text), .standard = "8002",
      .help = "their port" },
    { "metrics-interval-ms", GROUP_METRICS, .kind = KIND_CORE,
      .nearest = true },
    { "metrics-config", GROUP_METRICS, KIND_LIST, AT(metrics_configs),
      .help = "counter_latencies=, histogram_latencies=, "
      "summary_latencies=true|false or summary_quantiles=Q:ERROR,... "
      "(repeatable)", .check = check_metrics_config },

    { "trace-config", GROUP_TRACING, KIND_LIST, AT(trace_configs),
      .help = "[mode,]setting=value: mode=triton|opentelemetry, "
      "level=OFF|TIMESTAMPS|TENSORS, rate=, count=, triton,file=, "
      "triton,log-frequency=, opentelemetry,url=, opentelemetry,resource=K=V, "
      "opentelemetry,bsp_...= (repeatable)", .normal = normal_trace_config },

    { "backend-directory", GROUP_BACKEND, KIND_TEXT, AT(backends),
      .help = "directory of backends (ours)" },
    { "backend-config", GROUP_BACKEND, KIND_LIST, AT(backend_configs),
      .help = "[backend,]setting=value (repeatable)",
      .check = check_backend_config },
    { "repoagent-directory", GROUP_AGENT, KIND_TEXT, AT(agents),
      .help = "directory of repository agents (ours)" },

    { "cache-config", GROUP_CACHE, KIND_LIST, AT(cache_configs),
      .help = "cache,setting=value (repeatable, one cache: local,size=...)" },
    { "cache-directory", GROUP_CACHE, KIND_OPTIONAL, AT(cache_directory),
      .help = "directory of cache libraries (the built-in cache alone)" },

    { "rate-limit", GROUP_RATE_LIMIT, .kind = KIND_CORE },
    { "rate-limit-resource", GROUP_RATE_LIMIT, KIND_LIST, AT(rate_resources),
      .help = "name:count[:device], so many copies exist (repeatable)",
      .normal = normal_rate_resource },

    { "pinned-memory-pool-byte-size", GROUP_MEMORY, .kind = KIND_CORE,
      .nearest = true },
    { "cuda-memory-pool-byte-size", GROUP_MEMORY, KIND_LIST, AT(cuda_pools),
      .help = "gpu:bytes, memory on that GPU (67108864 each; repeatable)",
      .normal = normal_gpu_bytes },
    { "cuda-virtual-address-size", GROUP_MEMORY, KIND_LIST, AT(cuda_ranges),
      .help = "gpu:bytes, how far a state may grow there (1073741824 each; "
      "repeatable)", .normal = normal_gpu_bytes },
    { "min-supported-compute-capability", GROUP_MEMORY, KIND_TEXT,
      AT(min_capability), .help = "GPUs below it are not used (7.5)",
      .normal = normal_capability },
    { "buffer-manager-thread-count", GROUP_MEMORY, KIND_NUMBER,
      .help = "no effect", .min = INT_MIN, .max = INT_MAX,
      .no_effect = "the thread of an instance copies its own inputs" },
    { "host-policy", GROUP_MEMORY, KIND_LIST, AT(host_policies),
      .help = "policy,numa-node=N or policy,cpu-cores=A-B,... (repeatable)",
      .check = check_host_policy },
    { "model-load-gpu-limit", GROUP_MEMORY, KIND_LIST, AT(gpu_limits),
      .help = "gpu:fraction of its memory that models may fill (repeatable)",
      .normal = normal_gpu_limit },
    { "allow-client-shm", GROUP_MEMORY, KIND_BOOL, AT(client_shm),
      .standard = "false",
      .help = "clients may register shared memory and use it" },

    { "strict-model-config", GROUP_DEPRECATED, KIND_BOOL,
      AT(strict_model_config),
      .help = "true: as --disable-auto-complete-config",
      .deprecated = "disable-auto-complete-config" },
    { "response-cache-byte-size", GROUP_DEPRECATED, KIND_NUMBER,
      AT(cache_bytes), .help = "as --cache-config local,size=N",
      .min = INF_LOCAL_CACHE_MIN, .max = LONG_MAX,
      .deprecated = "cache-config=local,size=N" },
    { "trace-file", GROUP_DEPRECATED, KIND_OPTIONAL, AT(trace_file),
      .help = "as --trace-config triton,file=",
      .deprecated = "trace-config=triton,file=PATH" },
    { "trace-level", GROUP_DEPRECATED, KIND_LIST, AT(trace_levels),
      .help = "as --trace-config level=", .check = check_trace_level,
      .deprecated = "trace-config=level=LEVEL" },
    { "trace-rate", GROUP_DEPRECATED, KIND_TEXT, AT(trace_rate),
      .help = "as --trace-config rate=", .normal = normal_trace_rate,
      .deprecated = "trace-config=rate=N" },
    { "trace-count", GROUP_DEPRECATED, KIND_TEXT, AT(trace_count),
      .help = "as --trace-config count=", .normal = normal_trace_count,
      .deprecated = "trace-config=count=N" },
    { "trace-log-frequency", GROUP_DEPRECATED, KIND_TEXT,
      AT(trace_log_frequency),
      .help = "as --trace-config triton,log-frequency=",
      .normal = normal_trace_frequency,
      .deprecated = "trace-config=triton,log-frequency=N" },

    { "print-config", GROUP_OURS, KIND_FLAG, AT(print_config),
      .help = "write the nginx.conf that the options mean to stdout, and "
      "end" },
    { "user", GROUP_OURS, KIND_TEXT, AT(user),
      .help = "root only: who workers, core and backends are (the "
      "repository's owner)" },
    { "control-from", GROUP_OURS, KIND_OPTIONAL, AT(control_from),
      .standard = "loopback",
      .help = "who may load models, change trace and log settings: all, none, "
      "or a list of loopback, addresses and address/bits",
      .check = check_control_from },
    { "allow-code-upload", GROUP_OURS, .kind = KIND_CORE },
    { "client-shm-byte-size", GROUP_OURS, .kind = KIND_CORE },
    { "client-shm-copies-byte-size", GROUP_OURS, .kind = KIND_CORE },
    { "response-wait-secs", GROUP_OURS, .kind = KIND_CORE, .standard = "1" },
    { "stuck-secs", GROUP_OURS, .kind = KIND_CORE },
    { "model-load-timeout-secs", GROUP_OURS, .kind = KIND_CORE },
    { "request-memory", GROUP_OURS, KIND_OPTIONAL, AT(request_memory),
      .standard = "1g",
      .help = "memory for requests' bodies, of each worker, and beyond 1g for "
      "responses, too: bytes, or with k, m, g", .check = check_request_memory }
};

const size_t option_table_count =
    sizeof(option_table) / sizeof(option_table[0]);

const option_t *
option_find(const char *name, size_t len)
{
    for (size_t i = 0; i < option_table_count; i++) {
        const char *known = option_table[i].name;

        if (strlen(known) == len && memcmp(known, name, len) == 0) {
            return &option_table[i];
        }
    }
    return NULL;
}

const option_t *
option_begins(const char *name, size_t len, const option_t *after)
{
    for (size_t i = after == NULL ? 0 : (size_t) (after - option_table) + 1;
         len != 0 && i < option_table_count; i++)
    {
        const option_t *option = &option_table[i];

        if (strncmp(option->name, name, len) == 0
            && option->group != GROUP_OURS)
        {
            return option;
        }
    }
    return NULL;
}
