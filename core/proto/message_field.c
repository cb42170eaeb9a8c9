#include "core/proto/message_field.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/near_name.h"
#include "core/proto/message.h"

/* Any element of an array or singular value; {0} zeroes all of it because the
   largest member is first. */
typedef union {
    ProtobufCBinaryData   bytes;
    int32_t               i32;
    uint32_t              u32;
    int64_t               i64;
    uint64_t              u64;
    float                 f;
    double                d;
    protobuf_c_boolean    b;
    int                   e;
    char                 *s;
    ProtobufCMessage     *m;
} field_cell_t;

/* A map entry in the search for duplicates. */
typedef struct {
    ProtobufCMessage                *entry;
    const ProtobufCFieldDescriptor  *key;
    size_t                           at;
} map_slot_t;

static size_t field_size(ProtobufCType type);
static void *field_at(const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, size_t i);
static int *field_case(const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static size_t *field_quantity(const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static bool field_is_default(const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static bool field_has_flag(const ProtobufCFieldDescriptor *f);
static bool message_is_same(const ProtobufCMessage *a,
    const ProtobufCMessage *b);
static void swap_bytes(void *a, void *b, size_t len);
static inf_scalar_t cell_read(const void *p, ProtobufCType type);
static inf_err_t *cell_make(field_cell_t *cell,
    const ProtobufCFieldDescriptor *f, inf_scalar_t v);
static inf_err_t *copy_string(char **out, const ProtobufCFieldDescriptor *f,
    inf_slice_t s);
static inf_err_t *copy_bytes(ProtobufCBinaryData *out, inf_slice_t s);
static void cell_free(void *p, const ProtobufCFieldDescriptor *f);
static inf_err_t *field_grow(ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *field_place(ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, const field_cell_t *cell);
static bool map_name_matches(const char *entry, const char *field);
static inf_err_t *map_fold(ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *map_fill_value(ProtobufCMessage *entry);
static int map_compare(const void *a, const void *b);
static int map_compare_key(const map_slot_t *a, const map_slot_t *b);

const ProtobufCFieldDescriptor *
inf_field_find(const ProtobufCMessageDescriptor *desc, inf_slice_t name)
{
    size_t low = 0;
    size_t high = desc->n_fields;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const ProtobufCFieldDescriptor *f =
            &desc->fields[desc->fields_sorted_by_name[mid]];

        size_t len = strlen(f->name);
        int order = memcmp(f->name, name.data,
            len < name.len ? len : name.len);
        if (order == 0 && len == name.len) {
            return f;
        }
        if (order < 0 || (order == 0 && len < name.len)) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return NULL;
}

const char *
inf_field_suggest(const ProtobufCMessageDescriptor *desc, inf_slice_t name)
{
    inf_near_name_t near;

    inf_near_name_init(&near, name);
    for (unsigned i = 0; i < desc->n_fields; i++) {
        inf_near_name_offer(&near, desc->fields[i].name);
    }
    return near.best;
}

size_t
inf_field_index(const ProtobufCMessageDescriptor *desc,
    const ProtobufCFieldDescriptor *f)
{
    return (size_t) (f - desc->fields);
}

/* Recognizes a map by the compiler's naming rule; descriptors have no map
   flag. */
bool
inf_field_is_map(const ProtobufCFieldDescriptor *f)
{
    if (f->label != PROTOBUF_C_LABEL_REPEATED
        || f->type != PROTOBUF_C_TYPE_MESSAGE)
    {
        return false;
    }

    const ProtobufCMessageDescriptor *entry = f->descriptor;
    return entry->n_fields == 2 && entry->fields[0].id == 1
        && entry->fields[1].id == 2
        && strcmp(entry->fields[0].name, "key") == 0
        && strcmp(entry->fields[1].name, "value") == 0
        && map_name_matches(entry->short_name, f->name);
}

const ProtobufCFieldDescriptor *
inf_field_oneof_set(const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f)
{
    uint32_t id = (uint32_t) *field_case(m, f);

    return id == 0 ? NULL
        : protobuf_c_message_descriptor_get_field(m->descriptor, id);
}

size_t
inf_field_count(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    if (inf_field_is_repeated(f)) {
        return *field_quantity(m, f);
    }
    if (inf_field_is_oneof(f)) {
        return (uint32_t) *field_case(m, f) == f->id ? 1 : 0;
    }
    if (field_has_flag(f)) {
        return *field_case(m, f) != 0 ? 1 : 0;
    }
    return field_is_default(m, f) ? 0 : 1;
}

inf_scalar_t
inf_field_get(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
    size_t i)
{
    return cell_read(field_at(m, f, i), f->type);
}

inf_err_t *
inf_field_put(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
    inf_scalar_t v)
{
    field_cell_t cell;

    inf_err_t *err = cell_make(&cell, f, v);
    if (err != NULL) {
        return err;
    }

    err = field_place(m, f, &cell);
    if (err != NULL) {
        cell_free(&cell, f);
    }
    return err;
}

inf_err_t *
inf_field_put_message(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
    ProtobufCMessage **child)
{
    field_cell_t cell = { 0 };

    inf_err_t *err = inf_message_new(f->descriptor, &cell.m);
    if (err != NULL) {
        return err;
    }

    err = field_place(m, f, &cell);
    if (err != NULL) {
        inf_message_free(cell.m);
        return err;
    }

    *child = cell.m;
    return NULL;
}

void
inf_field_clear(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    if (inf_field_is_repeated(f)) {
        size_t n = *field_quantity(m, f);
        for (size_t i = 0; i < n; i++) {
            cell_free(field_at(m, f, i), f);
        }

        void **array = (void **) ((char *) m + f->offset);
        free(*array);
        *array = NULL;
        *field_quantity(m, f) = 0;
        return;
    }

    if (inf_field_is_oneof(f)) {
        if ((uint32_t) *field_case(m, f) != f->id) {
            return;
        }
        cell_free(field_at(m, f, 0), f);
        *field_case(m, f) = 0;
        memset(field_at(m, f, 0), 0, field_size(f->type));
        return;
    }

    if (field_has_flag(f)) {
        *field_case(m, f) = 0;
    }
    cell_free(field_at(m, f, 0), f);
    memset(field_at(m, f, 0), 0, field_size(f->type));
    if (f->type == PROTOBUF_C_TYPE_STRING) {
        *(const void **) field_at(m, f, 0) = f->default_value;
    } else if (f->default_value != NULL) {
        memcpy(field_at(m, f, 0), f->default_value, field_size(f->type));
    }
}

bool
inf_field_same(const ProtobufCMessage *a, const ProtobufCMessage *b,
    const ProtobufCFieldDescriptor *f)
{
    size_t n = inf_field_is_repeated(f) ? inf_field_count(a, f) : 1;
    if (inf_field_is_repeated(f) && inf_field_count(b, f) != n) {
        return false;
    }

    for (size_t i = 0; i < n; i++) {
        inf_scalar_t x = inf_field_get(a, f, i);
        inf_scalar_t y = inf_field_get(b, f, i);
        bool same = f->type == PROTOBUF_C_TYPE_MESSAGE
            ? message_is_same(x.m, y.m)
            : f->type == PROTOBUF_C_TYPE_STRING
                || f->type == PROTOBUF_C_TYPE_BYTES
            ? inf_slice_eq(x.s, y.s) : memcmp(&x, &y, sizeof(x)) == 0;
        if (!same) {
            return false;
        }
    }
    return true;
}

static bool
message_is_same(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }

    for (unsigned i = 0; i < a->descriptor->n_fields; i++) {
        if (!inf_field_same(a, b, &a->descriptor->fields[i])) {
            return false;
        }
    }
    return true;
}

void
inf_field_swap(ProtobufCMessage *a, ProtobufCMessage *b,
    const ProtobufCFieldDescriptor *f)
{
    if (inf_field_is_repeated(f)) {
        swap_bytes((char *) a + f->offset, (char *) b + f->offset,
            sizeof(void *));
        swap_bytes(field_quantity(a, f), field_quantity(b, f), sizeof(size_t));
        return;
    }

    if (field_has_flag(f)) {
        swap_bytes(field_case(a, f), field_case(b, f), sizeof(int));
    }
    swap_bytes(field_at(a, f, 0), field_at(b, f, 0), field_size(f->type));
}

static void
swap_bytes(void *a, void *b, size_t len)
{
    unsigned char *x = a;
    unsigned char *y = b;

    for (size_t i = 0; i < len; i++) {
        unsigned char byte = x[i];
        x[i] = y[i];
        y[i] = byte;
    }
}

void
inf_message_mark_set(ProtobufCMessage *m)
{
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];

        if (field_has_flag(f)) {
            *field_case(m, f) = !field_is_default(m, f);
        }
        if (f->type != PROTOBUF_C_TYPE_MESSAGE) {
            continue;
        }
        size_t n = inf_field_count(m, f);
        for (size_t k = 0; k < n; k++) {
            inf_message_mark_set(*(ProtobufCMessage **) field_at(m, f, k));
        }
    }
}

inf_err_t *
inf_message_fold_maps(ProtobufCMessage *m)
{
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];

        if (f->type != PROTOBUF_C_TYPE_MESSAGE) {
            continue;
        }
        if (inf_field_is_map(f)) {
            inf_err_t *err = map_fold(m, f);
            if (err != NULL) {
                return err;
            }
        }

        size_t n = inf_field_count(m, f);
        for (size_t k = 0; k < n; k++) {
            inf_err_t *err = inf_message_fold_maps(
                *(ProtobufCMessage **) field_at(m, f, k));
            if (err != NULL) {
                return err;
            }
        }
    }
    return NULL;
}

