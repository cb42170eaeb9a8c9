/* checks_model.c - a model, its configuration, its instances' properties and
   what may be reported of them. */

#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void check_repository(cf_report_t *r, const cf_model_t *m);
static void check_text(cf_report_t *r, const cf_model_t *m);
static void check_server(cf_report_t *r, const cf_model_t *m);
static void check_set_config(cf_report_t *r, const cf_model_t *m);
static TRITONSERVER_Error *set_config(const cf_model_t *m, const char *json);
static void set_replaced(cf_report_t *r, const cf_model_t *m,
    const char *from, const char *to, const char *what);
static void check_same(cf_report_t *r, const cf_model_t *m, const char *what);
static void report_memory(cf_report_t *r, TRITONBACKEND_Model *model,
    TRITONBACKEND_ModelInstance *instance);
static void check_host_policy(cf_report_t *r, const cf_instance_t *i);

/* In the order of the configuration's fields. */
static const char *const members[] = {
    "{\"name\":", ",\"platform\":", ",\"backend\":", ",\"runtime\":",
    ",\"version_policy\":{", ",\"max_batch_size\":", ",\"input\":[",
    ",\"output\":[", ",\"batch_input\":[", ",\"batch_output\":[",
    ",\"optimization\":{\"priority\":\"PRIORITY_DEFAULT\","
    "\"input_pinned_memory\":{\"enable\":true},"
    "\"output_pinned_memory\":{\"enable\":true},"
    "\"gather_kernel_buffer_threshold\":0,\"eager_batching\":false}",
    ",\"instance_group\":[{\"name\":", ",\"default_model_filename\":",
    ",\"cc_model_filenames\":{", ",\"metric_tags\":{", ",\"parameters\":{",
    ",\"model_warmup\":["
};

void
cf_model_check(cf_report_t *r, cf_model_t *m)
{
    TRITONSERVER_Message *message = (void *) r;
    uint64_t              version = 0;
    bool                  complete = false;
    const char           *text;
    size_t                size;

    cf_succeeds(r, TRITONBACKEND_ModelVersion(m->handle, &version),
        "18: a model has a version");
    cf_check(r, version >= 1, "18: versions are numbers from 1 on");
    cf_fails(r, TRITONBACKEND_ModelConfig(m->handle, 2, &message),
        TRITONSERVER_ERROR_INVALID_ARG,
        "18: ModelConfig of another version is INVALID_ARG");

    cf_succeeds(r, TRITONBACKEND_ModelAutoCompleteConfig(m->handle,
        &complete), "18: ModelAutoCompleteConfig always succeeds");
    TRITONSERVER_MessageSerializeToJson(m->backend->config, &text, &size);
    cf_check(r, complete == (strstr(text,
        "\"auto-complete-config\":\"true\"") != NULL),
        "18: ModelAutoCompleteConfig is what the settings say");

    check_repository(r, m);
    check_text(r, m);
    check_server(r, m);
    check_set_config(r, m);
    report_memory(r, m->handle, NULL);
}

static void
check_repository(cf_report_t *r, const cf_model_t *m)
{
    TRITONBACKEND_ArtifactType type = 7;
    const char                *where = NULL;
    struct stat                st;

    cf_succeeds(r, TRITONBACKEND_ModelRepository(m->handle, &type, &where),
        "18: ModelRepository gives a location");
    cf_check(r, type == TRITONBACKEND_ARTIFACT_FILESYSTEM && where != NULL
        && stat(where, &st) == 0 && S_ISDIR(st.st_mode),
        "18: the location is a folder");

    const char *last = where != NULL ? strrchr(where, '/') : NULL;

    cf_check(r, last != NULL && strcmp(last + 1, m->name) == 0,
        "18: ModelRepository is the model's directory, without a slash");
}

