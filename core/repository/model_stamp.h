/*
 * model_stamp.h - shows whether a model's directory has changed since it was
 *                 last read, and which part.
 *
 * Owner    The caller owns a stamp (fini); comparing changes nothing.
 * Thread   any.
 * Units    none.
 * Errors   The directory cannot be listed; out of memory.
 * Route    model source -> [stamp] -> lifecycle, poll
 *
 * A stamp covers names, kinds, sizes and times of the whole tree, so that
 * removals, and replacements by older files, are changes, too.
 */

#ifndef INF_REPOSITORY_MODEL_STAMP_H
#define INF_REPOSITORY_MODEL_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/model/config_storage.h"

typedef struct {
    int64_t   version;
    uint64_t  hash;
} inf_version_stamp_t;

typedef struct {
    uint64_t             config;    /* config.pbtxt                          */
    uint64_t             configs;   /* configs/                              */
    uint64_t             rest;      /* labels, warm-up data, other files     */
    inf_version_stamp_t *versions;  /* ascending                             */
    size_t               version_count;
} inf_model_stamp_t;

/* Takes the stamp of the directory tree: names and times without contents.  On
   success the caller calls fini; after an error out is empty. */
INF_CHECK inf_err_t *inf_model_stamp_take(const inf_storage_t *storage,
    const char *dir, inf_model_stamp_t *out);
void inf_model_stamp_fini(inf_model_stamp_t *s);

/* A hash of the stamp, never 0. */
uint64_t inf_model_stamp_digest(const inf_model_stamp_t *s);

/* Whether both stamps are equal. */
bool inf_model_stamp_equal(const inf_model_stamp_t *a,
    const inf_model_stamp_t *b);

/* Whether files shared by all versions are equal, except the configuration:
   config.pbtxt, or a file of configs/ (named). */
bool inf_model_stamp_same_rest(const inf_model_stamp_t *a, bool a_named,
    const inf_model_stamp_t *b, bool b_named);

/* Whether both have that version with equal files. */
bool inf_model_stamp_same_version(const inf_model_stamp_t *a,
    const inf_model_stamp_t *b, int64_t version);

#endif /* INF_REPOSITORY_MODEL_STAMP_H */
