#include "core/repository/reason.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/refs.h"

#define ROOM 4096u              /* nearly every text fits                    */

inf_reason_t inf_reason_unloaded = {
    .refs = 1, .text = "unloaded", .msg = "unloaded"
};
inf_reason_t inf_reason_ambiguous = {
    .refs = 1, .text = "model appears in two or more repositories",
    .msg = "model appears in two or more repositories"
};
inf_reason_t inf_reason_stuck = {
    .refs = 1, .text = "all instances execute for longer than inference_stuck",
    .msg = "all instances execute for longer than inference_stuck"
};
inf_reason_t inf_reason_nomem = {
    .refs = 1, .text = "Unavailable: out of memory", .msg = "out of memory"
};

static inf_reason_t *reason_alloc(size_t size);
static inf_reason_t *join(const char *code, const char *msg);

inf_reason_t *
inf_reason_of(const inf_err_t *err)
{
    inf_reason_t *r = join(inf_err_code_string(inf_err_code(err)),
        inf_err_msg(err));

    if (r != &inf_reason_nomem) {
        r->quarantined = inf_err_cause(err) == INF_CAUSE_QUARANTINED;
    }
    return r;
}

inf_reason_t *
inf_reason_new(const char *text)
{
    return join(NULL, text);
}

/* Creates a reason; code may be NULL. */
static inf_reason_t *
join(const char *code, const char *msg)
{
    size_t code_len = code != NULL ? strlen(code) + 2 : 0;
    size_t size = strlen(msg) + 1;

    inf_reason_t *r = reason_alloc(code_len + size);
    if (r == NULL) {
        return inf_reason_ref(&inf_reason_nomem);
    }

    char *text = (char *) (r + 1);
    if (code != NULL) {
        memcpy(text, code, code_len - 2);
        memcpy(text + code_len - 2, ": ", 2);
    }
    memcpy(text + code_len, msg, size);
    r->msg = text + code_len;
    return r;
}

/* NULL: out of memory. */
static inf_reason_t *
reason_alloc(size_t size)
{
    inf_reason_t *r = malloc(sizeof(*r) + size);

    if (r != NULL) {
        atomic_init(&r->refs, 1);
        r->text = (const char *) (r + 1);
        r->msg = r->text;
        r->quarantined = false;
    }
    return r;
}

inf_reason_t *
inf_reason_ref(inf_reason_t *r)
{
    if (r != NULL) {
        atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    }
    return r;
}

void
inf_reason_unref(inf_reason_t *r)
{
    if (r != NULL && inf_refs_drop(&r->refs)) {
        assert(r->text == (const char *) (r + 1));
        free(r);
    }
}

void
inf_reason_room_renew(inf_reason_room_t *room)
{
    if (room->reason == &inf_reason_nomem) {
        return;
    }

    room->size = room->size == 0 ? ROOM
        : room->reason != NULL ? room->size * 2 : room->size;
    inf_reason_unref(room->reason);
    room->reason = reason_alloc(room->size);
    if (room->reason == NULL) {
        room->reason = inf_reason_ref(&inf_reason_nomem);
    }
}

void
inf_reason_room_fini(inf_reason_room_t *room)
{
    inf_reason_unref(room->reason);
    room->reason = NULL;
}

char *
inf_reason_room_text(inf_reason_room_t *room)
{
    return room->reason == NULL || room->reason == &inf_reason_nomem ? NULL
        : (char *) (room->reason + 1);
}

inf_reason_t *
inf_reason_room_take(inf_reason_room_t *room, size_t code_len)
{
    inf_reason_t *r = room->reason;

    if (r == &inf_reason_nomem) {
        return inf_reason_ref(r);       /* used for all later ones, too      */
    }
    room->reason = NULL;
    r->msg = r->text + code_len;
    return r;
}
