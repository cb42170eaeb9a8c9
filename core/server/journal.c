#include "core/server/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/points.h"
#include "core/include/channel.h"
#include "core/proto/message.h"
#include "core/server/journal_index.h"
#include "core/server/model_control.h"
#include "core/server/rest_request.h"
#include "grpc_service.pb-c.h"

#define JOURNAL_MAGIC UINT64_C(0x314c4e524a464e49)      /* "INFJRNL1" */
#define JOURNAL_RANK  3
#define JOURNAL_DATA  4096u     /* after two headers                         */
#define JOURNAL_KEY   8192u     /* limit of a key in bytes                   */
#define JOURNAL_COPY  (1u << 20)    /* bytes of records before obsolete ones are
                                       dropped                               */
#define JOURNAL_UNLOADS (4u << 20)  /* limit of bytes of unloads, of which
                                       there may be ever new names; also a
                                       quarter of the half is one            */

/* A record that cancels the earlier ones of the key, or of the method if the
   key is a method alone. */
#define METHOD_FORGET 0u

/* One of two headers; the newer valid one counts. */
typedef struct {
    uint64_t magic;
    uint64_t sequence;
    uint64_t start;             /* of the records                            */
    uint64_t used;
    uint64_t check;             /* of the fields above                       */
} journal_header_t;

typedef struct {
    uint16_t method;            /* LOAD, UNLOAD, FORGET; else the method of the
                                   kept message                              */
    uint16_t implicit;          /* LOAD: for an ensemble; UNLOAD: an ensemble
                                   would load it again                       */
    uint32_t key_len;
    uint64_t len;               /* of the message                            */
    uint64_t check;             /* of the message                            */
} journal_record_t;

struct inf_journal_s {
    int               fd;       /* set in new()                              */

    inf_lock_t        lock;     /* rank 3; guards the rest                   */
    bool              start_all;
    char            **start_names;
    size_t            start_count;
    uint64_t          half;     /* bytes of half the data                    */
    uint64_t          copy_at;  /* value of used from which on, or once the half
                                   is full, records are copied               */
    journal_header_t  header;
    inf_journal_index_t index;  /* of the records in force                   */
};

static bool is_model(const inf_journal_entry_t *e);
static inf_err_t *forget(inf_journal_t *j, char *key);
static inf_err_t *kept_keys(inf_journal_t *j, uint16_t method, char ***out,
    size_t *count);
static inf_err_t *replay_one(inf_journal_t *j, const char *key,
    inf_journal_replay_fn fn, void *userp);
static void read_header(inf_journal_t *j);
static void read_entries(inf_journal_t *j);
static bool read_record(const inf_journal_t *j, uint64_t at, uint64_t end,
    journal_record_t *r, char **key);
static inf_err_t *put_entry(inf_journal_t *j, char *key,
    const journal_record_t *r, uint64_t offset);
static void free_names(char **names, size_t count);
static bool starts_by_itself(const inf_journal_t *j, const char *key);
static inf_model_id_t split_key(char *key);
static void note_loaded(void *userp, const inf_model_id_t *id,
    const inf_override_t *override, bool implicit);
static void note_unloaded(void *userp, const inf_model_id_t *id,
    bool implicit);
static bool is_kept_away(const inf_journal_t *j, const char *key)
    INF_NEEDS(j->lock);
static void note_forgotten(void *userp, const inf_model_id_t *id);
static char *make_key(const inf_model_id_t *id);
static inf_err_t *pack_load(const char *name, const inf_override_t *override,
    inf_buf_t *out);
static inf_err_t *append(inf_journal_t *j, uint16_t method, bool implicit,
    char *key, inf_slice_t message) INF_NEEDS(j->lock);
static inf_err_t *copy_entries(inf_journal_t *j, uint64_t *start,
    uint64_t *used) INF_NEEDS(j->lock);
static inf_err_t *drop_unloads(inf_journal_t *j) INF_NEEDS(j->lock);
static inf_err_t *copy_entry(const inf_journal_t *j,
    const inf_journal_entry_t *e);
static inf_err_t *move_header(inf_journal_t *j, uint64_t start,
    uint64_t used) INF_NEEDS(j->lock);
static inf_err_t *write_header(inf_journal_t *j, uint64_t start,
    uint64_t used);
static inf_err_t *write_at(int fd, const void *data, size_t len,
    uint64_t offset);
