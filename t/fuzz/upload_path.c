/* Any path of a file that comes with a load request, and any content: where
   the path leads stays inside, and decides whether the file is code however
   the path is written.  The first NUL ends the path. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/repository/code_upload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* No segment of a place inside is empty or a step. */
static void
check_inner(const char *path)
{
    for (const char *p = path; *p != '\0'; p += strspn(p, "/")) {
        size_t len = strcspn(p, "/");
        if (len == 0 || (len == 1 && p[0] == '.')
            || (len == 2 && p[0] == '.' && p[1] == '.'))
        {
            abort();
        }
        p += len;
        if (p[0] == '/' && p[1] == '/') {
            abort();
        }
    }
}

static bool
is_code(const char *path, const uint8_t *content, size_t len)
{
    return inf_code_upload_is_code(path, (const char *) content, len) != NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t path_len = strnlen((const char *) data, size);
    size_t rest = path_len < size ? path_len + 1 : size;
    char *path = strndup((const char *) data, path_len);
    char *inner = strdup(path);
    char *longer;

    bool code = is_code(path, data + rest, size - rest);
    if (inf_override_normalize(inner)) {
        check_inner(inner);
        if (code != is_code(inner, data + rest, size - rest)) {
            abort();
        }
        if (asprintf(&longer, "x//../%s", path) < 0
            || code != is_code(longer, data + rest, size - rest))
        {
            abort();
        }
        free(longer);
    }

    free(inner);
    free(path);
    return 0;
}
