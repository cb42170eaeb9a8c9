/*
 * children.h - processes that a backend started while an instance was
 *              initialised: who they are, and that one of them has died.
 *
 * Owner    The lifecycle owns the watch.  The processes stay the backend's:
 *          nobody here waits for them or ends them.
 * Thread   watch: the thread that initialises the instance; the rest: any.
 *          died is called on the watch's own thread, which exists only once a
 *          process is watched.
 * Units    none.
 * Errors   A process that can't be watched (no /proc, no pidfd) is logged and
 *          left unwatched.
 * Route    model_load -> [children] -> lifecycle -> model_load
 */

#ifndef INF_REPOSITORY_CHILDREN_H
#define INF_REPOSITORY_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/base/os/pid_list.h"
#include "core/model/model.h"

typedef struct inf_children_s inf_children_t;

/* Names in /dev/shm that dead processes shared with us. */
typedef struct inf_leftovers_s inf_leftovers_t;

/* A process of an instance of model is gone; why says which and how.  model
   lives until inf_children_let_go has returned. */
typedef void (*inf_child_died_fn)(void *userp, inf_model_t *model,
    const char *why);

/* Watches nothing yet: no thread, no descriptor. */
INF_CHECK inf_err_t *inf_children_new(inf_child_died_fn died, void *userp,
    inf_children_t **out);

/* Calls died no more once it has returned; then free. */
void inf_children_stop(inf_children_t *c);
void inf_children_free(inf_children_t *c);

/* c may be NULL.  From now on the calling thread's children that are not in
   before belong to instance.  Their deaths are told from inf_children_arm
   on. */
void inf_children_watch(inf_children_t *c, inf_instance_t *instance,
    const inf_pid_list_t *before);

/* Whether any process of model is watched; c may be NULL. */
bool inf_children_any(inf_children_t *c, const inf_model_t *model);

/* The model serves: a death from now on, or one that has been, is told. */
void inf_children_arm(inf_children_t *c, const inf_model_t *model);

/* Kills the watched processes of the model of that owner; how many.  owner
   NULL: none. */
uint32_t inf_children_kill(inf_children_t *c, const void *owner);

/* c may be NULL.  Before the instances of model are finalized: its processes
   may end, that is told no more. */
void inf_children_let_go(inf_children_t *c, const inf_model_t *model);

/* The same for one instance, and when it is finalized: what its processes may
   have left, as from inf_children_forget. */
void inf_children_let_go_of(inf_children_t *c, const inf_instance_t *instance);
inf_leftovers_t *inf_children_forget_of(inf_children_t *c,
    const inf_instance_t *instance);

/* Whether model had processes and none of them lives: what waits for one of
   them now waits for ever. */
bool inf_children_stranded(inf_children_t *c, const inf_model_t *model);

/* c may be NULL.  After that, or when its finalizers don't return.  The caller
   gets what dead processes may have left; NULL: nothing. */
inf_leftovers_t *inf_children_forget(inf_children_t *c,
    const inf_model_t *model);

/* Takes both, gives one. */
inf_leftovers_t *inf_leftovers_join(inf_leftovers_t *a, inf_leftovers_t *b);

/*
 * Removes the names that still mean the memory of the dead process, if no
 * process maps it; ours: our own mappings don't count.  Takes l.
 */
void inf_leftovers_remove(inf_leftovers_t *l, bool ours);

#endif /* INF_REPOSITORY_CHILDREN_H */