static size_t
field_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_ENUM:
        return 4;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    }
    return 0;
}

static void *
field_at(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
    size_t i)
{
    char *place = (char *) m + f->offset;

    if (!inf_field_is_repeated(f)) {
        return place;
    }
    return *(char **) place + i * field_size(f->type);
}

/* The has_ flag or the oneof's case; both are ints. */
static int *
field_case(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    return (int *) ((char *) m + f->quantifier_offset);
}

static size_t *
field_quantity(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    return (size_t *) ((char *) m + f->quantifier_offset);
}

static bool
field_has_flag(const ProtobufCFieldDescriptor *f)
{
    return f->label == PROTOBUF_C_LABEL_OPTIONAL && !inf_field_is_oneof(f)
        && f->type != PROTOBUF_C_TYPE_STRING
        && f->type != PROTOBUF_C_TYPE_MESSAGE;
}

static bool
field_is_default(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    const void *place = field_at(m, f, 0);

    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        return *(void *const *) place == NULL;
    }
    if (f->type == PROTOBUF_C_TYPE_STRING) {
        const char *s = *(const char *const *) place;
        return s == NULL || s == f->default_value
            || strcmp(s, f->default_value != NULL ? f->default_value : "") == 0;
    }
    if (f->type == PROTOBUF_C_TYPE_BYTES) {
        return ((const ProtobufCBinaryData *) place)->len == 0;
    }

    static const field_cell_t zero;
    return memcmp(place, f->default_value != NULL ? f->default_value : &zero,
        field_size(f->type)) == 0;
}

