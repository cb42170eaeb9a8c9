#include "core/repository/model_edit.h"

#include <assert.h>
#include <stdlib.h>

inf_err_t *
inf_edit_new(inf_edit_kind_t kind, inf_edit_t **out)
{
    inf_edit_t *edit = calloc(1, sizeof(*edit));
    *out = edit;
    if (edit == NULL) {
        return inf_err_nomem();
    }

    inf_link_init(&edit->link);
    edit->kind = kind;
    return NULL;
}

void
inf_edit_free(inf_edit_t *edit)
{
    if (edit == NULL) {
        return;
    }

    assert(edit->caller == NULL && inf_list_empty(&edit->link));
    inf_override_free(edit->override);
    inf_inventory_unref(edit->inventory);
    free(edit->plan);
    free(edit->why);
    free(edit);
}

bool
inf_edit_unloads(const inf_edit_t *edit)
{
    return edit->kind == INF_EDIT_UNLOAD || edit->kind == INF_EDIT_UNLOAD_NAME;
}

inf_err_t *
inf_edit_call(inf_edit_t *edit, void (*done)(void *userp, inf_err_t *err),
    void *userp)
{
    if (done == NULL) {
        return NULL;
    }

    edit->caller = calloc(1, sizeof(*edit->caller));
    if (edit->caller == NULL) {
        return inf_err_nomem();
    }

    *edit->caller = (inf_caller_t) {
        .left = 1, .order = INF_EDIT_UNHEARD, .done = done, .userp = userp
    };
    return NULL;
}

void
inf_edit_share_caller(inf_edit_t *edit, inf_edit_t *more, size_t order)
{
    more->caller = edit->caller;
    more->order = order;
    if (more->caller != NULL) {
        more->caller->left++;
    }
}

inf_caller_t *
inf_edit_leave_caller(inf_edit_t *edit, inf_err_t *err)
{
    inf_caller_t *caller = edit->caller;

    edit->caller = NULL;
    if (caller != NULL && err != NULL && edit->order < caller->order) {
        inf_err_free(caller->err);
        caller->err = err;
        caller->order = edit->order;
    } else {
        inf_err_free(err);                  /* logged where it arose         */
    }
    return caller != NULL && --caller->left == 0 ? caller : NULL;
}

void
inf_caller_answer(inf_caller_t *caller)
{
    if (caller != NULL) {
        caller->done(caller->userp, caller->err);
        free(caller);
    }
}
