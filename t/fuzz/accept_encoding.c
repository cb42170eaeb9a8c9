/*
 * accept_encoding.c - any value of Accept-Encoding: what is chosen is named
 *                     there.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/proto/accept_encoding.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
names(const char *text, const char *word)
{
    return strcasestr(text, word) != NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const words[] = {
        [INF_ENCODING_DEFLATE] = "deflate",
        [INF_ENCODING_GZIP] = "gzip"
    };
    char *exact = malloc(size != 0 ? size : 1);     /* its end is watched    */
    char *text = calloc(1, size + 1);

    if (exact == NULL || text == NULL) {
        abort();
    }

    memcpy(exact, data, size);
    memcpy(text, data, size);

    inf_encoding_t found = inf_accept_encoding(inf_slice(exact, size));

    if (found != INF_ENCODING_IDENTITY && memchr(text, '\0', size) == NULL
        && !names(text, words[found]))
    {
        abort();
    }

    free(exact);
    free(text);
    return 0;
}
