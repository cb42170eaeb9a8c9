/*
 * fakecore.h - just enough of a core to load a backend and run it by hand.
 *
 * Owner    fake_backend_t owns its models' handles; a request owns its input
 *          copies and what was answered to it until fake_request_free.
 * Thread   one.
 * Units    sizes in bytes.
 * Errors   Loading and executing give the backend's own error to the caller.
 *          A call that a backend must never make fails the test at once, by
 *          name.
 * Route    test -> [fakecore] -> backend's entry points -> [fakecore]
 */

#ifndef FAKECORE_H
#define FAKECORE_H

#include "triton/core/tritonbackend.h"

#define FAKE_MAX_TENSORS 16
#define FAKE_MAX_CHUNKS  16
#define FAKE_MAX_DIMS    8

typedef struct {
    char                    name[64];
    TRITONSERVER_DataType   datatype;
    int64_t                 shape[FAKE_MAX_DIMS];
    uint32_t                dims_count;
    void                   *chunks[FAKE_MAX_CHUNKS];
    uint64_t                chunk_lens[FAKE_MAX_CHUNKS];
    uint32_t                chunk_count;
    TRITONSERVER_MemoryType memory;     /* what the core says of it          */
    int64_t                 memory_id;
    bool                    may_be_gpu; /* outputs: of a GPU instance        */
    bool                    allocated;  /* outputs: a buffer was asked for;
                                         * states: updated                   */
} fake_tensor_t;

typedef struct {
    char                       key[64];
    TRITONSERVER_ParameterType type;
    char                       text[64];
    int64_t                    number;
    bool                       flag;
    double                     real;
} fake_parameter_t;

typedef struct fake_model fake_model_t;

typedef struct {
    fake_model_t     *model;
    fake_tensor_t     inputs[FAKE_MAX_TENSORS];
    uint32_t          input_count;
    char              wanted[FAKE_MAX_TENSORS][64];
    uint32_t          wanted_count;
    fake_parameter_t  parameters[FAKE_MAX_TENSORS];
    uint32_t          parameter_count;
    bool              cancelled;
    uint64_t          cancelled_after;  /* so many batches; 0: not at all     */
    bool              queried;          /* the core knows where outputs lie  */
    bool              outputs_on_gpu;   /* of GPU 0, also if not asked for    */
    bool              has_states;       /* of a sequence                      */
    uint64_t          correlation_id;

    /* what came back */
    fake_tensor_t     outputs[FAKE_MAX_TENSORS];
    uint32_t          output_count;
    fake_tensor_t     states[FAKE_MAX_TENSORS];
    uint32_t          state_count;
    fake_parameter_t  answered[FAKE_MAX_TENSORS];
    uint32_t          answered_count;
    bool              final;
    bool              failed;
    int               error_code;
    char              error[1024];
    uint32_t          reported;         /* ReportStatistics calls            */
    bool              reported_success;
    uint64_t          times[4];
    bool              released;
} fake_request_t;

typedef struct {
    void                    *library;
    char                    *settings;  /* JSON of BackendConfig             */
    void                    *state;
    bool                     parallel;  /* it asked for parallel loading     */
} fake_backend_t;

struct fake_model {
    fake_backend_t                *backend;
    char                           name[64];
    char                           folder[512];
    uint64_t                       version;
    char                          *config;
    bool                           may_complete;
    TRITONSERVER_InstanceGroupKind kind;
    int32_t                        device_id;
    void                          *state;
    void                          *instance_state;
    bool                           instance_up;
    uint64_t                       batches;     /* ReportBatchStatistics     */
    uint64_t                       rows;
};

/* The library's path; the test fails if it cannot be loaded.  settings may
 * be NULL. */
TRITONSERVER_Error *fake_backend_open(fake_backend_t *b, const char *path,
    const char *settings);
void fake_backend_close(fake_backend_t *b);

/* ModelInitialize and ModelInstanceInitialize; on error both finalizers have
 * run, as in the real core. */
TRITONSERVER_Error *fake_model_load(fake_model_t *m, fake_backend_t *b,
    const char *folder, const char *config, bool may_complete,
    TRITONSERVER_InstanceGroupKind kind);
void fake_model_unload(fake_model_t *m);

/* The device of the next model's instance; 0 again after it. */
void fake_next_device(int32_t id);

/* From where outputs on a GPU get their memory; the test's. */
void fake_device_memory(void *(*alloc)(uint64_t size), void (*free)(void *p));

fake_request_t *fake_request_new(fake_model_t *m);
void fake_request_free(fake_request_t *r);

/* Copies the data to memory of exactly that size. */
fake_tensor_t *fake_request_input(fake_request_t *r, const char *name,
    TRITONSERVER_DataType datatype, const int64_t *shape, uint32_t dims_count,
    const void *data, uint64_t len_bytes);
/* The tensor's one piece lies at data, on GPU id; the test's memory. */
void fake_tensor_on_gpu(fake_tensor_t *t, void *data, uint64_t len_bytes,
    int64_t id);
void fake_tensor_append(fake_tensor_t *t, const void *data,
    uint64_t len_bytes);
void fake_request_want(fake_request_t *r, const char *output);
fake_parameter_t *fake_request_parameter(fake_request_t *r, const char *key,
    TRITONSERVER_ParameterType type);

/* One Execute; afterwards every request has one final response, statistics
 * and a release, or the test has failed. */
void fake_execute(fake_model_t *m, fake_request_t **requests, uint32_t count);

/* The answered output; the test fails if there is none. */
const fake_tensor_t *fake_request_output(const fake_request_t *r,
    const char *name);

/* The state that the request left; NULL: it left none of that name. */
const fake_tensor_t *fake_request_state(const fake_request_t *r,
    const char *name);

/* Objects that the backend made and did not give back. */
int fake_leftovers(void);

/* How many lines of that level were logged. */
unsigned fake_logged(TRITONSERVER_LogLevel level);

/* The text of the last line. */
const char *fake_last_log(void);

#endif /* FAKECORE_H */