static bool read_at(int fd, void *data, size_t len, uint64_t offset);
static bool record_fits(const journal_record_t *r, uint64_t size);
static inf_err_t *restore_load(inf_journal_t *j, const inf_journal_entry_t *e,
    const inf_model_id_t *id, inf_lifecycle_t *lc);
static inf_err_t *read_message(const inf_journal_t *j,
    const inf_journal_entry_t *e, char **bytes, inf_slice_t *message);

const inf_load_note_ops_t inf_journal_notes = {
    .loaded = note_loaded,
    .unloaded = note_unloaded,
    .forgotten = note_forgotten
};

inf_err_t *
inf_journal_open(int fd, bool start_all, char *const *start_names,
    size_t start_count, inf_journal_t **out)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return inf_err_os(errno, "journal");
    }
    if (st.st_size < (off_t) (4 * JOURNAL_DATA)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "journal: %lld bytes are too"
            " few", (long long) st.st_size);
    }

    inf_journal_t *j = calloc(1, sizeof(*j));
    if (j == NULL) {
        return inf_err_nomem();
    }

    j->fd = fd;
    j->half = ((uint64_t) st.st_size - JOURNAL_DATA) / 2;
    j->copy_at = JOURNAL_COPY;
    inf_lock_init(&j->lock, JOURNAL_RANK);
    inf_err_t *err = inf_journal_start(j, start_all, start_names,
        start_count);
    if (err != NULL) {
        inf_journal_close(j);
        return err;
    }
    read_header(j);
    read_entries(j);
    *out = j;
    return NULL;
}

inf_err_t *
inf_journal_start(inf_journal_t *j, bool all, char *const *names,
    size_t count)
{
    if (j == NULL) {
        return NULL;
    }

    char **copy = calloc(count + 1, sizeof(*copy));
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = strdup(names[i]);
        if (copy[i] == NULL) {
            free_names(copy, i);
            copy = NULL;
        }
    }
    if (copy == NULL) {
        return inf_err_nomem();
    }

    inf_lock(&j->lock);
    char **old = j->start_names;
    size_t old_count = j->start_count;
    j->start_all = all || (count == 1 && strcmp(names[0], "*") == 0);
    j->start_names = copy;
    j->start_count = count;
    inf_unlock(&j->lock);
    free_names(old, old_count);
    return NULL;
}

static void
free_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
}

void
inf_journal_close(inf_journal_t *j)
{
    if (j == NULL) {
        return;
    }

    inf_journal_index_fini(&j->index);
    free_names(j->start_names, j->start_count);
    inf_lock_fini(&j->lock);
    free(j);
}

inf_err_t *
inf_journal_restore(inf_journal_t *j, inf_lifecycle_t *lc, bool all)
{
    const size_t entries = j->index.count;
    inf_model_id_t *ids = calloc(entries + 1, sizeof(*ids));
    inf_model_id_t *known = calloc(entries + 1, sizeof(*known));
    char **keys = calloc(entries + 1, sizeof(*keys));
    inf_journal_entry_t **list = NULL;
    inf_err_t *err = ids == NULL || known == NULL || keys == NULL
        ? inf_err_nomem() : inf_journal_index_in_order(&j->index, &list);
    size_t count = 0;

    for (size_t i = 0; err == NULL && i < entries; i++) {
        keys[i] = strdup(list[i]->key);
        if (keys[i] == NULL) {
            err = inf_err_nomem();
        } else {
            ids[i] = split_key(keys[i]);
        }
        if (is_model(list[i]) && (!all || list[i]->method
                == INF_METHOD_REPOSITORY_MODEL_LOAD))
        {
            known[count++] = ids[i];
        }
    }
    inf_lifecycle_hold(lc);
    if (err == NULL) {
        err = inf_lifecycle_start(lc, all, j->start_names,
            j->start_count, known, count);
    }
    for (size_t i = 0; err == NULL && i < entries; i++) {
        if (list[i]->method == INF_METHOD_REPOSITORY_MODEL_LOAD) {
            inf_err_t *lost = restore_load(j, list[i], &ids[i], lc);
            inf_err_log(inf_err_add(lost, "model \"%s\" can't be loaded as it"
                " was before", ids[i].name));
        }
    }
    inf_lifecycle_release(lc);

    for (size_t i = 0; keys != NULL && i < entries; i++) {
        free(keys[i]);
    }
    free(list);
    free(keys);
    free(known);
    free(ids);
    return err;
}

