#include "core/service/ready_models.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;
    int64_t     version;
} ready_row_t;

typedef struct {
    inf_arena_t  arena;
    ready_row_t *rows;
    size_t       count;
    size_t       cap;
    bool         failed;
} ready_rows_t;

static void ready_row(void *userp, const char *name, int64_t version,
    inf_version_state_t state, const char *reason);
static void find_models(inf_server_t *server, const ready_rows_t *rows,
    inf_ready_models_t *list);

inf_err_t *
inf_ready_models_init(inf_ready_models_t *list, inf_server_t *server)
{
    ready_rows_t rows = { .rows = NULL };
    *list = (inf_ready_models_t) { .models = NULL };

    inf_arena_init(&rows.arena);
    inf_lifecycle_index(server->lifecycle, ready_row, &rows);

    bool ok = !rows.failed;
    if (ok && rows.count > 0) {
        list->models = calloc(rows.count, sizeof(inf_model_t *));
        ok = list->models != NULL;
    }
    if (ok) {
        find_models(server, &rows, list);
    }

    free(rows.rows);
    inf_arena_fini(&rows.arena);
    return ok ? NULL : inf_err_nomem();
}

void
inf_ready_models_fini(inf_ready_models_t *list)
{
    for (size_t i = 0; i < list->count; i++) {
        inf_model_unref(list->models[i]);
    }
    free(list->models);
    *list = (inf_ready_models_t) { .models = NULL };
}

inf_err_t *
inf_ready_models_ask(inf_server_t *server, bool *ready)
{
    inf_ready_models_t list;
    inf_err_t *err = inf_ready_models_init(&list, server);

    *ready = err == NULL;
    for (size_t i = 0; *ready && i < list.count; i++) {
        *ready = inf_server_instances_ready(list.models[i]);
    }

    inf_ready_models_fini(&list);
    return err;
}

static void
ready_row(void *userp, const char *name, int64_t version,
    inf_version_state_t state, const char *reason)
{
    ready_rows_t *rows = userp;
    (void) reason;

    if (state != INF_VERSION_READY || rows->failed) {
        return;
    }
    if (rows->count == rows->cap) {
        size_t cap = rows->cap == 0 ? 64 : rows->cap * 2;
        ready_row_t *wider = realloc(rows->rows, cap * sizeof(*wider));
        if (wider == NULL) {
            rows->failed = true;
            return;
        }
        rows->rows = wider;
        rows->cap = cap;
    }

    const char *copy = inf_arena_strdup(&rows->arena, name, strlen(name));
    if (copy == NULL) {
        rows->failed = true;
        return;
    }
    rows->rows[rows->count++] = (ready_row_t) { copy, version };
}

/* One that went since it was listed is left out. */
static void
find_models(inf_server_t *server, const ready_rows_t *rows,
    inf_ready_models_t *list)
{
    inf_registry_reader_t reader;
    inf_registry_reader_init(&reader, &server->registry);

    for (size_t i = 0; i < rows->count; i++) {
        inf_err_t *gone = inf_registry_find(&reader,
            inf_slice_str(rows->rows[i].name), rows->rows[i].version,
            &list->models[list->count]);
        list->count += gone == NULL;
        inf_err_free(gone);
    }

    inf_registry_reader_fini(&reader);
}
