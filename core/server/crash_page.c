#include "core/server/crash_page.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/base/clock.h"
#include "core/base/log.h"

#define PAGE_MAGIC   UINT64_C(0x3248535243464e49)   /* "INFCRSH2" */
#define PAGE_RECORDS 1024u
#define PAGE_NAME    464u
#define PAGE_WORDS   192u

/* Crashes until quarantine; crashes of executions are each within the time
   after the previous one. */
#define PAGE_LOADS      2u
#define PAGE_EXECUTIONS 5u
#define PAGE_WITHIN_NS  UINT64_C(600000000000)

/* Stored instead of a signal number. */
#define PAGE_GPU         1000
#define PAGE_GPU_LOADING 1001

typedef enum {
    PAGE_FREE = 0,
    PAGE_LOADING,
    PAGE_CRASHED,                   /* fewer times than PAGE_LOADS           */
    PAGE_QUARANTINED
} page_state_t;

typedef enum {
    PAGE_LOADS_IT = 0,
    PAGE_EXECUTES_IT
} page_phase_t;

typedef enum {
    PAGE_NOBODY = 0,
    PAGE_CERTAIN,
    PAGE_LIKELY                     /* if nothing was loading                */
} page_blame_t;

/* A version in one phase. */
typedef struct {
    _Atomic uint32_t state;         /* seq_cst: a page_state_t               */
    uint32_t         crashes;
    int64_t          version;
    uint32_t         phase;         /* a page_phase_t                        */
    uint8_t          pad0[4];
    uint64_t         crash_ns;      /* of the last crash; 0: none            */
    char             name[PAGE_NAME];
    uint8_t          pad1[16];
} page_record_t;

typedef struct {
    uint64_t         magic;
    _Atomic int32_t  signal;        /* seq_cst: signal that ends the core    */
    uint32_t         starts;
    _Atomic uint32_t blame;         /* seq_cst: a page_blame_t; of the version
                                       executing then                        */
    uint8_t          pad0[4];
    int64_t          version;
    char             name[PAGE_NAME];
    uint8_t          pad1[16];
    page_record_t    records[PAGE_RECORDS];
    uint32_t         loader;        /* 1 + the record that the crashed thread
                                       was loading; 0: none                  */
    char             words[PAGE_WORDS];         /* of the blamed execution; "":
                                                   not known                 */
    char             doers[PAGE_RECORDS][PAGE_WORDS];   /* backend and instance
                                       of each record's last crash           */
} page_memory_t;

/* The record of the version that this thread loads. */
static _Thread_local page_record_t *own_load;

struct inf_crash_page_s {
    page_memory_t    *memory;       /* these are set in new()                */
    size_t            size;
    int               last_signal;
    pthread_mutex_t   lock;         /* guards taking of records, and the fields
                                       below                                 */
    uint64_t          stamps[PAGE_RECORDS];     /* stamp of the quarantined
                                                   version's files; 0: not seen
                                                   yet                       */
    pthread_cond_t    ended;        /* signalled when a load ends            */
    uint32_t          loading;      /* loads, except late ones               */
    bool              alone;        /* one load, of a version that has crashed,
                                       runs alone: no other begins           */
};

static void judge(inf_crash_page_t *page);
static bool clean(page_record_t *r, uint64_t now_ns);
static void put_exit(const inf_crash_page_t *page, char *text, size_t cap);
static void judge_load(inf_crash_page_t *page, page_record_t *r,
    uint64_t now_ns);
static void judge_execution(inf_crash_page_t *page, uint64_t now_ns,
    bool certain);
static page_record_t *take_again(inf_crash_page_t *page,
    const inf_load_attempt_t *load);
static void wait_for_turn_locked(inf_crash_page_t *page, bool alone);
static inf_err_t *reject(inf_crash_page_t *page, const inf_load_attempt_t *load,
    page_phase_t phase, bool *lifted);
static page_record_t *find_record(page_memory_t *m, const char *name,
    int64_t version, page_phase_t phase);
static page_record_t *place(page_memory_t *m);
static page_record_t *take_record(inf_crash_page_t *page, const char *name,
    int64_t version, page_phase_t phase);
static inf_err_t *watch_begin(void *userp, const inf_load_attempt_t *load,
    void **mark);
static void watch_end(void *userp, void *mark, bool late);
static void watch_late(void *userp, void *mark);

const inf_load_watch_ops_t inf_crash_page_watch = {
    .begin = watch_begin,
    .end = watch_end,
    .late = watch_late
};