static bool
is_model(const inf_journal_entry_t *e)
{
    return e->method == INF_METHOD_REPOSITORY_MODEL_LOAD
        || e->method == INF_METHOD_REPOSITORY_MODEL_UNLOAD;
}

void
inf_journal_keep(inf_journal_t *j, uint16_t method, const char *name,
    inf_slice_t message)
{
    if (j == NULL) {
        return;
    }

    char *key = inf_journal_kept_key(method, name);
    inf_err_t *err = key == NULL ? inf_err_nomem() : NULL;
    if (err == NULL) {
        inf_lock(&j->lock);
        err = append(j, method, false, key, message);
        inf_unlock(&j->lock);
    }
    inf_err_log(inf_err_add(err, "what a request has set is lost should the"
        " core die"));
    free(key);
}

void
inf_journal_keep_message(inf_journal_t *j, uint16_t method, const char *name,
    const ProtobufCMessage *message)
{
    inf_buf_t bytes;

    inf_buf_init(&bytes);
    inf_err_t *err = inf_message_pack(message, &bytes);
    if (err == NULL) {
        err = inf_buf_status(&bytes);
    }
    if (err == NULL) {
        inf_journal_keep(j, method, name, inf_buf_slice(&bytes));
    }
    inf_err_log(err);
    inf_buf_fini(&bytes);
}

void
inf_journal_forget(inf_journal_t *j, uint16_t method, const char *name)
{
    if (j == NULL) {
        return;
    }

    char *key = inf_journal_kept_key(method, name);
    inf_err_t *err = key == NULL ? inf_err_nomem() : forget(j, key);
    inf_err_log(inf_err_add(err, "what a request has taken back may return"
        " should the core die"));
    free(key);
}

void
inf_journal_forget_unload(inf_journal_t *j, const inf_model_id_t *id)
{
    if (j == NULL) {
        return;
    }

    char *key = make_key(id);
    inf_err_t *err = key == NULL ? inf_err_nomem() : NULL;
    if (err == NULL) {
        inf_lock(&j->lock);
        const inf_journal_entry_t *e = inf_journal_index_find(&j->index, key);
        if (e != NULL && e->method == INF_METHOD_REPOSITORY_MODEL_UNLOAD) {
            err = append(j, METHOD_FORGET, false, key, inf_slice("", 0));
        }
        inf_unlock(&j->lock);
    }
    inf_err_log(inf_err_add(err, "model \"%s\" may not be loaded should the"
        " core die", id->name));
    free(key);
}

/* Removes a key and adds a record of it, if the key has an entry. */
static inf_err_t *
forget(inf_journal_t *j, char *key)
{
    inf_err_t *err = NULL;

    inf_lock(&j->lock);
    if (inf_journal_index_has(&j->index, key)) {
        err = append(j, METHOD_FORGET, false, key, inf_slice("", 0));
    }
    inf_unlock(&j->lock);
    return err;
}

void
inf_journal_replay(inf_journal_t *j, uint16_t method,
    inf_journal_replay_fn fn, void *userp)
{
    char **keys;
    size_t count;

    if (j == NULL) {
        return;
    }

    inf_err_t *err = kept_keys(j, method, &keys, &count);
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "what requests had set is lost"));
        return;
    }

    for (size_t i = 0; i < count; i++) {
        const char *name = inf_journal_kept_name(keys[i]);
        err = replay_one(j, keys[i], fn, userp);
        if (err != NULL) {
            inf_err_log(inf_err_add(err, "what a request had set of \"%s\" is"
                " lost with the last core", name));
            inf_journal_forget(j, method, name);
        }
    }
    free_names(keys, count);
}

/* Copies the keys of a method, oldest record first. */
static inf_err_t *
kept_keys(inf_journal_t *j, uint16_t method, char ***out, size_t *count)
{
    inf_journal_entry_t **list = NULL;
    char **keys = NULL;
    size_t n = 0;

    inf_lock(&j->lock);
    inf_err_t *err = inf_journal_index_in_order(&j->index, &list);
    if (err == NULL) {
        keys = calloc(j->index.count + 1, sizeof(*keys));
        err = keys == NULL ? inf_err_nomem() : NULL;
    }
    for (size_t i = 0; err == NULL && i < j->index.count; i++) {
        if (list[i]->method != method) {
            continue;
        }
        keys[n] = strdup(list[i]->key);
        if (keys[n] == NULL) {
            err = inf_err_nomem();
        } else {
            n++;
        }
    }
    inf_unlock(&j->lock);

    free(list);
    if (err != NULL) {
        free_names(keys, n);
        return err;
    }
    *out = keys;
    *count = n;
    return NULL;
}

