// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The commands of control connections. */
#include "program/commands.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/app.h"

#define MAX_WHY		256

/* A command returns its result, or NULL after it has written @why. */
struct command {
	const char *name;
	json_t *(*run)(struct sw_app *app, const json_t *request, char why[MAX_WHY]);
	bool takes_port, takes_settings;
};

static json_t *json_u64(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *settings_of(const struct fab_settings *set)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b}", "rate", json_u64(set->rate),
			 "burst", json_u64(set->burst), "latency", json_u64(set->latency),
			 "queue", json_u64(set->queue), "macs", json_u64(set->macs),
			 "link", set->link);
}

static json_t *counters_of(const struct sw_app *app, const struct sw_port *port)
{
	const struct fab_counters *c = &app->model->port[port->number].count;
	json_t *object = json_object();

#define ADD_OF_MODEL(name) json_object_set_new(object, #name, json_u64(c->name));
	FAB_COUNTERS(ADD_OF_MODEL)
#undef ADD_OF_MODEL
#define ADD_OF_PROGRAM(name) json_object_set_new(object, #name, json_u64(port->count.name));
	SW_COUNTERS(ADD_OF_PROGRAM)
#undef ADD_OF_PROGRAM
	return object;
}

static json_t *port_of(const struct sw_app *app, const struct sw_port *port)
{
	const struct fab_port *p = &app->model->port[port->number];

	return json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "name", port->name,
			 "peer", port->peer != NULL, "held", json_u64(p->backlog.bytes),
			 "held_peak", json_u64(p->peak),
			 "macs", json_u64(app->model->table.of_port[port->number]),
			 "settings", settings_of(&p->set), "counters", counters_of(app, port));
}

/* The port that the request names, or NULL if it names none; @good is whether it may. */
static struct sw_port *named(const struct sw_app *app, const json_t *request, bool *good,
			     char why[MAX_WHY])
{
	const json_t *name = json_object_get(request, "port");
	struct sw_port *port = NULL;

	*good = !name;
	if (!name)
		return NULL;
	if (json_is_string(name))
		port = sw_port_find(app, json_string_value(name));
	if (!port)
		snprintf(why, MAX_WHY, "there is no such port");
	*good = port;
	return port;
}

static json_t *run_ports(struct sw_app *app, const json_t *request, char why[MAX_WHY])
{
	bool good;
	const struct sw_port *only = named(app, request, &good, why);
	json_t *array = good ? json_array() : NULL;

	for (unsigned int i = 0; array && i < app->opt->config.ports; i++)
		if (app->port[i] && (!only || only == app->port[i]))
			json_array_append_new(array, port_of(app, app->port[i]));
	return array;
}

static json_t *run_clear(struct sw_app *app, const json_t *request, char why[MAX_WHY])
{
	bool good;
	const struct sw_port *only = named(app, request, &good, why);

	for (unsigned int i = 0; good && i < app->opt->config.ports; i++) {
		if (!app->port[i] || (only && only != app->port[i]))
			continue;
		fab_port_clear(app->model, i);
		app->port[i]->count = (struct sw_counters){ .connections = 0 };
	}
	return good ? json_object() : NULL;
}

/* Changes one of the settings; NULL, or a sentence that says what is wrong. */
static const char *change_setting(struct fab_settings *set, const char *name,
				  const json_t *value)
{
	json_int_t n = json_integer_value(value);

	if (!strcmp(name, "link")) {
		if (!json_is_boolean(value))
			return "it is true or false";
		set->link = json_is_true(value);
		return NULL;
	}
	if (json_is_string(value))
		return sw_setting_parse(set, name, json_string_value(value));
	if (!json_is_integer(value) || n < 0)
		return "it is a number, or a string with a number and its unit";
	if (!sw_setting_number(set, name, (uint64_t)n))
		return "there is no such setting, or it is too large";
	return fab_settings_wrong(set);
}

static json_t *run_set(struct sw_app *app, const json_t *request, char why[MAX_WHY])
{
	json_t *settings = json_object_get(request, "settings"), *value;
	struct fab_settings set;
	const struct sw_port *port;
	const char *name, *wrong;
	bool good;

	port = named(app, request, &good, why);
	if (!port) {
		if (good)
			snprintf(why, MAX_WHY, "the member \"port\" is missing");
		return NULL;
	}
	if (!json_is_object(settings)) {
		snprintf(why, MAX_WHY, "the member \"settings\" is missing, or no object");
		return NULL;
	}
	set = app->model->port[port->number].set;
	json_object_foreach(settings, name, value) {
		wrong = change_setting(&set, name, value);
		if (wrong) {
			snprintf(why, MAX_WHY, "%.40s: %s", name, wrong);
			return NULL;
		}
	}
	fab_port_set(app->model, port->number, &set);
	return settings_of(&set);
}

