#include "core/model/config_infer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/path.h"
#include "core/model/config_edit.h"
#include "core/model/versions.h"

/* The version directory searched; all texts may be empty. */
typedef struct {
    Inference__ModelConfig *msg;
    bool                    searched;       /* for a version directory      */
    char                    version[24];    /* its name; empty: none          */
    inf_entries_t           content;
    bool                    onnx_directory; /* model.onnx/model.onnx        */
} infer_t;

typedef enum {
    INFER_FILE,
    INFER_DIR,
    INFER_FILE_OR_DIR,
    INFER_FILE_OR_ONNX_DIRECTORY
} infer_kind_t;

static inf_err_t *infer_content(infer_t *in, const inf_storage_t *st,
    const char *model_dir);
static inf_err_t *infer_inspect(infer_t *in, const inf_storage_t *st,
    const char *version_dir);
static const char *infer_first_version(const inf_entries_t *entries);
static inf_err_t *infer_backend(infer_t *in, const char *model_name);
static inf_err_t *infer_tensorflow(infer_t *in, bool *settled);
static const char *infer_tensorflow_platform(const infer_t *in);
static inf_err_t *infer_plain(infer_t *in, const char *backend,
    const char *platform, const char *filename, infer_kind_t kind,
    bool *settled);
static inf_err_t *infer_pytorch(infer_t *in, bool *settled);
static inf_err_t *infer_cuda(infer_t *in, bool *settled);
static inf_err_t *infer_pytorch_fill(Inference__ModelConfig *msg);
static inf_err_t *infer_custom(infer_t *in, const char *model_name);
static inf_err_t *infer_failed(const infer_t *in, const char *model_name);
static const char *infer_expected(const char *file);
static bool infer_must_search(const Inference__ModelConfig *msg);
static bool infer_may_search(const Inference__ModelConfig *msg);
static bool infer_has(const infer_t *in, const char *name, infer_kind_t kind);
static bool text_is(const char *a, const char *b);
static bool text_is_empty(const char *s);
static inf_err_t *infer_fill(Inference__ModelConfig *msg, char *const *field,
    const char *field_name, const char *value);

inf_err_t *
inf_config_infer(Inference__ModelConfig *msg, const inf_storage_t *st,
    const char *model_dir, const char *model_name)
{
    infer_t in = { .msg = msg };

    inf_err_t *err = infer_fill(msg, &msg->name, "name", model_name);
    if (err == NULL && infer_must_search(msg)) {
        err = infer_content(&in, st, model_dir);
    }

    if (err == NULL) {
        err = infer_backend(&in, model_name);
    }

    inf_entries_fini(&in.content);
    return err;
}

/* Lists the version directory; empty without one. */
static inf_err_t *
infer_content(infer_t *in, const inf_storage_t *st, const char *model_dir)
{
    inf_entries_t entries;
    inf_err_t *err = inf_storage_list(st, model_dir, &entries);
    if (err != NULL) {
        return err;
    }

    const char *first = infer_first_version(&entries);
    in->searched = true;
    if (first != NULL) {
        (void) snprintf(in->version, sizeof(in->version), "%s", first);
        char *path = inf_path_join(model_dir, first);
        err = path == NULL ? inf_err_nomem()
                           : inf_storage_list(st, path, &in->content);
        if (err == NULL) {
            err = infer_inspect(in, st, path);
        }
        free(path);
    }

    inf_entries_fini(&entries);
    return err;
}

/* Notes whether model.onnx is a directory with the model. */
static inf_err_t *
infer_inspect(infer_t *in, const inf_storage_t *st,
    const char *version_dir)
{
    if (!infer_has(in, "model.onnx", INFER_DIR)) {
        return NULL;
    }

    char *path = inf_path_join(version_dir, "model.onnx/model.onnx");
    if (path == NULL) {
        return inf_err_nomem();
    }

    inf_entry_t entry;
    inf_err_t *err = inf_storage_stat(st, path, &entry);
    free(path);
    in->onnx_directory = err == NULL;
    if (err != NULL && inf_err_code(err) == INF_ERR_NOT_FOUND) {
        inf_err_free(err);
        return NULL;
    }

    return err;
}

static const char *
infer_first_version(const inf_entries_t *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        const inf_entry_t *entry = &entries->items[i];
        int64_t version;

        if (entry->kind == INF_ENTRY_DIR
            && inf_version_parse(inf_slice_str(entry->name), &version)
                == INF_VERSION_OK)
        {
            return entry->name;
        }
    }

    return NULL;
}

