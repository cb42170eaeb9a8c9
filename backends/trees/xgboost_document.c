/* xgboost_document.c - see xgboost_document.h */

#include "xgboost_document.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAF        (-1)                /* a left child                      */
#define CATEGORICAL 1                   /* a split_type                      */

/* The parts of a model that matter here; all else is passed over. */
enum {
    PASSED_OVER, TOP, LEARNER, LEARNER_PARAM, BOOSTER, MODEL, TREES, TREE,
    TREE_PARAM, TREE_INFO, FIELD,
    CLASSES, TARGETS, BASE_SCORE, NODES, LEAF_VALUES    /* texts             */
};

static const struct {
    uint8_t     in;
    const char *key;
    uint8_t     place;
} places[] = {
    { TOP, "learner", LEARNER },
    { TOP, "Model", TOP },              /* of a checkpoint                   */
    { LEARNER, "learner_model_param", LEARNER_PARAM },
    { LEARNER, "gradient_booster", BOOSTER },
    { LEARNER_PARAM, "num_class", CLASSES },
    { LEARNER_PARAM, "num_target", TARGETS },
    { LEARNER_PARAM, "base_score", BASE_SCORE },
    { BOOSTER, "gbtree", BOOSTER },     /* in the booster "dart"             */
    { BOOSTER, "model", MODEL },
    { MODEL, "trees", TREES },
    { MODEL, "tree_info", TREE_INFO },
    { TREE, "tree_param", TREE_PARAM },
    { TREE_PARAM, "num_nodes", NODES },
    { TREE_PARAM, "size_leaf_vector", LEAF_VALUES }
};

static const char *const field_names[XGBOOST_FIELD_COUNT] = {
#define NAME(field, name) name,
    XGBOOST_TREE_FIELDS(NAME)
#undef NAME
};

static bool fault(xgboost_document_t *d, const char *field, const char *fmt,
    ...) BK_PRINTF(3, 4);
static bool begin_tree(xgboost_document_t *d);
static bool begin_field(xgboost_document_t *d, uint8_t field);
static bool key_is(const char *key, size_t len, const char *name);
static bool scalar(xgboost_document_t *d, int64_t number, bool whole);
static bool keep(xgboost_document_t *d, xgboost_level_t *level,
    int64_t number);
static bool take_number(xgboost_document_t *d, const char *field,
    const char *text, size_t len, int64_t *number);
static size_t count_of(const char *text, size_t len, char c);
static bool tree_fits(xgboost_document_t *d);
static bool lengths_fit(xgboost_document_t *d);
static bool node_fits(xgboost_document_t *d, int64_t node);
static bool categories_fit(xgboost_document_t *d);
static bool learner_fits(xgboost_document_t *d);

void
xgboost_document_init(xgboost_document_t *d, size_t len)
{
    *d = (xgboost_document_t) { .len = len, .targets = 1 };
}

void
xgboost_document_fini(xgboost_document_t *d)
{
    for (int i = 0; i < XGBOOST_FIELD_COUNT; i++) {
        free(d->fields[i].kept);
    }
}

bool
xgboost_document_open(xgboost_document_t *d)
{
    xgboost_level_t *in = d->depth == 0 ? NULL : &d->levels[d->depth - 1];
    xgboost_level_t level = { .place = TOP };

    if (d->depth == XGBOOST_DEPTH_MOST) {
        d->err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "nested deeper than %d levels", XGBOOST_DEPTH_MOST);
        return false;
    }

    if (in != NULL) {
        level.place = in->place == TREES ? TREE : in->next;
        level.field = in->field;
        in->next = PASSED_OVER;
    }
    d->levels[d->depth++] = level;

    switch (level.place) {

    case MODEL:
        return d->models++ == 0 || fault(d, "model", "is there twice");

    case TREE:
        return begin_tree(d);

    case FIELD:
        return begin_field(d, level.field);

    default:
        return true;
    }
}

/* Trees and learner are checked when all of them has been read. */
bool
xgboost_document_close(xgboost_document_t *d)
{
    uint8_t place = d->levels[--d->depth].place;

    if (place == TREE) {
        return tree_fits(d);
    }

    return place != LEARNER || learner_fits(d);
}

bool
xgboost_document_key(xgboost_document_t *d, const char *key, size_t len)
{
    xgboost_level_t *level = &d->levels[d->depth - 1];

    level->next = PASSED_OVER;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        if (places[i].in == level->place && key_is(key, len, places[i].key)) {
            level->next = places[i].place;
        }
    }
    for (uint8_t i = 0; level->place == TREE && i < XGBOOST_FIELD_COUNT; i++)
    {
        if (key_is(key, len, field_names[i])) {
            level->next = FIELD;
            level->field = i;
        }
    }

    return true;
}

