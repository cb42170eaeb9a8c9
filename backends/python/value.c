/* value.c - see value.h */

#include "value.h"

#include <stdlib.h>
#include <string.h>

static uint8_t *space(py_writer_t *w, uint8_t tag, size_t len);
static void words(py_writer_t *w, uint8_t tag, const uint64_t *v,
    size_t count);
static bool expect(const py_reader_t *r, uint8_t tag, size_t len);
static uint64_t word_at(const uint8_t *at);
static bool skip(py_reader_t *r, unsigned depth);

void
py_writer_reset(py_writer_t *w)
{
    w->len = 0;
    w->failed = false;
}

void
py_writer_fini(py_writer_t *w)
{
    free(w->data);
    *w = (py_writer_t) { 0 };
}

void
py_write_none(py_writer_t *w)
{
    (void) space(w, PY_TAG_NONE, 0);
}

void
py_write_bool(py_writer_t *w, bool v)
{
    (void) space(w, v ? PY_TAG_TRUE : PY_TAG_FALSE, 0);
}

void
py_write_int(py_writer_t *w, int64_t v)
{
    uint64_t word = (uint64_t) v;

    words(w, PY_TAG_INT, &word, 1);
}

void
py_write_uint(py_writer_t *w, uint64_t v)
{
    words(w, v > INT64_MAX ? PY_TAG_UINT : PY_TAG_INT, &v, 1);
}

void
py_write_double(py_writer_t *w, double v)
{
    uint64_t word;

    memcpy(&word, &v, sizeof(word));
    words(w, PY_TAG_DOUBLE, &word, 1);
}

void
py_write_text(py_writer_t *w, const char *text, size_t len)
{
    uint32_t n = (uint32_t) len;

    if (len >= UINT32_MAX) {
        w->failed = true;
        return;
    }

    uint8_t *to = space(w, PY_TAG_TEXT, sizeof(n) + len + 1);
    if (to != NULL) {
        memcpy(to, &n, sizeof(n));
        memcpy(to + sizeof(n), text, len);
        to[sizeof(n) + len] = '\0';
    }
}

void
py_write_string(py_writer_t *w, const char *text)
{
    if (text == NULL) {
        py_write_none(w);
    } else {
        py_write_text(w, text, strlen(text));
    }
}

void
py_write_list(py_writer_t *w, uint32_t count)
{
    uint8_t *to = space(w, PY_TAG_LIST, sizeof(count));

    if (to != NULL) {
        memcpy(to, &count, sizeof(count));
    }
}

void
py_write_bytes(py_writer_t *w, const void *bytes, uint64_t len)
{
    uint8_t *to = py_write_space(w, len);

    if (to != NULL && len > 0) {
        memcpy(to, bytes, len);
    }
}

void
py_write_block(py_writer_t *w, uint64_t id, uint64_t offset, uint64_t len)
{
    words(w, PY_TAG_BLOCK, (uint64_t[]) { id, offset, len }, 3);
}

void
py_write_arena(py_writer_t *w, uint64_t arena, uint64_t offset, uint64_t len)
{
    words(w, PY_TAG_ARENA, (uint64_t[]) { arena, offset, len }, 3);
}

void
py_write_address(py_writer_t *w, uint64_t address, uint64_t len)
{
    words(w, PY_TAG_ADDRESS, (uint64_t[]) { address, len }, 2);
}

void
py_write_gpu(py_writer_t *w, const py_gpu_place_t *place)
{
    uint8_t *to = space(w, PY_TAG_GPU, sizeof(*place));

    if (to != NULL) {
        memcpy(to, place, sizeof(*place));
    }
}

void
py_write_value(py_writer_t *w, const py_writer_t *value)
{
    if (value->failed || value->len == 0) {
        w->failed = true;
        return;
    }

    uint8_t *to = space(w, value->data[0], value->len - 1);
    if (to != NULL) {
        memcpy(to, value->data + 1, value->len - 1);
    }
}

