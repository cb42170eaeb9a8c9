#include "core/repository/backend_search.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/buf.h"
#include "core/base/near_name.h"
#include "core/base/path.h"
#include "core/model/config_storage.h"
#include "core/storage/storage_local.h"

#define PYTHON_RUNTIME "model.py"
#define PYTHON_LIBRARY "libtriton_python.so"
#define PYTHON_ARCHIVE "pb_exec_env_model.py.tar.gz"

/* A search; the searched directories go into the error's text. */
typedef struct {
    const inf_backend_query_t *q;
    const char                *runtime;     /* never NULL                  */
    inf_backend_location_t    *out;
    inf_buf_t                  searched;    /* 'dir' 'dir' ...             */
} search_t;

static inf_err_t *search_check_names(const search_t *s);
static inf_err_t *search_library(search_t *s, const char *library);
static inf_err_t *search_python(search_t *s);
static inf_err_t *search_python_dir(search_t *s, const char *dir);
static inf_err_t *search_local_dirs(search_t *s, const char *library);
static inf_err_t *search_globals(search_t *s, const char *backend,
    const char *library);
static inf_err_t *search_dir(search_t *s, const char *dir, const char *name,
    const char *library);
static inf_err_t *search_not_found(search_t *s, const char *library);
static void list_backends(const search_t *s, inf_buf_t *known,
    inf_buf_t *meant);
static inf_err_t *escape_error(const search_t *s, const char *library,
    const char *dir);
static bool is_file(const char *path);

inf_err_t *
inf_backend_search(const inf_backend_query_t *q, inf_backend_location_t *out)
{
    search_t s = {
        .q = q, .out = out, .runtime = q->runtime != NULL ? q->runtime : ""
    };

    *out = (inf_backend_location_t) { NULL, NULL, false, NULL };
    inf_buf_init(&s.searched);

    inf_err_t *err = search_check_names(&s);
    if (err == NULL && strcmp(s.runtime, PYTHON_RUNTIME) == 0) {
        err = search_python(&s);

    } else if (err == NULL) {
        char *library = NULL;
        int len = s.runtime[0] != '\0' ? asprintf(&library, "%s", s.runtime)
            : asprintf(&library, "libtriton_%s.so", q->backend);

        err = len < 0 ? inf_err_nomem() : search_library(&s, library);
        if (len >= 0) {
            free(library);
        }
    }

    if (err == NULL) {
        err = inf_buf_status(&s.searched);
    }

    inf_buf_fini(&s.searched);
    if (err != NULL) {
        inf_backend_location_fini(out);
    }

    return err;
}

void
inf_backend_location_fini(inf_backend_location_t *l)
{
    free(l->library);
    free(l->dir);
    free(l->environment);
    *l = (inf_backend_location_t) { NULL, NULL, false, NULL };
}

/* Rejects names that lead out of the searched directories. */
static inf_err_t *
search_check_names(const search_t *s)
{
    const char *backend = s->q->backend;

    if (backend[0] == '\0' || strchr(backend, '/') != NULL
        || strcmp(backend, ".") == 0 || strcmp(backend, "..") == 0)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "backend name '%s' of model "
            "'%s' must be the name of a backend, not a path", backend,
            s->q->model_name);
    }

    if (s->runtime[0] != '\0' && !inf_path_is_inner(s->runtime)) {
        return escape_error(s, s->runtime, s->q->model_dir);
    }

    return NULL;
}

static inf_err_t *
search_library(search_t *s, const char *library)
{
    inf_err_t *err = search_local_dirs(s, library);
    if (err == NULL) {
        err = search_globals(s, s->q->backend, library);
    }
    if (err != NULL || s->out->library != NULL) {
        return err;
    }

    return s->runtime[0] == '\0' ? search_python(s)
        : search_not_found(s, library);
}

/* Searches a backend that is a model.py in its global directory. */
static inf_err_t *
search_python(search_t *s)
{
    for (size_t i = 0; i < s->q->global_count; i++) {
        char *dir = inf_path_join(s->q->global_dirs[i], s->q->backend);
        char *script = dir == NULL ? NULL : inf_path_join(dir,
            PYTHON_RUNTIME);
        inf_err_t *err = NULL;

        if (script == NULL) {
            err = inf_err_nomem();

        } else if (is_file(script)) {
            err = search_python_dir(s, dir);

        } else if (s->runtime[0] != '\0') {
            inf_buf_printf(&s->searched, "'%s' ", dir);
        }

        free(script);
        free(dir);
        if (err != NULL || s->out->library != NULL) {
            return err;
        }
    }

    return search_not_found(s, PYTHON_RUNTIME);
}

/* Uses dir, which holds model.py, with the library of backend python. */
static inf_err_t *
search_python_dir(search_t *s, const char *dir)
{
    inf_err_t *err = search_local_dirs(s, PYTHON_LIBRARY);
    if (err == NULL) {
        err = search_dir(s, dir, NULL, PYTHON_LIBRARY);
    }
    if (err == NULL) {
        err = search_globals(s, "python", PYTHON_LIBRARY);
    }
    if (err != NULL) {
        return err;
    }

    if (s->out->library == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "unable to find backend "
            "library '%s' for model '%s', which backend '%s' in '%s' needs, "
            "searched: %s", PYTHON_LIBRARY, s->q->model_name, s->q->backend,
            dir, s->searched.failed ? "" : s->searched.data);
    }

    free(s->out->dir);
    s->out->dir = strdup(dir);
    s->out->python_based = true;

    char *archive = inf_path_join(dir, PYTHON_ARCHIVE);
    if (s->out->dir == NULL || archive == NULL) {
        free(archive);
        return inf_err_nomem();
    }

    if (is_file(archive)) {
        s->out->environment = archive;
    } else {
        free(archive);
    }
    return NULL;
}

