// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-fuzz: hostile processes beside a victim that checks its data.
 *
 *   qhca-fuzz -d DEVICE [-s SEED] [-t SECONDS] [-r FIRST-ROUND] [-p PATIENCE]
 *             [-D DIRECTORY] [-q] [-F]
 *
 * As root. Each round starts hostile processes of an unprivileged user, some of which
 * are killed, and ends when nothing is left of them (rdma resource). Meanwhile root
 * disrupts the device (not with -q). With -F a fatal error is among the disruptions,
 * which the host injects when it finds the file "inject" in the directory.
 *
 * Seed and rounds are printed. A round's operations follow from both, as far as
 * answers and the scheduler are the same again: -s SEED -r ROUND begins with it. The
 * last operations of each thread are in the memory that log.c describes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"
#include "parts.h"
#include "lib/peer.h"

struct options opt = { .seconds = 20, .patience = 60, .disrupt = true, .dir = "/run/qhca-fuzz" };
struct shared *shared;
static uint64_t started_ns;

/* -- helpers of all processes --------------------------------------------------- */

static void print(const char *kind, const char *format, va_list args)
{
	char text[512];
	int n;

	n = snprintf(text, sizeof(text), "[%7.3f] %s", (now_ns() - started_ns) / 1e9, kind);
	n += vsnprintf(text + n, sizeof(text) - n - 1, format, args);
	if (n > (int)sizeof(text) - 2)
		n = sizeof(text) - 2;
	text[n++] = '\n';
	if (write(1, text, n) != n)
		exit(1);
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print("", format, args);
	va_end(args);
}

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print("FAILED: ", format, args);
	va_end(args);
	shared->failed = true;
}