static inf_scalar_t
cell_read(const void *p, ProtobufCType type)
{
    inf_scalar_t v = { 0 };

    switch (type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        v.i = *(const int32_t *) p;
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        v.i = *(const int64_t *) p;
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        v.u = *(const uint32_t *) p;
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        v.u = *(const uint64_t *) p;
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        v.d = (double) *(const float *) p;
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        v.d = *(const double *) p;
        break;
    case PROTOBUF_C_TYPE_BOOL:
        v.b = *(const protobuf_c_boolean *) p != 0;
        break;
    case PROTOBUF_C_TYPE_ENUM:
        v.e = *(const int *) p;
        break;
    case PROTOBUF_C_TYPE_STRING:
        v.s = inf_slice_str(*(const char *const *) p);
        if (v.s.data == NULL) {
            v.s.data = "";
        }
        break;
    case PROTOBUF_C_TYPE_BYTES:
        v.s = inf_slice((const char *) ((const ProtobufCBinaryData *) p)->data,
            ((const ProtobufCBinaryData *) p)->len);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        v.m = *(ProtobufCMessage *const *) p;
        break;
    }
    return v;
}

static inf_err_t *
cell_make(field_cell_t *cell, const ProtobufCFieldDescriptor *f,
    inf_scalar_t v)
{
    *cell = (field_cell_t) { 0 };

    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        cell->i32 = (int32_t) v.i;
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        cell->i64 = v.i;
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        cell->u32 = (uint32_t) v.u;
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        cell->u64 = v.u;
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        cell->f = (float) v.d;
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        cell->d = v.d;
        break;
    case PROTOBUF_C_TYPE_BOOL:
        cell->b = v.b;
        break;
    case PROTOBUF_C_TYPE_ENUM:
        cell->e = v.e;
        break;
    case PROTOBUF_C_TYPE_STRING:
        return copy_string(&cell->s, f, v.s);
    case PROTOBUF_C_TYPE_BYTES:
        return copy_bytes(&cell->bytes, v.s);
    case PROTOBUF_C_TYPE_MESSAGE:
        return inf_message_clone(v.m, &cell->m);
    }
    return NULL;
}

