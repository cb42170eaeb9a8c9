/*
 * infer_codec.h - results of the resumable functions of the inference codec.
 *
 * Owner    none.
 * Thread   any; a codec object belongs to one thread at a time.
 * Units    A budget is a number of processed bytes; a call exceeds it by at
 *          most one number, or one description of an input or output
 *          (INF_INFER_MAX_PIECE).  64 KiB keep a call well below a
 *          millisecond.
 * Errors   INF_CODEC_ERROR comes with *err set, owned by the caller.
 *          Afterwards the object is not run again.
 * Route    the nginx worker calls again from a posted event after AGAIN.
 */

#ifndef INF_PROTO_INFER_CODEC_H
#define INF_PROTO_INFER_CODEC_H

#define INF_CODEC_BUDGET  65536u        /* share of one turn                 */

typedef enum {
    INF_CODEC_DONE,
    INF_CODEC_AGAIN,        /* budget spent, or more input (output) needed   */
    INF_CODEC_ERROR
} inf_codec_t;

#endif /* INF_PROTO_INFER_CODEC_H */
