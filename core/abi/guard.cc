/* guard.cc - see guard.h */

#include <cxxabi.h>
#include <cstdlib>
#include <exception>
#include <typeinfo>

extern "C" {
#include "core/base/error.h"
}
#include "core/abi/guard.h"

/* Inside a handler. */
static inf_err_t *
thrown(const char *entry, const char *text)
{
    const std::type_info *type = abi::__cxa_current_exception_type();
    char *name = type == nullptr ? nullptr
        : abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr);

    inf_err_t *err = inf_err_new(INF_ERR_INTERNAL,
        "%s threw an exception%s%s%s%s", entry, name != nullptr ? ", " : "",
        name != nullptr ? name : "", text != nullptr ? ": " : "",
        text != nullptr ? text : "");
    std::free(name);
    return err;
}

template <typename Call>
static inf_err_t *
guarded(const char *entry, Call call)
{
    try {
        return call();

    } catch (abi::__forced_unwind &) {
        throw;                          /* the thread ends: not ours to stop */

    } catch (const std::exception &e) {
        return thrown(entry, e.what());

    } catch (...) {
        return thrown(entry, nullptr);
    }
}

inf_err_t *
inf_guard_one(const char *entry, inf_guard_one_fn fn, void *object)
{
    return guarded(entry, [=] { return fn(object); });
}

inf_err_t *
inf_guard_two(const char *entry, inf_guard_two_fn fn, void *object,
    void *other)
{
    return guarded(entry, [=] { return fn(object, other); });
}

inf_err_t *
inf_guard_execute(const char *entry, inf_guard_execute_fn fn, void *instance,
    void **requests, uint32_t count)
{
    return guarded(entry, [=] { return fn(instance, requests, count); });
}
