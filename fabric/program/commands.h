/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The commands of control connections; Documentation/switch.rst describes them.
 *
 * A command is checked as a whole before anything is changed, so that one which fails
 * has changed nothing.
 */
#ifndef QHCA_FABRIC_COMMANDS_H
#define QHCA_FABRIC_COMMANDS_H

#include <stddef.h>

struct sw_app;

/*
 * Runs the command of a line without its end. Returns the answer, a line on the heap,
 * or NULL if there is no memory.
 */
char *sw_command_line(struct sw_app *app, const char *line, size_t len);
/* The answer that reports an error */
char *sw_command_error(const char *why);

#endif /* QHCA_FABRIC_COMMANDS_H */
