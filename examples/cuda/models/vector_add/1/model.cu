// One thread for each element.  extern "C": the configuration names kernels as
// they are written here.
extern "C" __global__ void
vector_add(const float *a, const float *b, float *sum, int count)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < (unsigned) count) {     // the last block has threads to spare
        sum[i] = a[i] + b[i];
    }
}
