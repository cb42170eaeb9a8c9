#include "core/repository/code_upload.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/model/config_findings.h"
#include "core/model/config_parameter.h"
#include "core/model/private_inputs.h"
#include "core/proto/message.h"
#include "core/repository/kernel_settings.h"

/* Maximum of threads of one pool for each processor in a request. */
#define THREADS_MAX 4

#define HOW "; a load request may bring code only with" \
    " \"inference_code_upload on\""

/* the generated names do not fit on a line */
typedef Inference__ModelOptimizationPolicy__ExecutionAccelerators
    accelerators_t;
typedef Inference__ModelOptimizationPolicy__ExecutionAccelerators__Accelerator
    accelerator_t;
typedef Inference__ModelRepositoryAgents__Agent agent_t;

typedef struct {
    accelerator_t **items;
    size_t          count;
} accelerator_list_t;

static bool has_code_name(const char *name);
static bool is_library_name(const char *name);
static const char *code_content(const char *data, size_t len);
static inf_err_t *check_runtime(const Inference__ModelConfig *sent,
    const Inference__ModelConfig *own);
static inf_err_t *check_op_libraries(const Inference__ModelConfig *sent,
    const Inference__ModelConfig *own);
static inf_err_t *check_agents(const Inference__ModelConfig *sent,
    const Inference__ModelConfig *own);
static bool names_file(const char *key, const char *value);
static bool has_agent(const Inference__ModelConfig *own, const agent_t *agent);
static inf_err_t *check_parameters(const Inference__ModelConfig *sent,
    const Inference__ModelConfig *own);
static inf_err_t *check_threads(const Inference__ModelConfig *sent,
    const Inference__ModelConfig *own);
static bool is_thread_count(const char *key);
static inf_err_t *check_accelerators(const Inference__ModelConfig *sent,
    const Inference__ModelConfig *own);
static const accelerators_t *accelerators(const Inference__ModelConfig *msg);
static inf_err_t *check_accelerator_list(const char *list,
    accelerator_list_t sent, accelerator_list_t own);
static bool has_accelerator_parameter(accelerator_list_t list,
    const char *name, const char *key, const char *value);
static inf_err_t *not_accepted(const char *key, const char *value);

/* Extensions of sources, bytecode, machine code of CPUs and GPUs, serialized
   programs, and archives, whose content is not examined. */
static const char *const code_extensions[] = {
    "py", "pyc", "pyo", "pyd", "pyx", "pth", "pt", "pt2", "pkl", "pickle",
    "joblib", "whl", "egg", "sh", "bash", "lua", "js", "jar", "class",
    "c", "cc", "cpp", "cu", "cuh", "ptx", "cubin", "fatbin", "plan", "engine",
    "a", "o", "dll", "dylib", "wasm", "bc", "ll",
    "zip", "tar", "tgz", "gz", "bz2", "xz", "zst"
};

static const struct {
    size_t      offset;
    size_t      len;
    const char *bytes;
    const char *what;
} code_starts[] = {
    { 0, 4, "\177ELF", "a program or library by its first bytes" },
    { 0, 2, "#!", "a script by its first bytes" },
    { 0, 4, "\x50\xed\x55\xba", "GPU code by its first bytes" },
    { 0, 4, "BC\xc0\xde", "bitcode by its first bytes" },
    { 0, 4, "PK\3\4", "an archive by its first bytes" },
    { 0, 3, "\x1f\x8b\x08", "an archive by its first bytes" },
    { 0, 4, "BZh9", "an archive by its first bytes" },
    { 0, 6, "\xfd" "7zXZ\0", "an archive by its first bytes" },
    { 0, 4, "\x28\xb5\x2f\xfd", "an archive by its first bytes" },
    { 257, 5, "ustar", "an archive by its first bytes" }
};

/* Backends that read their models' files as data. */
static const char *const data_backends[] = {
    "identity", "onnxruntime"
};

