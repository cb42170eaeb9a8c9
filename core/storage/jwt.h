/*
 * jwt.h - JSON web tokens, signed with RSA and SHA-256 by libcrypto.
 *
 * Owner    The caller's texts.
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG: the key is no RSA key in PEM.
 * Route    service_gs -> [jwt] -> libcrypto
 *
 * Source: RFC 7519; RFC 7515, algorithm RS256.
 */

#ifndef INF_STORAGE_JWT_H
#define INF_STORAGE_JWT_H

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/base/slice.h"

/* Appends the token; header and claims are JSON, and header says RS256. */
INF_CHECK inf_err_t *inf_jwt_put(inf_buf_t *out, inf_slice_t header,
    inf_slice_t claims, const char *pem);

#endif /* INF_STORAGE_JWT_H */
