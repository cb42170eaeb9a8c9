/*
 * die.h - ends the launcher with a message.
 *
 * Owner    none.
 * Thread   one.
 * Units    none.
 * Errors   none.
 * Route    anything that is wrong before nginx runs -> [die]
 */

#ifndef TOOLS_DIE_H
#define TOOLS_DIE_H

/* As printf, with the program's name in front. */
void die(const char *fmt, ...)
    __attribute__((noreturn, format(printf, 1, 2)));

#endif /* TOOLS_DIE_H */
