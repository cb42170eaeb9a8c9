#include "core/model/config_load.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/config_name.h"
#include "core/base/path.h"
#include "core/model/config_edit.h"
#include "core/model/config_infer.h"
#include "core/model/config_normalize.h"
#include "core/model/config_validate.h"
#include "core/proto/config_json.h"
#include "core/proto/message.h"
#include "core/proto/text_format.h"

/* The state of reading a model directory. */
typedef struct {
    const inf_storage_t        *st;
    const char                 *model_dir;
    const char                 *model_name;
    const inf_config_options_t *opt;
    char                       *file;       /* NULL: none                  */
    const inf_storage_t        *file_st;    /* storage of file             */
    Inference__ModelConfig     *msg;
} load_t;

static inf_err_t *load_make(load_t *l, inf_model_config_t **out);
static inf_err_t *load_not_inferred(const load_t *l, inf_err_t *err);
static inf_err_t *load_parse(load_t *l);
static inf_err_t *load_override(load_t *l);
static inf_err_t *load_find_file(load_t *l);
static inf_err_t *load_find_in(load_t *l, const inf_storage_t *st,
    const char *dir);
static inf_err_t *load_find_named(load_t *l, const inf_storage_t *st,
    const char *dir);
static inf_err_t *load_probe(load_t *l, const inf_storage_t *st,
    const char *dir, const char *name);
static inf_err_t *load_no_file(load_t *l);
static inf_err_t *load_file(load_t *l);
static const char *load_origin(const load_t *l);
static void load_rules(const Inference__ModelConfig *msg,
    const char *model_name, const inf_config_options_t *opt,
    inf_findings_t *f);
static void place_findings(const inf_storage_t *st, const char *file,
    inf_findings_t *f, size_t most);

inf_err_t *
inf_model_config_read(const inf_storage_t *st, const char *model_dir,
    const char *model_name, const inf_config_options_t *opt,
    inf_model_config_t **out)
{
    inf_model_config_t *c;
    inf_findings_t f;

    inf_findings_init(&f);
    inf_model_config_check(st, model_dir, model_name, opt, &f, &c);
    inf_err_t *err = inf_findings_error(&f, c != NULL ? c->origin : NULL);
    inf_findings_fini(&f);

    if (err != NULL) {
        inf_model_config_free(c);
        return err;
    }

    *out = c;
    return NULL;
}

void
inf_model_config_check(const inf_storage_t *st, const char *model_dir,
    const char *model_name, const inf_config_options_t *opt,
    inf_findings_t *f, inf_model_config_t **out)
{
    load_t l = {
        .st = st, .model_dir = model_dir, .model_name = model_name, .opt = opt
    };
    inf_model_config_t *c = NULL;

    inf_err_t *err = load_make(&l, &c);
    if (err != NULL) {
        inf_findings_add(f, inf_err_code(err), "", "%s", inf_err_msg(err));
        inf_err_free(err);
        *out = NULL;
        return;
    }

    load_rules(c->msg, model_name, opt, f);
    place_findings(st, c->file, f, INF_FINDINGS_MAX);
    *out = c;
}

void
inf_model_config_place(const inf_model_config_t *c, const inf_storage_t *st,
    inf_findings_t *f)
{
    place_findings(st, c->file, f, INF_FINDINGS_MAX);
}

inf_err_t *
inf_model_config_explain(const inf_model_config_t *c,
    const inf_storage_t *st, inf_findings_t *f)
{
    if (inf_findings_total(f) == 0) {
        return NULL;
    }

    place_findings(st, c->file, f, 1);      /* the error has the first only  */
    return inf_findings_error(f, c->origin);
}

/* Sets places of findings; file NULL: without a file there are none. */
static void
place_findings(const inf_storage_t *st, const char *file, inf_findings_t *f,
    size_t most)
{
    char *text;
    size_t len;

    if (file == NULL || f->count == 0) {
        return;
    }

    inf_err_t *err = inf_storage_read(st, file, INF_CONFIG_FILE_MAX, &text,
        &len);
    if (err != NULL) {
        inf_err_free(err);              /* the file was there a moment ago   */
        return;
    }

    inf_findings_place(f, inf_slice(text, len), most);
    free(text);
}

inf_err_t *
inf_model_config_parse(const inf_storage_t *st, const char *model_dir,
    const inf_config_options_t *opt, char **file,
    Inference__ModelConfig **out)
{
    load_t l = {
        .st = st, .model_dir = model_dir, .model_name = "", .opt = opt
    };
    inf_err_t *err = NULL;

    *out = NULL;
    if (file != NULL) {
        *file = NULL;
    }
    if (opt->override_json.data != NULL) {
        err = load_override(&l);
    } else {
        err = load_find_file(&l);
        if (err == NULL && l.file != NULL) {
            err = load_file(&l);
        }
    }

    if (err == NULL) {
        *out = l.msg;
        if (file != NULL) {
            *file = l.file;
            return NULL;
        }
    }
    free(l.file);
    return err;
}

/* Parses, completes and normalises the configuration, without checks. */
static inf_err_t *
load_make(load_t *l, inf_model_config_t **out)
{
    inf_err_t *err = load_parse(l);
    if (err != NULL) {
        free(l->file);
        return err;
    }

    if (l->opt->mapped) {
        err = inf_config_put_text(&l->msg->base, "name", l->model_name);
    }
    if (err == NULL) {
        err = inf_config_infer(l->msg, l->st, l->model_dir, l->model_name);
    }
    if (err != NULL) {
        err = load_not_inferred(l, err);

    } else {
        err = inf_config_normalize(l->msg);
        if (err != NULL) {
            err = inf_err_add(err, "%s", load_origin(l));
        }
    }

    if (err == NULL) {
        err = inf_model_config_new(l->msg, l->file, load_origin(l), out);
    }

    if (err != NULL) {
        inf_message_free(&l->msg->base);
    }

    free(l->file);
    return err;
}

