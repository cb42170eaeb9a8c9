#include "core/repository/scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/path.h"
#include "core/model/versions.h"
#include "core/proto/message_utf8.h"

/* A scan: its result and the room in it. */
typedef struct {
    inf_scan_t            *out;
    const inf_scan_root_t *roots;
    size_t                 root_count;
    size_t                 model_room;
    size_t                 problem_room;
} scan_t;

static bool scan_root_is_repeat(const inf_scan_root_t *roots, size_t i);
static const inf_scan_alias_t *find_alias(const inf_scan_root_t *root,
    const char *name);
static inf_err_t *scan_begin(scan_t *s, const inf_scan_root_t *roots,
    size_t count, inf_scan_t *out);
static inf_err_t *scan_root(scan_t *s, uint32_t repository);
static inf_err_t *scan_root_failed(scan_t *s, uint32_t repository,
    inf_err_t *why);
static inf_err_t *scan_entry(scan_t *s, uint32_t repository,
    const inf_entry_t *entry);
static inf_err_t *scan_named(scan_t *s, uint32_t repository,
    const char *name);
static inf_err_t *scan_model(scan_t *s, uint32_t repository,
    const char *name, const char *dir);
static inf_err_t *scan_model_at(scan_t *s, uint32_t repository,
    const char *name, const char *dir);
static inf_err_t *scan_versions(scan_t *s, inf_scan_model_t *model,
    const inf_entries_t *entries);
static inf_err_t *scan_version(scan_t *s, const inf_scan_model_t *model,
    const inf_entry_t *entry, int64_t *versions, size_t *count);
static inf_err_t *scan_end(scan_t *s, inf_err_t *err);
static inf_err_t *scan_mark_duplicates(scan_t *s);
static int scan_model_compare(const void *a, const void *b);
static inf_err_t *scan_add_model(scan_t *s, const inf_scan_model_t *model);
static inf_err_t *scan_problem(scan_t *s, inf_log_level_t level,
    uint32_t repository, const char *model, const char *fmt, ...)
    INF_PRINTF(5, 6);
static size_t name_char_len(const char *p, size_t left);

inf_err_t *
inf_scan(const inf_scan_root_t *roots, size_t count, inf_scan_t *out)
{
    scan_t s;
    inf_err_t *err = scan_begin(&s, roots, count, out);

    for (uint32_t i = 0; err == NULL && i < count; i++) {
        if (!scan_root_is_repeat(roots, i)) {
            err = scan_root(&s, i);
        }
    }

    return scan_end(&s, err);
}

inf_err_t *
inf_scan_one(const inf_scan_root_t *roots, size_t count,
    const char *model_name, inf_scan_t *out)
{
    scan_t s;
    inf_err_t *err = scan_begin(&s, roots, count, out);

    const char *why = inf_model_name_problem(model_name, strlen(model_name));
    if (err == NULL && why != NULL) {
        char text[INF_SCAN_PRINTABLE];
        const char *shown = inf_scan_printable(model_name, text);
        err = scan_problem(&s, INF_LOG_ERROR, 0, shown,
            "invalid model name '%s': %s", shown, why);
        count = 0;
    }

    for (uint32_t i = 0; err == NULL && i < count; i++) {
        if (!scan_root_is_repeat(roots, i)) {
            err = scan_named(&s, i, model_name);
        }
    }

    return scan_end(&s, err);
}

inf_err_t *
inf_scan_model_dir(const inf_scan_root_t *where, const char *model_name,
    inf_scan_t *out)
{
    scan_t s;
    inf_err_t *err = scan_begin(&s, where, 1, out);

    if (err == NULL) {
        err = scan_model_at(&s, 0, model_name, where->root);
    }

    return scan_end(&s, err);
}

const char *
inf_scan_name(const inf_scan_root_t *root, const char *dir, size_t i)
{
    size_t found = 0;

    for (size_t k = 0; k < root->alias_count; k++) {
        if (strcmp(root->aliases[k].dir, dir) == 0 && found++ == i) {
            return root->aliases[k].name;
        }
    }

    return found == 0 && i == 0 && !root->aliases_only
        && find_alias(root, dir) == NULL ? dir : NULL;
}

const char *
inf_scan_dir(const inf_scan_root_t *root, const char *name)
{
    const inf_scan_alias_t *alias = find_alias(root, name);
    if (alias != NULL) {
        return alias->dir;
    }

    return inf_scan_name(root, name, 0) == name ? name : NULL;
}

bool
inf_scan_is_hidden(const inf_scan_root_t *roots, size_t count, size_t i,
    const char *name)
{
    const char *space = roots[i].space != NULL ? roots[i].space : "";

    for (size_t k = 0; k < count; k++) {
        const char *other = roots[k].space != NULL ? roots[k].space : "";
        if (k != i && !roots[k].aliases_only && strcmp(space, other) == 0
            && find_alias(&roots[k], name) != NULL)
        {
            return find_alias(&roots[i], name) == NULL;
        }
    }

    return false;
}