bool
xgboost_document_text(xgboost_document_t *d, const char *text, size_t len)
{
    xgboost_level_t *in = d->depth == 0 ? NULL : &d->levels[d->depth - 1];
    uint8_t place = in == NULL ? PASSED_OVER : in->next;

    if (in != NULL) {
        in->next = PASSED_OVER;
    }

    switch (place) {

    case CLASSES:
        return take_number(d, "num_class", text, len, NULL);

    case TARGETS:
        return take_number(d, "num_target", text, len, &d->targets);

    case NODES:
        return take_number(d, "num_nodes", text, len, &d->nodes);

    case LEAF_VALUES:
        return take_number(d, "size_leaf_vector", text, len,
            &d->leaf_values);

    case BASE_SCORE:
        return count_of(text, len, '[') < 2
            || fault(d, "base_score", "is a list of lists");

    default:
        return scalar(d, 0, false);
    }
}

bool
xgboost_document_integer(xgboost_document_t *d, int64_t number)
{
    return scalar(d, number, true);
}

bool
xgboost_document_other(xgboost_document_t *d)
{
    return scalar(d, 0, false);
}

static bool
fault(xgboost_document_t *d, const char *field, const char *fmt, ...)
{
    char words[120] = "";
    va_list args;

    va_start(args, fmt);
    (void) vsnprintf(words, sizeof(words), fmt, args);
    va_end(args);
    d->err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "\"%s\" %s", field,
        words);
    return false;
}

static bool
begin_tree(xgboost_document_t *d)
{
    for (int i = 0; i < XGBOOST_FIELD_COUNT; i++) {
        d->fields[i].seen = false;
        d->fields[i].count = 0;
    }
    d->nodes = 0;
    d->leaf_values = 0;
    return true;
}

static bool
begin_field(xgboost_document_t *d, uint8_t field)
{
    if (d->fields[field].seen) {
        return fault(d, field_names[field], "is there twice in tree %zu",
            d->trees);
    }

    d->fields[field].seen = true;
    return true;
}

static bool
key_is(const char *key, size_t len, const char *name)
{
    return strlen(name) == len && memcmp(key, name, len) == 0;
}

/* A value of an array that is counted. */
static bool
scalar(xgboost_document_t *d, int64_t number, bool whole)
{
    xgboost_level_t *level = d->depth == 0 ? NULL : &d->levels[d->depth - 1];

    if (level == NULL) {
        return true;
    }
    if (level->place == TREE_INFO) {
        d->tree_infos++;
        return true;
    }
    if (level->place != FIELD) {
        return true;
    }
    if (level->field < XGBOOST_KEPT_COUNT) {
        return whole ? keep(d, level, number)
            : fault(d, field_names[level->field], "of tree %zu has a value"
                " that is no whole number of 64 bits", d->trees);
    }

    d->fields[level->field].count++;
    return true;
}

static bool
keep(xgboost_document_t *d, xgboost_level_t *level, int64_t number)
{
    xgboost_field_t *f = &d->fields[level->field];

    if (number < INT32_MIN || number > INT32_MAX) {
        return fault(d, field_names[level->field], "of tree %zu has %" PRId64
            " in it", d->trees, number);
    }

    if (f->count == f->cap) {
        size_t cap = f->cap * 2 + 64;
        int32_t *kept = realloc(f->kept, cap * sizeof(*kept));

        if (kept == NULL) {
            d->err = bk_err_nomem("a tree");
            return false;
        }
        f->kept = kept;
        f->cap = cap;
    }

    f->kept[f->count++] = (int32_t) number;
    return true;
}

/* In digits; no count is more than the file has bytes, and the library makes
 * room for as many.  number: NULL, if nothing else is asked of it. */
static bool
take_number(xgboost_document_t *d, const char *field, const char *text,
    size_t len, int64_t *number)
{
    int64_t most = d->len < INT32_MAX ? (int64_t) d->len : INT32_MAX;
    int64_t n = len == 0 ? most + 1 : 0;

    for (size_t i = 0; i < len && n <= most; i++) {
        n = text[i] < '0' || text[i] > '9' ? most + 1
            : n * 10 + (text[i] - '0');
    }
    if (n > most) {
        return fault(d, field, "is no number up to %" PRId64, most);
    }

    if (number != NULL) {
        *number = n;
    }
    return true;
}

/* The text of a list has a parser of its own in the library, which calls
 * itself for each level. */
static size_t
count_of(const char *text, size_t len, char c)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++) {
        count += text[i] == c;
    }

    return count;
}

