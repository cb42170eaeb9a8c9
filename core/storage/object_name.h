/*
 * object_name.h - the names of objects in the cache.
 *
 * Owner    The caller's buffer.
 * Thread   any.
 * Units    bytes.
 * Errors   UNSUPPORTED: libcrypto has no SHA-256.
 * Route    object cache -> [name] -> libcrypto
 *
 * A name is a SHA-256 of address, key and ETag, in hexadecimal digits, and the
 * size after a dash: a bucket cannot choose keys and ETags that get the name of
 * another bucket's object.  Names of another form are in the cache of an older
 * version; no object is found by one.
 */

#ifndef INF_STORAGE_OBJECT_NAME_H
#define INF_STORAGE_OBJECT_NAME_H

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/base/object_address.h"
#include "core/storage/object_listing.h"

/* Appends the name of an object, which has a key and an ETag. */
INF_CHECK inf_err_t *inf_object_name_put(inf_buf_t *out,
    const inf_object_address_t *a, const inf_object_t *o);

#endif /* INF_STORAGE_OBJECT_NAME_H */
