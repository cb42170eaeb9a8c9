/* The strings of an input, cut into buffers anyhow: what the check says is what
   a walk over all of them in one piece says, and it reads nothing behind any
   of them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#include "core/model/model.h"
#include "core/model/normalize.h"
#include "core/model/string_check.h"

#define CUTS 8u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inf_model_t *model;

static void
make_model(void)
{
    Inference__ModelConfig msg = INFERENCE__MODEL_CONFIG__INIT;
    Inference__ModelInput in = INFERENCE__MODEL_INPUT__INIT;
    Inference__ModelInput *inputs[] = { &in };
    int64_t any = -1;

    in.name = (char *) "S";
    in.data_type = INFERENCE__DATA_TYPE__TYPE_STRING;
    in.dims = &any;
    in.n_dims = 1;
    msg.name = (char *) "m";
    msg.input = inputs;
    msg.n_input = 1;
    model = inf_model_new("m", 1, "/m");
    check(model != NULL);
    check(inf_config_tensors_new(&msg, &model->tensors) == NULL);
}

/* Whether so many strings end where the bytes do, with no length in two
   buffers; ends: of the buffers, ascending. */
static bool
is_good(const uint8_t *p, size_t len, uint64_t count, const size_t *ends)
{
    uint64_t at = 0;

    while (at < len) {
        uint32_t n;
        size_t end = 0;

        while (ends[end] <= at) {
            end++;
        }
        if (ends[end] - at < sizeof(n)) {
            return false;
        }
        memcpy(&n, p + at, sizeof(n));
        at += sizeof(n) + (uint64_t) n;
        count--;
    }

    return at == len && count == 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copies[CUTS + 1] = { NULL };
    size_t ends[CUTS + 1];
    inf_request_t req;
    size_t from = 0;

    if (model == NULL) {
        make_model();
    }
    if (size < 2 + CUTS) {
        return 0;
    }

    const int64_t shape = data[0] | data[1] << 8;
    const uint8_t *bytes = data + 2 + CUTS;
    size_t len = size - 2 - CUTS;

    inf_request_init(&req);
    req.model = model;
    inf_input_t *in = inf_request_add_input(&req, "S", 1, INF_TYPE_BYTES,
        &shape, 1);
    check(in != NULL);
    for (unsigned i = 0; i <= CUTS; i++) {
        size_t n = i < CUTS && data[2 + i] < len - from ? data[2 + i]
            : len - from;

        copies[i] = malloc(n);              /* of exactly that size          */
        if (n > 0) {
            memcpy(copies[i], bytes + from, n);
        }
        check(inf_request_add_data(&req, in, &(inf_buffer_t) {
            .base = copies[i], .size = n }) == NULL);
        from += n;
        ends[i] = from;
    }

    inf_err_t *err = inf_request_normalize(model, &req);
    check(err == NULL);
    err = inf_request_check_strings(&req);
    check((err == NULL) == is_good(bytes, len, (uint64_t) shape, ends));
    inf_err_free(err);
    inf_request_fini(&req);
    for (unsigned i = 0; i <= CUTS; i++) {
        free(copies[i]);
    }
    return 0;
}
