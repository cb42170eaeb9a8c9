/*
 * channel.h - what crosses the wall between an nginx worker and the core.
 *
 * Owner    The worker makes and owns the rings, the request arena and the
 *          submission eventfd; the core makes and owns the response arena and
 *          the completion eventfd.  Each arena has one allocating side: a
 *          region is freed only by the side that allocated it, when the other
 *          side has released it.
 * Thread   Submission ring: one producer (the worker's event loop), one
 *          consumer at a time in the core.  Completion ring: producers in the
 *          core under a per-channel lock, one consumer (the worker).
 * Units    Offsets and lengths are bytes, 64 bit; times are ns on
 *          CLOCK_MONOTONIC (0: none).  Byte order is the machine's.
 * Errors   An error crosses as a value: a status byte and a short text.
 * Route    worker -> submission -> core -> completion -> worker.
 *
 * No pointer crosses.  Neither side believes an offset, a count or a length
 * before it has checked it on a private copy.
 */

#ifndef INF_CHANNEL_H
#define INF_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

#define INF_CHANNEL_MAGIC       UINT64_C(0x314e4843464e49)   /* "INFCHN1"  */
/*
 * A module and a core of different builds compare these when they meet: after
 * a binary upgrade, or when the program has changed under a running nginx.
 * Version N speaks N and N-1.  Tests build other numbers.
 */
#ifndef INF_CHANNEL_VERSION
#define INF_CHANNEL_VERSION     6u
#define INF_CHANNEL_MIN_VERSION 5u
#endif

#define INF_RING_ENTRIES        4096u   /* power of two                      */
#define INF_RING_ENTRY_SIZE     64u
#define INF_MAX_SLOTS           4096u   /* requests in flight per channel    */
#define INF_ARENA_ALIGN         64u     /* of every region and tensor        */
#define INF_ARENA_MAX           (UINT64_C(1) << 42)   /* address space       */
#define INF_RECORD_MAX          (16u << 20)   /* a flat record, tables+names */

/* Where the second half of a request arena begins.  Bytes that have arrived
   fill the first half from its begin on, announced ones the second. */
#define INF_ARENA_HALF(size)    (((size) / 2 + 4095) & ~UINT64_C(4095))


/* ---- registration: one SEQPACKET message with descriptors ---------------- */

/*
 * WORKER: sent by a worker over the registration socket, with 4 descriptors
 * (rings, request arena, submission eventfd, core's end of the private
 * control socket).  CONFIG: sent by the supervisor over the
 * configuration socket, which no worker holds, with 1 (a sealed memfd, a
 * serialised CoreConfig).  BEAT: the same way, without; the core counts it in
 * the lease's file.
 */
typedef enum {
    INF_HELLO_WORKER = 1,
    INF_HELLO_CONFIG = 2,
    INF_HELLO_BEAT = 3
} inf_hello_kind_t;

#define INF_HELLO_WORKER_FDS 4
#define INF_HELLO_CONFIG_FDS 1

/* In the lease's file, from this offset on: how often a core has been asked
   for its heartbeat. */
#define INF_BEAT_OFFSET      64

typedef struct {
    uint64_t pid;               /* the core's                                */
    uint64_t count;
} inf_beat_t;

/* Behind it: the pid, 64 bit, of the core that ends because it was told to; 0
   again if it crashes meanwhile. */
#define INF_LEAVES_OFFSET    128

/* Behind it: "PID DEVICE INODE VERSION" of the core and of the program's file
   that it was started from, a text with a null character. */
#define INF_PROGRAM_OFFSET   192
#define INF_PROGRAM_SIZE     192

enum {                          /* index into the WORKER descriptors         */
    INF_FD_RINGS = 0,
    INF_FD_REQUEST_ARENA,
    INF_FD_SUBMIT_EVENTFD,
    INF_FD_CONTROL
};

typedef struct {
    uint64_t magic;
    uint32_t version;           /* highest the sender speaks                 */
    uint32_t min_version;       /* lowest                                    */
    uint32_t size;              /* sizeof(inf_hello_t)                       */
    uint32_t kind;              /* inf_hello_kind_t                          */
    uint32_t pid;
    uint32_t ring_entries;
    uint32_t entry_size;
    uint32_t slots;             /* submission slots                          */
    uint64_t rings_size;
    uint64_t request_arena_size;    /* of the sparse memfd                   */
    uint64_t generation;        /* CONFIG: of the configuration              */
    char     build[40];         /* NUL-terminated text for the log           */
} inf_hello_t;