static bool
tree_fits(xgboost_document_t *d)
{
    bool fits = lengths_fit(d) && categories_fit(d);

    for (int64_t i = 0; fits && i < d->nodes; i++) {
        fits = node_fits(d, i);
    }
    if (!fits) {
        d->err = bk_err_add(d->err, "tree %zu", d->trees);
    }

    d->trees++;
    return fits;
}

static bool
lengths_fit(xgboost_document_t *d)
{
    for (int i = 0; i < XGBOOST_FIELD_COUNT; i++) {
        bool of_nodes = i != XGBOOST_VECTORS
            && (i < XGBOOST_CATEGORIES || i > XGBOOST_CATEGORY_COUNTS);
        bool optional = i == XGBOOST_KINDS || i == XGBOOST_GAINS
            || i == XGBOOST_HESSIANS;
        size_t count = d->fields[i].count;

        if (of_nodes && count < (uint64_t) d->nodes
            && !(optional && count == 0))
        {
            return fault(d, field_names[i], "has %zu elements for %" PRId64
                " nodes", count, d->nodes);
        }
    }

    return true;
}

/* Of a leaf with a vector, the right child is its number. */
static bool
node_fits(xgboost_document_t *d, int64_t node)
{
    int32_t left = d->fields[XGBOOST_LEFT].kept[node];
    int32_t right = d->fields[XGBOOST_RIGHT].kept[node];

    if (left != LEAF && (left < 0 || left >= d->nodes)) {
        return fault(d, field_names[XGBOOST_LEFT], "of node %" PRId64 " is %"
            PRId32 ", there are %" PRId64 " nodes", node, left, d->nodes);
    }
    if (left != LEAF && (right < 0 || right >= d->nodes)) {
        return fault(d, field_names[XGBOOST_RIGHT], "of node %" PRId64 " is %"
            PRId32 ", there are %" PRId64 " nodes", node, right, d->nodes);
    }
    if (left == LEAF && d->leaf_values > 1 && (right < 0 || (uint64_t) right
        >= d->fields[XGBOOST_VECTORS].count / (uint64_t) d->leaf_values))
    {
        return fault(d, field_names[XGBOOST_VECTORS], "has %zu elements, too"
            " few for leaf %" PRId32, d->fields[XGBOOST_VECTORS].count, right);
    }

    return true;
}

/* The nodes rise, and their lists lie one behind the other. */
static bool
categories_fit(xgboost_document_t *d)
{
    const xgboost_field_t *nodes = &d->fields[XGBOOST_CATEGORY_NODES];
    const xgboost_field_t *begins = &d->fields[XGBOOST_CATEGORY_BEGINS];
    const xgboost_field_t *counts = &d->fields[XGBOOST_CATEGORY_COUNTS];
    size_t categories = d->fields[XGBOOST_CATEGORIES].count;
    int64_t node = -1, end = 0;

    if (begins->count != nodes->count || counts->count != nodes->count) {
        return fault(d, field_names[begins->count != nodes->count
            ? XGBOOST_CATEGORY_BEGINS : XGBOOST_CATEGORY_COUNTS],
            "has not as many elements as \"%s\", %zu",
            field_names[XGBOOST_CATEGORY_NODES], nodes->count);
    }

    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes->kept[i] <= node || nodes->kept[i] >= d->nodes) {
            return fault(d, field_names[XGBOOST_CATEGORY_NODES], "has %" PRId32
                " behind %" PRId64 ", there are %" PRId64 " nodes",
                nodes->kept[i], node, d->nodes);
        }
        if (begins->kept[i] < end
            || (uint64_t) begins->kept[i] > categories)
        {
            return fault(d, field_names[XGBOOST_CATEGORY_BEGINS], "has %"
                PRId32 " behind %" PRId64 ", of %zu categories",
                begins->kept[i], end, categories);
        }
        if (counts->kept[i] < 0 || (uint64_t) begins->kept[i]
            + (uint64_t) counts->kept[i] > categories)
        {
            return fault(d, field_names[XGBOOST_CATEGORY_COUNTS], "has %" PRId32
                " from %" PRId32 " on, of %zu categories", counts->kept[i],
                begins->kept[i], categories);
        }
        node = nodes->kept[i];
        end = (int64_t) begins->kept[i] + counts->kept[i];
    }

    return true;
}

static bool
learner_fits(xgboost_document_t *d)
{
    if (d->targets < 1) {
        return fault(d, "num_target", "is 0");
    }

    return d->tree_infos >= d->trees || fault(d, "tree_info", "has %zu"
        " elements for %zu trees", d->tree_infos, d->trees);
}