const char *
inf_code_upload_is_code(const char *path, const char *data, size_t len)
{
    char *inner = strdup(path);
    if (inner == NULL) {
        return "unknown: out of memory";
    }

    const char *what = NULL;
    if (inf_override_normalize(inner)) {
        const char *slash = strrchr(inner, '/');
        if (has_code_name(slash != NULL ? slash + 1 : inner)) {
            what = "code by its name";
        }
    }
    free(inner);
    return what != NULL ? what : code_content(data, len);
}

inf_err_t *
inf_code_upload_check_files(const inf_override_t *o)
{
    for (size_t i = 0; o != NULL && i < o->file_count; i++) {
        const inf_override_file_t *f = &o->files[i];
        const char *what = inf_code_upload_is_code(f->path, f->data, f->len);
        if (what != NULL) {
            return inf_err_new(INF_ERR_INVALID_ARG, "file parameter 'file:%s'"
                " is not accepted: it is %s" HOW, f->path, what);
        }
    }

    return NULL;
}

inf_err_t *
inf_code_upload_check_backend(const inf_override_t *o, const char *backend)
{
    if (o == NULL || o->file_count == 0 || backend[0] == '\0') {
        return NULL;
    }

    for (size_t i = 0; i < sizeof(data_backends) / sizeof(data_backends[0]);
        i++)
    {
        if (strcmp(backend, data_backends[i]) == 0) {
            return NULL;
        }
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "file parameter 'file:%s' is not"
        " accepted: backend '%s' is not known to read files as data only" HOW,
        o->files[0].path, backend);
}

inf_err_t *
inf_code_upload_check_config(const Inference__ModelConfig *sent,
    const Inference__ModelConfig *own)
{
    static inf_err_t *(*const checks[])(const Inference__ModelConfig *,
        const Inference__ModelConfig *) = {
        check_runtime, check_op_libraries, check_agents, check_parameters,
        check_threads, check_accelerators, inf_kernel_settings_check
    };
    Inference__ModelConfig none = INFERENCE__MODEL_CONFIG__INIT;
    inf_err_t *err = NULL;

    for (size_t i = 0;
         err == NULL && i < sizeof(checks) / sizeof(checks[0]); i++)
    {
        err = checks[i](sent, own != NULL ? own : &none);
    }

    return err;
}

inf_err_t *
inf_code_upload_check_inputs(const Inference__ModelConfig *sent,
    const Inference__ModelConfig *own)
{
    const char *text = inf_config_parameter(sent, INF_PRIVATE_INPUTS_KEY);
    const char *known = inf_config_parameter(own, INF_PRIVATE_INPUTS_KEY);
    bool off = text != NULL && strcmp(text, "false") == 0;
    bool known_off = known != NULL && strcmp(known, "false") == 0;
    bool known_on = known != NULL && strcmp(known, "true") == 0;

    return (off && !known_off) || (text == NULL && known_on)
        ? not_accepted("parameters[\"" INF_PRIVATE_INPUTS_KEY "\"]",
            off ? text : "") : NULL;
}

static bool
has_code_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    if (dot == NULL) {
        return false;
    }

    for (size_t i = 0; i < sizeof(code_extensions)
        / sizeof(code_extensions[0]); i++)
    {
        if (strcasecmp(dot + 1, code_extensions[i]) == 0) {
            return true;
        }
    }

    return is_library_name(name);
}

/* Whether the name is like name.so, or name.so.1.2. */
static bool
is_library_name(const char *name)
{
    for (const char *so = name; (so = strcasestr(so, ".so")) != NULL; so++) {
        if (so[3] == '\0' || so[3] == '.') {
            return true;
        }
    }

    return false;
}