static inf_err_t *
copy_string(char **out, const ProtobufCFieldDescriptor *f, inf_slice_t s)
{
    if (s.len > 0 && memchr(s.data, '\0', s.len) != NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "the string holds a NUL byte, which \"%s\" cannot", f->name);
    }

    *out = malloc(s.len + 1);
    if (*out == NULL) {
        return inf_err_nomem();
    }

    if (s.len > 0) {
        memcpy(*out, s.data, s.len);
    }
    (*out)[s.len] = '\0';
    return NULL;
}

static inf_err_t *
copy_bytes(ProtobufCBinaryData *out, inf_slice_t s)
{
    if (s.len == 0) {
        return NULL;
    }

    out->data = malloc(s.len);
    if (out->data == NULL) {
        return inf_err_nomem();
    }

    memcpy(out->data, s.data, s.len);
    out->len = s.len;
    return NULL;
}

static void
cell_free(void *p, const ProtobufCFieldDescriptor *f)
{
    if (f->type == PROTOBUF_C_TYPE_STRING) {
        char *s = *(char **) p;
        if (s != f->default_value && s != protobuf_c_empty_string) {
            free(s);
        }
        return;
    }

    if (f->type == PROTOBUF_C_TYPE_BYTES) {
        const ProtobufCBinaryData *preset = f->default_value;
        uint8_t *data = ((ProtobufCBinaryData *) p)->data;
        if (preset == NULL || data != preset->data) {
            free(data);
        }
        return;
    }

    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        inf_message_free(*(ProtobufCMessage **) p);
    }
}

/* Makes room for one element.  Arrays double; since one from unpack has no
   spare room, the allocated size is queried. */
static inf_err_t *
field_grow(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    void **array = (void **) ((char *) m + f->offset);
    size_t n = *field_quantity(m, f);
    size_t size = field_size(f->type);

    if (*array != NULL && malloc_usable_size(*array) / size > n) {
        return NULL;
    }

    size_t cap = n < 4 ? 4 : n * 2;
    if (cap > SIZE_MAX / size) {
        return inf_err_nomem();
    }

    void *bigger = realloc(*array, cap * size);
    if (bigger == NULL) {
        return inf_err_nomem();
    }
    *array = bigger;
    return NULL;
}