uint8_t *
py_write_space(py_writer_t *w, uint64_t len)
{
    if (len > SIZE_MAX / 2) {
        w->failed = true;
        return NULL;
    }

    uint8_t *to = space(w, PY_TAG_BYTES, sizeof(len) + len);
    if (to == NULL) {
        return NULL;
    }

    memcpy(to, &len, sizeof(len));
    return to + sizeof(len);
}

void
py_reader_init(py_reader_t *r, const void *data, size_t len)
{
    r->at = data;
    r->end = len > 0 ? r->at + len : r->at;     /* NULL has no offset        */
}

uint8_t
py_read_tag(const py_reader_t *r)
{
    return r->at < r->end ? *r->at : 0;
}

bool
py_read_none(py_reader_t *r)
{
    if (!expect(r, PY_TAG_NONE, 0)) {
        return false;
    }

    r->at++;
    return true;
}

bool
py_read_bool(py_reader_t *r, bool *v)
{
    uint8_t tag = py_read_tag(r);

    if (tag != PY_TAG_TRUE && tag != PY_TAG_FALSE) {
        return false;
    }

    *v = tag == PY_TAG_TRUE;
    r->at++;
    return true;
}

bool
py_read_int(py_reader_t *r, int64_t *v)
{
    if (!expect(r, PY_TAG_INT, 8)) {
        return false;
    }

    *v = (int64_t) word_at(r->at + 1);
    r->at += 9;
    return true;
}

bool
py_read_uint(py_reader_t *r, uint64_t *v)
{
    bool beyond = expect(r, PY_TAG_UINT, 8);

    if (!beyond && !expect(r, PY_TAG_INT, 8)) {
        return false;
    }

    *v = word_at(r->at + 1);
    if (!beyond && *v > INT64_MAX) {
        return false;
    }

    r->at += 9;
    return true;
}

bool
py_read_double(py_reader_t *r, double *v)
{
    int64_t whole;

    if (py_read_int(r, &whole)) {
        *v = (double) whole;
        return true;
    }

    if (!expect(r, PY_TAG_DOUBLE, 8)) {
        return false;
    }

    memcpy(v, r->at + 1, sizeof(*v));
    r->at += 9;
    return true;
}

bool
py_read_text(py_reader_t *r, const char **text, uint32_t *len)
{
    uint32_t n;

    if (!expect(r, PY_TAG_TEXT, sizeof(n) + 1)) {
        return false;
    }

    memcpy(&n, r->at + 1, sizeof(n));
    if ((size_t) (r->end - r->at) - 1 - sizeof(n) <= n) {
        return false;
    }

    const char *s = (const char *) r->at + 1 + sizeof(n);
    if (s[n] != '\0' || memchr(s, '\0', n) != NULL) {
        return false;
    }

    *text = s;
    if (len != NULL) {
        *len = n;
    }
    r->at += 1 + sizeof(n) + n + 1;
    return true;
}

bool
py_read_optional(py_reader_t *r, const char **text)
{
    if (py_read_none(r)) {
        *text = NULL;
        return true;
    }

    return py_read_text(r, text, NULL);
}

bool
py_read_list(py_reader_t *r, uint32_t *count)
{
    uint32_t n;

    if (!expect(r, PY_TAG_LIST, sizeof(n))) {
        return false;
    }

    memcpy(&n, r->at + 1, sizeof(n));
    if (n > (size_t) (r->end - r->at) - 1 - sizeof(n)) {
        return false;
    }

    *count = n;
    r->at += 1 + sizeof(n);
    return true;
}

bool
py_read_list_of(py_reader_t *r, uint32_t count)
{
    py_reader_t copy = *r;
    uint32_t n;

    if (!py_read_list(&copy, &n) || n != count) {
        return false;
    }

    *r = copy;
    return true;
}

