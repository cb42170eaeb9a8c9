/*
 * plugin_library.h - opens the shared library of a plug-in of any kind:
 *                    backend, cache, repository agent, batch strategy.
 *
 * Owner    The caller closes the handle with dlclose, or never, depending on
 *          the kind of plug-in.
 * Thread   any.
 * Units    none.
 * Errors   NOT_FOUND: a missing or damaged library, or a missing entry point;
 *          the text names it.
 * Route    plugin, cache_plugin, repository_agent, batch_strategy ->
 *          [plugin_library] -> elf_check, forwarding, dlopen
 */

#ifndef INF_ABI_PLUGIN_LIBRARY_H
#define INF_ABI_PLUGIN_LIBRARY_H

#include "core/base/error.h"

/* Opens the library at path, an absolute path.  Checks the file before it is
   mapped, and provides a core under another name if it needs one. */
INF_CHECK inf_err_t *inf_plugin_library_open(const char *path, void **handle);

/* Finds an entry point; a missing one is an error, whose text has path. */
INF_CHECK inf_err_t *inf_plugin_library_require(void *handle,
    const char *path, const char *entry, void **address);

#endif /* INF_ABI_PLUGIN_LIBRARY_H */
