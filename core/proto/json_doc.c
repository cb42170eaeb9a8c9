#include "core/proto/json_doc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/buf.h"
#include "core/proto/message_number.h"

#define SLOT_SIZE    (128u * 1024u)     /* bytes of bump memory per thread   */
#define SLOT_COUNT   256u               /* threads that may have one         */
#define SLOT_ALIGN   16u
#ifdef INF_NOPOOL
#define SLOTS_WANTED false              /* each node is one malloc           */
#else
#define SLOTS_WANTED true
#endif
#define BIG_MARK     '\x01'             /* first byte of a kept big integer  */
#define INT64_DIGITS 18                 /* so many always fit                */

/* A thread keeps its slot; a document occupies it from parse to fini. */
struct inf_json_slot_s {
    char         *base;         /* set once                                  */
    size_t        used;         /* thread that parses, then nobody           */
    bool          spilled;      /* some nodes came from malloc               */
    _Atomic bool  owned;        /* by a thread                               */
    _Atomic bool  busy;         /* by a document; release on fini            */
};

static void slots_init(void);
static void slots_leave(void *slot);
static inf_json_slot_t *slot_own(void);
static void *json_alloc(size_t size);
static void json_release(void *p);
static bool big_find(inf_slice_t text, size_t *at, inf_slice_t *number);
static inf_err_t *big_quote(inf_slice_t text, inf_buf_t *out, bool *any);
static bool big_value(inf_slice_t s, uint64_t *out);
static size_t big_offset(inf_slice_t text, size_t offset);
static size_t string_skip(inf_slice_t text, size_t at);
static inf_err_t *parse_error(inf_slice_t text, const json_error_t *error,
    bool quoted);

static pthread_once_t    slots_once = PTHREAD_ONCE_INIT;
static pthread_key_t     slots_key;
static char             *slots_region;          /* NULL: no bump memory      */
static inf_json_slot_t   slots[SLOT_COUNT];

static _Thread_local inf_json_slot_t  *thread_slot;     /* its own           */
static _Thread_local inf_json_slot_t  *active_slot;     /* while it parses   */

void
inf_json_doc_init(void)
{
    pthread_once(&slots_once, slots_init);
}

inf_err_t *
inf_json_doc_parse(inf_json_doc_t *doc, inf_slice_t text, unsigned flags)
{
    json_error_t error;
    inf_buf_t quoted;
    bool any = false;

    inf_json_doc_init();
    *doc = (inf_json_doc_t) { 0 };
    inf_buf_init(&quoted);

    inf_slice_t source = text;
    if (flags & INF_JSON_DOC_BIG_INTEGERS) {
        inf_err_t *err = big_quote(text, &quoted, &any);
        if (err != NULL) {
            inf_buf_fini(&quoted);
            return err;
        }
        source = any ? inf_buf_slice(&quoted) : text;
    }

    size_t how = JSON_DECODE_ANY | JSON_ALLOW_NUL;
    how |= flags & INF_JSON_DOC_NO_DUPLICATES ? JSON_REJECT_DUPLICATES : 0;

    doc->slot = slot_own();
    active_slot = doc->slot;
    doc->root = json_loadb(source.len > 0 ? source.data : "", source.len, how,
        &error);
    active_slot = NULL;
    inf_buf_fini(&quoted);

    if (doc->root == NULL) {
        inf_json_doc_fini(doc);
        return parse_error(text, &error, any);
    }
    return NULL;
}

void
inf_json_doc_fini(inf_json_doc_t *doc)
{
    /* nodes that all lie in the slot need no walk */
    if (doc->root != NULL && (doc->slot == NULL || doc->slot->spilled)) {
        json_decref(doc->root);
    }
    if (doc->slot != NULL) {
        atomic_store_explicit(&doc->slot->busy, false, memory_order_release);
    }
    *doc = (inf_json_doc_t) { 0 };
}

bool
inf_json_doc_uint64(const json_t *v, uint64_t *out)
{
    if (json_is_integer(v)) {
        *out = (uint64_t) json_integer_value(v);
        return json_integer_value(v) >= 0;
    }

    return json_is_string(v) && big_value(inf_slice(json_string_value(v),
        json_string_length(v)), out);
}

bool
inf_json_doc_string(const json_t *v, inf_slice_t *out)
{
    if (!json_is_string(v)) {
        return false;
    }
    uint64_t big;
    *out = inf_slice(json_string_value(v), json_string_length(v));
    return !big_value(*out, &big);
}

/* One stretch of addresses for all slots tells ours from malloc's for any
   thread at any time; pages that nobody touches cost nothing. */
static void
slots_init(void)
{
    if (!SLOTS_WANTED) {
        return;
    }

    void *region = mmap(NULL, (size_t) SLOT_SIZE * SLOT_COUNT,
        PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
        -1, 0);
    if (region == MAP_FAILED || pthread_key_create(&slots_key, slots_leave)) {
        return;
    }

    slots_region = region;
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        slots[i].base = slots_region + i * SLOT_SIZE;
    }
    json_set_alloc_funcs(json_alloc, json_release);
}

/* The thread ends; a document that outlives it keeps the slot for good. */
static void
slots_leave(void *slot)
{
    inf_json_slot_t *s = slot;

    thread_slot = NULL;
    if (!atomic_load_explicit(&s->busy, memory_order_acquire)) {
        atomic_store_explicit(&s->owned, false, memory_order_release);
    }
}

