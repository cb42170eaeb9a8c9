/* conversions.c - see conversions.h */

#include "conversions.h"

static bool is_number(TRITONSERVER_DataType datatype);
static TRITONSERVER_Error *set_input(const vino_conversions_t *c,
    const char *name, uint32_t index, ov_element_type_e type);
static TRITONSERVER_Error *set_output(const vino_conversions_t *c,
    const char *name, uint32_t index, ov_element_type_e type);

TRITONSERVER_Error *
vino_conversions_open(vino_conversions_t *c, const vino_runtime_t *rt,
    const ov_model_t *model)
{
    *c = (vino_conversions_t) { .rt = rt };
    return vino_err(rt, rt->f.ov_preprocess_prepostprocessor_create(model,
        &c->handle), "conversions of types");
}

void
vino_conversions_close(vino_conversions_t *c)
{
    if (c->handle != NULL) {
        c->rt->f.ov_preprocess_prepostprocessor_free(c->handle);
    }
}

TRITONSERVER_Error *
vino_conversions_add(vino_conversions_t *c, const bk_tensor_config_t *entry,
    const bk_tensor_t *t, uint32_t index, bool input)
{
    if (entry == NULL || entry->datatype == t->datatype
        || !is_number(entry->datatype) || !is_number(t->datatype))
    {
        return NULL;
    }

    bk_log(TRITONSERVER_LOG_INFO, "%s \"%s\" is %s to clients and %s in the "
        "model: it is converted", input ? "input" : "output", t->name,
        TRITONSERVER_DataTypeString(entry->datatype),
        TRITONSERVER_DataTypeString(t->datatype));
    c->any = true;

    ov_element_type_e type = vino_element_type(entry->datatype);
    return input ? set_input(c, t->name, index, type)
        : set_output(c, t->name, index, type);
}

TRITONSERVER_Error *
vino_conversions_apply(vino_conversions_t *c, ov_model_t **model)
{
    ov_model_t *converted = NULL;

    if (!c->any) {
        return NULL;
    }

    TRITONSERVER_Error *err = vino_err(c->rt,
        c->rt->f.ov_preprocess_prepostprocessor_build(c->handle, &converted),
        "conversions of types");
    if (err == NULL) {
        c->rt->f.ov_model_free(*model);
        *model = converted;
    }

    return err;
}

static bool
is_number(TRITONSERVER_DataType datatype)
{
    return datatype != TRITONSERVER_TYPE_INVALID
        && datatype != TRITONSERVER_TYPE_BYTES;
}

static TRITONSERVER_Error *
set_input(const vino_conversions_t *c, const char *name, uint32_t index,
    ov_element_type_e type)
{
    const vino_functions_t *f = &c->rt->f;
    ov_preprocess_input_tensor_info_t *tensor = NULL;
    ov_preprocess_input_info_t *info = NULL;

    ov_status_e status =
        f->ov_preprocess_prepostprocessor_get_input_info_by_index(c->handle,
        index, &info);
    if (status == OK) {
        status = f->ov_preprocess_input_info_get_tensor_info(info, &tensor);
    }
    if (status == OK) {
        status = f->ov_preprocess_input_tensor_info_set_element_type(tensor,
            type);
    }

    TRITONSERVER_Error *err = vino_err(c->rt, status, "type of input \"%s\"",
        name);
    if (tensor != NULL) {
        f->ov_preprocess_input_tensor_info_free(tensor);
    }
    if (info != NULL) {
        f->ov_preprocess_input_info_free(info);
    }
    return err;
}

static TRITONSERVER_Error *
set_output(const vino_conversions_t *c, const char *name, uint32_t index,
    ov_element_type_e type)
{
    const vino_functions_t *f = &c->rt->f;
    ov_preprocess_output_tensor_info_t *tensor = NULL;
    ov_preprocess_output_info_t *info = NULL;

    ov_status_e status =
        f->ov_preprocess_prepostprocessor_get_output_info_by_index(c->handle,
        index, &info);
    if (status == OK) {
        status = f->ov_preprocess_output_info_get_tensor_info(info, &tensor);
    }
    if (status == OK) {
        status = f->ov_preprocess_output_set_element_type(tensor, type);
    }

    TRITONSERVER_Error *err = vino_err(c->rt, status, "type of output \"%s\"",
        name);
    if (tensor != NULL) {
        f->ov_preprocess_output_tensor_info_free(tensor);
    }
    if (info != NULL) {
        f->ov_preprocess_output_info_free(info);
    }
    return err;
}
