#include "core/abi/plugins.h"

#include "core/abi/cache_plugin.h"
#include "core/abi/plugin.h"
#include "core/abi/repository_agent.h"

const inf_server_plugins_t inf_abi_plugins = {
    .backends = &inf_plugin_ops,
    .agents   = &inf_agent_ops,
    .caches   = &inf_cache_plugin_opener
};
