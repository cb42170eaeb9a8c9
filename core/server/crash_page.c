#include "core/server/crash_page.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/base/log.h"

#define PAGE_MAGIC   UINT64_C(0x3148535243464e49)   /* "INFCRSH1" */
#define PAGE_RECORDS 1024u
#define PAGE_LIMIT   2u         /* crashes while loading, then quarantine    */
#define PAGE_NAME    480u

typedef enum {
    PAGE_FREE = 0,
    PAGE_LOADING,
    PAGE_SUSPECT,
    PAGE_QUARANTINED
} page_state_t;

typedef struct {
    _Atomic uint32_t state;             /* seq_cst: a page_state_t            */
    uint32_t         crashes;
    int64_t          version;
    char             name[PAGE_NAME];
    uint8_t          pad[16];
} page_record_t;

typedef struct {
    uint64_t         magic;
    _Atomic int32_t  signal;        /* seq_cst: the core is dying of         */
    uint32_t         starts;
    uint8_t          pad[48];
    page_record_t    records[PAGE_RECORDS];
} page_memory_t;

struct inf_crash_page_s {
    page_memory_t    *memory;       /* these are set in new()                */
    size_t            size;
    int               last_signal;
    pthread_mutex_t   lock;         /* guards taking of records              */
    pthread_rwlock_t  loading;      /* guards loads of suspects, which
                                       write: they load alone                */
};

static void judge(inf_crash_page_t *page);
static page_record_t *find_record(page_memory_t *m, const char *name,
    int64_t version);
static page_record_t *take_record(inf_crash_page_t *page, const char *name,
    int64_t version);
static inf_err_t *watch_begin(void *userp, const char *name, int64_t version,
    void **mark);
static void watch_end(void *userp, void *mark);

const inf_load_watch_ops_t inf_crash_page_watch = {
    .begin = watch_begin,
    .end = watch_end
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
    pthread_rwlock_init(&page->loading, NULL);
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
    pthread_rwlock_destroy(&page->loading);
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
        atomic_store(&page->memory->signal, signo);
    }
}

/* The loads under way when the last core died, and its signal. */
static void
judge(inf_crash_page_t *page)
{
    page_memory_t *m = page->memory;
    if (m->magic != PAGE_MAGIC) {
        memset(m, 0, sizeof(*m));
        m->magic = PAGE_MAGIC;
    }

    m->starts++;
    page->last_signal = atomic_exchange(&m->signal, 0);

    for (uint32_t i = 0; i < PAGE_RECORDS; i++) {
        page_record_t *r = &m->records[i];
        r->name[PAGE_NAME - 1] = '\0';
        if (atomic_load(&r->state) != PAGE_LOADING) {
            continue;
        }

        if (page->last_signal == 0) {
            atomic_store(&r->state, PAGE_FREE);
            continue;
        }

        r->crashes++;
        atomic_store(&r->state, r->crashes >= PAGE_LIMIT
            ? PAGE_QUARANTINED : PAGE_SUSPECT);
        inf_log(INF_LOG_WARN, "the last core died of signal %d (%s) while"
            " model=%s version=%lld was loading; %s", page->last_signal,
            strsignal(page->last_signal), r->name, (long long) r->version,
            r->crashes >= PAGE_LIMIT ? "it is left out now"
            : "it is loaded alone now");
    }
}

/* The record of a model that is not FREE; NULL when there is none. */
static page_record_t *
find_record(page_memory_t *m, const char *name, int64_t version)
{
    for (uint32_t i = 0; i < PAGE_RECORDS; i++) {
        page_record_t *r = &m->records[i];
        if (atomic_load(&r->state) != PAGE_FREE && r->version == version
            && strcmp(r->name, name) == 0)
        {
            return r;
        }
    }

    return NULL;
}

/* NULL: the page is full, or the name too long; then nothing is noted. */
static page_record_t *
take_record(inf_crash_page_t *page, const char *name, int64_t version)
{
    if (strlen(name) >= PAGE_NAME) {
        return NULL;
    }

    for (uint32_t i = 0; i < PAGE_RECORDS; i++) {
        page_record_t *r = &page->memory->records[i];
        if (atomic_load(&r->state) == PAGE_FREE) {
            r->crashes = 0;
            r->version = version;
            strcpy(r->name, name);
            atomic_store(&r->state, PAGE_LOADING);
            return r;
        }
    }

    return NULL;
}

static inf_err_t *
watch_begin(void *userp, const char *name, int64_t version, void **mark)
{
    inf_crash_page_t *page = userp;
    bool alone = false;

    pthread_mutex_lock(&page->lock);
    page_record_t *r = find_record(page->memory, name, version);
    if (r != NULL && atomic_load(&r->state) == PAGE_QUARANTINED) {
        pthread_mutex_unlock(&page->lock);
        return inf_err_new(INF_ERR_UNAVAILABLE, "the core died %u times while"
            " this model was loading: it is not tried again until nginx is"
            " restarted", r->crashes);
    }
    if (r == NULL) {
        r = take_record(page, name, version);
    } else {
        alone = true;
    }
    pthread_mutex_unlock(&page->lock);

    if (alone) {
        pthread_rwlock_wrlock(&page->loading);
        atomic_store(&r->state, PAGE_LOADING);
    } else {
        pthread_rwlock_rdlock(&page->loading);
    }

    *mark = r;
    return NULL;
}

static void
watch_end(void *userp, void *mark)
{
    inf_crash_page_t *page = userp;
    page_record_t *r = mark;

    if (r != NULL) {
        atomic_store(&r->state, PAGE_FREE);
    }
    pthread_rwlock_unlock(&page->loading);
}
