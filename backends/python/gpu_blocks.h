/*
 * gpu_blocks.h - memory of GPUs that the backend shares with one interpreter:
 *                blocks with a handle each, and tensors in them.
 *
 * Owner    The link.  A tensor (piece) is kept by the interpreter until it
 *          gives it back, and by each use in the server.  A block is kept while
 *          it has pieces, and until the interpreter says that it has closed it,
 *          or has ended.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: the interpreter names an invalid piece.  UNAVAILABLE:
 *          it has too many pieces.  Otherwise the driver's errors.
 * Route    link, messages, calls, bls_request, bls_response -> [gpu_blocks]
 *          -> gpus
 *
 * Every block is the backend's own: memory of other owners is copied into one,
 * because not all of it can be opened by another process, and so that nothing
 * of the core's depends on the interpreter's life.  Blocks are multiples of
 * 2 MiB: a handle shares the whole allocation of that size that memory lies in.
 */

#ifndef PY_GPU_BLOCKS_H
#define PY_GPU_BLOCKS_H

#include <pthread.h>

#include "gpus.h"
#include "value.h"

#define PY_PIECES_MAX 65536u

typedef struct {
    gpu_device_t *device;       /* NULL: no block                            */
    gpu_ptr_t     base;
    gpu_ipc_t     handle;
    uint64_t      size;
    uint64_t      used;
    uint32_t      pieces;
    uint32_t      generation;
} py_gpu_block_t;

typedef struct {
    uint64_t      offset;       /* in its block                              */
    uint64_t      length;
    uint32_t      block;
    uint32_t      refs;         /* 0: no piece                               */
    uint32_t      generation;
    bool          given;        /* one of refs is the interpreter's          */
} py_gpu_piece_t;

typedef struct {
    py_gpus_t       *gpus;      /* a reference, set by the owner; NULL: no
                                   GPU                                       */
    pthread_mutex_t  lock;      /* guards the rest                           */
    py_gpu_block_t  *blocks;
    uint32_t         block_count;
    py_gpu_piece_t  *pieces;
    uint32_t         piece_count;
    bool             told;      /* why there was none                        */
} py_gpu_blocks_t;

/* Starts without blocks.  fini frees all blocks: the interpreter has ended. */
void py_gpu_blocks_init(py_gpu_blocks_t *b);
void py_gpu_blocks_fini(py_gpu_blocks_t *b);

/* A new piece; to is where it lies.  The interpreter has it, and may give it
   back at once by guessing its number; the caller, which writes it, has it
   until unref. */
BK_CHECK TRITONSERVER_Error *py_gpu_alloc(py_gpu_blocks_t *b, int64_t gpu,
    uint64_t length, py_gpu_place_t *place, bk_buffer_t *to);

/* The piece that the interpreter has named: where its first length bytes lie.
   It is kept until unref. */
BK_CHECK TRITONSERVER_Error *py_gpu_ref(py_gpu_blocks_t *b, uint64_t piece,
    uint64_t length, bk_buffer_t *at);
void py_gpu_unref(py_gpu_blocks_t *b, uint64_t piece);

/* The interpreter has given back a piece, or has closed a block. */
void py_gpu_give_back(py_gpu_blocks_t *b, uint64_t piece);
void py_gpu_closed(py_gpu_blocks_t *b, uint64_t block);

/* Logs err (taken) with what follows from it, the first one of the
   interpreter. */
void py_gpu_tell(py_gpu_blocks_t *b, TRITONSERVER_Error *err);

#endif /* PY_GPU_BLOCKS_H */
