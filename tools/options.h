/*
 * options.h - tritonserver's command line.
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

#define MAX_REPEAT 64       /* values of one repeatable option */

typedef struct {
    const char *value[MAX_REPEAT];
    size_t      n;
} list_t;

typedef struct {
    char      **core;               /* by row of the table of the core's
                                       options, as nginx.conf has them; NULL:
                                       not given */
    list_t      repositories;
    list_t      backend_configs;
    list_t      load_models;
    list_t      host_policies;
    list_t      metrics_configs;
    list_t      cuda_pools;
    list_t      gpu_limits;
    list_t      rate_resources;
    const char *min_capability;
    list_t      cache_configs;
    const char *cache_directory;
    long        cache_bytes;        /* deprecated option; 0: not given */
    const char *backends;
    const char *agents;             /* NULL: ours */
    const char *http_address;
    long        http_port;
    bool        reuse_http_port;
    bool        strict_config;
    bool        metrics;
    const char *metrics_address;    /* NULL: the REST service's */
    long        metrics_port;
    long        workers;            /* 0: one per CPU */
    const char *control_mode;
    bool        exit_on_error;
    const char *strict_model_config;    /* deprecated; NULL: not given */
    long        verbose;
    bool        info;
    bool        warning;
    bool        error;
    long        exit_timeout_secs;
    const char *user;               /* NULL: the repository's owner          */
    const char *control_from;
    const char *request_memory;     /* in nginx's units                      */
    bool        client_shm;
} options_t;

/* Ends the program where an option is wrong. */
void options_take(options_t *o, int argc, char **argv);

/* The value of an option of the core: of a directive, or of its parameter.
   NULL: not given. */
const char *options_core(const options_t *o, const char *directive,
    const char *parameter);

/* Backends complete no configuration. */
bool options_strict(const options_t *o);

/* The value of that option, which is a boolean. */
bool option_bool(const char *name, const char *value);

#endif /* TOOLS_OPTIONS_H */