/*
 * The core's answer, on the private control socket, with 3 descriptors when
 * status is INF_OK and none otherwise.  The completion eventfd is an epoll
 * descriptor over an eventfd that only the core has: were it shared, a worker
 * could fill its counter and make it blocking, and the core would hang in it.
 */
#define INF_WELCOME_FDS 3

enum {                          /* index into the welcome's descriptors      */
    INF_WELCOME_FD_RESPONSES = 0,
    INF_WELCOME_FD_CORE,        /* a pidfd                                   */
    INF_WELCOME_FD_EVENTFD
};

typedef struct {
    uint64_t magic;
    uint32_t version;           /* the one both will speak                   */
    uint32_t size;              /* sizeof(inf_welcome_t)                     */
    uint32_t status;            /* inf_status_t                              */
    uint32_t pid;
    uint64_t response_arena_size;
    uint64_t generation;        /* of the configuration in force             */
    char     build[40];
    char     text[152];         /* why not, NUL-terminated                   */
    uint64_t request_pinned;    /* the first bytes of each half of the request
                                   arena: a driver holds their pages, or will
                                   soon, and they are not to be trimmed      */
} inf_welcome_t;


/* ---- rings --------------------------------------------------------------- */

/* INF_OK, or 1 + inf_err_code_t. */
typedef uint32_t inf_status_t;

#define INF_OK                0u
#define INF_STATUS(err_code)  (1u + (uint32_t) (err_code))
#define INF_STATUS_CODE(s)    ((s) - 1u)

/* One side's index of a ring; each alone on its cache line. */
typedef struct {
    _Alignas(64) uint32_t value;    /* atomic, monotonic modulo 2^32         */
} inf_ring_index_t;

/*
 * The rings memfd: this header, then submissions, completions and slot state
 * bytes at the offsets it names.  Consumers keep private copies of their own
 * index and of all sizes, and check values that they read here against them.
 */
typedef struct {
    uint64_t magic;
    uint32_t version;
    uint32_t ring_entries;
    uint32_t entry_size;
    uint32_t slots;
    uint64_t submit_offset;
    uint64_t complete_offset;
    uint64_t slot_state_offset;

    inf_ring_index_t submit_tail;       /* worker writes                     */
    inf_ring_index_t submit_head;       /* core writes                       */
    inf_ring_index_t submit_sleeping;   /* core sets 1, worker exchanges 0   */
    inf_ring_index_t complete_tail;     /* core writes                       */
    inf_ring_index_t complete_head;     /* worker writes                     */
    inf_ring_index_t complete_sleeping; /* worker sets 1, core exchanges 0   */
    inf_ring_index_t suspect;           /* core writes: 1 while a suspect is
                                           under way, on any channel         */
    inf_ring_index_t leaving;           /* worker sets 1: it takes no clients
                                           any more                          */
} inf_rings_header_t;

/*
 * Where in the header's page, far behind it, the core's handler of a crash says
 * what was executing or loading then: a text with a NUL, empty before.  A core
 * that knows nothing of it leaves zeros there.
 */
#define INF_CRASH_OFFSET  2048u
#define INF_CRASH_MAX     512u

typedef enum {
    INF_SUBMIT_INFER   = 1,     /* record: inf_infer_record_t                */
    INF_SUBMIT_CALL    = 2,     /* record: protobuf request of `method`      */
    INF_SUBMIT_CANCEL  = 3,     /* slot, generation                          */
    INF_SUBMIT_RELEASE = 4      /* offset: response region the worker is
                                   done with; flags: how many more offsets
                                   follow it, up to INF_RELEASE_MORE         */
} inf_submit_op_t;

