/*
 * forced_unload.h - unloads a model whose instance has lost a process, with
 *                   references left.
 *
 * Owner    Takes no reference; the caller holds one.
 * Thread   its own thread: finalizers may block.
 * Units    none.
 * Errors   Names that cannot be removed are logged.
 * Route    lifecycle -> [forced unload] -> runner, plug-in operations, ledger
 *
 * A model is normally finalized after its last reference.  A backend whose
 * process has exited may hold references for ever, because that process would
 * have released them.  So the backend is finalized first, and then everything
 * it still holds is answered and returned.
 */

#ifndef INF_REPOSITORY_FORCED_UNLOAD_H
#define INF_REPOSITORY_FORCED_UNLOAD_H

#include "core/repository/children.h"
#include "core/repository/plugin_ops.h"

/*
 * Unloads model, which is out of the registry.  Queued requests, and requests
 * that the backend leaves unanswered, fail with why.  inf_model_unload then
 * only frees memory.
 */
void inf_model_force_unload(inf_model_t *model, const inf_plugin_ops_t *plugins,
    inf_children_t *children, const char *why);

#endif /* INF_REPOSITORY_FORCED_UNLOAD_H */
