/* Any answer of a service of tokens: no crash; a token has only characters of
   a header's value, and its life has a bound. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BEARER "Bearer "

#include "core/storage/access_token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    inf_access_token_t t;

    inf_err_t *err = inf_access_token_parse(
        inf_slice((const char *) data, size), 1, &t);
    if (err != NULL) {
        inf_err_free(err);
        return 0;
    }

    const char *token = t.bearer + strlen(BEARER);
    if (strncmp(t.bearer, BEARER, strlen(BEARER)) != 0 || token[0] == '\0'
        || t.until_ns > 86400 * UINT64_C(1000000000))
    {
        abort();
    }
    for (const char *p = token; *p != '\0'; p++) {
        if (*p <= ' ' || *p > '~') {
            abort();
        }
    }
    inf_access_token_fini(&t);
    return 0;
}