typedef struct {
    uint8_t  op;                /* inf_submit_op_t                           */
    uint8_t  flags;             /* INF_SUBMIT_FLAG_*                         */
    uint16_t method;            /* CALL: inf_method_t                        */
    uint32_t slot;
    uint32_t generation;        /* of the slot; answers carry it back        */
    uint32_t call;              /* INFER: number of the stream that has sent
                                   it, at most the slots; 0: none            */
    uint64_t offset;            /* of the record in the request arena        */
    uint64_t length;
    uint64_t deadline_ns;       /* 0: none                                   */
    uint64_t received_ns;       /* when the first byte arrived               */
    uint64_t order;             /* INFER with a call: grows with each request
                                   that the worker receives on a stream, and
                                   stays when it is submitted again; 0: a
                                   worker that does not say it               */
    uint8_t  pad[8];
} inf_submission_t;

/* Of a RELEASE, in the fields behind offset. */
#define INF_RELEASE_MORE 5u

_Static_assert(offsetof(inf_submission_t, length)
               + INF_RELEASE_MORE * sizeof(uint64_t)
               == sizeof(inf_submission_t), "offsets of a RELEASE");

#define INF_SUBMIT_FLAG_SUSPECT 0x01    /* was executing when a core died:
                                           one at a time, each alone in its
                                           batch                             */
#define INF_SUBMIT_FLAG_REST    0x02    /* CALL of the repository API: the
                                           record is the REST body, the
                                           model's name and in 4 bytes its
                                           length; the core makes the
                                           message                           */
#define INF_SUBMIT_FLAG_REST_ANSWER 0x04    /* CALL: answered by the REST body
                                           that stands for the message       */
#define INF_SUBMIT_FLAG_ALONE   0x08    /* INFER: several cores have died that
                                           had it: alone in its batch        */
#define INF_SUBMIT_FLAG_AGAIN   0x10    /* CALL: a core had taken it and has
                                           died: a load ends no quarantine   */
#define INF_SUBMIT_FLAG_LOST    0x20    /* INFER: a core that had it has died;
                                           its sequence, if its model has any,
                                           was lost with that core           */

/* How the response cache was asked for a request. */
typedef enum {
    INF_LOOKUP_NONE = 0,        /* it was not asked                          */
    INF_LOOKUP_MISS = 1,
    INF_LOOKUP_HIT  = 2
} inf_lookup_t;

/* Independent flags; one completion may carry several. */
#define INF_COMPLETE_RESPONSE 0x01      /* offset, length: a response record */
#define INF_COMPLETE_FINAL    0x02      /* no more responses                 */
#define INF_COMPLETE_RELEASED 0x04      /* nobody reads the request's bytes  */
#define INF_COMPLETE_DECOUPLED 0x08     /* the first of a request with
                                           INF_REQUEST_STREAM: its model is
                                           decoupled; comes before the
                                           completions of later requests     */
#define INF_COMPLETE_LAST     0x80      /* took the ring's last place: more may
                                           wait in the core, so notify the
                                           submission eventfd after the pop;
                                           core/wire's own, callers never
                                           see it                            */

typedef struct {
    uint8_t  flags;
    uint8_t  cause;             /* inf_err_cause_t, why status is not OK     */
    uint8_t  lookup;            /* inf_lookup_t, for logs                    */
    uint8_t  traced;            /* 1: a trace notes when the response is
                                   released, so the core is notified then    */
    uint32_t status;            /* inf_status_t of this response             */
    uint32_t slot;
    uint32_t generation;
    uint64_t offset;            /* response arena: inf_response_record_t, or
                                   the answer of a CALL                      */
    uint64_t length;
    uint64_t queue_ns;          /* spent queued, by what was executed or has
                                   waited too long                           */
    uint64_t compute_ns;        /* spent in the backend                      */
    uint32_t batch_size;        /* rows of the payload that ran it           */
    uint32_t device;            /* where: INF_DEVICE_*                       */
    uint32_t compute_input_us;  /* of compute_ns, until the backend has asked
                                   for the last input                        */
    uint32_t compute_output_us; /* and since it has made the first output    */
} inf_completion_t;

/* Nowhere, or not known; the CPU; GPU number 0, and so on. */
#define INF_DEVICE_NONE 0u
#define INF_DEVICE_CPU  1u
#define INF_DEVICE_GPU  2u

