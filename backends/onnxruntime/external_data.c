/* external_data.c - see external_data.h */

#include "external_data.h"

#include "common/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Messages in messages that the library takes, too (protobuf's own limit). */
#define MAX_DEPTH 100

#define PRINTABLE 160

/* How a field's content is packed. */
enum { VARINT = 0, FIXED64 = 1, LEN = 2, FIXED32 = 5 };

/* Fields that are read and not walked. */
enum { TENSOR_NAME = 8, ENTRY_KEY = 1, ENTRY_VALUE = 2 };

typedef enum {
    MODEL,
    TRAINING_INFO,
    FUNCTION,
    GRAPH,
    NODE,
    ATTRIBUTE,
    SPARSE_TENSOR,
    TENSOR,
    EXTERNAL_ENTRY,
    NOTHING
} kind_t;

/* Where tensors may be, by onnx.proto. */
static const struct {
    kind_t   within;
    uint64_t number;
    kind_t   kind;
} messages[] = {
    { MODEL,          7, GRAPH },
    { MODEL,         20, TRAINING_INFO },
    { MODEL,         25, FUNCTION },
    { TRAINING_INFO,  1, GRAPH },
    { TRAINING_INFO,  2, GRAPH },
    { FUNCTION,       7, NODE },
    { FUNCTION,      11, ATTRIBUTE },
    { GRAPH,          1, NODE },
    { GRAPH,          5, TENSOR },
    { GRAPH,         15, SPARSE_TENSOR },
    { NODE,           5, ATTRIBUTE },
    { ATTRIBUTE,      5, TENSOR },
    { ATTRIBUTE,      6, GRAPH },
    { ATTRIBUTE,     10, TENSOR },
    { ATTRIBUTE,     11, GRAPH },
    { ATTRIBUTE,     22, SPARSE_TENSOR },
    { ATTRIBUTE,     23, SPARSE_TENSOR },
    { SPARSE_TENSOR,  1, TENSOR },
    { SPARSE_TENSOR,  2, TENSOR },
    { TENSOR,        13, EXTERNAL_ENTRY }
};

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
} bytes_t;

typedef struct {
    uint64_t number;
    unsigned type;
    bytes_t  content;                   /* of LEN                            */
} field_t;

static TRITONSERVER_Error *check_fd(int fd, const char **format);
static bool is_ort_format(const uint8_t *data, size_t len);
static TRITONSERVER_Error *walk(const uint8_t *start, bytes_t rest,
    kind_t kind, int depth);
static TRITONSERVER_Error *check_entry(const uint8_t *start, bytes_t entry,
    bytes_t tensor);
static TRITONSERVER_Error *elsewhere(bytes_t tensor, bytes_t location);
static TRITONSERVER_Error *broken(const uint8_t *start, const uint8_t *at);
static kind_t kind_of(kind_t within, const field_t *f);
static bool next_field(bytes_t *rest, field_t *f);
static bool next_varint(bytes_t *rest, uint64_t *value);
static bool advance(bytes_t *rest, uint64_t len);
static const char *printable(bytes_t text, char *to);

TRITONSERVER_Error *
ort_external_data_check_file(const char *path, const char **format)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return bk_err_new(errno == ENOENT ? TRITONSERVER_ERROR_NOT_FOUND
            : TRITONSERVER_ERROR_INTERNAL, "cannot load \"%s\": %s", path,
            strerror(errno));
    }

    TRITONSERVER_Error *err = check_fd(fd, format);
    close(fd);
    return err == NULL ? NULL : bk_err_add(err, "cannot load \"%s\"", path);
}

TRITONSERVER_Error *
ort_external_data_check(const void *data, size_t len)
{
    const uint8_t *start = data;
    return walk(start, (bytes_t) { start, start + len }, MODEL, 1);
}

static TRITONSERVER_Error *
check_fd(int fd, const char **format)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "%s", strerror(errno));
    }
    if (!S_ISREG(st.st_mode) || st.st_size == 0) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%s",
            S_ISREG(st.st_mode) ? "it is empty" : "it is not a file");
    }

    size_t len = (size_t) st.st_size;
    void *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "cannot map it: %s",
            strerror(errno));
    }

    bool ort = is_ort_format(data, len);
    *format = ort ? "ORT" : "ONNX";
    TRITONSERVER_Error *err = ort ? NULL : ort_external_data_check(data, len);
    munmap(data, len);
    return err;
}

static bool
is_ort_format(const uint8_t *data, size_t len)
{
    return len >= 8 && memcmp(data + 4, "ORTM", 4) == 0;
}

