/* lightgbm.c - see lightgbm.h */

#include "lightgbm.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MOST 10                  /* of an int32                       */

/* Of a decision_type. */
#define IS_CATEGORICAL 0x1
#define DEFAULT_LEFT 0x2
#define MISSING_MASK 0xc
#define MISSING_ZERO 0x4

/* Fields of a tree that treelite follows; of a field that is there twice the
 * last one counts. */
enum {
    LEAVES, CATEGORICALS, VALUES, TYPES, THRESHOLDS, LEFT, RIGHT, BOUNDARIES,
    BITS, FIELD_COUNT
};

static const char *const names[FIELD_COUNT] = {
    "num_leaves", "num_cat", "leaf_value", "decision_type", "threshold",
    "left_child", "right_child", "cat_boundaries", "cat_threshold"
};

/* The fault of a test that treelite has another answer to. */
static const char zero_fault[] = "zero_as_missing";

typedef struct {
    const char *at;                     /* NULL: it is not there             */
    size_t      len;
} words_t;

typedef struct {
    words_t fields[FIELD_COUNT];
    int64_t leaves;
    int64_t categoricals;               /* nodes whose test is a category    */
} lgb_tree_t;

static bool has(const void *data, size_t len, const char *line);
static const char *lines_fault(const char *at, const char *end,
    uint64_t *trees);
static const char *header_fault(words_t key, words_t value, size_t len);
static const char *tree_fault(lgb_tree_t *t);
static const char *children_fault(const lgb_tree_t *t);
static const char *child_fault(const lgb_tree_t *t, int field,
    unsigned char *seen);
static const char *tests_fault(const lgb_tree_t *t);
static bool moves_zero(int64_t type, words_t threshold);
static bool boundaries_rise(const lgb_tree_t *t);
static words_t next_line(const char **at, const char *end);
static bool is(words_t text, const char *word);
static bool next_number(words_t *list, int64_t *number);
static words_t next_word(words_t *list);
static int64_t word_count(words_t list);

TRITONSERVER_Error *
trees_lightgbm_check(const void *data, size_t len)
{
    const char *start = data;
    uint64_t trees = 0;

    /* the first versions wrote no end mark, but something behind it */
    if (!has(data, len, "\nend of trees")
        && !has(data, len, "\nfeature importances:"))
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "not a text of"
            " LightGBM, or it ends before the end of its trees");
    }

    const char *fault = lines_fault(start, start + len, &trees);
    if (fault == NULL) {
        return NULL;
    }

    if (fault == zero_fault) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "tree %" PRIu64
            " takes zeros for missing values (zero_as_missing), which"
            " treelite does not", trees - 1);
    }

    return trees == 0 ? bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "\"%s\" in front of the trees is wrong", fault)
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "tree %" PRIu64 ": \"%s\""
        " is missing, too short or leads out of the tree", trees - 1, fault);
}

static bool
has(const void *data, size_t len, const char *line)
{
    return memmem(data, len, line, strlen(line)) != NULL;
}

/* The name of the field that is wrong, or NULL; trees: how many have begun.
 * All lines behind a tree's first are its own, up to the next tree's. */
static const char *
lines_fault(const char *at, const char *end, uint64_t *trees)
{
    const size_t len = (size_t) (end - at);
    const char *fault = NULL;
    lgb_tree_t tree = { 0 };

    while (fault == NULL && at < end) {
        words_t value = next_line(&at, end);
        words_t key = value;
        const char *sign = memchr(value.at, '=', value.len);

        if (sign != NULL) {
            key.len = (size_t) (sign - key.at);
            value.at = sign + 1;
            value.len -= key.len + 1;
        } else {
            value.len = 0;
        }

        if (is(key, "Tree")) {
            fault = *trees == 0 ? NULL : tree_fault(&tree);
            if (fault == NULL) {
                tree = (lgb_tree_t) { 0 };
                (*trees)++;
            }
        } else if (*trees == 0) {
            fault = header_fault(key, value, len);
        }
        for (int i = 0; *trees != 0 && i < FIELD_COUNT; i++) {
            if (is(key, names[i])) {
                tree.fields[i] = value;
            }
        }
    }

    return fault != NULL || *trees == 0 ? fault : tree_fault(&tree);
}

/* There is a tree for each class. */
static const char *
header_fault(words_t key, words_t value, size_t len)
{
    int64_t number = 0;

    if (is(key, "objective")) {
        return value.len == 0 ? "objective" : NULL;
    }

    return !is(key, "num_class") || (next_number(&value, &number)
        && number >= 1 && (uint64_t) number <= len) ? NULL : "num_class";
}

