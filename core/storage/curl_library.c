#include "core/storage/curl_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static inf_curl_t      curl;
static pthread_once_t  curl_once = PTHREAD_ONCE_INIT;
static char            curl_problem[256];   /* "": none                      */

static void curl_open(void);
static bool curl_bind(void *library);

inf_err_t *
inf_curl_open(const inf_curl_t **out)
{
    pthread_once(&curl_once, curl_open);
    if (curl_problem[0] != '\0') {
        return inf_err_new(INF_ERR_UNSUPPORTED, "%s", curl_problem);
    }

    *out = &curl;
    return NULL;
}

static void
curl_open(void)
{
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
    }
    if (library == NULL) {
        snprintf(curl_problem, sizeof(curl_problem), "%s", dlerror());
        return;
    }
    if (!curl_bind(library)) {
        snprintf(curl_problem, sizeof(curl_problem), "this one lacks a "
            "function that is needed");
        return;
    }
    if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        snprintf(curl_problem, sizeof(curl_problem), "it can't start");
    }
}

static bool
curl_bind(void *library)
{
    const struct {
        const char  *name;
        void        *to;
    } rows[] = {
        { "curl_global_init", &curl.global_init },
        { "curl_easy_init", &curl.easy_init },
        { "curl_easy_cleanup", &curl.easy_cleanup },
        { "curl_easy_reset", &curl.easy_reset },
        { "curl_easy_setopt", &curl.easy_setopt },
        { "curl_easy_getinfo", &curl.easy_getinfo },
        { "curl_easy_perform", &curl.easy_perform },
        { "curl_easy_strerror", &curl.easy_strerror },
        { "curl_slist_append", &curl.slist_append },
        { "curl_slist_free_all", &curl.slist_free_all },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        void *symbol = dlsym(library, rows[i].name);
        if (symbol == NULL) {
            return false;
        }
        memcpy(rows[i].to, &symbol, sizeof(symbol));
    }
    return true;
}
