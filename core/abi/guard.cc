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
thrown(const inf_guard_who_t &who, const char *text)
{
    const std::type_info *type = abi::__cxa_current_exception_type();
    char *name = type == nullptr ? nullptr
        : abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr);

    inf_err_t *err = inf_err_new(INF_ERR_INTERNAL,
        "%s of '%s' threw an exception%s%s%s%s", who.entry, who.plugin,
        name != nullptr ? ", " : "", name != nullptr ? name : "",
        text != nullptr ? ": " : "", text != nullptr ? text : "");
    std::free(name);
    return err;
}

template <typename Call>
static inf_err_t *
guarded(const inf_guard_who_t &who, Call call)
{
    try {
        return call();

    } catch (abi::__forced_unwind &) {
        throw;                          /* the thread ends: not ours to stop */

    } catch (const std::exception &e) {
        return thrown(who, e.what());

    } catch (...) {
        return thrown(who, nullptr);
    }
}

inf_err_t *
inf_guard_one(inf_guard_who_t who, inf_guard_one_fn fn, void *object)
{
    return guarded(who, [=] { return fn(object); });
}

inf_err_t *
inf_guard_two(inf_guard_who_t who, inf_guard_two_fn fn, void *object,
    void *other)
{
    return guarded(who, [=] { return fn(object, other); });
}

inf_err_t *
inf_guard_execute(inf_guard_who_t who, inf_guard_execute_fn fn, void *instance,
    void **requests, uint32_t count)
{
    return guarded(who, [=] { return fn(instance, requests, count); });
}
