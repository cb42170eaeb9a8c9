/*
 * s3_credentials.h - credentials for an S3 service: keys, region, session
 *                    token.
 *
 * Owner    The caller calls fini, which wipes secrets.
 * Thread   any; reads the environment and files in each call.
 * Units    none.
 * Errors   NOT_FOUND: no entry of the credential file matches.  INVALID_ARG,
 *          with file and key.
 * Route    environment, files -> [credentials] -> service_s3
 *
 * TRITON_CLOUD_CREDENTIAL_PATH names a JSON file {"s3": {PREFIX: {"key_id",
 * "secret_key", "region", "session_token", "profile"}}}; the entry with the
 * longest prefix of the address is used and the environment then ignored.
 * Without that file: AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, else the
 * profile AWS_PROFILE or "default" of ~/.aws/credentials and ~/.aws/config (or
 * of AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE).  Without any keys
 * requests are not signed.
 */

#ifndef INF_STORAGE_S3_CREDENTIALS_H
#define INF_STORAGE_S3_CREDENTIALS_H

#include "core/base/error.h"

typedef struct {
    char *key_id;           /* NULL: anonymous                               */
    char *secret_key;
    char *session_token;    /* NULL: none                                    */
    char *region;           /* not NULL after find                           */
} inf_s3_credentials_t;

/* On success out owns its texts until fini; after an error it is empty. */
INF_CHECK inf_err_t *inf_s3_credentials_find(const char *address,
    inf_s3_credentials_t *out);
void inf_s3_credentials_fini(inf_s3_credentials_t *c);

#endif /* INF_STORAGE_S3_CREDENTIALS_H */
