/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The parts of qhca-fuzz.
 *
 * The parent runs as root and starts everything else: in each round a few hostile
 * processes ("workers") of an unprivileged user, all the time a victim of another
 * user (qhca-verify, both ends), and a process that disrupts the device. What they
 * share is one page of memory (struct shared) and a log of operations.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <infiniband/verbs.h>

#define WORKERS		2
#define HOSTILE_UID	65534
#define VICTIM_UID	65533

/* -- random numbers: each thread's follow from the seed, round and thread --- */

struct rng {
	uint64_t state;
};

struct rng rng_of(uint64_t seed, uint64_t round, uint64_t thread);
uint64_t rnd(struct rng *rng);
/* 0 to @n - 1; 0 if @n is 0 */
uint32_t below(struct rng *rng, uint32_t n);
bool chance(struct rng *rng, unsigned int percent);
/* A number as programs get them wrong: small, or close to a power of two. */
uint64_t odd_number(struct rng *rng);

/* -- what the processes share ----------------------------------------------- */

struct shared {
	_Atomic uint32_t begun;		/* disruptions */
	_Atomic uint32_t ended;
	_Atomic uint64_t end_ns;	/* when the last one ended */
	_Atomic bool stop;		/* the time is up */
	_Atomic bool failed;
	_Atomic uint32_t victims;	/* runs of the victim that succeeded */
	_Atomic uint32_t excused;	/* ... that a disruption ended */
	_Atomic uint64_t ops;		/* of workers */
	_Atomic uint32_t faults;	/* signals that workers survived */
	_Atomic bool begun_work[WORKERS];
};

struct options {
	const char *device;
	uint64_t seed;
	unsigned int seconds;
	unsigned int first_round;	/* to go on where another run was */
	unsigned int patience;		/* seconds that anything may take */
	bool disrupt;
	bool fatal;			/* the host injects fatal errors */
	const char *dir;		/* files for the host, and the victim's output */
};

extern struct options opt;
extern struct shared *shared;

/* Prints to stdout, at once, with the time; fail() also ends the run. */
__attribute__((format(printf, 1, 2)))
void say(const char *format, ...);
__attribute__((format(printf, 1, 2)))
void fail(const char *format, ...);

/* Runs a shell command; its exit code, or -1. */
__attribute__((format(printf, 1, 2)))
int shell(const char *format, ...);

/* The calling process becomes @uid's and dies with its parent. */
void become(uid_t uid);

/* The index of the device's first link-local RoCEv2 GID if its port is active, or -1. */
int ready_gid(union ibv_gid *gid);

/* -- the log (log.c) ---------------------------------------------------- */

/*
 * Each thread has a ring of its last operations. A line names itself by LOG_MAGIC,
 * so that the host finds all of them in the memory of a guest whose kernel is dead.
 */
#define LOG_MAGIC	"QHCAFUZZ"
#define LOG_LINES	32
#define LOG_RINGS	16

struct log_line {
	char magic[8];
	char text[120];		/* round, thread, number, operation */
};

struct log_ring {
	struct log_line line[LOG_LINES];
};

void log_create(void);
struct log_ring *log_ring(unsigned int index);

/* -- a thread of a worker ----------------------------------------------------- */

enum kind {
	NO_KIND, PD, CQ, QP, MR, MW, AH, SRQ, XRCD, FLOW, DM, CHANNEL, ASYNC, COUNTERS, POOL,
	KINDS,
};

#define IDS	16

/* A context that is used without libibverbs: its file, and what is known of it. */
struct file {
	int fd;
	int async_fd;
	volatile uint64_t *doorbell;
	volatile uint32_t id[KINDS][IDS];	/* handles, or file descriptors */
	volatile uint32_t number[KINDS][IDS];	/* QPNs, CQNs, SRQNs, L_Keys */
};

struct worker;

struct thread {
	struct worker *worker;
	struct rng rng;
	struct log_ring *log;
	unsigned int index;
	unsigned int round;
	unsigned int ops;
	uint8_t *scratch;	/* for requests and answers */
	sigjmp_buf escape;	/* from faults in libibverbs, whose memory we scribble on */
	volatile bool armed;
};

/* How a round is made up: percent of each sort of operation. */
struct mix {
	uint8_t verbs, write, ioctl, queue, memory, process;
};

/* Where the queues of a QP that was made by hand are. */
struct queues {
	uint64_t addr;
	uint32_t rq, rec;	/* offsets */
};

struct worker {
	const struct mix *mix;
	char path[64];		/* of the device's file */
	struct queues queues[IDS];
	unsigned int index;
	union ibv_gid gid;
	int gid_index;
	struct ibv_context *ctx;
	struct file file;	/* opened by hand */
	struct file own;	/* libibverbs's, by hand */
	struct thread thread[2];
	uint8_t *arena;		/* all memory that regions and queues are made of */
};

/* The last thing that a thread did, before it does it. */
__attribute__((format(printf, 2, 3)))
void note(struct thread *t, const char *format, ...);

/* Never returns. The worker ends by itself some milliseconds after it has begun. */
void worker_run(unsigned int round, unsigned int index, unsigned int ms);

/* -- sorts of operations ------------------------------------------------------- */

void verbs_start(struct worker *w);
void verbs_step(struct thread *t);
/* Destroys what it can, in a random order. */
void verbs_end(struct thread *t);

void file_start(struct worker *w, struct file *f);
void write_step(struct thread *t, struct file *f);
void ioctl_step(struct thread *t, struct file *f);
void queue_step(struct thread *t);
void process_step(struct thread *t);

/* Any file of the worker. */
struct file *any_file(struct thread *t);
/* Mostly one of that kind. */
uint32_t any_id(struct thread *t, struct file *f, enum kind kind);
uint32_t any_number(struct thread *t, struct file *f, enum kind kind);
void keep_id(struct thread *t, struct file *f, enum kind kind, uint32_t id, uint32_t number);

/* Requests of the driver's own; return their length (udata.c). */
enum udata { NO_UDATA, U_CONTEXT, U_CQ, U_RESIZE, U_QP, U_SRQ, U_RESIZE_SRQ };
size_t udata_fill(struct thread *t, enum udata type, void *to);

/* -- memory (memory.c) ------------------------------------------------------ */

#define ARENA_SIZE	(4u << 20)
#define SCRATCH_SIZE	65536u

void memory_start(struct worker *w);
/* Makes pages come and go. */
void memory_step(struct thread *t);
/* Somewhere in the arena; @len is what is wanted at most. */
uint8_t *any_memory(struct thread *t, size_t *len);
uint8_t *any_pages(struct thread *t, size_t len);
/*
 * Where the kernel is to read or write @len bytes: @good, or an address that is
 * wrong, or becomes so meanwhile. The first @head bytes may be where the others are not.
 */
uint64_t any_pointer(struct thread *t, const void *good, size_t len, size_t head);

#endif
