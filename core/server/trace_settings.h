/*
 * trace_settings.h - trace settings of the server and of single models: which
 *                    requests are traced.
 *
 * Owner    The server owns the settings; a trace holds a reference of the
 *          setting that sampled it.
 * Thread   any.
 * Units    requests, traces.
 * Errors   INVALID_ARG: settings that cannot be traced by.
 * Route    core configuration, calls -> [trace settings] -> request traces
 *
 * A setting that a model does not have is the server's.  A change creates new
 * settings, whose counts start again; traces in progress end under the old
 * ones.
 */

#ifndef INF_SERVER_TRACE_SETTINGS_H
#define INF_SERVER_TRACE_SETTINGS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/lock.h"
#include "core/base/slice.h"
#include "core_config.pb-c.h"

/* The bits of TRITONSERVER_InferenceTraceLevel. */
#define INF_TRACE_OFF        0x0u
#define INF_TRACE_TIMESTAMPS 0x4u
#define INF_TRACE_TENSORS    0x8u

/* Fields of inf_trace_values_t. */
#define INF_TRACE_LEVEL      0x1u
#define INF_TRACE_RATE       0x2u
#define INF_TRACE_COUNT      0x4u
#define INF_TRACE_FREQUENCY  0x8u
#define INF_TRACE_ALL        0xfu

typedef struct {
    uint32_t level;             /* INF_TRACE_TIMESTAMPS, _TENSORS            */
    uint32_t rate;              /* one of so many requests; 0: only requests
                                   with a context                            */
    int32_t  count;             /* traces; -1: any number                    */
    uint32_t log_frequency;     /* traces of one file; 0: any number         */
} inf_trace_values_t;

/* A change of settings. */
typedef struct {
    uint32_t           set;     /* fields to set to values                   */
    uint32_t           clear;   /* fields that become the server's, or of the
                                   server the configuration's                */
    inf_trace_values_t values;
} inf_trace_change_t;

/* The settings of one scope in force, and their counters. */
typedef struct {
    _Atomic uint32_t   refs;    /* up relaxed, down acq_rel                  */
    inf_trace_values_t values;  /* set in new()                              */
    _Atomic uint64_t   seen;    /* relaxed: requests                         */
    _Atomic int64_t    left;    /* relaxed: traces; -1: any number           */

    uint64_t           written; /* of the tracer's thread: traces in the current
                                   file                                      */
    int64_t            index;   /* likewise: the number of that file; -1:
                                   none                                      */
    uint64_t           end;     /* likewise: the length of that file         */
} inf_trace_setting_t;

/* A model with settings of its own. */
typedef struct {
    char                *model;
    inf_trace_values_t   own;
    uint32_t             given; /* fields of own that are set                */
    inf_trace_setting_t *setting;
} inf_trace_scope_t;

typedef struct {
    const NginxInference__TraceSettings *config;    /* set in init(); outlives
                                                       the settings          */
    _Atomic bool         on;    /* relaxed: some scope traces                */
    inf_lock_t           turn;  /* rank 38; guards nothing: serializes
                                   changes                                   */
    inf_lock_t           lock;  /* rank 45; guards the rest; a holder of turn
                                   may read without it                       */
    inf_trace_scope_t    global;    /* model: NULL; given: all               */
    inf_trace_scope_t  **models;    /* sorted                                */
    size_t               count;
} inf_trace_settings_t;

/* Uses the caller's memory.  Invalid settings in config are accepted: nothing
   is traced by them. */
INF_CHECK inf_err_t *inf_trace_settings_init(inf_trace_settings_t *s,
    const NginxInference__TraceSettings *config);
void inf_trace_settings_fini(inf_trace_settings_t *s);

/* The name of trace_mode ("triton", "opentelemetry"), and whether it is
   opentelemetry. */
const char *inf_trace_mode(const inf_trace_settings_t *s);
bool inf_trace_is_otel(const inf_trace_settings_t *s);

/* Changes the settings of a model, or of the server (model ""). */
INF_CHECK inf_err_t *inf_trace_settings_change(inf_trace_settings_t *s,
    const char *model, const inf_trace_change_t *c);

/* The same for settings of another core: they are not checked together with the
   other settings, which may not be restored yet. */
INF_CHECK inf_err_t *inf_trace_settings_restore(inf_trace_settings_t *s,
    const char *model, const inf_trace_change_t *c);

/* The settings in force for a model; "": for models without settings. */
void inf_trace_settings_get(inf_trace_settings_t *s, const char *model,
    inf_trace_values_t *values);

/* Returns the fields that a model has of its own, or for the server (model "")
   those that differ from the configuration, and their values. */
uint32_t inf_trace_settings_own(inf_trace_settings_t *s, const char *model,
    inf_trace_values_t *values);

/*
 * Whether this request of model is traced: a reference of its setting, or
 * NULL. forced: the request's context asks for it; rate and count do not limit
 * such traces, and only those whose turn it is anyway use the count up.
 * Called only where s->on is set.
 */
inf_trace_setting_t *inf_trace_settings_sample(inf_trace_settings_t *s,
    const char *model, bool forced);

/* setting may be NULL. */
void inf_trace_setting_unref(inf_trace_setting_t *setting);

#endif /* INF_SERVER_TRACE_SETTINGS_H */
