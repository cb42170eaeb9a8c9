/*
 * index_rows.h - a lifecycle's index as text, a line for each version:
 *                "name/version STATE reason".
 *
 * Owner    The text is the caller's memory; what does not fit is cut.
 * Thread   one.
 * Units    none.
 * Errors   a test fails at once.
 * Route    unit tests only
 */

#ifndef INF_T_REPOSITORY_INDEX_ROWS_H
#define INF_T_REPOSITORY_INDEX_ROWS_H

#include "temp_tree.h"

#include "core/base/clock.h"
#include "core/repository/lifecycle_parts.h"

#define INDEX_ROWS_MAX 16384u

typedef struct {
    char text[INDEX_ROWS_MAX];
} index_rows_t;

static inline void
index_rows_add(void *userp, const char *name, int64_t version,
    inf_version_state_t state, const char *reason)
{
    index_rows_t *rows = userp;
    size_t len = strlen(rows->text);
    snprintf(rows->text + len, sizeof(rows->text) - len, "%s/%lld %s %s\n",
        name, (long long) version, inf_version_state_name(state), reason);
}

/* All models that were ever loaded, by id, versions ascending. */
static inline void
index_rows_all(inf_lifecycle_t *lc, inf_lifecycle_row_fn fn, void *userp)
{
    const inf_model_record_t *r = NULL;

    inf_lock(&lc->publish_lock);
    inf_lock(&lc->lock);
    while ((r = inf_model_set_next(&lc->set, r)) != NULL) {
        inf_model_record_rows(r, false, fn, userp);
    }
    inf_unlock(&lc->lock);
    inf_unlock(&lc->publish_lock);
}

static inline const char *
index_rows(index_rows_t *rows, inf_lifecycle_t *lc)
{
    rows->text[0] = '\0';
    index_rows_all(lc, index_rows_add, rows);
    return rows->text;
}

/* As the repository API lists them. */
static inline const char *
index_rows_listed(index_rows_t *rows, inf_lifecycle_t *lc, bool ready_only)
{
    rows->text[0] = '\0';
    assert_ok(inf_lifecycle_repository_index(lc, ready_only, index_rows_add,
        rows));
    return rows->text;
}

/* Taking apart runs on threads of its own. */
static inline void
index_rows_wait(index_rows_t *rows, inf_lifecycle_t *lc, const char *row)
{
    uint64_t until = inf_clock_ns() + UINT64_C(60000000000);
    while (strstr(index_rows(rows, lc), row) == NULL) {
        if (inf_clock_ns() > until) {
            fail_msg("no \"%s\" in \"%s\"", row, rows->text);
        }
        usleep(1000);
    }
}

#endif /* INF_T_REPOSITORY_INDEX_ROWS_H */
