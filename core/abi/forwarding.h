/*
 * forwarding.h - lets a library that needs the core under another name use
 *                this core.
 *
 * Owner    The libraries created here live as long as the process.
 * Thread   any; serialised inside.
 * Units    none.
 * Errors   UNAVAILABLE and others: the library could not be created or loaded.
 * Route    plugin -> [forwarding] -> dlopen
 *
 * Repaired Python wheels rename the libraries they contain and all references
 * to them: a plug-in from a wheel needs libtritonserver-<hash>.so.  The
 * dynamic loader accepts any loaded library of that SONAME, so an empty one is
 * created in memory; the functions are found in the core itself.
 */

#ifndef INF_ABI_FORWARDING_H
#define INF_ABI_FORWARDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/error.h"

/* Called before library is opened.  Does nothing if the library needs no
   renamed core or cannot be read; dlopen reports the latter better. */
INF_CHECK inf_err_t *inf_forwarding_load(const char *library);

/* Whether name is libtritonserver-<hexadecimal digits>.so. */
bool inf_forwarding_matches(const char *name);

/* Appends a shared object with SONAME soname that needs needed (NULL:
   nothing). */
void inf_forwarding_image(inf_buf_t *to, uint16_t machine,
    const char *soname, const char *needed);

#endif /* INF_ABI_FORWARDING_H */
