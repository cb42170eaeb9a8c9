#include "quoted.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_quoted(FILE *f, const char *before, const char *text,
    size_t len);
static void write_escaped(FILE *f, const char *text, size_t len);

void
write_path(FILE *f, const char *path)
{
    write_path_after(f, "", path);
}

void
write_path_after(FILE *f, const char *before, const char *path)
{
    char full[PATH_MAX];
    char where[2 * PATH_MAX];

    if (path[0] != '/' && strstr(path, "://") == NULL) {
        if (realpath(path, full) != NULL) {
            path = full;

        } else if (getcwd(full, sizeof(full)) != NULL) {    /* does not exist
                                                               yet           */
            snprintf(where, sizeof(where), "%s/%s", full, path);
            path = where;
        }
    }

    write_word_after(f, before, path);
}

void
write_word(FILE *f, const char *text)
{
    write_word_after(f, "", text);
}

void
write_word_after(FILE *f, const char *before, const char *text)
{
    write_quoted(f, before, text, strlen(text));
}

void
write_part(FILE *f, const char *text, size_t len)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.,:=/*";

    if (len == 0 || strspn(text, plain) < len) {
        write_quoted(f, "", text, len);

    } else {
        fwrite(text, 1, len, f);
    }
}

static void
write_quoted(FILE *f, const char *before, const char *text, size_t len)
{
    fputc('"', f);
    write_escaped(f, before, strlen(before));
    write_escaped(f, text, len);
    fputc('"', f);
}

static void
write_escaped(FILE *f, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"' || text[i] == '\\') {
            fputc('\\', f);
        }
        fputc(text[i], f);
    }
}
