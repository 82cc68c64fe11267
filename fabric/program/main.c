// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-switch: joins guests of QEMU by the switch of model/fabric.h, in real time and
 * without a privilege.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "program/app.h"
#include "program/peer.h"

struct signal_source {
	struct sw_source source;
	struct sw_app *app;
};

static int failed(const char *what)
{
	fprintf(stderr, "qhca-switch: %s: %s\n", what, strerror(errno));
	return -1;
}

static void signal_ready(struct sw_source *source, uint32_t events)
{
	(void)events;
	((struct signal_source *)source)->app->ending = true;
}

/* SIGTERM and SIGINT end the program in order. */
static int watch_signals(struct sw_app *app)
{
	struct signal_source *signals = calloc(1, sizeof(*signals));
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (!signals || sigprocmask(SIG_BLOCK, &set, NULL)) {
		free(signals);
		return failed("signals");
	}
	signals->app = app;
	signals->source.ready = signal_ready;
	signals->source.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (signals->source.fd < 0 || sw_loop_add(&app->loop, &signals->source, EPOLLIN)) {
		free(signals);
		return failed("signals");
	}
	return 0;
}

/* Descriptors for all ports, sockets and connections, so that none is refused later. */
static int allow_files(const struct sw_options *opt)
{
	rlim_t wanted = opt->config.ports + opt->num_ports + SW_MAX_CLIENTS + 32;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return failed("open files");
	if (limit.rlim_cur >= wanted)
		return 0;
	limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
	if (limit.rlim_cur < wanted || setrlimit(RLIMIT_NOFILE, &limit)) {
		fprintf(stderr, "qhca-switch: so many ports need %lu open files, which the limit (ulimit -Hn) does not allow\n",
			(unsigned long)wanted);
		return -1;
	}
	return 0;
}

static int open_ports(struct sw_app *app, const struct sw_options *opt)
{
	for (unsigned int i = 0; i < opt->num_ports; i++) {
		const struct sw_port_option *o = &opt->port[i];
		struct sw_port *port = sw_port_add(app, o->name, &o->set, true);

		if (!port)
			return failed(o->name);
		if (sw_listen(app, o->path, port, sw_peer_accepted))
			return -1;
	}
	if (opt->listen && sw_listen(app, opt->listen, NULL, sw_peer_accepted))
		return -1;
	if (opt->control && sw_listen(app, opt->control, NULL, sw_control_accepted))
		return -1;
	return 0;
}

static int start(struct sw_app *app, const struct sw_options *opt)
{
	struct fab_config cfg = opt->config;

	if (getrandom(&cfg.seed, sizeof(cfg.seed), 0) != sizeof(cfg.seed))
		return failed("random numbers");
	app->model = fab_switch_new(&cfg);
	if (!app->model)
		return failed("tables");
	if (allow_files(opt) || watch_signals(app))
		return -1;
	return open_ports(app, opt);
}

static int run_until_end(struct sw_app *app)
{
	while (!app->ending) {
		uint64_t deadline = fab_deadline(app->model);
		int err;

		err = sw_loop_round(&app->loop, deadline < app->resume ? deadline : app->resume);
		if (err) {
			errno = -err;
			return failed("waiting");
		}
		fab_advance(app->model, sw_loop_now(&app->loop));
		if (app->model->now >= app->resume)
			sw_listeners_resume(app);
		sw_peers_flush(app);
	}
	return 0;
}

static void shut_down(struct sw_app *app)
{
	sw_listeners_close(app);
	for (unsigned int i = 0; i < app->opt->config.ports; i++)
		if (app->port[i])
			sw_port_remove(app->port[i]);
	fab_switch_free(app->model);
	sw_loop_fini(&app->loop);
}

int main(int argc, char **argv)
{
	static struct sw_options opt;
	static struct sw_app app;
	int code = sw_options_read(&opt, argc, argv);

	if (code < 0) {
		app.opt = &opt;
		app.resume = FAB_NEVER;
		errno = -sw_loop_init(&app.loop);
		code = errno ? failed("events") : start(&app, &opt);
		if (!code)
			code = run_until_end(&app);
		shut_down(&app);
		code = code ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	sw_options_free(&opt);
	return code;
}