int shell(const char *format, ...)
{
	char command[1024];
	va_list args;
	int status;
	pid_t pid;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	pid = fork();
	if (!pid) {
		execl("/bin/bash", "bash", "-c", command, NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void become(uid_t uid)
{
	const struct rlimit locked = { 64 << 20, 64 << 20 }, none = { 0, 0 };

	setrlimit(RLIMIT_MEMLOCK, &locked);
	setrlimit(RLIMIT_CORE, &none);
	MUST(!setgroups(0, NULL) && !setgid(uid) && !setuid(uid));
	/* A change of the user cancels the signal, so this comes last. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static bool read_line(char *line, size_t size, const char *format, ...)
{
	char path[256];
	va_list args;
	FILE *f;
	bool ok;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(line, size, f);
	fclose(f);
	return ok;
}

int ready_gid(union ibv_gid *gid)
{
	const char *top = "/sys/class/infiniband/%s/ports/1/%s%d";
	unsigned int word[8];
	char line[64];

	if (!read_line(line, sizeof(line), "/sys/class/infiniband/%s/ports/1/state", opt.device) ||
	    !strstr(line, "ACTIVE"))
		return -1;
	for (int i = 0; i < 16; i++) {
		if (!read_line(line, sizeof(line), top, opt.device, "gid_attrs/types/", i) ||
		    !strstr(line, "v2") ||
		    !read_line(line, sizeof(line), top, opt.device, "gids/", i) ||
		    sscanf(line, "%x:%x:%x:%x:%x:%x:%x:%x", &word[0], &word[1], &word[2], &word[3],
			   &word[4], &word[5], &word[6], &word[7]) != 8 || word[0] != 0xfe80)
			continue;
		for (int w = 0; w < 8; w++) {
			gid->raw[2 * w] = word[w] >> 8;
			gid->raw[2 * w + 1] = word[w];
		}
		return i;
	}
	return -1;
}

/* -- rounds ------------------------------------------------------------------------ */

/* Objects of anyone but the kernel, the victim, and those that only root reads by. */
static bool anything_left(const char *how)
{
	return !shell("for type in qp cq mr pd srq ctx; do rdma resource show $type; done 2> /dev/null | "
		      "grep -v -e ' comm qhca-verify' -e ' comm \\[' %s", how);
}

static bool group_is_gone(pid_t group)
{
	return kill(-group, 0) && errno == ESRCH;
}

/* Kills what is left of a worker and waits until it has left the kernel. */
static void end_group(pid_t group)
{
	uint64_t give_up = now_ns() + opt.patience * 1000000000ull;

	while (!group_is_gone(group) && now_ns() < give_up) {
		kill(-group, SIGKILL);
		/* This process is the parent of orphans, too. */
		while (waitpid(-group, NULL, WNOHANG) > 0)
			;
		usleep(2000);
	}
	if (group_is_gone(group))
		return;
	fail("a process does not die");
	shell("for p in /proc/[0-9]*; do grep -q '^NSpgid:.*\\b%d$' $p/status && "
	      "{ cat $p/comm $p/task/*/stack; }; done", group);
}

/* Waits for a worker's end, or kills it @ms after it has begun to work. */
static void end_worker(unsigned int index, pid_t pid, unsigned int ms)
{
	uint64_t give_up = now_ns() + opt.patience * 1000000000ull, end = 0;

	while (now_ns() < give_up && waitpid(pid, NULL, WNOHANG) <= 0) {
		if (!end && shared->begun_work[index])
			end = now_ns() + ms * 1000000ull;
		if (end && now_ns() > end)
			break;
		usleep(5000);
	}
	end_group(pid);
}

static void run_round(unsigned int round)
{
	struct rng rng = rng_of(opt.seed, round, 2000);
	unsigned int ms = 1000 + below(&rng, 2000), most[WORKERS];
	uint64_t give_up;
	pid_t pid[WORKERS];

	for (unsigned int i = 0; i < WORKERS; i++) {
		most[i] = chance(&rng, 50) ? below(&rng, ms) : ms + 1000;
		shared->begun_work[i] = false;
		pid[i] = fork();
		MUST(pid[i] >= 0);
		if (!pid[i]) {
			setpgid(0, 0);
			become(HOSTILE_UID);
			worker_run(round, i, ms);
		}
		setpgid(pid[i], pid[i]);
	}
	for (unsigned int i = 0; i < WORKERS; i++)
		end_worker(i, pid[i], most[i]);
	give_up = now_ns() + opt.patience * 1000000000ull;
	while (anything_left("> /dev/null") && !shared->failed) {
		if (now_ns() > give_up) {
			fail("objects are left after round %u:", round);
			anything_left("");
		}
		usleep(50000);
	}
}

static pid_t start(void (*run)(void))
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run();
	}
	return pid;
}

/* The workers notice that the time is up; one that does not is stuck in the kernel. */
static void end_part(pid_t pid)
{
	uint64_t give_up = now_ns() + 2 * opt.patience * 1000000000ull;

	while (!waitpid(pid, NULL, WNOHANG) && now_ns() < give_up)
		usleep(5000);
	if (!kill(pid, 0)) {
		fail("a process beside the workers does not end:");
		shell("ps axwwo pid,stat,wchan,args | grep -v ' S '");
	}
}

/* On a slow machine the victim has more time, so that it succeeds at least once. */
static bool time_is_up(void)
{
	uint64_t seconds = opt.seconds + (shared->victims ? 0 : opt.patience);

	return now_ns() > started_ns + seconds * 1000000000ull;
}

static void parse(int argc, char **argv)
{
	int o;

	opt.seed = time(NULL);
	while ((o = getopt(argc, argv, "d:s:t:r:p:D:qF")) != -1) {
		switch (o) {
		case 'd': opt.device = optarg; break;
		case 's': opt.seed = parse_number(optarg, 0, ULONG_MAX); break;
		case 't': opt.seconds = parse_number(optarg, 1, INT_MAX); break;
		case 'r': opt.first_round = parse_number(optarg, 0, INT_MAX); break;
		case 'p': opt.patience = parse_number(optarg, 1, 10000); break;
		case 'D': opt.dir = optarg; break;
		case 'q': opt.disrupt = false; break;
		case 'F': opt.fatal = true; break;
		default: die("usage: qhca-fuzz -d DEVICE [-s SEED] [-t SECONDS] ...; see the source");
		}
	}
	if (!opt.device)
		die("-d DEVICE is missing");
}

int main(int argc, char **argv)
{
	pid_t parts[3];
	unsigned int n = 0, round;

	parse(argc, argv);
	started_ns = now_ns();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(shared != MAP_FAILED);
	log_create();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	mkdir(opt.dir, 0755);
	say("seed %ju, first round %u", (uintmax_t)opt.seed, opt.first_round);

	parts[n++] = start(victim_run);
	parts[n++] = start(watch_run);
	if (opt.disrupt)
		parts[n++] = start(disrupt_run);
	for (round = opt.first_round; !shared->failed && !time_is_up(); round++) {
		say("round %u", round);
		run_round(round);
	}
	shared->stop = true;
	while (n)
		end_part(parts[--n]);
	say("%u rounds, %ju operations, %u faults; %u runs of the victim, %u disrupted; %u disruptions",
	    round - opt.first_round, (uintmax_t)shared->ops, shared->faults, shared->victims,
	    shared->excused, shared->begun);
	return shared->failed;
}