static inf_err_t *
replay_one(inf_journal_t *j, const char *key, inf_journal_replay_fn fn,
    void *userp)
{
    inf_slice_t message;
    uint16_t method = 0;
    char *bytes = NULL;
    inf_err_t *err = NULL;

    inf_lock(&j->lock);
    const inf_journal_entry_t *e = inf_journal_index_find(&j->index, key);
    if (e != NULL) {
        method = e->method;
        err = read_message(j, e, &bytes, &message);
    }
    inf_unlock(&j->lock);

    if (e != NULL && err == NULL) {
        err = fn(userp, method, message);
    }
    free(bytes);
    return err;
}

/* Reads the newer valid header; without one the journal is new, or was written
   by another version. */
static void
read_header(inf_journal_t *j)
{
    bool strange = false;

    j->header = (journal_header_t) { JOURNAL_MAGIC, 0, JOURNAL_DATA, 0, 0 };
    for (uint64_t i = 0; i < 2; i++) {
        journal_header_t h = { 0 };
        strange |= read_at(j->fd, &h, sizeof(h), i * sizeof(h))
            && h.magic != 0 && h.magic != JOURNAL_MAGIC;
        if (h.magic == JOURNAL_MAGIC
            && h.check == inf_hash(&h, offsetof(journal_header_t, check))
            && (h.start == JOURNAL_DATA || h.start == JOURNAL_DATA + j->half)
            && h.used <= j->half && h.sequence > j->header.sequence)
        {
            j->header = h;
        }
    }

    if (strange && j->header.sequence == 0) {
        inf_log(INF_LOG_WARN, "the journal is of another version: models that"
            " requests have loaded and what they have set do not come back");
    }
}

/* Reads the records into the index.  A broken record and all after it are lost;
   the half then counts as full, since a record added behind them would be lost
   too. */
static void
read_entries(inf_journal_t *j)
{
    uint64_t at = j->header.start;
    uint64_t end = at + j->header.used;
    journal_record_t r;
    char *key;

    while (at < end && read_record(j, at, end, &r, &key)) {
        uint64_t size = sizeof(r) + r.key_len + r.len;
        inf_err_t *err = NULL;
        if (r.method == METHOD_FORGET) {
            inf_journal_index_drop(&j->index, key);
        } else {
            err = put_entry(j, key, &r, at);
        }
        free(key);
        if (err != NULL) {
            inf_err_log(inf_err_add(err, "journal"));
            return;
        }
        at += size;
    }

    if (at < end) {
        inf_log(INF_LOG_ERROR, "journal: %llu bytes are damaged and dropped",
            (unsigned long long) (end - at));
        j->header.used = j->half;
    }
}

static bool
read_record(const inf_journal_t *j, uint64_t at, uint64_t end,
    journal_record_t *r, char **key)
{
    if (end - at < sizeof(*r) || !read_at(j->fd, r, sizeof(*r), at)
        || r->key_len > JOURNAL_KEY
        || r->len > end - at - sizeof(*r)
        || r->key_len > end - at - sizeof(*r) - r->len)
    {
        return false;
    }

    *key = calloc(1, (size_t) r->key_len + 1);
    if (*key == NULL) {
        return false;
    }
    if (!read_at(j->fd, *key, r->key_len, at + sizeof(*r))) {
        free(*key);
        return false;
    }

    return true;
}

static inf_err_t *
put_entry(inf_journal_t *j, char *key, const journal_record_t *r,
    uint64_t offset)
{
    return inf_journal_index_put(&j->index, &(inf_journal_entry_t) {
        .key = key,
        .method = r->method,
        .implicit = r->implicit != 0,
        .offset = offset,
        .size = sizeof(*r) + r->key_len + r->len
    });
}

static bool
starts_by_itself(const inf_journal_t *j, const char *key)
{
    size_t len = strcspn(key, "\n");

    for (size_t i = 0; i < j->start_count; i++) {
        if (strlen(j->start_names[i]) == len
            && memcmp(j->start_names[i], key, len) == 0)
        {
            return true;
        }
    }

    return j->start_all;
}

