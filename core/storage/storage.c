#include "core/storage/storage.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/object_address.h"
#include "core/base/path.h"
#include "core/storage/storage_local.h"
#include "core/storage/storage_object.h"


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

    char *path = strndup(address, inf_path_len(address));
    if (path == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = inf_storage_local_open(out);
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