/* The error if nothing implies the backend; takes err. */
static inf_err_t *
load_not_inferred(const load_t *l, inf_err_t *err)
{
    inf_findings_t f;

    if (inf_err_code(err) != INF_ERR_INVALID_ARG) {
        return inf_err_add(err, "%s", load_origin(l));
    }

    inf_findings_init(&f);
    inf_findings_add(&f, inf_err_code(err), "backend", "%s",
        inf_err_msg(err));
    inf_err_free(err);
    place_findings(l->st, l->file, &f, 1);
    err = inf_findings_error(&f, load_origin(l));
    inf_findings_fini(&f);
    return err;
}

static inf_err_t *
load_parse(load_t *l)
{
    if (l->opt->override_json.data != NULL) {
        return load_override(l);
    }

    inf_err_t *err = load_find_file(l);
    if (err != NULL) {
        return err;
    }

    return l->file == NULL ? load_no_file(l) : load_file(l);
}

static inf_err_t *
load_override(load_t *l)
{
    inf_err_t *err = inf_model_config_from_json(l->opt->override_json,
        &l->msg);
    if (err != NULL) {
        return inf_err_recode(inf_err_add(err, "Invalid config override"),
            INF_ERR_INVALID_ARG);
    }

    return NULL;
}

/* Sets l->file, or NULL without a file. */
static inf_err_t *
load_find_file(load_t *l)
{
    inf_err_t *err = load_find_in(l, l->st, l->model_dir);

    if (err == NULL && l->file == NULL && l->opt->fallback != NULL) {
        err = load_find_in(l, l->opt->fallback, l->opt->fallback_dir);
    }

    return err;
}

static inf_err_t *
load_find_in(load_t *l, const inf_storage_t *st, const char *dir)
{
    const char *name = l->opt->config_name;

    if (name != NULL && name[0] != '\0') {
        inf_err_t *err = load_find_named(l, st, dir);
        if (err != NULL || l->file != NULL) {
            return err;
        }
    }

    return load_probe(l, st, dir, "config.pbtxt");
}

static inf_err_t *
load_find_named(load_t *l, const inf_storage_t *st, const char *dir)
{
    const char *name = l->opt->config_name;

    const char *problem = inf_config_name_problem(name, strlen(name));

    if (problem != NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "model configuration name "
            "'%s': %s", name, problem);
    }

    size_t len = strlen(name) + sizeof("configs/.pbtxt");
    char *relative = malloc(len);
    if (relative == NULL) {
        return inf_err_nomem();
    }

    memcpy(relative, "configs/", 8);
    memcpy(relative + 8, name, strlen(name));
    memcpy(relative + 8 + strlen(name), ".pbtxt", 7);

    inf_err_t *err = load_probe(l, st, dir, relative);
    free(relative);
    return err;
}

static inf_err_t *
load_probe(load_t *l, const inf_storage_t *st, const char *dir,
    const char *name)
{
    char *path = inf_path_join(dir, name);
    if (path == NULL) {
        return inf_err_nomem();
    }

    inf_entry_t entry;
    inf_err_t *err = inf_storage_stat(st, path, &entry);
    if (err == NULL) {
        l->file = path;
        l->file_st = st;
        return NULL;
    }

    free(path);
    if (inf_err_code(err) == INF_ERR_NOT_FOUND) {
        inf_err_free(err);
        return NULL;
    }

    return err;
}

/* Without a file the backend completes everything, unless the mode is
   strict. */
static inf_err_t *
load_no_file(load_t *l)
{
    if (!l->opt->auto_complete) {
        return inf_err_new(INF_ERR_INTERNAL, "failed to open text file for "
            "read %s/config.pbtxt: No such file or directory",
            l->model_dir);
    }

    ProtobufCMessage *msg;
    inf_err_t *err = inf_message_new(&inference__model_config__descriptor,
        &msg);
    if (err == NULL) {
        l->msg = (Inference__ModelConfig *) msg;
    }

    return err;
}

static inf_err_t *
load_file(load_t *l)
{
    char *text;
    size_t len;

    inf_err_t *err = inf_storage_read(l->file_st, l->file, INF_CONFIG_FILE_MAX,
        &text, &len);
    if (err != NULL) {
        return inf_err_recode(err, INF_ERR_INTERNAL);
    }

    ProtobufCMessage *msg;
    err = inf_text_parse(&inference__model_config__descriptor,
        inf_slice(text, len), l->file, &msg);
    free(text);

    if (err != NULL) {
        return inf_err_recode(inf_err_add(err, "failed to read text proto "
            "from %s", l->file), INF_ERR_INTERNAL);
    }

    l->msg = (Inference__ModelConfig *) msg;
    return NULL;
}

static const char *
load_origin(const load_t *l)
{
    if (l->opt->override_json.data != NULL) {
        return "config override";
    }

    return l->file != NULL ? l->file : l->model_dir;
}

static void
load_rules(const Inference__ModelConfig *msg, const char *model_name,
    const inf_config_options_t *opt, inf_findings_t *f)
{
    inf_config_find(msg, opt->auto_complete ? INF_RULES_MODEL
        : INF_RULES_MODEL | INF_RULES_TENSORS, f);

    if (strcmp(msg->name, model_name) != 0) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, "name", "unexpected "
            "directory name '%s' for model '%s', directory name must equal "
            "model name", model_name, msg->name);
    }
}
