/*
 * environment.c - answers each BYTES element, the name of a variable, with
 * its value in this process; "/maps:WORD" with whether WORD is mapped.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"

static const char *
look_up(const char *name)
{
    static char line[8192];
    const char *word = name + strlen("/maps:");

    if (strncmp(name, "/maps:", strlen("/maps:")) != 0) {
        const char *value = getenv(name);

        return value != NULL ? value : "(unset)";
    }

    FILE *f = fopen("/proc/self/maps", "r");
    int   hit = 0;

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        hit = hit || strstr(line, word) != NULL;
    }
    if (f != NULL) {
        fclose(f);
    }
    return hit ? "mapped" : "absent";
}

static TRITONSERVER_Error *
answer(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response,
    void *userp)
{
    TRITONSERVER_Error *err;
    const void         *data;
    uint64_t            size;
    char                name[256];
    void               *out;

    (void) userp;
    err = answer_read(request, "NAME", &data, &size);
    if (err != NULL) {
        return err;
    }
    if (size < 4 || size - 4 >= sizeof(name)) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG,
                                     "NAME holds one short name");
    }
    memcpy(name, (const char *) data + 4, size - 4);
    name[size - 4] = '\0';

    const char *value = look_up(name);
    uint32_t    len = (uint32_t) strlen(value);

    err = answer_output(response, "VALUE", TRITONSERVER_TYPE_BYTES, 1, len + 4,
                        &out);
    if (err == NULL) {
        memcpy(out, &len, 4);
        memcpy((char *) out + 4, value, len);
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    (void) instance;

    return answer_each(requests, count, answer, NULL);
}
