/*
 * A worker that breaks each rule of channel.h in turn, against the core
 * program.  A worker that keeps the rules runs beside it all the time: the
 * core stays, and that worker's answers stay right.
 */

#include "service/evil_channel.h"

#include <errno.h>

#include "core/base/log.h"
#include "core_calls.pb-c.h"

#define SECOND UINT64_C(1000000000)

/* Before any thread, which fork would leave behind, is there. */
static int
setup(void **state)
{
    static const char echo[] = "backend: 'identity'"
        " input { name: 'IN' data_type: TYPE_FP32 dims: -1 }"
        " output { name: 'OUT' data_type: TYPE_FP32 dims: -1 }";
    static const char slow[] = "backend: 'identity'"
        " input { name: 'IN' data_type: TYPE_FP32 dims: -1 }"
        " output { name: 'OUT' data_type: TYPE_FP32 dims: -1 }"
        " parameters { key: 'execute_delay_ms'"
        " value { string_value: '100' } }";
    static const char words[] = "backend: 'identity'"
        " input { name: 'IN' data_type: TYPE_STRING dims: -1 }"
        " output { name: 'OUT' data_type: TYPE_STRING dims: -1 }";

    (void) state;
    w.tree = tree_new();
    tree_file(w.tree, "repository/echo/config.pbtxt", echo);
    tree_file(w.tree, "repository/echo/1/data", "");
    tree_file(w.tree, "repository/slow/config.pbtxt", slow);
    tree_file(w.tree, "repository/slow/1/data", "");
    tree_file(w.tree, "repository/words/config.pbtxt", words);
    tree_file(w.tree, "repository/words/1/data", "");
    tree_file(w.tree, "elsewhere/trojan/config.pbtxt", echo);
    tree_file(w.tree, "elsewhere/trojan/1/data", "");

    core_start();
    wait_log("model=echo version=1 is ready");
    wait_log("model=slow version=1 is ready");
    wait_log("model=words version=1 is ready");
    good_start();
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    good_stop();
    int status = core_stop();
    tree_free(w.tree);
    return status;
}

/* ---- registration -------------------------------------------------------- */

static void
expect_rejected(evil_t *e, const char *text)
{
    evil_register(e);
    inf_welcome_t welcome = evil_welcome(e);
    assert_int_not_equal(welcome.status, INF_OK);
    if (strstr(welcome.text, text) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", welcome.text, text);
    }
    evil_free(e);
}

static void
a_hello_that_lies_is_rejected(void **state)
{
    (void) state;
    evil_t e;

#define LIE(text, change)                                                     \
    do {                                                                      \
        evil_make(&e);                                                        \
        change;                                                               \
        expect_rejected(&e, text);                                            \
    } while (0)

    LIE("format", e.hello.magic++);
    LIE("format", e.hello.size--);
    LIE("restart nginx", e.hello.version = e.hello.min_version = 99);
    LIE("restart nginx", e.hello.version = 0);
    LIE("kind", e.hello.kind = INF_HELLO_CONFIG);
    LIE("layout", e.hello.ring_entries *= 2);
    LIE("layout", e.hello.entry_size = 0);
    LIE("layout", e.hello.slots = UINT32_MAX);
    LIE("layout", e.rings->complete_offset += 64);
    LIE("layout", e.rings->slots = UINT32_MAX);
    LIE("announced", e.hello.rings_size = UINT64_MAX);
    LIE("announced", e.hello.request_arena_size *= 2);
    LIE("announced", e.hello.request_arena_size = 0);
    all_is_well();
}

static void
replace(evil_t *e, int which, int fd)
{
    assert_true(fd >= 0);
    close(e->fds[which]);
    e->fds[which] = fd;
}

