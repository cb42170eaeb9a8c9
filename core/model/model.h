/*
 * model.h - one version of a model in memory, and its instances.
 *
 * Owner    Shared by reference: the lifecycle's table, each request's factory,
 *          each factory handle of a backend.  The last reference calls
 *          ops->last_unref, which destroys the model on another stack.
 * Thread   Fields are set by one loader thread while the model is loaded, then
 *          read by any; the configuration is under config_lock.
 * Units    none.
 * Errors   none here.
 * Route    lifecycle creates it, registry finds it, runtime executes on it.
 */

#ifndef INF_MODEL_MODEL_H
#define INF_MODEL_MODEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/lock.h"
#include "core/base/os/host_policy.h"
#include "core/model/backend.h"
#include "core/model/config_complete.h"
#include "core/model/config_load.h"
#include "core/model/config_tensors.h"
#include "core/model/instance_groups.h"
#include "core/model/labels.h"
#include "core/model/latencies.h"
#include "core/model/memory_usage.h"
#include "core/model/statistics.h"

struct inf_batch_strategy_s;
struct inf_ensemble_s;
struct inf_entrance_ops_s;
struct inf_execution_s;
struct inf_gate_s;
struct inf_instance_thread_s;
struct inf_json_text_s;
struct inf_ledger_s;
struct inf_runner_s;
struct inf_sequence_inputs_s;
struct inf_server_s;

typedef struct inf_model_s inf_model_t;

typedef struct inf_instance_s {
    inf_model_t               *model;
    const inf_instance_spec_t *spec;        /* name, kind, device, ...       */
    void                      *state;       /* the backend's own             */
    inf_statistics_t           statistics;
    inf_memory_usage_t         memory;      /* the model's usage_lock        */
    uint64_t                   number;      /* ascending in its model        */
    uint32_t                   visits;      /* the model's usage_lock        */
    bool                       leaving;     /* no more visits; same lock     */

    /* seq_cst: requests that Execute kept and answers open after their request;
       and those that came back later */
    _Atomic uint64_t           kept;
    _Atomic uint64_t           returned;

    struct {
        struct inf_instance_thread_s *thread;   /* NULL: passive             */
        struct inf_instance_s *peer;        /* next on that thread: a ring of
                                               one instance, or of a
                                               device's                      */
    } sched;

    struct {
        bool                   initialized; /* ModelInstanceInitialize was
                                               called                        */
        struct inf_json_text_s *host_policy;
        struct inf_execution_s *execution;  /* requests passed to Execute    */
    } abi;
} inf_instance_t;

typedef struct {
    /* Called for the last reference, on any thread; returns at once. */
    void (*last_unref)(inf_model_t *model);
} inf_model_ops_t;

struct inf_model_s {
    _Atomic uint64_t         refs;          /* up relaxed, down acq_rel      */
    const inf_model_ops_t   *ops;           /* set in new()                  */
    void                    *owner;         /* lifecycle's data, for ops     */
    struct inf_server_s     *server;        /* passed to backends by abi     */
    const inf_host_policies_t *host_policies;   /* the lifecycle's, or NULL  */

    char                    *name;              /* these are set in new() or by
                                                   the load, then constant   */
    char                    *space;         /* its namespace; NULL: none     */
    int64_t                  version;
    char                    *dir;           /* of the model, no slash        */
    inf_backend_t           *backend;
    bool                     auto_complete; /* the backend may complete it   */
    void                    *state;         /* the backend's own             */

    inf_lock_t               config_lock;   /* rank 20; guards the next two  */
    inf_model_config_t      *config;
    bool                     completed;     /* the backend set a config      */

    Inference__ModelConfig  *built;         /* as loaded, source of the tables;
                                               constant                      */
    inf_config_tensors_t    *tensors;       /* for the request path          */
    bool                     decoupled;     /* set by the load, then
                                               constant                      */
    bool                     private_inputs;    /* constant: its requests get
                                                   copies                    */
    bool                     own_gpu_inputs;    /* constant: see
                                               private_inputs.h              */
    bool                     sequential;    /* constant: its requests, or those
                                               of a composing model, may have a
                                               sequence                      */
    inf_labels_t            *labels;        /* a reference; constant         */
    inf_statistics_t         statistics;    /* without an instance, or of
                                               removed ones                  */
    inf_latencies_t         *latencies;     /* NULL: not wanted              */
    uint64_t                 load_ns;       /* duration of its load          */

    inf_lock_t               usage_lock;    /* rank 21; guards what follows,
                                               and memory in the instances   */
    inf_memory_usage_t       memory;
    inf_instance_t         **instances;     /* by number                     */
    uint32_t                 instance_count;
    _Atomic bool             making;        /* seq_cst: inf_instances_begin  */
    uint64_t                 last_number;   /* only one operation at a time
                                               adds some; also for names     */
    struct inf_instance_name_s *names;      /* of all instances so far       */

    _Atomic(struct inf_ledger_s *) ledger;  /* release, acquire; NULL: no
                                               ledger                        */

    _Atomic bool             unloaded;       /* seq_cst: finalized in its
                                                backend, with references
                                                left                         */
    _Atomic uint32_t         visitors;      /* seq_cst: running calls of
                                               inf_model_enter               */

    struct {
        struct inf_runner_s *runner;        /* NULL: an ensemble             */
        struct inf_ensemble_s *ensemble;    /* NULL: executed by a backend   */
        const struct inf_entrance_ops_s *entrance;  /* of the ensemble       */
        struct inf_gate_s   *gate;          /* response cache, or NULL       */
        struct inf_batch_strategy_s *strategy;  /* of a plug-in, or NULL     */
        struct inf_sequence_inputs_s *sequence_inputs;  /* or NULL           */
        _Atomic uint32_t     users;         /* inf_entrance_add_user; up
                                               relaxed, down acq_rel         */
    } sched;
};

/* Creates a zeroed model with one reference. */
inf_model_t *inf_model_new(const char *name, int64_t version, const char *dir);

/* Frees the fields; no backend calls or runner are left. */
void inf_model_free(inf_model_t *model);

/* The backend's name; "": an ensemble, or NULL. */
const char *inf_model_backend_name(const inf_model_t *model);

/* Whether requests may have more or fewer than one response. */
bool inf_model_is_decoupled(const inf_model_t *model);

/* Enclose a call into the backend outside of an execution.  false: the model
   was unloaded by force, no call is allowed. */
bool inf_model_enter(inf_model_t *model);
void inf_model_leave(inf_model_t *model);

/* Rejects further visitors; returns when none is left. */
void inf_model_close(inf_model_t *model);

/* The last unref calls ops->last_unref; unref(NULL) does nothing. */
void inf_model_ref(inf_model_t *model);
void inf_model_unref(inf_model_t *model);

#endif /* INF_MODEL_MODEL_H */
