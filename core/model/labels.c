#include "core/model/labels.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/path.h"
#include "core/base/refs.h"

/* One output's labels: slices of its file's bytes. */
typedef struct {
    inf_label_list_t  list;
    char             *output;
    char             *bytes;
    inf_slice_t      *names;
    inf_labels_t     *owner;        /* of inherited labels; NULL: own file   */
} label_file_t;

struct inf_labels_s {
    atomic_uint   refs;             /* up relaxed, down acq_rel              */
    size_t        count;
    label_file_t  files[];
};

static inf_err_t *labels_fill(inf_labels_t *l, const inf_storage_t *st,
    const char *model_dir, const Inference__ModelConfig *msg);
static void labels_check_count(size_t count,
    const Inference__ModelConfig *msg, const Inference__ModelOutput *output);
static inf_err_t *labels_add(inf_labels_t *l, const inf_storage_t *st,
    const char *model_dir, const Inference__ModelOutput *output);
static inf_err_t *labels_read(const inf_storage_t *st, const char *model_dir,
    const char *filename, char **bytes, size_t *len);
static bool labels_split(label_file_t *file, size_t len);
static void labels_free(inf_labels_t *l);

inf_err_t *
inf_labels_load(const inf_storage_t *st, const char *model_dir,
    const Inference__ModelConfig *msg, inf_labels_t **out)
{
    inf_labels_t *l = calloc(1, sizeof(*l)
        + msg->n_output * sizeof(l->files[0]));
    if (l == NULL) {
        return inf_err_nomem();
    }

    atomic_init(&l->refs, 1);
    inf_err_t *err = labels_fill(l, st, model_dir, msg);
    if (err != NULL) {
        labels_free(l);
        return err;
    }

    *out = l;
    return NULL;
}

inf_err_t *
inf_labels_inherit(inf_labels_t *l, inf_slice_t output, inf_labels_t *from,
    inf_slice_t source)
{
    const inf_label_list_t *list = inf_labels_find(from, source);
    if (list == NULL || inf_labels_find(l, output) != NULL) {
        return NULL;
    }

    label_file_t *file = &l->files[l->count];
    file->output = strndup(output.data, output.len);
    if (file->output == NULL) {
        return inf_err_nomem();
    }

    file->list = *list;
    file->list.output = inf_slice_str(file->output);
    file->owner = inf_labels_ref(from);
    l->count++;
    return NULL;
}

inf_labels_t *
inf_labels_ref(inf_labels_t *l)
{
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

void
inf_labels_unref(inf_labels_t *l)
{
    if (l != NULL && inf_refs_drop(&l->refs)) {
        labels_free(l);
    }
}

const inf_label_list_t *
inf_labels_find(const inf_labels_t *l, inf_slice_t output)
{
    if (l == NULL) {
        return NULL;
    }

    for (size_t i = 0; i < l->count; i++) {
        if (inf_slice_eq(l->files[i].list.output, output)) {
            return &l->files[i].list;
        }
    }

    return NULL;
}

inf_slice_t
inf_labels_get(const inf_labels_t *l, inf_slice_t output, size_t index)
{
    const inf_label_list_t *list = inf_labels_find(l, output);

    if (list == NULL || index >= list->count) {
        return INF_SLICE("");
    }

    return list->names[index];
}

static inf_err_t *
labels_fill(inf_labels_t *l, const inf_storage_t *st, const char *model_dir,
    const Inference__ModelConfig *msg)
{
    for (size_t i = 0; i < msg->n_output; i++) {
        const Inference__ModelOutput *output = msg->output[i];
        if (output->label_filename[0] == '\0') {
            continue;
        }

        if (inf_labels_find(l, inf_slice_str(output->name)) != NULL) {
            return inf_err_new(INF_ERR_INTERNAL, "multiple label files for"
                " '%s' (output[%zu].label_filename of model '%s')",
                output->name, i, msg->name);
        }

        inf_err_t *err = labels_add(l, st, model_dir, output);
        if (err != NULL) {
            return inf_err_note(err, "output[%zu].label_filename", i);
        }

        labels_check_count(l->files[l->count - 1].list.count, msg, output);
    }

    return NULL;
}

/* Warns if an output has more elements than labels. */
static void
labels_check_count(size_t count, const Inference__ModelConfig *msg,
    const Inference__ModelOutput *output)
{
    uint64_t elements = 1;

    for (size_t i = 0; i < output->n_dims; i++) {
        if (output->dims[i] < 0 || __builtin_mul_overflow(elements,
            (uint64_t) output->dims[i], &elements))
        {
            return;
        }
    }

    if (count < elements) {
        inf_log(INF_LOG_WARN, "model=%s: %s has %zu labels for the %llu"
            " elements of output '%s'", msg->name, output->label_filename,
            count, (unsigned long long) elements, output->name);
    }
}

static inf_err_t *
labels_add(inf_labels_t *l, const inf_storage_t *st, const char *model_dir,
    const Inference__ModelOutput *output)
{
    /* l->count is incremented last, so a partial file is freed here */
    label_file_t file = { .bytes = NULL };
    size_t len;

    inf_err_t *err = labels_read(st, model_dir, output->label_filename,
        &file.bytes, &len);
    if (err != NULL) {
        return err;
    }

    file.output = strdup(output->name);
    if (file.output == NULL || !labels_split(&file, len)) {
        free(file.output);
        free(file.bytes);
        return inf_err_nomem();
    }

    file.list.output = inf_slice_str(file.output);
    l->files[l->count++] = file;
    return NULL;
}

static inf_err_t *
labels_read(const inf_storage_t *st, const char *model_dir,
    const char *filename, char **bytes, size_t *len)
{
    char *path = inf_path_join(model_dir, filename);
    if (path == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = inf_storage_contain(st, model_dir, path);
    if (err != NULL && inf_err_code(err) == INF_ERR_UNSUPPORTED) {
        inf_err_free(err);
        err = inf_err_new(INF_ERR_UNSUPPORTED, "label file path '%s' is "
            "outside model directory '%s'", path, model_dir);
    }

    if (err == NULL) {
        err = inf_err_recode(inf_storage_read(st, path, INF_LABEL_FILE_MAX,
            bytes, len), INF_ERR_INTERNAL);
    }

    free(path);
    return err;
}

/* Splits the file; lines end at "\n" alone, "\r" is part of the label. */
static bool
labels_split(label_file_t *file, size_t len)
{
    const char *end = file->bytes + len;
    size_t count = 0;

    for (const char *p = file->bytes; p < end; count++) {
        const char *eol = memchr(p, '\n', (size_t) (end - p));
        p = eol == NULL ? end : eol + 1;
    }

    file->names = calloc(count + 1, sizeof(*file->names));
    if (file->names == NULL) {
        return false;
    }

    size_t i = 0;
    for (const char *p = file->bytes; p < end; i++) {
        const char *eol = memchr(p, '\n', (size_t) (end - p));
        size_t n = (size_t) ((eol == NULL ? end : eol) - p);
        file->names[i] = inf_slice(p, n);
        p = eol == NULL ? end : eol + 1;
    }

    file->list.names = file->names;
    file->list.count = count;
    return true;
}

static void
labels_free(inf_labels_t *l)
{
    for (size_t i = 0; i < l->count; i++) {
        free(l->files[i].output);
        free(l->files[i].bytes);
        free(l->files[i].names);
        inf_labels_unref(l->files[i].owner);
    }

    free(l);
}