static const char *
code_content(const char *data, size_t len)
{
    for (size_t i = 0; i < sizeof(code_starts) / sizeof(code_starts[0]); i++) {
        size_t end = code_starts[i].offset + code_starts[i].len;
        if (len >= end && memcmp(data + code_starts[i].offset,
                code_starts[i].bytes, code_starts[i].len) == 0)
        {
            return code_starts[i].what;
        }
    }

    return NULL;
}

static inf_err_t *
check_runtime(const Inference__ModelConfig *sent,
    const Inference__ModelConfig *own)
{
    return sent->runtime[0] == '\0'
        || strcmp(sent->runtime, own->runtime) == 0 ? NULL
        : not_accepted("runtime", sent->runtime);
}

static inf_err_t *
check_op_libraries(const Inference__ModelConfig *sent,
    const Inference__ModelConfig *own)
{
    const Inference__ModelOperations *in = sent->model_operations;
    const Inference__ModelOperations *known = own->model_operations;

    for (size_t i = 0; in != NULL && i < in->n_op_library_filename; i++) {
        const char *name = in->op_library_filename[i];
        bool found = false;

        for (size_t k = 0;
             known != NULL && k < known->n_op_library_filename; k++)
        {
            found |= strcmp(name, known->op_library_filename[k]) == 0;
        }
        if (!found) {
            return not_accepted("model_operations.op_library_filename", name);
        }
    }

    return NULL;
}

static inf_err_t *
check_agents(const Inference__ModelConfig *sent,
    const Inference__ModelConfig *own)
{
    const Inference__ModelRepositoryAgents *in =
        sent->model_repository_agents;

    for (size_t i = 0; in != NULL && i < in->n_agents; i++) {
        if (!has_agent(own, in->agents[i])) {
            return not_accepted("model_repository_agents.agents.name",
                in->agents[i]->name);
        }
    }

    return NULL;
}

/* Whether own names the agent with all its parameters. */
static bool
has_agent(const Inference__ModelConfig *own, const agent_t *agent)
{
    const Inference__ModelRepositoryAgents *known =
        own->model_repository_agents;

    for (size_t i = 0; known != NULL && i < known->n_agents; i++) {
        if (inf_message_same(&known->agents[i]->base, &agent->base)) {
            return true;
        }
    }

    return false;
}

static inf_err_t *
check_parameters(const Inference__ModelConfig *sent,
    const Inference__ModelConfig *own)
{
    char key[INF_KEY_MAX];

    for (size_t i = 0; i < sent->n_parameters; i++) {
        const Inference__ModelParameter *p = sent->parameters[i]->value;
        const char *name = sent->parameters[i]->key;
        const char *value = p != NULL ? p->string_value : "";
        const char *known = inf_config_parameter(own, name);

        if (names_file(name, value)
            && (known == NULL || strcmp(value, known) != 0))
        {
            return not_accepted(inf_key(key, "parameters[\"%s\"]", name),
                value);
        }
    }

    return NULL;
}

/* Whether a parameter names a file, by its value or by a word of its key: the
   value may lack a directory, and files may be written, too. */
static bool
names_file(const char *key, const char *value)
{
    static const char *const words[] = {
        "file", "files", "filename", "path", "paths", "dir", "directory",
        "folder"
    };

    for (size_t len; *key != '\0' && value[0] != '\0'; key += len) {
        len = strcspn(key, "_.- ");
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
            if (strlen(words[i]) == len
                && strncasecmp(key, words[i], len) == 0)
            {
                return true;
            }
        }
        len += key[len] != '\0';
    }

    return strchr(value, '/') != NULL;
}

