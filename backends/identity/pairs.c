/* pairs.c - see pairs.h */

#include "pairs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_WORD  "INPUT"
#define OUTPUT_WORD "OUTPUT"

static const bk_tensor_config_t *partner_by_name(
    const bk_model_config_t *config, const bk_tensor_config_t *output);
static bool all_have_partners(const bk_model_config_t *config);
static TRITONSERVER_Error *check_fit(const bk_tensor_config_t *input,
    const bk_tensor_config_t *output);
static bool is_fixed(const bk_tensor_config_t *tensor);
static int by_output(const void *a, const void *b);
static int name_to_pair(const void *name, const void *pair);

TRITONSERVER_Error *
bk_pairs_init(bk_pairs_t *pairs, const bk_model_config_t *config)
{
    *pairs = (bk_pairs_t) { 0 };

    uint32_t n = config->output_count;
    if (n == 0 || n > config->input_count) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "an identity model needs at least one output and an input for "
            "each; the configuration has %" PRIu32 " outputs and %" PRIu32
            " inputs", n, config->input_count);
    }

    pairs->list = calloc(n, sizeof(*pairs->list));
    if (pairs->list == NULL) {
        return bk_err_nomem("table of outputs");
    }

    bool by_name = all_have_partners(config);
    for (uint32_t i = 0; i < n; i++) {
        const bk_tensor_config_t *output = &config->outputs[i];
        const bk_tensor_config_t *input = by_name
            ? partner_by_name(config, output) : &config->inputs[i];

        TRITONSERVER_Error *err = check_fit(input, output);
        if (err != NULL) {
            bk_pairs_fini(pairs);
            return err;
        }

        pairs->list[i] = (bk_pair_t) {
            .output = output->name,
            .input = input->name,
            .optional = input->optional,
            .fixed = is_fixed(input) ? input : NULL
        };
    }

    pairs->count = n;
    qsort(pairs->list, n, sizeof(*pairs->list), by_output);
    return NULL;
}

void
bk_pairs_fini(bk_pairs_t *pairs)
{
    free(pairs->list);
    *pairs = (bk_pairs_t) { 0 };
}

const bk_pair_t *
bk_pairs_find(const bk_pairs_t *pairs, const char *output, uint32_t *hint)
{
    const bk_pair_t *pair;

    if (*hint < pairs->count
        && strcmp(pairs->list[*hint].output, output) == 0)
    {
        pair = &pairs->list[*hint];

    } else {
        pair = bsearch(output, pairs->list, pairs->count,
            sizeof(*pairs->list), name_to_pair);
    }

    if (pair != NULL) {
        *hint = (uint32_t) (pair - pairs->list) + 1;
    }

    return pair;
}

static bool
all_have_partners(const bk_model_config_t *config)
{
    for (uint32_t i = 0; i < config->output_count; i++) {
        if (partner_by_name(config, &config->outputs[i]) == NULL) {
            return false;
        }
    }

    return true;
}

static const bk_tensor_config_t *
partner_by_name(const bk_model_config_t *config,
    const bk_tensor_config_t *output)
{
    const size_t in_len = strlen(INPUT_WORD);
    const size_t out_len = strlen(OUTPUT_WORD);

    if (strncmp(output->name, OUTPUT_WORD, out_len) != 0) {
        return NULL;
    }

    for (uint32_t i = 0; i < config->input_count; i++) {
        const char *name = config->inputs[i].name;
        if (strncmp(name, INPUT_WORD, in_len) == 0
            && strcmp(name + in_len, output->name + out_len) == 0)
        {
            return &config->inputs[i];
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
check_fit(const bk_tensor_config_t *input, const bk_tensor_config_t *output)
{
    if (input->datatype != output->datatype) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "output \"%s\" is %s but the input it repeats, \"%s\", is %s",
            output->name, bk_datatype_to_config(output->datatype),
            input->name, bk_datatype_to_config(input->datatype));
    }

    if (input->model_dims_count != output->model_dims_count) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "output \"%s\" has %" PRIu32 " dimensions but the input it "
            "repeats, \"%s\", has %" PRIu32, output->name,
            output->model_dims_count, input->name, input->model_dims_count);
    }

    for (uint32_t i = 0; i < input->model_dims_count; i++) {
        int64_t in = input->model_dims[i];
        int64_t out = output->model_dims[i];
        if (in != out && out != -1) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "dimension %" PRIu32 " of output \"%s\" is %" PRId64
                " but the input it repeats, \"%s\", has %" PRId64 " there", i,
                output->name, out, input->name, in);
        }
    }

    return NULL;
}

static bool
is_fixed(const bk_tensor_config_t *tensor)
{
    bool fixed = true;

    for (uint32_t i = 0; i < tensor->model_dims_count; i++) {
        fixed = fixed && tensor->model_dims[i] >= 0;
    }

    return fixed;
}

static int
by_output(const void *a, const void *b)
{
    return strcmp(((const bk_pair_t *) a)->output,
        ((const bk_pair_t *) b)->output);
}

static int
name_to_pair(const void *name, const void *pair)
{
    return strcmp(name, ((const bk_pair_t *) pair)->output);
}