/* The alias of that name; NULL: none. */
static const inf_scan_alias_t *
find_alias(const inf_scan_root_t *root, const char *name)
{
    for (size_t i = 0; i < root->alias_count; i++) {
        if (strcmp(root->aliases[i].name, name) == 0) {
            return &root->aliases[i];
        }
    }

    return NULL;
}

void
inf_scan_fini(inf_scan_t *s)
{
    free(s->models);
    free(s->problems);
    free(s->root_failed);
    s->models = NULL;
    s->problems = NULL;
    s->root_failed = NULL;
    s->model_count = 0;
    s->problem_count = 0;
    inf_arena_fini(&s->arena);
}

const inf_scan_model_t *
inf_scan_find(const inf_scan_t *s, const char *name)
{
    size_t low = 0;
    size_t high = s->model_count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(s->models[mid].name, name) < 0) {
            low = mid + 1;

        } else {
            high = mid;
        }
    }

    if (low < s->model_count && strcmp(s->models[low].name, name) == 0) {
        return &s->models[low];
    }

    return NULL;
}

const char *
inf_model_name_problem(const char *name, size_t len)
{
    if (len == 0) {
        return "it must not be empty";
    }

    if (len > INF_MODEL_NAME_MAX) {
        return "it must not be longer than 255 bytes";
    }

    if (name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.'))) {
        return "it must not be '.' or '..'";
    }

    if (memchr(name, '/', len) != NULL) {
        return "it must not contain a slash";
    }

    for (size_t i = 0; i < len; i++) {
        uint8_t c = (uint8_t) name[i];
        if (c < 0x20 || c == 0x7f) {
            return "it must not contain control characters";
        }
    }

    if (!inf_utf8_valid(inf_slice(name, len))) {
        return "it must be valid UTF-8";
    }

    return NULL;
}

const char *
inf_model_name_odd(const char *name)
{
    const char *odd = name + strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        "abcdefghijklmnopqrstuvwxyz0123456789_.-");
    return *odd != '\0' ? odd : NULL;
}

inf_err_t *
inf_scan_entry_problem(const char *root, const inf_entry_t *entry,
    char **problem)
{
    char text[INF_SCAN_PRINTABLE];
    const char *shown = inf_scan_printable(entry->name, text);
    const char *why = inf_model_name_problem(entry->name,
        strlen(entry->name));
    int len = 0;

    *problem = NULL;
    if (entry->kind == INF_ENTRY_BROKEN) {
        len = asprintf(problem, "'%s/%s' can't be followed: %s", root, shown,
            strerror(entry->errnum));
    } else if (why != NULL) {
        len = asprintf(problem, "directory '%s/%s' can't be a model, its name"
            " is invalid: %s", root, shown, why);
    }
    return len < 0 ? inf_err_nomem() : NULL;
}

const char *
inf_scan_printable(const char *name, char out[INF_SCAN_PRINTABLE])
{
    size_t len = strlen(name);
    size_t used = 0;
    size_t i = 0;

    while (i < len && i < INF_SCAN_NAME_SHOWN) {
        uint8_t c = (uint8_t) name[i];
        size_t n = name_char_len(name + i, len - i);

        if (n == 0 || c < 0x20 || c == 0x7f) {
            used += (size_t) snprintf(out + used, 5, "\\x%02x", c);
            i++;
            continue;
        }

        memcpy(out + used, name + i, n);
        used += n;
        i += n;
    }

    if (i < len) {
        memcpy(out + used, "...", 3);
        used += 3;
    }

    out[used] = '\0';
    return out;
}

static bool
scan_root_is_repeat(const inf_scan_root_t *roots, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (strcmp(roots[k].root, roots[i].root) == 0) {
            return true;
        }
    }

    return false;
}

static inf_err_t *
scan_begin(scan_t *s, const inf_scan_root_t *roots, size_t count,
    inf_scan_t *out)
{
    *s = (scan_t) { .out = out, .roots = roots, .root_count = count };
    memset(out, 0, sizeof(*out));
    inf_arena_init(&out->arena);

    out->root_failed = calloc(count + 1, sizeof(bool));
    return out->root_failed == NULL ? inf_err_nomem() : NULL;
}

static inf_err_t *
scan_root(scan_t *s, uint32_t repository)
{
    const inf_scan_root_t *root = &s->roots[repository];
    inf_entries_t entries;

    inf_err_t *err = inf_storage_list(root->storage, root->root, &entries);
    if (err != NULL) {
        return scan_root_failed(s, repository, err);
    }

    for (size_t i = 0; err == NULL && i < entries.count; i++) {
        err = scan_entry(s, repository, &entries.items[i]);
    }

    inf_entries_fini(&entries);
    return err;
}

