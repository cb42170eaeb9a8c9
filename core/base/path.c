#include "core/base/path.h"

#include <stdlib.h>
#include <string.h>

char *
inf_path_join(const char *dir, const char *name)
{
    size_t dir_len = strlen(dir);
    size_t name_len = strlen(name);
    bool slash = dir_len > 0 && dir[dir_len - 1] == '/';

    char *path = malloc(dir_len + name_len + 2);
    if (path == NULL) {
        return NULL;
    }

    memcpy(path, dir, dir_len);
    if (!slash) {
        path[dir_len++] = '/';
    }

    memcpy(path + dir_len, name, name_len + 1);
    return path;
}

bool
inf_path_is_inner(const char *path)
{
    if (path[0] == '\0' || path[0] == '/') {
        return false;
    }

    for (const char *p = path; *p != '\0';) {
        size_t len = strcspn(p, "/");
        if (len == 2 && p[0] == '.' && p[1] == '.') {
            return false;
        }

        p += len;
        p += strspn(p, "/");
    }

    return true;
}

size_t
inf_path_len(const char *path)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/') {
        len--;
    }

    return len;
}
