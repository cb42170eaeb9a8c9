/*
 * object_service.h - a service of object storage as a table of functions: all
 *                    that the client, cache and storage of objects need to
 *                    know of S3 and its like.
 *
 * Owner    Tables are static.  Credentials are shared: each holder has a
 *          reference, and the last one wipes secrets.
 * Thread   any; the functions keep nothing.
 * Units    bytes; ns on the monotonic clock.
 * Errors   of credentials: NOT_FOUND, INVALID_ARG with file and key.
 *          UNAVAILABLE: a service that gives them has no answer; a later try
 *          may have one.
 * Route    object client, cache, storage -> [service] -> service_*.c
 */

#ifndef INF_STORAGE_OBJECT_SERVICE_H
#define INF_STORAGE_OBJECT_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/base/object_address.h"
#include "core/storage/object_http.h"
#include "core/storage/object_listing.h"

#define INF_OBJECT_RENEW_MAX 3

/* Begins a service's own struct; that is not changed once it is returned. */
typedef struct {
    _Atomic uint32_t refs;          /* acq_rel                               */
    uint64_t         until_ns;      /* valid until then; UINT64_MAX: unknown */
} inf_object_credentials_t;

/* A page of a listing that is asked for. */
typedef struct {
    const char *prefix;
    bool        recursive;          /* else a directory is one entry         */
    size_t      limit;              /* of entries; 0: the service's own      */
    const char *token;              /* of the page before; NULL: the first   */
} inf_object_page_t;

typedef struct {
    const char *scheme;             /* "s3://"                               */
    const char *name;               /* "s3", in the name of the cache's
                                       directory                             */
    const char *mount;              /* variable: where the cache is          */
    const char *authorities;        /* variable: a file of certificates that
                                       https:// trusts; NULL: none           */

    const char *stored_coding;      /* as in object_http.h; NULL: objects are
                                       always sent as they are stored        */

    /* Statuses that may mean expired credentials: these are found anew once. */
    unsigned    renew[INF_OBJECT_RENEW_MAX];

    /* Credentials for an address.  After *cancelled a request for them ends. */
    inf_err_t *(*find)(const char *address, const _Atomic bool *cancelled,
        inf_object_credentials_t **out);
    void (*free)(inf_object_credentials_t *who);

    /* Append a URL whose path and query need no other encoding. */
    void (*put_object_url)(inf_buf_t *url, const inf_object_address_t *a,
        const inf_object_credentials_t *who, const char *key);
    void (*put_page_url)(inf_buf_t *url, const inf_object_address_t *a,
        const inf_object_credentials_t *who, const inf_object_page_t *page);

    /* Appends the entries of a page and sets the listing's next. */
    inf_err_t *(*parse_page)(inf_object_listing_t *l, const char *xml,
        size_t len);

    /* Adds the headers that show who asks: what->who is the credentials. */
    inf_err_t *(*authorize)(inf_object_http_t *h,
        const inf_object_get_t *what);
} inf_object_service_t;

extern const inf_object_service_t inf_service_s3;
extern const inf_object_service_t inf_service_gs;
extern const inf_object_service_t inf_service_as;

/* The service of an address; NULL: its scheme is that of none. */
const inf_object_service_t *inf_object_service_of(const char *address);

/* The caller holds one more reference. */
inf_object_credentials_t *inf_object_credentials_ref(
    inf_object_credentials_t *who);

/* who may be NULL. */
void inf_object_credentials_unref(const inf_object_service_t *service,
    inf_object_credentials_t *who);

#endif /* INF_STORAGE_OBJECT_SERVICE_H */
