/* Any answer of a service of objects: header lines, a status and a body in
   pieces, as libcurl hands them over.  A body that is taken is that of a 200 or
   206, and an error's text is one line. */
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/storage/curl_library.h"
#include "core/storage/object_http.h"
#include "t/fuzz/check.h"
#include "t/fuzz/input.h"

#define TAKEN_MAX 256u

typedef size_t (*bytes_fn)(char *data, size_t size, size_t count, void *userp);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
inf_err_t *__wrap_inf_curl_open(const inf_curl_t **out);

/* One libcurl, whose answer is the input. */
static struct {
    input_t   in;
    long      status;
    bytes_fn  on_header;
    bytes_fn  on_body;
    void     *userp;
} curl;

static CURL *
easy_init(void)
{
    return (CURL *) &curl;
}

static void
easy_drop(CURL *easy)
{
    check(easy == &curl);
}

static CURLcode
easy_setopt(CURL *easy, CURLoption option, ...)
{
    va_list args;

    check(easy == &curl);
    va_start(args, option);
    if (option == CURLOPT_HEADERFUNCTION) {
        curl.on_header = va_arg(args, bytes_fn);
    } else if (option == CURLOPT_WRITEFUNCTION) {
        curl.on_body = va_arg(args, bytes_fn);
    } else if (option == CURLOPT_WRITEDATA) {
        curl.userp = va_arg(args, void *);
    }
    va_end(args);
    return CURLE_OK;
}

static CURLcode
easy_getinfo(CURL *easy, CURLINFO info, ...)
{
    va_list args;

    check(easy == &curl && info == CURLINFO_RESPONSE_CODE);
    va_start(args, info);
    *va_arg(args, long *) = curl.status;
    va_end(args);
    return CURLE_OK;
}

/* [what and a length, bytes] of each; in memory of its own, so that ASan sees
   where a line ends */
static CURLcode
easy_perform(CURL *easy)
{
    check(easy == &curl);
    while (curl.in.size > 0) {
        uint64_t head = input_next(&curl.in, 2);
        size_t len = (size_t) head >> 1;
        len = len < curl.in.size ? len : curl.in.size;

        char *bytes = malloc(len + (len == 0));
        check(bytes != NULL);
        memcpy(bytes, curl.in.data, len);
        curl.in.data += len;
        curl.in.size -= len;
        size_t used = (head & 1 ? curl.on_body : curl.on_header)(bytes, 1,
            len, curl.userp);
        free(bytes);
        if (used != len) {
            return CURLE_WRITE_ERROR;
        }
    }
    return CURLE_OK;
}

static const char *
easy_strerror(CURLcode code)
{
    (void) code;
    return "it broke off";
}

static struct curl_slist *
slist_append(struct curl_slist *list, const char *text)
{
    (void) list, (void) text;
    return NULL;                    /* requests have no headers here         */
}

static void
slist_free_all(struct curl_slist *list)
{
    check(list == NULL);
}

inf_err_t *
__wrap_inf_curl_open(const inf_curl_t **out)
{
    static const inf_curl_t fake = {
        .easy_init = easy_init, .easy_cleanup = easy_drop,
        .easy_reset = easy_drop, .easy_setopt = easy_setopt,
        .easy_getinfo = easy_getinfo, .easy_perform = easy_perform,
        .easy_strerror = easy_strerror, .slist_append = slist_append,
        .slist_free_all = slist_free_all
    };

    *out = &fake;
    return NULL;
}

static bool
take(void *userp, const char *data, size_t len)
{
    size_t *taken = userp;

    check(curl.status == 200 || curl.status == 206);
    for (size_t i = 0; i < len; i++) {
        *taken += data[i] != '\0';
    }
    return *taken <= TAKEN_MAX;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const _Atomic bool never = false;
    inf_object_http_t *http;
    inf_object_answer_t answer;
    size_t taken = 0;

    curl.in = (input_t) { data, size };
    uint64_t flags = input_next(&curl.in, 1);
    curl.status = (long) input_next(&curl.in, 2) % 1000;
    const inf_object_get_t what = {
        .scheme = "s3://", .url = "http://host/key", .cancelled = &never,
        .ranged = flags & 1, .take = take, .userp = &taken,
        .stored_coding = flags & 2 ? "x-goog-stored-content-encoding" : NULL
    };

    check(inf_object_http_open(&http) == NULL);
    inf_err_t *err = inf_object_http_get(http, &what, &answer);
    check(strlen(answer.etag) < sizeof(answer.etag)
        && strpbrk(answer.etag, "\" \r\n") == NULL);
    if (err != NULL) {
        check(strpbrk(inf_err_msg(err), "\r\n") == NULL);
        inf_err_free(err);
    } else {
        check(curl.status == (what.ranged ? 206 : 200)
            && taken <= TAKEN_MAX);
    }
    inf_object_http_close(http);
    return 0;
}