/* Stores the cell; on success m owns it. */
static inf_err_t *
field_place(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
    const field_cell_t *cell)
{
    if (inf_field_is_repeated(f)) {
        inf_err_t *err = field_grow(m, f);
        if (err != NULL) {
            return err;
        }
        size_t n = (*field_quantity(m, f))++;
        memcpy(field_at(m, f, n), cell, field_size(f->type));
        return NULL;
    }

    if (inf_field_is_oneof(f)) {
        const ProtobufCFieldDescriptor *old = inf_field_oneof_set(m, f);
        if (old != NULL) {
            inf_field_clear(m, old);
        }
        *field_case(m, f) = (int) f->id;
    } else {
        inf_field_clear(m, f);
        if (field_has_flag(f)) {
            *field_case(m, f) = 1;
        }
    }
    memcpy(field_at(m, f, 0), cell, field_size(f->type));
    return NULL;
}

/* Whether entry and field belong together, as "InputMapEntry" and
   "input_map". */
static bool
map_name_matches(const char *entry, const char *field)
{
    bool upper = true;

    for (; *field != '\0'; field++) {
        if (*field == '_') {
            upper = true;
            continue;
        }
        char c = *field;
        if (upper && c >= 'a' && c <= 'z') {
            c = (char) (c - 'a' + 'A');
        }
        if (*entry != c) {
            return false;
        }
        entry++;
        upper = false;
    }
    return strcmp(entry, "Entry") == 0;
}

static inf_err_t *
map_fold(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    size_t n = *field_quantity(m, f);
    ProtobufCMessage **entries = *(ProtobufCMessage ***) ((char *) m
        + f->offset);

    for (size_t i = 0; i < n; i++) {
        inf_err_t *err = map_fill_value(entries[i]);
        if (err != NULL) {
            return err;
        }
    }
    if (n < 2) {
        return NULL;
    }

    map_slot_t *slots = malloc(n * sizeof(*slots));
    if (slots == NULL) {
        return inf_err_nomem();
    }
    for (size_t i = 0; i < n; i++) {
        slots[i] = (map_slot_t) { entries[i],
            &entries[i]->descriptor->fields[0], i };
    }
    qsort(slots, n, sizeof(*slots), map_compare);

    for (size_t i = 0; i + 1 < n; i++) {
        if (map_compare_key(&slots[i], &slots[i + 1]) == 0) {
            inf_message_free(slots[i].entry);
            entries[slots[i].at] = NULL;
        }
    }
    free(slots);

    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (entries[i] != NULL) {
            entries[kept++] = entries[i];
        }
    }
    *field_quantity(m, f) = kept;
    return NULL;
}

static inf_err_t *
map_fill_value(ProtobufCMessage *entry)
{
    const ProtobufCFieldDescriptor *value = &entry->descriptor->fields[1];
    ProtobufCMessage *child;

    if (value->type != PROTOBUF_C_TYPE_MESSAGE
        || inf_field_count(entry, value) > 0)
    {
        return NULL;
    }
    return inf_field_put_message(entry, value, &child);
}

static int
map_compare(const void *a, const void *b)
{
    const map_slot_t *x = a;
    const map_slot_t *y = b;

    int order = map_compare_key(x, y);
    if (order != 0) {
        return order;
    }
    return x->at < y->at ? -1 : 1;
}

static int
map_compare_key(const map_slot_t *a, const map_slot_t *b)
{
    inf_scalar_t x = inf_field_get(a->entry, a->key, 0);
    inf_scalar_t y = inf_field_get(b->entry, b->key, 0);

    if (a->key->type == PROTOBUF_C_TYPE_STRING) {
        return strcmp(x.s.data, y.s.data);
    }
    if (a->key->type == PROTOBUF_C_TYPE_BOOL) {
        return (int) x.b - (int) y.b;
    }
    /* any order will do if equal keys are adjacent */
    return x.u < y.u ? -1 : x.u > y.u;
}
