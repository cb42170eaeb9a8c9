/*
 * gs_token.h - an access token of Google Cloud Storage for an account.
 *
 * Owner    The caller finishes the token.
 * Thread   any.
 * Units    none.
 * Errors   as in access_token.h; INVALID_ARG: the key of the account is none,
 *          or another provider's token is not where it should be.
 * Route    service_gs -> [token] -> access_token, jwt
 *
 * Sources: RFC 6749, section 6; RFC 7523; RFC 8693; the documentation of
 * generateAccessToken.
 */

#ifndef INF_STORAGE_GS_TOKEN_H
#define INF_STORAGE_GS_TOKEN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/base/error.h"
#include "core/storage/access_token.h"
#include "core/storage/gs_credentials.h"

/* c has an account of a file: USER, SERVICE or EXTERNAL. */
INF_CHECK inf_err_t *inf_gs_token_ask(const inf_gs_credentials_t *c,
    const _Atomic bool *cancelled, inf_access_token_t *out);

#endif /* INF_STORAGE_GS_TOKEN_H */