static inf_err_t *
scan_root_failed(scan_t *s, uint32_t repository, inf_err_t *why)
{
    s->out->root_failed[repository] = true;
    inf_err_t *err = scan_problem(s, INF_LOG_ERROR, repository, NULL,
        "model repository '%s' can't be listed: %s",
        s->roots[repository].root, inf_err_msg(why));
    inf_err_free(why);
    return err;
}

static inf_err_t *
scan_entry(scan_t *s, uint32_t repository, const inf_entry_t *entry)
{
    const inf_scan_root_t *at = &s->roots[repository];
    char text[INF_SCAN_PRINTABLE];
    char *problem;

    if (entry->kind == INF_ENTRY_FILE || entry->kind == INF_ENTRY_OTHER) {
        return NULL;
    }

    inf_err_t *err = inf_scan_entry_problem(at->root, entry, &problem);
    if (err != NULL) {
        return err;
    }
    if (problem != NULL) {
        err = scan_problem(s, INF_LOG_ERROR, repository,
            inf_scan_printable(entry->name, text), "%s", problem);
        free(problem);
        return err;
    }

    const char *name = inf_scan_name(at, entry->name, 0);
    for (size_t i = 1; err == NULL && name != NULL; i++) {
        err = scan_model(s, repository, name, entry->name);
        name = inf_scan_name(at, entry->name, i);
    }
    return err;
}

static inf_err_t *
scan_named(scan_t *s, uint32_t repository, const char *name)
{
    const inf_scan_root_t *root = &s->roots[repository];
    const char *dir = inf_scan_dir(root, name);
    if (dir == NULL) {
        return NULL;
    }

    char *path = inf_path_join(root->root, dir);
    if (path == NULL) {
        return inf_err_nomem();
    }

    inf_entry_t entry;
    inf_err_t *why = inf_storage_stat(root->storage, path, &entry);
    free(path);

    if (why != NULL) {
        inf_err_t *err = NULL;
        if (inf_err_code(why) != INF_ERR_NOT_FOUND) {
            err = scan_problem(s, INF_LOG_ERROR, repository, name, "%s",
                inf_err_msg(why));
        }

        inf_err_free(why);
        return err;
    }

    return entry.kind == INF_ENTRY_DIR
        ? scan_model(s, repository, name, dir) : NULL;
}

