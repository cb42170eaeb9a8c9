/*
 * s3_http.h - one signed HTTP request to an S3 service; wraps libcurl.
 *
 * Owner    A connection belongs to its holder (close); it keeps the socket
 *          for the next request.
 * Thread   one connection, one thread at a time.
 * Units    bytes; ms.
 * Errors   UNAVAILABLE: no answer, or the service has trouble: worth another
 *          try.  NOT_FOUND, INVALID_ARG (the object is another one by now),
 *          INTERNAL (rejected): the service's code and text.
 * Route    S3 client -> [http] -> libcurl, opened when first needed
 *
 * Source of the signature: AWS Signature Version 4, payload unsigned.
 */

#ifndef INF_STORAGE_S3_HTTP_H
#define INF_STORAGE_S3_HTTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/storage/s3_credentials.h"

#define INF_S3_ETAG_MAX 160u

typedef struct inf_s3_http_s inf_s3_http_t;

typedef struct {
    const char                 *url;    /* path and query canonical          */
    const inf_s3_credentials_t *who;
    const char                 *etag;   /* answer only if it is this one;
                                           NULL: any                         */
    const _Atomic bool         *cancelled;  /* seq_cst; once it is, the request
                                               ends within a second:
                                               UNAVAILABLE                   */
    bool                        ranged;
    uint64_t                    first;  /* bytes, both included              */
    uint64_t                    last;
    /* Takes the body's bytes; false ends the request with INTERNAL. */
    bool                      (*take)(void *userp, const char *data,
                                   size_t len);
    void                       *userp;
} inf_s3_get_t;

typedef struct {
    unsigned status;
    char     etag[INF_S3_ETAG_MAX];     /* without quotes; "": none          */
} inf_s3_answer_t;

/* UNSUPPORTED: there is no libcurl on this machine, or it can't sign. */
INF_CHECK inf_err_t *inf_s3_http_open(inf_s3_http_t **out);
void inf_s3_http_close(inf_s3_http_t *h);

/* Only the body of a 200 or 206 reaches take. */
INF_CHECK inf_err_t *inf_s3_http_get(inf_s3_http_t *h,
    const inf_s3_get_t *what, inf_s3_answer_t *out);

#endif /* INF_STORAGE_S3_HTTP_H */
