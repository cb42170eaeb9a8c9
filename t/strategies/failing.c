/*
 * failing.c - fails where a word in the model's configuration says:
 * batcher-error, batch-error, include-error; none: it includes everything.
 * Its batches have no state of their own, so none is ever finalized.
 */

#include <stdlib.h>
#include <string.h>

#include "triton/core/tritonbackend.h"

static const char *const words[] = {
    "batcher-error", "batch-error", "include-error"
};
static int told;        /* a word's place, from 1 on */

static TRITONSERVER_Error *
fail(int where)
{
    return told != where ? NULL
        : TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
                                "the strategy fails on purpose");
}

TRITONSERVER_Error *
TRITONBACKEND_ModelBatcherInitialize(TRITONBACKEND_Batcher **batcher,
    TRITONBACKEND_Model *model)
{
    TRITONSERVER_Message *message;
    const char           *text;
    size_t                size;
    TRITONSERVER_Error   *err = TRITONBACKEND_ModelConfig(model, 1, &message);

    if (err != NULL) {
        return err;
    }
    *batcher = NULL;
    TRITONSERVER_MessageSerializeToJson(message, &text, &size);
    for (int i = 0; i < 3; i++) {
        if (memmem(text, size, words[i], strlen(words[i])) != NULL) {
            told = i + 1;
        }
    }
    TRITONSERVER_MessageDelete(message);
    return fail(1);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelBatcherFinalize(TRITONBACKEND_Batcher *batcher)
{
    return batcher == NULL ? NULL
        : TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "not mine");
}

TRITONSERVER_Error *
TRITONBACKEND_ModelBatchInitialize(const TRITONBACKEND_Batcher *batcher,
    void **userp)
{
    (void) batcher;
    (void) userp;
    return fail(2);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelBatchIncludeRequest(TRITONBACKEND_Request *request,
    void *userp, bool *should_include)
{
    (void) request;
    (void) userp;
    *should_include = true;
    return fail(3);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelBatchFinalize(void *userp)
{
    (void) userp;
    abort();            /* there never is anything to finalize */
}