static int
memfd(uint64_t size, unsigned seals)
{
    int fd = memfd_create("evil", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_int_equal(ftruncate(fd, (off_t) size), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void
descriptors_of_other_kinds_are_rejected(void **state)
{
    (void) state;
    evil_t e;

    LIE("not sealed", replace(&e, INF_FD_RINGS,
        memfd(e.hello.rings_size, 0)));
    LIE("not sealed", replace(&e, INF_FD_REQUEST_ARENA,
        memfd(e.hello.request_arena_size, F_SEAL_GROW)));
    LIE("announced", replace(&e, INF_FD_REQUEST_ARENA,
        memfd(4096, F_SEAL_SHRINK)));
    LIE("not a memfd", replace(&e, INF_FD_REQUEST_ARENA,
        open("/dev/zero", O_RDWR | O_CLOEXEC)));
    LIE("not a memfd", replace(&e, INF_FD_RINGS,
        dup(e.fds[INF_FD_SUBMIT_EVENTFD])));
    LIE("not an eventfd", replace(&e, INF_FD_SUBMIT_EVENTFD,
        dup(e.control)));
    LIE("not an eventfd", replace(&e, INF_FD_SUBMIT_EVENTFD,
        open("/dev/null", O_RDWR | O_CLOEXEC)));

    /* these leave nobody to tell */
    for (int i = 0; i < 3; i++) {
        evil_make(&e);
        replace(&e, INF_FD_CONTROL, i == 0 ? memfd(4096, 0) : i == 1
            ? dup(e.fds[INF_FD_SUBMIT_EVENTFD])
            : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        evil_register(&e);
        evil_free(&e);
    }
    for (size_t count = 0; count <= INF_SOCKET_MAX_FDS; count++) {
        int fds[INF_SOCKET_MAX_FDS];
        evil_make(&e);
        for (size_t i = 0; i < INF_SOCKET_MAX_FDS; i++) {
            fds[i] = e.fds[0];          /* the same one again and again      */
        }
        send_hello(&e.hello, sizeof(e.hello), fds, count);
        evil_free(&e);
    }
    all_is_well();
}

static void
junk_at_the_registration_socket_is_ignored(void **state)
{
    (void) state;
    char junk[2 * sizeof(inf_hello_t)];

    memset(junk, 0x5a, sizeof(junk));
    for (size_t len = 0; len <= sizeof(junk); len += 3) {
        int fds[INF_SOCKET_MAX_FDS] = { w.lease, w.lease, w.lease, w.lease,
            w.lease, w.lease, w.lease, w.lease };
        send_hello(junk, len, fds, len % (INF_SOCKET_MAX_FDS + 1));
    }
    all_is_well();
}

static void
send_config(int socket_fd, const char *repository, uint64_t generation)
{
    inf_hello_t hello = {
        .magic = INF_CHANNEL_MAGIC, .version = INF_CHANNEL_VERSION,
        .min_version = INF_CHANNEL_VERSION, .size = sizeof(inf_hello_t),
        .kind = INF_HELLO_CONFIG, .generation = generation
    };
    int fd = config_fd(tree_path(w.tree, repository), generation);
    inf_socket_result_t result;

    assert_done(inf_socket_send(socket_fd, &hello, sizeof(hello), &fd,
        INF_HELLO_CONFIG_FDS, &result));
    assert_int_equal(result, INF_SOCKET_DONE);
    close(fd);
}

static void
a_configuration_over_the_registration_socket_changes_nothing(void **state)
{
    (void) state;
    evil_t e;

    send_config(w.registration[0], "elsewhere", 7);
    evil_join(&e);                      /* so it was read                    */
    evil_free(&e);
    assert_false(log_has("configuration generation 7 is in force"));

    /* but the supervisor's is taken */
    send_config(w.configure[0], "repository", 8);
    wait_log("configuration generation 8 is in force");
    assert_false(log_has("trojan"));
    all_is_well();
}

static void
half_a_registration_and_silence_hold_up_nobody(void **state)
{
    (void) state;
    evil_t e[3];

    for (int i = 0; i < 3; i++) {       /* the welcome is never read         */
        evil_make(&e[i]);
        evil_register(&e[i]);
    }
    all_is_well();
    for (int i = 0; i < 3; i++) {
        evil_free(&e[i]);
    }

    evil_make(&e[0]);                   /* nobody is there to be welcomed    */
    inf_fds_close(&e[0].control, 1);
    evil_register(&e[0]);
    evil_free(&e[0]);
    all_is_well();
}


/* ---- rings --------------------------------------------------------------- */

static void
impossible_indices_end_that_channel_alone(void **state)
{
    (void) state;
    evil_t e;

    evil_join(&e);                      /* further than the ring is long     */
    e.rings->submit_tail.value = e.layout.ring_entries + 1;
    evil_notify(&e);
    expect_closed(&e);
    evil_free(&e);

    evil_join(&e);                      /* backwards                         */
    assert_true(evil_put(&e, &(inf_submission_t) { .op = INF_SUBMIT_CANCEL }));
    while (__atomic_load_n(&e.rings->submit_head.value, __ATOMIC_ACQUIRE) == 0)
    {
        evil_notify(&e);
        poll(NULL, 0, 1);
    }
    e.rings->submit_tail.value = 0;
    evil_notify(&e);
    expect_closed(&e);
    evil_free(&e);

    evil_join(&e);                      /* answers that were never given     */
    e.rings->complete_head.value = 1u << 31;
    for (uint32_t i = 0; i < 2 * e.layout.ring_entries; i++) {
        if (!evil_put(&e, &(inf_submission_t) { .op = INF_SUBMIT_INFER })) {
            break;
        }
    }
    expect_closed(&e);
    evil_free(&e);

    evil_join(&e);                      /* the layout changes under way      */
    memset(e.rings, 0xff, offsetof(inf_rings_header_t, submit_tail));
    request_t r = evil_echo(&e);
    assert_true(evil_put(&e, &r.submission));
    assert_int_equal(evil_answer(&e, 1, 1), INF_OK);
    evil_free(&e);
    all_is_well();
}

static void
entries_that_point_elsewhere_are_rejected(void **state)
{
    (void) state;
    evil_t e;
    const inf_submission_t cases[] = {
        { .op = INF_SUBMIT_INFER, .offset = EVIL_ARENA, .length = 200 },
        { .op = INF_SUBMIT_INFER, .offset = UINT64_MAX - 99, .length = 200 },
        { .op = INF_SUBMIT_INFER, .offset = 0, .length = UINT64_MAX },
        { .op = INF_SUBMIT_INFER, .offset = 0, .length = INF_RECORD_MAX + 1 },
        { .op = INF_SUBMIT_INFER, .offset = EVIL_ARENA - 100, .length = 200 },
        { .op = INF_SUBMIT_INFER, .offset = 0, .length = 0 },
        { .op = INF_SUBMIT_CALL, .method = 0 },
        { .op = INF_SUBMIT_CALL, .method = UINT16_MAX },
        { .op = INF_SUBMIT_CALL, .method = INF_METHOD_MODEL_READY,
          .offset = 1, .length = EVIL_ARENA },
        { .op = INF_SUBMIT_CALL, .method = INF_METHOD_MODEL_READY,
          .offset = UINT64_MAX, .length = 2, .flags = 0xff }
    };

    evil_join(&e);
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        inf_submission_t s = cases[i];
        s.slot = 3;
        s.generation = i + 1;
        assert_true(evil_put(&e, &s));
        assert_int_equal(evil_answer(&e, 3, i + 1),
            INF_STATUS(INF_ERR_INVALID_ARG));
    }
    for (uint32_t op = 0; op < 256; op++) {     /* nobody to be told         */
        assert_true(evil_put(&e, &(inf_submission_t) { .op = (uint8_t) op,
            .slot = EVIL_SLOTS + op, .offset = UINT64_MAX - op,
            .length = UINT64_MAX / (op + 1) }));
    }
    request_t r = evil_echo(&e);
    assert_true(evil_put(&e, &r.submission));
    assert_int_equal(evil_answer(&e, 1, 1), INF_OK);
    evil_free(&e);
    all_is_well();
}

/* Its models are code, and this configuration has no location for archives. */
static void
an_archive_that_no_location_lets_in_is_rejected(void **state)
{
    (void) state;
    NginxInference__ArchiveLoadRequest q =
        NGINX_INFERENCE__ARCHIVE_LOAD_REQUEST__INIT;
    evil_t e;

    evil_join(&e);
    q.model_name = (char *) "trojan";
    q.url = (char *) tree_path(w.tree, "elsewhere/trojan");
    const inf_submission_t s = {
        .op = INF_SUBMIT_CALL, .method = INF_METHOD_ARCHIVE_LOAD, .slot = 1,
        .generation = 1, .length =
            nginx_inference__archive_load_request__pack(&q, e.arena)
    };
    assert_true(evil_put(&e, &s));
    assert_int_equal(evil_answer(&e, 1, 1),
        INF_STATUS(INF_ERR_UNSUPPORTED));
    assert_false(log_has("model=trojan"));
    evil_free(&e);
    all_is_well();
}

/* Marks that only the core's death, streams or calls give sense to, and a
   worker that says it leaves and goes on. */
static void
marks_without_sense_change_nothing(void **state)
{
    (void) state;
    evil_t e;

    evil_join(&e);
    request_t r = evil_echo(&e);
    for (uint32_t i = 1; i < 256; i++) {
        r.submission.generation = i;
        r.submission.flags = (uint8_t) i;
        r.submission.method = (uint16_t) (i * 257);
        r.submission.deadline_ns = 0;
        r.submission.received_ns = i % 2 == 0 ? UINT64_MAX : 1;
        e.rings->leaving.value = i * 0x01010101u;
        assert_true(evil_put(&e, &r.submission));
        assert_int_equal(evil_answer(&e, 1, i), INF_OK);
    }
    evil_free(&e);
    all_is_well();
}

/* One response is released again and again, and others that it never had. */
static void
releases_of_what_others_hold_free_nothing_twice(void **state)
{
    (void) state;
    evil_t e;
    inf_completion_t c;
    uint64_t offset = UINT64_MAX;
    uint8_t flags = 0;

    evil_join(&e);
    request_t r = evil_echo(&e);
    assert_true(evil_put(&e, &r.submission));
    while ((flags & ALL) != ALL) {
        assert_true(evil_take(&e, &c, PATIENCE_MS));
        flags |= c.flags;
        offset = c.length > 0 ? c.offset : offset;
    }
    assert_int_not_equal(offset, UINT64_MAX);
    for (uint32_t i = 0; i < 1000; i++) {
        inf_submission_t s = { .op = INF_SUBMIT_RELEASE, .offset = offset,
            .flags = (uint8_t) i };
        uint64_t more[INF_RELEASE_MORE];
        for (uint32_t k = 0; k < INF_RELEASE_MORE; k++) {
            more[k] = k % 2 == 0 ? offset : i * 64ull;
        }
        memcpy((char *) &s.length, more, sizeof(more));
        assert_true(evil_put(&e, &s));
    }
    r.submission.generation++;
    assert_true(evil_put(&e, &r.submission));
    assert_int_equal(evil_answer(&e, 1, r.submission.generation), INF_OK);
    evil_free(&e);
    all_is_well();
}

static void
cancels_and_releases_of_nothing_are_ignored(void **state)
{
    (void) state;
    evil_t e;

    evil_join(&e);
    for (uint32_t i = 0; i < 100000; i++) {
        const inf_submission_t s = {
            .op = i % 2 != 0 ? INF_SUBMIT_CANCEL : INF_SUBMIT_RELEASE,
            .slot = i % EVIL_SLOTS, .generation = i,
            .offset = (uint64_t) i * 64 % e.responses_size
        };
        assert_true(evil_put(&e, &s));
    }

    /* released twice, and while it is on its way */
    request_t r = evil_echo(&e);
    assert_true(evil_put(&e, &r.submission));
    inf_completion_t c;
    do {
        assert_true(evil_take(&e, &c, PATIENCE_MS));
    } while (c.length == 0);
    for (int i = 0; i < 3; i++) {
        assert_true(evil_put(&e, &(inf_submission_t) {
            .op = INF_SUBMIT_RELEASE, .offset = c.offset }));
    }
    for (uint32_t i = 0; i < 1000; i++) {
        r.submission.generation = i + 2;
        assert_true(evil_put(&e, &r.submission));
        for (uint64_t at = 0; at < 4096; at += 64) {
            evil_put(&e, &(inf_submission_t) { .op = INF_SUBMIT_RELEASE,
                .offset = at });
        }
        evil_put(&e, &(inf_submission_t) { .op = INF_SUBMIT_CANCEL,
            .slot = 1, .generation = i % 2 != 0 ? i + 2 : i });
        (void) evil_answer(&e, 1, i + 2);
    }
    evil_free(&e);
    all_is_well();
}

/* So what is in flight is bounded by the number of slots. */
static void
a_slot_that_is_taken_is_no_other_requests(void **state)
{
    (void) state;
    evil_t e;
    uint32_t finals = 0;
    inf_completion_t c;

    evil_join(&e);
    request_t r = evil_request(&e, "slow", INF_TYPE_FP32, FLOATS,
        FLOATS * sizeof(float));
    for (uint32_t i = 0; i < 5; i++) {
        r.submission.generation = i;
        assert_true(evil_put(&e, &r.submission));
    }
    while (finals < 5 && evil_take(&e, &c, PATIENCE_MS)) {
        if (c.flags & INF_COMPLETE_FINAL) {
            assert_int_equal(c.generation, finals < 4 ? finals + 1 : 0);
            assert_int_equal(c.status == INF_OK, finals == 4);
            finals++;
        }
    }
    assert_int_equal(finals, 5);
    evil_free(&e);

    evil_join(&e);                      /* with a quick one and no waiting   */
    r = evil_echo(&e);
    finals = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        r.submission.generation = i;
        assert_true(evil_put(&e, &r.submission));
        while (evil_take(&e, &c, 0)) {
            finals += (c.flags & INF_COMPLETE_FINAL) != 0;
        }
    }
    while (finals < 20000 && evil_take(&e, &c, PATIENCE_MS)) {
        finals += (c.flags & INF_COMPLETE_FINAL) != 0;
    }
    assert_int_equal(finals, 20000);
    evil_free(&e);
    all_is_well();
}


/* ---- records ------------------------------------------------------------- */

static uint32_t
next_random(void)
{
    static uint32_t seed = 7;

    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static uint32_t
next_extreme(void)
{
    static const uint32_t list[] = { 0, 1, 7, 8, 9, 63, 64, 65, 255, 256,
        1023, 4096, 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff };

    return list[next_random() % (sizeof(list) / sizeof(list[0]))];
}

/* Tables that overlap, run over and point nowhere; sizes of all kinds. */
static void
damaged_records_are_answered(void **state)
{
    (void) state;
    evil_t e;

    evil_join(&e);
    for (uint32_t i = 0; i < 20000; i++) {
        request_t r = evil_echo(&e);
        for (uint32_t k = next_random() % 3; k < 3; k++) {
            uint32_t value = next_extreme();
            memcpy(e.arena + 4096 + next_random() % (r.size / 4) * 4, &value,
                sizeof(value));
        }
        r.submission.slot = i % EVIL_SLOTS;
        r.submission.generation = i;
        assert_true(evil_put(&e, &r.submission));
        (void) evil_answer(&e, r.submission.slot, i);
    }
    evil_free(&e);
    all_is_well();
}

/* 1 MiB, which each parameter would get a copy of. */
static void
a_text_of_many_parameters_is_rejected(void **state)
{
    (void) state;
    const uint32_t count = 200;
    evil_t e;

    evil_join(&e);
    request_t r = evil_echo(&e);
    r.submission.offset = MIB;
    unsigned char *base = e.arena + MIB;
    inf_infer_record_t *rec = (void *) base;
    inf_record_parameter_t *list = (void *) (base + r.size);
    uint32_t text = (uint32_t) (r.size + count * sizeof(*list));

    memcpy(base, r.record, r.size);
    for (uint32_t i = 0; i < count; i++) {
        list[i] = (inf_record_parameter_t) {
            .name = { text, 1 }, .type = INF_PARAMETER_STRING,
            .text = { text, MIB }
        };
    }
    memset(base + text, 'x', MIB);
    rec->parameter_count = count;
    rec->parameter_offset = (uint32_t) r.size;
    rec->size = text + (uint32_t) MIB;
    r.submission.length = rec->size;

    assert_true(evil_put(&e, &r.submission));
    assert_int_equal(evil_answer(&e, 1, 1), INF_STATUS(INF_ERR_INVALID_ARG));
    evil_free(&e);
    all_is_well();
}

typedef struct {
    uint32_t    *word;
    size_t       count;
    _Atomic bool stop;
} flipper_t;

static void *
flip_main(void *arg)
{
    flipper_t *f = arg;
    uint32_t seed = 1;

    while (!atomic_load_explicit(&f->stop, memory_order_relaxed)) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t at = (seed >> 8) % (uint32_t) f->count;
        uint32_t before = f->word[at];
        __atomic_store_n(&f->word[at], seed, __ATOMIC_RELAXED);
        __atomic_store_n(&f->word[at], UINT32_MAX, __ATOMIC_RELAXED);
        __atomic_store_n(&f->word[at], before, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void
run_while_flipping(evil_t *e, request_t *r, void *from, size_t bytes,
    uint32_t rounds)
{
    flipper_t f = { .word = from, .count = bytes / 4 };
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, flip_main, &f), 0);
    for (uint32_t i = 0; i < rounds; i++) {
        r->submission.generation = i;
        assert_true(evil_put(e, &r->submission));
        (void) evil_answer(e, r->submission.slot, i);
    }
    atomic_store(&f.stop, true);
    pthread_join(thread, NULL);
}

static void
a_record_that_changes_while_it_is_checked_harms_nobody(void **state)
{
    (void) state;
    evil_t e;

    evil_join(&e);
    request_t r = evil_echo(&e);
    run_while_flipping(&e, &r, e.arena + 4096, r.size & ~(size_t) 3, 20000);
    evil_free(&e);
    all_is_well();
}

static void
lengths_of_texts_that_change_while_they_are_read_harm_nobody(void **state)
{
    (void) state;
    enum { WORDS = 64 };
    evil_t e;

    evil_join(&e);
    uint32_t *words = (void *) (e.arena + 8192);
    for (uint32_t i = 0; i < WORDS; i++) {
        words[2 * i] = 4;
        words[2 * i + 1] = i;
    }
    request_t r = evil_request(&e, "words", INF_TYPE_BYTES, WORDS, 8 * WORDS);
    run_while_flipping(&e, &r, words, 8 * WORDS, 20000);
    evil_free(&e);
    all_is_well();
}


/* ---- floods -------------------------------------------------------------- */

static uint64_t
core_memory_kib(void)
{
    char path[64];
    char line[256];
    unsigned long long kib = 0;

    snprintf(path, sizeof(path), "/proc/%d/status", (int) w.core);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL) {
        if (sscanf(line, "RssAnon: %llu", &kib) == 1) {
            break;
        }
    }
    fclose(f);
    return kib;
}

static void
flood_unread(void)
{
    evil_t e;
    const inf_submission_t bad = { .op = INF_SUBMIT_INFER };
    uint32_t n = 0;

    evil_join(&e);
    while (n < 8000000 && evil_put(&e, &bad)) {
        n++;
    }
    assert_true(n < 8000000);
    expect_closed(&e);
    evil_free(&e);
}

/* The core keeps answers for a while, 64 MiB of them, then it lets go of the
   channel. The allocator may keep what is freed for the next flood: so there
   are two, and the bound is less than two times 64 MiB. */
static void
answers_that_are_never_read_end_the_channel(void **state)
{
    (void) state;
    uint64_t before = core_memory_kib();

    for (int i = 0; i < 2; i++) {
        flood_unread();
        all_is_well();
    }
    wait_log("does not read its completions");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_in_range(core_memory_kib(), 0, before + 96 * 1024);
#else
    (void) before;
#endif
}

/* An eventfd whose counter is full holds up who writes to it, unless it is
   nonblocking; both sides share that flag. */
static void
eventfds_that_block_hold_up_nobody(void **state)
{
    (void) state;
    static const uint64_t full = UINT64_MAX - 1;
    evil_t e;
    request_t r;

    for (int round = 0; round < 20; round++) {
        evil_join(&e);
        int fds[] = { e.fds[INF_FD_SUBMIT_EVENTFD],
            e.welcome_fds[INF_WELCOME_FD_CORE],
            e.welcome_fds[INF_WELCOME_FD_EVENTFD] };
        for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
            ssize_t n = write(fds[i], &full, sizeof(full));
            assert_int_equal(n == sizeof(full), i == 0);
            fcntl(fds[i], F_SETFL, fcntl(fds[i], F_GETFL) & ~O_NONBLOCK);
        }

        r = evil_echo(&e);
        e.rings->complete_sleeping.value = 1;
        memcpy((unsigned char *) e.rings + e.layout.submit_offset,
            &r.submission, sizeof(r.submission));
        __atomic_store_n(&e.rings->submit_tail.value, ++e.tail,
            __ATOMIC_RELEASE);      /* the core looks while others notify it */
        uint64_t until = inf_clock_ns() + 5 * SECOND;
        while (__atomic_load_n(&e.rings->complete_tail.value,
                __ATOMIC_ACQUIRE) == 0 && inf_clock_ns() < until)
        {
            poll(NULL, 0, 1);
        }
        evil_free(&e);
    }
    all_is_well();
}

/* A call of another worker that comes behind all of them is answered. */
static void
calls_without_end_leave_room_for_others(void **state)
{
    (void) state;
    evil_t e;
    inf_client_t *c;
    inf_slot_id_t id;
    answer_t a = { 0 };

    evil_join(&e);
    assert_true(join_core(&c));
    a.client = c;
    assert_true(inf_client_take(c, &a, &id));
    for (uint32_t i = 0; i < 20000; i++) {
        assert_true(evil_put(&e, &(inf_submission_t) {
            .op = INF_SUBMIT_CALL, .method = INF_METHOD_METRICS,
            .slot = i % EVIL_SLOTS, .generation = i }));
    }
    const inf_submission_t s = {
        .op = INF_SUBMIT_CALL, .method = INF_METHOD_SERVER_READY,
        .slot = id.slot, .generation = id.generation
    };
    assert_int_equal(inf_client_submit(c, &s), INF_CLIENT_OK);
    for (int ms = 0; (a.flags & ALL) != ALL && ms < PATIENCE_MS; ms += 10) {
        assert_int_not_equal(inf_client_drain(c, 16, good_completion),
            INF_CLIENT_BROKEN);
        poll(NULL, 0, 10);
        read_log();
    }
    assert_int_equal(a.flags & ALL, ALL);
    assert_int_equal(a.status, INF_OK);
    inf_client_free(c);
    evil_free(&e);
    all_is_well();
}

static void
flood_and_exit(uint32_t count)
{
    evil_t e;
    uint32_t joined = 0;

    evil_make(&e);
    for (uint32_t i = 0; i < count; i++) {
        int pair[2];
        assert_done(inf_socket_pair(pair));     /* kept open: all live       */
        e.fds[INF_FD_CONTROL] = pair[1];
        evil_register(&e);
        close(pair[1]);

        /* room in the socket and in our table of descriptors */
        struct pollfd p = { .fd = pair[0], .events = POLLIN };
        inf_welcome_t welcome;
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
        if (recv(pair[0], &welcome, sizeof(welcome), 0) == sizeof(welcome)
            && welcome.status == INF_OK)
        {
            joined++;
        } else {
            close(pair[0]);
        }
    }
    _exit(joined <= 100 ? (int) joined : 101);
}

static void
thousands_of_registrations_leave_room_for_others(void **state)
{
    (void) state;
    int status;

    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(120);
        flood_and_exit(3000);
    }

    inf_client_t *c;
    for (int i = 0; i < 5; i++) {       /* meanwhile others come and go      */
        assert_true(join_core(&c));
        assert_true(good_request(c, 1));
        inf_client_free(c);
        read_log();
    }
    while (waitpid(pid, &status, WNOHANG) == 0) {
        read_log();
        poll(NULL, 0, 10);
    }
    assert_true(WIFEXITED(status));
    assert_in_range(WEXITSTATUS(status), 1, 4);
    all_is_well();
}

