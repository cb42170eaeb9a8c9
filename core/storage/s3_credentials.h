/*
 * s3_credentials.h - who asks an S3 service: keys, region, session token.
 *
 * Owner    The caller frees with fini; secrets are wiped.
 * Thread   any; reads the environment and files anew each time.
 * Units    none.
 * Errors   NOT_FOUND: no entry of the credential file matches.  INVALID_ARG
 *          names file and key.
 * Route    environment, files -> [credentials] -> S3 client
 *
 * TRITON_CLOUD_CREDENTIAL_PATH names a JSON file {"s3": {PREFIX: {"key_id",
 * "secret_key", "region", "session_token", "profile"}}}; the longest prefix
 * of the address wins and the environment then counts no more.  Without that
 * file: AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, else the profile
 * AWS_PROFILE or "default" of ~/.aws/credentials and ~/.aws/config (or what
 * AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name).  No keys at all: the
 * requests are not signed.
 */

#ifndef INF_STORAGE_S3_CREDENTIALS_H
#define INF_STORAGE_S3_CREDENTIALS_H

#include "core/base/error.h"

typedef struct {
    char *key_id;           /* NULL: anonymous                               */
    char *secret_key;
    char *session_token;    /* NULL: none                                    */
    char *region;           /* never NULL after find                         */
} inf_s3_credentials_t;

/* On success out has texts of its own, for fini; after an error it is empty. */
INF_CHECK inf_err_t *inf_s3_credentials_find(const char *address,
    inf_s3_credentials_t *out);
void inf_s3_credentials_fini(inf_s3_credentials_t *c);

#endif /* INF_STORAGE_S3_CREDENTIALS_H */
