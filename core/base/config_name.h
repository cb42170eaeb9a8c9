/*
 * config_name.h - which names a named model configuration may have: it is
 *                 configs/NAME.pbtxt in the model's directory, and stays
 *                 there.
 *
 * Owner    nobody: a text in, an answer out.
 * Thread   any.
 * Units    bytes.
 * Errors   none.
 * Route    directive, ServerOptions, CoreConfig -> [config name]
 */

#ifndef INF_BASE_CONFIG_NAME_H
#define INF_BASE_CONFIG_NAME_H

#include <stddef.h>

#define INF_CONFIG_NAME_MAX 249u        /* with ".pbtxt" it is a file's name */

/* NULL, or why name can't be one: empty, too long, a slash, a control
   character. */
const char *inf_config_name_problem(const char *name, size_t len);

#endif /* INF_BASE_CONFIG_NAME_H */