/* Every worker holds this end, and shutdown ends it for all of them. */
static void
a_registration_socket_that_was_shut_down_ends_no_core(void **state)
{
    (void) state;

    assert_int_equal(shutdown(w.registration[0], SHUT_RDWR), 0);
    wait_log("the registration socket was shut down");
    all_is_well();
}

int
main(int argc, char **argv)
{
    alarm(540);
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    signal(SIGPIPE, SIG_IGN);
    inf_log_set_levels(false, false, false, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hello_that_lies_is_rejected),
        cmocka_unit_test(descriptors_of_other_kinds_are_rejected),
        cmocka_unit_test(junk_at_the_registration_socket_is_ignored),
        cmocka_unit_test(
            a_configuration_over_the_registration_socket_changes_nothing),
        cmocka_unit_test(half_a_registration_and_silence_hold_up_nobody),
        cmocka_unit_test(impossible_indices_end_that_channel_alone),
        cmocka_unit_test(entries_that_point_elsewhere_are_rejected),
        cmocka_unit_test(an_archive_that_no_location_lets_in_is_rejected),
        cmocka_unit_test(marks_without_sense_change_nothing),
        cmocka_unit_test(releases_of_what_others_hold_free_nothing_twice),
        cmocka_unit_test(cancels_and_releases_of_nothing_are_ignored),
        cmocka_unit_test(a_slot_that_is_taken_is_no_other_requests),
        cmocka_unit_test(damaged_records_are_answered),
        cmocka_unit_test(a_text_of_many_parameters_is_rejected),
        cmocka_unit_test(
            a_record_that_changes_while_it_is_checked_harms_nobody),
        cmocka_unit_test(
            lengths_of_texts_that_change_while_they_are_read_harm_nobody),
        cmocka_unit_test(answers_that_are_never_read_end_the_channel),
        cmocka_unit_test(eventfds_that_block_hold_up_nobody),
        cmocka_unit_test(calls_without_end_leave_room_for_others),
        cmocka_unit_test(thousands_of_registrations_leave_room_for_others),
        cmocka_unit_test(
            a_registration_socket_that_was_shut_down_ends_no_core),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
