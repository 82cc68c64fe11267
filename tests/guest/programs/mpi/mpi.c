// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An MPI program of two or more processes that checks each byte that it receives: messages
 * of many sizes, both ways at once, collectives, and, unless the argument is "two-sided",
 * one-sided access. The process of rank 0 prints "all data right"; wrong data ends all of
 * them.
 */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST (1 << 20)

static int rank, ranks;

static void fail(const char *what, size_t size)
{
	fprintf(stderr, "rank %d: wrong data: %s of %zu bytes\n", rank, what, size);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* What a process sends in a step, so that no two messages look alike. */
static uint8_t octet(int from, size_t step, size_t at)
{
	return (uint8_t)(at * 7 + (at >> 8) * 13 + step * 31 + (size_t)from * 101);
}

static void fill(uint8_t *buf, size_t size, size_t step)
{
	for (size_t i = 0; i < size; i++)
		buf[i] = octet(rank, step, i);
}

static void check(const char *what, const uint8_t *buf, size_t size, int from, size_t step)
{
	for (size_t i = 0; i < size; i++)
		if (buf[i] != octet(from, step, i))
			fail(what, size);
}

/* Each to the next and from the one before, eagerly or by rendezvous as sizes go. */
static void messages(uint8_t *out, uint8_t *in)
{
	int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;

	for (size_t size = 0, step = 0; size <= LARGEST; size = size ? size * 4 : 1, step++) {
		fill(out, size, step);
		memset(in, 0, size);
		MPI_Sendrecv(out, (int)size, MPI_BYTE, next, 1, in, (int)size, MPI_BYTE, last, 1,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check("message", in, size, last, step);
	}
}

/* Many under way at once, received by tag in another order than they were sent. */
static void tags(uint8_t *out, uint8_t *in)
{
	enum { COUNT = 32, SIZE = 3000 };
	int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
	MPI_Request requests[2 * COUNT];

	for (int i = 0; i < COUNT; i++) {
		fill(out + i * SIZE, SIZE, (size_t)i);
		MPI_Irecv(in + i * SIZE, SIZE, MPI_BYTE, last, COUNT - i, MPI_COMM_WORLD,
			  &requests[i]);
	}
	for (int i = 0; i < COUNT; i++)
		MPI_Isend(out + i * SIZE, SIZE, MPI_BYTE, next, i + 1, MPI_COMM_WORLD,
			  &requests[COUNT + i]);
	MPI_Waitall(2 * COUNT, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < COUNT; i++)
		check("tagged message", in + i * SIZE, SIZE, last, (size_t)(COUNT - i - 1));
}

static void collectives(uint8_t *out, uint8_t *in)
{
	enum { SIZE = 100000 };
	long mine = rank + 1, sum = 0;

	if (rank == 0)
		fill(in, SIZE, 3);
	MPI_Bcast(in, SIZE, MPI_BYTE, 0, MPI_COMM_WORLD);
	check("broadcast", in, SIZE, 0, 3);
	MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (sum != (long)ranks * (ranks + 1) / 2)
		fail("sum", sizeof(sum));
	fill(out, SIZE, 5);
	MPI_Allgather(out, SIZE, MPI_BYTE, in, SIZE, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < ranks; i++)
		check("gathered", in + (size_t)i * SIZE, SIZE, i, 5);
}

static void one_sided(uint8_t *out, uint8_t *in)
{
	enum { SIZE = 50000 };
	int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
	long one = 1, *count = NULL;
	uint8_t *window_of_bytes;
	MPI_Win bytes, counter;

	MPI_Win_allocate(SIZE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window_of_bytes, &bytes);
	fill(out, SIZE, 9);
	MPI_Win_fence(0, bytes);
	MPI_Put(out, SIZE, MPI_BYTE, next, 0, SIZE, MPI_BYTE, bytes);
	MPI_Win_fence(0, bytes);
	check("put", window_of_bytes, SIZE, last, 9);
	MPI_Get(in, SIZE, MPI_BYTE, next, 0, SIZE, MPI_BYTE, bytes);
	MPI_Win_fence(0, bytes);
	check("get", in, SIZE, rank, 9);
	MPI_Win_free(&bytes);

	MPI_Win_allocate(sizeof(*count), sizeof(*count), MPI_INFO_NULL, MPI_COMM_WORLD, &count,
			 &counter);
	*count = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 50; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, counter);
		MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, counter);
		MPI_Win_unlock(0, counter);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, counter);
	if (rank == 0 && *count != 50L * ranks)
		fail("accumulated", sizeof(*count));
	MPI_Win_unlock(rank, counter);
	MPI_Win_free(&counter);
}

int main(int argc, char **argv)
{
	uint8_t *out, *in;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	out = malloc(LARGEST);
	in = malloc(LARGEST);
	if (!out || !in || ranks < 2 || ranks > 10)
		fail("memory or number of processes", LARGEST);
	messages(out, in);
	tags(out, in);
	collectives(out, in);
	if (argc < 2 || strcmp(argv[1], "two-sided"))
		one_sided(out, in);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("all data right, %d processes\n", ranks);
	MPI_Finalize();
	free(in);
	free(out);
	return 0;
}