/* Compact, in the order of the fields, complete. */
static void
check_text(cf_report_t *r, const cf_model_t *m)
{
    TRITONSERVER_Message *one = NULL, *two = NULL;
    const char           *text = "";
    size_t                size = 0;

    cf_succeeds(r, TRITONBACKEND_ModelConfig(m->handle, 1, &one),
        "18: ModelConfig is there in ModelInitialize");
    cf_succeeds(r, TRITONBACKEND_ModelConfig(m->handle, 1, &two),
        "18: ModelConfig is there in ModelInitialize");
    cf_check(r, one != NULL && two != NULL && one != two,
        "18: ModelConfig gives a new message each time");
    TRITONSERVER_ErrorDelete(TRITONSERVER_MessageDelete(one));
    if (two == NULL) {
        return;
    }

    cf_succeeds(r, TRITONSERVER_MessageSerializeToJson(two, &text, &size),
        "5: a message is given as text");
    cf_check(r, strlen(text) == size, "5: a text ends in NUL at its size");
    cf_check(r, strchr(text, '\n') == NULL && strstr(text, "\": ") == NULL,
        "5: JSON text is compact");

    const char *at = text;

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        const char *found = strstr(at, members[i]);
        char        what[128];

        snprintf(what, sizeof(what), "18: %.60s is always there, in its"
            " place", members[i]);
        cf_check(r, found != NULL, what);
        at = found != NULL ? found : at;
    }
    cf_check(r, strstr(text, "\"dims\":[\"") == NULL,
        "18: dims are numbers");
    cf_succeeds(r, TRITONSERVER_MessageDelete(two),
        "5: the message is the caller's");
}

static void
check_server(cf_report_t *r, const cf_model_t *m)
{
    TRITONSERVER_Server  *server = NULL;
    TRITONSERVER_Message *message = NULL;
    bool                  live = false;

    cf_succeeds(r, TRITONBACKEND_ModelServer(m->handle, &server),
        "18: ModelServer gives the server");
    cf_check(r, server != NULL, "18: ModelServer gives the server");
    if (server == NULL) {
        return;
    }

    cf_succeeds(r, TRITONSERVER_ServerIsLive(server, &live),
        "18: the server works during ModelInitialize");
    cf_check(r, live, "18: the server lives during ModelInitialize");
    cf_succeeds(r, TRITONSERVER_ServerMetadata(server, &message),
        "18: the server works during ModelInitialize");
    TRITONSERVER_ErrorDelete(TRITONSERVER_MessageDelete(message));
}

static void
check_set_config(cf_report_t *r, const cf_model_t *m)
{
    TRITONSERVER_Message *message = NULL;

    cf_succeeds(r, TRITONSERVER_MessageNewFromSerializedJson(&message,
        "{\"name", 6), "5: a message may hold any text");
    cf_fails(r, TRITONBACKEND_ModelSetConfig(m->handle, 2, message),
        TRITONSERVER_ERROR_INVALID_ARG,
        "18: ModelSetConfig of another version is INVALID_ARG");
    cf_fails(r, TRITONBACKEND_ModelSetConfig(m->handle, 1, message),
        TRITONSERVER_ERROR_INVALID_ARG,
        "18: malformed JSON is INVALID_ARG where it is used");
    cf_succeeds(r, TRITONSERVER_MessageDelete(message),
        "18: the message given to ModelSetConfig stays the caller's");

    cf_fails(r, set_config(m, "{\"max_batch_size\":1,\"colour\":\"red\"}"),
        TRITONSERVER_ERROR_INVALID_ARG,
        "18: an unknown field is INVALID_ARG");
    cf_fails(r, set_config(m, "[]"), TRITONSERVER_ERROR_INVALID_ARG,
        "18: a configuration is an object");
    cf_fails(r, set_config(m, "{\"max_batch_size\":\"many\"}"),
        TRITONSERVER_ERROR_INVALID_ARG, "18: a number must be a number");
    check_same(r, m, "18: a rejected configuration changes nothing");

    if (m->config == NULL) {
        return;
    }
    cf_succeeds(r, set_config(m, m->config),
        "18: what ModelConfig gave can be set");
    check_same(r, m, "18: what ModelConfig gave, set, is what it gives");
    set_replaced(r, m, "\"TYPE_FP32\"", "\"type_fp32\"",
        "18: names of enumerations are taken in any case");
    set_replaced(r, m, "\"dims\":[-1]", "\"dims\":[\"-1\"]",
        "18: 64-bit numbers are taken as strings too");
    set_replaced(r, m, "\"platform\":\"\"", "\"platform\":\"other\"",
        "18: what a backend may not complete is ignored");

    if (strstr(m->config, "\"dynamic_batching\":{") != NULL) {
        cf_fails(r, set_config(m,
            "{\"max_batch_size\":4,\"sequence_batching\":{}}"),
            TRITONSERVER_ERROR_INTERNAL,
            "18: another scheduling choice is INTERNAL");
        check_same(r, m, "18: a rejected configuration changes nothing");
    }
}