/* Searches the model's directories: the version's first. */
static inf_err_t *
search_local_dirs(search_t *s, const char *library)
{
    char version[32];
    snprintf(version, sizeof(version), "%" PRId64, s->q->version);

    inf_err_t *err = search_dir(s, s->q->model_dir, version, library);
    return err != NULL ? err : search_dir(s, s->q->model_dir, NULL, library);
}

static inf_err_t *
search_globals(search_t *s, const char *backend, const char *library)
{
    inf_err_t *err = NULL;

    for (size_t i = 0; err == NULL && i < s->q->global_count; i++) {
        err = search_dir(s, s->q->global_dirs[i], backend, library);
    }
    return err;
}

/* Searches the directory of that name in dir, or dir itself (name NULL), unless
   the library is found.  A configured name must not leave the directory through
   a link; the default name is the operator's, who may use links. */
static inf_err_t *
search_dir(search_t *s, const char *dir, const char *name, const char *library)
{
    if (s->out->library != NULL) {
        return NULL;
    }

    char *place = name != NULL ? inf_path_join(dir, name) : strdup(dir);
    char *path = place != NULL ? inf_path_join(place, library) : NULL;
    bool found = path != NULL && is_file(path);
    inf_err_t *err = path == NULL ? inf_err_nomem()
        : found && s->runtime[0] != '\0' ? inf_local_contain(place, path)
        : NULL;
    if (path != NULL) {
        inf_buf_printf(&s->searched, "'%s' ", place);
    }
    if (found && err == NULL) {
        s->out->library = path;
        s->out->dir = place;
        return NULL;
    }

    if (err != NULL && inf_err_code(err) == INF_ERR_UNSUPPORTED) {
        inf_err_free(err);
        err = escape_error(s, library, place);
    }
    free(path);
    free(place);
    return err;
}

static inf_err_t *
search_not_found(search_t *s, const char *library)
{
    if (s->searched.failed) {
        return inf_err_nomem();
    }

    const char *searched = s->searched.len > 0 ? s->searched.data : "nowhere";

    if (s->runtime[0] == '\0') {
        inf_buf_t known, meant;

        inf_buf_init(&known);
        inf_buf_init(&meant);
        list_backends(s, &known, &meant);
        inf_err_t *err = inf_err_new(INF_ERR_INVALID_ARG, "unable to find"
            " backend library for backend '%s', try specifying runtime on the"
            " model configuration. Model '%s', searched: %s(there are:%s)%s;"
            " docs/install.md says where others come from",
            s->q->backend, s->q->model_name, searched,
            known.len > 0 && !known.failed ? known.data : " none",
            meant.len > 0 && !meant.failed ? meant.data : "");
        inf_buf_fini(&meant);
        inf_buf_fini(&known);
        return err;
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "unable to find backend library "
        "'%s' for model '%s', searched: %s", library, s->q->model_name,
        searched);
}

/* Lists the backends of the global directories as " a b c", and the one whose
   name is most similar to the model's. */
static void
list_backends(const search_t *s, inf_buf_t *known, inf_buf_t *meant)
{
    inf_near_name_t near;

    inf_near_name_init(&near, inf_slice(s->q->backend,
        strlen(s->q->backend)));
    for (size_t i = 0; i < s->q->global_count; i++) {
        const char *dir = s->q->global_dirs[i];
        struct dirent **entries;
        int count = scandir(dir, &entries, NULL, alphasort);

        for (int k = 0; k < count; k++) {
            const char *name = entries[k]->d_name;
            char path[PATH_MAX];

            int len = snprintf(path, sizeof(path), "%s/%s/libtriton_%s.so",
                dir, name, name);
            bool found = len < (int) sizeof(path) && is_file(path);
            len = snprintf(path, sizeof(path), "%s/%s/" PYTHON_RUNTIME, dir,
                name);
            if (found || (len < (int) sizeof(path) && is_file(path))) {
                inf_buf_printf(known, " %s", name);
                inf_near_name_offer(&near, name);
                if (near.best != NULL) {
                    near.best = NULL;       /* its text is freed with the
                                               entry                         */
                    inf_buf_reset(meant);
                    inf_buf_printf(meant, ", did you mean '%s'?", name);
                }
            }
            free(entries[k]);
        }
        if (count >= 0) {
            free(entries);
        }
    }
}

static inf_err_t *
escape_error(const search_t *s, const char *library, const char *dir)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "backend library name '%s' "
        "escapes backend directory '%s', for model '%s', check model config "
        "runtime field", library, dir, s->q->model_name);
}

static bool
is_file(const char *path)
{
    struct stat sb;
    return stat(path, &sb) == 0 && S_ISREG(sb.st_mode);
}
