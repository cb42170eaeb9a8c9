/*
 * guard.h - wraps every call into a plug-in: an exception becomes an error.
 *
 * Owner    that of the called entry point.
 * Thread   the calling thread.
 * Units    none.
 * Errors   the error of the entry point; INTERNAL after an exception, with the
 *          names of plug-in and entry point and the exception's type and text.
 * Route    plugin, execute, repository agent -> [guard] -> entry point
 *
 * guard is the only C++ file of the core: only a C++ frame can catch an
 * exception, and an uncaught one ends the process.  Exceptions in a plug-in's
 * own threads, or in constructors that run while its library is opened, are
 * not caught: these end the core, as any crash.
 */

#ifndef INF_ABI_GUARD_H
#define INF_ABI_GUARD_H

#include <stdint.h>

#include "core/base/error.h"
#include "triton/core/tritonbackend.h"
#include "triton/core/tritoncache.h"
#include "triton/core/tritonrepoagent.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef TRITONSERVER_Error *(*inf_guard_backend_fn)(TRITONBACKEND_Backend *);
typedef TRITONSERVER_Error *(*inf_guard_attribute_fn)(TRITONBACKEND_Backend *,
    TRITONBACKEND_BackendAttribute *);
typedef TRITONSERVER_Error *(*inf_guard_model_fn)(TRITONBACKEND_Model *);
typedef TRITONSERVER_Error *(*inf_guard_instance_fn)(
    TRITONBACKEND_ModelInstance *);
typedef TRITONSERVER_Error *(*inf_guard_execute_fn)(
    TRITONBACKEND_ModelInstance *, TRITONBACKEND_Request **, const uint32_t);

typedef TRITONSERVER_Error *(*inf_guard_cache_initialize_fn)(
    TRITONCACHE_Cache **, const char *);
typedef TRITONSERVER_Error *(*inf_guard_cache_finalize_fn)(
    TRITONCACHE_Cache *);
typedef TRITONSERVER_Error *(*inf_guard_cache_fn)(TRITONCACHE_Cache *,
    const char *, TRITONCACHE_CacheEntry *, TRITONCACHE_Allocator *);
typedef TRITONSERVER_Error *(*inf_guard_agent_fn)(TRITONREPOAGENT_Agent *);
typedef TRITONSERVER_Error *(*inf_guard_agent_model_fn)(
    TRITONREPOAGENT_Agent *, TRITONREPOAGENT_AgentModel *);
typedef TRITONSERVER_Error *(*inf_guard_action_fn)(TRITONREPOAGENT_Agent *,
    TRITONREPOAGENT_AgentModel *, const TRITONREPOAGENT_ActionType);

/* Functions of a batch strategy. */
typedef TRITONSERVER_Error *(*inf_guard_batcher_init_fn)(
    TRITONBACKEND_Batcher **, TRITONBACKEND_Model *);
typedef TRITONSERVER_Error *(*inf_guard_batcher_fini_fn)(
    TRITONBACKEND_Batcher *);
typedef TRITONSERVER_Error *(*inf_guard_batch_init_fn)(
    const TRITONBACKEND_Batcher *, void **);
typedef TRITONSERVER_Error *(*inf_guard_batch_include_fn)(
    TRITONBACKEND_Request *, void *, bool *);
typedef TRITONSERVER_Error *(*inf_guard_batch_fini_fn)(void *);

/* The entry point and its plug-in, for the text of an exception's error. */
typedef struct {
    const char *plugin;
    const char *entry;
} inf_guard_who_t;

INF_CHECK inf_err_t *inf_guard_backend(inf_guard_who_t who,
    inf_guard_backend_fn fn, TRITONBACKEND_Backend *backend);
INF_CHECK inf_err_t *inf_guard_attribute(inf_guard_who_t who,
    inf_guard_attribute_fn fn, TRITONBACKEND_Backend *backend,
    TRITONBACKEND_BackendAttribute *attributes);
INF_CHECK inf_err_t *inf_guard_model(inf_guard_who_t who,
    inf_guard_model_fn fn, TRITONBACKEND_Model *model);
INF_CHECK inf_err_t *inf_guard_instance(inf_guard_who_t who,
    inf_guard_instance_fn fn, TRITONBACKEND_ModelInstance *instance);
INF_CHECK inf_err_t *inf_guard_execute(inf_guard_who_t who,
    inf_guard_execute_fn fn, TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, uint32_t count);
INF_CHECK inf_err_t *inf_guard_agent(inf_guard_who_t who,
    inf_guard_agent_fn fn, TRITONREPOAGENT_Agent *agent);
INF_CHECK inf_err_t *inf_guard_agent_model(inf_guard_who_t who,
    inf_guard_agent_model_fn fn, TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model);
INF_CHECK inf_err_t *inf_guard_action(inf_guard_who_t who,
    inf_guard_action_fn fn, TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model, TRITONREPOAGENT_ActionType action);

/* The last function is both lookup and insert. */
INF_CHECK inf_err_t *inf_guard_cache_initialize(inf_guard_who_t who,
    inf_guard_cache_initialize_fn fn, TRITONCACHE_Cache **cache,
    const char *config);
INF_CHECK inf_err_t *inf_guard_cache_finalize(inf_guard_who_t who,
    inf_guard_cache_finalize_fn fn, TRITONCACHE_Cache *cache);
INF_CHECK inf_err_t *inf_guard_cache(inf_guard_who_t who,
    inf_guard_cache_fn fn, TRITONCACHE_Cache *cache, const char *key,
    TRITONCACHE_CacheEntry *entry, TRITONCACHE_Allocator *allocator);
INF_CHECK inf_err_t *inf_guard_batcher_init(inf_guard_who_t who,
    inf_guard_batcher_init_fn fn, TRITONBACKEND_Batcher **batcher,
    TRITONBACKEND_Model *model);
INF_CHECK inf_err_t *inf_guard_batcher_fini(inf_guard_who_t who,
    inf_guard_batcher_fini_fn fn, TRITONBACKEND_Batcher *batcher);
INF_CHECK inf_err_t *inf_guard_batch_init(inf_guard_who_t who,
    inf_guard_batch_init_fn fn, const TRITONBACKEND_Batcher *batcher,
    void **userp);
INF_CHECK inf_err_t *inf_guard_batch_include(inf_guard_who_t who,
    inf_guard_batch_include_fn fn, TRITONBACKEND_Request *request,
    void *userp, bool *joins);
INF_CHECK inf_err_t *inf_guard_batch_fini(inf_guard_who_t who,
    inf_guard_batch_fini_fn fn, void *userp);

#ifdef __cplusplus
}
#endif

#endif /* INF_ABI_GUARD_H */