static TRITONSERVER_Error *
set_config(const cf_model_t *m, const char *json)
{
    TRITONSERVER_Message *message = NULL;

    TRITONSERVER_Error *err = TRITONSERVER_MessageNewFromSerializedJson(
        &message, json, strlen(json));
    if (err != NULL) {
        return err;
    }

    err = TRITONBACKEND_ModelSetConfig(m->handle, 1, message);
    TRITONSERVER_ErrorDelete(TRITONSERVER_MessageDelete(message));
    return err;
}

/* Sets the configuration with its first `from` spelled `to`: the same. */
static void
set_replaced(cf_report_t *r, const cf_model_t *m, const char *from,
    const char *to, const char *what)
{
    const char *at = strstr(m->config, from);
    char       *json = NULL;

    if (at == NULL) {
        cf_check(r, false, what);
        return;
    }
    if (asprintf(&json, "%.*s%s%s", (int) (at - m->config), m->config, to,
        at + strlen(from)) < 0)
    {
        return;
    }

    cf_succeeds(r, set_config(m, json), what);
    check_same(r, m, what);
    free(json);
}

static void
check_same(cf_report_t *r, const cf_model_t *m, const char *what)
{
    char *now = cf_model_config(m->handle);

    cf_check(r, now != NULL && strcmp(now, m->config) == 0, what);
    free(now);
}

char *
cf_model_config(TRITONBACKEND_Model *model)
{
    TRITONSERVER_Message *message = NULL;
    const char           *text = NULL;
    char                 *copy = NULL;
    size_t                size;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelConfig(model, 1, &message);
    if (err == NULL) {
        err = TRITONSERVER_MessageSerializeToJson(message, &text, &size);
        copy = err == NULL ? strndup(text, size) : NULL;
        TRITONSERVER_ErrorDelete(TRITONSERVER_MessageDelete(message));
    }
    TRITONSERVER_ErrorDelete(err);
    return copy;
}

/* Reported twice: the second replaces the first.  instance may be NULL. */
static void
report_memory(cf_report_t *r, TRITONBACKEND_Model *model,
    TRITONBACKEND_ModelInstance *instance)
{
    TRITONSERVER_BufferAttributes *rows[2] = { NULL, NULL };

    for (int i = 0; i < 2; i++) {
        TRITONSERVER_ErrorDelete(TRITONSERVER_BufferAttributesNew(&rows[i]));
        TRITONSERVER_BufferAttributesSetMemoryType(rows[i], i == 0
            ? TRITONSERVER_MEMORY_CPU : TRITONSERVER_MEMORY_CPU_PINNED);
        TRITONSERVER_BufferAttributesSetMemoryTypeId(rows[i], 0);
        TRITONSERVER_BufferAttributesSetByteSize(rows[i], 1000u);
    }

    if (instance != NULL) {
        cf_succeeds(r, TRITONBACKEND_ModelInstanceReportMemoryUsage(instance,
            rows, 2), "18: an instance may report its memory");
        TRITONSERVER_BufferAttributesSetByteSize(rows[0], 32u);
        cf_succeeds(r, TRITONBACKEND_ModelInstanceReportMemoryUsage(instance,
            rows, 1), "18: a report replaces the one before");
    } else {
        cf_succeeds(r, TRITONBACKEND_ModelReportMemoryUsage(model, rows, 2),
            "18: a model may report its memory");
        cf_succeeds(r, TRITONBACKEND_ModelReportMemoryUsage(model, rows, 0),
            "18: a report may be empty");
        TRITONSERVER_BufferAttributesSetByteSize(rows[0], 64u);
        cf_succeeds(r, TRITONBACKEND_ModelReportMemoryUsage(model, rows, 1),
            "18: a report replaces the one before");
    }

    for (int i = 0; i < 2; i++) {
        cf_succeeds(r, TRITONSERVER_BufferAttributesDelete(rows[i]),
            "18: what was reported stays the caller's");
    }
}

