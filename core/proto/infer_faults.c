/* infer_faults.c - errors that JSON's syntax does not include; the first one is
   reported at the end of its object. */

#include <math.h>

#include "core/proto/infer_members.h"
#include "core/proto/message_utf8.h"
#include "core/proto/number.h"

static bool is_infinite(const char *p, size_t len);

void
inf_description_check(inf_description_t *d, const inf_json_tokens_t *t,
    inf_json_event_t event)
{
    const char *p = d->json + t->start;
    size_t len = (size_t) (t->pos - t->start);

    if (event == INF_JSON_NUMBER && is_infinite(p, len)) {
        inf_description_note(d, "The number is out of range.", t->start);
    }

    if ((event == INF_JSON_STRING || event == INF_JSON_KEY)
        && !inf_utf8_valid(inf_slice(p, len)))
    {
        inf_description_note(d, "Invalid UTF-8 in string.", t->start);
    }
}

static bool
is_infinite(const char *p, size_t len)
{
    inf_number_t n;

    return inf_number_read(p, p + len, &n) != 0
           && isinf(inf_number_double(&n));
}

void
inf_description_note(inf_description_t *d, const char *reason, uint64_t at)
{
    if (d->fault == NULL) {
        d->fault = reason;
        d->fault_at = at;
    }
}

inf_err_t *
inf_description_fault(const inf_description_t *d)
{
    unsigned long long at = d->fault_at;

    if (d->fault == NULL) {
        return NULL;
    }

    if (d->object->what == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           INF_INFER_PARSE_FAILED "id and parameters: %s at"
                           " %llu", d->fault, at);
    }

    return inf_err_new(INF_ERR_INVALID_ARG,
                       INF_INFER_PARSE_FAILED "%s %u: %s at %llu",
                       d->object->what, d->index, d->fault, at);
}