/* Checks counts of threads; invalid numbers are left to the backend. */
static inf_err_t *
check_threads(const Inference__ModelConfig *sent,
    const Inference__ModelConfig *own)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    long most = THREADS_MAX * (processors > 0 ? processors : 1);

    for (size_t i = 0; i < sent->n_parameters; i++) {
        const Inference__ModelParameter *p = sent->parameters[i]->value;
        const char *name = sent->parameters[i]->key;
        const char *value = p != NULL ? p->string_value : "";
        const char *known = inf_config_parameter(own, name);

        if (is_thread_count(name) && strtol(value, NULL, 10) > most
            && (known == NULL || strcmp(value, known) != 0))
        {
            return inf_err_new(INF_ERR_INVALID_ARG, "parameters[\"%s\"]: '%s'"
                " is not accepted: the limit for a load request is %ld, %d"
                " for each processor; it may bring more only with"
                " \"inference_code_upload on\", or where the repository's"
                " configuration of the model says the same", name, value,
                most, THREADS_MAX);
        }
    }

    return NULL;
}

/* Whether key is a count of threads: of onnxruntime and pytorch (for each
   instance), or of openvino (for the model). */
static bool
is_thread_count(const char *key)
{
    static const char *const keys[] = {
        "intra_op_thread_count", "inter_op_thread_count",
        "INFERENCE_NUM_THREADS", "COMPILATION_NUM_THREADS", "NUM_STREAMS",
        "INTRA_OP_THREAD_COUNT", "INTER_OP_THREAD_COUNT"
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strcmp(key, keys[i]) == 0) {
            return true;
        }
    }

    return false;
}

static inf_err_t *
check_accelerators(const Inference__ModelConfig *sent,
    const Inference__ModelConfig *own)
{
    const accelerators_t *in = accelerators(sent);
    const accelerators_t *known = accelerators(own);
    accelerator_list_t none = { .count = 0 };

    if (in == NULL) {
        return NULL;
    }

    inf_err_t *err = check_accelerator_list("gpu_execution_accelerator",
        (accelerator_list_t) {
            in->gpu_execution_accelerator, in->n_gpu_execution_accelerator
        },
        known == NULL ? none : (accelerator_list_t) {
            known->gpu_execution_accelerator,
            known->n_gpu_execution_accelerator
        });
    return err != NULL ? err
        : check_accelerator_list("cpu_execution_accelerator",
            (accelerator_list_t) {
                in->cpu_execution_accelerator, in->n_cpu_execution_accelerator
            },
            known == NULL ? none : (accelerator_list_t) {
                known->cpu_execution_accelerator,
                known->n_cpu_execution_accelerator
            });
}

static const accelerators_t *
accelerators(const Inference__ModelConfig *msg)
{
    return msg->optimization != NULL
        ? msg->optimization->execution_accelerators : NULL;
}

static inf_err_t *
check_accelerator_list(const char *list, accelerator_list_t sent,
    accelerator_list_t own)
{
    char key[INF_KEY_MAX];

    for (size_t i = 0; i < sent.count; i++) {
        const accelerator_t *a = sent.items[i];

        for (size_t k = 0; k < a->n_parameters; k++) {
            const char *name = a->parameters[k]->key;
            const char *value = a->parameters[k]->value;

            if (names_file(name, value)
                && !has_accelerator_parameter(own, a->name, name, value))
            {
                return not_accepted(inf_key(key, "optimization."
                    "execution_accelerators.%s[%zu].parameters[\"%s\"]",
                    list, i, name), value);
            }
        }
    }

    return NULL;
}

static bool
has_accelerator_parameter(accelerator_list_t list, const char *name,
    const char *key, const char *value)
{
    for (size_t i = 0; i < list.count; i++) {
        const accelerator_t *a = list.items[i];

        for (size_t k = 0;
             strcmp(a->name, name) == 0 && k < a->n_parameters; k++)
        {
            if (strcmp(a->parameters[k]->key, key) == 0
                && strcmp(a->parameters[k]->value, value) == 0)
            {
                return true;
            }
        }
    }

    return false;
}

static inf_err_t *
not_accepted(const char *key, const char *value)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "%s: '%s' is not accepted: a load"
        " request may bring it only with \"inference_code_upload on\", or"
        " where the repository's configuration of the model says the same",
        key, value);
}
