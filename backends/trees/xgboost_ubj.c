/* xgboost_ubj.c - see xgboost_ubj.h */

#include "xgboost_ubj.h"

#define DEPTH_MOST 200                  /* a model has about ten levels      */

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
    level_t              levels[DEPTH_MOST];
    size_t               depth;
    bool                 too_deep;
} walk_t;

static bool values_fit(walk_t *w);
static bool next_value(walk_t *w, level_t *level, char *mark, bool *ends);
static bool pass_value(walk_t *w, char mark);
static bool open_level(walk_t *w, bool object);
static bool take_count(walk_t *w, char mark, uint64_t *count);
static bool take_text(walk_t *w, char mark);
static bool take_mark(walk_t *w, char *mark);
static bool take_value_mark(walk_t *w, char *mark);
static bool pass_bytes(walk_t *w, uint64_t bytes);
static uint64_t bytes_left(const walk_t *w);

TRITONSERVER_Error *
trees_xgboost_ubj_check(const void *data, size_t len)
{
    const unsigned char *start = data;
    walk_t w = { .start = start, .at = start, .end = start + len };

    if (values_fit(&w)) {
        return NULL;
    }

    return w.too_deep ? bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "nested deeper than %d levels", DEPTH_MOST)
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "not UBJSON, or a part"
        " of it: no value at byte %zu", (size_t) (w.at - w.start));
}

/* One value, with all that is in it. */
static bool
values_fit(walk_t *w)
{
    char mark;

    if (!take_value_mark(w, &mark) || !pass_value(w, mark)) {
        return false;
    }

    while (w->depth > 0) {
        bool ends = false;

        if (!next_value(w, &w->levels[w->depth - 1], &mark, &ends)) {
            return false;
        }
        if (ends) {
            w->depth--;
        } else if (!pass_value(w, mark)) {
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
        if (level->object && !(take_mark(w, mark) && take_text(w, *mark))) {
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
        || (take_text(w, *mark) && take_value_mark(w, mark));
}

static bool
pass_value(walk_t *w, char mark)
{
    uint64_t count;
    char next;

    switch (mark) {

    case 'Z':
    case 'T':
    case 'F':
        return true;

    case 'i':
    case 'U':
    case 'C':
        return pass_bytes(w, 1);

    case 'I':
        return pass_bytes(w, 2);

    case 'l':
    case 'd':
        return pass_bytes(w, 4);

    case 'L':
    case 'D':
        return pass_bytes(w, 8);

    case 'S':
        return take_mark(w, &next) && take_text(w, next);

    case 'H':                           /* a number in digits                */
        return take_value_mark(w, &next) && take_count(w, next, &count)
            && pass_bytes(w, count);

    case '[':
    case '{':
        return open_level(w, mark == '{');

    default:
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

    if (w->depth == DEPTH_MOST) {
        w->too_deep = true;
        return false;
    }

    if (!take_value_mark(w, &mark)) {
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

    w->levels[w->depth++] = level;
    return true;
}

/* A whole number that is not negative. */
static bool
take_count(walk_t *w, char mark, uint64_t *count)
{
    size_t bytes = mark == 'i' || mark == 'U' ? 1 : mark == 'I' ? 2
        : mark == 'l' ? 4 : mark == 'L' ? 8 : 0;
    const unsigned char *from = w->at;

    if (bytes == 0 || !pass_bytes(w, bytes)
        || (mark != 'U' && from[0] >= 0x80))
    {
        return false;
    }

    *count = 0;
    for (size_t i = 0; i < bytes; i++) {
        *count = *count << 8 | from[i];
    }
    return true;
}

static bool
take_text(walk_t *w, char mark)
{
    uint64_t len;

    return take_count(w, mark, &len) && pass_bytes(w, len);
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
