/*
 * late_allocator.c - a C library whose allocator nobody has used: its first
 *                    malloc_trim() takes a while to set it up, and another one
 *                    within that time ends the process.
 *
 * The C library is like that beside a preloaded allocator, only faster.
 */

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static _Atomic int calls;
static _Atomic int done;

int
malloc_trim(size_t pad)
{
    (void) pad;

    if (atomic_fetch_add(&calls, 1) == 0) {
        usleep(500000);
        atomic_store(&done, 1);
    } else if (!atomic_load(&done)) {
        abort();
    }

    return 0;
}
