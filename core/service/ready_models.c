#include "core/service/ready_models.h"

#include <stdlib.h>

inf_err_t *
inf_ready_models_init(inf_ready_models_t *list, inf_server_t *server)
{
    inf_registry_reader_t reader;
    *list = (inf_ready_models_t) { .models = NULL };

    inf_registry_reader_init(&reader, &server->registry);
    inf_err_t *err = inf_registry_models(&reader, &list->models, &list->count);
    inf_registry_reader_fini(&reader);
    return err;
}

void
inf_ready_models_fini(inf_ready_models_t *list)
{
    for (size_t i = 0; i < list->count; i++) {
        inf_model_unref(list->models[i]);
    }
    free(list->models);
    *list = (inf_ready_models_t) { .models = NULL };
}

inf_err_t *
inf_ready_models_ask(inf_server_t *server, bool *ready)
{
    inf_ready_models_t list;
    inf_err_t *err = inf_ready_models_init(&list, server);

    *ready = err == NULL;
    for (size_t i = 0; *ready && i < list.count; i++) {
        *ready = inf_server_instances_ready(list.models[i]);
    }

    inf_ready_models_fini(&list);
    return err;
}
