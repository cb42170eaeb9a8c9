/*
 * config_findings.h - the list of all problems of a configuration.
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

/* Further ones are only counted. */
#define INF_FINDINGS_MAX 1000u

typedef struct {
    inf_err_code_t  code;
    char           *key;        /* such as "input[0].dims"; "": the whole  */
    char           *text;
    size_t          line;       /* in the file, from 1; 0: unknown         */
    size_t          column;
} inf_finding_t;

typedef struct {
    inf_finding_t *items;       /* in the order of the rules               */
    size_t         count;
    size_t         capacity;
    size_t         more;        /* beyond INF_FINDINGS_MAX                 */
    size_t         lost;        /* not stored, out of memory               */
} inf_findings_t;

/* Initializes the caller's memory; fini frees the texts. */
void inf_findings_init(inf_findings_t *f);
void inf_findings_fini(inf_findings_t *f);

/* Adds a finding; key names the place, as made by inf_key, and is copied. */
void inf_findings_add(inf_findings_t *f, inf_err_code_t code,
    const char *key, const char *fmt, ...) INF_PRINTF(4, 5);

/* The number of findings, stored or not. */
size_t inf_findings_total(const inf_findings_t *f);

/* Sets the places of the first most findings by text, the model's config.pbtxt.
   A text that cannot be parsed gives none, a very long one fewer, but always
   the first. */
void inf_findings_place(inf_findings_t *f, inf_slice_t text, size_t most);

/* NULL without findings; otherwise the first as "<text>
   (<origin>:<line>:<column>: <key>)", without unknown parts; origin may be
   NULL. */
INF_CHECK inf_err_t *inf_findings_error(const inf_findings_t *f,
    const char *origin);

/* Length of a key with indices. */
#define INF_KEY_MAX 256

/* Formats a key into out, truncated at INF_KEY_MAX; returns out. */
const char *inf_key(char out[INF_KEY_MAX], const char *fmt, ...)
    INF_PRINTF(2, 3);

#endif /* INF_MODEL_CONFIG_FINDINGS_H */