static inf_err_t *
scan_model(scan_t *s, uint32_t repository, const char *name, const char *dir)
{
    char *path = inf_path_join(s->roots[repository].root, dir);
    if (path == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = scan_model_at(s, repository, name, path);
    free(path);
    return err;
}

static inf_err_t *
scan_model_at(scan_t *s, uint32_t repository, const char *name,
    const char *dir)
{
    const inf_scan_root_t *root = &s->roots[repository];
    inf_arena_t *arena = &s->out->arena;
    inf_scan_model_t model = {
        .repository = repository,
        .mapped = find_alias(root, name) != NULL,
        .space = root->space != NULL ? root->space : ""
    };

    model.dir = inf_arena_strdup(arena, dir, strlen(dir));
    model.name = inf_arena_strdup(arena, name, strlen(name));
    if (model.dir == NULL || model.name == NULL) {
        return inf_err_nomem();
    }

    inf_entries_t entries;
    inf_err_t *why = inf_storage_list(root->storage, model.dir, &entries);
    inf_err_t *err;
    if (why != NULL) {
        model.unreadable = inf_arena_strdup(arena, inf_err_msg(why),
            strlen(inf_err_msg(why)));
        err = model.unreadable == NULL ? inf_err_nomem()
            : scan_problem(s, INF_LOG_ERROR, repository, model.name, "%s",
            model.unreadable);
        inf_err_free(why);

    } else {
        err = scan_versions(s, &model, &entries);
        inf_entries_fini(&entries);
    }

    return err != NULL ? err : scan_add_model(s, &model);
}

static inf_err_t *
scan_versions(scan_t *s, inf_scan_model_t *model,
    const inf_entries_t *entries)
{
    int64_t *versions = inf_arena_calloc(&s->out->arena, entries->count + 1,
        sizeof(*versions));
    if (versions == NULL) {
        return inf_err_nomem();
    }

    size_t count = 0;
    for (size_t i = 0; i < entries->count; i++) {
        inf_err_t *err = scan_version(s, model, &entries->items[i], versions,
            &count);
        if (err != NULL) {
            return err;
        }
    }

    model->versions = versions;
    model->version_count = inf_versions_sort(versions, count);
    return NULL;
}

static inf_err_t *
scan_version(scan_t *s, const inf_scan_model_t *model,
    const inf_entry_t *entry, int64_t *versions, size_t *count)
{
    if (entry->kind == INF_ENTRY_FILE || entry->kind == INF_ENTRY_OTHER) {
        return NULL;
    }

    int64_t version;
    inf_version_verdict_t verdict = inf_version_parse(
        inf_slice_str(entry->name), &version);
    const char *why = inf_version_verdict_text(verdict);

    if (entry->kind == INF_ENTRY_BROKEN) {
        if (verdict != INF_VERSION_OK) {
            return NULL;        /* a load that needs it reports the fault */
        }

        return scan_problem(s, INF_LOG_WARN, model->repository, model->name,
            "model '%s': ignore version directory '%s' which can't be "
            "followed: %s", model->name, entry->name,
            strerror(entry->errnum));
    }

    if (verdict == INF_VERSION_OK) {
        versions[(*count)++] = version;
        return NULL;
    }

    if (why == NULL) {
        return NULL;
    }

    char text[INF_SCAN_PRINTABLE];
    return scan_problem(s, INF_LOG_WARN, model->repository, model->name,
        "model '%s': ignore version directory '%s' %s", model->name,
        inf_scan_printable(entry->name, text), why);
}

/* Ends the scan; takes err and returns it, or another error. */
static inf_err_t *
scan_end(scan_t *s, inf_err_t *err)
{
    inf_scan_t *out = s->out;

    if (err == NULL && out->model_count > 1) {
        qsort(out->models, out->model_count, sizeof(*out->models),
            scan_model_compare);
    }
    if (err == NULL) {
        err = scan_mark_duplicates(s);
    }
    if (err != NULL) {
        inf_scan_fini(out);
    }
    return err;
}

static inf_err_t *
scan_mark_duplicates(scan_t *s)
{
    inf_scan_model_t *models = s->out->models;

    for (size_t i = 1; i < s->out->model_count; i++) {
        if (strcmp(models[i - 1].name, models[i].name) != 0
            || strcmp(models[i - 1].space, models[i].space) != 0)
        {
            continue;
        }

        models[i - 1].duplicate = true;
        models[i].duplicate = true;

        inf_err_t *err = scan_problem(s, INF_LOG_ERROR, models[i].repository,
            models[i].name, "failed to poll model '%s': not unique across all "
            "model repositories: '%s' and '%s'", models[i].name,
            models[i - 1].dir,
            models[i].dir);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static int
scan_model_compare(const void *a, const void *b)
{
    const inf_scan_model_t *x = a;
    const inf_scan_model_t *y = b;

    int order = strcmp(x->name, y->name);
    if (order != 0) {
        return order;
    }

    return (x->repository > y->repository) - (x->repository < y->repository);
}

static inf_err_t *
scan_add_model(scan_t *s, const inf_scan_model_t *model)
{
    inf_scan_t *out = s->out;

    if (out->model_count == s->model_room) {
        size_t room = s->model_room == 0 ? 16 : s->model_room * 2;
        inf_scan_model_t *grown = realloc(out->models, room * sizeof(*grown));
        if (grown == NULL) {
            return inf_err_nomem();
        }

        out->models = grown;
        s->model_room = room;
    }

    out->models[out->model_count++] = *model;
    return NULL;
}

/* Adds a problem; copies model and text. */
static inf_err_t *
scan_problem(scan_t *s, inf_log_level_t level, uint32_t repository,
    const char *model, const char *fmt, ...)
{
    inf_scan_t *out = s->out;
    inf_scan_problem_t problem = { level, repository, NULL, NULL };

    if (out->problem_count == s->problem_room) {
        size_t room = s->problem_room == 0 ? 8 : s->problem_room * 2;
        inf_scan_problem_t *grown = realloc(out->problems,
            room * sizeof(*grown));
        if (grown == NULL) {
            return inf_err_nomem();
        }

        out->problems = grown;
        s->problem_room = room;
    }

    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    int len = vasprintf(&text, fmt, args);
    va_end(args);
    if (len < 0) {
        return inf_err_nomem();
    }

    problem.text = inf_arena_strdup(&out->arena, text, (size_t) len);
    free(text);
    if (model != NULL) {
        problem.model = inf_arena_strdup(&out->arena, model, strlen(model));
    }

    if (problem.text == NULL || (model != NULL && problem.model == NULL)) {
        return inf_err_nomem();
    }

    out->problems[out->problem_count++] = problem;
    return NULL;
}

/* Length of the character at p, 0 if it is not complete and valid. */
static size_t
name_char_len(const char *p, size_t left)
{
    for (size_t n = 1; n <= 4 && n <= left; n++) {
        if (inf_utf8_valid(inf_slice(p, n))) {
            return n;
        }
    }

    return 0;
}
