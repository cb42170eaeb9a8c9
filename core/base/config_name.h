/*
 * config_name.h - checks the name of a named model configuration, which is the
 *                 file configs/NAME.pbtxt in the model's directory.
 *
 * Owner    none.
 * Thread   any.
 * Units    bytes.
 * Errors   none.
 * Route    directive, ServerOptions, CoreConfig -> [config name]
 */

#ifndef INF_BASE_CONFIG_NAME_H
#define INF_BASE_CONFIG_NAME_H

#include <stddef.h>

#define INF_CONFIG_NAME_MAX 249u        /* with ".pbtxt" a file's name       */

/* NULL, or the fault of name: empty, too long, a slash, a control character. */
const char *inf_config_name_problem(const char *name, size_t len);

#endif /* INF_BASE_CONFIG_NAME_H */
