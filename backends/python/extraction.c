#include "extraction.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/directory.h"

#include "env_archive.h"

#define PREFIX       "inference-python-env-"
#define OLD_SECONDS  60

struct py_extraction_s {
    py_extraction_t *next;
    char            *file;
    struct timespec  changed;
    off_t            size;
    bk_directory_t   directory;
    unsigned         users;
    bool             ready;         /* otherwise a thread extracts it        */
};

struct py_extractions_s {
    pthread_mutex_t  lock;          /* guards the next two, and users and ready
                                       of those in list                      */
    pthread_cond_t   changed;
    py_extraction_t *list;
    char            *place;         /* set in new(), as the next             */
    uint64_t         bytes_max;
};

static TRITONSERVER_Error *set_place(py_extractions_t *set, const char *place);
static py_extraction_t *find_locked(py_extractions_t *set, const char *file,
    const struct stat *st);
static TRITONSERVER_Error *extract(py_extractions_t *set, py_extraction_t *x);
static py_extraction_t *extraction_new(const char *file,
    const struct stat *st);
static void extraction_free(py_extraction_t *x);
static void unlink_locked(py_extractions_t *set, py_extraction_t *x);

TRITONSERVER_Error *
py_extractions_new(const char *place, uint64_t bytes_max,
    py_extractions_t **out)
{
    py_extractions_t *set = calloc(1, sizeof(*set));
    if (set == NULL) {
        return bk_err_nomem("the set of environments");
    }
    set->bytes_max = bytes_max;
    pthread_mutex_init(&set->lock, NULL);
    pthread_cond_init(&set->changed, NULL);
    TRITONSERVER_Error *err = set_place(set, place);
    if (err != NULL) {
        py_extractions_free(set);
        return err;
    }
    py_extractions_clean(set->place, OLD_SECONDS);
    *out = set;
    return NULL;
}

void
py_extractions_free(py_extractions_t *set)
{
    if (set == NULL) {
        return;
    }
    pthread_cond_destroy(&set->changed);
    pthread_mutex_destroy(&set->lock);
    free(set->place);
    free(set);
}

static TRITONSERVER_Error *
set_place(py_extractions_t *set, const char *place)
{
    if (place == NULL) {
        place = getenv("TMPDIR");
    }
    if (place == NULL || place[0] == '\0') {
        place = "/tmp";
    }
    set->place = realpath(place, NULL);
    if (set->place == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "environments cannot "
            "be extracted into \"%s\": %s", place, strerror(errno));
    }
    return NULL;
}

void
py_extractions_clean(const char *place, long older_s)
{
    bk_directory_sweep(place, PREFIX, older_s);
}

TRITONSERVER_Error *
py_extractions_take(py_extractions_t *set, const char *file,
    py_extraction_t **out)
{
    struct stat st;
    if (stat(file, &st) != 0) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "cannot read archive \"%s\": %s", file, strerror(errno));
    }

    pthread_mutex_lock(&set->lock);
    py_extraction_t *x = find_locked(set, file, &st);
    while (x != NULL && !x->ready) {
        pthread_cond_wait(&set->changed, &set->lock);
        x = find_locked(set, file, &st);
    }
    if (x != NULL) {
        x->users++;
        pthread_mutex_unlock(&set->lock);
        *out = x;
        return NULL;
    }
    x = extraction_new(file, &st);
    if (x != NULL) {
        x->next = set->list;
        set->list = x;
    }
    pthread_mutex_unlock(&set->lock);
    if (x == NULL) {
        return bk_err_nomem("an environment");
    }

    TRITONSERVER_Error *err = extract(set, x);
    pthread_mutex_lock(&set->lock);
    x->ready = true;
    if (err != NULL) {
        unlink_locked(set, x);
    }
    pthread_cond_broadcast(&set->changed);
    pthread_mutex_unlock(&set->lock);
    if (err != NULL) {
        extraction_free(x);
        return err;
    }
    *out = x;
    return NULL;
}

void
py_extractions_give(py_extractions_t *set, py_extraction_t *x)
{
    pthread_mutex_lock(&set->lock);
    bool last = --x->users == 0;
    if (last) {
        unlink_locked(set, x);
    }
    pthread_mutex_unlock(&set->lock);
    if (last) {
        extraction_free(x);
    }
}

const char *
py_extraction_directory(const py_extraction_t *x)
{
    return x->directory.path;
}

static py_extraction_t *
find_locked(py_extractions_t *set, const char *file, const struct stat *st)
{
    for (py_extraction_t *x = set->list; x != NULL; x = x->next) {
        if (strcmp(x->file, file) == 0 && x->size == st->st_size
            && x->changed.tv_sec == st->st_mtim.tv_sec
            && x->changed.tv_nsec == st->st_mtim.tv_nsec)
        {
            return x;
        }
    }
    return NULL;
}

static TRITONSERVER_Error *
extract(py_extractions_t *set, py_extraction_t *x)
{
    bk_log(TRITONSERVER_LOG_INFO, "Extracting Python execution env %s",
        x->file);
    TRITONSERVER_Error *err = bk_directory_make(&x->directory, set->place,
        PREFIX);
    return err != NULL ? err : py_archive_extract(x->file, x->directory.path,
        set->bytes_max);
}

/* Creates an extraction with one user, the thread that extracts it. */
static py_extraction_t *
extraction_new(const char *file, const struct stat *st)
{
    py_extraction_t *x = calloc(1, sizeof(*x));
    if (x == NULL) {
        return NULL;
    }
    x->file = strdup(file);
    if (x->file == NULL) {
        free(x);
        return NULL;
    }
    x->changed = st->st_mtim;
    x->size = st->st_size;
    x->users = 1;
    return x;
}

static void
extraction_free(py_extraction_t *x)
{
    bk_directory_remove(&x->directory);
    free(x->file);
    free(x);
}

static void
unlink_locked(py_extractions_t *set, py_extraction_t *x)
{
    py_extraction_t **p = &set->list;
    while (*p != x) {
        p = &(*p)->next;
    }
    *p = x->next;
}
