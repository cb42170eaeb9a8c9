/* script.cc - see script.h */

extern "C" {
#include "script.h"

#include "common/bytes.h"
#include "element_type.h"
}

#include <ATen/DeviceAccelerator.h>
#include <ATen/Parallel.h>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <memory>
#include <omp.h>
#include <string>
#include <vector>

/* PyTorch's matrix library has its own count of threads, where it is part. */
extern "C" int MKL_Set_Num_Threads_Local(int) __attribute__((weak));

namespace {

struct script {
    torch::jit::Module module;
    pt_options_t       options;
    int                device;
    bool               dict;
    uint32_t           output_count;
};

/* The values that results of one run point into, and the inputs of the run,
   whose memory is the request's. */
struct held {
    std::vector<at::Tensor>  inputs;
    std::vector<at::Tensor>  tensors;
    std::vector<std::string> texts;
    std::vector<int64_t>     counts;    /* of the texts' elements            */
};

TRITONSERVER_Error *script_run(void *self, const pt_argument_t *arguments,
    uint32_t count, pt_results_t *results);
void script_release(void *self, pt_results_t *results);
void script_free(void *self);

const pt_engine_functions_t script_functions = {
    script_run, script_release, script_free
};

/* The interpreter's text ends with the cause, behind excerpts of the code,
   whose lines are indented.  The cause comes first, as long texts are cut. */
std::string
cause_first(const std::string &text)
{
    static const std::string mark = "<--- HERE\n";

    size_t at = text.rfind(mark);
    if (at == std::string::npos) {
        return text;
    }

    at += mark.size();
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n')) {
        at = std::min(text.find('\n', at), text.size() - 1) + 1;
    }

    std::string cause = text.substr(at);
    while (!cause.empty() && cause.back() == '\n') {
        cause.pop_back();
    }
    return cause.empty() ? text : cause + "\n" + text.substr(0, at);
}

/* Calls f; an exception becomes an error that begins with what. */
template <typename F>
TRITONSERVER_Error *
guarded(const char *what, F f)
{
    try {
        return f();

    } catch (const c10::Error &e) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "%s: %s", what,
            cause_first(e.what_without_backtrace()).c_str());

    } catch (const std::exception &e) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "%s: %s", what,
            cause_first(e.what()).c_str());

    } catch (...) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "%s: an exception of "
            "an unknown kind", what);
    }
}

bool
is_texts(const c10::TypePtr &type)
{
    auto list = type->cast<c10::ListType>();

    return list != nullptr
        && list->getElementType()->kind() == c10::TypeKind::StringType;
}

bool
is_tensor(const c10::TypePtr &type)
{
    return type->kind() == c10::TypeKind::TensorType;
}

/* ---- what forward() takes and gives */

TRITONSERVER_Error *
parameter_read(const c10::Argument &a, pt_parameter_t *p)
{
    c10::TypePtr type = a.type();
    auto optional = type->cast<c10::OptionalType>();

    if (optional != nullptr) {
        type = optional->getElementType();
    }
    if (!is_tensor(type) && !is_texts(type)) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "An input of type "
            "'%s' was detected in the model. Only a single input of type "
            "Dict(str, Tensor) or input(s) of type Tensor are supported.",
            a.type()->str().c_str());
    }

    p->name = strdup(a.name().c_str());
    p->texts = is_texts(type);
    p->has_default = optional != nullptr || a.default_value().has_value();
    return p->name != nullptr ? nullptr : bk_err_nomem("name of an argument");
}

bool
is_dict(const std::vector<c10::Argument> &arguments, size_t first)
{
    auto dict = arguments.size() == first + 1
        ? arguments[first].type()->cast<c10::DictType>() : nullptr;

    return dict != nullptr && is_tensor(dict->getValueType())
        && dict->getKeyType()->kind() == c10::TypeKind::StringType;
}

