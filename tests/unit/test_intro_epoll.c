// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What an end that leaves wake-ups unread relies on: how Linux reports them in an epoll set
 * with EPOLLET.  These tests would fail with a kernel that does it otherwise.
 */
#define _GNU_SOURCE
#include "unit.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "intro.h"

struct world {
	int fd[2];			/* the reader's, and its peer's */
	int set;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0,
				    w->fd), 0);
	w->set = epoll_create1(0);
	assert_true(w->set >= 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 2; i++)
		if (w->fd[i] >= 0)
			close(w->fd[i]);
	close(w->set);
	free(w);
	return 0;
}

static void add(struct world *w)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET };

	assert_int_equal(epoll_ctl(w->set, EPOLL_CTL_ADD, w->fd[0], &event), 0);
}

/* The events that the set reports now, 0: none. */
static uint32_t reported(struct world *w)
{
	struct epoll_event event;
	int num = epoll_wait(w->set, &event, 1, 0);

	assert_true(num >= 0);
	return num ? event.events : 0;
}

/* Each message is reported, once, although those before it are unread. */
static void test_messages(void **state)
{
	struct world *w = *state;

	add(w);
	assert_int_equal(reported(w), 0);
	for (int i = 0; i < 20; i++) {
		hca_intro_wake(w->fd[1]);
		assert_int_equal(reported(w), EPOLLIN);
		assert_int_equal(reported(w), 0);
	}
	hca_intro_wake(w->fd[1]);
	hca_intro_wake(w->fd[1]);
	assert_int_equal(reported(w), EPOLLIN);
	assert_int_equal(reported(w), 0);
}

/* A message that is read before it is reported is not reported; later ones are. */
static void test_read(void **state)
{
	struct world *w = *state;

	add(w);
	hca_intro_wake(w->fd[1]);
	assert_true(hca_intro_woken(w->fd[0]));
	assert_int_equal(reported(w), 0);
	hca_intro_wake(w->fd[1]);
	assert_int_equal(reported(w), EPOLLIN);
}

static void test_message_before_set(void **state)
{
	struct world *w = *state;

	hca_intro_wake(w->fd[1]);
	add(w);
	assert_int_equal(reported(w), EPOLLIN);
	assert_int_equal(reported(w), 0);
}

/* A message that finds no room is not reported.  Those after a look at some are. */
static void test_full(void **state)
{
	struct world *w = *state;

	add(w);
	for (int i = 0; i < 10000; i++)
		hca_intro_wake(w->fd[1]);
	assert_int_equal(reported(w), EPOLLIN);
	hca_intro_wake(w->fd[1]);
	assert_int_equal(reported(w), 0);
	assert_true(hca_intro_woken(w->fd[0]));
	hca_intro_wake(w->fd[1]);
	assert_int_equal(reported(w), EPOLLIN);
}

/* The end of the peer is reported behind messages that are unread. */
static void test_end(void **state)
{
	struct world *w = *state;

	add(w);
	for (int i = 0; i < 3; i++)
		hca_intro_wake(w->fd[1]);
	assert_int_equal(reported(w), EPOLLIN);
	close(w->fd[1]);
	w->fd[1] = -1;
	assert_int_equal(reported(w), EPOLLIN | EPOLLHUP | EPOLLRDHUP);
	assert_int_equal(reported(w), 0);
	assert_false(hca_intro_woken(w->fd[0]));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(test_messages),
	TEST(test_read),
	TEST(test_message_before_set),
	TEST(test_full),
	TEST(test_end),
};

TEST_MAIN(tests)
