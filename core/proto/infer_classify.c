/*
 * infer_classify.c - see infer_classify.h.
 *
 * For each row a heap keeps the k best elements, with the worst on top;
 * popping gives the order.  Then the texts are measured and written.  Values
 * are compared by keys: integers with the same order.
 */

#include <math.h>
#include <string.h>

#include "core/include/datatype.h"
#include "core/proto/infer_classify.h"
#include "core/proto/number.h"

#define VALUE_TEXT   340u       /* "%f" of the largest double, with room to
                                   spare                                     */
#define SCAN_COST    8u         /* budget bytes per element read             */
#define HEAP_COST    64u        /* budget bytes per move in the heap         */
#define TEXT_COST    128u

typedef enum {
    PHASE_SELECT,
    PHASE_SORT,
    PHASE_MEASURE,
    PHASE_WRITE,
    PHASE_DONE
} phase_t;

typedef struct {
    uint64_t key;
    uint32_t index;             /* in its row                                */
} candidate_t;

struct inf_classifier_s {
    inf_classify_source_t  src;
    inf_arena_t           *pool;
    int64_t                shape[2];
    uint32_t               dim_count;
    uint32_t               rows;
    uint32_t               row_len;     /* n                                 */
    uint32_t               kept;        /* min(k, n)                         */

    phase_t                phase;
    uint32_t               row;
    uint32_t               next;        /* element of the row, or of chosen  */
    candidate_t           *heap;
    uint32_t               heap_count;
    uint32_t              *chosen;      /* rows * kept indices, in order     */

    uint64_t               size;        /* of the result, computed in MEASURE */
    uint64_t               written;
    char                  *result;
};

static inf_err_t *check_source(const inf_classify_source_t *src,
    uint64_t *rows, uint64_t *row_len);
static void select_row(inf_classifier_t *c, size_t *budget);
static void sort_row(inf_classifier_t *c, size_t *budget);
static void measure_texts(inf_classifier_t *c, size_t *budget);
static inf_err_t *write_texts(inf_classifier_t *c, size_t *budget);
static inf_err_t *changed_meanwhile(const inf_classifier_t *c);
static inf_err_t *take_result(inf_classifier_t *c);
static uint64_t element_key(const inf_classifier_t *c, uint64_t at);
static uint64_t real_key(double v);
static bool worse(candidate_t a, candidate_t b);
static void heap_push(inf_classifier_t *c, candidate_t x);
static void heap_sink(inf_classifier_t *c, candidate_t x);
static size_t element_text(const inf_classifier_t *c, uint64_t at,
    char *text, inf_slice_t *label);
static inf_slice_t label_of(const inf_classifier_t *c, uint64_t at,
    uint32_t index);
static size_t value_text(const inf_classifier_t *c, uint64_t at, char *text);
static void spend(size_t *budget, size_t cost);

inf_err_t *
inf_classifier_new(inf_classifier_t **out, const inf_classify_source_t *src,
    inf_arena_t *pool)
{
    uint64_t rows = 0;
    uint64_t row_len = 0;
    inf_err_t *err = check_source(src, &rows, &row_len);

    if (err != NULL) {
        return err;
    }

    inf_classifier_t *c = inf_arena_calloc(pool, 1, sizeof(*c));
    if (c == NULL) {
        return inf_err_nomem();
    }

    c->src = *src;
    c->pool = pool;
    c->rows = (uint32_t) rows;
    c->row_len = (uint32_t) row_len;
    c->kept = src->k < c->row_len ? src->k : c->row_len;
    c->shape[0] = c->rows;
    c->shape[src->batched ? 1 : 0] = c->kept;
    c->dim_count = src->batched ? 2 : 1;

    c->heap = inf_arena_alloc(pool, (c->kept + 1u) * sizeof(*c->heap));
    c->chosen = inf_arena_alloc(pool, ((size_t) c->rows * c->kept + 1)
                                * sizeof(*c->chosen));
    if (c->heap == NULL || c->chosen == NULL) {
        return inf_err_nomem();
    }

    if (c->rows == 0 || c->kept == 0) {
        c->phase = PHASE_MEASURE;
    }

    *out = c;
    return NULL;
}

/* Checks src; a shape [] is one element, or none without data. */
static inf_err_t *
check_source(const inf_classify_source_t *src, uint64_t *rows,
    uint64_t *row_len)
{
    uint32_t size = inf_datatype_size(src->datatype);
    uint64_t total;

    if (size == 0 || src->datatype == INF_TYPE_BOOL
        || src->datatype == INF_TYPE_FP16 || src->datatype == INF_TYPE_BF16)
    {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "class result not available for output due to "
                           "unsupported type '%s' (output '%.*s')",
                           inf_datatype_name(src->datatype),
                           (int) src->name.len, src->name.data);
    }

    bool batched = src->batched && src->dim_count != 0;
    bool large = false;

    *rows = batched ? (uint64_t) src->shape[0] : 1;
    *row_len = src->dim_count != 0 || src->data_len != 0;
    for (uint32_t i = batched; i < src->dim_count; i++) {
        large |= __builtin_mul_overflow(*row_len, (uint64_t) src->shape[i],
                                        row_len);
    }

    large |= *rows > INF_CLASSIFY_MAX_ELEMENTS
             || *row_len > INF_CLASSIFY_MAX_ELEMENTS;
    total = large ? 0 : *rows * *row_len;

    if (large || total > INF_CLASSIFY_MAX_ELEMENTS) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "classification output tensor too large: output "
                           "'%.*s' has more than %u elements",
                           (int) src->name.len, src->name.data,
                           INF_CLASSIFY_MAX_ELEMENTS);
    }

    if (src->data_len / size < total) {
        return inf_err_new(INF_ERR_INTERNAL,
                           "output '%.*s' has less data than its shape says",
                           (int) src->name.len, src->name.data);
    }

    return NULL;
}