void
cf_instance_check(cf_report_t *r, cf_instance_t *i)
{
    TRITONBACKEND_ModelInstance   *h = i->handle;
    TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_AUTO;
    int32_t                        device = 7;
    uint32_t                       profiles = 7, devices = 7;
    const char                    *text = i->name;
    int64_t                        id = 0;
    bool                           passive = false;

    cf_succeeds(r, TRITONBACKEND_ModelInstanceKind(h, &kind),
        "19: an instance has a kind");
    cf_check(r, kind == TRITONSERVER_INSTANCEGROUPKIND_CPU
        || kind == TRITONSERVER_INSTANCEGROUPKIND_MODEL,
        "19: the kind is the group's, never AUTO");
    cf_succeeds(r, TRITONBACKEND_ModelInstanceDeviceId(h, &device),
        "19: an instance has a device id");
    cf_check(r, device == 0, "19: the device id of CPU and MODEL is 0");
    cf_succeeds(r, TRITONBACKEND_ModelInstanceIsPassive(h, &passive),
        "19: an instance is passive or not");
    cf_succeeds(r, TRITONBACKEND_ModelInstanceProfileCount(h, &profiles),
        "19: an instance has a number of profiles");
    cf_fails(r, TRITONBACKEND_ModelInstanceProfileName(h, profiles, &text),
        TRITONSERVER_ERROR_INVALID_ARG,
        "19: a profile out of range is INVALID_ARG");
    cf_check(r, text == NULL, "1: ModelInstanceProfileName sets NULL");
    cf_succeeds(r, TRITONBACKEND_ModelInstanceSecondaryDeviceCount(h,
        &devices), "19: an instance has a number of secondary devices");
    cf_fails(r, TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(h,
        devices, &text, &id), TRITONSERVER_ERROR_INVALID_ARG,
        "19: a secondary device out of range is INVALID_ARG");
    if (devices > 0) {
        cf_succeeds(r, TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(h,
            0, &text, &id), "19: a secondary device has a kind");
        cf_check(r, text != NULL && strncmp(text, "KIND_", 5) == 0,
            "19: the kind of a secondary device is its name");
    }
    check_host_policy(r, i);
    report_memory(r, NULL, h);
}

static void
check_host_policy(cf_report_t *r, const cf_instance_t *i)
{
    TRITONSERVER_Message *one = NULL, *two = NULL;
    const char           *text = "";
    size_t                size = 0;

    cf_succeeds(r, TRITONBACKEND_ModelInstanceHostPolicy(i->handle, &one),
        "19: an instance has a host policy");
    cf_succeeds(r, TRITONBACKEND_ModelInstanceHostPolicy(i->handle, &two),
        "19: an instance has a host policy");
    cf_check(r, one != NULL && one == two,
        "5: HostPolicy gives the same message each time");
    if (one == NULL) {
        return;
    }

    TRITONSERVER_MessageSerializeToJson(one, &text, &size);

    const char *inner = strstr(text, "\":{");

    cf_check(r, size > 6 && strlen(text) == size
        && strncmp(text, "{\"", 2) == 0 && inner != NULL
        && strcmp(text + size - 2, "}}") == 0
        && strstr(inner + 3, ":{") == NULL,
        "19: HostPolicy has exactly one member, an object");
}

void
cf_statistics_check(cf_report_t *r, TRITONBACKEND_ModelInstance *i)
{
    TRITONBACKEND_ModelInstanceResponseStatistics *s = NULL;

    cf_succeeds(r, TRITONBACKEND_ModelInstanceResponseStatisticsNew(&s),
        "27: response statistics can be made");
    cf_fails(r, TRITONBACKEND_ModelInstanceReportResponseStatistics(s),
        TRITONSERVER_ERROR_INVALID_ARG,
        "27: a report without an instance is INVALID_ARG");
    cf_succeeds(r,
        TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(s, i),
        "27: setters only store");
    cf_fails(r, TRITONBACKEND_ModelInstanceReportResponseStatistics(s),
        TRITONSERVER_ERROR_INVALID_ARG,
        "27: a report without a factory is INVALID_ARG");
    cf_succeeds(r, TRITONBACKEND_ModelInstanceResponseStatisticsDelete(s),
        "27: response statistics can be deleted unreported");
}
