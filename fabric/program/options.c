// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The command line. */
#include "program/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/units.h"

static const char usage[] =
"Usage: qhca-switch [OPTION]... --listen PATH | --port NAME=PATH...\n"
"Joins guests of QEMU, which connect with -netdev stream, by an Ethernet switch.\n"
"\n"
"  -l, --listen PATH     unix socket at which every connection is a port\n"
"  -p, --port NAME=PATH[,SETTING=VALUE]...\n"
"                        a port with a unix socket of its own, which keeps its\n"
"                        settings and counters when its peer comes again\n"
"  -c, --control PATH    unix socket for control by JSON\n"
"\n"
"Settings of all ports that have none of their own:\n"
"  -r, --rate RATE       bit/s towards the peer: 0 for no limit, or as in 10G\n"
"  -b, --burst BYTES     depth of the token bucket of the rate\n"
"  -d, --latency TIME    delay of each frame, as in 5us\n"
"  -q, --queue BYTES     how much a port may hold before it drops frames\n"
"  -m, --macs NUMBER     addresses that are learned behind a port\n"
"\n"
"  -n, --max-ports NUMBER   ports at a time\n"
"  -t, --table NUMBER    entries of the MAC table\n"
"  -a, --age TIME        how long an address is known that sends nothing\n"
"  -h, --help            prints this\n"
"  -V, --version         prints the version\n";

