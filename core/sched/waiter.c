#include "core/sched/waiter.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/wire/sockets.h"

enum {
    WAITER_RUNNING = 0,
    WAITER_SLEEPING,
    WAITER_POLLING,
    WAITER_WOKEN
};

static void waiter_sleep(inf_waiter_t *w, const struct timespec *timeout);
static void waiter_pause(void);

void
inf_waiter_init(inf_waiter_t *w)
{
    atomic_init(&w->word, WAITER_RUNNING);
}

void
inf_waiter_wait(inf_waiter_t *w, uint64_t spin_ns)
{
    if (spin_ns > 0) {
        uint64_t until = inf_clock_ns() + spin_ns;
        do {
            if (atomic_load_explicit(&w->word, memory_order_acquire)
                == WAITER_WOKEN)
            {
                break;
            }
            waiter_pause();
        } while (inf_clock_ns() < until);
    }

    waiter_sleep(w, NULL);
}

void
inf_waiter_wait_for(inf_waiter_t *w, uint64_t timeout_ns)
{
    const struct timespec timeout = {
        .tv_sec = (time_t) (timeout_ns / 1000000000u),
        .tv_nsec = (long) (timeout_ns % 1000000000u)
    };

    waiter_sleep(w, &timeout);
}

bool
inf_waiter_poll_begin(inf_waiter_t *w, int eventfd)
{
    uint32_t expected = WAITER_RUNNING;
    atomic_store_explicit(&w->eventfd, eventfd, memory_order_relaxed);
    return atomic_compare_exchange_strong(&w->word, &expected,
        WAITER_POLLING);
}

bool
inf_waiter_poll_end(inf_waiter_t *w)
{
    uint32_t expected = WAITER_POLLING;
    return !atomic_compare_exchange_strong(&w->word, &expected,
        WAITER_RUNNING);
}

bool
inf_waiter_woken(const inf_waiter_t *w)
{
    return atomic_load_explicit(&w->word, memory_order_acquire)
        == WAITER_WOKEN;
}

void
inf_waiter_clear(inf_waiter_t *w)
{
    atomic_store(&w->word, WAITER_RUNNING);
}

void
inf_waiter_wake(inf_waiter_t *w)
{
    switch (atomic_exchange(&w->word, WAITER_WOKEN)) {
    case WAITER_SLEEPING:
        syscall(SYS_futex, &w->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        break;
    case WAITER_POLLING:
        inf_eventfd_notify(
            atomic_load_explicit(&w->eventfd, memory_order_relaxed));
        break;
    }
}

/* Sleeps; leaves the word RUNNING, whether woken or timed out. */
static void
waiter_sleep(inf_waiter_t *w, const struct timespec *timeout)
{
    uint32_t expected = WAITER_RUNNING;
    if (atomic_compare_exchange_strong(&w->word, &expected, WAITER_SLEEPING)) {
        do {
            syscall(SYS_futex, &w->word, FUTEX_WAIT_PRIVATE, WAITER_SLEEPING,
                timeout, NULL, 0);
        } while (timeout == NULL
            && atomic_load(&w->word) == WAITER_SLEEPING);
    }

    atomic_store(&w->word, WAITER_RUNNING);
}

static void
waiter_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
