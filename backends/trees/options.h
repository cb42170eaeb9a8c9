/*
 * options.h - the parameters of a model, named as fil_backend names them.
 *
 * Owner    the caller's values; nothing is kept.
 * Thread   a loader's.
 * Units    none.
 * Errors   INVALID_ARG naming the parameter and what it may be.
 * Route    model configuration -> [options] -> model
 */

#ifndef TREES_OPTIONS_H
#define TREES_OPTIONS_H

#include "treelite.h"

#include "common/model_config.h"

typedef struct {
    /* constant after trees_options_read() */
    bool           has_format;          /* model_type is there               */
    trees_format_t format;
    bool           unknown_fields;      /* of XGBoost's JSON are passed over */
    bool           has_classes;         /* output_class is there             */
    bool           classes;
    bool           probabilities;
    bool           has_threshold;       /* threshold is there                */
    float          threshold;
    int64_t        transfer_threshold;  /* rows that a GPU is not used for   */
} trees_options_t;

/* Also logs, once, which parameters have no effect here. */
BK_CHECK TRITONSERVER_Error *trees_options_read(trees_options_t *out,
    const bk_model_config_t *config);

/* The file's name where the configuration has none. */
const char *trees_format_filename(trees_format_t format);

/* The format of the i-th kind of file; false behind the last. */
bool trees_format_at(uint32_t i, trees_format_t *out);

/* By the end of a file's name; false: it says nothing. */
bool trees_format_of_name(const char *name, trees_format_t *out);

#endif /* TREES_OPTIONS_H */
