/* sending.c - see sending.h */

#include "sending.h"

#include <stdlib.h>

#include "messages.h"
#include "threads.h"

typedef struct {
    py_job_t       job;         /* must be first                             */
    py_link_t     *link;
    uint32_t       slot;
    py_outgoing_t  response;
} sending_t;

static void sending_run(py_job_t *job);

/* Without a thread, sends in this one. */
TRITONSERVER_Error *
py_sending_start(py_link_t *link, py_live_t *live, uint32_t slot,
    bool final, py_reader_t *r)
{
    TRITONSERVER_Error *err = py_link_claim(link, slot);
    if (err != NULL) {
        return err;
    }

    sending_t *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        py_link_unclaim(link, slot);
        return bk_err_nomem("a response");
    }

    err = py_live_respond(live, link, r, final, &s->response);
    if (err != NULL) {
        py_link_unclaim(link, slot);
        free(s);
        return err;
    }

    s->job.run = sending_run;
    s->link = py_link_ref(link);
    s->slot = slot;
    err = py_threads_run(&s->job);
    if (err != NULL) {
        bk_err_log(err, "a sender's response");
        sending_run(&s->job);
    }
    return NULL;
}

static void
sending_run(py_job_t *job)
{
    sending_t *s = (sending_t *) job;
    py_writer_t none = { 0 };

    TRITONSERVER_Error *err = py_outgoing_send(&s->response);
    py_link_unclaim(s->link, s->slot);
    py_reply(s->link, s->slot, err, &none);
    bk_err_drop(err);
    py_link_unref(s->link);
    free(s);
}
