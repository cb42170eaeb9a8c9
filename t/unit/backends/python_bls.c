/* Requests of a model of backend python to another model, without a server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fake_cuda.h"
#include "triton/core/tritonserver.h"

#define TRITONSERVER_InferenceRequestAppendInputData(r, name, base, size,     \
    type, id)                                                                 \
    ((void) (base), (void) (size), (void) (type), (void) (id), NULL)

#include "python/bls_request.c"

static void
succeeds(TRITONSERVER_Error *err)
{
    if (err != NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
}

/* A release on one thread and the last response on another may end the stream
   before the inputs are freed; the interpreter may have ended before. */
static void
an_input_on_a_gpu_keeps_its_link(void **state)
{
    py_link_t *l = NULL;
    py_gpu_place_t place;
    bk_buffer_t at;

    (void) state;
    assert_int_equal(setenv("INFERENCE_CUDA_DRIVER", FAKE_CUDA_LIBRARY, 1), 0);
    fake_cuda_reset();
    size_t before = fake_cuda_live();
    succeeds(py_link_new(&l));
    succeeds(py_gpus_new(&l->gpu.gpus));
    succeeds(py_gpu_alloc(&l->gpu, 0, 100, &place, &at));
    py_gpu_unref(&l->gpu, place.piece);

    py_bls_request_t q = { .link = l };
    const py_tensor_t t = {
        .name = "IN", .data = {
            .tag = PY_TAG_GPU, .id = place.piece, .length = 100
        }
    };
    succeeds(add_gpu(&q, &t));
    py_link_unref(l);
    assert_non_null(fake_cuda_bytes(at.base));
    py_bls_inputs_free(q.inputs);
    assert_int_equal(fake_cuda_live(), before);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_input_on_a_gpu_keeps_its_link)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
