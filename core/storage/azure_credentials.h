/*
 * azure_credentials.h - whose account a container is in, and how requests to it
 *                       are authorized.
 *
 * Owner    The caller calls fini, which wipes secrets.
 * Thread   any; reads the environment and a file in each call.
 * Units    none.
 * Errors   NOT_FOUND: no entry of the credential file matches.  INVALID_ARG,
 *          with file and key, or the variable.
 * Route    environment, file -> [credentials] -> Azure service
 *
 * TRITON_CLOUD_CREDENTIAL_PATH names a JSON file {"as": {PREFIX:
 * {"account_str", "account_key", "auth_type", "client_id"}}}; the entry with
 * the longest prefix of the address is used and the environment then ignored.
 * Without that file: AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_KEY,
 * AZURE_STORAGE_AUTH_TYPE and AZURE_STORAGE_CLIENT_ID.
 */

#ifndef INF_STORAGE_AZURE_CREDENTIALS_H
#define INF_STORAGE_AZURE_CREDENTIALS_H

#include "core/base/error.h"

typedef enum {
    INF_AZURE_ANONYMOUS,
    INF_AZURE_KEY,
    INF_AZURE_MANAGED_IDENTITY,
    INF_AZURE_ANY_IDENTITY      /* "default"                                 */
} inf_azure_auth_t;

typedef struct {
    inf_azure_auth_t  auth;
    char             *account;      /* NULL: the address's own               */
    char             *key;          /* of KEY, in base64                     */
    char             *client_id;    /* of an identity; NULL: none            */
} inf_azure_credentials_t;

/* On success out owns its texts until fini; after an error it is empty. */
INF_CHECK inf_err_t *inf_azure_credentials_find(const char *address,
    inf_azure_credentials_t *out);
void inf_azure_credentials_fini(inf_azure_credentials_t *c);

#endif /* INF_STORAGE_AZURE_CREDENTIALS_H */
