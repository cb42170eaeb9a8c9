/*
 * lifecycle_parts.h - what the files of the lifecycle share: lifecycle.c (the
 *                     operations' queues and threads), lifecycle_start.c (the
 *                     first of them), lifecycle_load.c (what they do),
 *                     lifecycle_follow.c (when the repositories change),
 *                     lifecycle_names.c (which models a name means),
 *                     lifecycle_end.c (publishing, taking apart),
 *                     lifecycle_lost.c (when a process of a model dies),
 *                     lifecycle_terms.c (options that change).
 *
 * Owner    The lifecycle owns records, queued operations and its threads.
 * Thread   as lifecycle.h; fields say under which lock.
 * Units    ns.
 * Errors   as lifecycle.h.
 * Route    lifecycle -> lifecycle_load -> lifecycle_end
 */

#ifndef INF_REPOSITORY_LIFECYCLE_PARTS_H
#define INF_REPOSITORY_LIFECYCLE_PARTS_H

#include <pthread.h>

#include "core/base/lock.h"
#include "core/repository/agent_table.h"
#include "core/repository/backend_table.h"
#include "core/repository/children.h"
#include "core/repository/model_record.h"

/* Half of them for those that lend a hand for a while. */
#define INF_LOADERS_MAX 256u

typedef enum {
    INF_OP_LOAD,
    INF_OP_RELOAD,              /* the same again: an instance is broken     */
    INF_OP_UNLOAD,
    INF_OP_NAMED,               /* one of them for each model of a name      */
    INF_OP_FOLLOW               /* one of them, or nothing                   */
} inf_op_kind_t;

typedef struct {
    inf_link_t             link;        /* in its record's ops               */
    inf_model_record_t    *record;
    inf_op_kind_t          kind;
    int64_t                version;     /* of RELOAD; -1: all                */
    bool                   start;       /* one of those at the start         */
    bool                   unload;      /* of NAMED; else it loads           */
    bool                   asked;       /* of LOAD: by request               */
    bool                   all;         /* of FOLLOW: whatever lies there    */
    bool                   fresh;       /* of FOLLOW: it is newly named      */
    bool                   dropped;     /* of FOLLOW: it isn't named; once
                                           decided: that's why it goes       */
    bool                   adopt;       /* of FOLLOW: it stays all the same;
                                           once decided: that it does        */
    bool                   wanted;      /* the model, from now on            */
    bool                   forget;      /* of UNLOAD: failures, too          */
    inf_repository_list_t *list;        /* of UNLOAD: it was decided on these;
                                           NULL: whatever there is           */
    inf_override_t        *override;
    inf_lifecycle_done_fn  done;        /* NULL: nobody asks                 */
    void                  *userp;
} inf_lifecycle_op_t;

typedef enum {
    INF_LOADER_FREE,
    INF_LOADER_RUNS,
    INF_LOADER_ENDED            /* to be joined                              */
} inf_loader_state_t;

typedef struct {
    struct inf_lifecycle_s *lc;
    inf_loader_state_t      state;
    bool                    unloads;    /* takes unloads, no loads           */
    pthread_t               thread;
} inf_loader_t;

struct inf_lifecycle_terms_s {
    _Atomic uint32_t        refs;
    inf_lifecycle_options_t options;    /* whole, once they are in force     */
    void                  (*release)(void *userp);      /* NULL: nothing     */
    void                   *userp;
};

struct inf_lifecycle_s {
    inf_lifecycle_options_t  options;       /* constant; terms may differ    */
    inf_backend_table_t     *backends;
    inf_agent_table_t       *agents;
    inf_timekeeper_t         timekeeper;    /* of all models                 */

    inf_lock_t               publish_lock;  /* rank 5: one snapshot at a
                                               time                          */
    inf_lock_t               lock;      /* rank 10; guards what follows      */
    inf_cond_t               work;      /* something queued, or stopping     */
    inf_cond_t               idle;      /* an operation or a model ended     */
    inf_lifecycle_terms_t   *terms;     /* a reference; never NULL           */
    inf_link_t               models;    /* records, by id                    */
    size_t                   model_count;
    inf_link_t               loads;     /* records whose turn it is          */
    inf_link_t               unloads;
    uint32_t                 busy;      /* operations queued or running      */
    uint32_t                 starting;  /* of them, those of the start       */
    bool                     unseen;    /* a repository of which all models
                                           are wanted was never listed       */
    uint64_t                 alive;     /* model objects not yet destroyed   */
    inf_link_t               destroyers;
    inf_link_t               losses;    /* lifecycle_lost.c                  */
    bool                     stopping;
    inf_loader_t             loaders[INF_LOADERS_MAX];
    uint32_t                 running;   /* loaders that take loads           */
    uint32_t                 enough;    /* of them; more than that end       */
};

