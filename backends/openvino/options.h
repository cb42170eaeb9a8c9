/*
 * options.h - the checked parameters of a model, and the properties of the
 *             library that follow from them.
 *
 * Owner    vino_options_t points into the configuration, so that both are read
 *          again together, and owns the texts of its properties.
 * Thread   written by read and by properties, which the first instance calls.
 * Units    threads and streams of the whole model, shared by its instances.
 * Errors   INVALID_ARG naming the parameter, its value and the valid ones.
 * Route    model_config -> [options] -> network
 */

#ifndef VINO_OPTIONS_H
#define VINO_OPTIONS_H

#include "runtime.h"

#include "common/model_config.h"

#define VINO_PROPERTIES_MAX 8   /* more than a model can have               */
#define VINO_VALUE_MAX      32  /* bytes of words and numbers, with the NUL */

typedef struct {
    /* constant after vino_options_read() */
    const char   *device;               /* "CPU" where none is configured    */
    const char   *extension;            /* path of a library, or NULL        */
    const char   *hint;                 /* the library's name of it, or NULL */
    const char   *streams;              /* "AUTO", "NUMA", digits, or NULL   */
    int64_t       threads;              /* -1: not configured                */
    int64_t       compile_threads;      /* -1: not configured                */
    bool          bf16;
    bool          fixed_batch;          /* SKIP_OV_DYNAMIC_BATCHSIZE         */
    bool          padding;              /* ENABLE_BATCH_PADDING              */
    bool          reshape;              /* RESHAPE_IO_LAYERS                 */

    ov_property_t properties[VINO_PROPERTIES_MAX];
    char          values[VINO_PROPERTIES_MAX][VINO_VALUE_MAX];
    size_t        property_count;
} vino_options_t;

/* Reads and checks all parameters; properties are set later. */
BK_CHECK TRITONSERVER_Error *vino_options_read(vino_options_t *o,
    const bk_model_config_t *config);

/* Sets the properties of a model with that number of instances. */
void vino_options_properties(vino_options_t *o, uint32_t instances);

#endif /* VINO_OPTIONS_H */
