/*
 * The journal: what cores note that are killed in the midst of a write, and
 * what lies in it that no core has written.  The input is a row of steps of
 * the lifecycle (loads, unloads, models forgotten), deaths after so many bytes
 * of a write, and bytes that somebody else writes, also between the start's
 * two looks at it.  A core that starts has what was noted: all that was done
 * before, and the step in which its predecessor died wholly or not at all.
 *
 * The lifecycle and the two calls that write are this file's own (linker
 * option --wrap).
 */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/include/channel.h"
#include "core/server/journal.h"
#include "t/fuzz/check.h"
#include "t/fuzz/input.h"
#include "t/fuzz/silent_log.h"

#define FILE_SIZE (20u << 10)
#define MODELS    6u
#define KEPT      4u            /* names of what requests set                */
#define METHOD    INF_METHOD_SYSTEM_SHM_REGISTER
#define TEXT_MAX  300u          /* of a configuration                        */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t offset);
ssize_t __real_pwrite(int fd, const void *data, size_t len, off_t offset);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t len);
int __real_fallocate(int fd, int mode, off_t offset, off_t len);
inf_err_t *__wrap_inf_lifecycle_start(inf_lifecycle_t *lc, bool all,
    char *const *names, size_t count, const inf_model_id_t *except,
    size_t except_count);
inf_err_t *__wrap_inf_lifecycle_restore(inf_lifecycle_t *lc,
    const inf_model_id_t *id, inf_override_t *override, bool implicit);
void __wrap_inf_lifecycle_hold(inf_lifecycle_t *lc);
void __wrap_inf_lifecycle_release(inf_lifecycle_t *lc);

typedef struct {
    bool     loaded;
    bool     implicit;
    uint32_t text;              /* length of its configuration; 0: none      */
} model_t;

static struct {
    input_t        in;
    int            fd;
    inf_journal_t *journal;

    model_t        models[MODELS];      /* as they were noted              */
    model_t        found[MODELS];       /* as the start restores them      */
    uint32_t       kept[KEPT];          /* lengths; 0: nothing             */
    uint32_t       replayed[KEPT];
    bool           foreign;             /* somebody else has written       */
    bool           dying;
    uint64_t       left;                /* bytes a dying core still writes */
    uint32_t       late;                /* foreign writes while it starts  */
} world;

static const inf_model_id_t ids[MODELS] = {
    { .name = "one", .space = "" }, { .name = "two", .space = "" },
    { .name = "one", .space = "/a" }, { .name = "one", .space = "/b" },
    { .name = "a-longer-name", .space = "s3://bucket/path" },
    { .name = "three", .space = "" }
};

static void
write_foreign(void)
{
    uint64_t where = input_next(&world.in, 2) % (FILE_SIZE - 8);
    uint64_t what = input_next(&world.in, 4);

    check(__real_pwrite(world.fd, &what, 4, (off_t) where) == 4);
    world.foreign = true;
}

/* ---- what the journal calls ---- */

/* A dead core has written so much and no more; nobody sees its results. */
ssize_t
__wrap_pwrite(int fd, const void *data, size_t len, off_t offset)
{
    size_t n = len;

    if (world.dying) {
        n = n < world.left ? n : (size_t) world.left;
        world.left -= n;
    }

    check(n == 0 || __real_pwrite(fd, data, n, offset) == (ssize_t) n);
    return (ssize_t) len;
}

int
__wrap_fallocate(int fd, int mode, off_t offset, off_t len)
{
    return world.dying && world.left == 0 ? 0
        : __real_fallocate(fd, mode, offset, len);
}

inf_err_t *
__wrap_inf_lifecycle_start(inf_lifecycle_t *lc, bool all, char *const *names,
    size_t count, const inf_model_id_t *except, size_t except_count)
{
    check(lc == NULL && !all && count == 1 && strcmp(names[0], "three") == 0);
    for (size_t i = 0; i < except_count; i++) {
        check(except[i].name != NULL && except[i].space != NULL);
    }

    for (; world.late > 0; world.late--) {
        write_foreign();
    }
    return NULL;
}

inf_err_t *
__wrap_inf_lifecycle_restore(inf_lifecycle_t *lc, const inf_model_id_t *id,
    inf_override_t *override, bool implicit)
{
    uint32_t i = 0;

    check(lc == NULL);
    while (i < MODELS && (strcmp(ids[i].name, id->name) != 0
            || strcmp(ids[i].space, id->space) != 0))
    {
        i++;
    }
    check(world.foreign || i < MODELS);

    if (i < MODELS) {
        check(world.foreign || !world.found[i].loaded);
        world.found[i] = (model_t) {
            .loaded = true,
            .implicit = implicit,
            .text = override != NULL && override->config != NULL
                ? (uint32_t) strlen(override->config) : 0
        };
    }

    inf_override_free(override);
    return NULL;
}

void
__wrap_inf_lifecycle_hold(inf_lifecycle_t *lc)
{
    check(lc == NULL);
}

void
__wrap_inf_lifecycle_release(inf_lifecycle_t *lc)
{
    check(lc == NULL);
}

/* ---- steps ---- */

