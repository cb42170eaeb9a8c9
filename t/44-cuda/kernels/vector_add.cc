#include "host.h"
#include SOURCE

extern "C" const char fake_kernel_vector_add_arguments[] = "pppi";

extern "C" void
fake_kernel_vector_add(const fake_cuda_launch_t *l)
{
    auto count = host_value<int>(l, 3);
    auto a = host_pointer<const float>(l, 0, count);
    auto b = host_pointer<const float>(l, 1, count);
    auto sum = host_pointer<float>(l, 2, count);

    if (a != nullptr && b != nullptr && sum != nullptr) {
        host_launch(l, [=] { vector_add(a, b, sum, count); });
    }
}