/* Finds the backend; the first match ends the search. */
static inf_err_t *
infer_backend(infer_t *in, const char *model_name)
{
    bool settled = false;

    inf_err_t *err = infer_tensorflow(in, &settled);
    if (err == NULL && !settled) {
        err = infer_plain(in, "tensorrt", "tensorrt_plan", "model.plan",
            INFER_FILE, &settled);
    }

    if (err == NULL && !settled) {
        err = infer_plain(in, "onnxruntime", "onnxruntime_onnx",
            "model.onnx", INFER_FILE_OR_ONNX_DIRECTORY, &settled);
    }

    if (err == NULL && !settled) {
        err = infer_plain(in, "openvino", NULL, "model.xml",
            INFER_FILE_OR_DIR, &settled);
    }

    if (err == NULL && !settled) {
        err = infer_pytorch(in, &settled);
    }

    if (err == NULL && !settled) {
        err = infer_plain(in, "python", NULL, "model.py", INFER_FILE_OR_DIR,
            &settled);
    }

    if (err == NULL && !settled) {
        err = infer_cuda(in, &settled);
    }

    if (err == NULL && !settled && infer_may_search(in->msg)
        && text_is_empty(in->msg->backend))
    {
        err = infer_custom(in, model_name);
    }

    return err;
}

/* Fills TensorFlow's fields; the platform decides, as two formats share the
   backend. */
static inf_err_t *
infer_tensorflow(infer_t *in, bool *settled)
{
    Inference__ModelConfig *msg = in->msg;
    inf_err_t *err = NULL;

    if (text_is_empty(msg->platform)
        && (text_is_empty(msg->backend)
            || text_is(msg->backend, "tensorflow")))
    {
        err = infer_fill(msg, &msg->platform, "platform",
            infer_tensorflow_platform(in));
    }

    bool saved = text_is(msg->platform, "tensorflow_savedmodel");
    if (err != NULL || (!saved
        && !text_is(msg->platform, "tensorflow_graphdef")))
    {
        return err;
    }

    *settled = true;
    err = infer_fill(msg, &msg->backend, "backend", "tensorflow");
    if (err != NULL) {
        return err;
    }

    return infer_fill(msg, &msg->default_model_filename,
        "default_model_filename", saved ? "model.savedmodel"
                                        : "model.graphdef");
}

static const char *
infer_tensorflow_platform(const infer_t *in)
{
    const char *filename = in->msg->default_model_filename;

    if (text_is(filename, "model.savedmodel")) {
        return "tensorflow_savedmodel";
    }

    if (text_is(filename, "model.graphdef")) {
        return "tensorflow_graphdef";
    }

    if (!text_is_empty(filename)) {
        return "";
    }

    if (infer_has(in, "model.graphdef", INFER_FILE)) {
        return "tensorflow_graphdef";
    }

    return infer_has(in, "model.savedmodel", INFER_DIR)
        ? "tensorflow_savedmodel" : "";
}

/* Fills the fields of a backend with one platform (or none: NULL) and one model
   file. */
static inf_err_t *
infer_plain(infer_t *in, const char *backend, const char *platform,
    const char *filename, infer_kind_t kind, bool *settled)
{
    Inference__ModelConfig *msg = in->msg;

    bool hit = text_is(msg->backend, backend);
    if (text_is_empty(msg->backend)) {
        hit = (platform != NULL && text_is(msg->platform, platform))
            || text_is(msg->default_model_filename, filename)
            || (infer_may_search(msg) && infer_has(in, filename, kind));
    }

    if (!hit) {
        return NULL;
    }

    *settled = true;
    inf_err_t *err = infer_fill(msg, &msg->backend, "backend", backend);
    if (err == NULL && platform != NULL) {
        err = infer_fill(msg, &msg->platform, "platform", platform);
    }

    if (err == NULL) {
        err = infer_fill(msg, &msg->default_model_filename,
            "default_model_filename", filename);
    }

    return err;
}

static inf_err_t *
infer_pytorch(infer_t *in, bool *settled)
{
    Inference__ModelConfig *msg = in->msg;

    if (text_is(msg->backend, "pytorch")) {
        *settled = true;
        return infer_pytorch_fill(msg);
    }

    if (!text_is_empty(msg->backend)) {
        return NULL;
    }

    const char *platform = "";
    bool by_name = text_is(msg->platform, "pytorch_libtorch")
        || text_is(msg->platform, "libtorch")
        || text_is(msg->platform, "torch_aoti");

    if (!by_name) {
        if (text_is(msg->default_model_filename, "model.pt")
            || text_is(msg->default_model_filename, "model.pt2"))
        {
            platform = "pytorch_libtorch";

        } else if (infer_may_search(msg)
            && infer_has(in, "model.pt", INFER_FILE))
        {
            platform = "pytorch_libtorch";

        } else if (infer_may_search(msg)
            && infer_has(in, "model.pt2", INFER_FILE))
        {
            platform = "torch_aoti";

        } else {
            return NULL;
        }
    }

    *settled = true;
    inf_err_t *err = infer_fill(msg, &msg->backend, "backend", "pytorch");
    return err != NULL ? err
                       : infer_fill(msg, &msg->platform, "platform",
                           platform);
}

/* Fills PyTorch's fields; the backend finds model.pt itself if the platform is
   set. */
static inf_err_t *
infer_pytorch_fill(Inference__ModelConfig *msg)
{
    if (!text_is_empty(msg->platform)) {
        return NULL;
    }

    inf_err_t *err = infer_fill(msg, &msg->platform, "platform",
        "pytorch_libtorch");
    return err != NULL ? err
                       : infer_fill(msg, &msg->default_model_filename,
                           "default_model_filename", "model.pt");
}

