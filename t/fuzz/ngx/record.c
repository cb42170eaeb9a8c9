#include "t/fuzz/ngx/fake.h"

#include "core/wire/request_record.h"

static void
put_ref(inf_buf_t *out, const inf_infer_record_t *r, inf_ref_t ref)
{
    inf_slice_t s = inf_infer_record_text(r, ref);

    inf_buf_put(out, &ref.len, sizeof(ref.len));
    inf_buf_put(out, s.data, s.len);
}

/* As the core reads it, without the places of things. */
void
fake_record(inf_buf_t *out)
{
    const inf_region_t *region = fake.submission->regions[0];
    const uint8_t *arena = (uint8_t *) inf_client_data(fake.client, region)
        - region->offset;
    const inf_infer_record_t *r;
    inf_arena_t pool;

    inf_arena_init(&pool);
    inf_err_t *err = inf_infer_record_copy_check(arena, fake.arena_size,
        fake.record.offset, fake.record.length, &pool, &r);
    check(err == NULL);

    put_ref(out, r, r->model_name);
    put_ref(out, r, r->id);
    inf_buf_put(out, &r->flags, sizeof(r->flags));

    const inf_record_input_t *in = inf_infer_record_inputs(r);
    for (uint32_t i = 0; i < r->input_count; i++) {
        put_ref(out, r, in[i].name);
        inf_buf_put(out, &in[i].datatype, sizeof(in[i].datatype));
        inf_buf_put(out, inf_infer_record_shape(r, &in[i]),
            in[i].dim_count * sizeof(int64_t));
        inf_buf_put(out, &in[i].data_length,
            sizeof(in[i].data_length));
        if (in[i].data_kind == INF_DATA_ARENA) {
            inf_buf_put(out, arena + in[i].data_offset,
                in[i].data_length);
        }
    }

    const inf_record_output_t *outputs = inf_infer_record_outputs(r);
    for (uint32_t i = 0; i < r->output_count; i++) {
        put_ref(out, r, outputs[i].name);
        inf_buf_put(out, &outputs[i].classification,
            sizeof(outputs[i].classification));
    }

    const inf_record_parameter_t *p = inf_infer_record_parameters(r);
    for (uint32_t i = 0; i < r->parameter_count; i++) {
        put_ref(out, r, p[i].name);
        put_ref(out, r, p[i].text);
        inf_buf_put(out, &p[i].number, sizeof(p[i].number));
    }

    check(!out->failed);
    inf_arena_fini(&pool);
}
