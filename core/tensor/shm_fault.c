#include "core/tensor/shm_fault.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

typedef struct {
    uintptr_t base;                 /* 0: none                               */
    size_t    size;
    dev_t     device;
    ino_t     inode;
} shm_values_t;

/* turn is even while the values are consistent; only the owner of the place
   writes. */
typedef struct {
    _Atomic bool      taken;        /* seq_cst: a mapping has the place      */
    _Atomic bool      seen;         /* seq_cst: the mapping had a fault      */
    _Atomic uint32_t  turn;         /* seq_cst                               */
    _Atomic uintptr_t base;         /* seq_cst; like those below guarded by
                                       turn                                  */
    _Atomic size_t    size;         /* seq_cst                               */
    _Atomic dev_t     device;       /* seq_cst                               */
    _Atomic ino_t     inode;        /* seq_cst                               */
} shm_mapping_t;

static shm_mapping_t mappings[INF_SHM_MAPPINGS_MAX];
static _Atomic uint32_t mappings_used;  /* places used so far; seq_cst       */
static struct sigaction before;         /* set in install                    */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int install_errno;

static void install(void);
static bool take(uint32_t *place);
static void set(shm_mapping_t *m, const shm_values_t *v);
static bool get(const shm_mapping_t *m, shm_values_t *v);
static shm_mapping_t *find(uintptr_t address, shm_values_t *v);
static void on_fault(int signo, siginfo_t *info, void *context);

inf_err_t *
inf_shm_fault_enter(void *base, size_t size, dev_t device, ino_t inode,
    uint32_t *place)
{
    pthread_once(&once, install);
    if (install_errno != 0) {
        return inf_err_os(install_errno, "cannot handle SIGBUS");
    }

    if (!take(place)) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "%u shared memory regions are"
            " mapped, and no more can be", INF_SHM_MAPPINGS_MAX);
    }

    atomic_store(&mappings[*place].seen, false);
    set(&mappings[*place], &(shm_values_t) {
        (uintptr_t) base, size, device, inode
    });
    return NULL;
}

void
inf_shm_fault_remove(uint32_t place)
{
    set(&mappings[place], &(shm_values_t) { .base = 0 });
    atomic_store(&mappings[place].taken, false);
}

bool
inf_shm_fault_seen(uint32_t place)
{
    return atomic_load(&mappings[place].seen);
}

bool
inf_shm_fault_knows(dev_t device, ino_t inode)
{
    uint32_t used = atomic_load(&mappings_used);
    shm_values_t v;

    for (uint32_t i = 0; i < used; i++) {
        if (get(&mappings[i], &v) && v.inode == inode && v.device == device) {
            return true;
        }
    }

    return false;
}

static void
install(void)
{
    struct sigaction sa = {
        .sa_sigaction = on_fault,
        .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK
    };

    sigemptyset(&sa.sa_mask);
    install_errno = sigaction(SIGBUS, &sa, &before) == 0 ? 0 : errno;
}

static bool
take(uint32_t *place)
{
    for (uint32_t i = 0; i < INF_SHM_MAPPINGS_MAX; i++) {
        bool taken = false;
        if (!atomic_compare_exchange_strong(&mappings[i].taken, &taken, true))
        {
            continue;
        }

        uint32_t used = atomic_load(&mappings_used);
        while (used <= i && !atomic_compare_exchange_weak(&mappings_used,
            &used, i + 1))
        {
            continue;
        }

        *place = i;
        return true;
    }

    return false;
}

static void
set(shm_mapping_t *m, const shm_values_t *v)
{
    atomic_fetch_add(&m->turn, 1);
    atomic_store(&m->base, v->base);
    atomic_store(&m->size, v->size);
    atomic_store(&m->device, v->device);
    atomic_store(&m->inode, v->inode);
    atomic_fetch_add(&m->turn, 1);
}

/* Reads a mapping; false: none, or it is being set, so that no fault is in
   it. */
static bool
get(const shm_mapping_t *m, shm_values_t *v)
{
    uint32_t turn = atomic_load(&m->turn);

    v->base = atomic_load(&m->base);
    v->size = atomic_load(&m->size);
    v->device = atomic_load(&m->device);
    v->inode = atomic_load(&m->inode);
    return turn % 2 == 0 && atomic_load(&m->turn) == turn && v->base != 0;
}

static shm_mapping_t *
find(uintptr_t address, shm_values_t *v)
{
    uint32_t used = atomic_load(&mappings_used);

    for (uint32_t i = 0; i < used; i++) {
        if (get(&mappings[i], v) && address >= v->base
            && address - v->base < v->size)
        {
            return &mappings[i];
        }
    }

    return NULL;
}

/*
 * Replaces the whole mapping: single pages would exhaust the process's limit
 * of mappings.  The mark is set first, so that the zeros are not taken for
 * bytes of the object.
 */
static void
on_fault(int signo, siginfo_t *info, void *context)
{
    (void) context;
    int saved = errno;
    shm_values_t v;

    shm_mapping_t *m = info->si_code == BUS_ADRERR
        ? find((uintptr_t) info->si_addr, &v) : NULL;
    if (m != NULL) {
        atomic_store(&m->seen, true);
        if (mmap((void *) v.base, v.size, PROT_READ | PROT_WRITE, MAP_FIXED
            | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
            != MAP_FAILED)
        {
            errno = saved;
            return;
        }
    }

    /* the access is repeated, under the previous action */
    sigaction(signo, &before, NULL);
    if (info->si_code <= 0) {
        raise(signo);
    }
    errno = saved;
}
