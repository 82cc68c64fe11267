// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The table of MAC addresses. mac_table.h explains it. */
#include "mac_table.h"

#include <stdlib.h>
#include <string.h>

#define NONE	UINT32_MAX

uint64_t fab_mac_word(const uint8_t mac[6])
{
	uint64_t word = 0;

	for (int i = 0; i < 6; i++)
		word = word << 8 | mac[i];
	return word;
}

void fab_mac_bytes(uint64_t word, uint8_t mac[6])
{
	for (int i = 5; i >= 0; i--, word >>= 8)
		mac[i] = (uint8_t)word;
}

/* splitmix64 */
static uint64_t key_word(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

bool fab_mac_table_init(struct fab_mac_table *t, uint32_t size, uint32_t ports,
			uint64_t age, uint64_t seed)
{
	*t = (struct fab_mac_table){
		.size = size,
		.age = age,
		.oldest = NONE,
		.newest = NONE,
		.log_buckets = 1,
	};
	t->key[0] = key_word(&seed);
	/* A multiplier must be odd. */
	t->key[1] = key_word(&seed) | 1;
	while (1u << t->log_buckets < size)
		t->log_buckets++;
	t->entry = calloc(size, sizeof(*t->entry));
	t->bucket = malloc(sizeof(*t->bucket) << t->log_buckets);
	t->of_port = calloc(ports, sizeof(*t->of_port));
	if (!t->entry || !t->bucket || !t->of_port) {
		fab_mac_table_fini(t);
		return false;
	}
	memset(t->bucket, 0xff, sizeof(*t->bucket) << t->log_buckets);
	for (uint32_t i = 0; i < size; i++)
		t->entry[i].chain = i + 1 < size ? i + 1 : NONE;
	return true;
}

void fab_mac_table_fini(struct fab_mac_table *t)
{
	free(t->entry);
	free(t->bucket);
	free(t->of_port);
	*t = (struct fab_mac_table){ .oldest = NONE, .newest = NONE };
}

static uint32_t *bucket_of(const struct fab_mac_table *t, uint64_t mac)
{
	return &t->bucket[((mac ^ t->key[0]) * t->key[1]) >> (64 - t->log_buckets)];
}

static struct fab_mac_entry *look_up(const struct fab_mac_table *t, uint64_t mac)
{
	for (uint32_t i = *bucket_of(t, mac); i != NONE; i = t->entry[i].chain)
		if (t->entry[i].mac == mac)
			return &t->entry[i];
	return NULL;
}

static void unlink_by_time(struct fab_mac_table *t, struct fab_mac_entry *e)
{
	if (e->older == NONE)
		t->oldest = e->newer;
	else
		t->entry[e->older].newer = e->newer;
	if (e->newer == NONE)
		t->newest = e->older;
	else
		t->entry[e->newer].older = e->older;
}

static void link_newest(struct fab_mac_table *t, struct fab_mac_entry *e)
{
	uint32_t i = (uint32_t)(e - t->entry);

	e->older = t->newest;
	e->newer = NONE;
	if (t->newest == NONE)
		t->oldest = i;
	else
		t->entry[t->newest].newer = i;
	t->newest = i;
}

static void delete(struct fab_mac_table *t, struct fab_mac_entry *e)
{
	uint32_t i = (uint32_t)(e - t->entry), *at = bucket_of(t, e->mac);

	while (*at != i)
		at = &t->entry[*at].chain;
	*at = e->chain;
	unlink_by_time(t, e);
	t->of_port[e->port]--;
	e->chain = t->free;
	t->free = i;
	t->num--;
}

static bool insert(struct fab_mac_table *t, uint64_t mac, uint16_t port,
		   uint64_t now)
{
	uint32_t i = t->free, *bucket = bucket_of(t, mac);
	struct fab_mac_entry *e;

	if (i == NONE)
		return false;
	e = &t->entry[i];
	t->free = e->chain;
	*e = (struct fab_mac_entry){
		.mac = mac, .seen = now, .chain = *bucket, .port = port,
	};
	*bucket = i;
	link_newest(t, e);
	t->of_port[port]++;
	t->num++;
	return true;
}

void fab_mac_table_expire(struct fab_mac_table *t, uint64_t now)
{
	while (t->oldest != NONE && now - t->entry[t->oldest].seen > t->age)
		delete(t, &t->entry[t->oldest]);
}

enum fab_learned fab_mac_table_learn(struct fab_mac_table *t, uint64_t mac,
				     uint16_t port, uint32_t limit, uint64_t now)
{
	struct fab_mac_entry *e;
	enum fab_learned how = FAB_LEARNED_KNOWN;

	fab_mac_table_expire(t, now);
	e = look_up(t, mac);
	if ((!e || e->port != port) && t->of_port[port] >= limit)
		return FAB_LEARNED_REFUSED;
	if (!e)
		return insert(t, mac, port, now) ? FAB_LEARNED_NEW : FAB_LEARNED_REFUSED;
	if (e->port != port) {
		t->of_port[e->port]--;
		t->of_port[port]++;
		e->port = port;
		how = FAB_LEARNED_MOVED;
	}
	e->seen = now;
	unlink_by_time(t, e);
	link_newest(t, e);
	return how;
}

int fab_mac_table_find(struct fab_mac_table *t, uint64_t mac, uint64_t now)
{
	const struct fab_mac_entry *e;

	fab_mac_table_expire(t, now);
	e = look_up(t, mac);
	return e ? e->port : -1;
}

void fab_mac_table_forget(struct fab_mac_table *t, uint16_t port)
{
	uint32_t i, newer;

	for (i = t->oldest; i != NONE && t->of_port[port]; i = newer) {
		newer = t->entry[i].newer;
		if (t->entry[i].port == port)
			delete(t, &t->entry[i]);
	}
}

const struct fab_mac_entry *
fab_mac_table_next(const struct fab_mac_table *t, const struct fab_mac_entry *entry)
{
	uint32_t i = entry ? entry->newer : t->oldest;

	return i == NONE ? NULL : &t->entry[i];
}
