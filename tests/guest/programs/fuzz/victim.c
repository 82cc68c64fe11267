// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The victim: qhca-verify with itself, as another user, again and again. Each run
 * must succeed, unless a disruption began before it ended.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"
#include "parts.h"
#include "lib/peer.h"

#define PORT	18600
/* After a disruption the network takes its time to set addresses up again. */
#define QUIET_NS	2000000000ull

static pid_t start(bool server, int gid_index, const char *output, uint64_t seed)
{
	char gid[16], port[16], number[24];
	pid_t pid = fork();
	int fd;

	if (pid)
		return pid;
	/* The directory is root's. */
	fd = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	MUST(fd >= 0 && dup2(fd, 1) == 1 && dup2(fd, 2) == 2);
	become(VICTIM_UID);
	snprintf(gid, sizeof(gid), "%d", gid_index);
	snprintf(port, sizeof(port), "%d", PORT);
	snprintf(number, sizeof(number), "%ju", (uintmax_t)seed);
	if (server)
		execlp("qhca-verify", "qhca-verify", "-d", opt.device, "-g", gid, "-p", port, NULL);
	else
		execlp("qhca-verify", "qhca-verify", "-d", opt.device, "-g", gid, "-p", port, "-n", "4",
		       "-S", "16384", "-s", number, "127.0.0.1", NULL);
	die("no qhca-verify");
}

static bool disrupted_since(uint32_t begun, uint64_t began_ns)
{
	return shared->begun != begun || shared->begun != shared->ended ||
	       began_ns < shared->end_ns + QUIET_NS;
}

/* Waits for a process; kills it when a disruption is over, or the run. */
static int end_of(pid_t pid, pid_t other, uint32_t begun)
{
	uint64_t give_up = now_ns() + opt.patience * 2000000000ull, hurry = 0;
	int status;

	while (!waitpid(pid, &status, WNOHANG)) {
		bool over = shared->begun != begun && shared->begun == shared->ended;

		if (over && !hurry)
			hurry = now_ns() + QUIET_NS;
		if ((hurry && now_ns() > hurry) || shared->stop || now_ns() > give_up) {
			kill(pid, SIGKILL);
			kill(other, SIGKILL);
		}
		usleep(5000);
	}
	return status;
}

static bool listening(pid_t server)
{
	char path[64];

	/* Its process has a socket that listens when the table of them says so. */
	snprintf(path, sizeof(path), "/proc/%d/net/tcp6", server);
	return !shell("grep -q ':%04X 0*:0000 0A' %s", PORT, path);
}

static void run_once(unsigned int run, int gid_index)
{
	uint64_t began_ns = now_ns();
	uint32_t begun = shared->begun;
	char out[2][128];
	pid_t pid[2];
	int status[2];

	for (unsigned int i = 0; i < 2; i++)
		snprintf(out[i], sizeof(out[i]), "%s/victim.%u", opt.dir, i);
	pid[0] = start(true, gid_index, out[0], 0);
	while (!listening(pid[0]) && !kill(pid[0], 0) && !shared->stop &&
	       now_ns() < began_ns + opt.patience * 1000000000ull) {
		if (waitpid(pid[0], NULL, WNOHANG | WNOWAIT) > 0)
			break;
		usleep(5000);
	}
	pid[1] = start(false, gid_index, out[1], opt.seed + run);
	status[1] = end_of(pid[1], pid[0], begun);
	status[0] = end_of(pid[0], pid[0], begun);
	if (!status[0] && !status[1]) {
		say("run %u of the victim: ok", run);
		shared->victims++;
	} else if (shared->stop) {
		return;
	} else if (disrupted_since(begun, began_ns)) {
		say("run %u of the victim: disrupted", run);
		shared->excused++;
	} else {
		fail("the victim's run %u failed with %x and %x, and nothing disrupted it: see %s and %s",
		     run, status[0], status[1], out[0], out[1]);
	}
}

void victim_run(void)
{
	union ibv_gid gid;
	int gid_index;

	for (unsigned int run = 1; !shared->stop && !shared->failed; run++) {
		gid_index = ready_gid(&gid);
		if (shared->begun != shared->ended || gid_index < 0)
			usleep(20000);
		else
			run_once(run, gid_index);
	}
	exit(0);
}
