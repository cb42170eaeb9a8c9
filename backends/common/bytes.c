/* bytes.c - see bytes.h */

#include "bytes.h"

#include <inttypes.h>

static uint32_t prefix_read(const unsigned char *p);

TRITONSERVER_Error *
bk_bytes_open(bk_bytes_t *b, const char *what, const char *name,
    const void *data, uint64_t len_bytes, uint64_t elements)
{
    if (elements > len_bytes / BK_BYTES_PREFIX) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "%s \"%s\" has %" PRIu64 " bytes, too few for its %" PRIu64
            " elements", what, name, len_bytes, elements);
    }

    if (elements == 0 && len_bytes != 0) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "%s \"%s\" has %" PRIu64 " bytes behind its 0 elements", what,
            name, len_bytes);
    }

    *b = (bk_bytes_t) {
        .at = data, .left = len_bytes, .elements = elements,
        .what = what, .name = name
    };
    return NULL;
}

TRITONSERVER_Error *
bk_bytes_next(bk_bytes_t *b, const char **text, uint32_t *len)
{
    uint32_t n = b->left < BK_BYTES_PREFIX ? 0 : prefix_read(b->at);

    if (b->left < BK_BYTES_PREFIX || n > b->left - BK_BYTES_PREFIX) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "%s \"%s\" ends inside element %" PRIu64 " of %" PRIu64,
            b->what, b->name, b->index, b->elements);
    }

    *text = (const char *) b->at + BK_BYTES_PREFIX;
    *len = n;
    b->at += BK_BYTES_PREFIX + n;
    b->left -= BK_BYTES_PREFIX + (uint64_t) n;
    b->index++;
    if (b->index == b->elements && b->left != 0) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "%s \"%s\" has %" PRIu64 " bytes behind its %" PRIu64
            " elements", b->what, b->name, b->left, b->elements);
    }

    return NULL;
}

void
bk_bytes_put_len(void *to, uint32_t len)
{
    unsigned char *p = to;

    p[0] = (unsigned char) len;
    p[1] = (unsigned char) (len >> 8);
    p[2] = (unsigned char) (len >> 16);
    p[3] = (unsigned char) (len >> 24);
}

static uint32_t
prefix_read(const unsigned char *p)
{
    return (uint32_t) p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16
        | (uint32_t) p[3] << 24;
}
