// The network of examples/models/digits, layer by layer: 64 pixels, 64 hidden
// units, 10 scores.  One block for each image.
#include "layout.h"

extern "C" __global__ void
hidden(const float *image, const float *weights, float *active)
{
    const float *pixels = image + (size_t) blockIdx.x * PIXELS;
    int unit = threadIdx.x;
    float sum = weights[BIAS_1 + unit];

    for (int i = 0; i < PIXELS; i++) {
        sum += pixels[i] / INK * weights[MATRIX_1 + i * UNITS + unit];
    }
    active[blockIdx.x * UNITS + unit] = fmaxf(sum, 0.0f);
}

extern "C" __global__ void
scores(const float *active, const float *weights, float *out)
{
    __shared__ float logits[DIGITS];
    const float *units = active + (size_t) blockIdx.x * UNITS;
    int digit = threadIdx.x;
    float sum = weights[BIAS_2 + digit];

    for (int i = 0; i < UNITS; i++) {
        sum += units[i] * weights[MATRIX_2 + i * DIGITS + digit];
    }
    logits[digit] = sum;
    __syncthreads();

    float most = logits[0];
    for (int i = 1; i < DIGITS; i++) {
        most = fmaxf(most, logits[i]);
    }
    float all = 0;
    for (int i = 0; i < DIGITS; i++) {
        all += expf(logits[i] - most);
    }
    out[blockIdx.x * DIGITS + digit] = expf(sum - most) / all;
}
