/*
 * includes.h - whether a source includes the files alone that come with it.
 *
 * Owner    nobody: it reads the caller's texts.
 * Thread   any.
 * Units    none.
 * Errors   none.
 * Route    image -> [includes] -> whether compiled code is kept
 *
 * The compiler opens other files itself, by absolute names at least, and code
 * that is kept would outlive a change of them.
 */

#ifndef GPU_INCLUDES_H
#define GPU_INCLUDES_H

#include "common/gpu_compiler.h"

/* Directives are found in all their spellings, lines that are joined and
 * comments among them; a name by a macro counts as another file, and so does
 * what only looks like a directive.  Without memory nothing is known. */
bool gpu_includes_are_known(const gpu_source_t *source);

#endif /* GPU_INCLUDES_H */