static const char *
tree_fault(lgb_tree_t *t)
{
    words_t leaves = t->fields[LEAVES];
    words_t categoricals = t->fields[CATEGORICALS];

    if (!next_number(&leaves, &t->leaves) || t->leaves < 1) {
        return names[LEAVES];
    }
    if (!next_number(&categoricals, &t->categoricals)
        || t->categoricals < 0)
    {
        return names[CATEGORICALS];
    }
    if (word_count(t->fields[VALUES]) < t->leaves) {
        return names[VALUES];
    }

    const char *fault = t->leaves == 1 ? NULL : children_fault(t);

    return fault != NULL ? fault : tests_fault(t);
}

/* The first node is the root. */
static const char *
children_fault(const lgb_tree_t *t)
{
    unsigned char *seen = calloc((size_t) t->leaves, 1);
    if (seen == NULL) {
        return names[LEFT];
    }

    seen[0] = 1;
    const char *fault = child_fault(t, LEFT, seen);
    if (fault == NULL) {
        fault = child_fault(t, RIGHT, seen);
    }

    free(seen);
    return fault;
}

/* Leaves are numbered -1, -2 and on; nodes have one parent at most. */
static const char *
child_fault(const lgb_tree_t *t, int field, unsigned char *seen)
{
    words_t list = t->fields[field];

    for (int64_t i = 0; i < t->leaves - 1; i++) {
        int64_t child;

        if (!next_number(&list, &child) || child < -t->leaves
            || child >= t->leaves - 1 || (child >= 0 && seen[child] != 0))
        {
            return names[field];
        }
        if (child >= 0) {
            seen[child] = 1;
        }
    }

    return NULL;
}

/* The threshold of a node that tests a category is the number of its list. */
static const char *
tests_fault(const lgb_tree_t *t)
{
    words_t types = t->fields[TYPES];
    words_t thresholds = t->fields[THRESHOLDS];

    if (t->categoricals > 0 && !boundaries_rise(t)) {
        return names[BOUNDARIES];
    }

    for (int64_t i = 0; types.at != NULL && i < t->leaves - 1; i++) {
        words_t threshold = next_word(&thresholds);
        int64_t type, list;

        if (!next_number(&types, &type)) {
            return names[TYPES];
        }
        if ((type & IS_CATEGORICAL) == 0 && moves_zero(type, threshold)) {
            return zero_fault;
        }
        if ((type & IS_CATEGORICAL) != 0 && (!next_number(&threshold, &list)
            || list < 0 || list >= t->categoricals))
        {
            return names[THRESHOLDS];
        }
    }

    return NULL;
}

/* Zeros and missing values go another way than zero by the threshold, by which
   treelite sends both. */
static bool
moves_zero(int64_t type, words_t threshold)
{
    bool left = (type & DEFAULT_LEFT) != 0;
    bool negative = threshold.len > 0 && threshold.at[0] == '-';

    return (type & MISSING_MASK) == MISSING_ZERO && left == negative;
}

static bool
boundaries_rise(const lgb_tree_t *t)
{
    int64_t most = word_count(t->fields[BITS]);
    words_t list = t->fields[BOUNDARIES];
    int64_t before = 0;

    for (int64_t i = 0; i <= t->categoricals; i++) {
        int64_t next;

        if (!next_number(&list, &next) || next < before || next > most) {
            return false;
        }
        before = next;
    }

    return true;
}

/* Without blanks at its end. */
static words_t
next_line(const char **at, const char *end)
{
    const char *stop = memchr(*at, '\n', (size_t) (end - *at));
    words_t line = { .at = *at };

    stop = stop == NULL ? end : stop;
    *at = stop == end ? end : stop + 1;
    while (stop > line.at && strchr(" \t\r\v\f", stop[-1]) != NULL
        && stop[-1] != '\0')
    {
        stop--;
    }

    line.len = (size_t) (stop - line.at);
    return line;
}

static bool
is(words_t text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.at, word, text.len) == 0;
}

/* Digits, perhaps with a minus. */
static bool
next_number(words_t *list, int64_t *number)
{
    words_t word = next_word(list);
    bool negative = word.len > 0 && word.at[0] == '-';
    size_t i = negative ? 1 : 0;
    int64_t n = 0;

    if (word.len == i || word.len - i > DIGITS_MOST) {
        return false;
    }
    for (; i < word.len; i++) {
        if (word.at[i] < '0' || word.at[i] > '9') {
            return false;
        }
        n = n * 10 + (word.at[i] - '0');
    }

    *number = negative ? -n : n;
    return n <= INT32_MAX;
}

/* Empty where there is none. */
static words_t
next_word(words_t *list)
{
    words_t word = *list;

    if (list->len == 0) {
        return (words_t) { 0 };
    }

    const char *blank = memchr(list->at, ' ', list->len);
    word.len = blank == NULL ? list->len : (size_t) (blank - list->at);
    list->at += word.len;
    list->len -= word.len;
    if (blank != NULL) {
        list->at++;
        list->len--;
    }

    return word;
}

static int64_t
word_count(words_t list)
{
    int64_t count = 0;

    while (list.len > 0) {
        (void) next_word(&list);
        count++;
    }

    return count;
}
