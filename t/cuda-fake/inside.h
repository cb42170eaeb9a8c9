/*
 * inside.h - what the fake driver's files share.
 *
 * Owner    the library: one state, under one lock.
 * Thread   functions named _locked: with the lock, which BEGIN takes and end
 *          gives back.
 * Units    bytes.
 * Errors   wrong_locked counts what a driver would forbid.
 * Route    none outside this directory
 */

#ifndef INF_T_FAKE_CUDA_INSIDE_H
#define INF_T_FAKE_CUDA_INSIDE_H

#include <pthread.h>

#include "core/tensor/cuda_functions.h"
#include "fake_cuda.h"

#define EXPORTED   __attribute__((visibility("default")))
#define DEVICES    4
#define BLOCKS     4096
#define CONTEXTS   16
#define RESERVES   16
#define ALIGNMENT  256u

typedef inf_cu_result_t result_t;

/* A live piece of memory: of a device, an alias of one, or of the host. */
typedef struct {
    bool      live;
    int       device;           /* -1: the host's                            */
    uintptr_t base;
    size_t    size;
    char     *bytes;            /* where they are                            */
    bool      alias;            /* opened by a handle                        */
    bool      registered;       /* the test's own, pinned in place           */
    void     *backing;          /* mapped into a reserved range: backing_t   */
    bool      reachable;        /* then: cuMemSetAccess was called           */
} block_t;

/* Memory of cuMemCreate: lives while its handle or a mapping does. */
typedef struct {
    int      device;
    size_t   size;
    uint32_t refs;
} backing_t;

/* A range of cuMemAddressReserve. */
typedef struct {
    bool      live;
    uintptr_t base;
    size_t    size;
    char     *bytes;            /* as many                                   */
} reserve_t;

typedef struct copy_s {
    struct copy_s *next;
    char          *dst;         /* where the bytes really are                */
    const char    *src;         /* NULL: fill                                */
    unsigned char  value;
    size_t         size;
} copy_t;

typedef struct {
    int     device;
    copy_t *first;
    copy_t *last;
} stream_t;

typedef struct {
    int       major, minor;
    char     *window;           /* FAKE_CUDA_MEMORY of PROT_NONE             */
    char     *bytes;
    uint64_t  occupied;
    uint32_t  retained;
    bool      reaches[DEVICES];
} device_t;

typedef struct {
    char      magic[8];
    int       device;
    int       pid;
    uint64_t  offset;
    uint64_t  size;
} handle_t;

typedef struct {
    bool        initialized;
    bool        counted;        /* device_count was set                      */
    int         count;
    device_t    devices[DEVICES];
    block_t     blocks[BLOCKS];
    reserve_t   reserves[RESERVES];
    size_t      backings;       /* live                                      */
    size_t      backed[DEVICES];            /* their bytes                   */
    size_t      streams;
    size_t      queued;
    size_t      waits;
    uint64_t    calls;
    uint64_t    failures;
    uint64_t    fail_at;        /* of calls; 0: never                        */
    int         fail_rc;
    const char *fail_function;
    int         fail_function_rc;
    size_t      wrong;
    char        wrong_text[160];
} fake_t;

extern pthread_mutex_t fake_lock;
extern fake_t fake;

/* As the core declares them: what differs does not compile. */
#define DECLARE(field, symbol, parameters) EXPORTED result_t symbol parameters;
INF_CU_FUNCTIONS(DECLARE)

/* Counts and gives rc back. */
result_t wrong_locked(const char *function, const char *what, result_t rc);

/* Every call begins here, with the lock taken; what a test ordered. */
result_t call_locked(const char *function);
result_t end(result_t rc);

#define BEGIN()                                                              \
    pthread_mutex_lock(&fake_lock);                                          \
    result_t rc = call_locked(__func__)

/* NULL: there is no such device. */
device_t *device_locked(int handle);
int number_of(const device_t *d);

/* Of the context this thread is in; NULL: none. */
device_t *current(void);

/* The live block that holds all of these bytes, or begins there. */
block_t *find_locked(uintptr_t at, size_t size);
block_t *find_base_locked(uintptr_t base);
block_t *add_locked(const block_t *what);
uint64_t used_locked(int device);

#endif /* INF_T_FAKE_CUDA_INSIDE_H */
