/*
 * load.h - one load of a model, from reading its configuration to the swap.
 *
 * Owner    The edit that it carries out owns it; no one uses it while the edit
 *          waits in its record.
 * Thread   the one that carries the edit out.
 * Units    ns.
 * Errors   Each version has its own.
 * Route    model set -> loader thread: [load] -> model set
 */

#ifndef INF_REPOSITORY_LOAD_H
#define INF_REPOSITORY_LOAD_H

#include "core/repository/model_edit.h"
#include "core/repository/model_record.h"

/* A wanted version. */
typedef struct {
    int64_t      version;
    bool         keep;          /* READY, and unchanged                      */
    bool         waited;        /* for a composing model                     */
    inf_model_t *stays;         /* a kept model whose instances may change; a
                                   reference, or NULL                        */
    struct inf_instance_change_s *change;   /* of stays                      */
    inf_model_t *model;         /* built by this load; a reference           */
    inf_model_t *serves;        /* the same, once in service                 */
    inf_err_t   *err;
    inf_reason_t *reason;       /* of err; a reference, or NULL              */
    uint64_t     took_ns;
} inf_load_version_t;

/* State of the call into a backend that builds a version. */
typedef enum {
    INF_CALL_NONE,              /* no call                                   */
    INF_CALL_RUNS,              /* in the lifecycle's calls                  */
    INF_CALL_LATE               /* the load was given up; nothing it makes
                                   comes into service                        */
} inf_call_state_t;

/* Under the lifecycle's lock; the load's thread may read state outside of a
   call. */
typedef struct {
    inf_link_t       link;      /* in the lifecycle's calls                  */
    inf_call_state_t state;
    uint64_t         id;        /* number of the call: 1, 2, ...             */
    int64_t          version;
    uint64_t         since_ns;
    void            *mark;      /* of the load callbacks                     */
    const void      *owner;     /* of the model being built; NULL: a serving
                                   one is changed                            */
} inf_load_call_t;

struct inf_load_s {
    struct inf_lifecycle_s       *lc;
    inf_edit_t                   *edit;
    inf_model_record_t           *record;
    inf_core_config_t            *core_config;  /* a reference               */
    inf_model_source_t  *source;        /* a reference                       */
    bool                 in_place;      /* only lends its settings to the
                                           record's source, which stays      */
    bool                 ensemble;
    bool                 waits;         /* for a repository's listing; begins
                                           again then                        */
    inf_rejection_t      rejection;     /* if it cannot begin                */
    inf_load_version_t  *versions;      /* ascending                         */
    size_t               count;
    inf_model_t        **released;      /* taken out of service by the swap;
                                           has room for all                  */
    size_t               released_count;
    inf_model_source_t  *left;          /* the record's source until the
                                           swap                              */
    inf_model_t        **composing;     /* by step; references               */
    size_t               composing_count;
    inf_reason_t        *lack;          /* why it cannot be made of them; a
                                           reference, or NULL                */
    inf_load_call_t      call;
};

/* Whether the load has another source than the record. */
static inline bool
inf_load_is_fresh(const inf_load_t *l)
{
    return l->source != l->record->source;
}

/* Whether l was given up: its edit has ended. */
static inline bool
inf_load_is_late(const inf_load_t *l)
{
    return l->call.state == INF_CALL_LATE;
}

/* Gives up l during a call: versions that do not serve fail for reason, serving
   ones go on and report it. */
void inf_load_give_up(const inf_load_t *l, inf_reason_t *reason);

/* Fails each version with l's lack. */
void inf_load_fail_all(inf_load_t *l);

#endif /* INF_REPOSITORY_LOAD_H */
