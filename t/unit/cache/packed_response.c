#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/cache/packed_response.h"

/* A sink whose buffers are malloc'ed; rejects after some allocations. */
typedef struct {
    inf_factory_t factory;
    int           allowed;
    int           buffers;
    bool          device;
} side_t;

static inf_err_t *
side_alloc(void *userp, inf_output_t *out, size_t size)
{
    side_t *s = userp;
    if (s->allowed-- == 0) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "no room");
    }

    out->base = size > 0 ? malloc(size) : NULL;
    out->memory_type = s->device ? INF_MEMORY_GPU : INF_MEMORY_CPU;
    s->buffers += out->base != NULL;
    return NULL;
}

static void
side_release(void *userp, inf_output_t *out)
{
    ((side_t *) userp)->buffers--;
    free(out->base);
}

static void
side_factory_free(void *userp, inf_factory_t *f)
{
    (void) userp;
    inf_factory_fini(f);
}

static const inf_sink_ops_t side_ops = {
    .alloc = side_alloc,
    .release = side_release,
    .factory_free = side_factory_free
};

static inf_response_t *
respond(side_t *s)
{
    inf_response_t *r;
    *s = (side_t) { .allowed = 100 };
    inf_factory_init(&s->factory);
    inf_factory_start(&s->factory, NULL, "id", &side_ops, s);
    assert_null(inf_response_new(&s->factory, &r));
    return r;
}

static void
done(side_t *s, inf_response_t *r)
{
    inf_response_free(r);
    assert_int_equal(s->buffers, 0);
    inf_factory_unref(&s->factory);
}

static void
add(inf_response_t *r, const char *name, inf_datatype_t type,
    const int64_t *shape, uint32_t dims, const void *data, size_t size)
{
    inf_output_t *out = inf_response_add_output(r, name, type, shape, dims);
    inf_factory_t *f = r->factory;
    assert_null(f->sink->alloc(f->userp, out, size));
    out->byte_size = size;
    if (size > 0) {
        memcpy(out->base, data, size);
    }
}

static inf_response_t *
example(side_t *s)
{
    inf_response_t *r = respond(s);
    add(r, "A", INF_TYPE_INT32, (int64_t[]) { 1, 2 }, 2, "abcdefgh", 8);
    add(r, "EMPTY", INF_TYPE_BYTES, (int64_t[]) { 0 }, 1, NULL, 0);
    add(r, "SCALAR", INF_TYPE_UINT8, NULL, 0, "x", 1);
    return r;
}

static void
add_parameters(inf_response_t *r)
{
    inf_parameter_t *p = inf_parameter_add(&r->parameters, &r->arena, "s", 1,
        INF_PARAMETER_STRING);
    p->text = "text";
    p->text_len = 4;
    inf_parameter_add(&r->parameters, &r->arena, "i", 1,
        INF_PARAMETER_INT)->i = -5;
    inf_parameter_add(&r->parameters, &r->arena, "b", 1,
        INF_PARAMETER_BOOL)->b = true;
    inf_parameter_add(&r->parameters, &r->arena, "d", 1,
        INF_PARAMETER_DOUBLE)->d = 0.5;
}

static void
expect_same(const inf_response_t *a, const inf_response_t *b)
{
    assert_int_equal(a->output_count, b->output_count);
    const inf_output_t *y = b->first;
    for (const inf_output_t *x = a->first; x != NULL; x = x->next) {
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->datatype, y->datatype);
        assert_int_equal(x->dim_count, y->dim_count);
        for (uint32_t i = 0; i < x->dim_count; i++) {
            assert_int_equal(x->shape[i], y->shape[i]);
        }
        assert_int_equal(x->byte_size, y->byte_size);
        if (x->byte_size > 0) {
            assert_memory_equal(x->base, y->base, x->byte_size);
        }
        y = y->next;
    }

    assert_int_equal(a->parameters.count, b->parameters.count);
    for (uint32_t i = 0; i < a->parameters.count; i++) {
        const inf_parameter_t *p = a->parameters.items[i];
        const inf_parameter_t *q = b->parameters.items[i];
        assert_string_equal(p->name, q->name);
        assert_int_equal(p->type, q->type);
        assert_int_equal(p->i, q->i);
        assert_int_equal(p->b, q->b);
        assert_true(p->d == q->d);
        assert_int_equal(p->text_len, q->text_len);
        if (p->text_len > 0) {
            assert_memory_equal(p->text, q->text, p->text_len);
        }
    }
}

static char *
packed(const inf_response_t *r, uint64_t *size)
{
    assert_null(inf_packed_response_size(r, size));
    char *bytes = malloc(*size);
    inf_packed_response_write(r, bytes, false);
    return bytes;
}

static void
outputs_come_back_as_they_were(void **state)
{
    (void) state;
    side_t from, to;
    uint64_t size;

    inf_response_t *r = example(&from);
    inf_response_t *back = respond(&to);
    char *bytes = packed(r, &size);
    assert_null(inf_packed_response_read(bytes, size, back));
    expect_same(r, back);
    assert_int_equal(to.buffers, 2);
    free(bytes);
    done(&from, r);
    done(&to, back);
}

