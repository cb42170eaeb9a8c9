#include "core/model/config_findings.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/proto/text_format.h"
#include "model_config.pb-c.h"

/* Limit of bytes read to find places: the text is read from its start for
   each. */
#define PLACING_BYTES ((size_t) 64 << 20)

static bool findings_reserve(inf_findings_t *f);

void
inf_findings_init(inf_findings_t *f)
{
    *f = (inf_findings_t) { NULL, 0, 0, 0, 0 };
}

void
inf_findings_fini(inf_findings_t *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->items[i].key);
        free(f->items[i].text);
    }

    free(f->items);
    inf_findings_init(f);
}

void
inf_findings_add(inf_findings_t *f, inf_err_code_t code, const char *key,
    const char *fmt, ...)
{
    if (f->count == INF_FINDINGS_MAX) {
        f->more++;
        return;
    }

    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    int len = vasprintf(&text, fmt, args);
    va_end(args);

    char *copy = strdup(key);
    if (len < 0 || copy == NULL || !findings_reserve(f)) {
        if (len >= 0) {
            free(text);
        }

        free(copy);
        f->lost++;
        return;
    }

    f->items[f->count++] = (inf_finding_t) { code, copy, text, 0, 0 };
}

size_t
inf_findings_total(const inf_findings_t *f)
{
    return f->count + f->more + f->lost;
}

void
inf_findings_place(inf_findings_t *f, inf_slice_t text, size_t most)
{
    size_t bound = 1 + PLACING_BYTES / (text.len + 1);

    most = most < bound ? most : bound;
    for (size_t i = 0; i < f->count && i < most; i++) {
        inf_finding_t *one = &f->items[i];
        inf_text_place_t place;

        inf_err_t *err = inf_text_locate(&inference__model_config__descriptor,
            text, inf_slice_str(one->key), &place);
        if (err != NULL) {
            inf_err_free(err);
            return;
        }

        one->line = place.line;
        one->column = place.column;
    }
}

inf_err_t *
inf_findings_error(const inf_findings_t *f, const char *origin)
{
    if (f->lost > 0) {
        return inf_err_nomem();         /* the first may be among the lost */
    }

    if (f->count == 0) {
        return NULL;
    }

    const inf_finding_t *first = &f->items[0];
    inf_err_t *err = inf_err_new(first->code, "%s", first->text);
    inf_buf_t place;

    inf_buf_init(&place);
    inf_buf_puts(&place, origin != NULL ? origin : "");
    if (origin != NULL && first->line > 0) {
        inf_buf_printf(&place, ":%zu:%zu", first->line, first->column);
    }
    inf_buf_printf(&place, "%s%s", place.len > 0 && first->key[0] != '\0'
        ? ": " : "", first->key);
    if (place.len > 0) {
        err = inf_err_note(err, "%s", place.data);
    }
    inf_buf_fini(&place);
    return err;
}

const char *
inf_key(char out[INF_KEY_MAX], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void) vsnprintf(out, INF_KEY_MAX, fmt, args);
    va_end(args);
    return out;
}

static bool
findings_reserve(inf_findings_t *f)
{
    if (f->count < f->capacity) {
        return true;
    }

    size_t capacity = f->capacity == 0 ? 8 : f->capacity * 2;
    inf_finding_t *items = realloc(f->items, capacity * sizeof(*items));
    if (items == NULL) {
        return false;
    }

    f->items = items;
    f->capacity = capacity;
    return true;
}
