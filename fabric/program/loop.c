// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The event loop. loop.h explains it. */
#include "program/loop.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S	1000000000ull
#define MAX_EVENTS	64

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t sw_loop_now(const struct sw_loop *loop)
{
	return clock_ns() - loop->start;
}

/* The timer has ended the wait; nothing else is to be done. */
static void timer_ready(struct sw_source *source, uint32_t events)
{
	struct sw_loop *loop = (struct sw_loop *)((char *)source - offsetof(struct sw_loop, timer));
	uint64_t expirations;

	(void)events;
	if (read(source->fd, &expirations, sizeof(expirations)) == sizeof(expirations))
		loop->armed = UINT64_MAX;
}

int sw_loop_init(struct sw_loop *loop)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &loop->timer };

	*loop = (struct sw_loop){ .armed = UINT64_MAX, .start = clock_ns() };
	loop->timer.ready = timer_ready;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (loop->epoll < 0 || loop->timer.fd < 0 ||
	    epoll_ctl(loop->epoll, EPOLL_CTL_ADD, loop->timer.fd, &event))
		return -errno;
	return 0;
}

static void free_closed(struct sw_loop *loop)
{
	struct sw_source **at = &loop->sources;

	loop->any_closed = false;
	while (*at) {
		struct sw_source *source = *at;

		if (source->fd >= 0) {
			at = &source->next;
			continue;
		}
		*at = source->next;
		if (source->release)
			source->release(source);
		free(source);
	}
}

void sw_loop_fini(struct sw_loop *loop)
{
	for (struct sw_source *source = loop->sources; source; source = source->next)
		sw_loop_close(loop, source);
	free_closed(loop);
	if (loop->timer.fd >= 0)
		close(loop->timer.fd);
	if (loop->epoll >= 0)
		close(loop->epoll);
}

int sw_loop_add(struct sw_loop *loop, struct sw_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	source->events = events;
	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, source->fd, &event))
		return -errno;
	source->next = loop->sources;
	loop->sources = source;
	return 0;
}

void sw_loop_wait_for(struct sw_loop *loop, struct sw_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (source->fd < 0 || source->events == events)
		return;
	source->events = events;
	/* Of a descriptor that is in the set this cannot fail. */
	epoll_ctl(loop->epoll, EPOLL_CTL_MOD, source->fd, &event);
}

void sw_loop_close(struct sw_loop *loop, struct sw_source *source)
{
	if (source->fd < 0)
		return;
	close(source->fd);
	source->fd = -1;
	loop->any_closed = true;
}

static void set_timer(struct sw_loop *loop, uint64_t deadline)
{
	struct itimerspec at = { .it_interval = { 0 } };
	uint64_t time;

	if (deadline == loop->armed)
		return;
	loop->armed = deadline;
	if (deadline != UINT64_MAX) {
		time = loop->start + deadline;
		at.it_value.tv_sec = (time_t)(time / NS_PER_S);
		at.it_value.tv_nsec = (long)(time % NS_PER_S);
	}
	timerfd_settime(loop->timer.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

int sw_loop_round(struct sw_loop *loop, uint64_t deadline)
{
	struct epoll_event event[MAX_EVENTS];
	int num;

	set_timer(loop, deadline);
	num = epoll_wait(loop->epoll, event, MAX_EVENTS, -1);
	if (num < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < num; i++) {
		struct sw_source *source = event[i].data.ptr;

		if (source->fd >= 0)
			source->ready(source, event[i].events);
	}
	if (loop->any_closed)
		free_closed(loop);
	return 0;
}
