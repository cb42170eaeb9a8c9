#include "core/base/os/mapped_files.h"

#include <pthread.h>

typedef struct {
    uint64_t       id;          /* 0: free                                   */
    const uint8_t *base;
    uint64_t       size;
    int            fd;
} mapping_t;

/* Guards mappings.  Last in the order of locks: no call is made while it is
   held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mapping_t mappings[INF_MAPPED_FILES_MAX];
static uint64_t last_id;

uint64_t
inf_mapped_file_add(const void *base, uint64_t size, int fd)
{
    uint64_t id = 0;

    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < INF_MAPPED_FILES_MAX && id == 0; i++) {
        if (mappings[i].id == 0) {
            id = ++last_id;
            mappings[i] = (mapping_t) {
                .id = id, .base = base, .size = size, .fd = fd
            };
        }
    }
    pthread_mutex_unlock(&lock);
    return id;
}

void
inf_mapped_file_remove(uint64_t id)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < INF_MAPPED_FILES_MAX && id != 0; i++) {
        if (mappings[i].id == id) {
            mappings[i] = (mapping_t) { .id = 0 };
            id = 0;
        }
    }
    pthread_mutex_unlock(&lock);
}

bool
inf_mapped_file_find(const void *data, uint64_t len, inf_mapped_file_t *out)
{
    uintptr_t at = (uintptr_t) data;
    bool found = false;

    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < INF_MAPPED_FILES_MAX && !found; i++) {
        const mapping_t *m = &mappings[i];
        uintptr_t base = (uintptr_t) m->base;

        if (m->id != 0 && at >= base && at - base <= m->size
            && len <= m->size - (at - base))
        {
            *out = (inf_mapped_file_t) {
                .id = m->id, .fd = m->fd, .offset = at - base,
                .size = m->size
            };
            found = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

bool
inf_mapped_file_ended(uint64_t id)
{
    bool ended = true;

    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < INF_MAPPED_FILES_MAX && ended; i++) {
        ended = id == 0 || mappings[i].id != id;
    }
    pthread_mutex_unlock(&lock);
    return ended;
}
