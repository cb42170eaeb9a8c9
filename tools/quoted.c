#include "quoted.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
write_path(FILE *f, const char *path)
{
    char full[PATH_MAX];
    char where[2 * PATH_MAX];

    if (path[0] != '/' && strstr(path, "://") == NULL) {
        if (realpath(path, full) != NULL) {
            path = full;

        } else if (getcwd(full, sizeof(full)) != NULL) {    /* not there yet */
            snprintf(where, sizeof(where), "%s/%s", full, path);
            path = where;
        }
    }

    write_word(f, path);
}

void
write_word(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            fputc('\\', f);
        }
        fputc(*text, f);
    }
    fputc('"', f);
}
