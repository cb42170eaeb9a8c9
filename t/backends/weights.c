/*
 * weights.c - a backend that reads all files of its version's directory into
 * memory, as one with weights does, and gives back its first input.
 */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "answer.h"

#define FILES 64
#define PIECE ((size_t) 1 << 16)    /* a kernel without preemption keeps its
                                       processor for as long as a read takes */

typedef struct {
    void  *data[FILES];
    size_t count;
} weights_t;

static TRITONSERVER_Error *
failed(const char *what)
{
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, what);
}

static void
forget(weights_t *w)
{
    for (size_t i = 0; i < w->count; i++) {
        free(w->data[i]);
    }
    free(w);
}

static TRITONSERVER_Error *
read_file(weights_t *w, const char *path)
{
    struct stat st;
    int         fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) != 0 || w->count == FILES) {
        close(fd);
        return failed("a file can't be opened");
    }

    size_t size = (size_t) st.st_size, got = 0;
    char  *data = malloc(size + 1);

    while (data != NULL && got < size) {
        ssize_t n = read(fd, data + got, size - got < PIECE ? size - got
            : PIECE);

        if (n <= 0) {
            free(data);
            data = NULL;
        } else {
            got += (size_t) n;
        }
    }
    close(fd);
    if (data == NULL) {
        return failed("a file can't be read");
    }
    w->data[w->count++] = data;
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    TRITONBACKEND_ArtifactType type;
    TRITONSERVER_Error        *err = NULL;
    const struct dirent       *entry;
    const char                *folder;
    uint64_t                   version = 0;
    char                       path[4096];
    weights_t                 *w = calloc(1, sizeof(*w));

    TRITONBACKEND_ModelRepository(model, &type, &folder);
    TRITONBACKEND_ModelVersion(model, &version);
    snprintf(path, sizeof(path), "%s/%llu", folder,
             (unsigned long long) version);

    DIR *dir = w != NULL ? opendir(path) : NULL;
    if (dir == NULL) {
        free(w);
        return failed("the version has no folder");
    }
    while (err == NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_type == DT_REG) {
            snprintf(path, sizeof(path), "%s/%llu/%s", folder,
                     (unsigned long long) version, entry->d_name);
            err = read_file(w, path);
        }
    }
    closedir(dir);
    if (err != NULL) {
        forget(w);
        return err;
    }
    return TRITONBACKEND_ModelSetState(model, w);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    void *w = NULL;

    TRITONBACKEND_ModelState(model, &w);
    if (w != NULL) {
        forget(w);
    }
    return NULL;
}

static TRITONSERVER_Error *
answer(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
       void *userp)
{
    TRITONBACKEND_Input    *input;
    TRITONBACKEND_Output   *output;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    TRITONSERVER_DataType   datatype;
    TRITONSERVER_Error     *err;
    const int64_t          *shape;
    const void             *data;
    void                   *out;
    uint64_t                size = 0;
    uint32_t                dims = 0;
    int64_t                 id = 0;

    (void) userp;
    err = TRITONBACKEND_RequestInputByIndex(request, 0, &input);
    if (err == NULL) {
        err = TRITONBACKEND_InputProperties(input, NULL, &datatype, &shape,
                                            &dims, NULL, NULL);
    }
    if (err == NULL) {
        err = TRITONBACKEND_InputBuffer(input, 0, &data, &size, &type, &id);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ResponseOutput(response, &output, "OUT", datatype,
                                           shape, dims);
    }
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(output, &out, size, &type, &id);
    }
    if (err == NULL) {
        memcpy(out, data, size);
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests,
                                   const uint32_t count)
{
    (void) instance;

    return answer_each(requests, count, answer, NULL);
}
