/*
 * cloud_credentials.h - the file of credentials of all services that
 *                       TRITON_CLOUD_CREDENTIAL_PATH names, and JSON with
 *                       secrets.
 *
 * Owner    The caller finishes the document, whose entries are borrowed, and
 *          wipes texts.
 * Thread   any; reads the environment and files in each call.
 * Units    none.
 * Errors   NOT_FOUND: no entry matches.  INVALID_ARG, with file and key.
 * Route    environment, file -> [cloud credentials] -> credentials of a
 *          service
 *
 * The file is {"s3": {PREFIX: entry, ...}, ...}; the entry with the longest
 * prefix of the address is used, and the environment then ignored.
 */

#ifndef INF_STORAGE_CLOUD_CREDENTIALS_H
#define INF_STORAGE_CLOUD_CREDENTIALS_H

#include <stdbool.h>

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/proto/json_doc.h"

typedef struct {
    const char     *file;       /* NULL: the variable is not set             */
    const char     *service;    /* "s3"                                      */
    inf_json_doc_t  doc;
    json_t         *value;      /* of the prefix; of any type                */
} inf_cloud_entry_t;

/* Finds the entry of an address; fini ends it in any case. */
INF_CHECK inf_err_t *inf_cloud_entry_find(const char *service,
    const char *address, inf_cloud_entry_t *out);
void inf_cloud_entry_fini(inf_cloud_entry_t *e);

/* Appends the bytes of a file of at most 1 MiB to text, which the caller
   wipes. */
INF_CHECK inf_err_t *inf_cloud_file_read(const char *file, inf_buf_t *text);

/* Reads a file of JSON; doc is valid, perhaps empty, in any case. */
INF_CHECK inf_err_t *inf_cloud_file_parse(const char *file,
    inf_json_doc_t *doc);

/* Wipes all strings of the document and finishes it. */
void inf_cloud_json_fini(inf_json_doc_t *doc);

/* The text of object's key, malloc'ed; *out stays NULL if it is missing or
   empty.  An error names the file. */
INF_CHECK inf_err_t *inf_cloud_text(const char *file, const json_t *object,
    const char *key, char **out);

/* Whether the URL's scheme is http, and whether it is http or https. */
bool inf_cloud_url_is_plain(const char *url);
bool inf_cloud_url_is_web(const char *url);

/* Whether nobody else can read what is sent to the URL: https://, or a loopback
   address. */
bool inf_cloud_url_is_private(const char *url);

/* Wipes and frees the text, which may be NULL, and sets it to NULL. */
void inf_cloud_wipe(char **text);

/* Wipes and finishes the buffer. */
void inf_cloud_wipe_buf(inf_buf_t *b);

#endif /* INF_STORAGE_CLOUD_CREDENTIALS_H */
