/*
 * http_post.h - posts JSON to one address repeatedly.
 *
 * Owner    The holder closes it; the connection is kept for the next post.
 * Thread   one at a time.
 * Units    bytes, ms, ns.
 * Errors   UNAVAILABLE: no answer in time, or an error status.
 * Route    trace collector -> [http post] -> libcurl
 */

#ifndef INF_STORAGE_HTTP_POST_H
#define INF_STORAGE_HTTP_POST_H

#include <stdint.h>

#include "core/base/error.h"
#include "core/base/slice.h"

typedef struct inf_http_post_s inf_http_post_t;

/* url: http:// or https://; timeout_ms: limit of a whole post; until_ns: on the
   monotonic clock, when a post ends in any case; it is valid until close.
   UNSUPPORTED: libcurl is missing. */
INF_CHECK inf_err_t *inf_http_post_open(const char *url, long timeout_ms,
    const _Atomic uint64_t *until_ns, inf_http_post_t **out);

/* Adds headers to all posts: "name=value,name=value", values percent-encoded.
   Those that are no header are left out, and *bad is their number. */
INF_CHECK inf_err_t *inf_http_post_add_headers(inf_http_post_t *p,
    const char *text, uint32_t *bad);

/* Sets the file of PEM certificates that https:// trusts instead of the
   system's authorities; it is opened at each connection. */
INF_CHECK inf_err_t *inf_http_post_trust(inf_http_post_t *p, const char *path);

/* p may be NULL. */
void inf_http_post_close(inf_http_post_t *p);

/* NULL: the status was 2xx.  The rest of the answer is discarded. */
INF_CHECK inf_err_t *inf_http_post_send(inf_http_post_t *p, inf_slice_t json);

#endif /* INF_STORAGE_HTTP_POST_H */
