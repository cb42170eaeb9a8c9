#include "core/model/model_config.h"

#include <stdlib.h>
#include <string.h>

#include "core/proto/message.h"

inf_err_t *
inf_model_config_new(Inference__ModelConfig *msg, const char *file,
    const char *origin, inf_model_config_t **out)
{
    inf_model_config_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return inf_err_nomem();
    }

    c->file = file != NULL ? strdup(file) : NULL;
    c->origin = strdup(origin);
    if (c->origin == NULL || (file != NULL && c->file == NULL)) {
        free(c->file);
        free(c->origin);
        free(c);
        return inf_err_nomem();
    }

    c->msg = msg;
    *out = c;
    return NULL;
}

inf_err_t *
inf_model_config_copy(const Inference__ModelConfig *msg,
    const inf_model_config_t *c, inf_model_config_t **out)
{
    ProtobufCMessage *copy;

    inf_err_t *err = inf_message_clone(&msg->base, &copy);
    if (err != NULL) {
        return err;
    }

    err = inf_model_config_new((Inference__ModelConfig *) (void *) copy,
        c->file, c->origin, out);
    if (err != NULL) {
        inf_message_free(copy);
    }
    return err;
}

void
inf_model_config_free(inf_model_config_t *c)
{
    if (c == NULL) {
        return;
    }

    inf_message_free(&c->msg->base);
    free(c->file);
    free(c->origin);
    free(c);
}

bool
inf_config_is_ensemble(const Inference__ModelConfig *msg)
{
    return strcmp(msg->platform, "ensemble") == 0;
}
