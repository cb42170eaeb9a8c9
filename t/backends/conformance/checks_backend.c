/* checks_backend.c - versions, the backend object, memory, attributes. */

#include "conformance.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void check_config(cf_report_t *r, cf_backend_t *b);
static void check_artifacts(cf_report_t *r, const cf_backend_t *b);
static void check_policy(cf_report_t *r, const cf_backend_t *b);
static void check_kind(cf_report_t *r, TRITONBACKEND_MemoryManager *m,
    TRITONSERVER_MemoryType type);
static void check_buffer_attributes(cf_report_t *r);

void
cf_backend_check(cf_report_t *r, cf_backend_t *b)
{
    TRITONBACKEND_MemoryManager *again = NULL;
    uint32_t                     major = 0, minor = 0;
    const char                  *name = NULL;

    cf_succeeds(r, TRITONBACKEND_ApiVersion(&major, &minor),
        "29: ApiVersion always succeeds");
    cf_check(r, major == 1 && minor >= 19, "29: the version is 1.19 or later");
    cf_succeeds(r, TRITONBACKEND_BackendName(b->handle, &name),
        "17: BackendName gives a name");
    cf_check(r, name != NULL && strcmp(name, "conformance") == 0,
        "17: BackendName is the name in the model's configuration");
    cf_succeeds(r, TRITONBACKEND_BackendMemoryManager(b->handle, &b->manager),
        "26: a backend has the memory manager");
    cf_succeeds(r, TRITONBACKEND_BackendMemoryManager(b->handle, &again),
        "26: a backend has the memory manager");
    cf_check(r, b->manager != NULL && again == b->manager,
        "26: the memory manager is one handle");
    check_config(r, b);
    check_artifacts(r, b);
    check_policy(r, b);
    check_buffer_attributes(r);
}

/* The keys that are always there, in their order. */
static void
check_config(cf_report_t *r, cf_backend_t *b)
{
    TRITONSERVER_Message *again = NULL;
    const char           *text = "";
    size_t                size = 0;

    cf_succeeds(r, TRITONBACKEND_BackendConfig(b->handle, &b->config),
        "17: BackendConfig gives a message");
    cf_succeeds(r, TRITONBACKEND_BackendConfig(b->handle, &again),
        "17: BackendConfig gives a message");
    cf_check(r, b->config != NULL && again == b->config,
        "5: BackendConfig gives the same message each time");
    if (b->config == NULL) {
        return;
    }

    cf_succeeds(r, TRITONSERVER_MessageSerializeToJson(b->config, &text,
        &size), "5: a message is given as text");
    cf_check(r, strlen(text) == size, "5: a text ends in NUL at its size");
    cf_check(r, strncmp(text, "{\"cmdline\":{", 12) == 0
        && strcmp(text + size - 2, "}}") == 0,
        "17: BackendConfig is {\"cmdline\":{...}}");
    const char *complete = strstr(text, "\"auto-complete-config\":\"");
    const char *folder = strstr(text, "\"backend-directory\":\"");
    const char *compute = strstr(text, "\"min-compute-capability\":\"");
    const char *batch = strstr(text, "\"default-max-batch-size\":\"");

    cf_check(r, complete != NULL && folder != NULL && compute != NULL
        && batch != NULL, "17: four settings are always there");
    cf_check(r, complete < folder && folder < compute,
        "17: settings are sorted by key");
    if (batch != NULL && strncmp(strchr(batch, ':'), ":\"4\"}}", 6) == 0) {
        cf_check(r, batch > compute,
            "17: default-max-batch-size is appended when it is absent");
    }
    if (compute != NULL) {
        const char *point = strchr(strchr(compute, ':'), '.');

        cf_check(r, point != NULL && strspn(point + 1, "0123456789") == 6,
            "17: min-compute-capability has six decimals");
    }
}

static void
check_artifacts(cf_report_t *r, const cf_backend_t *b)
{
    TRITONBACKEND_ArtifactType type = 7;
    const char                *where = NULL;
    struct stat                st;

    cf_succeeds(r, TRITONBACKEND_BackendArtifacts(b->handle, &type, &where),
        "17: BackendArtifacts gives a location");
    cf_check(r, type == TRITONBACKEND_ARTIFACT_FILESYSTEM,
        "17: artifacts are in the file system");
    cf_check(r, where != NULL && stat(where, &st) == 0 && S_ISDIR(st.st_mode),
        "17: the location is a folder");
    cf_check(r, where != NULL && where[0] != '\0'
        && where[strlen(where) - 1] != '/', "17: without a trailing slash");
}

