#include "core/model/memory_usage.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/model.h"

static bool gather_locked(const inf_model_t *model, inf_memory_row_t *rows,
    size_t room, size_t *count) INF_NEEDS(model->usage_lock);
static void append_locked(const inf_memory_usage_t *usage,
    inf_memory_row_t *rows, size_t room, size_t *count);
static int row_order(const void *a, const void *b);
static size_t merge(inf_memory_row_t *rows, size_t count);

inf_err_t *
inf_model_report_memory(inf_model_t *model, inf_memory_usage_t *usage,
    const inf_memory_row_t *rows, size_t count)
{
    inf_memory_row_t *copy = NULL;

    if (count > 0) {
        copy = calloc(count, sizeof(*copy));
        if (copy == NULL) {
            return inf_err_nomem();
        }
        memcpy(copy, rows, count * sizeof(*copy));
    }

    inf_lock(&model->usage_lock);
    inf_memory_row_t *old = usage->rows;
    usage->rows = copy;
    usage->count = count;
    inf_unlock(&model->usage_lock);

    free(old);
    return NULL;
}

inf_err_t *
inf_model_memory_usage(inf_model_t *model, inf_memory_row_t **rows,
    size_t *count)
{
    inf_memory_row_t *all = NULL;
    size_t room = 0;
    bool fits = false;

    *rows = NULL;
    *count = 0;
    while (!fits) {                 /* measure, allocate unlocked, try again */
        inf_lock(&model->usage_lock);
        size_t need;
        fits = gather_locked(model, all, room, &need);
        inf_unlock(&model->usage_lock);

        if (fits) {
            *count = need;
        } else {
            free(all);
            all = calloc(need, sizeof(*all));
            if (all == NULL) {
                return inf_err_nomem();
            }
            room = need;
        }
    }

    if (*count > 0) {
        qsort(all, *count, sizeof(*all), row_order);
        *count = merge(all, *count);
    }
    *rows = all;
    return NULL;
}

/* Copies all rows; false: *count exceeds room. */
static bool
gather_locked(const inf_model_t *model, inf_memory_row_t *rows, size_t room,
    size_t *count)
{
    *count = 0;
    append_locked(&model->memory, rows, room, count);
    for (uint32_t i = 0; i < model->instance_count; i++) {
        append_locked(&model->instances[i]->memory, rows, room, count);
    }
    return *count <= room;
}

static void
append_locked(const inf_memory_usage_t *usage, inf_memory_row_t *rows,
    size_t room, size_t *count)
{
    if (usage->count > 0 && *count + usage->count <= room) {
        memcpy(&rows[*count], usage->rows, usage->count * sizeof(*rows));
    }
    *count += usage->count;
}

static int
row_order(const void *a, const void *b)
{
    const inf_memory_row_t *x = a;
    const inf_memory_row_t *y = b;

    if (x->memory_type != y->memory_type) {
        return x->memory_type < y->memory_type ? -1 : 1;
    }
    return x->memory_id == y->memory_id ? 0
        : x->memory_id < y->memory_id ? -1 : 1;
}

/* Merges equal neighbours; returns the number of rows. */
static size_t
merge(inf_memory_row_t *rows, size_t count)
{
    size_t last = 0;

    for (size_t i = 1; i < count; i++) {
        if (row_order(&rows[last], &rows[i]) == 0) {
            rows[last].byte_size += rows[i].byte_size;
        } else {
            rows[++last] = rows[i];
        }
    }
    return last + 1;
}
