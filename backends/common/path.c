/* path.c - see path.h */

#include "path.h"

#include <string.h>

bool
bk_path_is_inner(const char *path, size_t len)
{
    if (len == 0 || path[0] == '/' || memchr(path, '\0', len) != NULL) {
        return false;
    }

    const char *end = path + len;
    for (const char *p = path; p < end;) {
        const char *slash = memchr(p, '/', (size_t) (end - p));
        size_t n = (size_t) ((slash != NULL ? slash : end) - p);
        if ((n == 2 && memcmp(p, "..", 2) == 0) || (n == 1 && p[0] == '*')) {
            return false;
        }
        p += n + (slash != NULL);
    }

    return true;
}
