/* cuda_counts.c - what the driver has counted, for tests in this process and,
   by the file FAKE_CUDA_COUNTS, outside of it. */

#include "inside.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char *const kinds[FAKE_CUDA_MOVED_KINDS] = {
    "to_device", "to_host", "on_device", "to_peer"
};

/* More names than there is room for are not counted. */
void
count_locked(counter_t *counters, const char *name)
{
    for (size_t i = 0; i < COUNTERS; i++) {
        counter_t *c = &counters[i];
        if (c->name[0] == '\0') {
            snprintf(c->name, sizeof(c->name), "%s", name);
        }
        if (strcmp(c->name, name) == 0) {
            c->count++;
            return;
        }
    }
}

static uint64_t
counted(const counter_t *counters, const char *name)
{
    uint64_t count = 0;

    pthread_mutex_lock(&fake_lock);
    for (size_t i = 0; i < COUNTERS; i++) {
        if (strcmp(counters[i].name, name) == 0) {
            count = counters[i].count;
        }
    }
    pthread_mutex_unlock(&fake_lock);
    return count;
}

EXPORTED uint64_t
fake_cuda_count(const char *function)
{
    return counted(fake.functions, function);
}

EXPORTED uint64_t
fake_cuda_ran(const char *kernel)
{
    return counted(fake.kernels, kernel);
}

EXPORTED uint64_t
fake_cuda_moved(fake_cuda_moved_e kind)
{
    pthread_mutex_lock(&fake_lock);
    uint64_t bytes = fake.moved[kind];
    pthread_mutex_unlock(&fake_lock);
    return bytes;
}

EXPORTED uint64_t
fake_cuda_pageable(void)
{
    pthread_mutex_lock(&fake_lock);
    uint64_t copies = fake.pageable;
    pthread_mutex_unlock(&fake_lock);
    return copies;
}

EXPORTED uint64_t
fake_cuda_calls(void)
{
    return fake.calls;
}

EXPORTED uint64_t
fake_cuda_failures(void)
{
    return fake.failures;
}

static size_t
live_locked(void)
{
    size_t live = fake.objects + fake.backings;

    for (size_t i = 0; i < fake.block_top; i++) {
        live += fake.blocks[i].live;
    }
    for (int i = 0; i < DEVICES; i++) {
        live += fake.devices[i].retained;
    }
    for (int i = 0; i < RESERVES; i++) {
        live += fake.reserves[i].live;
    }
    return live;
}

EXPORTED size_t
fake_cuda_live(void)
{
    pthread_mutex_lock(&fake_lock);
    size_t live = live_locked();
    pthread_mutex_unlock(&fake_lock);
    return live;
}

EXPORTED size_t
fake_cuda_wrong(const char **what)
{
    *what = fake.wrong > 0 ? fake.wrong_text : "";
    return fake.wrong;
}

EXPORTED size_t
fake_cuda_queued(void)
{
    pthread_mutex_lock(&fake_lock);
    size_t queued = fake.queued;
    pthread_mutex_unlock(&fake_lock);
    return queued;
}

EXPORTED size_t
fake_cuda_waits(void)
{
    return fake.waits;
}

EXPORTED bool
fake_cuda_reaches(int device, int peer)
{
    return fake.devices[device].reaches[peer];
}

EXPORTED void
fake_cuda_occupy(int device, uint64_t bytes)
{
    fake.devices[device].occupied = bytes;
}

/* ---- the file ------------------------------------------------------------ */

static void
write_counters(FILE *f, const char *key, const counter_t *counters)
{
    fprintf(f, "\"%s\":{", key);
    for (size_t i = 0; i < COUNTERS && counters[i].name[0] != '\0'; i++) {
        fprintf(f, "%s\"%s\":%" PRIu64, i > 0 ? "," : "", counters[i].name,
            counters[i].count);
    }
    fprintf(f, "},");
}

static void
write_kinds(FILE *f, const char *key, const uint64_t *values)
{
    fprintf(f, "\"%s\":{", key);
    for (int i = 0; i < FAKE_CUDA_MOVED_KINDS; i++) {
        fprintf(f, "%s\"%s\":%" PRIu64, i > 0 ? "," : "", kinds[i], values[i]);
    }
    fprintf(f, "},");
}

/* The first process with a driver, a core, writes the file; those beside it
   write one of their own. */
static bool
is_first_locked(void)
{
    char path[512];

    if (!fake.first) {
        snprintf(path, sizeof(path), "%s.lock", fake.counts_path);
        int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
        fake.first = fd != -1 && flock(fd, LOCK_EX | LOCK_NB) == 0;
        if (fd != -1 && !fake.first) {
            close(fd);
        }
    }
    return fake.first;
}

/* Readers see the file of before or all of this one. */
void
write_counts_locked(void)
{
    char path[512], to[512];

    if (is_first_locked()) {
        snprintf(to, sizeof(to), "%s", fake.counts_path);
    } else {
        snprintf(to, sizeof(to), "%s.of.%d", fake.counts_path,
            (int) getpid());
    }
    snprintf(path, sizeof(path), "%s.%d", fake.counts_path, (int) getpid());
    FILE *f = fopen(path, "w");
    if (f == NULL) {
        return;
    }

    fprintf(f, "{\"pid\":%d,", (int) getpid());
    write_counters(f, "calls", fake.functions);
    write_counters(f, "kernels", fake.kernels);
    write_kinds(f, "bytes", fake.moved);
    write_kinds(f, "copies", fake.copies);
    fprintf(f, "\"memory\":[");
    for (int i = 0; i < fake.count; i++) {
        fprintf(f, "%s%" PRIu64, i > 0 ? "," : "", used_locked(i));
    }
    fprintf(f, "],\"broken\":[");
    for (int i = 0; i < fake.count; i++) {
        fprintf(f, "%s%d", i > 0 ? "," : "", fake.devices[i].broken);
    }
    fprintf(f, "],\"pageable_copies\":%" PRIu64 ",\"waits\":%zu,"
        "\"queued\":%zu,\"live\":%zu,\"wrong\":%zu,\"wrong_text\":\"%s\"}\n",
        fake.pageable, fake.waits, fake.queued, live_locked(), fake.wrong,
        fake.wrong_text);
    if (fclose(f) != 0 || rename(path, to) != 0) {
        unlink(path);
    }
}

__attribute__((destructor)) static void
write_last_counts(void)
{
    pthread_mutex_lock(&fake_lock);
    if (fake.counts_path != NULL) {
        write_counts_locked();
    }
    pthread_mutex_unlock(&fake_lock);
}
