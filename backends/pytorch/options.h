/*
 * options.h - the parameters of a model that PyTorch understands.
 *
 * Owner    nobody: a struct of values.
 * Thread   read-only after pt_options_read.
 * Units    counts of threads.
 * Errors   INVALID_ARG naming the parameter and its value.
 * Route    model_config -> [options] -> engine
 */

#ifndef PT_OPTIONS_H
#define PT_OPTIONS_H

#include "common/error.h"
#include "common/model_config.h"

#include <stdbool.h>

/* A switch of the process that is left alone unless a model sets it. */
typedef enum {
    PT_UNSET,
    PT_OFF,
    PT_ON
} pt_switch_t;

typedef struct {
    /* constant after pt_options_read() */
    bool        optimized;
    bool        inference_mode;
    bool        cudnn;
    bool        cache_cleaning;
    bool        weight_sharing;
    pt_switch_t jit_executor;
    pt_switch_t jit_profiling;
    pt_switch_t tensor_fuser;
    int64_t     intra_threads;      /* of each instance                      */
    int64_t     inter_threads;      /* of the process; 0: not set            */
} pt_options_t;

/* Reads and checks all parameters; those that are missing get defaults. */
BK_CHECK TRITONSERVER_Error *pt_options_read(pt_options_t *o,
    const bk_model_config_t *config);

/* Of a TorchScript model, in the words of Triton's backend. */
void pt_options_log(const pt_options_t *o, const char *model);

#endif /* PT_OPTIONS_H */
