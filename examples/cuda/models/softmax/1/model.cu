// One block for each row; its threads share the row's elements among them.
extern __shared__ float partial[];

static __device__ float
block_max(float mine)
{
    partial[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            partial[threadIdx.x] = fmaxf(partial[threadIdx.x],
                                         partial[threadIdx.x + half]);
        }
        __syncthreads();
    }

    float most = partial[0];
    __syncthreads();
    return most;
}

static __device__ float
block_sum(float mine)
{
    partial[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            partial[threadIdx.x] += partial[threadIdx.x + half];
        }
        __syncthreads();
    }

    float sum = partial[0];
    __syncthreads();
    return sum;
}

extern "C" __global__ void
softmax(const float *logits, float *scores, unsigned width)
{
    const float *in = logits + (size_t) blockIdx.x * width;
    float *out = scores + (size_t) blockIdx.x * width;
    float most = in[0];
    float sum = 0;

    for (unsigned i = threadIdx.x; i < width; i += blockDim.x) {
        most = fmaxf(most, in[i]);
    }
    most = block_max(most);

    for (unsigned i = threadIdx.x; i < width; i += blockDim.x) {
        sum += expf(in[i] - most);
    }
    sum = block_sum(sum);

    for (unsigned i = threadIdx.x; i < width; i += blockDim.x) {
        out[i] = expf(in[i] - most) / sum;
    }
}
