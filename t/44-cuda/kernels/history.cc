#include "host.h"
#include SOURCE

extern "C" const char fake_kernel_append_arguments[] = "pppii";

extern "C" void
fake_kernel_append(const fake_cuda_launch_t *l)
{
    auto had = host_value<int>(l, 3);
    auto count = host_value<int>(l, 4);
    auto before = host_pointer<const float>(l, 0, had);
    auto x = host_pointer<const float>(l, 1, count - had);
    auto all = host_pointer<float>(l, 2, count);

    if (before != nullptr && x != nullptr && all != nullptr) {
        host_launch(l, [=] { append(before, x, all, had, count); });
    }
}
