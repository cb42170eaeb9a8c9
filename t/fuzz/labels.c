/* Any label file: its lines are its labels, joined again they are the file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/labels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t *bytes;
static size_t         byte_count;

static inf_err_t *
give(const inf_storage_t *st, const char *path, size_t limit, char **data,
    size_t *len)
{
    (void) st;
    (void) path;
    (void) limit;
    *data = malloc(byte_count + 1);
    if (byte_count > 0) {
        memcpy(*data, bytes, byte_count);
    }
    (*data)[byte_count] = '\0';
    *len = byte_count;
    return NULL;
}

static inf_err_t *
inside(const inf_storage_t *st, const char *dir, const char *path)
{
    (void) st;
    (void) dir;
    (void) path;
    return NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const inf_storage_ops_t ops = { .read = give, .contain = inside };
    static const inf_storage_t storage = { &ops };
    Inference__ModelConfig msg = INFERENCE__MODEL_CONFIG__INIT;
    Inference__ModelOutput out = INFERENCE__MODEL_OUTPUT__INIT;
    Inference__ModelOutput *outs[] = { &out };
    inf_labels_t *labels;
    size_t at = 0;

    bytes = data;
    byte_count = size;
    out.name = (char *) "O";
    out.label_filename = (char *) "l";
    msg.output = outs;
    msg.n_output = 1;

    inf_err_t *err = inf_labels_load(&storage, "m", &msg, &labels);
    if (err != NULL) {
        abort();
    }
    const inf_label_list_t *list = inf_labels_find(labels, INF_SLICE("O"));
    for (size_t i = 0; i < list->count; i++) {
        inf_slice_t one = inf_labels_get(labels, INF_SLICE("O"), i);

        if (one.len > size - at || (one.len > 0
            && memcmp(one.data, data + at, one.len) != 0)
            || (one.len > 0 && memchr(one.data, '\n', one.len) != NULL))
        {
            abort();
        }
        at += one.len;
        if (at < size && data[at++] != '\n') {
            abort();
        }
    }
    if (at != size || inf_labels_get(labels, INF_SLICE("O"), list->count).len
        != 0)
    {
        abort();
    }
    inf_labels_unref(labels);
    return 0;
}
