/*
 * lifecycle_world.h - a lifecycle over a temporary tree, with fake
 *                     backends.
 *
 * Owner    The test; begin and end come in pairs.  Between begin and
 *          inf_lifecycle_new it opens the repositories and may change the
 *          options.
 * Thread   one.
 * Units    none.
 * Errors   a test fails at once.
 * Route    unit tests only
 */

#ifndef INF_T_REPOSITORY_LIFECYCLE_WORLD_H
#define INF_T_REPOSITORY_LIFECYCLE_WORLD_H

#include "core_config_of.h"
#include "repository/fake_plugin.h"
#include "repository/index_rows.h"
#include "repository/process_exit.h"
#include "temp_tree.h"

#include "core/base/clock.h"
#include "core/repository/lifecycle.h"
#include "core/repository/polling.h"
#include "core/storage/storage.h"

#define SECOND     UINT64_C(1000000000)
#define PLACES_MAX 4

/* Of every model that can be loaded. */
#define TENSORS "input { name: 'A' data_type: TYPE_FP32 dims: 1 }"            \
    " output { name: 'B' data_type: TYPE_FP32 dims: 1 } "

typedef struct {
    char                   *tree;
    char                   *backends;
    char                   *places[PLACES_MAX];
    inf_core_config_t      *core_config;    /* a reference; values may be
                                               changed before the lifecycle
                                               begins                        */
    inf_repositories_t      repositories;
    inf_registry_t          registry;
    inf_lifecycle_options_t options;
    inf_lifecycle_t        *lc;
    inf_pollers_t          *pollers;
    inf_poll_t             *poll;           /* of some tests                 */
    index_rows_t            index;
} lifecycle_world_t;

static inline void
lifecycle_world_changed(void *userp)
{
    (void) userp;
}

/* names of places, NULL at the end. */
static inline void
lifecycle_world_begin(lifecycle_world_t *w, const char *const *names)
{
    fake_reset();
    memset(w, 0, sizeof(*w));
    w->tree = tree_new();
    tree_file(w->tree, "backends/x/libtriton_x.so", "");
    w->backends = strdup(tree_path(w->tree, "backends"));
    w->core_config = core_config_of("backend_directories: '%s' auto_complete:"
        " false code_upload: true load_threads: 2", w->backends);
    for (size_t i = 0; names[i] != NULL; i++) {
        assert_true(i < PLACES_MAX);
        tree_dir(w->tree, names[i]);
        w->places[i] = strdup(tree_path(w->tree, names[i]));
    }
    inf_registry_init(&w->registry);
    assert_ok(inf_pollers_new(&w->repositories, &w->pollers));
    w->options = (inf_lifecycle_options_t) {
        .plugins = &fake_ops,
        .registry = &w->registry,
        .repositories = &w->repositories,
        .changed = lifecycle_world_changed,
        .core_config = w->core_config
    };
}

/* Instead of the world's; takes it. */
static inline void
lifecycle_world_core_config(lifecycle_world_t *w, inf_core_config_t *config)
{
    inf_core_config_unref(w->core_config);
    w->core_config = config;
    w->options.core_config = config;
}

/* The options have been changed; nothing is loaded yet. */
static inline void
lifecycle_world_restart(lifecycle_world_t *w)
{
    assert_true(inf_lifecycle_stop(w->lc, 60 * SECOND));
    inf_lifecycle_free(w->lc);
    assert_ok(inf_lifecycle_new(&w->options, &w->lc));
}

static inline void
lifecycle_world_end(lifecycle_world_t *w)
{
    fake_release();
    inf_poll_stop(w->poll);
    inf_pollers_stop(w->pollers);
    assert_true(inf_lifecycle_stop(w->lc, 60 * SECOND));
    inf_poll_free(w->poll);
    inf_pollers_free(w->pollers);
    inf_lifecycle_free(w->lc);
    inf_registry_fini(&w->registry);
    inf_repositories_close(&w->repositories);
    inf_core_config_unref(w->core_config);
    tree_free(w->tree);
    free(w->backends);
    for (size_t i = 0; i < PLACES_MAX; i++) {
        free(w->places[i]);
    }
    fake_reset();
}

/* Version 1; config lacks only the tensors. */
static inline void
lifecycle_world_add_model(const lifecycle_world_t *w, const char *place,
    const char *name, const char *config)
{
    char path[300];
    char text[1024];

    snprintf(path, sizeof(path), "%s/%s/config.pbtxt", place, name);
    snprintf(text, sizeof(text), "%s " TENSORS, config);
    tree_file(w->tree, path, text);
    snprintf(path, sizeof(path), "%s/%s/1/data", place, name);
    tree_file(w->tree, path, "1");
}

/* How a load ended. */
typedef struct {
    _Atomic int  told;
    inf_err_t   *err;
} answer_t;

static inline void
load_done(void *userp, inf_err_t *err)
{
    answer_t *a = userp;
    a->err = err;
    a->told = 1;
}

static inline void
wait_told(const answer_t *a)
{
    uint64_t until = inf_clock_ns() + 60 * SECOND;
    while (!a->told) {
        assert_true(inf_clock_ns() < until);
        usleep(1000);
    }
}

#endif /* INF_T_REPOSITORY_LIFECYCLE_WORLD_H */
