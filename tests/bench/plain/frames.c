// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "frames.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_EVERY	64u	/* frames between two looks at the clock */
#define LEAST		1024u	/* frames, however late the process gets a processor */
#define GRACE		30u	/* seconds after which a process that waits for ever is killed */

static double started;

void frames_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint8_t *make_pattern(void)
{
	uint64_t *words = malloc(PATTERN_SIZE + FRAME_MAX);

	if (!words)
		frames_die("no memory");
	for (uint64_t i = 0; i < (PATTERN_SIZE + FRAME_MAX) / sizeof(*words); i++)
		words[i] = mix(i + 1);
	return (uint8_t *)words;
}

const uint8_t *frames_payload(const struct frames *f, uint64_t number)
{
	/* One word further in each round through the pattern, so that rounds differ. */
	uint64_t per_round = PATTERN_SIZE / f->size;
	uint64_t shift = number / per_round * sizeof(uint64_t) % FRAME_MAX;

	return f->pattern + number % per_round * f->size + shift;
}

void frames_arrived(const struct frames *f, uint64_t number, const uint8_t *at)
{
	const uint8_t *sent = frames_payload(f, number);
	size_t word = sizeof(uint64_t), last = f->size - word;

	if (f->check ? memcmp(at, sent, f->size) :
	    memcmp(at, sent, word) || memcmp(at + last, sent + last, word))
		frames_die("frame %" PRIu64 " is not what was sent", number);
}

bool frames_go_on(const struct frames *f, uint64_t number)
{
	return number < LEAST || number % LOOK_EVERY || now() - started < f->seconds;
}

/* The receiver's count, which the sender's must equal. */
static void report(const struct frames *f, uint64_t received, double seconds)
{
	double bytes = (double)received * (double)f->size;

	printf("frames=%" PRIu64 " size=%zu checked=%s seconds=%.6f MiB/s=%.4f\n", received, f->size,
	       f->check ? "all" : "ends", seconds, bytes / seconds / (1 << 20));
	fflush(stdout);
}

static int run(const struct frames *f, struct link *link)
{
	int count[2], status;
	uint64_t sent, received;
	pid_t child;

	if (pipe(count))
		frames_die("pipe: %s", strerror(errno));
	started = now();
	child = fork();
	if (child < 0)
		frames_die("fork: %s", strerror(errno));
	alarm((unsigned int)f->seconds + GRACE);
	if (!child) {
		/* When the receiver has found a fault, nobody waits for what is sent. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sent = link->send(link->state, f);
		if (write(count[1], &sent, sizeof(sent)) != sizeof(sent))
			frames_die("the count cannot be told: %s", strerror(errno));
		exit(0);
	}
	close(count[1]);
	received = link->receive(link->state, f);
	report(f, received, now() - started);
	if (read(count[0], &sent, sizeof(sent)) != sizeof(sent))
		frames_die("the sender has failed");
	if (waitpid(child, &status, 0) != child || status)
		frames_die("the sender ended with %d", status);
	if (sent != received || !sent)
		frames_die("%" PRIu64 " frames were sent, %" PRIu64 " have arrived", sent, received);
	return 0;
}

int frames_main(int argc, char **argv, struct link *link)
{
	struct frames f = { .size = 4096, .seconds = 1, .pattern = make_pattern() };
	int o;

	while ((o = getopt(argc, argv, "s:t:c")) != -1) {
		switch (o) {
		case 's': f.size = strtoul(optarg, NULL, 0); break;
		case 't': f.seconds = strtod(optarg, NULL); break;
		case 'c': f.check = true; break;
		default: frames_die("usage: %s [-s SIZE] [-t SECONDS] [-c]", argv[0]);
		}
	}
	if (f.size < 8 || f.size > FRAME_MAX || f.size % 8 || !(f.seconds > 0))
		frames_die("no frames of %zu bytes for %g s", f.size, f.seconds);
	return run(&f, link);
}
