/*
 * gs_credentials.h - credentials for Google Cloud Storage.
 *
 * Owner    The caller calls fini, which wipes secrets.
 * Thread   any; reads the environment and files in each call.
 * Units    none.
 * Errors   NOT_FOUND: no entry of the credential file matches.  INVALID_ARG,
 *          with file and key.
 * Route    environment, files -> [credentials] -> service_gs
 *
 * TRITON_CLOUD_CREDENTIAL_PATH names a JSON file {"gs": {PREFIX: FILE}}; the
 * entry with the longest prefix of the address is used.  Without that file:
 * GOOGLE_APPLICATION_CREDENTIALS names a file, else gcloud's own is one.  Such
 * a file has the keys of an account of a user ("authorized_user") or of a
 * service ("service_account").  Without any the metadata service of Google's
 * machines has tokens, and where there is none requests are anonymous.
 */

#ifndef INF_STORAGE_GS_CREDENTIALS_H
#define INF_STORAGE_GS_CREDENTIALS_H

#include <stdbool.h>

#include "core/base/error.h"

typedef enum {
    INF_GS_ANONYMOUS,
    INF_GS_METADATA,
    INF_GS_USER,
    INF_GS_SERVICE
} inf_gs_account_t;

typedef struct {
    inf_gs_account_t account;
    char            *file;          /* NULL: none; the texts below are then
                                       NULL, too                             */
    char            *token_uri;
    char            *client_id;     /* of USER                               */
    char            *client_secret;
    char            *refresh_token;
    char            *client_email;  /* of SERVICE                            */
    char            *private_key;
    char            *private_key_id;    /* NULL: not given                   */
} inf_gs_credentials_t;

/* emulator: the service is one, so only credentials that a variable names are
   used.  On success out owns its texts until fini; after an error it is
   empty. */
INF_CHECK inf_err_t *inf_gs_credentials_find(const char *address,
    bool emulator, inf_gs_credentials_t *out);
void inf_gs_credentials_fini(inf_gs_credentials_t *c);

#endif /* INF_STORAGE_GS_CREDENTIALS_H */
