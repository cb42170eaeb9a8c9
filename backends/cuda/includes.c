/* includes.c - see includes.h */

#include "includes.h"

#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\v\f"

static bool text_is_known(const gpu_source_t *s, const char *text);
static bool joined_is_known(const gpu_source_t *s, const char *text);
static char *join_lines(const char *text);
static const char *next_directive(const char *p);
static const char *skip_blanks(const char *p);
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
    char *joined = join_lines(text);
    bool known = joined != NULL && joined_is_known(s, joined);

    free(joined);
    return known;
}

/* As the compiler does before it looks for words: a backslash at the end of a
   line, behind which it allows blanks, goes with that end. */
static char *
join_lines(const char *text)
{
    char *joined = malloc(strlen(text) + 1);
    size_t len = 0;

    for (const char *p = text; joined != NULL && *p != '\0'; p++) {
        const char *end = *p == '\\' ? p + 1 + strspn(p + 1, BLANKS "\r") : p;

        if (end != p && *end == '\n') {
            p = end;
        } else {
            joined[len++] = *p;
        }
    }
    if (joined != NULL) {
        joined[len] = '\0';
    }
    return joined;
}

static bool
joined_is_known(const gpu_source_t *s, const char *text)
{
    if (strstr(text, "__has_include") != NULL
        || strstr(text, "__has_embed") != NULL)
    {
        return false;
    }

    for (const char *p = text; (p = next_directive(p)) != NULL; ) {
        if (is_file_directive(p, &p) && !is_known(s, p)) {
            return false;
        }
    }
    return true;
}

/* Behind its sign, which has two spellings; NULL: there is none. */
static const char *
next_directive(const char *p)
{
    for (; *p != '\0'; p++) {
        if (*p == '#') {
            return p + 1;
        }
        if (p[0] == '%' && p[1] == ':') {
            return p + 2;
        }
    }
    return NULL;
}

/* And comments. */
static const char *
skip_blanks(const char *p)
{
    for (;;) {
        p += strspn(p, BLANKS);
        const char *end = strncmp(p, "/*", 2) == 0 ? strstr(p + 2, "*/")
            : NULL;
        if (end == NULL) {
            return p;
        }
        p = end + 2;
    }
}

static bool
is_file_directive(const char *p, const char **rest)
{
    static const char *const words[] = { "include", "import", "embed" };

    p = skip_blanks(p);
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
    p = skip_blanks(p);
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
