#include "core/proto/message_path.h"

#include <stdio.h>
#include <string.h>

#include "core/proto/message_utf8.h"

#define SHOWN_MAX 40

static void path_put(inf_path_t *p, const char *data, size_t len);

size_t
inf_path_push(inf_path_t *p, inf_slice_t name)
{
    size_t mark = p->len;

    char shown[INF_PATH_SHOWN];
    inf_path_show(shown, name);
    if (mark > 0) {
        path_put(p, ".", 1);
    }
    path_put(p, shown, strlen(shown));
    return mark;
}

size_t
inf_path_push_index(inf_path_t *p, size_t index)
{
    size_t mark = p->len;

    char text[32];
    int n = snprintf(text, sizeof(text), "[%zu]", index);
    path_put(p, text, (size_t) n);
    return mark;
}

size_t
inf_path_push_key(inf_path_t *p, inf_slice_t key)
{
    size_t mark = p->len;

    char shown[INF_PATH_SHOWN];
    inf_path_show(shown, key);
    path_put(p, "[\"", 2);
    path_put(p, shown, strlen(shown));
    path_put(p, "\"]", 2);
    return mark;
}

void
inf_path_pop(inf_path_t *p, size_t mark)
{
    p->len = mark;
    p->text[mark] = '\0';
}

const char *
inf_path_text(const inf_path_t *p)
{
    return p->text;
}

const char *
inf_path_colon(const inf_path_t *p)
{
    return p->len > 0 ? ": " : "";
}

const char *
inf_path_show(char *dst, inf_slice_t src)
{
    size_t n = src.len < SHOWN_MAX ? src.len : SHOWN_MAX;
    n = n == 0 ? 0 : inf_utf8_valid_prefix(inf_slice(src.data, n));

    /* a cut character is left out; an invalid first byte gives '?' */
    if (n == 0 && src.len > 0) {
        memcpy(dst, "?", 2);
        return dst;
    }

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char) src.data[i];
        dst[i] = c < 0x20 || c == 0x7f ? '?' : (char) c;
    }
    memcpy(dst + n, n < src.len ? "..." : "", n < src.len ? 4 : 1);
    return dst;
}

void
inf_path_position(inf_slice_t text, size_t at, size_t *line, size_t *column)
{
    size_t start = 0;

    *line = 1;
    for (size_t i = 0; i < at; i++) {
        if (text.data[i] == '\n') {
            (*line)++;
            start = i + 1;
        }
    }
    *column = at - start + 1;
}

static void
path_put(inf_path_t *p, const char *data, size_t len)
{
    size_t room = sizeof(p->text) - 1 - p->len;
    size_t n = len < room ? len : room;

    memcpy(p->text + p->len, data, n);
    p->len += n;
    p->text[p->len] = '\0';
}
