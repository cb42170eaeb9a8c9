/*
 * curl_library.h - libcurl, opened at its first use.
 *
 * Owner    process-wide; never closed.
 * Thread   any; one thread at a time for each handle.
 * Units    libcurl's own.
 * Errors   UNSUPPORTED: libcurl is missing on this machine, or too old.
 * Route    requests, posts -> [curl library] -> libcurl
 */

#ifndef INF_STORAGE_CURL_LIBRARY_H
#define INF_STORAGE_CURL_LIBRARY_H

#include <curl/curl.h>

#include "core/base/error.h"

/* The functions of libcurl that are used.  libcurl is opened late: otherwise
   its many libraries would be in every core and every embedding program. */
typedef struct {
    CURLcode     (*global_init)(long flags);
    CURL        *(*easy_init)(void);
    void         (*easy_cleanup)(CURL *handle);
    void         (*easy_reset)(CURL *handle);
    CURLcode     (*easy_setopt)(CURL *handle, CURLoption option, ...);
    CURLcode     (*easy_getinfo)(CURL *handle, CURLINFO info, ...);
    CURLcode     (*easy_perform)(CURL *handle);
    const char  *(*easy_strerror)(CURLcode code);
    struct curl_slist *(*slist_append)(struct curl_slist *list,
        const char *text);
    void         (*slist_free_all)(struct curl_slist *list);
} inf_curl_t;

/* *out is valid for ever. */
INF_CHECK inf_err_t *inf_curl_open(const inf_curl_t **out);

#endif /* INF_STORAGE_CURL_LIBRARY_H */
