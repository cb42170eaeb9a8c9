/*
 * model_stamp.h - tells whether a model's directory has changed since it was
 *                 read last, and which part of it.
 *
 * Owner    The caller owns a stamp (fini); comparing changes nothing.
 * Thread   any.
 * Units    none.
 * Errors   The directory can't be listed; out of memory.
 * Route    model source -> [stamp] -> lifecycle, poll
 *
 * Names, kinds, sizes and times count, all the way down, so that what was
 * removed or replaced by something older is a change as well.
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

/* Reads the directory all the way down, names and times but no contents.  On
   success out is the caller's to fini; after an error it is empty. */
INF_CHECK inf_err_t *inf_model_stamp_take(const inf_storage_t *storage,
    const char *dir, inf_model_stamp_t *out);
void inf_model_stamp_fini(inf_model_stamp_t *s);

/* One number of all of it, never 0. */
uint64_t inf_model_stamp_digest(const inf_model_stamp_t *s);

/* Whether nothing in the directory has changed between the two. */
bool inf_model_stamp_equal(const inf_model_stamp_t *a,
    const inf_model_stamp_t *b);

/* Whether what all versions share is the same but for the configuration:
   config.pbtxt, or configs/ where the configuration is one from there. */
bool inf_model_stamp_same_rest(const inf_model_stamp_t *a, bool a_named,
    const inf_model_stamp_t *b, bool b_named);

/* false too when one of them doesn't have that version. */
bool inf_model_stamp_same_version(const inf_model_stamp_t *a,
    const inf_model_stamp_t *b, int64_t version);

#endif /* INF_REPOSITORY_MODEL_STAMP_H */
