/*
 * $inference_digest of a body that nginx has read: none, or 64 digits, which
 * are the same however the body lies in memory, and others for another path.
 * First byte: whether there is a header with the length of the JSON; then that
 * length and the place where the body is cut in two.
 */

#include "t/fuzz/ngx/fake.h"

#include "ngx_module/ngx_http_inference_variables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    bool valid;
    char text[64];
} digest_t;

/* The body in two allocations of their own, cut there; 0: in one. */
static digest_t
digest_of(const char *path, input_t in, uint64_t json, bool told, size_t cut)
{
    ngx_http_variable_value_t v = { 0 };
    ngx_http_request_body_t body = { 0 };
    ngx_chain_t links[2] = { 0 };
    ngx_buf_t bufs[2] = { 0 };
    digest_t found = { .valid = false };
    char number[24];

    fake_open(path, NULL);
    if (told) {
        int n = snprintf(number, sizeof(number), "%llu",
            (unsigned long long) json);
        fake_header("Inference-Header-Content-Length", number, (size_t) n);
    }

    const size_t sizes[2] = { cut > 0 ? cut : in.size, in.size - cut };
    for (int i = 0; i < (cut > 0 ? 2 : 1); i++) {
        bufs[i].memory = 1;
        bufs[i].pos = malloc(sizes[i] + (sizes[i] == 0));
        check(bufs[i].pos != NULL);
        memcpy(bufs[i].pos, in.data + (i == 0 ? 0 : cut), sizes[i]);
        bufs[i].last = bufs[i].pos + sizes[i];
        links[i].buf = &bufs[i];
        links[0].next = i == 0 ? NULL : &links[1];
    }
    body.bufs = &links[0];
    fake.request.request_body = &body;
    fake.request.headers_in.content_length_n = (off_t) in.size;

    check(ngx_http_inference_variable_digest(&fake.request, &v, 0) == NGX_OK);
    check(v.valid != v.not_found && !v.no_cacheable);
    if (v.valid) {
        check(v.len == sizeof(found.text));
        memcpy(found.text, v.data, sizeof(found.text));
        found.valid = true;
    }

    free(bufs[0].pos);
    free(bufs[1].pos);
    fake_close();
    return found;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input_t in = { data, size };
    bool told = input_next(&in, 1) & 1;
    uint64_t json = input_next(&in, 2);
    size_t cut = (size_t) input_next(&in, 2);

    if (in.size == 0) {
        return 0;
    }

    cut %= in.size;
    const digest_t whole = digest_of("/v2/models/m/infer", in, json, told, 0);
    const digest_t parts = digest_of("/v2/models/m/infer", in, json, told,
        cut);
    const digest_t other = digest_of("/v2/models/n/infer", in, json, told, 0);

    check(parts.valid == whole.valid && other.valid == whole.valid);
    if (whole.valid) {
        check(memcmp(parts.text, whole.text, sizeof(whole.text)) == 0);
        check(memcmp(other.text, whole.text, sizeof(whole.text)) != 0);
    }
    return 0;
}
