/* includes.c - see includes.h */

#include "includes.h"

#include <string.h>

static bool text_is_known(const gpu_source_t *s, const char *text);
static bool is_file_directive(const char *p, const char **rest);
static bool is_known(const gpu_source_t *s, const char *p);

bool
gpu_includes_are_known(const gpu_source_t *s)
{
    bool known = text_is_known(s, s->text);

    for (int i = 0; known && i < s->header_count; i++) {
        known = text_is_known(s, s->headers[i]);
    }
    return known;
}

static bool
text_is_known(const gpu_source_t *s, const char *text)
{
    if (strstr(text, "__has_include") != NULL
        || strstr(text, "__has_embed") != NULL)
    {
        return false;
    }

    for (const char *p = text; (p = strchr(p, '#')) != NULL; ) {
        p++;
        if (is_file_directive(p, &p) && !is_known(s, p)) {
            return false;
        }
    }
    return true;
}

/* p is behind the #. */
static bool
is_file_directive(const char *p, const char **rest)
{
    static const char *const words[] = { "include", "import", "embed" };

    p += strspn(p, " \t");
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t len = strlen(words[i]);
        if (strncmp(p, words[i], len) == 0) {
            *rest = p + len;
            return true;
        }
    }
    return false;
}

static bool
is_known(const gpu_source_t *s, const char *p)
{
    p += strspn(p, " \t");
    if (*p != '"' && *p != '<') {
        return false;
    }

    char end = *p == '"' ? '"' : '>';
    p++;
    for (int i = 0; i < s->header_count; i++) {
        size_t len = strlen(s->header_names[i]);
        if (strncmp(p, s->header_names[i], len) == 0 && p[len] == end) {
            return true;
        }
    }
    return false;
}
