/*
 * config_findings.h - what is wrong with a configuration, all of it at once.
 *
 * Owner    the caller's memory: init, use, fini.
 * Thread   one at a time.
 * Units    none.
 * Errors   A finding that could not be stored is counted in lost; the error
 *          made from the list is then out of memory.
 * Route    validation rules -> [findings] -> a load's error, or a check's list
 */

#ifndef INF_MODEL_CONFIG_FINDINGS_H
#define INF_MODEL_CONFIG_FINDINGS_H

#include <stddef.h>

#include "core/base/error.h"
#include "core/base/slice.h"

/* More are counted only. */
#define INF_FINDINGS_MAX 1000u

typedef struct {
    inf_err_code_t  code;
    char           *key;        /* "input[0].dims"; "" for the whole       */
    char           *text;
    size_t          line;       /* in the file, from 1; 0: not known       */
    size_t          column;
} inf_finding_t;

typedef struct {
    inf_finding_t *items;       /* in the order of the rules               */
    size_t         count;
    size_t         capacity;
    size_t         more;        /* beyond INF_FINDINGS_MAX                 */
    size_t         lost;        /* memory ran out                          */
} inf_findings_t;

/* The caller's memory; fini frees the texts. */
void inf_findings_init(inf_findings_t *f);
void inf_findings_fini(inf_findings_t *f);

/* key names the place, as inf_key makes it; it is copied. */
void inf_findings_add(inf_findings_t *f, inf_err_code_t code,
    const char *key, const char *fmt, ...) INF_PRINTF(4, 5);

/* Stored or not; grows with every finding. */
size_t inf_findings_total(const inf_findings_t *f);

/* Gives the first most findings their places in text, the model's config.pbtxt
   as it was read; a text that can't be read again gives none, a very long one
   fewer.  The first has its place in any case. */
void inf_findings_place(inf_findings_t *f, inf_slice_t text, size_t most);

/* NULL when nothing was found, else the first as
   "<text> (<origin>:<line>:<column>: <key>)", without what is not known;
   origin may be NULL. */
INF_CHECK inf_err_t *inf_findings_error(const inf_findings_t *f,
    const char *origin);

/* A key with indices, in the caller's memory; returns out. */
#define INF_KEY_MAX 256

/* printf, cut at INF_KEY_MAX. */
const char *inf_key(char out[INF_KEY_MAX], const char *fmt, ...)
    INF_PRINTF(2, 3);

#endif /* INF_MODEL_CONFIG_FINDINGS_H */