/* However the bytes lie to the lines of a processor's cache. */
static void
cold_bytes_are_the_same_bytes(void **state)
{
    (void) state;
    static char data[300];
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (char) (i * 7);
    }

    for (size_t len = 0; len < sizeof(data); len++) {
        side_t s;
        uint64_t size;
        inf_response_t *r = respond(&s);
        add(r, "A", INF_TYPE_UINT8, (int64_t[]) { (int64_t) len }, 1, data,
            len);
        char *bytes = packed(r, &size);
        char *place = malloc(size + 64);
        for (size_t at = 0; at < 64; at += 5) {
            memset(place, 0x55, size + 64);
            inf_packed_response_write(r, place + at, true);
            assert_memory_equal(place + at, bytes, size);
            assert_true(at == 0 || place[at - 1] == 0x55);
            assert_int_equal(place[at + size], 0x55);
        }
        free(place);
        free(bytes);
        done(&s, r);
    }
}

/* The layout is a contract with those who share a cache. */
static void
the_bytes_are_those_of_the_format(void **state)
{
    (void) state;
    side_t s;
    uint64_t size;
    inf_response_t *r = respond(&s);
    add(r, "A", INF_TYPE_INT32, (int64_t[]) { 2 }, 1, "abcdefgh", 8);

    char *bytes = packed(r, &size);
    static const char want[] =
        "\1\0\0\0"
        "\52\0\0\0\0\0\0\0"             /* 42 bytes follow                   */
        "\1\0\0\0A"
        "\5\0\0\0INT32"
        "\10\0\0\0\2\0\0\0\0\0\0\0"
        "\10\0\0\0\0\0\0\0abcdefgh";
    assert_int_equal(sizeof(want) - 1, size);
    assert_memory_equal(bytes, want, size);
    free(bytes);
    done(&s, r);
}

static void
parameters_come_back_too(void **state)
{
    (void) state;
    side_t from, to;
    uint64_t size;

    inf_response_t *r = example(&from);
    add_parameters(r);
    inf_response_t *back = respond(&to);
    char *bytes = packed(r, &size);
    assert_null(inf_packed_response_read(bytes, size, back));
    expect_same(r, back);
    free(bytes);
    done(&to, back);

    back = respond(&to);
    assert_null(inf_response_copy(r, back));
    expect_same(r, back);
    done(&from, r);
    done(&to, back);
}

static void
every_cut_of_the_bytes_is_rejected(void **state)
{
    (void) state;
    side_t from, to;
    uint64_t size;

    inf_response_t *r = example(&from);
    uint64_t without;
    assert_null(inf_packed_response_size(r, &without));
    add_parameters(r);
    char *bytes = packed(r, &size);
    for (uint64_t n = 0; n < size; n++) {
        char *cut = malloc(n + 1);
        memcpy(cut, bytes, n);
        inf_response_t *back = respond(&to);
        inf_err_t *err = inf_packed_response_read(cut, n, back);
        if (n == without) {
            assert_null(err);           /* parameters are an addition        */
        } else {
            assert_non_null(err);
            assert_int_equal(inf_err_code(err), INF_ERR_INTERNAL);
        }
        inf_err_free(err);
        free(cut);
        done(&to, back);
    }
    free(bytes);
    done(&from, r);
}

/* A flipped bit may pass, but never reads beyond the bytes. */
static void
damaged_bytes_do_no_harm(void **state)
{
    (void) state;
    side_t from, to;
    uint64_t size;

    inf_response_t *r = example(&from);
    add_parameters(r);
    char *bytes = packed(r, &size);
    for (uint64_t at = 0; at < size; at++) {
        for (int bit = 0; bit < 8; bit++) {
            char *bad = malloc(size);
            memcpy(bad, bytes, size);
            bad[at] ^= (char) (1 << bit);
            inf_response_t *back = respond(&to);
            inf_err_free(inf_packed_response_read(bad, size, back));
            free(bad);
            done(&to, back);
        }
    }
    free(bytes);
    done(&from, r);
}

static void
a_rejected_allocation_is_the_error(void **state)
{
    (void) state;
    side_t from, to;
    uint64_t size;

    inf_response_t *r = example(&from);
    char *bytes = packed(r, &size);
    for (int allowed = 0; allowed < 3; allowed++) {
        inf_response_t *back = respond(&to);
        to.allowed = allowed;
        inf_err_t *err = inf_packed_response_read(bytes, size, back);
        assert_int_equal(inf_err_code(err), INF_ERR_UNAVAILABLE);
        inf_err_free(err);
        done(&to, back);
    }
    free(bytes);
    done(&from, r);
}

static void
device_memory_is_neither_packed_nor_filled(void **state)
{
    (void) state;
    side_t from, to;
    uint64_t size;

    inf_response_t *r = example(&from);
    char *bytes = packed(r, &size);
    inf_response_t *back = respond(&to);
    to.device = true;
    inf_err_t *err = inf_packed_response_read(bytes, size, back);
    assert_int_equal(inf_err_code(err), INF_ERR_UNSUPPORTED);
    inf_err_free(err);
    done(&to, back);

    r->first->memory_type = INF_MEMORY_GPU;
    err = inf_packed_response_size(r, &size);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    assert_non_null(strstr(inf_err_msg(err), "'A'"));
    inf_err_free(err);
    r->first->memory_type = INF_MEMORY_CPU;
    free(bytes);
    done(&from, r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_come_back_as_they_were),
        cmocka_unit_test(cold_bytes_are_the_same_bytes),
        cmocka_unit_test(the_bytes_are_those_of_the_format),
        cmocka_unit_test(parameters_come_back_too),
        cmocka_unit_test(every_cut_of_the_bytes_is_rejected),
        cmocka_unit_test(damaged_bytes_do_no_harm),
        cmocka_unit_test(a_rejected_allocation_is_the_error),
        cmocka_unit_test(device_memory_is_neither_packed_nor_filled)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