/* The thread's slot, empty; NULL while another document has it. */
static inf_json_slot_t *
slot_own(void)
{
    for (size_t i = 0; thread_slot == NULL && slots_region != NULL
        && i < SLOT_COUNT; i++)
    {
        bool free_one = false;
        if (atomic_compare_exchange_strong(&slots[i].owned, &free_one, true)) {
            if (pthread_setspecific(slots_key, &slots[i]) != 0) {
                atomic_store(&slots[i].owned, false);
                return NULL;
            }
            thread_slot = &slots[i];
        }
    }

    inf_json_slot_t *s = thread_slot;
    if (s == NULL || atomic_exchange_explicit(&s->busy, true,
        memory_order_acquire))
    {
        return NULL;
    }
    s->used = 0;
    s->spilled = false;
    return s;
}

static void *
json_alloc(size_t size)
{
    inf_json_slot_t *s = active_slot;

    if (s == NULL) {
        return malloc(size);
    }
    if (size > SLOT_SIZE - s->used) {
        s->spilled = true;
        return malloc(size);
    }

    void *p = s->base + s->used;
    s->used += (size + SLOT_ALIGN - 1) & ~(size_t) (SLOT_ALIGN - 1);
    if (s->used > SLOT_SIZE) {
        s->used = SLOT_SIZE;
    }
    return p;
}

static void
json_release(void *p)
{
    uintptr_t at = (uintptr_t) p - (uintptr_t) slots_region;

    if (at >= (uintptr_t) SLOT_SIZE * SLOT_COUNT) {
        free(p);
    }
}

/*
 * jansson refuses integers beyond int64.  They are put in quotes with a mark
 * that no other string begins with by accident; the tree then has a string
 * where inf_json_doc_uint64 finds the number.
 */
static inf_err_t *
big_quote(inf_slice_t text, inf_buf_t *out, bool *any)
{
    size_t at = 0;
    size_t from = 0;
    inf_slice_t number;

    while (big_find(text, &at, &number)) {
        size_t start = (size_t) (number.data - text.data);
        inf_buf_put(out, text.data + from, start - from);
        inf_buf_puts(out, "\"\\u0001");
        inf_buf_put(out, number.data, number.len);
        inf_buf_putc(out, '"');
        from = at;
        *any = true;
    }
    if (*any) {
        inf_buf_put(out, text.data + from, text.len - from);
    }
    return inf_buf_status(out);
}

/* The next integer from *at on that only uint64 holds; moves *at past it. */
static bool
big_find(inf_slice_t text, size_t *at, inf_slice_t *number)
{
    size_t i = *at;

    while (i < text.len) {
        char c = text.data[i];

        if (c == '"') {
            i = string_skip(text, i);
            continue;
        }
        if ((c < '0' || c > '9') && c != '-' && c != '.') {
            i++;
            continue;
        }

        size_t start = i;
        bool digits = true;
        while (i < text.len && memchr("0123456789+-.eE", text.data[i], 15)) {
            digits = digits && text.data[i] >= '0' && text.data[i] <= '9';
            i++;
        }

        uint64_t v;
        *number = inf_slice(text.data + start, i - start);
        if (digits && number->len > INT64_DIGITS && number->data[0] != '0'
            && inf_number_parse_digits(*number, 10, &v) && v > INT64_MAX)
        {
            *at = i;
            return true;
        }
    }
    return false;
}

/* The number that big_quote has kept in a string. */
static bool
big_value(inf_slice_t s, uint64_t *out)
{
    return s.len > 1 && s.data[0] == BIG_MARK
        && inf_number_parse_digits(inf_slice(s.data + 1, s.len - 1), 10, out)
        && *out > INT64_MAX;
}

/* Where a byte of the quoted text stands in the text. */
static size_t
big_offset(inf_slice_t text, size_t offset)
{
    size_t at = 0;
    size_t added = 0;
    inf_slice_t number;

    while (big_find(text, &at, &number)) {
        size_t start = (size_t) (number.data - text.data);
        if (start + added >= offset) {
            break;
        }
        added += sizeof("\"\\u0001\"") - 1;
    }
    return offset > added ? offset - added : 0;
}

/* Past the string that begins at at. */
static size_t
string_skip(inf_slice_t text, size_t at)
{
    for (at++; at < text.len; at++) {
        if (text.data[at] == '\\') {
            at++;
        } else if (text.data[at] == '"') {
            return at + 1;
        }
    }
    return text.len;
}

static inf_err_t *
parse_error(inf_slice_t text, const json_error_t *error, bool quoted)
{
    if (json_error_code(error) == json_error_out_of_memory) {
        return inf_err_nomem();
    }

    size_t offset = error->position > 0 ? (size_t) error->position : 0;
    offset = quoted ? big_offset(text, offset) : offset;
    offset = offset < text.len ? offset : text.len;

    size_t line = 1;
    size_t start = 0;
    for (size_t i = 0; i < offset; i++) {
        if (text.data[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    return inf_err_new(INF_ERR_INVALID_ARG,
        "JSON: line %zu, column %zu (byte %zu): %s", line, offset - start + 1,
        offset, error->text);
}