/* Splits key, in place. */
static inf_model_id_t
split_key(char *key)
{
    char *end = strchr(key, '\n');
    inf_model_id_t id = inf_model_id(key);

    if (end != NULL) {
        *end = '\0';
        id.space = end + 1;
    }
    return id;
}

static void
note_loaded(void *userp, const inf_model_id_t *id,
    const inf_override_t *override, bool implicit)
{
    inf_journal_t *j = userp;
    char *key = make_key(id);
    inf_buf_t message;

    inf_buf_init(&message);
    inf_err_t *err = key != NULL ? pack_load(id->name, override, &message)
        : inf_err_nomem();
    if (err == NULL) {
        inf_lock(&j->lock);
        err = append(j, INF_METHOD_REPOSITORY_MODEL_LOAD, implicit, key,
            inf_buf_slice(&message));
        inf_unlock(&j->lock);
    }
    inf_err_log(inf_err_add(err, "model \"%s\" will not come back as it is"
        " should the core die", id->name));
    inf_buf_fini(&message);
    free(key);
    INF_POINT(LOAD_NOTED);
}

static void
note_unloaded(void *userp, const inf_model_id_t *id, bool implicit)
{
    inf_journal_t *j = userp;
    char *key = make_key(id);
    inf_err_t *err = key != NULL ? NULL : inf_err_nomem();

    if (err == NULL && id->space[0] == '\0' && strchr(key, '\n') != NULL) {
        free(key);                      /* no model has this name            */
        return;
    }
    if (err == NULL) {
        inf_lock(&j->lock);
        err = append(j, INF_METHOD_REPOSITORY_MODEL_UNLOAD,
            implicit || is_kept_away(j, key), key, inf_slice("", 0));
        inf_unlock(&j->lock);
    }
    inf_err_log(inf_err_add(err, "model \"%s\" will come back should the core"
        " die", id->name));
    free(key);
}

/* Whether the model was unloaded although an ensemble would load it again. */
static bool
is_kept_away(const inf_journal_t *j, const char *key)
{
    const inf_journal_entry_t *e = inf_journal_index_find(&j->index, key);

    return e != NULL && e->method == INF_METHOD_REPOSITORY_MODEL_UNLOAD
        && e->implicit;
}

/* The malloc'ed key of a model; NULL: out of memory. */
static char *
make_key(const inf_model_id_t *id)
{
    inf_buf_t key;

    inf_buf_init(&key);
    inf_buf_puts(&key, id->name);
    if (id->space[0] != '\0') {
        inf_buf_putc(&key, '\n');
        inf_buf_puts(&key, id->space);
    }

    char *text = key.failed ? NULL : inf_buf_give(&key, NULL);
    inf_buf_fini(&key);
    return text;
}

static void
note_forgotten(void *userp, const inf_model_id_t *id)
{
    inf_journal_t *j = userp;
    char *key = make_key(id);
    inf_err_t *err = key == NULL ? inf_err_nomem() : forget(j, key);

    inf_err_log(inf_err_add(err, "model \"%s\" may not be as it is should the"
        " core die", id->name));
    free(key);
}

/* Packs a load as the request that it came with. */
static inf_err_t *
pack_load(const char *name, const inf_override_t *override, inf_buf_t *out)
{
    Inference__RepositoryModelLoadRequest q =
        INFERENCE__REPOSITORY_MODEL_LOAD_REQUEST__INIT;
    size_t most = override != NULL ? override->file_count + 1 : 0;
    inf_load_entry_t *entries = calloc(most + 1, sizeof(*entries));
    inf_repository_parameter_t *values = calloc(most + 1, sizeof(*values));
    inf_load_entry_t **list = calloc(most + 1, sizeof(inf_load_entry_t *));
    char **keys = calloc(most + 1, sizeof(*keys));
    inf_err_t *err = NULL;

    if (entries == NULL || values == NULL || list == NULL || keys == NULL) {
        err = inf_err_nomem();
    }
    for (size_t i = 0; err == NULL && i < most; i++) {
        inference__repository_model_load_request__parameters_entry__init(
            &entries[i]);
        inference__model_repository_parameter__init(&values[i]);
        bool config = i == override->file_count;
        if (config && override->config == NULL) {
            break;
        }
        if (!inf_model_control_parameter(override, i, &values[i], &keys[i])) {
            err = inf_err_nomem();
        }
        entries[i].key = keys[i];
        entries[i].value = &values[i];
        list[i] = &entries[i];
        q.n_parameters = i + 1;
    }

    q.model_name = (char *) (uintptr_t) name;
    q.parameters = list;
    if (err == NULL) {
        err = inf_message_pack(&q.base, out);
    }
    for (size_t i = 0; keys != NULL && i < most; i++) {
        free(keys[i]);
    }
    free(keys);
    free(list);
    free(values);
    free(entries);
    return err;
}

