/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The command line. */
#ifndef QHCA_FABRIC_OPTIONS_H
#define QHCA_FABRIC_OPTIONS_H

#include <stdbool.h>

#include "model/fabric.h"

/* Characters of a port's name */
#define SW_NAME_LEN	31u

/* --port */
struct sw_port_option {
	char name[SW_NAME_LEN + 1];
	char *path;
	struct fab_settings set;
};

struct sw_options {
	struct fab_config config;
	struct fab_settings defaults;	/* of ports */
	struct sw_port_option port[FAB_MAX_PORTS];
	unsigned int num_ports;
	const char *listen;		/* path, or NULL */
	const char *control;		/* path, or NULL */
};

/*
 * Reads the command line. Returns -1 if the program goes on, or the code with which it
 * ends: after --help, --version, or a message that says what is wrong.
 */
int sw_options_read(struct sw_options *opt, int argc, char **argv);
void sw_options_free(struct sw_options *opt);

/*
 * Sets one of the settings that have a number: "rate", "burst", "latency", "queue",
 * "macs". Returns NULL, or a sentence that says what is wrong with the name or the text.
 */
const char *sw_setting_parse(struct fab_settings *set, const char *name, const char *text);
/* The same with a number in the base unit; false: no such setting, or it is too large. */
bool sw_setting_number(struct fab_settings *set, const char *name, uint64_t value);

#endif /* QHCA_FABRIC_OPTIONS_H */
