/*
 * record.c - an execution as a line of JSON:
 *
 *   {"execution": N, "instance": NAME, "rows": [ROW, ...]}
 *
 * a row, in the order of the batch, being
 *
 *   {"request": ID, "number": N or null, "text": TEXT or null, "flags": N,
 *    "outputs": N, "inputs": {NAME: {"type": T, "shape": [...],
 *    "data": [...]}, ...}}
 */

#include "sequences.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
put_text(FILE *out, const char *text, size_t len)
{
    fputc('"', out);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char) text[i];
        if (c < 0x20 || c == '"' || c == '\\') {
            fprintf(out, "\\u%04x", c);
        } else {
            fputc(c, out);
        }
    }
    fputc('"', out);
}

static void
put_element(FILE *out, TRITONSERVER_DataType type, const void *at)
{
    union {
        int32_t  i32;
        uint32_t u32;
        int64_t  i64;
        uint64_t u64;
        float    f32;
        uint8_t  u8;
    } v = { 0 };

    memcpy(&v, at, TRITONSERVER_DataTypeByteSize(type));
    if (type == TRITONSERVER_TYPE_INT32) {
        fprintf(out, "%d", v.i32);
    } else if (type == TRITONSERVER_TYPE_UINT32) {
        fprintf(out, "%u", v.u32);
    } else if (type == TRITONSERVER_TYPE_INT64) {
        fprintf(out, "%lld", (long long) v.i64);
    } else if (type == TRITONSERVER_TYPE_UINT64) {
        fprintf(out, "%llu", (unsigned long long) v.u64);
    } else if (type == TRITONSERVER_TYPE_FP32) {
        fprintf(out, "%g", (double) v.f32);
    } else {
        fprintf(out, "%u", v.u8);
    }
}

static void
put_data(FILE *out, const tensor_t *t, const char *data)
{
    size_t   size = TRITONSERVER_DataTypeByteSize(t->type);
    uint32_t len;

    for (uint64_t at = 0; at < t->size;) {
        fputs(at > 0 ? ", " : "", out);
        if (t->type != TRITONSERVER_TYPE_BYTES) {
            put_element(out, t->type, data + at);
            at += size;
            continue;
        }
        memcpy(&len, data + at, sizeof(len));
        put_text(out, data + at + 4, len);
        at += 4 + len;
    }
}

static void
put_input(FILE *out, const tensor_t *t)
{
    void *data = NULL;

    fprintf(out, "\"%s\": {\"type\": \"%s\", \"shape\": [", t->name,
            TRITONSERVER_DataTypeString(t->type));
    for (uint32_t i = 0; i < t->dims; i++) {
        fprintf(out, i > 0 ? ", %lld" : "%lld", (long long) t->shape[i]);
    }
    fputs("], \"data\": [", out);
    TRITONSERVER_Error *err = read_tensor(t, &data);
    if (err == NULL) {
        put_data(out, t, data);
    }
    TRITONSERVER_ErrorDelete(err);
    free(data);
    fputs("]}", out);
}

static void
put_id(FILE *out, TRITONBACKEND_Request *request)
{
    uint64_t            number = 0;
    const char         *text = "";
    TRITONSERVER_Error *err = TRITONBACKEND_RequestCorrelationId(request,
                                                                 &number);

    if (err == NULL) {
        fprintf(out, "\"number\": %llu, \"text\": null",
                (unsigned long long) number);
        return;
    }

    TRITONSERVER_ErrorDelete(err);
    TRITONSERVER_ErrorDelete(
        TRITONBACKEND_RequestCorrelationIdString(request, &text));
    fputs("\"number\": null, \"text\": ", out);
    put_text(out, text, strlen(text));
}

static void
put_row(FILE *out, TRITONBACKEND_Request *request)
{
    const char *id = "";
    uint32_t    flags = 0, outputs = 0, inputs = 0;

    TRITONBACKEND_RequestId(request, &id);
    TRITONBACKEND_RequestFlags(request, &flags);
    TRITONBACKEND_RequestOutputCount(request, &outputs);
    TRITONBACKEND_RequestInputCount(request, &inputs);
    fputs("{\"request\": ", out);
    put_text(out, id, strlen(id));
    fputs(", ", out);
    put_id(out, request);
    fprintf(out, ", \"flags\": %u, \"outputs\": %u, \"inputs\": {", flags,
            outputs);
    for (uint32_t i = 0; i < inputs; i++) {
        tensor_t    t;
        const char *name = "";

        TRITONSERVER_ErrorDelete(
            TRITONBACKEND_RequestInputName(request, i, &name));
        fputs(i > 0 ? ", " : "", out);
        TRITONSERVER_ErrorDelete(open_tensor(request, name, &t));
        put_input(out, &t);
    }
    fputs("}}", out);
}

void
record(const execution_t *e, TRITONBACKEND_Request **requests)
{
    char  *line = NULL;
    size_t size = 0;

    if (e->model->record[0] == '\0') {
        return;
    }

    FILE *out = open_memstream(&line, &size);
    fprintf(out, "{\"execution\": %d, \"instance\": \"%s\", \"rows\": [",
            e->number, e->name);
    for (uint32_t i = 0; i < e->requests; i++) {
        fputs(i > 0 ? ", " : "", out);
        put_row(out, requests[i]);
    }
    fputs("]}\n", out);
    fclose(out);

    int fd = open(e->model->record,
                  O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, line, size) < 0) {
        perror(e->model->record);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(line);
}
