// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory of the pool, through qhcadv.h, within one guest: QPs of one process
 * are connected to each other.  Each case is a process of its own, after whose
 * end the whole pool must be free again.  Prints TAP.
 *
 *   qhca-pool [-d DEVICE] [-g GID-INDEX] [CASE...]
 */
#define _GNU_SOURCE
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool.h"

const char *device_name;
int gid_index;

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
#define CASE(name) { #name, case_##name }
	CASE(query), CASE(allocate), CASE(mapped), CASE(unmap), CASE(exhaustion),
	CASE(fragmentation),
	CASE(data), CASE(permission), CASE(refused), CASE(rereg), CASE(window), CASE(bank),
	CASE(fork),
	CASE(two_processes), CASE(killed), CASE(churn), CASE(registration),
	CASE(crossed), CASE(hold),	/* only if named */
};

/* All of the pool is free, once a case has ended. */
static void nothing_left(void)
{
	struct ibv_context *ctx = open_it();
	struct qhcadv_pool_attr attr = query(ctx);

	MUST(attr.free == attr.total);
}

static bool run_apart(void (*run)(void))
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		alarm(120);
		run();
		fflush(stdout);
		_exit(0);
	}
	MUST(waitpid(child, &status, 0) == child);
	if (WIFSIGNALED(status))
		fprintf(stderr, "signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool wanted(char **names, const char *name)
{
	for (int i = 0; names[i]; i++)
		if (!strcmp(names[i], name))
			return true;
	return !names[0] && strcmp(name, "hold") && strcmp(name, "crossed");
}

int main(int argc, char **argv)
{
	int option;
	bool ok;

	while ((option = getopt(argc, argv, "d:g:")) != -1)
		switch (option) {
		case 'd':
			device_name = optarg;
			break;
		case 'g':
			gid_index = parse_number(optarg, 0, INT_MAX);
			break;
		default:
			die("usage: %s -d DEVICE [-g GID-INDEX] [CASE...]", argv[0]);
		}
	if (!device_name)
		die("which device? -d");
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!wanted(argv + optind, cases[i].name))
			continue;
		ok = run_apart(cases[i].run);
		ok = run_apart(nothing_left) && ok;
		tap_point(ok, "%s", cases[i].name);
	}
	return tap_end();
}
