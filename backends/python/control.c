/* control.c - see control.h */

#include "control.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"
#include "threads.h"

#define FILES_MAX 4096u

typedef struct {
    py_job_t                 job;           /* must be first                 */
    py_link_t               *link;
    TRITONSERVER_Server     *server;
    py_up_t                  kind;
    uint32_t                 slot;
    char                    *name;
    int64_t                  version;
    bool                     dependents;
    TRITONSERVER_Parameter **parameters;
    void                   **contents;      /* of the parameters, or NULL    */
    uint32_t                 count;
    uint64_t                 copied;        /* bytes of contents             */
} control_t;

static TRITONSERVER_Error *control_read(control_t *c, py_reader_t *r);
static TRITONSERVER_Error *read_files(control_t *c, const char *config,
    py_reader_t *r);
static TRITONSERVER_Error *read_file(control_t *c, py_reader_t *r);
static void control_free(control_t *c);
static void control_run(py_job_t *job);

TRITONSERVER_Error *
py_control_start(py_link_t *link, TRITONSERVER_Server *server,
    py_up_t kind, uint32_t slot, py_reader_t *r)
{
    TRITONSERVER_Error *err = py_link_claim(link, slot);

    if (err != NULL) {
        return err;
    }

    control_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        py_link_unclaim(link, slot);
        return bk_err_nomem("a call");
    }

    *c = (control_t) {
        .job.run = control_run, .link = py_link_ref(link), .server = server,
        .kind = kind, .slot = slot
    };
    err = control_read(c, r);
    if (err == NULL) {
        err = py_threads_run(&c->job);
    }
    if (err != NULL) {
        py_link_unclaim(link, slot);
        control_free(c);
    }
    return err;
}

/* Parses [name, version, dependents] or, for a load, [name, config or none,
   files]. */
static TRITONSERVER_Error *
control_read(control_t *c, py_reader_t *r)
{
    const char *name, *config = NULL;

    if (!py_read_list_of(r, 3) || !py_read_text(r, &name, NULL)) {
        return py_error_message("call");
    }

    c->name = strdup(name);
    if (c->name == NULL) {
        return bk_err_nomem("a call");
    }

    if (c->kind != PY_UP_LOAD) {
        return py_read_int(r, &c->version) && py_read_bool(r,
            &c->dependents) ? NULL : py_error_message("call");
    }

    return py_read_optional(r, &config) ? read_files(c, config, r)
        : py_error_message("configuration");
}

static TRITONSERVER_Error *
read_files(control_t *c, const char *config, py_reader_t *r)
{
    TRITONSERVER_Error *err = NULL;
    uint32_t count;

    if (!py_read_list(r, &count) || count > FILES_MAX) {
        return py_error_message("list of files");
    }

    c->parameters = calloc((size_t) count + 1, sizeof(*c->parameters));
    c->contents = calloc((size_t) count + 1, sizeof(*c->contents));
    if (c->parameters == NULL || c->contents == NULL) {
        return bk_err_nomem("a model's files");
    }

    if (config != NULL) {
        c->parameters[0] = TRITONSERVER_ParameterNew("config",
            TRITONSERVER_PARAMETER_STRING, config);
        if (c->parameters[0] == NULL) {
            return bk_err_nomem("a configuration");
        }
        c->count = 1;
    }
    for (uint32_t i = 0; i < count && err == NULL; i++) {
        err = read_file(c, r);
    }
    return err;
}

/* Parses [name, contents]. */
static TRITONSERVER_Error *
read_file(control_t *c, py_reader_t *r)
{
    const char *name;
    py_data_t data;

    if (!py_read_list_of(r, 2) || !py_read_text(r, &name, NULL)
        || !py_read_data(r, &data))
    {
        return py_error_message("file");
    }

    if (data.length > PY_COPY_MAX - c->copied) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "file \"%s\" is too large; all files may have %" PRIu64
            " bytes", name, PY_COPY_MAX);
    }
    c->copied += data.length;

    void *contents = malloc(data.length + 1);
    if (contents == NULL) {
        return bk_err_nomem("a model's file");
    }

    c->contents[c->count] = contents;
    TRITONSERVER_Error *err = py_link_read(c->link, &data, contents);
    if (err == NULL) {
        c->parameters[c->count] = TRITONSERVER_ParameterBytesNew(name,
            contents, data.length);
        if (c->parameters[c->count] == NULL) {
            err = bk_err_nomem("a model's file");
        }
    }
    c->count++;
    return err;
}

static void
control_free(control_t *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        TRITONSERVER_ParameterDelete(c->parameters[i]);
        free(c->contents[i]);
    }
    free(c->parameters);
    free(c->contents);
    free(c->name);
    py_link_unref(c->link);
    free(c);
}

static void
control_run(py_job_t *job)
{
    control_t *c = (control_t *) job;
    py_writer_t value = { 0 };
    TRITONSERVER_Error *err;
    bool ready = false;

    if (c->kind == PY_UP_LOAD) {
        err = TRITONSERVER_ServerLoadModelWithParameters(c->server, c->name,
            (const TRITONSERVER_Parameter **) c->parameters, c->count);
    } else if (c->kind == PY_UP_UNLOAD) {
        err = c->dependents
            ? TRITONSERVER_ServerUnloadModelAndDependents(c->server, c->name)
            : TRITONSERVER_ServerUnloadModel(c->server, c->name);
    } else {
        err = TRITONSERVER_ServerModelIsReady(c->server, c->name, c->version,
            &ready);
        py_write_bool(&value, ready);
    }

    py_link_unclaim(c->link, c->slot);
    py_reply(c->link, c->slot, err, &value);
    bk_err_drop(err);
    py_writer_fini(&value);
    control_free(c);
}
