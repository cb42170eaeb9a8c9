/*
 * infer_message_parts.h - state shared by the two halves of the reader of a
 *                         ModelInferRequest: syntax, and the service's rules.
 *
 * Owner    All memory is in the arena, as long as the request.
 * Thread   one at a time.
 * Units    bytes; spans count from the text's first byte.
 * Errors   as in infer_message.h.
 * Route    infer_message.c (fields -> rows) -> [rows] -> infer_message_rules.c
 *          (rows -> tables of the request)
 */

#ifndef INF_PROTO_INFER_MESSAGE_PARTS_H
#define INF_PROTO_INFER_MESSAGE_PARTS_H

#include "core/proto/infer_message.h"
#include "core/proto/infer_names.h"

typedef struct {
    uint64_t offset;
    uint64_t len;
} inf_infer_span_t;

/* An InferParameter; numbers are those of its fields. */
typedef enum {
    INF_CHOICE_ABSENT = 0,      /* no such parameter                         */
    INF_CHOICE_BOOL   = 1,
    INF_CHOICE_INT64  = 2,
    INF_CHOICE_STRING = 3,
    INF_CHOICE_DOUBLE = 4,
    INF_CHOICE_UINT64 = 5,
    INF_CHOICE_UNSET  = 6       /* a parameter without value                 */
} inf_infer_choice_t;

typedef struct {
    inf_infer_choice_t choice;
    union {
        uint64_t u;             /* BOOL (0, 1), UINT64                       */
        int64_t  i;             /* INT64                                     */
        double   d;             /* DOUBLE                                    */
    } number;
    inf_infer_span_t   text;    /* STRING                                    */
} inf_infer_value_t;

/* The parameters that a rule needs; other parameters of a tensor are ignored,
   others of the request are custom. */
typedef enum {
    INF_TENSOR_REGION,
    INF_TENSOR_OFFSET,
    INF_TENSOR_BYTE_SIZE,
    INF_TENSOR_CLASSIFICATION,
    INF_TENSOR_PARAMETERS       /* number of the above                       */
} inf_infer_tensor_parameter_t;

typedef enum {
    INF_CALL_SEQUENCE_ID,
    INF_CALL_SEQUENCE_START,
    INF_CALL_SEQUENCE_END,
    INF_CALL_PRIORITY,
    INF_CALL_TIMEOUT,
    INF_CALL_EMPTY_FINAL,
    INF_CALL_PARAMETERS         /* number of the above                       */
} inf_infer_call_parameter_t;

/* An input or an output as in the message. */
typedef struct {
    inf_slice_t       name;
    uint32_t          datatype;
    uint32_t          dim_count;
    const int64_t    *shape;    /* only the first INF_MAX_DIMS               */
    inf_infer_span_t  span;     /* of its description                        */
    bool              contents; /* has a contents field                      */
    uint32_t          lists;    /* bit of each list with elements            */
    uint64_t          count;    /* elements, if only one list has them       */
    uint64_t          string_bytes;
    inf_infer_value_t *parameters;      /* by their enum; NULL: none         */
} inf_infer_row_t;

typedef struct {
    inf_slice_t       name;
    inf_infer_value_t value;
} inf_infer_custom_t;

typedef struct {
    void    *items;
    uint32_t count;
    uint32_t capacity;
} inf_infer_rows_t;

typedef enum {
    INF_STAGE_FIELDS,           /* between fields of the request             */
    INF_STAGE_INPUT,            /* between fields of an input                */
    INF_STAGE_CONTENTS,         /* between lists                             */
    INF_STAGE_LIST,             /* inside a packed list of varints           */
    INF_STAGE_REQUEST,          /* rules: version and parameters             */
    INF_STAGE_INPUTS,
    INF_STAGE_OUTPUTS,
    INF_STAGE_DATA,             /* position of each input's bytes            */
    INF_STAGE_OPTIONS,          /* options of each output                    */
    INF_STAGE_DONE
} inf_infer_stage_t;

struct inf_infer_message_s {
    inf_arena_t        *arena;
    inf_infer_limits_t  limits;

    const char         *text;           /* set in each call, with the next
                                           three                             */
    uint64_t            len;
    const uint64_t     *raw_sizes;
    uint32_t            raw_count;

    inf_infer_stage_t   stage;
    uint64_t            cost;           /* of the last step                  */

    uint64_t            pos;
    uint64_t            input_end;
    uint64_t            contents_end;
    uint64_t            list_end;
    uint32_t            list;           /* field of the open packed list     */
    uint64_t            described;      /* bytes of the request without
                                           tensors                           */
    uint64_t            input_described;    /* without contents              */
    const char         *part;           /* "inputs", "outputs", NULL         */

    inf_infer_rows_t    inputs;         /* inf_infer_row_t                   */
    inf_infer_rows_t    outputs;
    inf_infer_rows_t    customs;        /* inf_infer_custom_t                */
    inf_names_t         custom_names;
    inf_infer_value_t   parameters[INF_CALL_PARAMETERS];

    uint32_t            next;           /* next row to check                 */
    uint32_t            raw_used;
    inf_names_t         names;          /* of the checked rows               */
    inf_infer_input_t  *input_table;
    inf_infer_output_t *output_table;
    inf_infer_call_t    call;

    int64_t             dims[INF_MAX_DIMS];     /* of the open input         */
};

/* Runs the next stage, or the next row of this stage; from INF_STAGE_REQUEST
   on. */
INF_CHECK inf_err_t *inf_infer_message_rules(inf_infer_message_t *m);

#endif /* INF_PROTO_INFER_MESSAGE_PARTS_H */
