/*
 * load.h - one load of a model, from reading its configuration to the swap.
 *
 * Owner    The edit that it carries out owns it; while the edit waits in its
 *          record nobody touches it.
 * Thread   the one that carries the edit out.
 * Units    ns.
 * Errors   Each version has its own.
 * Route    model set -> loader thread: [load] -> model set
 */

#ifndef INF_REPOSITORY_LOAD_H
#define INF_REPOSITORY_LOAD_H

#include "core/repository/model_edit.h"
#include "core/repository/model_record.h"

/* One version that is wanted. */
typedef struct {
    int64_t      version;
    bool         keep;          /* READY, and would be the same again        */
    bool         waited;        /* for one of its composing models           */
    inf_model_t *stays;         /* the one that is kept and may have other
                                   instances; a reference, or NULL           */
    struct inf_instance_change_s *change;   /* of it                         */
    inf_model_t *model;         /* built by this load; a reference           */
    inf_model_t *serves;        /* the same once it has come into service    */
    inf_err_t   *err;
    inf_reason_t *reason;       /* err's; a reference, or NULL               */
    uint64_t     took_ns;
} inf_load_version_t;

/* The call into a backend that builds a version. */
typedef enum {
    INF_CALL_NONE,              /* none is under way                         */
    INF_CALL_RUNS,              /* in the lifecycle's calls                  */
    INF_CALL_LATE               /* the load was given up before it returned:
                                   nothing that it makes comes into service  */
} inf_call_state_t;

/* Under the lifecycle's lock, but that the thread of the load reads state when
   it is in no call. */
typedef struct {
    inf_link_t       link;      /* in the lifecycle's calls                  */
    inf_call_state_t state;
    uint64_t         id;        /* 1, 2, ...: of the lifecycle's calls       */
    int64_t          version;
    uint64_t         since_ns;
    void            *mark;      /* of the load callbacks                     */
    const void      *owner;     /* of the model that is built; NULL: the call
                                   changes one that serves                   */
} inf_load_call_t;

struct inf_load_s {
    struct inf_lifecycle_s       *lc;
    inf_edit_t                   *edit;
    inf_model_record_t           *record;
    inf_core_config_t            *core_config;  /* a reference               */
    inf_model_source_t  *source;        /* a reference                       */
    bool                 in_place;      /* it only lends its settings to the
                                           record's, which stays             */
    bool                 ensemble;
    bool                 waits;         /* for the listing of a repository;
                                           then it begins anew               */
    inf_load_version_t  *versions;      /* ascending                         */
    size_t               count;
    inf_model_t        **released;      /* what the swap takes out of service;
                                           room for all                      */
    size_t               released_count;
    inf_model_source_t  *left;          /* the record's until the swap       */
    inf_model_t        **composing;     /* composing models by step;
                                           references                        */
    size_t               composing_count;
    inf_reason_t        *lack;          /* why it can't be made of them; a
                                           reference, NULL: it can           */
    inf_load_call_t      call;
};

/* Whether the load brings another source than that of the record. */
static inline bool
inf_load_is_fresh(const inf_load_t *l)
{
    return l->source != l->record->source;
}

/* Whether l was given up: its edit has ended without it. */
static inline bool
inf_load_is_late(const inf_load_t *l)
{
    return l->call.state == INF_CALL_LATE;
}

/* l is given up while a call of it is under way: versions that don't serve have
   failed for reason, those that do go on and tell it. */
void inf_load_give_up(const inf_load_t *l, inf_reason_t *reason);

/* Each version fails for l's lack. */
void inf_load_fail_all(inf_load_t *l);

#endif /* INF_REPOSITORY_LOAD_H */
