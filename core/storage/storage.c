#include "core/storage/storage.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/object_address.h"
#include "core/storage/storage_local.h"
#include "core/storage/storage_object.h"

static inf_err_t *storage_scheme_check(const char *address);
static char *storage_root(const char *address);

inf_err_t *
inf_storage_open(const char *address, inf_storage_t **out, char **root)
{
    if (address[0] == '\0') {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "model repository path must not be empty");
    }

    if (inf_storage_address_is_remote(address)) {
        return inf_storage_object_open(address, out, root);
    }

    inf_err_t *err = storage_scheme_check(address);
    if (err != NULL) {
        return err;
    }

    char *path = storage_root(address);
    if (path == NULL) {
        return inf_err_nomem();
    }

    err = inf_storage_local_open(out);
    if (err != NULL) {
        free(path);
        return err;
    }

    *root = path;
    return NULL;
}

bool
inf_storage_address_is_remote(const char *address)
{
    return inf_object_address_has_scheme(address);
}

/* Rejects known schemes without a storage; any other text is a local path. */
static inf_err_t *
storage_scheme_check(const char *address)
{
    static const char *const schemes[] = { "as://" };

    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (strncmp(address, schemes[i], strlen(schemes[i])) == 0) {
            return inf_err_new(INF_ERR_UNSUPPORTED, "model repository '%s': "
                "%s file-system not supported by this build; use a local "
                "directory, s3:// or gs://", address, schemes[i]);
        }
    }

    return NULL;
}

static char *
storage_root(const char *address)
{
    size_t len = strlen(address);
    while (len > 1 && address[len - 1] == '/') {
        len--;
    }

    return strndup(address, len);
}
