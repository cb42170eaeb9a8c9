/* xgboost_ubj.c - see xgboost_ubj.h */

#include "xgboost_ubj.h"

#include "xgboost_document.h"

/* Marks of the format, each in front of what it says. */
#define MARK_NOTHING 'N'                /* passed over in front of a value   */
#define MARK_TYPE    '$'                /* of all values of a container      */
#define MARK_COUNT   '#'                /* of them                           */

/* A container whose values are read. */
typedef struct {
    bool     object;                    /* a name in front of each value     */
    bool     counted;
    uint64_t left;                      /* where it is counted               */
    char     type;                      /* 0: each value has its own         */
} level_t;

typedef struct {
    const unsigned char *start;
    const unsigned char *at;
    const unsigned char *end;
    level_t              levels[XGBOOST_DEPTH_MOST];
    xgboost_document_t   document;      /* whose depth counts                */
} walk_t;

static bool values_fit(walk_t *w);
static bool next_value(walk_t *w, level_t *level, char *mark, bool *ends);
static bool pass_value(walk_t *w, char mark);
static bool open_level(walk_t *w, bool object);
static bool take_integer(walk_t *w, char mark, int64_t *number);
static bool take_count(walk_t *w, char mark, uint64_t *count);
static bool take_key(walk_t *w, char mark);
static bool take_text(walk_t *w, char mark, const char **text, size_t *len);
static bool take_mark(walk_t *w, char *mark);
static bool take_value_mark(walk_t *w, char *mark);
static bool pass_bytes(walk_t *w, uint64_t bytes);
static uint64_t bytes_left(const walk_t *w);

TRITONSERVER_Error *
trees_xgboost_ubj_check(const void *data, size_t len)
{
    const unsigned char *start = data;
    walk_t w = { .start = start, .at = start, .end = start + len };

    xgboost_document_init(&w.document, len);
    if (!values_fit(&w) && w.document.err == NULL) {
        w.document.err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "not"
            " UBJSON, or a part of it: no value at byte %zu",
            (size_t) (w.at - w.start));
    }
    xgboost_document_fini(&w.document);
    return w.document.err;
}

/* One value, with all that is in it. */
static bool
values_fit(walk_t *w)
{
    char mark;

    if (!take_value_mark(w, &mark) || !pass_value(w, mark)) {
        return false;
    }

    while (w->document.depth > 0) {
        level_t *level = &w->levels[w->document.depth - 1];
        bool ends = false;

        if (!next_value(w, level, &mark, &ends)) {
            return false;
        }
        if (ends ? !xgboost_document_close(&w->document)
            : !pass_value(w, mark))
        {
            return false;
        }
    }

    return true;
}

/* To where the value itself begins, if the container does not end before. */
static bool
next_value(walk_t *w, level_t *level, char *mark, bool *ends)
{
    if (level->counted) {
        *ends = level->left == 0;
        if (*ends) {
            return true;
        }
        level->left--;
        if (level->object && !(take_mark(w, mark) && take_key(w, *mark))) {
            return false;
        }
        if (level->type != 0) {
            *mark = level->type;
            return true;
        }
        return take_value_mark(w, mark);
    }

    if (!take_value_mark(w, mark)) {
        return false;
    }
    *ends = *mark == (level->object ? '}' : ']');
    return *ends || !level->object
        || (take_key(w, *mark) && take_value_mark(w, mark));
}

static bool
pass_value(walk_t *w, char mark)
{
    xgboost_document_t *d = &w->document;
    const char *text;
    size_t len;
    int64_t number;
    char next;

    switch (mark) {

    case 'Z':
    case 'T':
    case 'F':
        return xgboost_document_other(d);

    case 'i':
    case 'U':
    case 'I':
    case 'l':
    case 'L':
        return take_integer(w, mark, &number)
            && xgboost_document_integer(d, number);

    case 'd':
        return pass_bytes(w, 4) && xgboost_document_other(d);

    case 'D':
        return pass_bytes(w, 8) && xgboost_document_other(d);

    case 'C':
        text = (const char *) w->at;
        return pass_bytes(w, 1) && xgboost_document_text(d, text, 1);

    case 'S':
        return take_mark(w, &next) && take_text(w, next, &text, &len)
            && xgboost_document_text(d, text, len);

    case '[':
    case '{':
        return open_level(w, mark == '{');

    default:                            /* XGBoost writes no number in digits */
        return false;
    }
}

/* Behind a bracket are, perhaps, the type of all values and their count.  Of
 * values that take no bytes there could be any number. */
static bool
open_level(walk_t *w, bool object)
{
    level_t level = { .object = object };
    char mark;

    if (!xgboost_document_open(&w->document)
        || !take_value_mark(w, &mark))
    {
        return false;
    }
    if (mark == MARK_TYPE && (!take_mark(w, &level.type)
        || !take_value_mark(w, &mark) || mark != MARK_COUNT))
    {
        return false;
    }

    if (mark == MARK_COUNT) {
        level.counted = true;
        if (!take_value_mark(w, &mark) || !take_count(w, mark, &level.left)
            || level.left > bytes_left(w) || level.type == 'Z'
            || level.type == 'T' || level.type == 'F')
        {
            return false;
        }
        if (level.type == MARK_NOTHING && !object) {
            level.left = 0;             /* as the library has it             */
        }
    } else {
        w->at--;                        /* that of the first value           */
    }

    w->levels[w->document.depth - 1] = level;
    return true;
}

static bool
take_integer(walk_t *w, char mark, int64_t *number)
{
    size_t bytes = mark == 'i' || mark == 'U' ? 1 : mark == 'I' ? 2
        : mark == 'l' ? 4 : mark == 'L' ? 8 : 0;
    const unsigned char *from = w->at;

    if (bytes == 0 || !pass_bytes(w, bytes)) {
        return false;
    }

    uint64_t bits = mark != 'U' && from[0] >= 0x80 ? UINT64_MAX : 0;
    for (size_t i = 0; i < bytes; i++) {
        bits = bits << 8 | from[i];
    }
    *number = (int64_t) bits;
    return true;
}

static bool
take_count(walk_t *w, char mark, uint64_t *count)
{
    int64_t number = -1;

    if (!take_integer(w, mark, &number) || number < 0) {
        return false;
    }

    *count = (uint64_t) number;
    return true;
}

static bool
take_key(walk_t *w, char mark)
{
    const char *text;
    size_t len;

    return take_text(w, mark, &text, &len)
        && xgboost_document_key(&w->document, text, len);
}

static bool
take_text(walk_t *w, char mark, const char **text, size_t *len)
{
    uint64_t bytes;

    if (!take_count(w, mark, &bytes)) {
        return false;
    }

    *text = (const char *) w->at;
    *len = (size_t) bytes;
    return pass_bytes(w, bytes);
}

static bool
take_mark(walk_t *w, char *mark)
{
    const unsigned char *from = w->at;

    if (!pass_bytes(w, 1)) {
        return false;
    }

    *mark = (char) *from;
    return true;
}

static bool
take_value_mark(walk_t *w, char *mark)
{
    do {
        if (!take_mark(w, mark)) {
            return false;
        }
    } while (*mark == MARK_NOTHING);

    return true;
}

static bool
pass_bytes(walk_t *w, uint64_t bytes)
{
    if (bytes > bytes_left(w)) {
        return false;
    }

    w->at += bytes;
    return true;
}

static uint64_t
bytes_left(const walk_t *w)
{
    return (uint64_t) (w->end - w->at);
}
