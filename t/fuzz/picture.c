/* Any bytes as a PNG file of backend image, for an output of any form: numbers
   are finite and all there, or the error has words. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "backends/common/error.c"
#include "backends/image/picture.c"
#include "check.h"

#define SIDE 9u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static picture_t picture;

    if (size < 3) {
        return 0;
    }

    picture_form_t form = {
        .height = data[0] % SIDE + 1,
        .width = data[1] % SIDE + 1,
        .channels = data[2] & 1 ? 3 : 1,
        .planar = data[2] & 2,
        .scale = { 1, 1, 1 },
        .max_pixels = 4096
    };
    size_t count = (size_t) form.height * form.width * form.channels;
    float *numbers = malloc(count * sizeof(*numbers));
    check(numbers != NULL);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = NAN;
    }

    TRITONSERVER_Error *err = picture_read(&picture, &form, data + 3, size - 3,
        numbers);
    if (err != NULL) {
        check(TRITONSERVER_ErrorMessage(err)[0] != '\0');
        TRITONSERVER_ErrorDelete(err);
    }
    for (size_t i = 0; err == NULL && i < count; i++) {
        check(numbers[i] >= 0 && numbers[i] <= 1.001f);
    }

    free(numbers);
    return 0;
}
