/*
 * forced_unload.h - unloads a model whose instance has lost a process, although
 *            others still refer to it.
 *
 * Owner    Takes no reference; the caller holds one meanwhile.
 * Thread   a thread of its own: finalizers may block.
 * Units    none.
 * Errors   A name that can't be removed is logged.
 * Route    lifecycle -> [forced unload] -> runner, plug-in operations, ledger
 *
 * A model is normally finalized when its last reference goes.  A backend
 * whose process has died can hold references for ever, because that process
 * was to say when it is done with them.  So here the backend is finalized
 * first, then everything that it still holds is answered and given back.
 */

#ifndef INF_REPOSITORY_FORCED_UNLOAD_H
#define INF_REPOSITORY_FORCED_UNLOAD_H

#include "core/repository/children.h"
#include "core/repository/plugin_ops.h"

/*
 * The model is out of the registry.  Queued requests, and what the backend
 * leaves unanswered, get why.  Afterwards inf_model_unload only frees.
 */
void inf_model_force_unload(inf_model_t *model, const inf_plugin_ops_t *plugins,
    inf_children_t *children, const char *why);

#endif /* INF_REPOSITORY_FORCED_UNLOAD_H */
