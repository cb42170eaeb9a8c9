/*
 * azure_token.h - the request that asks an identity service for an access token
 *                 for Azure Storage.
 *
 * Owner    The caller calls fini, which wipes secrets.
 * Thread   any; reads the environment and a file in each call.
 * Units    none.
 * Errors   INVALID_ARG: a file of a token cannot be read.  UNSUPPORTED: the
 *          machine has an identity service of another kind.
 * Route    Azure service -> [token] -> access token
 *
 * A managed identity is asked for at IDENTITY_ENDPOINT with IDENTITY_HEADER
 * (App Service, Functions, Container Apps), otherwise at the machine's metadata
 * service, whose host AZURE_POD_IDENTITY_AUTHORITY_HOST replaces.  "default"
 * prefers a service principal to that: AZURE_TENANT_ID and AZURE_CLIENT_ID with
 * AZURE_CLIENT_SECRET, or with AZURE_FEDERATED_TOKEN_FILE (workload identity);
 * AZURE_AUTHORITY_HOST is where it is asked for.
 *
 * Source: Microsoft identity platform, OAuth 2.0 client credentials flow; Azure
 * Instance Metadata Service; App Service, REST endpoint of managed identities.
 */

#ifndef INF_STORAGE_AZURE_TOKEN_H
#define INF_STORAGE_AZURE_TOKEN_H

#include <stdbool.h>

#include "core/base/error.h"

typedef struct {
    char       *url;
    const char *header;     /* a literal; NULL: none                         */
    char       *value;      /* of header                                     */
    char       *form;       /* body of a POST; NULL: a GET on this machine   */
} inf_azure_token_request_t;

/* The request of a managed identity, or, if any_identity, of the first identity
   that the environment has.  client_id: of a user-assigned managed identity;
   NULL: the machine's own. */
INF_CHECK inf_err_t *inf_azure_token_request(bool any_identity,
    const char *client_id, inf_azure_token_request_t *out);
void inf_azure_token_request_fini(inf_azure_token_request_t *r);

#endif /* INF_STORAGE_AZURE_TOKEN_H */
