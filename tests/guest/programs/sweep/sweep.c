// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-sweep: has each step of an operation fail once, one after the other.
 *
 *   qhca-sweep -d DEVICE [-g GID-INDEX] [-i nth|calls] [-e EVERY] [-f FIRST]
 *              [-c CASE]... | -l
 *
 * The n-th step fails the n-th time that the operation is tried, until n is beyond
 * the last one: then it has to succeed.  An operation whose step has failed fails
 * or succeeds, but leaves nothing behind, which others look for: the kernel's leak
 * detector, its check of DMA mappings, and the number of objects.
 *
 * -i nth    steps are all allocations and copies that the process asks the kernel
 *           for: /proc/self/fail-nth, of kernels with fault injection
 * -i calls  steps are those of qhca's drivers, DMA mappings among them:
 *           qhca_test_fail.ko
 *
 * -e EVERY  takes only steps FIRST, FIRST + EVERY, ...  -l lists the cases.
 * Each case is a point of TAP.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/tap.h"
#include "sweep.h"

#define FAIL_NTH	"/proc/thread-self/fail-nth"
#define PARAMETER	"/sys/module/qhca_test_fail/parameters/"
#define MOST_STEPS	20000u

static struct {
	struct sweep s;
	bool calls;
	int fail_nth;
	unsigned int every, first;
	const char *chosen[32];
	unsigned int num_chosen;
	char what[200];		/* the step that failed last */
} t = { .every = 1, .first = 1, .fail_nth = -1 };

/* -- injection ------------------------------------------------------------ */

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die("%s: %s", path, strerror(errno));
	close(fd);
}

static void read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (n < 0)
		die("%s: %s", path, strerror(errno));
	close(fd);
	text[n] = 0;
	text[strcspn(text, "\n")] = 0;
}

/* So that it fails whatever the allocation's flags and size, and says nothing. */
static void set_up_fail_nth(void)
{
	static const char *const setting[][2] = {
		{ "failslab/ignore-gfp-wait", "N" }, { "failslab/verbose", "0" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/ignore-gfp-highmem", "N" },
		{ "fail_page_alloc/min-order", "0" }, { "fail_page_alloc/verbose", "0" },
		{ "fail_usercopy/verbose", "0" },
	};
	char path[100];

	for (size_t i = 0; i < sizeof(setting) / sizeof(*setting); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s", setting[i][0]);
		write_file(path, setting[i][1]);
	}
	t.fail_nth = open(FAIL_NTH, O_RDWR | O_CLOEXEC);
	if (t.fail_nth < 0)
		die(FAIL_NTH ": %s", strerror(errno));
}

/* One write, after which the next step is the first; 0: none fails any more. */
static void arm(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	if (t.calls)
		write_file(PARAMETER "nth", text);
	else
		MUST(pwrite(t.fail_nth, text, len, 0) == len);
}

/* Returns whether the step that had to fail has failed. */
static bool disarm(void)
{
	char left[16] = "";
	bool hit;

	if (t.calls) {
		read_file(PARAMETER "failed", t.what, sizeof(t.what));
		arm(0);
		return t.what[0];
	}
	MUST(pread(t.fail_nth, left, sizeof(left) - 1, 0) > 0);
	hit = !strtoul(left, NULL, 10);
	arm(0);
	return hit;
}

/* -- cases ---------------------------------------------------------------- */

static void open_context(struct sweep *s)
{
	s->ctx = device_open(s->device);
	MUST(!ibv_query_device_ex(s->ctx, NULL, &s->attr));
	s->pd = ibv_alloc_pd(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 64, NULL, NULL, 0);
	MUST(s->pd && s->cq);
}

static void close_context(struct sweep *s)
{
	MUST(!ibv_destroy_cq(s->cq));
	MUST(!ibv_dealloc_pd(s->pd));
	MUST(!ibv_close_device(s->ctx));
}

static void sweep(const struct sweep_case *c)
{
	unsigned int n, noticed = 0, steps = 0;
	bool hit = true;

	for (n = t.first; hit && n < MOST_STEPS; n += t.every) {
		int err;

		if (c->prepare)
			c->prepare(&t.s);
		errno = 0;
		arm(n);
		err = c->act(&t.s);
		hit = disarm();
		steps += hit;
		noticed += hit && err;
		if (!err && c->undo)
			c->undo(&t.s);
		if (err && c->repair)
			c->repair(&t.s);
		if (err && !hit) {
			tap_point(false, "%s: fails by itself after %u steps: %s; last %s",
				  c->name, n - 1, strerror(err), t.what);
			return;
		}
		if (hit)
			printf("# %s, step %u: %s%s\n", c->name, n, t.calls ? t.what : "",
			       err ? "" : ", and succeeds");
	}
	tap_point(!hit, "%s: %u steps tried, %u made it fail", c->name, steps, noticed);
}

static bool chosen(const struct sweep_case *c)
{
	for (unsigned int i = 0; i < t.num_chosen; i++)
		if (!strcmp(t.chosen[i], c->name))
			return true;
	/* Cases of the device as a whole run only if they are named. */
	return !t.num_chosen && !c->no_context;
}

static void run(const struct sweep_case *c)
{
	for (; c->name; c++) {
		if (!chosen(c))
			continue;
		if (!c->no_context)
			open_context(&t.s);
		if (c->possible && !c->possible(&t.s))
			tap_skip(c->name, "not possible here");
		else
			sweep(c);
		if (!c->no_context)
			close_context(&t.s);
	}
}

static void list(const struct sweep_case *c)
{
	for (; c->name; c++)
		puts(c->name);
}

/* Of the RDMA device: its PCI function and its network interface. */
static void find_function(struct sweep *s)
{
	char path[100], link[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", s->device);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		die("%s: %s", path, strerror(errno));
	link[n] = 0;
	snprintf(s->pci, sizeof(s->pci), "%s", strrchr(link, '/') + 1);
}

int main(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "d:g:i:e:f:c:l")) != -1)
		switch (option) {
		case 'd':
			t.s.device = optarg;
			break;
		case 'g':
			t.s.gid_index = parse_number(optarg, 0, UINT8_MAX);
			break;
		case 'i':
			t.calls = !strcmp(optarg, "calls");
			break;
		case 'e':
			t.every = parse_number(optarg, 1, MOST_STEPS);
			break;
		case 'f':
			t.first = parse_number(optarg, 1, MOST_STEPS);
			break;
		case 'c':
			MUST(t.num_chosen < sizeof(t.chosen) / sizeof(*t.chosen));
			t.chosen[t.num_chosen++] = optarg;
			break;
		case 'l':
			list(sweep_objects);
			list(sweep_memory);
			list(sweep_devices);
			return 0;
		default:
			return 2;
		}
	if (!t.s.device)
		die("which device? (-d)");
	find_function(&t.s);
	t.s.mem = mmap(NULL, LARGE_MEMORY, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	MUST(t.s.mem != MAP_FAILED);
	if (!t.calls)
		set_up_fail_nth();
	run(sweep_objects);
	run(sweep_memory);
	run(sweep_devices);
	return tap_end();
}
