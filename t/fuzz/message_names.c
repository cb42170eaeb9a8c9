/*
 * The names in the first bytes of a message: any cut of it has the names that
 * stand whole before the cut, and a call that the reader of inferences accepts
 * has the names that it has read.
 */

#include "core/base/arena.h"
#include "core/proto/infer_message.h"
#include "core/proto/message_names.h"
#include "t/fuzz/check.h"
#include "t/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_inside(inf_slice_t name, inf_slice_t bytes)
{
    check(name.len == 0 || (name.data >= bytes.data
        && name.data + name.len <= bytes.data + bytes.len));
}

/* The other reader finds the same names in the whole message. */
static void
check_call(inf_slice_t bytes, const inf_names_t *names)
{
    inf_infer_message_t *m;
    inf_arena_t arena;
    inf_err_t *err;
    inf_codec_t rc;

    inf_arena_init(&arena);
    check(inf_infer_message_new(&m, &arena, NULL) == NULL);

    do {
        rc = inf_infer_message_read(m, bytes.data, bytes.len, NULL, 0, 1024,
            &err);
    } while (rc == INF_CODEC_AGAIN);

    if (rc == INF_CODEC_ERROR) {
        inf_err_free(err);
    } else {
        const inf_infer_call_t *call = inf_infer_message_call(m);

        check(inf_slice_eq(call->model_name, names->model));
        check(inf_slice_eq(call->version_text, names->version));
    }
    inf_arena_fini(&arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const inf_names_fields_t fields = { 1, 2 };
    input_t in = { data, size };
    size_t cut = (size_t) input_next(&in, 2) % (in.size + 1);
    char *bytes = malloc(cut + 1);      /* so that ASan sees where it ends   */

    check(bytes != NULL);
    memcpy(bytes, in.data, cut);

    inf_slice_t part = inf_slice(bytes, cut);
    inf_names_t names = inf_message_names(part, fields);
    check_inside(names.model, part);
    check_inside(names.version, part);
    free(bytes);

    inf_slice_t whole = inf_slice((const char *) in.data, in.size);
    names = inf_message_names(whole, fields);
    check_inside(names.model, whole);
    check_inside(names.version, whole);
    check_call(whole, &names);

    names = inf_message_names(whole, (inf_names_fields_t) { 0, 0 });
    check(names.model.len == 0 && names.version.len == 0);
    return 0;
}
