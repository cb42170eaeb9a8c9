/*
 * object_http.h - one HTTP request to a service; wraps libcurl.
 *
 * Owner    A connection belongs to its holder (close); its socket is kept for
 *          the next request.
 * Thread   one at a time for a connection.
 * Units    bytes; ms.
 * Errors   UNAVAILABLE: no answer, or an error of the service: retry.
 *          NOT_FOUND, INVALID_ARG (the object was replaced), INTERNAL
 *          (rejected): the service's code and text, of an XML error document
 *          or an error in JSON.
 * Route    object client -> [http] -> libcurl, opened at its first use
 */

#ifndef INF_STORAGE_OBJECT_HTTP_H
#define INF_STORAGE_OBJECT_HTTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/slice.h"

#define INF_OBJECT_ETAG_MAX 160u

typedef struct inf_object_http_s inf_object_http_t;
typedef struct inf_object_get_s inf_object_get_t;

struct inf_object_get_s {
    const char         *scheme;     /* "s3://", for errors                   */
    const char         *url;        /* with canonical path and query         */
    const char         *form;       /* body of a POST, encoded as a form's;
                                       NULL: a GET                           */
    bool                link_local; /* a service of this machine: through no
                                       proxy, and it connects in a second    */
    const char         *authorities;    /* file of certificates that https://
                                       trusts; NULL: the system's            */
    const char         *etag;       /* condition of the request; NULL: any
                                       object                                */
    const char         *stored_coding;  /* a header of answers; NULL: none.
                                       With it and without Content-Encoding
                                       the service has decoded the object:
                                       UNSUPPORTED                           */
    const _Atomic bool *cancelled;  /* seq_cst; once true the request ends
                                       within a second: UNAVAILABLE          */
    bool                ranged;
    uint64_t            first;      /* first and last byte                   */
    uint64_t            last;
    /* Adds headers that show who asks; NULL: none. */
    inf_err_t        *(*authorize)(inf_object_http_t *h,
                           const inf_object_get_t *what);
    const void         *who;
    /* Receives the body's bytes; false ends the request with INTERNAL. */
    bool              (*take)(void *userp, const char *data, size_t len);
    void               *userp;
};

typedef struct {
    unsigned status;
    char     etag[INF_OBJECT_ETAG_MAX];     /* without quotes; "": none      */
} inf_object_answer_t;

/* Whether the text may be a header's value: printable, no blanks, not empty. */
bool inf_object_http_is_header(inf_slice_t s);

/* UNSUPPORTED: libcurl is missing on this machine. */
INF_CHECK inf_err_t *inf_object_http_open(inf_object_http_t **out);
void inf_object_http_close(inf_object_http_t *h);

/* take receives only the body of a 200 or 206. */
INF_CHECK inf_err_t *inf_object_http_get(inf_object_http_t *h,
    const inf_object_get_t *what, inf_object_answer_t *out);

/* For authorize: adds a header to the request, and wipes its copy of it. */
INF_CHECK inf_err_t *inf_object_http_add_header(inf_object_http_t *h,
    const char *name, const char *value);

/* For authorize: libcurl signs the request, whose payload is unsigned (AWS
   Signature Version 4).  UNSUPPORTED: libcurl cannot. */
INF_CHECK inf_err_t *inf_object_http_sign_aws(inf_object_http_t *h,
    const char *region, const char *key_id, const char *secret_key);

#endif /* INF_STORAGE_OBJECT_HTTP_H */
