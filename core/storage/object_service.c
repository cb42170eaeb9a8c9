#include "core/storage/object_service.h"

#include <string.h>

#include "core/base/refs.h"

static const inf_object_service_t *const services[] = {
    &inf_service_s3,
    &inf_service_gs,
    &inf_service_as,
};

const inf_object_service_t *
inf_object_service_of(const char *address)
{
    for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++) {
        const char *scheme = services[i]->scheme;
        if (strncmp(address, scheme, strlen(scheme)) == 0) {
            return services[i];
        }
    }
    return NULL;
}

inf_object_credentials_t *
inf_object_credentials_ref(inf_object_credentials_t *who)
{
    atomic_fetch_add_explicit(&who->refs, 1, memory_order_relaxed);
    return who;
}

void
inf_object_credentials_unref(const inf_object_service_t *service,
    inf_object_credentials_t *who)
{
    if (who != NULL && inf_refs_drop(&who->refs)) {
        service->free(who);
    }
}