static inf_err_t *
append(inf_journal_t *j, uint16_t method, bool implicit, char *key,
    inf_slice_t message)
{
    const journal_record_t r = {
        .method = method,
        .implicit = implicit,
        .key_len = (uint32_t) strlen(key),
        .len = message.len,
        .check = inf_hash(message.data, message.len)
    };
    uint64_t size = sizeof(r) + r.key_len + r.len;

    if (r.key_len > JOURNAL_KEY) {
        return inf_err_new(INF_ERR_INVALID_ARG, "journal: the names of the"
            " model and its repository are too long");
    }
    if (size > j->half) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "journal: %llu bytes are more"
            " than it holds", (unsigned long long) size);
    }

    uint64_t start = j->header.start;
    uint64_t used = j->header.used;
    if (size > j->half - used || used > j->copy_at) {
        /* the record to be replaced is not copied */
        inf_journal_index_drop(&j->index, key);
        inf_err_t *err = copy_entries(j, &start, &used);
        if (err != NULL) {
            return err;
        }
        j->copy_at = used > JOURNAL_COPY / 2 ? 2 * used : JOURNAL_COPY;
        if (size > j->half - used) {
            err = move_header(j, start, used);
            return err != NULL ? err : inf_err_new(INF_ERR_UNAVAILABLE,
                "journal: it is full");
        }
    }

    uint64_t at = start + used;
    inf_err_t *err = write_at(j->fd, &r, sizeof(r), at);
    if (err == NULL) {
        err = write_at(j->fd, key, r.key_len, at + sizeof(r));
    }
    if (err == NULL) {
        err = write_at(j->fd, message.data, message.len,
            at + sizeof(r) + r.key_len);
    }
    if (err == NULL) {
        err = move_header(j, start, used + size);
    }
    if (err == NULL && method == METHOD_FORGET) {
        inf_journal_index_drop(&j->index, key);
        return NULL;
    }
    return err != NULL ? err : put_entry(j, key, &r, at);
}

/* Copies the valid records to the other half; the header still names the old
   half. */
static inf_err_t *
copy_entries(inf_journal_t *j, uint64_t *start, uint64_t *used)
{
    inf_journal_entry_t **list;

    *start = j->header.start == JOURNAL_DATA ? JOURNAL_DATA + j->half
        : JOURNAL_DATA;
    *used = 0;

    inf_err_t *err = drop_unloads(j);
    if (err == NULL) {
        err = inf_journal_index_in_order(&j->index, &list);
    }
    if (err != NULL) {
        return err;
    }
    for (size_t i = 0; i < j->index.count && err == NULL; i++) {
        list[i]->copy = *start + *used;
        err = copy_entry(j, list[i]);
        *used += list[i]->size;
    }
    free(list);
    return err;
}

/* Drops unloads of models that nothing loads by itself, and the oldest. */
static inf_err_t *
drop_unloads(inf_journal_t *j)
{
    inf_journal_entry_t **list;
    const uint64_t most = j->half / 4 < JOURNAL_UNLOADS ? j->half / 4
        : JOURNAL_UNLOADS;
    uint64_t from = 0;          /* offset of the oldest that may stay        */
    uint64_t unloads = 0;

    inf_err_t *err = inf_journal_index_in_order(&j->index, &list);
    if (err != NULL) {
        return err;
    }
    for (size_t i = j->index.count; i-- > 0 && unloads < most; ) {
        unloads += list[i]->method == INF_METHOD_REPOSITORY_MODEL_UNLOAD
            ? list[i]->size : 0;
        from = list[i]->offset;
    }
    free(list);

    for (size_t i = j->index.count; i-- > 0; ) {
        const inf_journal_entry_t *e = &j->index.sorted[i];
        if (e->method == INF_METHOD_REPOSITORY_MODEL_UNLOAD
            && (e->offset < from
                || (!e->implicit && !starts_by_itself(j, e->key))))
        {
            inf_journal_index_drop(&j->index, e->key);
        }
    }
    return NULL;
}

