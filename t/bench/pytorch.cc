/*
 * pytorch.cc - what backend pytorch adds to PyTorch's own call, for one request
 *              at a time: the digits models of examples/pytorch.
 *
 *   bench_pytorch [runs]
 *
 * The backend is run by the fake core of t/backends-fake.  Its time is that of
 * one Execute, with the fake core's own lists in it: reading and checking the
 * request, tensors over its memory, the run, the response.  Beside it PyTorch
 * alone, in inference mode: forward() of the TorchScript file, and a run of the
 * package by PyTorch's own loader, each with a tensor made over the image.
 * Each figure is the median of all runs; the two take turns.
 */

extern "C" {
#include "t/backends-fake/fakecore.h"
}

#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/script.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr size_t RUNS = 20000;
constexpr size_t WARM_UP = 500;
constexpr double TARGET_US = 20;

struct kind {
    const char *name;
    const char *directory;
    const char *platform;
    const char *input;
    const char *output;
};

float image[64] __attribute__((aligned(64)));

void
stop(TRITONSERVER_Error *err)
{
    if (err != nullptr) {
        std::fprintf(stderr, "%s\n", TRITONSERVER_ErrorMessage(err));
        std::exit(1);
    }
}

double
now_us()
{
    return std::chrono::duration<double, std::micro>(
        std::chrono::steady_clock::now().time_since_epoch()).count();
}

double
median(std::vector<double> times)
{
    std::nth_element(times.begin(), times.begin() + times.size() / 2,
        times.end());
    return times[times.size() / 2];
}

double
time_backend(fake_model_t *m, const kind &k, std::vector<float> *scores)
{
    static const int64_t shape[] = { 1, 8, 8 };

    fake_request_t *r = fake_request_new(m);
    fake_request_input(r, k.input, TRITONSERVER_TYPE_FP32, shape, 3, image,
        sizeof(image));
    fake_request_want(r, k.output);

    double start = now_us();
    fake_execute(m, &r, 1);
    double took = now_us() - start;

    if (r->failed) {
        std::fprintf(stderr, "%s: %s\n", k.name, r->error);
        std::exit(1);
    }
    const fake_tensor_t *t = fake_request_output(r, k.output);
    scores->assign(static_cast<float *>(t->chunks[0]),
        static_cast<float *>(t->chunks[0]) + 10);
    fake_request_free(r);
    return took;
}

bool
measure(fake_backend_t *backend, const kind &k, size_t runs,
    const std::function<at::Tensor(const at::Tensor &)> &direct)
{
    std::vector<double> through, alone;
    std::vector<float> scores;
    fake_model_t model;
    char config[1024];

    std::snprintf(config, sizeof(config), "{\"name\":\"digits\","
        "\"backend\":\"pytorch\",\"platform\":\"%s\",\"max_batch_size\":32,"
        "\"input\":[{\"name\":\"%s\",\"data_type\":\"TYPE_FP32\","
        "\"dims\":[8,8]}],\"output\":[{\"name\":\"%s\","
        "\"data_type\":\"TYPE_FP32\",\"dims\":[10]}]}", k.platform, k.input,
        k.output);
    stop(fake_model_load(&model, backend, k.directory, config, false,
        TRITONSERVER_INSTANCEGROUPKIND_CPU));

    for (size_t i = 0; i < runs + WARM_UP; i++) {
        double took = time_backend(&model, k, &scores);
        double start = now_us();
        at::Tensor y = direct(at::from_blob(image, { 1, 8, 8 }));
        double other = now_us() - start;

        if (i == 0 && std::memcmp(y.const_data_ptr(), scores.data(), 40) != 0)
        {
            std::fprintf(stderr, "%s: other scores than PyTorch's\n", k.name);
            std::exit(1);
        }
        if (i >= WARM_UP) {
            through.push_back(took);
            alone.push_back(other);
        }
    }
    fake_model_unload(&model);

    double added = median(through) - median(alone);
    std::printf("pytorch, digits, %s, one image: Execute %.2f us, PyTorch's "
        "own call %.2f us; the backend adds %.2f us (target: at most %.0f)\n",
        k.name, median(through), median(alone), added, TARGET_US);
    return added <= TARGET_US;
}

} /* namespace */

int
main(int argc, char **argv)
{
    static const kind script = { "TorchScript", MODELS "/digits",
        "pytorch_libtorch", "image", "scores" };
    static const kind package = { "package", MODELS "/digits_compiled",
        "torch_aoti", "INPUT__0", "OUTPUT__0" };

    size_t runs = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : RUNS;
    fake_backend_t backend;

    for (size_t i = 0; i < 64; i++) {
        image[i] = static_cast<float>(i % 17);
    }

    c10::InferenceMode inference;
    stop(fake_backend_open(&backend, BACKEND, nullptr));

    torch::jit::Module module = torch::jit::load(MODELS
        "/digits/1/model.pt");
    bool met = measure(&backend, script, runs, [&](const at::Tensor &x) {
        return module.forward({ x }).toTensor();
    });

    torch::inductor::AOTIModelPackageLoader loader(MODELS
        "/digits_compiled/1/model.pt2");
    met = measure(&backend, package, runs, [&](const at::Tensor &x) {
        return loader.run({ x })[0];
    }) && met;

    fake_backend_close(&backend);
    return met ? 0 : 1;
}