static TRITONSERVER_Error *
walk(const uint8_t *start, bytes_t rest, kind_t kind, int depth)
{
    const bytes_t whole = rest;
    TRITONSERVER_Error *err = NULL;
    field_t f;

    if (depth > MAX_DEPTH) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "messages in it are"
            " nested deeper than %d (at byte %zu)", MAX_DEPTH,
            (size_t) (rest.at - start));
    }

    while (err == NULL && rest.at < rest.end) {
        const uint8_t *at = rest.at;
        if (!next_field(&rest, &f)) {
            return broken(start, at);
        }

        kind_t inner = kind_of(kind, &f);
        if (inner == EXTERNAL_ENTRY) {
            err = check_entry(start, f.content, whole);
        } else if (inner != NOTHING) {
            err = walk(start, f.content, inner, depth + 1);
        }
    }

    return err;
}

/* A field that is there twice counts with its last value, so none may be
   wrong; without a value it is empty. */
static TRITONSERVER_Error *
check_entry(const uint8_t *start, bytes_t entry, bytes_t tensor)
{
    static const char key[] = "location";
    bytes_t bad = { entry.end, entry.end };
    bytes_t rest = entry;
    bool is_location = false;
    bool has_value = false;
    bool is_bad = false;
    field_t f;

    while (rest.at < rest.end) {
        const uint8_t *at = rest.at;
        if (!next_field(&rest, &f)) {
            return broken(start, at);
        }
        if (f.type != LEN) {
            continue;
        }

        size_t len = (size_t) (f.content.end - f.content.at);
        if (f.number == ENTRY_KEY) {
            is_location |= len == sizeof(key) - 1
                && memcmp(f.content.at, key, len) == 0;

        } else if (f.number == ENTRY_VALUE) {
            has_value = true;
            if (!bk_path_is_inner((const char *) f.content.at,
                    len))
            {
                is_bad = true;
                bad = f.content;
            }
        }
    }

    return is_location && (is_bad || !has_value) ? elsewhere(tensor, bad)
        : NULL;
}

static TRITONSERVER_Error *
elsewhere(bytes_t tensor, bytes_t location)
{
    bytes_t name = { tensor.end, tensor.end };
    char name_text[PRINTABLE + 1];
    char location_text[PRINTABLE + 1];
    field_t f;

    while (tensor.at < tensor.end && next_field(&tensor, &f)) {
        if (f.number == TENSOR_NAME && f.type == LEN) {
            name = f.content;
        }
    }

    return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "tensor \"%s\" has its"
        " external data at \"%s\"; it must lie beside the model file: a"
        " relative path without '..'", printable(name, name_text),
        printable(location, location_text));
}

static TRITONSERVER_Error *
broken(const uint8_t *start, const uint8_t *at)
{
    return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "it is not an ONNX file, or cut off: no field at byte %zu",
        (size_t) (at - start));
}

static kind_t
kind_of(kind_t within, const field_t *f)
{
    for (size_t i = 0; f->type == LEN
        && i < sizeof(messages) / sizeof(messages[0]); i++)
    {
        if (messages[i].within == within && messages[i].number == f->number) {
            return messages[i].kind;
        }
    }

    return NOTHING;
}

/* Groups, which onnx.proto has none of, are not taken. */
static bool
next_field(bytes_t *rest, field_t *f)
{
    uint64_t tag, value;

    if (!next_varint(rest, &tag) || tag > UINT32_MAX || tag >> 3 == 0) {
        return false;
    }

    f->number = tag >> 3;
    f->type = (unsigned) (tag & 7);
    switch (f->type) {

    case VARINT:
        return next_varint(rest, &value);

    case FIXED64:
        return advance(rest, 8);

    case FIXED32:
        return advance(rest, 4);

    case LEN:
        if (!next_varint(rest, &value)) {
            return false;
        }
        f->content.at = rest->at;
        if (!advance(rest, value)) {
            return false;
        }
        f->content.end = rest->at;
        return true;

    default:
        return false;
    }
}

static bool
next_varint(bytes_t *rest, uint64_t *value)
{
    *value = 0;

    for (unsigned shift = 0; rest->at < rest->end && shift < 64; shift += 7) {
        uint8_t byte = *rest->at++;
        if (shift == 63 && byte > 1) {
            return false;
        }
        *value |= (uint64_t) (byte & 0x7f) << shift;
        if (byte < 0x80) {
            return true;
        }
    }

    return false;
}

static bool
advance(bytes_t *rest, uint64_t len)
{
    if (len > (uint64_t) (rest->end - rest->at)) {
        return false;
    }

    rest->at += len;
    return true;
}

/* to has room for PRINTABLE characters and their end. */
static const char *
printable(bytes_t text, char *to)
{
    size_t len = 0;

    while (text.at < text.end && len < PRINTABLE) {
        uint8_t c = *text.at++;
        to[len++] = (char) (c >= 0x20 && c < 0x7f ? c : '?');
    }

    to[len] = '\0';
    return to;
}
