/*
 * volume.c - limits a batch by the elements of its requests' first inputs.
 *
 * The model's parameter MAX_BATCH_VOLUME_BYTES says how many bytes one batch
 * may carry.  Calls are counted; the balance is checked at the end.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "triton/core/tritonbackend.h"

typedef struct {
    uint64_t limit;
} batcher_t;

typedef struct {
    uint64_t left;
} batch_t;

static int open_batches, open_batchers;

TRITONSERVER_Error *
TRITONBACKEND_ModelBatcherInitialize(TRITONBACKEND_Batcher **batcher,
    TRITONBACKEND_Model *model)
{
    static const char     word[] =
        "\"MAX_BATCH_VOLUME_BYTES\":{\"string_value\":\"";
    TRITONSERVER_Message *message;
    const char           *text, *at;
    size_t                size;
    batcher_t            *b = calloc(1, sizeof(*b));
    TRITONSERVER_Error   *err = TRITONBACKEND_ModelConfig(model, 1, &message);

    if (err != NULL || b == NULL) {
        free(b);
        return err;
    }
    TRITONSERVER_MessageSerializeToJson(message, &text, &size);
    at = memmem(text, size, word, strlen(word));
    b->limit = at != NULL ? strtoull(at + strlen(word), NULL, 10) : 0;
    TRITONSERVER_MessageDelete(message);
    if (b->limit == 0) {
        free(b);
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG,
                                     "MAX_BATCH_VOLUME_BYTES is missing");
    }
    open_batchers++;
    *batcher = (TRITONBACKEND_Batcher *) (void *) b;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelBatcherFinalize(TRITONBACKEND_Batcher *batcher)
{
    if (--open_batchers != 0 || open_batches != 0) {
        abort();
    }
    free(batcher);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelBatchInitialize(const TRITONBACKEND_Batcher *batcher,
    void **userp)
{
    batch_t *batch = calloc(1, sizeof(*batch));

    if (batch == NULL || ++open_batches != 1 || open_batchers != 1) {
        abort();
    }
    batch->left = ((const batcher_t *) (const void *) batcher)->limit;
    *userp = batch;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelBatchIncludeRequest(TRITONBACKEND_Request *request,
    void *userp, bool *should_include)
{
    TRITONBACKEND_Input *input;
    batch_t             *batch = userp;
    uint64_t             size = 0;
    TRITONSERVER_Error  *err;

    if (*should_include || open_batches != 1) {
        abort();
    }
    err = TRITONBACKEND_RequestInputByIndex(request, 0, &input);
    if (err == NULL) {
        err = TRITONBACKEND_InputProperties(input, NULL, NULL, NULL, NULL,
                                            &size, NULL);
    }
    if (err == NULL && size <= batch->left) {
        batch->left -= size;
        *should_include = true;
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelBatchFinalize(void *userp)
{
    if (userp == NULL || --open_batches != 0) {
        abort();
    }
    free(userp);
    return NULL;
}
