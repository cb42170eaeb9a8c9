/*
 * sequence_tables.h - controls and states of a sequence model's configuration,
 *                     for sequence_slot_inputs.c.
 *
 * Owner    inf_sequence_inputs_t; names are those of model->built.
 * Thread   any: nothing changes after inf_sequence_inputs_new.
 * Units    bytes.
 * Errors   none.
 * Route    sequence_inputs.c -> [tables] -> sequence_slot_inputs.c
 */

#ifndef INF_SCHED_SEQUENCE_TABLES_H
#define INF_SCHED_SEQUENCE_TABLES_H

#include "core/sched/sequence_inputs.h"
#include "core/tensor/state.h"

#define INF_SEQUENCE_CONTROLS 4         /* kinds, one control of each        */

/* Kinds, with the numbers of the configuration. */
typedef enum {
    INF_CONTROL_START  = 0,
    INF_CONTROL_READY  = 1,
    INF_CONTROL_END    = 2,
    INF_CONTROL_CORRID = 3
} inf_control_kind_t;

typedef struct {
    const char         *name;
    inf_control_kind_t  kind;
    inf_datatype_t      datatype;
    uint32_t            size;           /* bytes of a value; CORRID: 0       */
    unsigned char       values[2][8];   /* false, true; CORRID: unused       */
} inf_sequence_control_t;

typedef struct {
    const char         *output_name;
    const char         *input_name;
    bool                same_buffer;
    bool                growable;
    inf_state_buffer_t  initial;        /* base NULL: zeros                  */
} inf_sequence_state_t;

struct inf_sequence_inputs_s {
    const inf_model_t      *model;
    inf_sequence_control_t  controls[INF_SEQUENCE_CONTROLS];
    uint32_t                control_count;      /* in the configuration's
                                                   order                     */
    uint32_t                dim_count;          /* of a control              */
    inf_sequence_state_t   *states;             /* in the configuration's
                                                   order                     */
    uint32_t                state_count;
};

/* Bytes of a tensor of that shape, or of as many empty strings; false:
   overflow. */
bool inf_sequence_bytes(inf_datatype_t datatype, const int64_t *shape,
    uint32_t dim_count, uint64_t *out);

#endif /* INF_SCHED_SEQUENCE_TABLES_H */
