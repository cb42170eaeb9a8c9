/*
 * core_main.h - the core as a program; the executable is a thin main on top.
 *
 * Owner    the process.
 * Thread   the main thread holds the intake role.
 * Units    none.
 * Errors   exit status 1 with a line on stderr.
 * Route    exec by the supervisor, or by hand with --config FILE.
 */

#ifndef INF_SERVICE_CORE_MAIN_H
#define INF_SERVICE_CORE_MAIN_H

/* Descriptors that the supervisor passes across exec. */
enum {
    INF_CORE_FD_REGISTRATION = 3,
    INF_CORE_FD_LEASE        = 4,
    INF_CORE_FD_CONFIG       = 5,
    INF_CORE_FD_LOG          = 6,
    INF_CORE_FD_JOURNAL      = 7,
    INF_CORE_FD_CRASH_PAGE   = 8,
    INF_CORE_FD_CONFIGURE    = 9    /* receives the CONFIG of a reload       */
};

__attribute__((visibility("default"))) int inf_core_main(int argc,
    char *const *argv);

#endif /* INF_SERVICE_CORE_MAIN_H */