inf_codec_t
inf_classifier_run(inf_classifier_t *c, size_t budget, inf_err_t **err)
{
    inf_err_t *e = NULL;

    do {
        switch (c->phase) {
        case PHASE_SELECT:
            select_row(c, &budget);
            break;
        case PHASE_SORT:
            sort_row(c, &budget);
            break;
        case PHASE_MEASURE:
            measure_texts(c, &budget);
            e = c->phase == PHASE_WRITE ? take_result(c) : NULL;
            break;
        case PHASE_WRITE:
            e = write_texts(c, &budget);
            break;
        case PHASE_DONE:
            return INF_CODEC_DONE;
        }

    } while (budget != 0 && e == NULL);

    if (e != NULL) {
        *err = e;
        return INF_CODEC_ERROR;
    }

    return c->phase == PHASE_DONE ? INF_CODEC_DONE : INF_CODEC_AGAIN;
}

static void
select_row(inf_classifier_t *c, size_t *budget)
{
    uint64_t base = (uint64_t) c->row * c->row_len;

    do {
        candidate_t x = { element_key(c, base + c->next), c->next };
        size_t cost = SCAN_COST;

        if (c->heap_count < c->kept) {
            heap_push(c, x);
            cost += HEAP_COST;
        } else if (worse(c->heap[0], x)) {
            heap_sink(c, x);
            cost += HEAP_COST;
        }

        c->next++;
        spend(budget, cost);

    } while (c->next < c->row_len && *budget != 0);

    if (c->next == c->row_len) {
        c->phase = PHASE_SORT;
    }
}

/* Heap sort: moves the worst element to the end of the row's places. */
static void
sort_row(inf_classifier_t *c, size_t *budget)
{
    uint32_t *chosen = c->chosen + (size_t) c->row * c->kept;

    do {
        c->heap_count--;
        chosen[c->heap_count] = c->heap[0].index;
        if (c->heap_count != 0) {
            heap_sink(c, c->heap[c->heap_count]);
        }

        spend(budget, HEAP_COST);

    } while (c->heap_count != 0 && *budget != 0);

    if (c->heap_count == 0) {
        c->row++;
        c->next = 0;
        c->phase = c->row < c->rows ? PHASE_SELECT : PHASE_MEASURE;
    }
}

static void
measure_texts(inf_classifier_t *c, size_t *budget)
{
    char text[VALUE_TEXT];
    uint32_t total = c->rows * c->kept;

    while (c->next < total && *budget != 0) {
        inf_slice_t label;
        c->size += 4 + element_text(c, c->next, text, &label) + label.len;
        c->next++;
        spend(budget, TEXT_COST);
    }

    if (c->next == total) {
        c->next = 0;
        c->phase = PHASE_WRITE;
    }
}

static inf_err_t *
take_result(inf_classifier_t *c)
{
    c->result = inf_arena_alloc(c->pool, (size_t) c->size + 1);
    return c->result != NULL ? NULL : inf_err_nomem();
}

static inf_err_t *
write_texts(inf_classifier_t *c, size_t *budget)
{
    char text[VALUE_TEXT];
    uint32_t total = c->rows * c->kept;

    while (c->next < total && *budget != 0) {
        inf_slice_t label;
        size_t n = element_text(c, c->next, text, &label);
        uint32_t prefix = (uint32_t) (n + label.len);
        char *out = c->result + c->written;

        /* the values are in shared memory and may have changed */
        if (c->size - c->written < 4 + (uint64_t) prefix) {
            return changed_meanwhile(c);
        }

        memcpy(out, &prefix, 4);
        memcpy(out + 4, text, n);
        if (label.len != 0) {
            memcpy(out + 4 + n, label.data, label.len);
        }

        c->written += 4 + (uint64_t) prefix;
        c->next++;
        spend(budget, TEXT_COST);
    }

    if (c->next != total) {
        return NULL;
    }

    c->phase = PHASE_DONE;
    return c->written == c->size ? NULL : changed_meanwhile(c);
}

static inf_err_t *
changed_meanwhile(const inf_classifier_t *c)
{
    return inf_err_new(INF_ERR_INTERNAL,
                       "output '%.*s' changed while it was read",
                       (int) c->src.name.len, c->src.name.data);
}

uint32_t
inf_classifier_places(const inf_classifier_t *c)
{
    return c->rows * c->kept;
}

