// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A fuzzer in a page, where there is no libFuzzer: inputs are made of a seed,
 * by chance and by changing those that went somewhere new.  Prints TAP.
 *
 *   fuzz_X [--seed N] [--seconds N] [--runs N] [--corpus DIR] [--out DIR]
 *          [--keep DIR]
 *   fuzz_X FILE...       run these again
 *
 * The inputs run in a child; the one being run lies in memory shared with the
 * parent, which writes it to a file when the child dies or hangs.  The same
 * seed gives the same inputs, as far as the time goes.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cover.h"
#include "target.h"

#define MAX_SIZE	4096u
#define MAX_KEPT	8192u
#define HANG_SECONDS	40

static const char *corpus_dir, *out_dir, *keep_dir;
static uint64_t seed = 1, rng;
static double seconds = 20;
static uint64_t max_runs = UINT64_MAX;

struct input {
	uint8_t *data;
	size_t size;
};
static struct input kept[MAX_KEPT];
static uint32_t num_kept;

/* What parent and child share. */
static struct shared {
	volatile uint64_t runs;		/* begun */
	volatile uint64_t from_corpus;	/* of these */
	volatile bool corpus_done;
	volatile uint32_t ways, kept;
	size_t size;
	uint8_t data[MAX_SIZE];
} *shared;

static double clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* splitmix64 */
static uint64_t rand64(void)
{
	uint64_t z = rng += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static size_t below(size_t n)
{
	return n ? rand64() % n : 0;
}

/* ------------------------------------------------------------------------
 * Files
 */
static bool read_file(const char *path, struct input *in)
{
	FILE *f = fopen(path, "rb");

	if (!f)
		return false;
	in->data = malloc(MAX_SIZE);
	in->size = fread(in->data, 1, MAX_SIZE, f);
	fclose(f);
	return true;
}

static void write_file(const char *dir, const char *kind, const void *data,
		       size_t size, char *path, size_t room)
{
	uint64_t h = 0xcbf29ce484222325ull;
	FILE *f;

	for (size_t i = 0; i < size; i++)
		h = (h ^ ((const uint8_t *)data)[i]) * 0x100000001b3ull;
	mkdir(dir, 0777);
	snprintf(path, room, "%s/%s-%s-%016llx", dir, fuzz_name, kind,
		 (unsigned long long)h);
	f = fopen(path, "wb");
	if (!f || fwrite(data, 1, size, f) != size)
		fprintf(stderr, "# %s: %s\n", path, strerror(errno));
	if (f)
		fclose(f);
}

/* ------------------------------------------------------------------------
 * The child: make inputs and run them
 */
static void keep(const uint8_t *data, size_t size)
{
	uint32_t i = num_kept < MAX_KEPT ? num_kept++ : below(MAX_KEPT);
	char path[4096];

	free(kept[i].data);
	kept[i].data = malloc(size ? size : 1);
	kept[i].size = size;
	memcpy(kept[i].data, data, size);
	shared->kept = num_kept;
	if (keep_dir)
		write_file(keep_dir, "way", data, size, path, sizeof(path));
}

static void run_shared(void)
{
	shared->runs++;
	cover_begin();
	LLVMFuzzerTestOneInput(shared->data, shared->size);
	if (cover_news()) {
		shared->ways = cover_known();
		keep(shared->data, shared->size);
	}
}

static void run_input(const struct input *in)
{
	memcpy(shared->data, in->data, in->size);
	shared->size = in->size;
	run_shared();
}

static int not_hidden(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static void run_corpus(void)
{
	struct dirent **names;
	int n = corpus_dir ? scandir(corpus_dir, &names, not_hidden, alphasort) :
			     0;
	struct input in;
	char path[4096];

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", corpus_dir,
			 names[i]->d_name);
		if (read_file(path, &in)) {
			run_input(&in);
			free(in.data);
			shared->from_corpus++;
		}
		free(names[i]);
	}
	if (n > 0)
		free(names);
	shared->corpus_done = true;
}

static void make_random(void)
{
	shared->size = 1 + below(below(4) ? 256 : MAX_SIZE);
	for (size_t i = 0; i < shared->size; i++)
		shared->data[i] = (uint8_t)rand64();
}

static void remove_some(uint8_t *d, size_t at)
{
	size_t n = 1 + below(below(4) ? 8 : 64);

	if (n > shared->size - at)
		n = shared->size - at;
	memmove(d + at, d + at + n, shared->size - at - n);
	shared->size -= n;
}

/* Put in @n bytes of @from (NULL: random) at @at. */
static void insert(uint8_t *d, size_t at, const uint8_t *from, size_t n)
{
	uint8_t copy[MAX_SIZE];

	if (n > MAX_SIZE - shared->size)
		n = MAX_SIZE - shared->size;
	for (size_t i = 0; i < n; i++)
		copy[i] = from ? from[i] : (uint8_t)rand64();
	memmove(d + at + n, d + at, shared->size - at);
	memcpy(d + at, copy, n);
	shared->size += n;
}

