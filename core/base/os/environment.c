#include "core/base/os/environment.h"

#include <stdlib.h>

const char *
inf_environment(const char *name)
{
    const char *value = getenv(name);
    return value == NULL || value[0] == '\0' ? NULL : value;
}
