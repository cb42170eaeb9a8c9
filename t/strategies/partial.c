/* partial.c - two of the five functions. */

#include "triton/core/tritonbackend.h"

TRITONSERVER_Error *
TRITONBACKEND_ModelBatchInitialize(const TRITONBACKEND_Batcher *batcher,
    void **userp)
{
    (void) batcher;
    *userp = NULL;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelBatchFinalize(void *userp)
{
    (void) userp;
    return NULL;
}
