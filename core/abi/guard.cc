/* guard.cc - see guard.h */

#include <cxxabi.h>
#include <cstdlib>
#include <exception>
#include <typeinfo>

extern "C" {
#include "core/base/error.h"
}
#include "core/abi/guard.h"

/* Inside a handler. */
static inf_err_t *
thrown(const inf_guard_who_t &who, const char *text)
{
    const std::type_info *type = abi::__cxa_current_exception_type();
    char *name = type == nullptr ? nullptr
        : abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr);

    inf_err_t *err = inf_err_new(INF_ERR_INTERNAL,
        "%s of '%s' threw an exception%s%s%s%s", who.entry, who.plugin,
        name != nullptr ? ", " : "", name != nullptr ? name : "",
        text != nullptr ? ": " : "", text != nullptr ? text : "");
    std::free(name);
    return err;
}

template <typename Call>
static inf_err_t *
guarded(const inf_guard_who_t &who, Call call)
{
    try {
        return call();

    } catch (abi::__forced_unwind &) {
        throw;                          /* the thread ends: not ours to stop */

    } catch (const std::exception &e) {
        return thrown(who, e.what());

    } catch (...) {
        return thrown(who, nullptr);
    }
}

inf_err_t *
inf_guard_backend(inf_guard_who_t who, inf_guard_backend_fn fn,
    TRITONBACKEND_Backend *backend)
{
    return guarded(who, [=] { return fn(backend); });
}

inf_err_t *
inf_guard_attribute(inf_guard_who_t who, inf_guard_attribute_fn fn,
    TRITONBACKEND_Backend *backend,
    TRITONBACKEND_BackendAttribute *attributes)
{
    return guarded(who, [=] { return fn(backend, attributes); });
}

inf_err_t *
inf_guard_model(inf_guard_who_t who, inf_guard_model_fn fn,
    TRITONBACKEND_Model *model)
{
    return guarded(who, [=] { return fn(model); });
}

inf_err_t *
inf_guard_instance(inf_guard_who_t who, inf_guard_instance_fn fn,
    TRITONBACKEND_ModelInstance *instance)
{
    return guarded(who, [=] { return fn(instance); });
}

inf_err_t *
inf_guard_execute(inf_guard_who_t who, inf_guard_execute_fn fn,
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests,
    uint32_t count)
{
    return guarded(who, [=] { return fn(instance, requests, count); });
}

inf_err_t *
inf_guard_cache_initialize(inf_guard_who_t who,
    inf_guard_cache_initialize_fn fn, TRITONCACHE_Cache **cache,
    const char *config)
{
    return guarded(who, [=] { return fn(cache, config); });
}

inf_err_t *
inf_guard_cache_finalize(inf_guard_who_t who, inf_guard_cache_finalize_fn fn,
    TRITONCACHE_Cache *cache)
{
    return guarded(who, [=] { return fn(cache); });
}

inf_err_t *
inf_guard_cache(inf_guard_who_t who, inf_guard_cache_fn fn,
    TRITONCACHE_Cache *cache, const char *key, TRITONCACHE_CacheEntry *entry,
    TRITONCACHE_Allocator *allocator)
{
    return guarded(who, [=] { return fn(cache, key, entry, allocator); });
}

inf_err_t *
inf_guard_agent(inf_guard_who_t who, inf_guard_agent_fn fn,
    TRITONREPOAGENT_Agent *agent)
{
    return guarded(who, [=] { return fn(agent); });
}

inf_err_t *
inf_guard_agent_model(inf_guard_who_t who, inf_guard_agent_model_fn fn,
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model)
{
    return guarded(who, [=] { return fn(agent, model); });
}

inf_err_t *
inf_guard_action(inf_guard_who_t who, inf_guard_action_fn fn,
    TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model,
    TRITONREPOAGENT_ActionType action)
{
    return guarded(who, [=] { return fn(agent, model, action); });
}

inf_err_t *
inf_guard_batcher_init(inf_guard_who_t who, inf_guard_batcher_init_fn fn,
    TRITONBACKEND_Batcher **batcher, TRITONBACKEND_Model *model)
{
    return guarded(who, [=] { return fn(batcher, model); });
}

inf_err_t *
inf_guard_batcher_fini(inf_guard_who_t who, inf_guard_batcher_fini_fn fn,
    TRITONBACKEND_Batcher *batcher)
{
    return guarded(who, [=] { return fn(batcher); });
}

inf_err_t *
inf_guard_batch_init(inf_guard_who_t who, inf_guard_batch_init_fn fn,
    const TRITONBACKEND_Batcher *batcher, void **userp)
{
    return guarded(who, [=] { return fn(batcher, userp); });
}

inf_err_t *
inf_guard_batch_include(inf_guard_who_t who, inf_guard_batch_include_fn fn,
    TRITONBACKEND_Request *request, void *userp, bool *joins)
{
    return guarded(who, [=] { return fn(request, userp, joins); });
}

inf_err_t *
inf_guard_batch_fini(inf_guard_who_t who, inf_guard_batch_fini_fn fn,
    void *userp)
{
    return guarded(who, [=] { return fn(userp); });
}
