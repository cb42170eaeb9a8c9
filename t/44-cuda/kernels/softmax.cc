#include "host.h"
#include SOURCE

extern "C" const char fake_kernel_softmax_arguments[] = "ppi";

extern "C" void
fake_kernel_softmax(const fake_cuda_launch_t *l)
{
    auto width = host_value<int>(l, 2);
    auto in = host_pointer<const float>(l, 0, (size_t) width * l->grid[0]);
    auto out = host_pointer<float>(l, 1, (size_t) width * l->grid[0]);

    if (l->shared_bytes < l->block[0] * sizeof(float)) {
        fake_cuda_fault(700);
    } else if (in != nullptr && out != nullptr) {
        host_launch(l, [=] { softmax(in, out, width); });
    }
}
