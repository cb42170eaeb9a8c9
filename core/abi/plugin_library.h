/*
 * plugin_library.h - opens the shared library of a plug-in of any kind:
 *                    backend, cache, repository agent, batch strategy.
 *
 * Owner    The caller closes the handle with dlclose, or never, as its kind
 *          of plug-in demands.
 * Thread   any.
 * Units    none.
 * Errors   NOT_FOUND: no library, a damaged one, or an entry point that is
 *          missing; the text names it.
 * Route    plugin, cache_plugin, repository_agent, batch_strategy
 *          -> [plugin_library] -> elf_check, forwarding, dlopen
 */

#ifndef INF_ABI_PLUGIN_LIBRARY_H
#define INF_ABI_PLUGIN_LIBRARY_H

#include "core/base/error.h"

/* path is a whole one.  Checked before it is mapped; what it needs of a core
   under another name is there when it is. */
INF_CHECK inf_err_t *inf_plugin_library_open(const char *path, void **handle);

/* A missing entry point is an error; path is for its text. */
INF_CHECK inf_err_t *inf_plugin_library_require(void *handle,
    const char *path, const char *entry, void **address);

#endif /* INF_ABI_PLUGIN_LIBRARY_H */