static bool
same(const model_t *a, const model_t *b)
{
    return a->loaded == b->loaded && (!a->loaded
        || (a->implicit == b->implicit && a->text == b->text));
}

/* A message is a digit, its name, as often as it is long. */
static inf_err_t *
replay(void *userp, uint16_t method, inf_slice_t message)
{
    check(userp == &world);
    check(world.foreign || (method == METHOD && message.len > 0));

    uint32_t k = message.len > 0 ? (uint32_t) message.data[0] - '0' : KEPT;
    check(world.foreign || (k < KEPT && world.replayed[k] == 0));
    if (method != METHOD || k >= KEPT) {
        return inf_err_new(INF_ERR_INVALID_ARG, "nobody's");
    }

    world.replayed[k] = (uint32_t) message.len;
    return NULL;
}

/* i, k: whose step the last core died in; MODELS, KEPT: in none. */
static void
core_starts(uint32_t i, const model_t *before, uint32_t k, uint32_t length)
{
    static char three[] = "three";
    char *const names[] = { three };

    memset(world.found, 0, sizeof(world.found));
    inf_err_t *err = inf_journal_open(world.fd, false, names, 1,
        &world.journal);
    check(err == NULL);
    memset(world.replayed, 0, sizeof(world.replayed));
    inf_journal_replay(world.journal, METHOD, replay, &world);
    err = inf_journal_restore(world.journal, NULL, false);
    check(err == NULL);

    for (uint32_t m = 0; m < MODELS && !world.foreign; m++) {
        check(same(&world.found[m], &world.models[m])
            || (m == i && same(&world.found[m], before)));
    }
    memcpy(world.models, world.found, sizeof(world.models));
    for (uint32_t n = 0; n < KEPT && !world.foreign; n++) {
        check(world.replayed[n] == world.kept[n]
            || (n == k && world.replayed[n] == length));
    }
    memcpy(world.kept, world.replayed, sizeof(world.kept));
}

/* length 0: it is forgotten. */
static void
note_kept(uint32_t k, uint32_t length)
{
    char text[TEXT_MAX];
    const char name[] = { (char) ('0' + k), '\0' };

    memset(text, name[0], sizeof(text));
    if (length > 0) {
        inf_journal_keep(world.journal, METHOD, name, inf_slice(text, length));
    } else {
        inf_journal_forget(world.journal, METHOD, name);
    }
    world.kept[k] = length;
}

static void
note_load(uint32_t i, uint64_t how)
{
    static char text[TEXT_MAX + 1];
    inf_override_t *override = NULL;
    inf_err_t *err = NULL;
    uint32_t len = how & 2
        ? (uint32_t) input_next(&world.in, 2) % TEXT_MAX : 0;

    if (len > 0) {
        memset(text, 'c', sizeof(text));
        err = inf_override_new(&override);
        check(err == NULL);
        err = inf_override_set_config(override, inf_slice(text, len));
        check(err == NULL);
    }

    inf_journal_notes.loaded(world.journal, &ids[i], override, how & 1);
    world.models[i] = (model_t) { true, how & 1, len };
    inf_override_free(override);
}

static void
step(void)
{
    uint64_t op = input_next(&world.in, 1);
    uint32_t i = (uint32_t) (op >> 5) % MODELS;
    model_t before = world.models[i];
    uint32_t k = (uint32_t) (op >> 5) % KEPT;
    uint32_t length = world.kept[k];

    world.dying = op & 0x10;
    world.left = world.dying
        ? input_next(&world.in, 1) * (op & 8 ? 40 : 1) : 0;

    switch (op & 7) {

    case 0:
    case 1:
        note_load(i, input_next(&world.in, 1));
        break;

    case 2:
        inf_journal_notes.unloaded(world.journal, &ids[i], op & 8);
        world.models[i].loaded = false;
        break;

    case 3:
        inf_journal_notes.forgotten(world.journal, &ids[i]);
        world.models[i].loaded = false;
        break;

    case 4:
        if (op & 8) {
            note_kept(k, (uint32_t) input_next(&world.in, 2) % TEXT_MAX);
        } else {
            world.dying = true;
            world.left = 0;
        }
        break;

    case 5:
        world.late = (uint32_t) input_next(&world.in, 1) % 4;
        world.dying = true;
        break;

    case 6:
        write_foreign();
        break;

    default:                    /* many, so that the half is full           */
        world.dying = false;
        for (uint32_t n = 0; n < 4 * MODELS; n++) {
            note_load(n % MODELS, 0);
        }
        break;
    }

    if (world.dying) {
        world.dying = false;
        inf_journal_close(world.journal);
        core_starts(i, &before, k, length);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    silent_log_begin();
    memset(&world, 0, sizeof(world));
    world.in = (input_t) { data, size < 1024 ? size : 1024 };
    world.fd = memfd_create("journal", MFD_CLOEXEC);
    check(world.fd >= 0 && ftruncate(world.fd, FILE_SIZE) == 0);
    core_starts(MODELS, NULL, KEPT, 0);

    while (world.in.size > 0) {
        step();
    }

    inf_journal_close(world.journal);
    core_starts(MODELS, NULL, KEPT, 0);
    inf_journal_close(world.journal);
    close(world.fd);
    return 0;
}
