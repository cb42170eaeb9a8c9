/*
 * guard.h - every call into a plugin: what it throws comes back as an error.
 *
 * Owner    as the entry point called.
 * Thread   any; the calling one.
 * Units    none.
 * Errors   what the entry point returned; INTERNAL with the plugin's and its
 *          name, the exception's type and text when it threw.
 * Route    plugin, execute -> [guard] -> entry point
 *
 * The one C++ file of the core: only a C++ frame can end an exception, and
 * one that nobody ends ends the process.  A thread of the plugin's own, and a
 * constructor that runs while the library is opened, are beyond its reach:
 * what they throw kills the core, as any crash does.
 */

#ifndef INF_ABI_GUARD_H
#define INF_ABI_GUARD_H

#include <stdint.h>

#include "core/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef inf_err_t *(*inf_guard_one_fn)(void *object);
typedef inf_err_t *(*inf_guard_two_fn)(void *object, void *other);
typedef inf_err_t *(*inf_guard_execute_fn)(void *instance, void **requests,
    const uint32_t count);

/* Whose entry point it is: both go into the text of what it throws. */
typedef struct {
    const char *plugin;
    const char *entry;
} inf_guard_who_t;

INF_CHECK inf_err_t *inf_guard_one(inf_guard_who_t who, inf_guard_one_fn fn,
    void *object);
INF_CHECK inf_err_t *inf_guard_two(inf_guard_who_t who, inf_guard_two_fn fn,
    void *object, void *other);
INF_CHECK inf_err_t *inf_guard_execute(inf_guard_who_t who,
    inf_guard_execute_fn fn, void *instance, void **requests,
    uint32_t count);

#ifdef __cplusplus
}
#endif

#endif /* INF_ABI_GUARD_H */
