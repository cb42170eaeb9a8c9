/*
 * options.h - parses tritonserver's command line.
 *
 * Owner    Values point into argv and the environment.
 * Thread   one.
 * Units    as the fields' names say.
 * Errors   die.
 * Route    command line -> [options] -> run as, places, nginx.conf
 */

#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* The values of a repeatable option. */
typedef struct {
    const char **value;             /* NULL: none                            */
    size_t       n;
} list_t;

/* A service with an address and a port. */
typedef struct {
    /* constant after options_take() */
    bool        on;
    const char *address;
    const char *port_text;          /* as given                              */
    long        port;
    bool        reuse;              /* share the port with other processes   */
    bool        port_in_path;       /* of an address unix:PATH               */
    bool        both_families;      /* 0.0.0.0 is [::], too                  */
    long        threads;            /* 0: not given                          */
    const char *name;               /* in Triton's log, when it has started  */
    const char *short_name;         /* there, when it has not                */
    const char *option;             /* option that sets the port             */
} service_t;

typedef enum {
    SERVICE_HTTP,
    SERVICE_GRPC,
    SERVICE_METRICS,
    SERVICE_SAGEMAKER,
    SERVICE_VERTEX,
    SERVICES
} service_id_t;

typedef struct {
    /* constant after options_take() */
    char      **core;               /* by row of the table of the core's
                                       options, in nginx.conf's format; NULL:
                                       not given */
    bool       *given;              /* by row of option_table                */
    service_t   service[SERVICES];
    list_t      repositories;
    const char *control_mode;
    list_t      load_models;
    bool        exit_on_error;
    bool        strict_config;
    bool        strict_model_config;    /* deprecated                        */
    list_t      http_restricted;
    list_t      grpc_restricted;
    long        http_max_input;     /* bytes */
    const char *http_forward;       /* names of headers; NULL or empty: none */
    const char *grpc_forward;
    bool        ssl;
    bool        ssl_mutual;
    const char *ssl_cert;
    const char *ssl_key;
    const char *ssl_root;
    const char *compression;
    long        keepalive_ms;
    long        keepalive_timeout_ms;
    long        connection_age_ms;  /* 0: any */
    const char *sagemaker_range;
    const char *vertex_model;
    list_t      metrics_configs;
    list_t      trace_configs;
    const char *trace_file;         /* deprecated, like those below; NULL: not
                                       given                                 */
    list_t      trace_levels;
    const char *trace_rate;
    const char *trace_count;
    const char *trace_log_frequency;
    list_t      backend_configs;
    const char *backends;           /* NULL: ours */
    const char *agents;             /* NULL: ours */
    list_t      cache_configs;
    const char *cache_directory;
    long        cache_bytes;        /* deprecated; 0: not given */
    list_t      rate_resources;
    list_t      cuda_pools;
    list_t      cuda_ranges;
    list_t      gpu_limits;
    list_t      host_policies;
    const char *min_capability;
    bool        client_shm;
    long        verbose;
    bool        info;
    bool        warning;
    bool        error;
    const char *log_format;
    const char *log_file;           /* NULL: stderr                          */
    long        exit_timeout_secs;
    const char *user;               /* NULL: the repository's owner          */
    const char *control_from;
    const char *request_memory;     /* in nginx's units                      */
    bool        print_config;
} options_t;

/* Parses the command line; ends the program if an option is invalid, or prints
   help. */
void options_take(options_t *o, int argc, char **argv);

/* Whether the option was on the command line. */
bool options_given(const options_t *o, const char *name);

/* Whether the same value is before that index of a list. */
bool options_given_before(const list_t *list, size_t at);

/* The value of an option of the core, by directive and parameter (NULL: of the
   directive itself).  NULL: not given. */
const char *options_core(const options_t *o, const char *directive,
    const char *parameter);

/* Whether gRPC uses TLS. */
bool options_tls(const options_t *o);

/* Whether configurations are not completed by backends. */
bool options_strict(const options_t *o);

#endif /* TOOLS_OPTIONS_H */
