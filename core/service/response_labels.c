#include "core/service/response_labels.h"

#include "core/proto/infer_classify.h"
#include "core/wire/request_record.h"

static const inf_record_output_t *classified(const inf_infer_record_t *rec,
    const char *name);
static void describe_labels(inf_response_t *response,
    const inf_output_t *out, uint32_t k, bool batched,
    const inf_label_list_t *labels, inf_response_output_desc_t *d);

void
inf_response_labels(const inf_model_t *model, const inf_infer_record_t *rec,
    inf_response_t *response, const inf_output_t *out,
    inf_response_output_desc_t *d)
{
    const inf_record_output_t *asked = classified(rec, out->name);
    const inf_label_list_t *labels = asked == NULL ? NULL
        : inf_labels_find(model->labels, d->name);

    /* only bytes on the host: parsers reject a region with a classification,
       and only regions are on a GPU; a broken worker gets no labels */
    if (labels != NULL && labels->count <= UINT32_MAX && out->base != NULL
        && out->memory_type != INF_MEMORY_GPU)
    {
        describe_labels(response, out, asked->classification,
            inf_config_tensors_max_batch_size(model->tensors) > 0, labels, d);
    }
}

/* The client's entry for an output to classify; NULL: none. */
static const inf_record_output_t *
classified(const inf_infer_record_t *rec, const char *name)
{
    if (rec == NULL) {
        return NULL;
    }

    const inf_record_output_t *outputs = inf_infer_record_outputs(rec);
    for (uint32_t i = 0; i < rec->output_count; i++) {
        if (outputs[i].classification > 0
            && inf_slice_eq(inf_infer_record_text(rec, outputs[i].name),
                inf_slice_str(name)))
        {
            return &outputs[i];
        }
    }

    return NULL;
}

/* Adds the labels of the best k in their order, or all by index if k is
   large. */
static void
describe_labels(inf_response_t *response, const inf_output_t *out, uint32_t k,
    bool batched, const inf_label_list_t *labels,
    inf_response_output_desc_t *d)
{
    const inf_classify_source_t src = {
        .name = d->name,
        .datatype = d->datatype,
        .dim_count = d->dim_count,
        .shape = d->shape,
        .batched = batched,
        .data = out->base,
        .data_len = out->byte_size,
        .k = k
    };
    inf_classifier_t *c;

    inf_err_t *err = inf_classifier_new(&c, &src, &response->arena);
    if (err != NULL) {
        inf_err_free(err);              /* the worker reports the same       */
        return;
    }

    uint32_t places = inf_classifier_places(c);
    if (places > INF_CLASSIFY_RANKED_MAX || places > labels->count) {
        d->labels = labels->names;
        d->label_count = (uint32_t) labels->count;
        return;
    }

    inf_slice_t *names = inf_arena_alloc(&response->arena,
        (places + 1) * sizeof(*names));
    if (names == NULL) {
        return;
    }

    const uint32_t *chosen = inf_classifier_select(c);
    for (uint32_t i = 0; i < places; i++) {
        names[i] = chosen[i] < labels->count ? labels->names[chosen[i]]
            : inf_slice("", 0);
    }

    d->labels = names;
    d->label_count = places;
}