/* What a loaded version is to us: model->owner. */
typedef struct {
    inf_lifecycle_t    *lc;
    inf_model_record_t *record;
    inf_model_home_t   *home;           /* a reference                       */
    inf_lifecycle_terms_t *terms;       /* likewise                          */
} inf_loaded_t;

/* ---- lifecycle.c -------------------------------------------------------- */

INF_CHECK inf_err_t *inf_lifecycle_op_new(inf_op_kind_t kind,
    inf_lifecycle_done_fn done, void *userp, inf_lifecycle_op_t **out);

/* Tells whoever asked; takes both. */
void inf_lifecycle_op_end(inf_lifecycle_op_t *op, inf_err_t *err);

/* Queues op, which it takes. */
void inf_lifecycle_submit(inf_lifecycle_t *lc, const inf_model_id_t *id,
    inf_lifecycle_op_t *op);

/* r is the lifecycle's from now on. */
void inf_lifecycle_insert_locked(inf_lifecycle_t *lc, inf_model_record_t *r);

/* NULL: nothing is known of it. */
inf_model_record_t *inf_lifecycle_find_locked(const inf_lifecycle_t *lc,
    const inf_model_id_t *id);

/* ---- lifecycle_terms.c --------------------------------------------------- */

/* Those that a load begins with; a reference. */
inf_lifecycle_terms_t *inf_lifecycle_take_terms(inf_lifecycle_t *lc);

/* ---- lifecycle_load.c: one operation; the error is for who asked --------- */

/* *changed: something came into service. */
INF_CHECK inf_err_t *inf_lifecycle_run_load(inf_lifecycle_t *lc,
    const inf_lifecycle_op_t *op, bool *changed);
void inf_lifecycle_run_unload(inf_lifecycle_t *lc,
    const inf_lifecycle_op_t *op);

/* ---- lifecycle_names.c --------------------------------------------------- */

/* Replaces op by others, or makes it one of another kind. */
INF_CHECK inf_err_t *inf_lifecycle_run_named(inf_lifecycle_t *lc,
    inf_lifecycle_op_t *op);

/* ---- lifecycle_follow.c -------------------------------------------------- */

/* What op, one that follows, has to do now: its new kind. */
INF_CHECK inf_err_t *inf_lifecycle_run_follow(inf_lifecycle_t *lc,
    inf_lifecycle_op_t *op);

/* ---- lifecycle_end.c ----------------------------------------------------- */

/* What is READY now becomes the snapshot that requests are served from. */
void inf_lifecycle_publish(inf_lifecycle_t *lc);

/* READY becomes UNLOADING; the reference is the caller's to give up, after
   publishing and without the lock.  NULL: it wasn't READY. */
inf_model_t *inf_lifecycle_withdraw_locked(inf_record_version_t *v);

/* Joins the threads that have taken a model apart. */
void inf_lifecycle_reap(inf_lifecycle_t *lc);

/* A model that is being taken apart, from the list's start on; *at begins as
   NULL.  The pointer is only to be compared.  NULL: no other. */
const inf_model_t *inf_lifecycle_next_leaving_locked(
    const inf_lifecycle_t *lc, const inf_link_t **at);

extern const inf_model_ops_t inf_lifecycle_model_ops;

/* ---- lifecycle_lost.c: a version whose process has died ------------------ */

/* For inf_children_new; userp is the lifecycle. */
void inf_lifecycle_child_died(void *userp, inf_model_t *model,
    const char *why);

/* Before the deaths-th death in a row is made good. */
uint64_t inf_lifecycle_lost_delay_ns(uint32_t deaths);

/* Joins the threads that are done with a loss; all: those that aren't too. */
void inf_lifecycle_reap_losses(inf_lifecycle_t *lc, bool all);

/*
 * Whether everything that is still alive waits for processes that are gone;
 * forget: nobody will wait for it, what it leaves in /dev/shm is removed.
 */
bool inf_lifecycle_stranded(inf_lifecycle_t *lc);
void inf_lifecycle_forget_stranded(inf_lifecycle_t *lc);

#endif /* INF_REPOSITORY_LIFECYCLE_PARTS_H */
