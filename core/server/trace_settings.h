/*
 * trace_settings.h - which requests are traced: the settings of the server,
 *                    and those that a model has of its own.
 *
 * Owner    The server owns the settings; a trace holds a reference of the
 *          setting that it was sampled by.
 * Thread   any.
 * Units    requests, traces.
 * Errors   INVALID_ARG: a change that can't be traced by.
 * Route    core configuration, calls -> [trace settings] -> request traces
 *
 * A setting that a model does not have is the server's.  A change makes new
 * settings, which count from the start; traces under way end by the old ones.
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
    uint32_t rate;              /* one request of so many; 0: only those with
                                   a context                                 */
    int32_t  count;             /* traces; -1: any number                    */
    uint32_t log_frequency;     /* traces of one file; 0: any number         */
} inf_trace_values_t;

/* One scope's settings as they are in force, with what has come of them. */
typedef struct {
    _Atomic uint32_t   refs;    /* up relaxed, down acq_rel                  */
    inf_trace_values_t values;  /* set in new()                              */
    _Atomic uint64_t   seen;    /* relaxed: requests                         */
    _Atomic int64_t    left;    /* relaxed: traces; -1: any number           */

    uint64_t           written; /* the tracer's thread's: traces in the file
                                   that they go to                           */
    int64_t            index;   /* likewise: that file's number; -1: none    */
    uint64_t           end;     /* likewise: its length                      */
} inf_trace_setting_t;

/* A model that sets something itself. */
typedef struct {
    char                *model;
    inf_trace_values_t   own;
    uint32_t             given; /* what of own counts                        */
    inf_trace_setting_t *setting;
} inf_trace_scope_t;

typedef struct {
    const NginxInference__TraceSettings *config;    /* set in init(); lives as
                                                       long as we do         */
    _Atomic bool         on;    /* relaxed: a scope traces                   */
    inf_lock_t           turn;  /* rank 38; guards nothing: one change at a
                                   time                                      */
    inf_lock_t           lock;  /* rank 45; guards the rest, for whom it is
                                   not the turn to change it                 */
    inf_trace_scope_t    global;    /* model: NULL; given: all               */
    inf_trace_scope_t  **models;    /* sorted                                */
    size_t               count;
} inf_trace_settings_t;

/* The caller's memory; what config starts with need not be valid: then nothing
   is traced. */
INF_CHECK inf_err_t *inf_trace_settings_init(inf_trace_settings_t *s,
    const NginxInference__TraceSettings *config);
void inf_trace_settings_fini(inf_trace_settings_t *s);

/* The two names of trace_mode, and whether it is the second. */
const char *inf_trace_mode(const inf_trace_settings_t *s);
bool inf_trace_is_otel(const inf_trace_settings_t *s);

/* Sets what set says to values, and clears what clear says: it is the server's
   then, or for the server (model "") what the configuration says. */
INF_CHECK inf_err_t *inf_trace_settings_change(inf_trace_settings_t *s,
    const char *model, uint32_t set, uint32_t clear,
    const inf_trace_values_t *values);

/* Sets values that were in force in another core, whether or not the other
   settings that they were valid with are there yet. */
INF_CHECK inf_err_t *inf_trace_settings_restore(inf_trace_settings_t *s,
    const char *model, uint32_t set, const inf_trace_values_t *values);

/* The settings in force for a model, or with "" for those without settings. */
void inf_trace_settings_get(inf_trace_settings_t *s, const char *model,
    inf_trace_values_t *values);

/* The fields that a model has of its own, or those of the server's (model "")
   that differ from the configuration, and their values. */
uint32_t inf_trace_settings_own(inf_trace_settings_t *s, const char *model,
    inf_trace_values_t *values);

/*
 * Whether this request of model is traced: a reference of the setting that
 * says so, or NULL.  forced: it comes with a context that asks for it.  Worth
 * a call where s->on alone.
 */
inf_trace_setting_t *inf_trace_settings_sample(inf_trace_settings_t *s,
    const char *model, bool forced);

/* setting may be NULL. */
void inf_trace_setting_unref(inf_trace_setting_t *setting);

#endif /* INF_SERVER_TRACE_SETTINGS_H */