_Static_assert(sizeof(inf_submission_t) == INF_RING_ENTRY_SIZE, "entry");
_Static_assert(sizeof(inf_completion_t) == INF_RING_ENTRY_SIZE, "entry");

/*
 * One byte per submission slot, stored by the core; after the core's death
 * the worker decides from it alone what may be sent again.
 */
typedef enum {
    INF_SLOT_FREE      = 0,
    INF_SLOT_QUEUED    = 1,
    INF_SLOT_EXECUTING = 2,
    INF_SLOT_ANSWERED  = 3      /* a response has left the core              */
} inf_slot_state_t;

#define INF_SLOT_STATE_MASK 0x0f
#define INF_SLOT_RETRYABLE  0x80        /* bits beside the state             */
#define INF_SLOT_SEQUENCE   0x40        /* earlier requests of the sequence
                                           ended with the core: never sent
                                           again                             */


/* ---- calls: one protobuf message of the gRPC service, answered by one (a
   REST body may stand for it) ---------------------------------------------- */

typedef enum {
    INF_METHOD_SERVER_LIVE = 1, /* never sent: the worker answers it         */
    INF_METHOD_SERVER_READY,
    INF_METHOD_MODEL_READY,
    INF_METHOD_SERVER_METADATA,
    INF_METHOD_MODEL_METADATA,
    INF_METHOD_MODEL_CONFIG,
    INF_METHOD_MODEL_STATISTICS,
    INF_METHOD_REPOSITORY_INDEX,
    INF_METHOD_REPOSITORY_MODEL_LOAD,
    INF_METHOD_REPOSITORY_MODEL_UNLOAD,
    INF_METHOD_SYSTEM_SHM_STATUS,
    INF_METHOD_SYSTEM_SHM_REGISTER,
    INF_METHOD_SYSTEM_SHM_UNREGISTER,
    INF_METHOD_CUDA_SHM_STATUS,
    INF_METHOD_CUDA_SHM_REGISTER,
    INF_METHOD_CUDA_SHM_UNREGISTER,
    INF_METHOD_TRACE_SETTING,
    INF_METHOD_LOG_SETTINGS,
    INF_METHOD_METRICS,
    INF_METHOD_STATUS,
    INF_METHOD_ARCHIVE_LIST,
    INF_METHOD_ARCHIVE_LOAD,
    INF_METHOD_ARCHIVE_UNLOAD,
    INF_METHOD_END              /* no method: behind the last one            */
} inf_method_t;

/*
 * The answer of a CALL up to this length is copied by the worker and released
 * at once, so it has room beyond the response arena's bound.  A longer one is
 * sent from the arena, however slowly its client reads.
 */
#define INF_CALL_COPIED UINT64_C(65536)

/*
 * A CALL that failed is answered with status != INF_OK and a record that is
 * the bare error text (length bytes, no NUL).
 */


/* ---- flat records -------------------------------------------------------- */

/* A text inside a record: offset from the record's first byte. */
typedef struct {
    uint32_t offset;
    uint32_t len;
} inf_ref_t;

typedef enum {
    INF_PROTOCOL_HTTP = 1,
    INF_PROTOCOL_GRPC = 2
} inf_protocol_t;

#define INF_REQUEST_SEQUENCE_START  0x01    /* TRITONSERVER_REQUEST_FLAG_*   */
#define INF_REQUEST_SEQUENCE_END    0x02
#define INF_REQUEST_CORRELATION_STR 0x10    /* the id is a text              */
#define INF_REQUEST_STREAM          0x40    /* takes any number of responses */
#define INF_REQUEST_RAW_INPUT       0x20    /* one input, bytes only: name,
                                               datatype and shape come from
                                               the model                     */
#define INF_REQUEST_GENERATE        0x80    /* with RAW_INPUT: the input is the
                                               JSON of a generate request; it
                                               names id, inputs, parameters  */
#define INF_REQUEST_LOAD_REPORT     0x100   /* the first response says how full
                                               the server's KV cache is      */

/* Tables are arrays at these offsets, 8-byte aligned, inside the record.  No
   two of the tables and texts share bytes. */
