/*
 * children.h - watches processes that a backend started while an instance was
 *              initialized.
 *
 * Owner    The lifecycle owns the watch.  The processes stay the backend's:
 *          nothing here reaps or ends them.
 * Thread   watch: the thread that initializes the instance; the rest: any. died
 *          is called on the watch's own thread, which is started for the first
 *          watched process.
 * Units    none.
 * Errors   A process that cannot be watched (no /proc, no pidfd) is logged.
 * Route    model_load -> [children] -> lifecycle -> model_load
 */

#ifndef INF_REPOSITORY_CHILDREN_H
#define INF_REPOSITORY_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

#include "core/base/os/pid_list.h"
#include "core/model/model.h"

typedef struct inf_children_s inf_children_t;

/* Names in /dev/shm shared with exited processes. */
typedef struct inf_leftovers_s inf_leftovers_t;

/* Called when a process of an instance of model has exited; why says which and
   how. model lives until inf_children_let_go has returned. */
typedef void (*inf_child_died_fn)(void *userp, inf_model_t *model,
    const char *why);

/* Creates a watch without a thread or descriptors. */
INF_CHECK inf_err_t *inf_children_new(inf_child_died_fn died, void *userp,
    inf_children_t **out);

/* stop: no call of died runs after it has returned.  Then free. */
void inf_children_stop(inf_children_t *c);
void inf_children_free(inf_children_t *c);

/* Watches the calling thread's children that are not in before, as processes of
   instance.  Exits are reported after inf_children_arm.  c may be NULL. */
void inf_children_watch(inf_children_t *c, inf_instance_t *instance,
    const inf_pid_list_t *before);

/* Whether any process of model is watched; c may be NULL. */
bool inf_children_any(inf_children_t *c, const inf_model_t *model);

/* Called when the model serves: reports exits, including earlier ones. */
void inf_children_arm(inf_children_t *c, const inf_model_t *model);

/* Kills the watched processes of the owner's model and returns their number.
   owner NULL: none. */
uint32_t inf_children_kill(inf_children_t *c, const void *owner);

/* Called before instance (NULL: any) of model is finalized: exits are not
   reported any more.  c may be NULL. */
void inf_children_let_go(inf_children_t *c, const inf_model_t *model,
    const inf_instance_t *instance);

/* Whether model had processes and all have exited, so that a wait for one
   cannot end. */
bool inf_children_stranded(inf_children_t *c, const inf_model_t *model);

/* Stops watching the processes of instance (NULL: any) of model, after its
   finalizers, or when they do not return.  Returns the names that exited
   processes may have left; NULL: none.  c may be NULL. */
inf_leftovers_t *inf_children_forget(inf_children_t *c,
    const inf_model_t *model, const inf_instance_t *instance);

/* Joins a and b, which are taken. */
inf_leftovers_t *inf_leftovers_join(inf_leftovers_t *a, inf_leftovers_t *b);

/*
 * Removes those names that still refer to memory of the exited process, if no
 * process maps it; ours: our own mappings are ignored.  Takes l.
 */
void inf_leftovers_remove(inf_leftovers_t *l, bool ours);

#endif /* INF_REPOSITORY_CHILDREN_H */