inf_err_t *
inf_crash_page_open(int fd, inf_crash_page_t **out)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return inf_err_os(errno, "crash page");
    }
    if (st.st_size < (off_t) sizeof(page_memory_t)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "crash page: %lld bytes, at"
            " least %zu are needed", (long long) st.st_size,
            sizeof(page_memory_t));
    }

    inf_crash_page_t *page = calloc(1, sizeof(*page));
    if (page == NULL) {
        return inf_err_nomem();
    }

    page->size = sizeof(page_memory_t);
    void *p = mmap(NULL, page->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
        0);
    if (p == MAP_FAILED) {
        int error = errno;
        free(page);
        return inf_err_os(error, "crash page");
    }

    page->memory = p;
    pthread_mutex_init(&page->lock, NULL);
    pthread_cond_init(&page->ended, NULL);
    judge(page);
    *out = page;
    return NULL;
}

void
inf_crash_page_close(inf_crash_page_t *page)
{
    if (page == NULL) {
        return;
    }

    munmap(page->memory, page->size);
    pthread_cond_destroy(&page->ended);
    pthread_mutex_destroy(&page->lock);
    free(page);
}

bool
inf_crash_page_restarted(const inf_crash_page_t *page)
{
    return page != NULL && page->memory->starts > 1;
}

void
inf_crash_page_note_signal(inf_crash_page_t *page, int signo)
{
    if (page != NULL) {
        page_memory_t *m = page->memory;
        bool loads = own_load >= m->records
            && own_load < m->records + PAGE_RECORDS;
        m->loader = loads ? 1 + (uint32_t) (own_load - m->records) : 0;
        m->words[0] = '\0';
        atomic_store(&m->signal, signo);
    }
}

void
inf_crash_page_note_words(inf_crash_page_t *page, const char *words)
{
    if (page != NULL) {
        size_t len = strnlen(words, PAGE_WORDS - 1);
        memcpy(page->memory->words, words, len);
        page->memory->words[len] = '\0';
    }
}

bool
inf_crash_page_loading(const inf_crash_page_t *page, inf_signal_text_t *text)
{
    if (page == NULL || own_load == NULL) {
        return false;
    }

    inf_signal_text_puts(text, "model=");
    inf_signal_text_puts(text, own_load->name);
    inf_signal_text_puts(text, " version=");
    inf_signal_text_number(text, (uint64_t) own_load->version);
    return true;
}

void
inf_crash_page_note_gpu(inf_crash_page_t *page, bool loading)
{
    inf_crash_page_note_signal(page, loading ? PAGE_GPU_LOADING : PAGE_GPU);
    if (page != NULL) {
        page->memory->loader = 0;   /* another thread may have broken it     */
    }
}

void
inf_crash_page_note_execution(inf_crash_page_t *page, const char *name,
    int64_t version, bool certain)
{
    if (page == NULL || strlen(name) >= PAGE_NAME) {
        return;
    }

    page_memory_t *m = page->memory;
    m->version = version;
    memcpy(m->name, name, strlen(name) + 1);
    atomic_store(&m->blame, certain ? PAGE_CERTAIN : PAGE_LIKELY);
}

/* Evaluates the work in progress when the last core died, and its signal. */
static void
judge(inf_crash_page_t *page)
{
    page_memory_t *m = page->memory;
    uint64_t now = inf_clock_ns();
    bool loading = false;
    uint32_t loader = m->loader;

    if (m->magic != PAGE_MAGIC) {
        bool strange = m->magic != 0;
        memset(m, 0, sizeof(*m));
        m->magic = PAGE_MAGIC;
        m->starts = strange;            /* written by the core that set it   */
        if (strange) {
            inf_log(INF_LOG_WARN, "the crash page is of another version:"
                " crashes of earlier cores are unknown");
        }
    }

    m->starts++;
    m->name[PAGE_NAME - 1] = '\0';
    m->words[PAGE_WORDS - 1] = '\0';
    m->loader = 0;
    page->last_signal = atomic_exchange(&m->signal, 0);
    uint32_t blame = atomic_exchange(&m->blame, PAGE_NOBODY);

    for (uint32_t i = 0; i < PAGE_RECORDS; i++) {
        loading |= clean(&m->records[i], now);
    }

    bool executing = page->last_signal != 0 && (blame == PAGE_CERTAIN
        || (blame == PAGE_LIKELY && !loading));
    for (uint32_t i = 0; i < PAGE_RECORDS; i++) {
        page_record_t *r = &m->records[i];
        if (atomic_load(&r->state) != PAGE_LOADING) {
            continue;
        }
        if (page->last_signal == 0 || page->last_signal == PAGE_GPU
            || executing || (loader != 0 && loader != i + 1))
        {
            atomic_store(&r->state, PAGE_FREE);
        } else {
            judge_load(page, r, now);
        }
    }
    if (executing) {
        judge_execution(page, now, blame == PAGE_CERTAIN);
    }
    m->words[0] = '\0';
}

