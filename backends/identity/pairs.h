/*
 * pairs.h - which input a model's output repeats.
 *
 * Owner    bk_pairs_t owns its table; names belong to the configuration.
 * Thread   written by init and fini, read by anyone between.
 * Units    none.
 * Errors   INVALID_ARG: the configuration has an output that no input fits.
 * Route    model_config -> [pairs] -> Execute
 */

#ifndef IDENTITY_PAIRS_H
#define IDENTITY_PAIRS_H

#include "common/model_config.h"

typedef struct {
    const char *output;
    const char *input;
    bool        optional;       /* a request may leave the input out         */

    const bk_tensor_config_t *fixed;    /* the input, or NULL where its dims
                                         * are open                          */
} bk_pair_t;

typedef struct {
    bk_pair_t *list;            /* sorted by output                          */
    uint32_t   count;
} bk_pairs_t;

/* OUTPUTx repeats INPUTx when every output has such a partner; otherwise the
 * first output repeats the first input, and so on. */
BK_CHECK TRITONSERVER_Error *bk_pairs_init(bk_pairs_t *pairs,
    const bk_model_config_t *config);
void bk_pairs_fini(bk_pairs_t *pairs);

/* The pair of that output, or NULL.  *hint is the caller's, 0 at first: asked
 * in sorted order, each answer is found at once. */
const bk_pair_t *bk_pairs_find(const bk_pairs_t *pairs, const char *output,
    uint32_t *hint);

#endif /* IDENTITY_PAIRS_H */