const uint32_t *
inf_classifier_select(inf_classifier_t *c)
{
    while (c->phase == PHASE_SELECT || c->phase == PHASE_SORT) {
        size_t budget = SIZE_MAX;

        if (c->phase == PHASE_SELECT) {
            select_row(c, &budget);
        } else {
            sort_row(c, &budget);
        }
    }

    return c->chosen;
}

uint32_t
inf_classifier_shape(const inf_classifier_t *c, const int64_t **shape)
{
    *shape = c->shape;
    return c->dim_count;
}

const void *
inf_classifier_result(const inf_classifier_t *c, uint64_t *len)
{
    *len = c->written;
    return c->result;
}

/* ---- order ---- */

static uint64_t
element_key(const inf_classifier_t *c, uint64_t at)
{
    static const uint64_t sign = UINT64_C(1) << 63;
    uint32_t type = c->src.datatype;
    uint32_t size = inf_datatype_size(type);
    const char *p = (const char *) c->src.data + at * size;
    uint64_t bits = 0;

    memcpy(&bits, p, size);

    switch (type) {
    case INF_TYPE_INT8:
        return (uint64_t) (int64_t) (int8_t) bits ^ sign;
    case INF_TYPE_INT16:
        return (uint64_t) (int64_t) (int16_t) bits ^ sign;
    case INF_TYPE_INT32:
        return (uint64_t) (int64_t) (int32_t) bits ^ sign;
    case INF_TYPE_INT64:
        return bits ^ sign;
    case INF_TYPE_FP32: {
        float f;
        memcpy(&f, p, sizeof(f));
        return real_key((double) f);
    }
    case INF_TYPE_FP64: {
        double d;
        memcpy(&d, p, sizeof(d));
        return real_key(d);
    }
    default:
        return bits;
    }
}

static uint64_t
real_key(double v)
{
    uint64_t bits;

    if (isnan(v)) {
        return 0;
    }

    v += 0.0;                               /* -0 is 0 */
    memcpy(&bits, &v, sizeof(bits));
    return bits >> 63 != 0 ? ~bits : bits | UINT64_C(1) << 63;
}

/* Whether a is worse than b; of equal keys the later index is worse. */
static bool
worse(candidate_t a, candidate_t b)
{
    return a.key != b.key ? a.key < b.key : a.index > b.index;
}

static void
heap_push(inf_classifier_t *c, candidate_t x)
{
    uint32_t i = c->heap_count++;

    while (i != 0 && worse(x, c->heap[(i - 1) / 2])) {
        c->heap[i] = c->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }

    c->heap[i] = x;
}

/* Replaces the worst element by x. */
static void
heap_sink(inf_classifier_t *c, candidate_t x)
{
    uint32_t i = 0;

    for ( ;; ) {
        uint32_t child = 2 * i + 1;
        if (child >= c->heap_count) {
            break;
        }

        if (child + 1 < c->heap_count
            && worse(c->heap[child + 1], c->heap[child]))
        {
            child++;
        }

        if (!worse(c->heap[child], x)) {
            break;
        }

        c->heap[i] = c->heap[child];
        i = child;
    }

    c->heap[i] = x;
}

/* ---- texts ---- */

/* Writes "value:index", or "value:index:" if a label follows; at is an index in
   chosen. */
static size_t
element_text(const inf_classifier_t *c, uint64_t at, char *text,
    inf_slice_t *label)
{
    uint32_t index = c->chosen[at];
    uint64_t row = at / c->kept;
    size_t n = value_text(c, row * c->row_len + index, text);

    text[n++] = ':';
    n += inf_number_write_uint64(text + n, index);

    *label = label_of(c, at, index);
    if (label->len != 0) {
        text[n++] = ':';
    }

    return n;
}

static inf_slice_t
label_of(const inf_classifier_t *c, uint64_t at, uint32_t index)
{
    uint32_t places = inf_classifier_places(c);
    bool ranked = c->src.ranked && c->src.label_count == places
        && places <= INF_CLASSIFY_RANKED_MAX;
    uint64_t i = ranked ? at : index;

    return i < c->src.label_count ? c->src.labels[i] : inf_slice("", 0);
}

static size_t
value_text(const inf_classifier_t *c, uint64_t at, char *text)
{
    static const uint64_t sign = UINT64_C(1) << 63;
    uint32_t type = c->src.datatype;
    const char *p = (const char *) c->src.data + at * inf_datatype_size(type);

    if (type == INF_TYPE_FP32) {
        float f;
        memcpy(&f, p, sizeof(f));
        return inf_number_write_fixed(text, (double) f);
    }

    if (type == INF_TYPE_FP64) {
        double d;
        memcpy(&d, p, sizeof(d));
        return inf_number_write_fixed(text, d);
    }

    uint64_t key = element_key(c, at);
    if (type >= INF_TYPE_INT8 && type <= INF_TYPE_INT64) {
        return inf_number_write_int64(text, (int64_t) (key ^ sign));
    }

    return inf_number_write_uint64(text, key);
}

static void
spend(size_t *budget, size_t cost)
{
    *budget -= cost < *budget ? cost : *budget;
}
