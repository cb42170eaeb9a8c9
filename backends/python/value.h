/*
 * value.h - values in messages: numbers, texts, lists and data of tensors, in
 *           sequence, each with a tag.
 *
 * Owner    A writer owns its bytes until fini; results of a reader point into
 *          its message.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   A writer that has failed stays failed.  A reader's function returns
 *          false if the next value is another one; then nothing was read.
 * Route    message -> [value] -> calls, results
 *
 * A reader's message is private memory that does not change.  Texts end with a
 * NUL and have none inside.
 */

#ifndef PY_VALUE_H
#define PY_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PY_DEPTH_MAX 16

typedef enum {
    PY_TAG_NONE    = 'N',
    PY_TAG_TRUE    = 'T',
    PY_TAG_FALSE   = 'F',
    PY_TAG_INT     = 'I',      /* 64 bits                                   */
    PY_TAG_UINT    = 'Q',      /* beyond them                               */
    PY_TAG_DOUBLE  = 'D',
    PY_TAG_TEXT    = 'S',      /* 32 bits of length, UTF-8, NUL             */
    PY_TAG_LIST    = 'L',      /* 32 bits of count                          */
    PY_TAG_BYTES   = 'B',      /* 64 bits of length, bytes                  */
    PY_TAG_BLOCK   = 'K',      /* 64 bits each: id, offset, length          */
    PY_TAG_ARENA   = 'A',      /* 64 bits each: arena, offset, length       */
    PY_TAG_ADDRESS = 'V',      /* 64 bits each: address, length             */
    PY_TAG_GPU     = 'G'       /* py_gpu_place_t                            */
} py_tag_t;

#define PY_GPU_HANDLE 64u

/* Memory of a GPU: a piece of the backend's, in a block that the interpreter
   opens by its handle.  Of what comes back, piece and length count. */
typedef struct {
    uint64_t piece;
    uint64_t length;
    uint64_t gpu;
    uint64_t offset;            /* in the block                              */
    uint64_t block;
    uint64_t size;              /* of the block                              */
    uint8_t  handle[PY_GPU_HANDLE];
} py_gpu_place_t;

typedef struct {
    uint8_t *data;
    size_t   len;
    size_t   capacity;
    bool     failed;
} py_writer_t;

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
} py_reader_t;

/* Bytes of a tensor: in the message, in a block, at an address of the
   interpreter, or on a GPU. */
typedef struct {
    py_tag_t      tag;         /* BYTES, BLOCK, ADDRESS or GPU              */
    const uint8_t *bytes;       /* BYTES                                     */
    uint64_t       id;          /* BLOCK; GPU: piece                         */
    uint64_t       place;       /* BLOCK: offset; ADDRESS: address           */
    uint64_t       length;
} py_data_t;

/* Empties w and keeps its memory; a zeroed writer is empty. */
void py_writer_reset(py_writer_t *w);
void py_writer_fini(py_writer_t *w);

/* Append one value each. */
void py_write_none(py_writer_t *w);
void py_write_bool(py_writer_t *w, bool v);
void py_write_int(py_writer_t *w, int64_t v);
void py_write_uint(py_writer_t *w, uint64_t v);
void py_write_double(py_writer_t *w, double v);
void py_write_text(py_writer_t *w, const char *text, size_t len);
void py_write_string(py_writer_t *w, const char *text);   /* NULL: none    */
void py_write_list(py_writer_t *w, uint32_t count);
void py_write_bytes(py_writer_t *w, const void *bytes, uint64_t len);
void py_write_block(py_writer_t *w, uint64_t id, uint64_t offset,
    uint64_t len);
void py_write_arena(py_writer_t *w, uint64_t arena, uint64_t offset,
    uint64_t len);
void py_write_address(py_writer_t *w, uint64_t address, uint64_t len);
void py_write_gpu(py_writer_t *w, const py_gpu_place_t *place);

/* Appends the values of another writer. */
void py_write_value(py_writer_t *w, const py_writer_t *value);

/* Appends a BYTES value of len bytes, to be filled by the caller; NULL:
   failed. */
uint8_t *py_write_space(py_writer_t *w, uint64_t len);

/* Reads len bytes of values. */
void py_reader_init(py_reader_t *r, const void *data, size_t len);

/* The next tag; 0: the end. */
uint8_t py_read_tag(const py_reader_t *r);

/* Read the next value, if it has that type. */
bool py_read_none(py_reader_t *r);
bool py_read_bool(py_reader_t *r, bool *v);
bool py_read_int(py_reader_t *r, int64_t *v);
bool py_read_uint(py_reader_t *r, uint64_t *v);   /* INT from 0, or UINT   */
bool py_read_double(py_reader_t *r, double *v);   /* or INT                */
bool py_read_text(py_reader_t *r, const char **text, uint32_t *len);

/* The same; *text is NULL for none. */
bool py_read_optional(py_reader_t *r, const char **text);

/* Reads a list's count, which is at most what the message has room for. */
bool py_read_list(py_reader_t *r, uint32_t *count);

/* Reads a list of exactly count values. */
bool py_read_list_of(py_reader_t *r, uint32_t count);
bool py_read_data(py_reader_t *r, py_data_t *data);
bool py_read_gpu(py_reader_t *r, py_gpu_place_t *place);

/* Skips one value with its contents. */
bool py_read_skip(py_reader_t *r);

#endif /* PY_VALUE_H */