static void change_once(uint8_t *d)
{
	size_t size = shared->size, at = below(size), from, n;
	const struct input *other;

	switch (below(8)) {
	case 0:
		d[at] ^= (uint8_t)(1u << below(8));
		break;
	case 1:
	case 2:
		d[at] = (uint8_t)rand64();
		break;
	case 3:
		d[at] = (uint8_t)(d[at] + below(9) - 4);
		break;
	case 4:
		remove_some(d, at);
		break;
	case 5:
		insert(d, at, NULL, 1 + below(16));
		break;
	case 6:				/* something of its own again */
		from = below(size);
		n = below(size - from < 64 ? size - from : 64);
		insert(d, at, d + from, n);
		break;
	default:			/* something of another */
		other = &kept[below(num_kept)];
		from = below(other->size);
		n = other->size - from;
		insert(d, at, other->data + from, below(n < 128 ? n : 128));
		break;
	}
}

static void make_changed(void)
{
	const struct input *in = &kept[below(num_kept)];

	memcpy(shared->data, in->data, in->size);
	shared->size = in->size;
	for (size_t n = 1 + below(below(4) ? 4 : 32); n > 0; n--) {
		if (!shared->size)
			shared->data[shared->size++] = (uint8_t)rand64();
		change_once(shared->data);
	}
}

static void child(double until)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run_corpus();
	while (shared->runs < max_runs && clock_now() < until) {
		if (!num_kept || below(16) == 0)
			make_random();
		else
			make_changed();
		run_shared();
	}
	exit(0);
}

/* ------------------------------------------------------------------------
 * The parent: watch
 */
static const char *watch(pid_t pid, int *status)
{
	uint64_t runs = 0;
	double since = clock_now();

	for (;;) {
		if (waitpid(pid, status, WNOHANG) == pid)
			return WIFEXITED(*status) && !WEXITSTATUS(*status) ?
			       NULL : "crash";
		if (shared->runs != runs) {
			runs = shared->runs;
			since = clock_now();
		} else if (clock_now() - since > HANG_SECONDS) {
			kill(pid, SIGKILL);
			waitpid(pid, status, 0);
			return "hang";
		}
		usleep(20000);
	}
}

static void tell_finding(const char *program, const char *kind, int status)
{
	char path[4096];

	write_file(out_dir, kind, shared->data, shared->size, path,
		   sizeof(path));
	printf("# %s (%s %d) at input %llu of seed %llu, %zu bytes\n", kind,
	       WIFSIGNALED(status) ? "signal" : "exit status",
	       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
	       (unsigned long long)shared->runs, (unsigned long long)seed,
	       shared->size);
	printf("# again with: %s %s\n", program, path);
}

static int fuzz(const char *program)
{
	double start = clock_now();
	const char *kind;
	bool in_corpus;
	int status = 0;
	pid_t pid;

	rng = seed;
	printf("1..2\n# seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		child(start + seconds);
	kind = pid < 0 ? "no child" : watch(pid, &status);
	if (kind)
		tell_finding(program, kind, status);
	in_corpus = kind && !shared->corpus_done;
	printf("# %llu inputs, %llu of the corpus, %u kept, %u ways, %.0f s\n",
	       (unsigned long long)shared->runs,
	       (unsigned long long)shared->from_corpus, shared->kept,
	       shared->ways, clock_now() - start);
	printf("%sok 1 - %s: inputs of the corpus\n", in_corpus ? "not " : "",
	       fuzz_name);
	printf("%sok 2 - %s: inputs made of a seed\n", kind ? "not " : "",
	       fuzz_name);
	return kind != NULL;
}

/* Not in a child: for a debugger. */
static int again(char **files, int num)
{
	printf("1..%d\n", num);
	for (int i = 0; i < num; i++) {
		struct input in;

		if (!read_file(files[i], &in)) {
			fprintf(stderr, "%s: %s\n", files[i], strerror(errno));
			return 2;
		}
		LLVMFuzzerTestOneInput(in.data, in.size);
		free(in.data);
		printf("ok %d - %s\n", i + 1, files[i]);
		fflush(stdout);
	}
	return 0;
}

static const char *beside(const char *program, const char *name)
{
	static char path[4096];
	const char *slash = strrchr(program, '/');

	snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash - program + 1) :
		 0, program, name);
	return path;
}

int main(int argc, char **argv)
{
	int i;

	out_dir = beside(argv[0], "findings");
	for (i = 1; i + 1 < argc && argv[i][0] == '-'; i += 2) {
		if (!strcmp(argv[i], "--seed"))
			seed = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--seconds"))
			seconds = strtod(argv[i + 1], NULL);
		else if (!strcmp(argv[i], "--runs"))
			max_runs = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--corpus"))
			corpus_dir = argv[i + 1];
		else if (!strcmp(argv[i], "--out"))
			out_dir = argv[i + 1];
		else if (!strcmp(argv[i], "--keep"))
			keep_dir = argv[i + 1];
		else
			break;
	}
	if (i < argc && argv[i][0] == '-') {
		fprintf(stderr, "usage: %s [--seed N] [--seconds N] [--runs N] [--corpus DIR] [--out DIR] [--keep DIR], or %s FILE...\n",
			argv[0], argv[0]);
		return 2;
	}
	if (i < argc)
		return again(argv + i, argc - i);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		perror("mmap");
		return 2;
	}
	return fuzz(argv[0]);
}
