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
 * service ("service_account"), or says where another provider's token is that
 * is exchanged ("external_account"); "impersonated_service_account" has one of
 * these in it.  Without any the metadata service of Google's machines has
 * tokens, and where there is none requests are anonymous.
 *
 * Source: AIP-4117.
 */

#ifndef INF_STORAGE_GS_CREDENTIALS_H
#define INF_STORAGE_GS_CREDENTIALS_H

#include <stdbool.h>

#include "core/base/error.h"

typedef enum {
    INF_GS_ANONYMOUS,
    INF_GS_METADATA,
    INF_GS_USER,
    INF_GS_SERVICE,
    INF_GS_EXTERNAL
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
    char            *audience;      /* of EXTERNAL                           */
    char            *subject_type;  /* type of the other provider's token    */
    char            *source_file;   /* where it is; NULL: at a URL           */
    char            *source_url;
    char            *source_header; /* name of a header; NULL: none          */
    char            *source_value;
    char            *source_field;  /* of JSON; NULL: a text                 */
    char            *impersonation_url; /* asked for the token of a service's
                                       account; NULL: none                   */
    char            *delegates;     /* JSON; NULL: none                      */
    unsigned         lifetime_s;    /* of that token                         */
} inf_gs_credentials_t;

/* emulator: the service is one, so only credentials that a variable names are
   used.  On success out owns its texts until fini; after an error it is
   empty. */
INF_CHECK inf_err_t *inf_gs_credentials_find(const char *address,
    bool emulator, inf_gs_credentials_t *out);
void inf_gs_credentials_fini(inf_gs_credentials_t *c);

#endif /* INF_STORAGE_GS_CREDENTIALS_H */