bool
py_read_data(py_reader_t *r, py_data_t *data)
{
    if (expect(r, PY_TAG_ADDRESS, 16)) {
        *data = (py_data_t) {
            .tag = PY_TAG_ADDRESS, .place = word_at(r->at + 1),
            .length = word_at(r->at + 9)
        };
        r->at += 17;
        return true;
    }

    if (expect(r, PY_TAG_BLOCK, 24)) {
        *data = (py_data_t) {
            .tag = PY_TAG_BLOCK, .id = word_at(r->at + 1),
            .place = word_at(r->at + 9), .length = word_at(r->at + 17)
        };
        r->at += 25;
        return true;
    }

    py_gpu_place_t place;
    if (py_read_gpu(r, &place)) {
        *data = (py_data_t) {
            .tag = PY_TAG_GPU, .id = place.piece, .length = place.length
        };
        return true;
    }

    if (!expect(r, PY_TAG_BYTES, 8)) {
        return false;
    }

    uint64_t len = word_at(r->at + 1);
    if (len > (size_t) (r->end - r->at) - 9) {
        return false;
    }

    *data = (py_data_t) {
        .tag = PY_TAG_BYTES, .bytes = r->at + 9, .length = len
    };
    r->at += 9 + len;
    return true;
}

bool
py_read_gpu(py_reader_t *r, py_gpu_place_t *place)
{
    if (!expect(r, PY_TAG_GPU, sizeof(*place))) {
        return false;
    }

    memcpy(place, r->at + 1, sizeof(*place));
    r->at += 1 + sizeof(*place);
    return true;
}

bool
py_read_skip(py_reader_t *r)
{
    py_reader_t copy = *r;

    if (!skip(&copy, 0)) {
        return false;
    }

    *r = copy;
    return true;
}

static bool
skip(py_reader_t *r, unsigned depth)
{
    py_data_t data;
    const char *text;
    uint32_t count;
    bool flag;

    if (py_read_list(r, &count)) {
        if (depth == PY_DEPTH_MAX) {
            return false;
        }
        for (uint32_t i = 0; i < count; i++) {
            if (!skip(r, depth + 1)) {
                return false;
            }
        }
        return true;
    }

    if (expect(r, PY_TAG_INT, 8) || expect(r, PY_TAG_UINT, 8)
        || expect(r, PY_TAG_DOUBLE, 8))
    {
        r->at += 9;
        return true;
    }

    if (expect(r, PY_TAG_ARENA, 24)) {
        r->at += 25;
        return true;
    }

    return py_read_none(r) || py_read_bool(r, &flag)
        || py_read_text(r, &text, NULL) || py_read_data(r, &data);
}

/* Makes room for a tag and len bytes; returns the place of the bytes. */
static uint8_t *
space(py_writer_t *w, uint8_t tag, size_t len)
{
    if (w->failed || len > SIZE_MAX / 2 - w->len - 1) {
        w->failed = true;
        return NULL;
    }

    size_t need = w->len + len + 1;
    if (need > w->capacity) {
        size_t capacity = w->capacity < 512 ? 512 : w->capacity;
        while (capacity < need) {
            capacity *= 2;
        }

        uint8_t *wider = realloc(w->data, capacity);
        if (wider == NULL) {
            w->failed = true;
            return NULL;
        }
        w->data = wider;
        w->capacity = capacity;
    }

    w->data[w->len] = tag;
    uint8_t *to = w->data + w->len + 1;
    w->len = need;
    return to;
}

static void
words(py_writer_t *w, uint8_t tag, const uint64_t *v, size_t count)
{
    uint8_t *to = space(w, tag, count * sizeof(*v));

    if (to != NULL) {
        memcpy(to, v, count * sizeof(*v));
    }
}

/* Whether a value with that tag and at least len bytes follows. */
static bool
expect(const py_reader_t *r, uint8_t tag, size_t len)
{
    return py_read_tag(r) == tag && (size_t) (r->end - r->at) - 1 >= len;
}

static uint64_t
word_at(const uint8_t *at)
{
    uint64_t v;

    memcpy(&v, at, sizeof(v));
    return v;
}