/* Frees r if it is invalid or no longer needed; true: it was being loaded. */
static bool
clean(page_record_t *r, uint64_t now_ns)
{
    uint32_t state = atomic_load(&r->state);
    bool sane = state <= PAGE_QUARANTINED
        && (r->phase == PAGE_LOADS_IT
            || (r->phase == PAGE_EXECUTES_IT && state != PAGE_LOADING));
    bool old = r->phase == PAGE_EXECUTES_IT && state == PAGE_CRASHED
        && now_ns - r->crash_ns > PAGE_WITHIN_NS;

    r->name[PAGE_NAME - 1] = '\0';
    if (!sane || old) {
        atomic_store(&r->state, PAGE_FREE);
        return false;
    }
    return state == PAGE_LOADING;
}

/* Writes "died of signal 11 (Segmentation fault)". */
static void
put_exit(const inf_crash_page_t *page, char *text, size_t cap)
{
    if (page->last_signal == PAGE_GPU || page->last_signal == PAGE_GPU_LOADING)
    {
        snprintf(text, cap, "ended because a GPU had failed");
    } else {
        snprintf(text, cap, "died of signal %d (%s)", page->last_signal,
            strsignal(page->last_signal));
    }
}

static void
judge_load(inf_crash_page_t *page, page_record_t *r, uint64_t now_ns)
{
    char end[96];

    r->crashes++;
    r->crash_ns = now_ns;
    atomic_store(&r->state, r->crashes >= PAGE_LOADS
        ? PAGE_QUARANTINED : PAGE_CRASHED);
    put_exit(page, end, sizeof(end));
    inf_log(INF_LOG_WARN, "the last core %s while model=%s version=%lld was"
        " loading; %s", end, r->name, (long long) r->version,
        r->crashes >= PAGE_LOADS ? "it is quarantined now"
        : "it is loaded alone now");
}

/* Counts executions of the last core; certain: the text is about the thread
   that crashed. */
static void
judge_execution(inf_crash_page_t *page, uint64_t now_ns, bool certain)
{
    char end[96];
    page_memory_t *m = page->memory;
    const char *doer = certain ? strstr(m->words, " backend=") : NULL;
    page_record_t *r = find_record(m, m->name, m->version, PAGE_EXECUTES_IT);
    if (r == NULL) {
        r = take_record(page, m->name, m->version, PAGE_EXECUTES_IT);
    }
    if (r == NULL) {
        return;
    }

    r->crashes++;
    r->crash_ns = now_ns;
    atomic_store(&r->state, r->crashes >= PAGE_EXECUTIONS
        ? PAGE_QUARANTINED : PAGE_CRASHED);
    doer = doer != NULL ? doer : "";
    strcpy(m->doers[r - m->records], doer);
    put_exit(page, end, sizeof(end));
    inf_log(INF_LOG_WARN, "the last core %s while model=%s version=%lld%s was"
        " executing, %u in a row%s", end, r->name, (long long) r->version,
        doer, r->crashes, r->crashes >= PAGE_EXECUTIONS
        ? "; it is quarantined now" : "");
}

/* The record of a version that is not FREE; NULL: none. */
static page_record_t *
find_record(page_memory_t *m, const char *name, int64_t version,
    page_phase_t phase)
{
    for (uint32_t i = 0; i < PAGE_RECORDS; i++) {
        page_record_t *r = &m->records[i];
        uint32_t state = atomic_load(&r->state);
        if ((state == PAGE_CRASHED || state == PAGE_QUARANTINED)
            && r->phase == phase && r->version == version
            && strncmp(r->name, name, PAGE_NAME) == 0)
        {
            return r;
        }
    }

    return NULL;
}

/* Takes a record; NULL: the page is full or the name too long, nothing is
   noted. */
static page_record_t *
take_record(inf_crash_page_t *page, const char *name, int64_t version,
    page_phase_t phase)
{
    page_record_t *r = strlen(name) < PAGE_NAME ? place(page->memory) : NULL;
    if (r == NULL) {
        return NULL;
    }

    atomic_store(&r->state, PAGE_FREE);     /* its name and version change   */
    r->crashes = 0;
    r->crash_ns = 0;
    r->version = version;
    r->phase = phase;
    strcpy(r->name, name);
    page->memory->doers[r - page->memory->records][0] = '\0';
    page->stamps[r - page->memory->records] = 0;
    atomic_store(&r->state, phase == PAGE_LOADS_IT ? PAGE_LOADING
        : PAGE_CRASHED);
    return r;
}