static void
check_policy(cf_report_t *r, const cf_backend_t *b)
{
    TRITONBACKEND_ExecutionPolicy policy = 7;

    cf_succeeds(r, TRITONBACKEND_BackendExecutionPolicy(b->handle, &policy),
        "17: a backend has an execution policy");
    cf_check(r, policy == TRITONBACKEND_EXECUTION_BLOCKING,
        "17: the policy is BLOCKING at first");
    cf_succeeds(r, TRITONBACKEND_BackendSetExecutionPolicy(b->handle,
        TRITONBACKEND_EXECUTION_DEVICE_BLOCKING), "17: it can be set");
    cf_succeeds(r, TRITONBACKEND_BackendExecutionPolicy(b->handle, &policy),
        "17: a backend has an execution policy");
    cf_check(r, policy == TRITONBACKEND_EXECUTION_DEVICE_BLOCKING,
        "17: the policy is what was set");
    cf_succeeds(r, TRITONBACKEND_BackendSetExecutionPolicy(b->handle,
        TRITONBACKEND_EXECUTION_BLOCKING), "17: it can be set");
}

void
cf_memory_check(cf_report_t *r, TRITONBACKEND_MemoryManager *m)
{
    void *p = NULL;

    cf_succeeds(r, TRITONBACKEND_MemoryManagerAllocate(m, &p,
        TRITONSERVER_MEMORY_CPU, 0, 0), "26: CPU memory of no bytes");
    cf_check(r, p != NULL, "26: no bytes of CPU memory have an address");
    cf_succeeds(r, TRITONBACKEND_MemoryManagerFree(m, p,
        TRITONSERVER_MEMORY_CPU, 0), "26: Free takes what Allocate gave");
    p = NULL;
    cf_succeeds(r, TRITONBACKEND_MemoryManagerAllocate(m, &p,
        TRITONSERVER_MEMORY_CPU, 0, 4096), "26: CPU memory can be had");
    if (p != NULL) {
        memset(p, 0xab, 4096);
        cf_succeeds(r, TRITONBACKEND_MemoryManagerFree(m, p,
            TRITONSERVER_MEMORY_CPU, 0), "26: Free takes what Allocate gave");
    }
    check_kind(r, m, TRITONSERVER_MEMORY_CPU_PINNED);
    check_kind(r, m, TRITONSERVER_MEMORY_GPU);
}

/* Without a GPU a kind may be missing, never replaced by another. */
static void
check_kind(cf_report_t *r, TRITONBACKEND_MemoryManager *m,
    TRITONSERVER_MemoryType type)
{
    void *p = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_MemoryManagerAllocate(m, &p, type,
        0, 64);
    if (err == NULL) {
        cf_check(r, p != NULL, "26: success comes with an address");
        cf_succeeds(r, TRITONBACKEND_MemoryManagerFree(m, p, type, 0),
            "26: Free takes what Allocate gave");
        return;
    }

    TRITONSERVER_Error_Code code = TRITONSERVER_ErrorCode(err);

    cf_check(r, code == TRITONSERVER_ERROR_UNSUPPORTED
        || code == TRITONSERVER_ERROR_UNAVAILABLE
        || code == TRITONSERVER_ERROR_INTERNAL,
        "26: a missing kind is UNSUPPORTED, UNAVAILABLE or INTERNAL");
    TRITONSERVER_ErrorDelete(err);
}

void
cf_attributes_check(cf_report_t *r,
    TRITONBACKEND_BackendAttribute *attributes)
{
    const uint64_t gpus[2] = { 0, 1 };

    cf_succeeds(r, TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
        attributes, TRITONSERVER_INSTANCEGROUPKIND_GPU, 1, gpus, 2),
        "17: a preferred group may name devices");
    cf_succeeds(r, TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
        attributes, TRITONSERVER_INSTANCEGROUPKIND_CPU, 2, NULL, 0),
        "17: a preferred group may name none");
    cf_succeeds(r,
        TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
        attributes, true), "17: instances may load in parallel");
    cf_succeeds(r,
        TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
        attributes, false), "17: or one by one");
}

static void
check_buffer_attributes(cf_report_t *r)
{
    TRITONSERVER_BufferAttributes *a = NULL;
    TRITONSERVER_MemoryType        type = TRITONSERVER_MEMORY_GPU;
    unsigned char                  handle[64];
    void                          *seen = handle;
    size_t                         size = 7;
    int64_t                        id = 7;

    memset(handle, 0x5a, sizeof(handle));
    cf_succeeds(r, TRITONSERVER_BufferAttributesNew(&a),
        "7: buffer attributes can be made");
    if (a == NULL) {
        return;
    }

    TRITONSERVER_BufferAttributesMemoryType(a, &type);
    TRITONSERVER_BufferAttributesMemoryTypeId(a, &id);
    TRITONSERVER_BufferAttributesByteSize(a, &size);
    TRITONSERVER_BufferAttributesCudaIpcHandle(a, &seen);
    cf_check(r, type == TRITONSERVER_MEMORY_CPU && id == 0 && size == 0
        && seen == NULL, "7: new attributes are CPU, id 0, no bytes, no"
        " handle");

    TRITONSERVER_BufferAttributesSetCudaIpcHandle(a, handle);
    TRITONSERVER_BufferAttributesCudaIpcHandle(a, &seen);
    cf_check(r, seen != NULL && seen != handle
        && memcmp(seen, handle, sizeof(handle)) == 0,
        "7: a handle is copied, 64 bytes");
    cf_succeeds(r, TRITONSERVER_BufferAttributesDelete(a),
        "7: buffer attributes can be deleted");
}
