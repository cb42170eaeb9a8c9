/* runtime.c - see model.h: what all models of the backend share */

#include "model.h"

#include <dlfcn.h>
#include <libgen.h>
#include <stdlib.h>

#define DEFAULT_MAX_BATCH_SIZE 4

static char *own_directory(void);

TRITONSERVER_Error *
trees_runtime_open(void **out, TRITONBACKEND_Backend *backend)
{
    const bk_json_t *settings;
    bk_json_t *root = NULL;

    TRITONSERVER_Error *err = bk_backend_settings(backend, &root, &settings);
    if (err != NULL) {
        return err;
    }

    trees_runtime_t *rt = calloc(1, sizeof(*rt));
    char *directory = own_directory();
    if (rt == NULL || directory == NULL) {
        err = bk_err_nomem("state of the trees backend");
    } else {
        rt->default_max_batch_size = bk_json_int(bk_json_member(settings,
            "default-max-batch-size"), DEFAULT_MAX_BATCH_SIZE);
        err = treelite_open(&rt->treelite, bk_json_string(
            bk_json_member(settings, "treelite-library"), NULL), directory);
    }

    bk_json_free(root);
    free(directory);
    if (err != NULL) {
        free(rt);
        return err;
    }

    *out = rt;
    return NULL;
}

void
trees_runtime_close(void *runtime)
{
    free(runtime);
}

/* Where this library's file is, with links followed: one that has another
 * backend's name leads here. */
static char *
own_directory(void)
{
    Dl_info info;

    if (dladdr(own_directory, &info) == 0) {
        return NULL;
    }

    char *path = realpath(info.dli_fname, NULL);
    return path == NULL ? NULL : dirname(path);
}
