/*
 * inside.h - what the fake driver's files share.
 *
 * Owner    the library: one state, under one lock.
 * Thread   functions named _locked: with the lock, which BEGIN takes and end
 *          gives back; run_locked lets go of it while work is done.
 * Units    bytes.
 * Errors   wrong_locked counts what a driver would forbid.
 * Route    none outside this directory
 */

#ifndef INF_T_FAKE_CUDA_INSIDE_H
#define INF_T_FAKE_CUDA_INSIDE_H

#include <pthread.h>

#include "backends/common/gpu_driver_functions.h"
#include "core/tensor/cuda_functions.h"
#include "fake_cuda.h"
#include "fake_kernels.h"

#define EXPORTED   __attribute__((visibility("default")))
#define DEVICES    FAKE_CUDA_DEVICES_MAX
#define BLOCKS     4096
#define CONTEXTS   16
#define RESERVES   16
#define ALIGNMENT  256u
#define NAME       128          /* of a kernel, with its NUL                 */
#define ARGUMENTS  64           /* of a kernel                               */
#define RULES      16           /* of FAKE_CUDA_FAIL                         */
#define COUNTERS   128          /* functions, and kernels, that are counted  */
#define PATIENCE   3            /* the query that finds work done            */

enum {
    READ_ONLY_REGISTER   = 113,         /* a device attribute                */
    HOST_READ_ONLY       = 8,           /* a flag of cuMemHostRegister       */
    NOT_SUPPORTED        = 801,
    CAPTURE_UNSUPPORTED  = 900,
    CAPTURE_INVALIDATED  = 901,
    CAPTURE_UNMATCHED    = 903,
    CAPTURED_EVENT       = 907,
    CAPTURE_WRONG_THREAD = 908,
    UNKNOWN              = 999
};

typedef inf_cu_result_t result_t;