TRITONSERVER_Error *
outputs_count(const c10::FunctionSchema &schema, uint32_t *count)
{
    c10::TypePtr type = schema.returns().empty() ? c10::NoneType::get()
        : schema.returns()[0].type();
    auto tuple = type->cast<c10::TupleType>();
    std::vector<c10::TypePtr> types { type };

    if (tuple != nullptr) {
        types.assign(tuple->elements().begin(), tuple->elements().end());
    }
    for (const c10::TypePtr &t : types) {
        if (!is_tensor(t) && !is_texts(t)) {
            return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "output must be "
                "of type Tensor, List[str] or Tuple containing one of these "
                "two types, the model's is %s", t->str().c_str());
        }
    }

    *count = static_cast<uint32_t>(types.size());
    return nullptr;
}

TRITONSERVER_Error *
signature_read(script *s, pt_signature_t *signature)
{
    auto method = s->module.find_method("forward");
    if (!method.has_value()) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "the model has no method forward()");
    }

    const c10::FunctionSchema &schema = method->function().getSchema();
    const std::vector<c10::Argument> &arguments = schema.arguments();
    size_t first = !arguments.empty() && arguments[0].type()->kind()
        == c10::TypeKind::ClassType ? 1 : 0;

    TRITONSERVER_Error *err = outputs_count(schema, &s->output_count);
    if (err != nullptr) {
        return err;
    }

    s->dict = is_dict(arguments, first);
    uint32_t count = s->dict ? 0
        : static_cast<uint32_t>(arguments.size() - first);
    if (!pt_signature_init(signature, count, s->output_count)) {
        return bk_err_nomem("names of a model's tensors");
    }

    signature->dict = s->dict;
    for (uint32_t i = 0; err == nullptr && i < count; i++) {
        err = parameter_read(arguments[first + i], &signature->parameters[i]);
    }

    return err;
}

/* ---- values in */

c10::Device
device_of(int device)
{
    return device >= 0
        ? c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device))
        : c10::Device(c10::kCPU);
}

at::Tensor
tensor_over(const script *s, const pt_argument_t *a, held *h)
{
    at::IntArrayRef dims(a->dims, a->dims_count);
    auto options = at::TensorOptions(static_cast<at::ScalarType>(a->type));

    at::Tensor t = a->len_bytes == 0 ? at::empty(dims, options)
        : at::from_blob(a->data, dims, options);
    h->inputs.push_back(t);
    return s->device >= 0 ? t.to(device_of(s->device)) : t;
}

TRITONSERVER_Error *
texts_read(const pt_argument_t *a, c10::List<std::string> *list)
{
    bk_bytes_t reader;

    TRITONSERVER_Error *err = bk_bytes_open(&reader, "input", a->name,
        a->data, a->len_bytes, a->elements);
    if (err == nullptr) {
        list->reserve(a->elements);
    }
    for (uint64_t i = 0; err == nullptr && i < a->elements; i++) {
        const char *text;
        uint32_t len;

        err = bk_bytes_next(&reader, &text, &len);
        if (err == nullptr) {
            list->push_back(std::string(text, len));
        }
    }

    return err;
}

TRITONSERVER_Error *
stack_fill(const script *s, const pt_argument_t *arguments, uint32_t count,
    std::vector<c10::IValue> *stack, held *h)
{
    c10::Dict<std::string, at::Tensor> dict;

    for (uint32_t i = 0; i < count; i++) {
        const pt_argument_t *a = &arguments[i];
        TRITONSERVER_Error *err = nullptr;

        if (!a->given) {
            if (!s->dict) {
                stack->emplace_back();
            }

        } else if (a->type == PT_TEXTS) {
            c10::List<std::string> list;
            err = texts_read(a, &list);
            stack->emplace_back(list);

        } else if (s->dict) {
            dict.insert(a->name, tensor_over(s, a, h));

        } else {
            stack->emplace_back(tensor_over(s, a, h));
        }
        if (err != nullptr) {
            return err;
        }
    }

    if (s->dict) {
        stack->emplace_back(dict);
    }
    return nullptr;
}

/* An argument that is left out has its own default, if it is not None. */
void
stack_default(script *s, const pt_argument_t *arguments, uint32_t count,
    std::vector<c10::IValue> *stack)
{
    if (s->dict) {
        return;
    }

    const std::vector<c10::Argument> &schema =
        s->module.get_method("forward").function().getSchema().arguments();
    size_t first = schema.size() - count;
    for (uint32_t i = 0; i < count; i++) {
        if (!arguments[i].given && schema[first + i].default_value()) {
            (*stack)[i] = *schema[first + i].default_value();
        }
    }
}

