/*
 * http_post.h - posts JSON to one address, again and again.
 *
 * Owner    The holder closes it; it keeps the connection for the next post.
 * Thread   one at a time.
 * Units    bytes, ms.
 * Errors   UNAVAILABLE: no answer in time, or one that is no success.
 * Route    trace collector -> [http post] -> libcurl
 */

#ifndef INF_STORAGE_HTTP_POST_H
#define INF_STORAGE_HTTP_POST_H

#include "core/base/error.h"
#include "core/base/slice.h"

typedef struct inf_http_post_s inf_http_post_t;

/* url: http:// or https://; timeout_ms is for a post as a whole.  UNSUPPORTED:
   there is no libcurl. */
INF_CHECK inf_err_t *inf_http_post_open(const char *url, long timeout_ms,
    inf_http_post_t **out);

/* p may be NULL. */
void inf_http_post_close(inf_http_post_t *p);

/* NULL: answered with a status of 2xx.  The rest of the answer is not kept. */
INF_CHECK inf_err_t *inf_http_post_send(inf_http_post_t *p, inf_slice_t json);

#endif /* INF_STORAGE_HTTP_POST_H */
