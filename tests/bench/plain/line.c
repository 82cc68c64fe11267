// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How far apart are two processors?  Two processes, on the first and the last processor that
 * they may use, write to one cache line by turns. Prints the nanoseconds in which the line
 * goes to the other one and back: some tens where the two share a cache, some hundreds where
 * they do not.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TURNS	20000u
#define PARTS	5u	/* the least of them counts: a process may be interrupted */

struct line {
	_Alignas(64) _Atomic uint32_t number;
};

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void use_only(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Wait for the number, and write the next one. */
static void answer(struct line *line, uint32_t number)
{
	while (atomic_load_explicit(&line->number, memory_order_acquire) != number)
		;
	atomic_store_explicit(&line->number, number + 1, memory_order_release);
}

static double measure(struct line *line)
{
	double least = 0;

	for (uint32_t part = 0; part < PARTS; part++) {
		double since = now();

		for (uint32_t i = part * TURNS; i < (part + 1) * TURNS; i++)
			answer(line, 2 * i);
		since = (now() - since) / TURNS;
		if (!part || since < least)
			least = since;
	}
	return least;
}

int main(void)
{
	struct line *line = mmap(NULL, sizeof(*line), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int first = -1, last = -1, status;
	double took;
	cpu_set_t set;
	pid_t child;

	if (line == MAP_FAILED)
		die("mmap");
	if (sched_getaffinity(0, sizeof(set), &set))
		die("sched_getaffinity");
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &set))
			continue;
		first = first < 0 ? i : first;
		last = i;
	}
	if (first == last) {
		fprintf(stderr, "there is one processor\n");
		return 1;
	}
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		use_only(last);
		for (uint32_t i = 0; i < PARTS * TURNS; i++)
			answer(line, 2 * i + 1);
		return 0;
	}
	use_only(first);
	took = measure(line);
	if (waitpid(child, &status, 0) != child || status)
		die("the other process");
	printf("ns=%.1f\n", took);
	return 0;
}