static inf_err_t *
copy_entry(const inf_journal_t *j, const inf_journal_entry_t *e)
{
    char piece[65536];

    for (uint64_t done = 0; done < e->size; ) {
        size_t n = e->size - done < sizeof(piece)
            ? (size_t) (e->size - done) : sizeof(piece);
        if (!read_at(j->fd, piece, n, e->offset + done)) {
            return inf_err_new(INF_ERR_INTERNAL, "journal: cannot read");
        }
        inf_err_t *err = write_at(j->fd, piece, n, e->copy + done);
        if (err != NULL) {
            return err;
        }
        done += n;
    }

    return NULL;
}

/* Writes the new header in one write, which makes its records valid at once. */
static inf_err_t *
move_header(inf_journal_t *j, uint64_t start, uint64_t used)
{
    uint64_t old = j->header.start;

    inf_err_t *err = write_header(j, start, used);
    if (err != NULL || start == old) {
        return err;
    }

    for (size_t i = 0; i < j->index.count; i++) {
        j->index.sorted[i].offset = j->index.sorted[i].copy;
    }
    if (fallocate(j->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            (off_t) old, (off_t) j->half) != 0)
    {
        inf_log(INF_LOG_WARN, "journal: cannot free memory: %s",
            strerror(errno));
    }

    return NULL;
}

static inf_err_t *
write_header(inf_journal_t *j, uint64_t start, uint64_t used)
{
    journal_header_t h = {
        .magic = JOURNAL_MAGIC,
        .sequence = j->header.sequence + 1,
        .start = start,
        .used = used
    };
    h.check = inf_hash(&h, offsetof(journal_header_t, check));

    inf_err_t *err = write_at(j->fd, &h, sizeof(h),
        h.sequence % 2 * sizeof(h));
    if (err == NULL) {
        j->header = h;
    }
    return err;
}

static inf_err_t *
write_at(int fd, const void *data, size_t len, uint64_t offset)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n = pwrite(fd, p, len, (off_t) offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return inf_err_os(n < 0 ? errno : ENOSPC, "journal: cannot write");
        }
        p += n;
        len -= (size_t) n;
        offset += (uint64_t) n;
    }

    return NULL;
}

static bool
read_at(int fd, void *data, size_t len, uint64_t offset)
{
    char *p = data;

    while (len > 0) {
        ssize_t n = pread(fd, p, len, (off_t) offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        p += n;
        len -= (size_t) n;
        offset += (uint64_t) n;
    }

    return true;
}

/* The record is read again and may have changed since. */
static bool
record_fits(const journal_record_t *r, uint64_t size)
{
    return r->key_len <= JOURNAL_KEY && r->len <= size
        && size - r->len == sizeof(*r) + r->key_len;
}

static inf_err_t *
restore_load(inf_journal_t *j, const inf_journal_entry_t *e,
    const inf_model_id_t *id, inf_lifecycle_t *lc)
{
    inf_override_t *override = NULL;
    ProtobufCMessage *m = NULL;
    inf_slice_t message;
    char *bytes = NULL;

    inf_err_t *err = read_message(j, e, &bytes, &message);
    if (err == NULL) {
        err = inf_message_unpack(
            &inference__repository_model_load_request__descriptor, message,
            &m);
    }
    if (err == NULL) {
        err = inf_model_control_override((const void *) m, &override);
    }
    if (err == NULL) {
        err = inf_lifecycle_restore(lc, id, override, e->implicit);
    }

    inf_message_free(m);
    free(bytes);
    return err;
}

/* Reads the message into *bytes, which is malloc'ed, also after an error. */
static inf_err_t *
read_message(const inf_journal_t *j, const inf_journal_entry_t *e, char **bytes,
    inf_slice_t *message)
{
    journal_record_t r;

    *bytes = malloc((size_t) e->size + 1);
    if (*bytes == NULL) {
        return inf_err_nomem();
    }
    if (!read_at(j->fd, *bytes, (size_t) e->size, e->offset)) {
        return inf_err_new(INF_ERR_INTERNAL, "journal: cannot read");
    }

    memcpy(&r, *bytes, sizeof(r));
    if (!record_fits(&r, e->size)
        || inf_hash(*bytes + e->size - r.len, (size_t) r.len) != r.check)
    {
        return inf_err_new(INF_ERR_INTERNAL, "journal: a record is broken");
    }

    *message = inf_slice(*bytes + e->size - r.len, (size_t) r.len);
    return NULL;
}
