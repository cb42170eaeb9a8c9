/*
 * access_token.h - asks a service for an access token of OAuth 2.0.
 *
 * Owner    The caller calls fini, which wipes the token.
 * Thread   any.
 * Units    ns on the monotonic clock.
 * Errors   with the URL.  UNAVAILABLE: no answer, or an error of the service: a
 *          later try may succeed.  INTERNAL: rejected, with the service's code
 *          and text, or no token in the answer.
 * Route    services' credentials -> [access token] -> object_http
 *
 * Source: RFC 6749, sections 5.1 and 5.2; the answers of Azure's identities and
 * of Google's generateAccessToken.
 */

#ifndef INF_STORAGE_ACCESS_TOKEN_H
#define INF_STORAGE_ACCESS_TOKEN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/base/slice.h"

typedef struct {
    const char         *scheme;     /* of the repository, for errors         */
    const char         *url;
    const char         *form;       /* of a POST; NULL: a GET                */
    const char         *form_type;  /* media type; NULL: a form's            */
    const char         *header;     /* name and value; NULL: none            */
    const char         *value;
    const char         *authorities;    /* as in object_http.h; NULL: the
                                       system's                              */
    bool                link_local; /* likewise                              */
    const _Atomic bool *cancelled;  /* likewise; seq_cst                     */
} inf_token_request_t;

typedef struct {
    char     *bearer;       /* "Bearer <token>", the value of a header       */
    uint64_t  until_ns;     /* shortly before it expires                     */
} inf_access_token_t;

/* Appends the bytes of the answer to body, which the caller wipes.  *status: of
   the answer; 0: none came. */
INF_CHECK inf_err_t *inf_access_token_fetch(const inf_token_request_t *ask,
    unsigned *status, inf_buf_t *body);

/* Fetches an answer and parses it. */
INF_CHECK inf_err_t *inf_access_token_ask(const inf_token_request_t *ask,
    unsigned *status, inf_access_token_t *out);

/* Reads an answer that came at now_ns. */
INF_CHECK inf_err_t *inf_access_token_parse(inf_slice_t json,
    uint64_t now_ns, inf_access_token_t *out);

/* Wipes the token and leaves it empty. */
void inf_access_token_fini(inf_access_token_t *t);

#endif /* INF_STORAGE_ACCESS_TOKEN_H */
