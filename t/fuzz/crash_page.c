/*
 * The crash page as a core finds it and as others may change it meanwhile.
 * The input is a row of steps: cores that start and die of signals while they
 * execute or not, loads that begin, are late and end, and bytes that somebody
 * writes.
 * Nothing that lies there may do more than have a model left out; as long as
 * nobody else writes, a model is left out when two cores have died while it was
 * loading, or five while it was executing, and no earlier, until it is loaded
 * by request or from other files.
 */

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/server/crash_page.h"
#include "t/fuzz/check.h"
#include "t/fuzz/input.h"
#include "t/fuzz/silent_log.h"

#define PAGE_SIZE_ (1u << 20)
#define MODELS     4u
#define FILES      UINT64_C(7)      /* a stamp                               */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    input_t           in;
    int               fd;
    inf_crash_page_t *page;

    void             *mark[MODELS];
    bool              loading[MODELS];
    bool              late[MODELS];         /* others do not wait for it    */
    uint32_t          deaths[MODELS];       /* while it was loading         */
    uint32_t          crashes[MODELS];      /* while it was executing       */
    uint32_t          own;                  /* the load of this thread; MODELS:
                                               none                         */
    uint64_t          seen[2][MODELS];      /* by this core, which rejected it:
                                               stamps, for loads and executions */
    bool              foreign;              /* somebody else has written    */
} world_t;

static const char *const names[MODELS] = { "one", "two", "one",
    "a-name-that-is-rather-long-but-fits-into-the-page" };
static const int64_t versions[MODELS] = { 1, 1, 2, INT64_MAX };

static void
page_open(world_t *w)
{
    inf_err_t *err = inf_crash_page_open(w->fd, &w->page);
    check(err == NULL);
}

/* Loads end one way or the other; a suspect loads while nothing else does. */
static void
load_end(world_t *w, uint32_t i)
{
    if (w->loading[i]) {
        inf_crash_page_watch.end(w->page, w->mark[i], w->late[i]);
        w->own = MODELS;
        w->loading[i] = false;
        w->late[i] = false;
        w->deaths[i] = 0;
    }
}

/* The thread has no load of its own, as after a late load's end. */
static void
own_end(world_t *w)
{
    inf_crash_page_watch.end(w->page, NULL, true);
    w->own = MODELS;
}

/* Given up, and still under way. */
static void
load_late(world_t *w, uint32_t i)
{
    if (w->loading[i] && !w->late[i]) {
        inf_crash_page_watch.late(w->page, w->mark[i]);
        w->late[i] = true;
    }
}

/* count is 0 again where a quarantine ends. */
static bool
is_rejected(uint32_t *count, uint32_t limit, uint64_t *seen,
    const inf_load_attempt_t *load)
{
    if (*count < limit) {
        return false;
    }
    if (load->requested || (*seen != 0 && *seen != load->stamp)) {
        *count = 0;
        *seen = 0;
        return false;
    }
    *seen = load->stamp;
    return true;
}

static void
load_begin(world_t *w, uint32_t i, bool requested, uint64_t stamp)
{
    const inf_load_attempt_t load = {
        .name = names[i], .version = versions[i], .stamp = stamp,
        .requested = requested
    };

    if (w->loading[i]) {
        return;
    }

    /* one thread: what loads alone would wait for ever */
    for (uint32_t k = 0; k < MODELS; k++) {
        if (!w->late[k]) {
            load_end(w, k);
        }
    }

    inf_err_t *err = inf_crash_page_watch.begin(w->page, &load, &w->mark[i]);
    bool out = is_rejected(&w->deaths[i], 2, &w->seen[0][i], &load)
        || is_rejected(&w->crashes[i], 5, &w->seen[1][i], &load);
    check(w->foreign || (err != NULL) == out);
    w->loading[i] = err == NULL;
    w->own = err == NULL ? i : w->own;
    inf_err_free(err);
}

/* The core is gone: its loads don't end, the next one judges.  The signal came
   to this thread, so that it counts against the thread's own load, or against
   all loads if it has none.  culprit executes; MODELS: nobody does. */
static void
core_dies(world_t *w, int signo, uint32_t culprit, bool certain)
{
    bool loads = false;

    for (uint32_t i = 0; i < MODELS; i++) {
        loads |= w->loading[i];
    }
    bool executes = culprit < MODELS && signo != 0 && (certain || !loads);

    if (culprit < MODELS) {
        inf_crash_page_note_execution(w->page, names[culprit],
            versions[culprit], certain);
    }
    if (signo != 0) {
        inf_crash_page_note_signal(w->page, signo);
    }
    if (executes) {
        w->crashes[culprit]++;
    }

    for (uint32_t i = 0; i < MODELS; i++) {
        w->seen[0][i] = 0;
        w->seen[1][i] = 0;
        if (w->loading[i]) {
            bool blamed = signo != 0 && !executes
                && (w->own == MODELS || w->own == i);
            w->deaths[i] = blamed ? w->deaths[i] + 1 : 0;
            w->loading[i] = false;
            w->late[i] = false;
        }
    }

    /* a dead process holds no lock; its threads and the mapping go with it */
    own_end(w);
    inf_crash_page_close(w->page);
    page_open(w);
}

static void
write_foreign(world_t *w, uint64_t offset, size_t len)
{
    uint8_t bytes[8];
    uint64_t v = input_next(&w->in, len);

    memcpy(bytes, &v, sizeof(bytes));
    check(pwrite(w->fd, bytes, len, (off_t) (offset % (PAGE_SIZE_ - 8)))
        == (ssize_t) len);
    w->foreign = true;
}

static void
step(world_t *w)
{
    uint64_t op = input_next(&w->in, 1);
    uint32_t model = (uint32_t) (op >> 4) % MODELS;

    switch (op & 7) {

    case 0:
        load_begin(w, model, op & 8, FILES);
        break;

    case 1:
        load_begin(w, model, false, op & 8 ? FILES + 1 : FILES);
        break;

    case 2:
        if (op & 8) {
            load_late(w, model);
        } else {
            load_end(w, model);
        }
        break;

    case 3:
        if (op & 8) {
            own_end(w);
        }
        core_dies(w, op & 0x80 ? SIGSEGV : 0, MODELS, false);
        break;

    case 4:
        core_dies(w, (int) (int8_t) input_next(&w->in, 1), model, op & 8);
        break;

    case 5:                     /* the head and the first records          */
        write_foreign(w, input_next(&w->in, 1) * 8, 8);
        break;

    case 6:
        write_foreign(w, input_next(&w->in, 3), 1);
        break;

    default:                    /* a name without an end                   */
        for (uint64_t at = 512 * (op >> 3), end = at + 512; at < end;
             at += 8)
        {
            check(pwrite(w->fd, "nnnnnnnn", 8, (off_t) at) == 8);
        }
        w->foreign = true;
        break;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    world_t w = { .in = { data, size < 512 ? size : 512 }, .own = MODELS };

    silent_log_begin();
    w.fd = memfd_create("crash-page", MFD_CLOEXEC);
    check(w.fd >= 0 && ftruncate(w.fd, PAGE_SIZE_) == 0);
    page_open(&w);

    while (w.in.size > 0) {
        step(&w);
    }

    for (uint32_t i = 0; i < MODELS; i++) {
        load_end(&w, i);
    }
    inf_crash_page_close(w.page);
    close(w.fd);
    return 0;
}
