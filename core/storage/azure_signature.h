/*
 * azure_signature.h - signs a GET to Azure Blob Storage with an account's key.
 *
 * Owner    The caller's memory; keys and what is derived from them are wiped.
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG: the key is not base64.  The text has no part of it.
 * Route    Azure service -> [signature] -> libcrypto
 *
 * Source: Azure Storage REST API, Authorize with Shared Key (Blob, Queue, and
 * File Services; 2015-02-21 and later).
 */

#ifndef INF_STORAGE_AZURE_SIGNATURE_H
#define INF_STORAGE_AZURE_SIGNATURE_H

#include "core/base/buf.h"
#include "core/base/error.h"

/* x-ms-version of each request; names that XML cannot hold come encoded. */
#define INF_AZURE_VERSION "2021-12-02"

/* The headers of the request are x-ms-date, x-ms-version and those given. */
typedef struct {
    const char *account;
    const char *path;           /* of the URL, as it is sent                 */
    const char *query;          /* likewise; NULL: none                      */
    const char *date;           /* x-ms-date                                 */
    const char *if_match;       /* NULL: no such header                      */
    const char *range;
} inf_azure_request_t;

/* Appends the value of the Authorization header. */
INF_CHECK inf_err_t *inf_azure_sign(const inf_azure_request_t *r,
    const char *key, inf_buf_t *out);

#endif /* INF_STORAGE_AZURE_SIGNATURE_H */