static const struct option options[] = {
	{ "listen", required_argument, NULL, 'l' },
	{ "port", required_argument, NULL, 'p' },
	{ "control", required_argument, NULL, 'c' },
	{ "rate", required_argument, NULL, 'r' },
	{ "burst", required_argument, NULL, 'b' },
	{ "latency", required_argument, NULL, 'd' },
	{ "queue", required_argument, NULL, 'q' },
	{ "macs", required_argument, NULL, 'm' },
	{ "max-ports", required_argument, NULL, 'n' },
	{ "table", required_argument, NULL, 't' },
	{ "age", required_argument, NULL, 'a' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

bool sw_setting_number(struct fab_settings *set, const char *name, uint64_t value)
{
	if (!strcmp(name, "rate")) {
		set->rate = value;
	} else if (!strcmp(name, "burst")) {
		set->burst = value;
	} else if (!strcmp(name, "latency")) {
		set->latency = value;
	} else if (!strcmp(name, "queue")) {
		set->queue = value;
	} else if (!strcmp(name, "macs") && value <= UINT32_MAX) {
		set->macs = (uint32_t)value;
	} else {
		return false;
	}
	return true;
}

const char *sw_setting_parse(struct fab_settings *set, const char *name, const char *text)
{
	uint64_t value;

	if (!strcmp(name, "rate")) {
		if (!sw_parse_rate(text, &value))
			return "a rate is a number of bit/s, with k, M, G or T";
	} else if (!strcmp(name, "burst") || !strcmp(name, "queue")) {
		if (!sw_parse_bytes(text, &value))
			return "it is a number of bytes, with k, M or G";
	} else if (!strcmp(name, "latency")) {
		if (!sw_parse_time(text, &value))
			return "a latency is a number with ns, us, ms or s";
	} else if (!strcmp(name, "macs")) {
		if (!sw_parse_number(text, &value) || value > UINT32_MAX)
			return "it is a number of addresses";
	} else {
		return "the settings are rate, burst, latency, queue and macs";
	}
	sw_setting_number(set, name, value);
	return fab_settings_wrong(set);
}

static int wrong(const char *option, const char *text, const char *why)
{
	fprintf(stderr, "qhca-switch: --%s %s: %s\n", option, text, why);
	return EXIT_FAILURE;
}

static const char *parse_count(const char *text, uint32_t *count)
{
	uint64_t value;

	if (!sw_parse_number(text, &value) || value > UINT32_MAX)
		return "it is a number";
	*count = (uint32_t)value;
	return NULL;
}

static const char *parse_name(struct sw_options *opt, const char *name, size_t len)
{
	struct sw_port_option *port = &opt->port[opt->num_ports];

	if (!len || len > SW_NAME_LEN)
		return "the name of a port has 1 to 31 characters";
	for (size_t i = 0; i < len; i++)
		if (name[i] <= ' ' || name[i] > '~')
			return "the name of a port has printable ASCII characters";
	/* Ports that are made for connections have numbers for names. */
	if (name[0] >= '0' && name[0] <= '9')
		return "the name of a port begins with no digit";
	memcpy(port->name, name, len);
	port->name[len] = '\0';
	for (unsigned int i = 0; i < opt->num_ports; i++)
		if (!strcmp(opt->port[i].name, port->name))
			return "there is a port of that name already";
	return NULL;
}

/* NAME=PATH[,SETTING=VALUE]...; the default settings are known. */
static const char *parse_port(struct sw_options *opt, const char *text)
{
	struct sw_port_option *port = &opt->port[opt->num_ports];
	const char *equal = strchr(text, '='), *why;
	char *rest, *setting, *value;

	if (!equal)
		return "it is NAME=PATH";
	if (opt->num_ports == FAB_MAX_PORTS)
		return "there are too many ports";
	why = parse_name(opt, text, (size_t)(equal - text));
	if (why)
		return why;
	port->set = opt->defaults;
	port->path = rest = strdup(equal + 1);
	if (!rest)
		return "there is no memory";
	opt->num_ports++;
	strsep(&rest, ",");
	while ((setting = strsep(&rest, ","))) {
		value = strchr(setting, '=');
		if (!value)
			return "a setting is NAME=VALUE";
		*value++ = '\0';
		why = sw_setting_parse(&port->set, setting, value);
		if (why)
			return why;
	}
	return NULL;
}

static const char *name_of(int letter)
{
	const struct option *o = options;

	while (o->val != letter)
		o++;
	return o->name;
}

/* All options but --port, which needs the defaults. */
static const char *parse_option(struct sw_options *opt, int letter, const char *text)
{
	switch (letter) {
	case 'l':
		opt->listen = text;
		return NULL;
	case 'c':
		opt->control = text;
		return NULL;
	case 'n':
		return parse_count(text, &opt->config.ports);
	case 't':
		return parse_count(text, &opt->config.table);
	case 'a':
		return sw_parse_time(text, &opt->config.age) ? NULL :
		       "it is a number with ns, us, ms or s";
	case 'p':
		return NULL;
	default:
		return sw_setting_parse(&opt->defaults, name_of(letter), text);
	}
}

static int check(const struct sw_options *opt)
{
	const char *why = fab_config_wrong(&opt->config);

	if (!why && !opt->listen && !opt->num_ports)
		why = "there is neither --listen nor --port";
	if (!why && opt->num_ports > opt->config.ports)
		why = "there are more ports than --max-ports allows";
	if (!why)
		return -1;
	fprintf(stderr, "qhca-switch: %s\n", why);
	return EXIT_FAILURE;
}

/* One pass over the command line: that of the ports, or that of all else. */
static int pass(struct sw_options *opt, int argc, char **argv, bool ports)
{
	const char *why;
	int letter;

	optind = 1;
	while ((letter = getopt_long(argc, argv, "l:p:c:r:b:d:q:m:n:t:a:hV", options, NULL)) >= 0) {
		switch (letter) {
		case '?':
			return EXIT_FAILURE;
		case 'h':
			fputs(usage, stdout);
			return EXIT_SUCCESS;
		case 'V':
			puts("qhca-switch " SW_VERSION);
			return EXIT_SUCCESS;
		}
		if (ports)
			why = letter == 'p' ? parse_port(opt, optarg) : NULL;
		else
			why = parse_option(opt, letter, optarg);
		if (why)
			return wrong(name_of(letter), optarg, why);
	}
	if (optind < argc) {
		fprintf(stderr, "qhca-switch: %s: only options are expected\n", argv[optind]);
		return EXIT_FAILURE;
	}
	return -1;
}

int sw_options_read(struct sw_options *opt, int argc, char **argv)
{
	int code;

	*opt = (struct sw_options){ .num_ports = 0 };
	fab_config_default(&opt->config);
	fab_settings_default(&opt->defaults);
	code = pass(opt, argc, argv, false);
	if (code < 0)
		code = pass(opt, argc, argv, true);
	return code < 0 ? check(opt) : code;
}

void sw_options_free(struct sw_options *opt)
{
	for (unsigned int i = 0; i < opt->num_ports; i++)
		free(opt->port[i].path);
}
