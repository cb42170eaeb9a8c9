/*
 * labels.h - names of an output's classes.
 *
 * Owner    Shared: ref and unref.  Slices are valid as long as the table.
 * Thread   any, after load().
 * Units    a label's index is its line in the file, from 0.
 * Errors   UNSUPPORTED: the file is outside of the model's directory.
 *          NOT_FOUND, INTERNAL: the file cannot be read.
 * Route    loader -> [labels] -> classification of responses
 */

#ifndef INF_MODEL_LABELS_H
#define INF_MODEL_LABELS_H

#include <stddef.h>

#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/model/config_storage.h"
#include "model_config.pb-c.h"

#define INF_LABEL_FILE_MAX ((size_t) 256 << 20)

typedef struct inf_labels_s inf_labels_t;

typedef struct {
    inf_slice_t        output;
    const inf_slice_t *names;
    size_t             count;
} inf_label_list_t;

/* Loads the labels; empty without label files. */
INF_CHECK inf_err_t *inf_labels_load(const inf_storage_t *st,
    const char *model_dir, const Inference__ModelConfig *msg,
    inf_labels_t **out);

/*
 * Gives the output, unless it has labels, those of another model's output.
 * Called before l is shared; from may be NULL, or have none.
 */
INF_CHECK inf_err_t *inf_labels_inherit(inf_labels_t *l, inf_slice_t output,
    inf_labels_t *from, inf_slice_t source);

/* Returns l, which is not NULL. */
inf_labels_t *inf_labels_ref(inf_labels_t *l);

/* l may be NULL. */
void inf_labels_unref(inf_labels_t *l);

/* The labels of an output, or NULL; l may be NULL. */
const inf_label_list_t *inf_labels_find(const inf_labels_t *l,
    inf_slice_t output);

/* The label of an index, or an empty slice. */
inf_slice_t inf_labels_get(const inf_labels_t *l, inf_slice_t output,
    size_t index);

#endif /* INF_MODEL_LABELS_H */