/* Fills the fields of backend cuda, which chooses among its files.  A model.so
   precedes them, and alone may be any backend's. */
static inf_err_t *
infer_cuda(infer_t *in, bool *settled)
{
    static const char *const names[] = {
        "model.cu", "model.ptx", "model.cubin", "model.fatbin"
    };
    Inference__ModelConfig *msg = in->msg;

    *settled = text_is(msg->backend, "cuda");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0])
         && text_is_empty(msg->backend); i++)
    {
        if (text_is(msg->default_model_filename, names[i])
            || (infer_may_search(msg) && infer_has(in, names[i], INFER_FILE)))
        {
            *settled = true;
            return infer_fill(msg, &msg->backend, "backend", "cuda");
        }
    }

    return NULL;
}

/* Fills the backend from a model name of the form "name.backend". */
static inf_err_t *
infer_custom(infer_t *in, const char *model_name)
{
    Inference__ModelConfig *msg = in->msg;
    const char *dot = strchr(model_name, '.');

    if (dot == NULL || dot[1] == '\0') {
        return infer_failed(in, model_name);
    }

    inf_err_t *err = infer_fill(msg, &msg->backend, "backend", dot + 1);
    if (err != NULL) {
        return err;
    }

    char *filename = malloc(sizeof("model") + strlen(dot));
    if (filename == NULL) {
        return inf_err_nomem();
    }

    memcpy(filename, "model", 5);
    memcpy(filename + 5, dot, strlen(dot) + 1);
    err = infer_fill(msg, &msg->default_model_filename,
        "default_model_filename", filename);
    free(filename);
    return err;
}

/* The error, with Triton's text and the file names tried. */
static inf_err_t *
infer_failed(const infer_t *in, const char *model_name)
{
    static const char text[] = "Invalid model name: Could not determine "
        "backend for model '%s' with no backend in model configuration. "
        "Expected model name of the form 'model.<backend_name>'.";

    inf_err_t *err = inf_err_new(INF_ERR_INVALID_ARG, text, model_name);
    if (!in->searched) {
        return err;
    }
    if (in->version[0] == '\0') {
        return inf_err_note(err, "no version directory: put the"
            " model's file, such as model.onnx, into %s/1", model_name);
    }
    if (in->content.count == 0) {
        return inf_err_note(err, "%s/%s is empty", model_name, in->version);
    }

    for (size_t i = 0; i < in->content.count; i++) {
        const char *file = in->content.items[i].name;
        const char *expected = infer_expected(file);
        if (expected != NULL) {
            return inf_err_note(err, "%s/%s holds %s; expected %s",
                model_name, in->version, file, expected);
        }
    }
    return inf_err_note(err, "%s/%s holds %s, which is no backend's file",
        model_name, in->version, in->content.items[0].name);
}

/* The file name that implies a backend and has this file's extension; or
   NULL. */
static const char *
infer_expected(const char *file)
{
    static const char *const names[] = {
        "model.graphdef", "model.savedmodel", "model.plan", "model.onnx",
        "model.xml", "model.pt", "model.pt2", "model.py", "model.cu",
        "model.ptx", "model.cubin", "model.fatbin"
    };
    const char *end = strrchr(file, '.');

    for (size_t i = 0; end != NULL && i < sizeof(names) / sizeof(names[0]);
         i++)
    {
        if (text_is(end, strchr(names[i], '.'))) {
            return names[i];
        }
    }

    return NULL;
}

static bool
infer_must_search(const Inference__ModelConfig *msg)
{
    return infer_may_search(msg) && (text_is_empty(msg->backend)
        || text_is(msg->backend, "tensorflow"));
}

/* Whether files may imply the backend: the configuration has neither a platform
   nor a model file. */
static bool
infer_may_search(const Inference__ModelConfig *msg)
{
    return text_is_empty(msg->platform)
        && text_is_empty(msg->default_model_filename);
}

static bool
infer_has(const infer_t *in, const char *name, infer_kind_t kind)
{
    const inf_entry_t *entry = inf_entries_find(&in->content, name);
    if (entry == NULL) {
        return false;
    }

    switch (kind) {
    case INFER_FILE:
        return entry->kind == INF_ENTRY_FILE;
    case INFER_DIR:
        return entry->kind == INF_ENTRY_DIR;
    case INFER_FILE_OR_DIR:
        return entry->kind == INF_ENTRY_FILE || entry->kind == INF_ENTRY_DIR;
    case INFER_FILE_OR_ONNX_DIRECTORY:
        return entry->kind == INF_ENTRY_FILE || in->onnx_directory;
    }

    return false;
}

static bool
text_is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static bool
text_is_empty(const char *s)
{
    return s[0] == '\0';
}

/* Sets a field, unless it is set. */
static inf_err_t *
infer_fill(Inference__ModelConfig *msg, char *const *field,
    const char *field_name, const char *value)
{
    if (!text_is_empty(*field) || text_is_empty(value)) {
        return NULL;
    }

    return inf_config_put_text(&msg->base, field_name, value);
}
