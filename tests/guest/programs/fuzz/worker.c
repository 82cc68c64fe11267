// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A hostile process: two threads that draw operations at random, and children and
 * files of its own that come and go.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "lib/peer.h"

static const struct mix mixes[] = {
	/* verbs, write, ioctl, queue, memory, process */
	{ 75, 5, 5, 0, 14, 1 },		/* almost a program */
	{ 0, 45, 30, 15, 9, 1 },	/* calls without libibverbs */
	{ 30, 20, 20, 10, 15, 5 },
	{ 10, 10, 5, 65, 10, 0 },	/* the device's turn */
};

static struct worker worker;
static __thread struct thread *self;

static void on_fault(int sig)
{
	if (!self || !self->armed)
		_exit(sig);
	self->armed = false;
	atomic_fetch_add(&shared->faults, 1);
	siglongjmp(self->escape, 1);
}

static void catch_faults(void)
{
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };
	const int signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };

	for (unsigned int i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* The file of a device that is called so; false if it is not there now. */
static bool find_path(struct worker *w)
{
	const char *top = "/sys/class/infiniband_verbs";
	char name[64], path[300];
	struct dirent *entry;
	DIR *dir = opendir(top);

	w->path[0] = '\0';
	while (dir && (entry = readdir(dir))) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s/ibdev", top, entry->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%63s", name) == 1 && !strcmp(name, opt.device))
			snprintf(w->path, sizeof(w->path), "/dev/infiniband/%.32s", entry->d_name);
		fclose(f);
	}
	if (dir)
		closedir(dir);
	return w->path[0];
}

/* -- processes and files that come and go -------------------------------------- */

static void child(struct thread *t)
{
	struct file *f = any_file(t);

	/*
	 * write() takes none but the process that opened the file, ioctl() does. The
	 * parent may be gone before this is; the round's end takes all of them.
	 */
	for (unsigned int n = below(&t->rng, 200); n; n--)
		if (!sigsetjmp(t->escape, 1)) {
			t->armed = true;
			if (chance(&t->rng, 50))
				write_step(t, f);
			else
				ioctl_step(t, f);
		}
	_exit(0);
}

static void import(struct thread *t)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;

	note(t, "ibv_import_device");
	ctx = ibv_import_device(dup(any_file(t)->fd));
	if (!ctx)
		return;
	pd = ibv_import_pd(ctx, any_id(t, &t->worker->own, PD));
	if (pd) {
		struct ibv_mr *mr = ibv_import_mr(pd, any_id(t, &t->worker->own, MR));

		if (mr)
			ibv_unimport_mr(mr);
		ibv_unimport_pd(pd);
	}
	ibv_close_device(ctx);
}

void process_step(struct thread *t)
{
	struct file *f = &t->worker->file;
	uint32_t fd;

	switch (below(&t->rng, 4)) {
	case 0:
		note(t, "fork");
		if (!fork())
			child(t);
		break;
	case 1:
		import(t);
		break;
	case 2:
		fd = f->id[chance(&t->rng, 50) ? CHANNEL : ASYNC][below(&t->rng, IDS)];
		note(t, "close %u", fd);
		if (fd > 2)
			close(fd);
		break;
	default:
		/* The other thread may be in the middle of a call. */
		note(t, "close and open");
		close(f->fd);
		file_start(t->worker, f);
	}
}

/* -- the threads ----------------------------------------------------------------- */

static void step(struct thread *t)
{
	const struct mix *m = t->worker->mix;
	unsigned int p = below(&t->rng, 100);

	if (p < m->verbs)
		verbs_step(t);
	else if ((p -= m->verbs) < m->write)
		write_step(t, any_file(t));
	else if ((p -= m->write) < m->ioctl)
		ioctl_step(t, any_file(t));
	else if ((p -= m->ioctl) < m->queue)
		queue_step(t);
	else if ((p -= m->queue) < m->memory)
		memory_step(t);
	else
		process_step(t);
}

static uint64_t last_ns;

static void *run_thread(void *arg)
{
	struct thread *t = arg;

	self = t;
	while (now_ns() < last_ns) {
		if (sigsetjmp(t->escape, 1))
			continue;
		t->armed = true;
		step(t);
		t->armed = false;
	}
	return NULL;
}

/* Objects that most rounds need exist from the beginning. */
static void begin(struct thread *t)
{
	self = t;
	if (sigsetjmp(t->escape, 1))
		return;
	t->armed = true;
	for (unsigned int n = 0; n < 40; n++) {
		if (t->worker->mix->verbs)
			verbs_step(t);
		write_step(t, &t->worker->file);
	}
	t->armed = false;
}

void worker_run(unsigned int round, unsigned int index, unsigned int ms)
{
	struct worker *w = &worker;
	pthread_t other;

	w->index = index;
	w->file.fd = w->own.fd = -1;
	for (unsigned int i = 0; i < 2; i++) {
		unsigned int number = index * 2 + i;

		w->thread[i] = (struct thread) {
			.worker = w, .rng = rng_of(opt.seed, round, number), .log = log_ring(number),
			.index = number, .round = round,
		};
	}
	w->mix = &mixes[below(&w->thread[0].rng, sizeof(mixes) / sizeof(mixes[0]))];
	memory_start(w);
	w->gid_index = ready_gid(&w->gid);
	if (!find_path(w))
		_exit(0);
	catch_faults();
	verbs_start(w);
	file_start(w, &w->file);
	begin(&w->thread[0]);
	shared->begun_work[index] = true;
	last_ns = now_ns() + ms * 1000000ull;
	if (!pthread_create(&other, NULL, run_thread, &w->thread[1]))
		run_thread(&w->thread[0]);
	if (w->ctx && chance(&w->thread[0].rng, 50) && !sigsetjmp(self->escape, 1)) {
		self->armed = true;
		verbs_end(&w->thread[0]);
	}
	_exit(0);
}