/* ---- values out */

TRITONSERVER_Error *
texts_write(const c10::IValue &value, held *h, pt_result_t *r)
{
    std::string &to = h->texts.emplace_back();
    int64_t elements = 0;

    for (const c10::IValue &element : value.toListRef()) {
        const std::string &text = element.toStringRef();
        char prefix[BK_BYTES_PREFIX];

        if (text.size() > UINT32_MAX) {
            return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "element %"
                PRId64 " of an output has %zu bytes, more than 4 GiB",
                elements, text.size());
        }
        bk_bytes_put_len(prefix, static_cast<uint32_t>(text.size()));
        to.append(prefix, sizeof(prefix));
        to.append(text);
        elements++;
    }

    int64_t &dim = h->counts.emplace_back(elements);
    *r = pt_result_t { &dim, to.data(), to.size(), 1, PT_TEXTS };
    return nullptr;
}

void
tensor_write(const c10::IValue &value, held *h, pt_result_t *r)
{
    at::Tensor &t = h->tensors.emplace_back(
        value.toTensor().cpu().resolve_conj().resolve_neg().contiguous());

    *r = pt_result_t { t.sizes().data(), t.const_data_ptr(), t.nbytes(),
        static_cast<uint32_t>(t.dim()), static_cast<int>(t.scalar_type()) };
}

TRITONSERVER_Error *
results_fill(const script *s, const c10::IValue &value, held *h,
    pt_results_t *results)
{
    std::vector<c10::IValue> values { value };

    if (value.isTuple()) {
        values = value.toTupleRef().elements().vec();
    }
    if (values.size() != s->output_count) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "forward() gave %zu "
            "values in place of %" PRIu32, values.size(), s->output_count);
    }

    /* results point into these, so that they must not move */
    h->tensors.reserve(values.size());
    h->texts.reserve(values.size());
    h->counts.reserve(values.size());
    for (size_t i = 0; i < values.size(); i++) {
        TRITONSERVER_Error *err = nullptr;

        if (values[i].isTensor()) {
            tensor_write(values[i], h, &results->items[i]);

        } else if (values[i].isList()) {
            err = texts_write(values[i], h, &results->items[i]);

        } else {
            err = bk_err_new(TRITONSERVER_ERROR_INTERNAL, "output %zu is of "
                "type %s", i, values[i].tagKind().c_str());
        }
        if (err != nullptr) {
            return err;
        }
    }

    return nullptr;
}

/* ---- a run */

/* A model that keeps an input, or a view of it, gets a copy: the memory is soon
   another request's. */
TRITONSERVER_Error *
inputs_own(held *h)
{
    for (const at::Tensor &t : h->inputs) {
        const c10::Storage &storage = t.storage();
        size_t size = storage.nbytes();

        if (size > 0 && (t.use_count() > 1 || storage.use_count() > 1)) {
            at::DataPtr own = c10::GetAllocator(c10::kCPU)->allocate(size);
            memcpy(own.get(), storage.data(), size);
            storage.unsafeGetStorageImpl()->set_data_ptr_noswap(
                std::move(own));
        }
    }

    return nullptr;
}

/* Of the process, as in Triton: untouched unless the model sets them. */
void
switches_set(const pt_options_t *o)
{
    if (o->jit_profiling != PT_UNSET) {
        torch::jit::getProfilingMode() = o->jit_profiling == PT_ON;
    }
    if (o->jit_executor != PT_UNSET) {
        torch::jit::getExecutorMode() = o->jit_executor == PT_ON;
    }
    if (o->tensor_fuser != PT_UNSET) {
        torch::jit::setTensorExprFuserEnabled(o->tensor_fuser == PT_ON);
    }
}

