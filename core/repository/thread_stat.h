/*
 * thread_stat.h - what the kernel says of a thread, of whichever process.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    ns; ticks since the machine's start.
 * Errors   false: it has ended, or there is no /proc.
 * Route    kernel -> [thread stat] -> idle priority, loading place
 */

#ifndef INF_REPOSITORY_THREAD_STAT_H
#define INF_REPOSITORY_THREAD_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct {
    char     state;
    uint64_t ran_ns;                    /* on a processor                    */
    uint64_t began;                     /* ticks                             */
} inf_thread_stat_t;

bool inf_thread_stat_read(pid_t thread, inf_thread_stat_t *out);

/* What began says of a thread that begins now. */
uint64_t inf_thread_ticks_now(void);

#endif /* INF_REPOSITORY_THREAD_STAT_H */
