/*
 * includes.h - checks that a source includes only files of its directory.
 *
 * Owner    nothing is kept.
 * Thread   any.
 * Units    none.
 * Errors   none.
 * Route    image -> [includes] -> whether compiled code is kept
 *
 * The compiler itself opens other files, at least those with absolute names,
 * and cached code would not follow their changes.
 */

#ifndef GPU_INCLUDES_H
#define GPU_INCLUDES_H

#include "common/gpu_compiler.h"

/* Finds directives in all spellings, with joined lines and comments.  false: a
 * directive names another file or a macro, a text resembles a directive, or
 * there is no memory. */
bool gpu_includes_are_known(const gpu_source_t *source);

#endif /* GPU_INCLUDES_H */
