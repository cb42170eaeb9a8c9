/*
 * versions.h - version directories: their names, and the choice of versions to
 *              serve.
 *
 * Owner    The caller owns lists.
 * Thread   any.
 * Units    a version is a number from 0 to 2^63 - 1.
 * Errors   INVALID_ARG: the policy selects no version.
 * Route    scan -> [versions] -> loader
 *
 * Only plain decimal names are versions: without sign, blanks, further
 * characters or leading zeros ("0" is valid), at most 63 bits.
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
    INF_VERSION_RESERVED,       /* warmup, initial_state, configs */
    INF_VERSION_NOT_A_NUMBER,
    INF_VERSION_LEADING_ZERO,
    INF_VERSION_TOO_LARGE
} inf_version_verdict_t;

/* Parses a directory's name; sets *version only for INF_VERSION_OK. */
inf_version_verdict_t inf_version_parse(inf_slice_t name, int64_t *version);

/* "which ...", to follow the directory's name; NULL for OK and RESERVED. */
const char *inf_version_verdict_text(inf_version_verdict_t v);

/* Sorts and removes repeats; returns the new count. */
size_t inf_versions_sort(int64_t *versions, size_t count);

/*
 * Moves the versions selected by policy to the front of versions (sorted, no
 * repeats) and sets *chosen.  policy NULL: the highest.  Logs versions of a
 * specific policy that do not exist.
 */
INF_CHECK inf_err_t *inf_versions_choose(
    const Inference__ModelVersionPolicy *policy, const char *model_name,
    int64_t *versions, size_t count, size_t *chosen);

/* The same into a new, malloc'ed list. */
INF_CHECK inf_err_t *inf_versions_select(
    const Inference__ModelVersionPolicy *policy, const char *model_name,
    const int64_t *versions, size_t count, int64_t **out, size_t *chosen);

#endif /* INF_MODEL_VERSIONS_H */