/* A free record, or in a full page the one with the oldest crash; NULL: all
   others are loading or in quarantine. */
static page_record_t *
place(page_memory_t *m)
{
    page_record_t *found = NULL;

    for (uint32_t i = 0; i < PAGE_RECORDS; i++) {
        page_record_t *r = &m->records[i];
        uint32_t state = atomic_load(&r->state);
        if (state == PAGE_FREE) {
            return r;
        }
        if (state == PAGE_CRASHED
            && (found == NULL || r->crash_ns < found->crash_ns))
        {
            found = r;
        }
    }

    return found;
}

static inf_err_t *
watch_begin(void *userp, const inf_load_attempt_t *load, void **mark)
{
    inf_crash_page_t *page = userp;
    page_record_t *r = NULL;
    bool alone = false;
    bool lifted = false;

    pthread_mutex_lock(&page->lock);
    inf_err_t *err = reject(page, load, PAGE_LOADS_IT, &lifted);
    if (err == NULL) {
        err = reject(page, load, PAGE_EXECUTES_IT, &lifted);
    }
    if (err == NULL) {
        alone = find_record(page->memory, load->name, load->version,
            PAGE_LOADS_IT) != NULL;
        if (!alone) {
            r = take_record(page, load->name, load->version, PAGE_LOADS_IT);
        }
        wait_for_turn_locked(page, alone);
        if (alone) {
            r = take_again(page, load);
        }
    }
    pthread_mutex_unlock(&page->lock);

    if (err != NULL) {
        return err;
    }
    if (lifted) {
        inf_log(INF_LOG_NOTICE, "model=%s version=%lld leaves its quarantine:"
            " %s", load->name, (long long) load->version, load->requested
            ? "a request loads it" : "its files have changed");
    }

    own_load = r;
    *mark = r;
    return NULL;
}

/* The record of a crashed version, taken again if it was reused while the load
   waited. */
static page_record_t *
take_again(inf_crash_page_t *page, const inf_load_attempt_t *load)
{
    page_record_t *r = find_record(page->memory, load->name, load->version,
        PAGE_LOADS_IT);
    if (r == NULL) {
        return take_record(page, load->name, load->version, PAGE_LOADS_IT);
    }

    atomic_store(&r->state, PAGE_LOADING);
    return r;
}

/* Releases the lock while it waits. */
static void
wait_for_turn_locked(inf_crash_page_t *page, bool alone)
{
    while (page->alone || (alone && page->loading > 0)) {
        pthread_cond_wait(&page->ended, &page->lock);
    }
    page->loading++;
    page->alone = alone;
}

/* Rejects a quarantined version whose files are unchanged.  The files that this
   core sees first count as those of the crash. */
static inf_err_t *
reject(inf_crash_page_t *page, const inf_load_attempt_t *load,
    page_phase_t phase, bool *lifted)
{
    page_record_t *r = find_record(page->memory, load->name, load->version,
        phase);
    if (r == NULL || atomic_load(&r->state) != PAGE_QUARANTINED) {
        return NULL;
    }

    uint64_t *stamp = &page->stamps[r - page->memory->records];
    if (load->requested || (*stamp != 0 && *stamp != load->stamp)) {
        atomic_store(&r->state, PAGE_FREE);
        *lifted = true;
        return NULL;
    }

    const char *doer = page->memory->doers[r - page->memory->records];
    *stamp = load->stamp;
    return inf_err_because(inf_err_new(INF_ERR_UNAVAILABLE, "the core died %u"
        " times while this model was %s%s%.*s%s: it is quarantined until a"
        " request loads it or its files change", r->crashes,
        phase == PAGE_LOADS_IT ? "loading" : "executing",
        doer[0] != '\0' ? " (last:" : "", (int) PAGE_WORDS - 1, doer,
        doer[0] != '\0' ? ")" : ""), INF_CAUSE_QUARANTINED);
}

/* Ends the mark of a load.  A late load counts as loading for the next core
   until it returns: its backend may still end this core. */
static void
watch_end(void *userp, void *mark, bool late)
{
    page_record_t *r = mark;

    own_load = NULL;
    if (r != NULL) {
        atomic_store(&r->state, PAGE_FREE);
    }
    if (!late) {
        watch_late(userp, mark);
    }
}

static void
watch_late(void *userp, void *mark)
{
    inf_crash_page_t *page = userp;

    (void) mark;
    pthread_mutex_lock(&page->lock);
    page->loading--;
    page->alone = false;                /* it was the only one               */
    pthread_mutex_unlock(&page->lock);
    pthread_cond_broadcast(&page->ended);
}