static json_t *run_addresses(struct sw_app *app, const json_t *request, char why[MAX_WHY])
{
	const struct fab_mac_entry *e = NULL;
	json_t *array = json_array();
	uint8_t mac[6];
	char text[18];

	(void)request;
	(void)why;
	fab_mac_table_expire(&app->model->table, app->model->now);
	while ((e = fab_mac_table_next(&app->model->table, e))) {
		fab_mac_bytes(e->mac, mac);
		snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x",
			 mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
		json_array_append_new(array, json_pack(
			"{s:s, s:s, s:o}", "address", text, "port", app->port[e->port]->name,
			"idle", json_u64(app->model->now - e->seen)));
	}
	return array;
}

static json_t *run_status(struct sw_app *app, const json_t *request, char why[MAX_WHY])
{
	const struct fab_config *cfg = &app->opt->config;

	(void)request;
	(void)why;
	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "version", SW_VERSION,
			 "uptime", json_u64(app->model->now), "max_ports", json_u64(cfg->ports),
			 "table", json_u64(cfg->table), "age", json_u64(cfg->age));
}

static const struct command commands[] = {
	{ "ports", run_ports, true, false },
	{ "set", run_set, true, true },
	{ "clear", run_clear, true, false },
	{ "addresses", run_addresses, false, false },
	{ "status", run_status, false, false },
};

/* A member that nobody reads is an error of whoever wrote it. */
static bool members_known(const struct command *c, json_t *request, char why[MAX_WHY])
{
	const char *name;
	json_t *value;

	json_object_foreach(request, name, value) {
		if (!strcmp(name, "command") || !strcmp(name, "id") ||
		    (c->takes_port && !strcmp(name, "port")) ||
		    (c->takes_settings && !strcmp(name, "settings")))
			continue;
		snprintf(why, MAX_WHY, "%s has no member \"%.40s\"", c->name, name);
		return false;
	}
	return true;
}

static json_t *run(struct sw_app *app, json_t *request, char why[MAX_WHY])
{
	const char *name = json_string_value(json_object_get(request, "command"));

	if (!name) {
		snprintf(why, MAX_WHY, "a command is an object with the member \"command\"");
		return NULL;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(commands[i].name, name))
			return members_known(&commands[i], request, why) ?
			       commands[i].run(app, request, why) : NULL;
	snprintf(why, MAX_WHY, "the commands are ports, set, clear, addresses and status");
	return NULL;
}

/* The line of an answer, which has the id of the request if that has one. */
static char *answer_line(json_t *answer, json_t *request)
{
	json_t *id = json_object_get(request, "id");
	char *text, *line = NULL;
	size_t len;

	if (id)
		json_object_set(answer, "id", id);
	text = json_dumps(answer, JSON_COMPACT);
	json_decref(answer);
	json_decref(request);
	if (!text)
		return NULL;
	len = strlen(text);
	line = realloc(text, len + 2);
	if (!line) {
		free(text);
		return NULL;
	}
	memcpy(line + len, "\n", 2);
	return line;
}

/*
 * The answer that reports an error. It may quote a part of the request, which need not
 * be whole characters of UTF-8, as JSON requires.
 */
static char *error_line(char *why, json_t *request)
{
	for (char *p = why; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return answer_line(json_pack("{s:s}", "error", why), request);
}

char *sw_command_error(const char *why)
{
	return answer_line(json_pack("{s:s}", "error", why), NULL);
}

char *sw_command_line(struct sw_app *app, const char *line, size_t len)
{
	char why[MAX_WHY] = "there is no memory";
	json_error_t error;
	json_t *request = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error), *result;

	if (!request) {
		snprintf(why, sizeof(why), "this is no JSON: %s", error.text);
		return error_line(why, NULL);
	}
	result = run(app, request, why);
	if (result)
		return answer_line(json_pack("{s:o}", "return", result), request);
	return error_line(why, request);
}
