// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "flow.h"
#include "lib/peer.h"

#define PERIOD	200000000ull	/* ns between two lines of progress */
#define WORK	50000000ull	/* ns between two pauses */
#define MOST_COMPLAINTS 5

void flow_begin(struct flow *f, const char *progress)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGTERM);
	MUST(!sigprocmask(SIG_BLOCK, &set, NULL));
	f->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	MUST(f->signals >= 0);
	f->progress = -1;
	if (progress) {
		f->progress = open(progress, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (f->progress < 0)
			die("%s: %s", progress, strerror(errno));
	}
	flow_progress(f, true);
}

void flow_progress(struct flow *f, bool now)
{
	uint64_t time = now_ns();
	char line[80];
	int n;

	if (f->progress < 0 || (!now && time - f->written < PERIOD))
		return;
	f->written = time;
	n = snprintf(line, sizeof(line), "%20llu %20llu %20llu\n", (unsigned long long)f->verified,
		     (unsigned long long)f->sent, (unsigned long long)f->resizes);
	MUST(pwrite(f->progress, line, n, 0) == n);
}

void flow_rest(struct flow *f)
{
	if (!f->rest || now_ns() - f->rested < WORK)
		return;
	usleep(f->rest * 1000);
	f->rested = now_ns();
}

int flow_signal(struct flow *f)
{
	struct signalfd_siginfo info;

	return read(f->signals, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

void flow_bad(struct flow *f, const char *format, ...)
{
	va_list args;

	if (++f->bad > MOST_COMPLAINTS)
		return;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static uint64_t word_at(uint64_t seed, uint64_t off)
{
	/* An odd factor makes every two positions differ; zero stands for nothing. */
	return ((seed << 40) + off / 8 + 1) * 0x9e3779b97f4a7c15ull | 1;
}

void flow_fill(void *mem, uint64_t seed, uint64_t off, size_t len)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = word_at(seed, off + i);

		memcpy((char *)mem + i, &word, len - i < 8 ? len - i : 8);
	}
}

bool flow_check(const void *mem, uint64_t seed, uint64_t off, size_t len)
{
	for (size_t i = 0; i < len; i += 8) {
		uint64_t word = word_at(seed, off + i);

		if (memcmp((const char *)mem + i, &word, len - i < 8 ? len - i : 8))
			return false;
	}
	return true;
}

bool flow_check_partly(const void *mem, uint64_t seed, uint64_t off, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint64_t word = word_at(seed, off + i / 8 * 8);
		uint8_t is = ((const volatile uint8_t *)mem)[i];

		if (is && is != (uint8_t)(word >> i % 8 * 8))
			return false;
	}
	return true;
}
