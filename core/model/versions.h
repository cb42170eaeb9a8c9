/*
 * versions.h - version directories: their names, and which of them to serve.
 *
 * Owner    Lists belong to the caller.
 * Thread   any.
 * Units    a version is a number from 0 to 2^63 - 1.
 * Errors   INVALID_ARG: the policy leaves no version.
 * Route    scan -> [versions] -> loader
 *
 * Only plain decimal names are versions: no sign, no blank, nothing after
 * the digits, no leading zero ("0" itself is one), no more than 63 bits.
 */

#ifndef INF_MODEL_VERSIONS_H
#define INF_MODEL_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/slice.h"
#include "model_config.pb-c.h"

typedef enum {
    INF_VERSION_OK,
    INF_VERSION_RESERVED,       /* warmup, initial_state, configs: no word */
    INF_VERSION_NOT_A_NUMBER,
    INF_VERSION_LEADING_ZERO,
    INF_VERSION_TOO_LARGE
} inf_version_verdict_t;

/* Reads a directory's name; *version is set for INF_VERSION_OK only. */
inf_version_verdict_t inf_version_parse(inf_slice_t name, int64_t *version);

/* "which ...": goes after the directory's name; NULL for OK, RESERVED. */
const char *inf_version_verdict_text(inf_version_verdict_t v);

/* Sorts and drops repeats; returns the new count. */
size_t inf_versions_sort(int64_t *versions, size_t count);

/*
 * Moves the versions that policy selects to the front of versions (sorted,
 * no repeats) and sets *chosen.  policy NULL: the highest.  Versions that a
 * specific policy names and nobody has are logged.
 */
INF_CHECK inf_err_t *inf_versions_choose(
    const Inference__ModelVersionPolicy *policy, const char *model_name,
    int64_t *versions, size_t count, size_t *chosen);

/* The same in a new list; malloc'ed. */
INF_CHECK inf_err_t *inf_versions_select(
    const Inference__ModelVersionPolicy *policy, const char *model_name,
    const int64_t *versions, size_t count, int64_t **out, size_t *chosen);

#endif /* INF_MODEL_VERSIONS_H */
