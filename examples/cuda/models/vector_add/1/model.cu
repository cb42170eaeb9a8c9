// One thread for each element.  extern "C": the configuration names kernels as
// they are written here.
extern "C" __global__ void
vector_add(const float *a, const float *b, float *sum, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        sum[i] = a[i] + b[i];
    }
}