/* A live piece of memory: of a device, an alias of one, or of the host. */
typedef struct {
    bool      live;
    int       device;           /* -1: the host's                            */
    uintptr_t base;
    size_t    size;
    char     *bytes;            /* where they are                            */
    bool      alias;            /* opened by a handle                        */
    char     *start;            /* then, of another process: all of its GPU  */
    bool      registered;       /* the test's own, pinned in place           */
    bool      read_only;        /* then: the device may only read it         */
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

typedef struct {
    int      device;
    char    *image;
    size_t   size;
    size_t   queued;            /* launches that wait or run                 */
    struct function_s *functions;
} module_t;

typedef struct function_s {
    struct function_s *next;
    module_t *module;
    char      name[NAME];
    int       max_threads;
    int       shared_static;
    int       max_dynamic;      /* shared memory of a launch                 */
    bool      described;        /* the image says what the arguments are     */
    size_t    count;
    size_t    sizes[ARGUMENTS];
} function_t;

typedef struct {
    char                name[NAME];
    fake_cuda_kernel_pt fn;
    size_t              count;
    size_t              sizes[ARGUMENTS];
} kernel_t;

typedef struct {
    char                name[NAME];
    module_t           *module;
    fake_cuda_kernel_pt fn;     /* NULL: does nothing                        */
    fake_cuda_launch_t  shape;
    size_t              count;
    void               *arguments[ARGUMENTS];   /* into values               */
    size_t              offsets[ARGUMENTS];
    size_t              size;                   /* of values                 */
    unsigned char       values[ARGUMENTS * 16];
} launch_t;

typedef struct {
    struct stream_s *stream;    /* where it waits; NULL: it does not         */
    uint32_t         refs;      /* the test's, and one of each time queued   */
    uint32_t         asked;     /* since it was recorded                     */
    bool             captured;
} event_t;

typedef enum {
    WORK_COPY,
    WORK_FILL,
    WORK_LAUNCH,
    WORK_EVENT
} work_kind_t;

typedef struct work_s {
    struct work_s     *next;
    work_kind_t        kind;
    fake_cuda_moved_e  moved;   /* of a copy                                 */
    bool               pageable;
    char              *dst;     /* where the bytes really are                */
    const char        *src;
    unsigned char      value;   /* of a fill                                 */
    size_t             size;
    launch_t          *launch;
    event_t           *event;
} work_t;

typedef struct {
    work_t *first;
    work_t *last;
} works_t;

typedef enum {
    CAPTURE_NONE,
    CAPTURE_ACTIVE,
    CAPTURE_INVALID
} capture_t;

typedef struct stream_s {
    struct stream_s *next;      /* of all live ones                          */
    int              device;
    works_t          works;
    bool             running;   /* a thread is doing its work                */
    uint32_t         asked;     /* queries since the last end of work        */
    capture_t        capture;
    int              mode;      /* then: as begun                            */
    pthread_t        thread;
    works_t          captured;
} stream_t;

/* A captured graph, or one made ready for launches. */
typedef struct {
    int     device;
    works_t works;
} graph_t;

typedef struct {
    int       major, minor;
    char     *window;           /* FAKE_CUDA_MEMORY of PROT_NONE             */
    int       file;             /* of bytes: other processes open it         */
    char     *bytes;
    uint64_t  occupied;
    uint32_t  retained;
    bool      reaches[DEVICES];
    result_t  broken;           /* every call of its context: that           */
    stream_t  null_stream;
} device_t;

typedef struct {
    char      magic[8];
    int       device;
    int       pid;
    uint64_t  offset;
    uint64_t  size;
    int       file;             /* of that process                           */
} handle_t;

/* FUNCTION:CODE:N[:DEVICE] */
typedef struct {
    char     function[NAME];
    result_t code;
    uint64_t calls;             /* until then: N counts down                 */
    int      device;            /* -1: any                                   */
} rule_t;

typedef struct {
    char     name[NAME];
    uint64_t count;
} counter_t;

typedef struct {
    bool        initialized;
    bool        counted;        /* device_count was set                      */
    bool        configured;     /* the environment was read                  */
    int         count;
    device_t    devices[DEVICES];
    block_t     blocks[BLOCKS];
    size_t      block_top;      /* none live from there on                   */
    reserve_t   reserves[RESERVES];
    size_t      backings;       /* live                                      */
    size_t      backed[DEVICES];            /* their bytes                   */
    stream_t   *streams;
    size_t      objects;        /* live: streams, events, modules, graphs    */
    size_t      queued;
    size_t      waits;
    uint64_t    calls;
    uint64_t    failures;
    uint64_t    fail_at;        /* of calls; 0: never                        */
    int         fail_rc;
    const char *fail_function;
    int         fail_function_rc;
    rule_t      rules[RULES];
    size_t      rule_count;
    char        hang[NAME];     /* kernels of that name never end            */
    char        fault[NAME];    /* kernels of that name touch a wrong address */
    const char *rules_path;     /* FAKE_CUDA_FAIL_FILE                       */
    const char *lost_path;      /* FAKE_CUDA_LOST                            */
    const char *counts_path;    /* FAKE_CUDA_COUNTS                          */
    bool        first;          /* the process whose counters are there      */
    bool        report;         /* counters are written at the call's end    */
    counter_t   functions[COUNTERS];
    counter_t   kernels[COUNTERS];
    uint64_t    moved[FAKE_CUDA_MOVED_KINDS];
    uint64_t    copies[FAKE_CUDA_MOVED_KINDS];
    uint64_t    pageable;
    size_t      wrong;
    char        wrong_text[160];
} fake_t;

extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_changed;     /* a stream has stopped, a hang ended */
extern fake_t fake;

/* As the core and the backend declare them: what differs does not compile;
   those of interprocess memory are the core's alone. */
#define DECLARE(field, symbol, parameters) EXPORTED result_t symbol parameters;
INF_CU_FUNCTIONS(DECLARE)
GPU_FUNCTIONS(DECLARE)
GPU_LATER_FUNCTIONS(DECLARE)

/* Counts and gives rc back. */
result_t wrong_locked(const char *function, const char *what, result_t rc);

/* Every call begins here, with the lock taken; what a test ordered.  device:
   the one that the call is for, or -1. */
result_t call_locked(const char *function, int device);
result_t end(result_t rc);

#define BEGIN_FOR(device)                                                    \
    pthread_mutex_lock(&fake_lock);                                          \
    result_t rc = call_locked(__func__, device)
#define BEGIN() BEGIN_FOR(current() != NULL ? number_of(current()) : -1)

/* ---- cuda_orders.c */

/* The result that the environment and the rules have for this call. */
void read_environment_locked(void);
result_t ordered_locked(const char *function, int device);

/* A device that answers every call with rc from now on, if rc is sticky. */
void break_locked(int device, result_t rc);

/* ---- cuda_counts.c */

void count_locked(counter_t *counters, const char *name);
void write_counts_locked(void);

/* ---- cuda.c */

/* NULL: there is no such device. */
device_t *device_locked(int handle);
int number_of(const device_t *d);

/* Of the context this thread is in; NULL: none. */
device_t *current(void);

/* ---- cuda_memory.c */

void map_locked(device_t *d);

/* The live block that holds all of these bytes, or begins there. */
block_t *find_locked(uintptr_t at, size_t size);
block_t *find_base_locked(uintptr_t base);
block_t *add_locked(const block_t *what);
uint64_t used_locked(int device);

/* ---- cuda_streams.c */

/* NULL means the stream that each device has; NULL back: no context. */
stream_t *stream_locked(inf_cu_stream_t stream);

/* Appends to what the stream does, or captures; takes what the work owns. */
result_t queue_locked(const char *function, stream_t *s, work_t what);

/* Does what waits in s up to that event, or all. */
result_t run_locked(stream_t *s, const event_t *until);

void append(works_t *works, work_t *w);
void free_works_locked(works_t *works);

/* ---- cuda_graphs.c */

/* Whether this thread may not do that now, because a stream captures: counted
   as wrong, and the capture is void. */
bool forbidden_locked(const char *function);

/* ---- cuda_kernels.c */

/* NULL: no host function stands for it. */
const kernel_t *kernel_locked(const char *name);
void open_kernels(void);

/* The device whose kernel this thread runs, during the call of fn. */
result_t run_kernel(const launch_t *l);

#endif /* INF_T_FAKE_CUDA_INSIDE_H */
