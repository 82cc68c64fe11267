// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Ports of the program by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/app.h"
#include "program/peer.h"

struct sw_port *sw_port_add(struct sw_app *app, const char *name,
			    const struct fab_settings *set, bool permanent)
{
	struct sw_port *port = calloc(1, sizeof(*port));
	int number;

	if (!port)
		return NULL;
	number = fab_port_add(app->model, set);
	if (number < 0) {
		free(port);
		return NULL;
	}
	port->app = app;
	port->number = (unsigned int)number;
	port->permanent = permanent;
	if (name)
		snprintf(port->name, sizeof(port->name), "%s", name);
	else
		snprintf(port->name, sizeof(port->name), "%d", number);
	app->port[number] = port;
	return port;
}

void sw_port_remove(struct sw_port *port)
{
	if (port->peer)
		sw_peer_close(port->peer);
	fab_port_remove(port->app->model, port->number);
	port->app->port[port->number] = NULL;
	free(port);
}

struct sw_port *sw_port_find(const struct sw_app *app, const char *name)
{
	for (unsigned int i = 0; i < app->opt->config.ports; i++)
		if (app->port[i] && !strcmp(app->port[i]->name, name))
			return app->port[i];
	return NULL;
}
