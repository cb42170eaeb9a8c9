/*
 * model.h - one version of a model in memory, and its instances.
 *
 * Owner    Shared by reference: the lifecycle's table, each request's
 *          factory, each backend-side factory handle.  The last reference
 *          calls ops->last_unref, which destroys it off the caller's stack.
 * Thread   fields are set while the model is loaded by one loader thread and
 *          then read by anyone; the configuration under config_lock.
 * Units    none.
 * Errors   none here.
 * Route    lifecycle makes it; registry finds it; runtime executes on it.
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
    void                      *state;       /* the backend's                 */
    inf_statistics_t           statistics;
    inf_memory_usage_t         memory;      /* the model's usage_lock        */
    uint64_t                   number;      /* ascending in its model        */
    uint32_t                   visits;      /* the model's usage_lock        */
    bool                       leaving;     /* no more visits; likewise      */

    /* seq_cst: requests that Execute did not give back and answers that were
       open when their request was; those that came later */
    _Atomic uint64_t           kept;
    _Atomic uint64_t           returned;

    struct {
        struct inf_instance_thread_s *thread;   /* NULL: passive             */
        struct inf_instance_s *peer;        /* next on that thread: a ring of
                                               one, or of a device's         */
    } sched;

    struct {
        bool                   initialized; /* ModelInstanceInitialize ran   */
        struct inf_json_text_s *host_policy;
        struct inf_execution_s *execution;  /* what Execute was given        */
    } abi;
} inf_instance_t;

typedef struct {
    /* The last reference is gone; called on any thread, returns at once. */
    void (*last_unref)(inf_model_t *model);
} inf_model_ops_t;

struct inf_model_s {
    _Atomic uint64_t         refs;          /* up relaxed, down acq_rel      */
    const inf_model_ops_t   *ops;           /* set in new()                  */
    void                    *owner;         /* for ops: the lifecycle's part */
    struct inf_server_s     *server;        /* abi gives it to backends      */
    const inf_host_policies_t *host_policies;   /* the lifecycle's, or NULL  */

    char                    *name;              /* these are set in new() or
                                                   by the load, then
                                                   constant                  */
    char                    *space;         /* its namespace; NULL: none     */
    int64_t                  version;
    char                    *dir;           /* of the model, no slash        */
    inf_backend_t           *backend;
    bool                     auto_complete; /* may the backend complete it   */
    void                    *state;         /* the backend's                 */

    inf_lock_t               config_lock;   /* rank 20; guards the next two  */
    inf_model_config_t      *config;
    bool                     completed;     /* the backend set a config      */

    Inference__ModelConfig  *built;         /* as loaded: what the tables
                                               were made from; constant      */
    inf_config_tensors_t    *tensors;       /* request path's table          */
    bool                     decoupled;     /* set by the load, then
                                               constant                      */
    bool                     private_inputs;    /* constant: its requests get
                                               copies                        */
    bool                     own_gpu_inputs;    /* constant: see
                                               private_inputs.h              */
    bool                     sequential;    /* constant: its requests, or
                                               those of a composing model,
                                               may be of a sequence          */
    inf_labels_t            *labels;        /* a reference; constant         */
    inf_statistics_t         statistics;    /* what met no instance, or one
                                               that is gone                  */
    inf_latencies_t         *latencies;     /* NULL: not asked for           */
    uint64_t                 load_ns;       /* how long its load took        */

    inf_lock_t               usage_lock;    /* rank 21; guards what follows
                                               and memory in the instances   */
    inf_memory_usage_t       memory;
    inf_instance_t         **instances;     /* by number                     */
    uint32_t                 instance_count;
    _Atomic bool             making;        /* seq_cst: inf_instances_begin  */
    uint64_t                 last_number;   /* only one operation at a time
                                               makes more; like names        */
    struct inf_instance_name_s *names;      /* of all instances ever         */

    _Atomic(struct inf_ledger_s *) ledger;  /* release, acquire; NULL: no
                                               account is kept               */

    _Atomic bool             unloaded;       /* seq_cst: its backend is done
                                                with it, though references
                                                are left                     */
    _Atomic uint32_t         visitors;      /* seq_cst: calls of
                                               inf_model_enter               */

    struct {
        struct inf_runner_s *runner;        /* NULL: an ensemble             */
        struct inf_ensemble_s *ensemble;    /* NULL: a backend executes it   */
        const struct inf_entrance_ops_s *entrance;  /* the ensemble's        */
        struct inf_gate_s   *gate;          /* the response cache's, or NULL */
        struct inf_batch_strategy_s *strategy;  /* a plug-in's, or NULL      */
        struct inf_sequence_inputs_s *sequence_inputs;  /* or NULL           */
        _Atomic uint32_t     users;         /* inf_entrance_add_user; up
                                               relaxed, down acq_rel         */
    } sched;
};

/* A zeroed model with one reference. */
inf_model_t *inf_model_new(const char *name, int64_t version, const char *dir);

/* Frees what the fields own; backend calls and runner are over by then. */
void inf_model_free(inf_model_t *model);

/* "": an ensemble, or NULL. */
const char *inf_model_backend_name(const inf_model_t *model);

/* More or fewer than one response per request. */
bool inf_model_is_decoupled(const inf_model_t *model);

/* Around a call into the backend from outside an execution.  false: the model
   is unloaded by force: there must be none. */
bool inf_model_enter(inf_model_t *model);
void inf_model_leave(inf_model_t *model);

/* No visitor comes in any more; returns when none is there. */
void inf_model_close(inf_model_t *model);

/* The last unref calls ops->last_unref; unref(NULL) does nothing. */
void inf_model_ref(inf_model_t *model);
void inf_model_unref(inf_model_t *model);

#endif /* INF_MODEL_MODEL_H */
