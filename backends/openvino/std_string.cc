/* std_string.cc - see std_string.h */

#include "std_string.h"

#include <exception>
#include <string>

bool
vino_string_set(void *array, uint64_t index, const char *text, size_t len)
{
    try {
        static_cast<std::string *>(array)[index].assign(text, len);
        return true;

    } catch (const std::exception &) {
        return false;
    }
}

const char *
vino_string_get(const void *array, uint64_t index, size_t *len)
{
    const std::string &s = static_cast<const std::string *>(array)[index];

    *len = s.size();
    return s.data();
}
