/*
 * die.h - ends the launcher with a message.
 *
 * Owner    none.
 * Thread   one.
 * Units    none.
 * Errors   none.
 * Route    any failure before nginx runs -> [die]
 */

#ifndef TOOLS_DIE_H
#define TOOLS_DIE_H

/* Prints the program's name and a message, as printf, and exits. */
void die(const char *fmt, ...)
    __attribute__((noreturn, format(printf, 1, 2)));

#endif /* TOOLS_DIE_H */