typedef struct {
    uint32_t  size;             /* of the whole record, tables and texts     */
    uint16_t  protocol;         /* inf_protocol_t                            */
    uint16_t  flags;            /* INF_REQUEST_*                             */
    inf_ref_t model_name;
    int64_t   model_version;    /* -1: by policy                             */
    inf_ref_t id;
    inf_ref_t correlation_text;
    uint64_t  correlation_id;
    uint64_t  priority;
    uint64_t  timeout_us;
    uint32_t  input_count;
    uint32_t  input_offset;     /* inf_record_input_t[]                      */
    uint32_t  output_count;     /* requested; 0: all                         */
    uint32_t  output_offset;    /* inf_record_output_t[]                     */
    uint32_t  parameter_count;
    uint32_t  parameter_offset; /* inf_record_parameter_t[]                  */
} inf_infer_record_t;

typedef enum {
    INF_DATA_ARENA      = 0,    /* offset, length in the request arena       */
    INF_DATA_SHM_REGION = 1     /* a registered region, named by shm_region  */
} inf_data_kind_t;

typedef struct {
    inf_ref_t name;
    uint32_t  datatype;         /* inf_datatype_t                            */
    uint32_t  dim_count;
    uint32_t  shape_offset;     /* int64_t[dim_count] inside the record      */
    uint32_t  data_kind;        /* inf_data_kind_t                           */
    inf_ref_t shm_region;
    uint64_t  data_offset;
    uint64_t  data_length;
} inf_record_input_t;

typedef struct {
    inf_ref_t name;
    uint32_t  classification;   /* k, 0: off.  The core adds labels then     */
    uint32_t  data_kind;        /* inf_data_kind_t; SHM: write there         */
    inf_ref_t shm_region;
    uint64_t  shm_offset;
    uint64_t  shm_length;
} inf_record_output_t;

typedef enum {                  /* as TRITONSERVER_ParameterType             */
    INF_PARAMETER_STRING = 0,
    INF_PARAMETER_INT    = 1,
    INF_PARAMETER_BOOL   = 2,
    INF_PARAMETER_DOUBLE = 3,
    INF_PARAMETER_BYTES  = 4
} inf_parameter_type_t;

typedef struct {
    inf_ref_t name;
    uint32_t  type;             /* inf_parameter_type_t                      */
    uint32_t  reserved;
    inf_ref_t text;             /* STRING, BYTES                             */
    union {
        int64_t i;              /* INT; BOOL as 0 or 1                       */
        double  d;
    } number;
} inf_record_parameter_t;

/* In the response arena; freed as one region with its outputs' bytes' regions
   when the worker sends RELEASE for its offset. */
typedef struct {
    uint32_t  size;             /* of record, tables and texts               */
    uint32_t  status;           /* inf_status_t                              */
    inf_ref_t error;            /* text, when status is not INF_OK           */
    inf_ref_t model_name;
    int64_t   model_version;
    inf_ref_t id;
    inf_ref_t backend;          /* for logs                                  */
    inf_ref_t instance;
    uint32_t  output_count;
    uint32_t  output_offset;    /* inf_response_output_t[]                   */
    uint32_t  parameter_count;
    uint32_t  parameter_offset; /* inf_record_parameter_t[]                  */
    uint32_t  batch_dim;        /* 1: the first dimension is the batch       */
    uint32_t  ranked;           /* 1: labels may be by place, as
                                   inf_classify_source_t says                */
    double    kv_utilization;   /* of the KV cache, and ...                  */
    uint64_t  kv_max_tokens;    /* ... what it may hold                      */
    uint32_t  kv_reported;      /* 1: both are known                         */
    uint32_t  reserved;
} inf_response_record_t;

typedef struct {
    inf_ref_t name;
    uint32_t  datatype;
    uint32_t  dim_count;
    uint32_t  shape_offset;     /* int64_t[dim_count] inside the record      */
    uint32_t  label_count;      /* of the labels table, 0: none              */
    uint32_t  label_offset;     /* inf_ref_t[label_count] inside the record  */
    uint32_t  data_kind;        /* inf_data_kind_t                           */
    uint64_t  data_offset;      /* in the response arena                     */
    uint64_t  data_length;
} inf_response_output_t;

#endif /* INF_CHANNEL_H */
