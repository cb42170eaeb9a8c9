/* scratch.c - see scratch.h */

#include "scratch.h"

#include <stdlib.h>

TRITONSERVER_Error *
bk_scratch_reserve(bk_scratch_t *s, uint64_t size, const char *what)
{
    if (s->data != NULL && size <= s->cap) {
        return NULL;
    }

    if (size > SIZE_MAX / 2) {
        return bk_err_nomem(what);
    }

    size_t cap = ((size_t) size / BK_SCRATCH_ALIGNMENT + 1)
        * BK_SCRATCH_ALIGNMENT;
    void *data = aligned_alloc(BK_SCRATCH_ALIGNMENT, cap);
    if (data == NULL) {
        return bk_err_nomem(what);
    }

    free(s->data);
    s->data = data;
    s->cap = cap;
    return NULL;
}

void
bk_scratch_fini(bk_scratch_t *s)
{
    free(s->data);
    *s = (bk_scratch_t) { 0 };
}
