#include "core/model/config_complete.h"

#include "core/model/config_edit.h"
#include "core/model/config_normalize.h"
#include "core/proto/config_json.h"
#include "core/proto/message.h"
#include "core/proto/message_field.h"

static inf_err_t *merge(inf_model_config_t *c,
    const Inference__ModelConfig *from_backend);
static inf_err_t *complete_check(const Inference__ModelConfig *msg,
    const Inference__ModelConfig *from);
static inf_err_t *complete_apply(Inference__ModelConfig *msg,
    const Inference__ModelConfig *from);
static inf_err_t *complete_list(ProtobufCMessage *to,
    const ProtobufCMessage *from, const char *name);
static inf_err_t *complete_scheduler(Inference__ModelConfig *msg,
    const Inference__ModelConfig *from);
static inf_err_t *complete_policy(Inference__ModelConfig *msg,
    const Inference__ModelConfig *from);

inf_err_t *
inf_model_config_merge_json(inf_model_config_t *c, const char *json,
    size_t len)
{
    Inference__ModelConfig *from = NULL;
    inf_err_t *err = inf_model_config_from_json(inf_slice(json, len), &from);
    if (err != NULL) {
        return err;
    }

    err = merge(c, from);
    inf_message_free(&from->base);
    return err;
}

static inf_err_t *
merge(inf_model_config_t *c,
    const Inference__ModelConfig *from_backend)
{
    inf_err_t *err = complete_check(c->msg, from_backend);
    if (err != NULL) {
        return err;
    }

    ProtobufCMessage *copy;
    err = inf_message_clone(&c->msg->base, &copy);
    if (err != NULL) {
        return err;
    }

    Inference__ModelConfig *merged = (Inference__ModelConfig *) copy;
    err = complete_apply(merged, from_backend);
    if (err == NULL) {
        err = inf_config_normalize(merged);
    }

    if (err != NULL) {
        inf_message_free(copy);
        return err;
    }

    inf_message_free(&c->msg->base);
    c->msg = merged;
    return NULL;
}

/* Fails if the backend changed a configured scheduler. */
static inf_err_t *
complete_check(const Inference__ModelConfig *msg,
    const Inference__ModelConfig *from)
{
    if (msg->scheduling_choice_case
            == INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE__NOT_SET
        || msg->scheduling_choice_case == from->scheduling_choice_case)
    {
        return NULL;
    }

    return inf_err_new(INF_ERR_INTERNAL, "Cannot update scheduling choice "
        "from %d to %d when auto-completing.",
        (int) msg->scheduling_choice_case,
        (int) from->scheduling_choice_case);
}

static inf_err_t *
complete_apply(Inference__ModelConfig *msg,
    const Inference__ModelConfig *from)
{
    msg->max_batch_size = from->max_batch_size;

    inf_err_t *err = complete_list(&msg->base, &from->base, "input");
    if (err == NULL) {
        err = complete_list(&msg->base, &from->base, "output");
    }

    if (err == NULL) {
        err = complete_scheduler(msg, from);
    }

    return err != NULL ? err : complete_policy(msg, from);
}

static inf_err_t *
complete_list(ProtobufCMessage *to, const ProtobufCMessage *from,
    const char *name)
{
    const ProtobufCFieldDescriptor *field = inf_field_find(to->descriptor,
        inf_slice_str(name));
    size_t count = inf_field_count(from, field);

    inf_field_clear(to, field);
    for (size_t i = 0; i < count; i++) {
        inf_err_t *err = inf_field_put(to, field,
            inf_field_get(from, field, i));
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

/* Takes the scheduler; all choices are in one oneof. */
static inf_err_t *
complete_scheduler(Inference__ModelConfig *msg,
    const Inference__ModelConfig *from)
{
    if (msg->scheduling_choice_case
        != INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE__NOT_SET)
    {
        return NULL;
    }

    const ProtobufCFieldDescriptor *any = inf_field_find(
        from->base.descriptor, inf_slice_str("dynamic_batching"));
    const ProtobufCFieldDescriptor *choice = inf_field_oneof_set(&from->base,
        any);
    return choice == NULL ? NULL : inf_field_put(&msg->base, choice,
        inf_field_get(&from->base, choice, 0));
}

static inf_err_t *
complete_policy(Inference__ModelConfig *msg,
    const Inference__ModelConfig *from)
{
    if (from->model_transaction_policy == NULL) {
        return NULL;
    }

    if (msg->model_transaction_policy == NULL) {
        inf_err_t *err = inf_config_put_message(&msg->base,
            "model_transaction_policy", NULL);
        if (err != NULL) {
            return err;
        }
    }

    msg->model_transaction_policy->decoupled =
        from->model_transaction_policy->decoupled;
    return NULL;
}
