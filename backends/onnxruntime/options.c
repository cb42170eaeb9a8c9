/* options.c - see options.h */

#include "options.h"

#include "providers.h"

#include <string.h>

#define SESSION_PREFIX "session."
#define MEMORY_PREFIX  "memory."

/* It would move external data away from the model file. */
#define SESSION_DIRECTORY "session.model_external_initializers_file_folder_path"

static TRITONSERVER_Error *set_threads(ort_options_t *o,
    const ort_runtime_t *rt, const bk_model_config_t *config);
static TRITONSERVER_Error *set_graph_level(ort_options_t *o,
    const ort_runtime_t *rt, const bk_model_config_t *config);
static TRITONSERVER_Error *set_memory(ort_options_t *o,
    const ort_runtime_t *rt, const bk_model_config_t *config);
static TRITONSERVER_Error *set_entries(ort_options_t *o,
    const ort_runtime_t *rt, const bk_model_config_t *config);
static TRITONSERVER_Error *set_op_libraries(ort_options_t *o,
    const ort_runtime_t *rt, const bk_model_config_t *config);

TRITONSERVER_Error *
ort_options_new(ort_options_t *o, const ort_runtime_t *rt,
    const bk_model_config_t *config, TRITONSERVER_InstanceGroupKind kind,
    int32_t device_id)
{
    static TRITONSERVER_Error *(*const steps[])(ort_options_t *,
        const ort_runtime_t *, const bk_model_config_t *) = {
        set_threads, set_graph_level, set_memory, set_entries,
        set_op_libraries
    };

    *o = (ort_options_t) { 0 };
    TRITONSERVER_Error *err = ort_err(rt,
        rt->api->CreateSessionOptions(&o->session), "session options");
    if (err == NULL) {
        err = ort_err(rt, rt->api->CreateRunOptions(&o->run), "run options");
    }

    for (size_t i = 0;
         err == NULL && i < sizeof(steps) / sizeof(steps[0]); i++)
    {
        err = steps[i](o, rt, config);
    }

    if (err == NULL) {
        err = ort_providers_append(o->session, rt, config, kind, device_id);
    }

    if (err != NULL) {
        ort_options_free(o, rt);
    }

    return err;
}

void
ort_options_free(ort_options_t *o, const ort_runtime_t *rt)
{
    if (o->session != NULL) {
        rt->api->ReleaseSessionOptions(o->session);
    }
    if (o->run != NULL) {
        rt->api->ReleaseRunOptions(o->run);
    }
    *o = (ort_options_t) { 0 };
}

static TRITONSERVER_Error *
set_threads(ort_options_t *o, const ort_runtime_t *rt,
    const bk_model_config_t *config)
{
    int64_t intra = 1;
    int64_t inter = 1;
    int64_t mode = 0;

    TRITONSERVER_Error *err = bk_model_config_parameter_int(config,
        "execution_mode", 0, 1, &mode);
    if (err != NULL) {
        return err;
    }

    err = bk_model_config_parameter_int(config, "intra_op_thread_count", 0,
        ORT_THREADS_MAX, &intra);
    if (err != NULL) {
        return err;
    }

    err = bk_model_config_parameter_int(config, "inter_op_thread_count", 0,
        ORT_THREADS_MAX, &inter);
    if (err != NULL) {
        return err;
    }

    ort_must(rt, rt->api->SetSessionExecutionMode(o->session,
        mode == 0 ? ORT_SEQUENTIAL : ORT_PARALLEL));

    /* with the shared pool the model's own counts don't matter */
    if (rt->global_threads) {
        ort_must(rt, rt->api->DisablePerSessionThreads(o->session));
        return NULL;
    }

    ort_must(rt, rt->api->SetIntraOpNumThreads(o->session, (int) intra));
    ort_must(rt, rt->api->SetInterOpNumThreads(o->session, (int) inter));
    return NULL;
}

static TRITONSERVER_Error *
set_graph_level(ort_options_t *o, const ort_runtime_t *rt,
    const bk_model_config_t *config)
{
    static const GraphOptimizationLevel levels[] = {
        ORT_ENABLE_BASIC, ORT_ENABLE_ALL, ORT_ENABLE_EXTENDED, ORT_DISABLE_ALL
    };

    const bk_json_t *optimization = bk_json_member(config->root,
        "optimization");
    const bk_json_t *graph = bk_json_member(optimization, "graph");
    int64_t level = bk_json_int(bk_json_member(graph, "level"), 0);

    if (level < -1 || level > 2) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "optimization.graph.level is %lld; it must be -1 (basic), 0 (all)"
            ", 1 (extended) or 2 (none)", (long long) level);
    }

    return ort_err(rt, rt->api->SetSessionGraphOptimizationLevel(o->session,
        levels[level + 1]), "optimization.graph.level");
}

static TRITONSERVER_Error *
set_memory(ort_options_t *o, const ort_runtime_t *rt,
    const bk_model_config_t *config)
{
    bool pattern = true;
    bool arena = true;

    TRITONSERVER_Error *err = bk_model_config_parameter_bool(config,
        "enable_mem_arena", &arena);
    if (err == NULL) {
        err = bk_model_config_parameter_bool(config, "enable_mem_pattern",
            &pattern);
    }
    if (err != NULL) {
        return err;
    }

    ort_must(rt, arena ? rt->api->EnableCpuMemArena(o->session)
        : rt->api->DisableCpuMemArena(o->session));
    ort_must(rt, pattern ? rt->api->EnableMemPattern(o->session)
        : rt->api->DisableMemPattern(o->session));
    return NULL;
}

/* session.* and memory.* go to the library as they are */
static TRITONSERVER_Error *
set_entries(ort_options_t *o, const ort_runtime_t *rt,
    const bk_model_config_t *config)
{
    TRITONSERVER_Error *err = NULL;
    bk_json_iter_t it = {
        .object = bk_json_member(config->root, "parameters")
    };

    while (err == NULL && bk_json_next(&it)) {
        const char *value = bk_json_string(bk_json_member(it.value,
            "string_value"), "");

        if (strcmp(it.key, SESSION_DIRECTORY) == 0) {
            err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "parameter \"%s\" is not taken: external data lies beside"
                " the model file", it.key);

        } else if (strncmp(it.key, SESSION_PREFIX,
            strlen(SESSION_PREFIX)) == 0)
        {
            err = ort_err(rt, rt->api->AddSessionConfigEntry(o->session,
                it.key, value), "parameter \"%s\"", it.key);

        } else if (strncmp(it.key, MEMORY_PREFIX,
            strlen(MEMORY_PREFIX)) == 0)
        {
            err = ort_err(rt, rt->api->AddRunConfigEntry(o->run, it.key,
                value), "parameter \"%s\"", it.key);
        }
    }

    return err;
}

static TRITONSERVER_Error *
set_op_libraries(ort_options_t *o, const ort_runtime_t *rt,
    const bk_model_config_t *config)
{
    const bk_json_t *list = bk_json_member(bk_json_member(config->root,
        "model_operations"), "op_library_filename");

    for (size_t i = 0; i < bk_json_count(list); i++) {
        const char *path = bk_json_string(bk_json_at(list, i), "");

        TRITONSERVER_Error *err = ort_err(rt,
            rt->api->RegisterCustomOpsLibrary_V2(o->session, path),
            "model_operations.op_library_filename \"%s\"", path);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}
