/*
 * forwarding.h - lets a library that asks for the core under another name
 *                find this one.
 *
 * Owner    The libraries made here live as long as the process.
 * Thread   any; serialised inside.
 * Units    none.
 * Errors   UNAVAILABLE and such: the library could not be made or loaded.
 * Route    plugin -> [forwarding] -> dlopen
 *
 * Repaired Python wheels rename the libraries they carry and everything that
 * refers to them: a plug-in out of one asks for libtritonserver-<hash>.so.
 * The loader takes any library of that SONAME that is already there, so an
 * empty one is made in memory; the functions are found in the core itself.
 */

#ifndef INF_ABI_FORWARDING_H
#define INF_ABI_FORWARDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/error.h"

/* To be called before library is opened.  Does nothing where the library
   asks for no renamed core, or cannot be read: dlopen says that better. */
INF_CHECK inf_err_t *inf_forwarding_load(const char *library);

/* libtritonserver-<hexadecimal digits>.so */
bool inf_forwarding_matches(const char *name);

/* Appends a shared object that is called soname and needs needed (NULL:
   nothing). */
void inf_forwarding_image(inf_buf_t *to, uint16_t machine,
    const char *soname, const char *needed);

#endif /* INF_ABI_FORWARDING_H */
