/*
 * s3_http.h - one signed HTTP request to an S3 service; wraps libcurl.
 *
 * Owner    A connection belongs to its holder (close); its socket is kept for
 *          the next request.
 * Thread   one at a time for a connection.
 * Units    bytes; ms.
 * Errors   UNAVAILABLE: no answer, or an error of the service: retry.
 *          NOT_FOUND, INVALID_ARG (the object was replaced), INTERNAL
 *          (rejected): the service's code and text.
 * Route    S3 client -> [http] -> libcurl, opened at its first use
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
    const char                 *url;    /* with canonical path and query     */
    const inf_s3_credentials_t *who;
    const char                 *etag;   /* condition of the request; NULL: any
                                           object                            */
    const _Atomic bool         *cancelled;  /* seq_cst; once true the request
                                               ends within a second:
                                               UNAVAILABLE                   */
    bool                        ranged;
    uint64_t                    first;  /* first and last byte               */
    uint64_t                    last;
    /* Receives the body's bytes; false ends the request with INTERNAL. */
    bool                      (*take)(void *userp, const char *data,
                                   size_t len);
    void                       *userp;
} inf_s3_get_t;

typedef struct {
    unsigned status;
    char     etag[INF_S3_ETAG_MAX];     /* without quotes; "": none          */
} inf_s3_answer_t;

/* UNSUPPORTED: libcurl is missing on this machine, or cannot sign. */
INF_CHECK inf_err_t *inf_s3_http_open(inf_s3_http_t **out);
void inf_s3_http_close(inf_s3_http_t *h);

/* take receives only the body of a 200 or 206.  Whom https:// trusts: the
   system's authorities, or those of the file AWS_CA_BUNDLE. */
INF_CHECK inf_err_t *inf_s3_http_get(inf_s3_http_t *h,
    const inf_s3_get_t *what, inf_s3_answer_t *out);

#endif /* INF_STORAGE_S3_HTTP_H */
