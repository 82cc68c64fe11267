// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Control connections. Each line that comes is a command in JSON, and has a line for an
 * answer, in their order. While an answer waits to be read, the program reads no further
 * commands of that connection. When there are as many connections as there may be, a new
 * one takes the place of the one that has been silent longest.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "program/app.h"
#include "program/commands.h"

/* Bytes of a line with its end */
#define MAX_LINE	65536u

struct sw_client {
	struct sw_source source;
	struct sw_app *app;
	char *answer;			/* or NULL */
	size_t answer_len, answer_sent;
	size_t have;			/* bytes in @line */
	bool ended;			/* no more bytes will come */
	bool too_long;			/* nothing is read any more */
	uint64_t active;		/* app->activity when it was last served */
	char line[MAX_LINE];
};

static void client_release(struct sw_source *source)
{
	struct sw_client *client = (struct sw_client *)source;

	free(client->answer);
}

static void client_close(struct sw_client *client)
{
	struct sw_app *app = client->app;

	for (unsigned int i = 0; i < SW_MAX_CLIENTS; i++)
		if (app->client[i] == client)
			app->client[i] = NULL;
	sw_loop_close(&app->loop, &client->source);
}

/*
 * Takes one line out of the buffer, if a line is complete, and makes its answer. Returns
 * false if there is no memory for it.
 */
static bool next_answer(struct sw_client *client)
{
	char *end = memchr(client->line, '\n', client->have);
	size_t len = end ? (size_t)(end - client->line) : 0;

	if (client->too_long || (!end && client->have < MAX_LINE))
		return true;
	if (end) {
		client->answer = sw_command_line(client->app, client->line, len);
		client->have -= len + 1;
		memmove(client->line, end + 1, client->have);
	} else {
		client->answer = sw_command_error("a line has at most 65535 characters");
		client->too_long = true;
	}
	if (!client->answer)
		return false;
	client->answer_len = strlen(client->answer);
	client->answer_sent = 0;
	return true;
}

/* Returns false if the connection is of no more use. */
static bool send_answer(struct sw_client *client)
{
	ssize_t n;

	while (client->answer_sent < client->answer_len) {
		n = send(client->source.fd, client->answer + client->answer_sent,
			 client->answer_len - client->answer_sent, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		client->answer_sent += (size_t)n;
	}
	free(client->answer);
	client->answer = NULL;
	return true;
}

static bool receive_some(struct sw_client *client)
{
	ssize_t n = recv(client->source.fd, client->line + client->have,
			 MAX_LINE - client->have, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	client->have += (size_t)n;
	client->ended = !n;
	return true;
}

/* Answers the lines that have come, until an answer must wait. */
static bool answer_all(struct sw_client *client)
{
	do {
		if (!next_answer(client))
			return false;
		if (!client->answer)
			return true;
		if (!send_answer(client))
			return false;
	} while (!client->answer);
	return true;
}

static void client_ready(struct sw_source *source, uint32_t events)
{
	struct sw_client *client = (struct sw_client *)source;
	bool good = true;

	(void)events;
	client->active = ++client->app->activity;
	if (client->answer)
		good = send_answer(client);
	else
		good = receive_some(client);
	if (good && !client->answer)
		good = answer_all(client);
	if (!good || (!client->answer && (client->ended || client->too_long)))
		client_close(client);
	else
		sw_loop_wait_for(&client->app->loop, source, client->answer ? EPOLLOUT : EPOLLIN);
}

/* A free place; if there is none, that of the client that has been silent longest. */
static struct sw_client **place_for_client(struct sw_app *app)
{
	struct sw_client **place = &app->client[0];

	for (unsigned int i = 0; i < SW_MAX_CLIENTS; i++) {
		if (!app->client[i])
			return &app->client[i];
		if (app->client[i]->active < (*place)->active)
			place = &app->client[i];
	}
	client_close(*place);
	return place;
}

void sw_control_accepted(struct sw_listener *listener, int fd)
{
	struct sw_app *app = listener->app;
	struct sw_client *client = calloc(1, sizeof(*client));

	if (!client) {
		close(fd);
		return;
	}
	client->source.fd = fd;
	client->source.ready = client_ready;
	client->source.release = client_release;
	client->app = app;
	if (sw_loop_add(&app->loop, &client->source, EPOLLIN)) {
		close(fd);
		free(client);
		return;
	}
	client->active = ++app->activity;
	*place_for_client(app) = client;
}
