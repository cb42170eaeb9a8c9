#include "host.h"
#include SOURCE

#define NETWORK (BIAS_2 + DIGITS)

extern "C" const char fake_kernel_hidden_arguments[] = "ppp";
extern "C" const char fake_kernel_scores_arguments[] = "ppp";

extern "C" void
fake_kernel_hidden(const fake_cuda_launch_t *l)
{
    auto image = host_pointer<const float>(l, 0, l->grid[0] * PIXELS);
    auto weights = host_pointer<const float>(l, 1, NETWORK);
    auto active = host_pointer<float>(l, 2, l->grid[0] * UNITS);

    if (image != nullptr && weights != nullptr && active != nullptr) {
        host_launch(l, [=] { hidden(image, weights, active); });
    }
}

extern "C" void
fake_kernel_scores(const fake_cuda_launch_t *l)
{
    auto active = host_pointer<const float>(l, 0, l->grid[0] * UNITS);
    auto weights = host_pointer<const float>(l, 1, NETWORK);
    auto out = host_pointer<float>(l, 2, l->grid[0] * DIGITS);

    if (active != nullptr && weights != nullptr && out != nullptr) {
        host_launch(l, [=] { scores(active, weights, out); });
    }
}
