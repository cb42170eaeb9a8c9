/*
 * scarce_memory.h - an allocator of which one allocation fails, and that
 *                   counts what there is.
 *
 * Owner    the program that includes it, first of all.
 * Thread   any; which allocation is the one is only certain with one.
 * Units    allocations.
 * Errors   none; under a sanitizer, whose allocator is not replaced,
 *          OWN_MALLOC is 0 and nothing fails.
 * Route    unit tests only
 *
 * With SHRINKING_SUCCEEDS defined, realloc fails only where a block grows:
 * libc shrinks what it has printed and goes on if it can't.
 */

#ifndef INF_T_SCARCE_MEMORY_H
#define INF_T_SCARCE_MEMORY_H

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OWN_MALLOC 0
#endif
#endif

#ifndef OWN_MALLOC
#define OWN_MALLOC 1
#endif

#ifdef SHRINKING_SUCCEEDS
#define MAY_FAIL(p, size) ((p) == NULL || malloc_usable_size(p) < (size))
#else
#define MAY_FAIL(p, size) true
#endif

/* 0: off; the allocation at 1 fails.  Not every program looks at both where
   nothing fails. */
__attribute__((unused)) static _Atomic long countdown;
__attribute__((unused)) static _Atomic long live;

#if OWN_MALLOC

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void __libc_free(void *p);

#pragma GCC visibility push(default)
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *p, size_t size);
void free(void *p);
#pragma GCC visibility pop

static bool
allocation_fails(void)
{
    bool fails = countdown > 0 && --countdown == 0;
    errno = fails ? ENOMEM : errno;
    return fails;
}

void *
malloc(size_t size)
{
    if (allocation_fails()) {
        return NULL;
    }

    live++;
    return __libc_malloc(size);
}

void *
calloc(size_t count, size_t size)
{
    if (allocation_fails()) {
        return NULL;
    }

    live++;
    return __libc_calloc(count, size);
}

void *
realloc(void *p, size_t size)
{
    if (MAY_FAIL(p, size) && allocation_fails()) {
        return NULL;
    }

    live += p == NULL;
    return __libc_realloc(p, size);
}

void
free(void *p)
{
    live -= p != NULL;
    __libc_free(p);
}

#endif /* OWN_MALLOC */

#endif /* INF_T_SCARCE_MEMORY_H */