TRITONSERVER_Error *
script_run(void *self, const pt_argument_t *arguments, uint32_t count,
    pt_results_t *results)
{
    script *s = static_cast<script *>(self);

    return guarded("PyTorch execute failure", [&]() -> TRITONSERVER_Error * {
        torch::jit::GraphOptimizerEnabledGuard optimized(
            s->options.optimized);
        c10::InferenceMode inference(s->options.inference_mode);
        at::NoGradGuard no_grad;
        std::vector<c10::IValue> stack;
        held *h = new held;

        results->held = h;
        switches_set(&s->options);
        if (s->device != PT_CPU) {
            at::globalContext().setUserEnabledCuDNN(s->options.cudnn);
        }

        stack.reserve(count);
        h->inputs.reserve(count);
        TRITONSERVER_Error *err = stack_fill(s, arguments, count, &stack, h);
        if (err != nullptr) {
            return err;
        }

        stack_default(s, arguments, count, &stack);
        c10::IValue value = s->module.forward(std::move(stack));
        err = results_fill(s, value, h, results);
        if (s->device != PT_CPU && s->options.cache_cleaning) {
            at::accelerator::emptyCache();
        }

        return err;
    });
}

void
script_release(void *, pt_results_t *results)
{
    held *h = static_cast<held *>(results->held);

    h->tensors.clear();                 /* results may be inputs             */
    bk_err_log(guarded("input of a run", [&]() -> TRITONSERVER_Error * {
        return inputs_own(h);
    }), "memory that a model has kept");
    delete h;
    results->held = nullptr;
}

void
script_free(void *self)
{
    delete static_cast<script *>(self);
}

} /* namespace */

/* ---- the border: C from here on */

extern "C" TRITONSERVER_Error *
pt_script_open(pt_engine_t **out, const char *model, const char *path,
    const pt_options_t *options, int device)
{
    pt_engine_t *engine = static_cast<pt_engine_t *>(
        calloc(1, sizeof(*engine)));
    if (engine == nullptr) {
        return bk_err_nomem("state of a TorchScript model");
    }

    engine->functions = &script_functions;
    std::string what = std::string("failed to load model '") + model
        + "': \"" + path + "\"";
    TRITONSERVER_Error *err = guarded(what.c_str(),
        [&]() -> TRITONSERVER_Error * {
        c10::InferenceMode inference(options->inference_mode);
        std::unique_ptr<script> s(new script { {}, *options, device, false,
            0 });

        s->module = device == PT_ANY_DEVICE ? torch::jit::load(path)
            : torch::jit::load(path, device_of(device));
        s->module.eval();
        engine->self = s.release();
        TRITONSERVER_Error *fault = signature_read(
            static_cast<script *>(engine->self), &engine->signature);
        return fault == nullptr ? nullptr
            : bk_err_add(fault, "\"%s\"", path);
    });
    if (err != nullptr) {
        pt_engine_free(engine);
        return err;
    }

    *out = engine;
    return nullptr;
}

extern "C" TRITONSERVER_Error *
pt_threads_default(int count)
{
    return guarded("number of threads", [&]() -> TRITONSERVER_Error * {
        at::set_num_threads(count);
        return nullptr;
    });
}

/* at::set_num_threads would count for all threads that start later. */
extern "C" void
pt_threads_use(int count)
{
    static thread_local int used;

    if (used == count) {
        return;
    }

    /* a thread's first question sets the default */
    (void) at::get_num_threads();
    omp_set_num_threads(count);
    if (MKL_Set_Num_Threads_Local != nullptr) {
        MKL_Set_Num_Threads_Local(count);
    }
    used = count;
}

extern "C" TRITONSERVER_Error *
pt_threads_inter_op(int count)
{
    return guarded("INTER_OP_THREAD_COUNT", [&]() -> TRITONSERVER_Error * {
        at::set_num_interop_threads(count);
        return nullptr;
    });
}

extern "C" TRITONSERVER_Error *
pt_gpu_check(int device)
{
    return guarded("PyTorch has no GPU", [&]() -> TRITONSERVER_Error * {
        int count = at::globalContext().hasCUDA()
            ? static_cast<int>(at::accelerator::deviceCount()) : 0;

        return device < count ? nullptr : bk_err_new(
            TRITONSERVER_ERROR_UNAVAILABLE, "instance of KIND_GPU on GPU %d: "
            "this PyTorch can use %d GPUs", device, count);
    });
}
