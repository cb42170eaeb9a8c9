/* Any name and value of a parameter of the checksum agent: an error or not,
   nothing outside of the model's directory is read. */
#include <stdint.h>

#define TRITONREPOAGENT_Initialize  agent_initialize
#define TRITONREPOAGENT_ModelAction agent_model_action
#define TRITONREPOAGENT_ModelParameter       agent_parameter
#define TRITONREPOAGENT_ModelParameterCount  agent_parameter_count
#define TRITONREPOAGENT_ModelRepositoryLocation agent_location

#include "examples/agents/checksum/digest.c"
#undef error
#include "examples/agents/checksum/checksum.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *key;
static const char *value;
static char        folder[] = "/tmp/inf-fuzz-checksum-XXXXXX";

TRITONSERVER_Error *
agent_parameter(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model, const uint32_t index,
    const char **name, const char **text)
{
    (void) agent;
    (void) model;
    (void) index;
    *name = key;
    *text = value;
    return NULL;
}

TRITONSERVER_Error *
agent_parameter_count(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model, uint32_t *count)
{
    (void) agent;
    (void) model;
    *count = 1;
    return NULL;
}

TRITONSERVER_Error *
agent_location(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model, TRITONREPOAGENT_ArtifactType *type,
    const char **location)
{
    (void) agent;
    (void) model;
    *type = TRITONREPOAGENT_ARTIFACT_FILESYSTEM;
    *location = folder;
    return NULL;
}

static void
remove_folder(void)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/f", folder);
    unlink(path);
    rmdir(folder);
}

static void
make_folder(void)
{
    char path[64];

    if (mkdtemp(folder) == NULL) {
        abort();
    }
    atexit(remove_folder);
    snprintf(path, sizeof(path), "%s/f", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "x", 1) != 1) {
        abort();
    }
    close(fd);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 2);

    if (strchr(folder, 'X') != NULL && access(folder, F_OK) != 0) {
        make_folder();
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    text[size + 1] = '\0';
    key = text;
    value = text + strlen(text) + 1;
    if (value > text + size + 1) {
        value = "";
    }

    TRITONSERVER_Error *err = agent_model_action(NULL, NULL,
        TRITONREPOAGENT_ACTION_LOAD);
    if (err == NULL && strcasecmp(value, "9dd4e461268c8034f5c8564e155c67a6")
        != 0 && strlen(value) != 64)
    {
        abort();                        /* of another file than f            */
    }
    TRITONSERVER_ErrorDelete(err);
    free(text);
    return 0;
}
