// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca_save() and qhca_load(): the order of the sections, and what two of them must
 * agree about.
 *
 * Nothing here accesses the guest's memory.  It may come after the image, so what has
 * to be read from there is read by hca_restore(), when the machine goes on.
 */
#include "migrate.h"

#include <stdio.h>
#include <stdlib.h>

#include "hca.h"
#include "life.h"
#include "mem/mem_image.h"
#include "parts_image.h"
#include "queue/queue_image.h"
#include "sections.h"
#include "transport/qp_image.h"
#include "transport/withheld.h"
#include "wire/wire_image.h"

enum about { HCA_OF_ADAPTER, HCA_OF_FN };
enum when { HCA_ALWAYS, HCA_IF_INITIALISED, HCA_IF_WITHHELD };

struct section {
	const char *name;
	uint32_t version;
	enum about about;
	enum when when;
	uint64_t feature;
	void (*fields)(struct hca_image *im, struct hca_fn *fn);
};

#define SECTION(name, version, about, when, feature, fields) \
	{ name, version, about, when, feature, fields },

static const struct section limits[] = { HCA_SECTIONS_LIMITS(SECTION) };
static const struct section adapter[] = { HCA_SECTIONS_ADAPTER(SECTION) };
static const struct section of_fn[] = { HCA_SECTIONS_FN(SECTION) };
static const struct section shared[] = { HCA_SECTIONS_SHARED(SECTION) };

/* Sections that go together: all of them for one function, then for the next. */
static const struct group {
	const struct section *section;
	size_t num;
} groups[] = {
#define GROUP(g) { g, sizeof(g) / sizeof((g)[0]) }
	GROUP(limits), GROUP(adapter), GROUP(of_fn), GROUP(shared),
};
#define NUM_GROUPS (sizeof(groups) / sizeof(groups[0]))

/* ---- what sections must agree about */

static void check_members(struct hca_image *im, const struct hca_fn *fn)
{
	for (uint32_t i = 0; i < fn->cfg.max_mcast_members; i++) {
		const struct hca_mcast_member *m = &fn->port.member[i];

		hca_image_check(im, "member", !m->used ||
				hca_qp_is_ud(fn, m->qpn));
	}
	for (uint32_t i = 0; i < fn->flows.num; i++)
		hca_image_check(im, "QP of a rule",
				hca_qp_is_raw(fn, hca_flow_at(&fn->flows, i)->qpn));
}

/* A function that PCI does not have is as after a reset. */
static void check_disabled(struct hca_image *im, const struct hca_fn *fn)
{
	hca_image_check(im, "state of a function that is not enabled",
			!(fn->status & (QHCA_STATUS_ENABLED |
					QHCA_STATUS_FATAL)) &&
			!fn->s2.pin.waits && !fn->s2.eth.waits);
}

static void check_fn(struct hca_image *im, struct hca_fn *fn)
{
	im->section = "function";
	im->gvmi = fn->cfg.gvmi;
	if (!hca_is_dead(fn))
		check_members(im, fn);
	if (!fn->enabled)
		check_disabled(im, fn);
	im->section = NULL;
	im->gvmi = 0;
}

/* ---- order */

/* Is the section there, for the state as it is by now? */
static bool is_there(struct hca_image *im, const struct section *s,
		     const struct hca_fn *fn)
{
	if (s->when == HCA_IF_INITIALISED && !fn->initialised)
		return false;
	if (s->when == HCA_IF_WITHHELD && !fn->withheld.on)
		return false;
	if (!s->feature || fn->features & s->feature)
		return true;
	return im->loading && hca_image_follows(im, s->name, fn->cfg.gvmi);
}

static bool known(const char *name)
{
	for (size_t g = 0; g < NUM_GROUPS; g++)
		for (size_t i = 0; i < groups[g].num; i++)
			if (!strcmp(groups[g].section[i].name, name))
				return true;
	return false;
}

/* Read the header of the next section, which must be this one. */
static bool find(struct hca_image *im, const struct section *s,
		 const struct hca_fn *fn, uint32_t *version)
{
	char name[HCA_IMAGE_NAME_LEN];
	uint32_t gvmi;

	if (!hca_image_next(im, name, version, &gvmi)) {
		hca_image_refuse(im, "it ends before section %s", s->name);
		return false;
	}
	if (!known(name))
		hca_image_refuse(im, "section %s is unknown here: a newer version of the adapter has saved it",
				 name);
	else if (strcmp(name, s->name) || gvmi != fn->cfg.gvmi)
		hca_image_refuse(im, "section %s of function %u comes where section %s of function %u should be",
				 name, gvmi, s->name, fn->cfg.gvmi);
	else if (!*version || *version > s->version)
		hca_image_refuse(im, "section %s has version %u, and up to %u can be read here",
				 name, *version, s->version);
	return !hca_image_failed(im);
}

static void do_section(struct hca_image *im, const struct section *s,
		       struct hca_fn *fn)
{
	uint32_t version = s->version;

	if (hca_image_failed(im) || !is_there(im, s, fn))
		return;
	if (!im->loading)
		hca_image_section(im, s->name, version, fn->cfg.gvmi);
	else if (find(im, s, fn, &version))
		hca_image_enter(im, s->name, version, fn->cfg.gvmi);
	else
		return;
	s->fields(im, fn);
	hca_image_leave(im);
}

static void do_group(struct hca_image *im, struct hca *hca,
		     const struct group *g)
{
	bool each = g->section[0].about == HCA_OF_FN;

	for (uint16_t gvmi = 0; gvmi < (each ? HCA_MAX_FNS : 1); gvmi++)
		for (size_t i = 0; hca->fn[gvmi] && i < g->num; i++)
			do_section(im, &g->section[i], hca->fn[gvmi]);
}

static void do_image(struct hca_image *im, struct hca *hca)
{
	char name[HCA_IMAGE_NAME_LEN];
	uint32_t version, gvmi;

	for (size_t g = 0; g < NUM_GROUPS; g++) {
		do_group(im, hca, &groups[g]);
		for (uint16_t i = 0; im->loading && groups[g].section == of_fn &&
		     i < HCA_MAX_FNS && !hca_image_failed(im); i++) {
			if (!hca->fn[i])
				continue;
			check_fn(im, hca->fn[i]);
			hca_ports_publish(hca->fn[i]);
		}
	}
	if (im->loading && hca_image_next(im, name, &version, &gvmi))
		hca_image_refuse(im, "section %s follows the last one", name);
}

/* ---- saving */

void *qhca_save(struct qhca_hca *dev, size_t *len, char *err, size_t err_len)
{
	struct hca *hca = &dev->hca;
	struct hca_image im;

	if (!hca->frozen) {
		snprintf(err, err_len, "the adapter is not frozen");
		return NULL;
	}
	hca_image_write(&im, err, err_len);
	do_image(&im, hca);
	if (hca_image_failed(&im)) {
		free(im.out);
		return NULL;
	}
	*len = im.len;
	return im.out;
}

/* ---- loading */

/* As it is after qhca_create(), with the functions that it has. */
static void blank(struct hca *hca)
{
	for (uint16_t gvmi = HCA_MAX_FNS; gvmi-- > 0;)
		if (hca->fn[gvmi])
			hca_fn_blank(hca->fn[gvmi]);
	hca->late = 0;
	hca->late_fns = 0;
	hca->s2_unposted = 0;
	hca->active = 0;
	hca->rates.held = 0;
	memset(hca->gvm, 0, sizeof(hca->gvm));
	hca->wire.tx_blocked = false;
	hca->wire.loop_pi = hca->wire.loop_ci = 0;
	for (uint16_t gvmi = 0; gvmi < HCA_MAX_FNS; gvmi++)
		if (hca->fn[gvmi])
			hca_s2_reset(hca->fn[gvmi]);
}

/* An adapter like @hca, which calls nobody.  NULL: no memory. */
static struct qhca_hca *twin(const struct hca *hca, char *err, size_t err_len)
{
	static const struct qhca_host_ops ops = { .trace = NULL };
	struct qhca_hca *dev = qhca_create(&hca_pf(hca)->cfg, &ops, NULL, err,
					   err_len);
	bool ok = dev;

	for (uint16_t gvmi = 1; ok && gvmi < HCA_MAX_FNS; gvmi++)
		if (hca->fn[gvmi])
			ok = qhca_vf_create(dev, gvmi, &hca->fn[gvmi]->cfg, err,
					    err_len);
	if (ok)
		return dev;
	qhca_destroy(dev);
	return NULL;
}

static bool load(struct hca *hca, const void *image, size_t len, char *err,
		 size_t err_len)
{
	struct hca_image im;

	hca_image_read(&im, image, len, err, err_len);
	do_image(&im, hca);
	return !hca_image_failed(&im);
}

/* An image that a twin accepts is accepted here as well, unless memory gets short. */
bool qhca_load(struct qhca_hca *dev, const void *image, size_t len, char *err,
	       size_t err_len)
{
	struct hca *hca = &dev->hca;
	struct qhca_hca *other;
	bool ok;

	if (hca->entered && !hca->frozen) {
		snprintf(err, err_len, "the adapter is in the middle of a call");
		return false;
	}
	other = twin(hca, err, err_len);
	if (!other)
		return false;
	ok = load(&other->hca, image, len, err, err_len);
	qhca_destroy(other);
	if (!ok)
		return false;
	hca->entered = true;
	hca->frozen = true;
	blank(hca);
	ok = load(hca, image, len, err, err_len);
	for (uint16_t gvmi = 0; ok && gvmi < HCA_MAX_FNS; gvmi++)
		if (hca->fn[gvmi])
			hca->fn[gvmi]->restore = hca->fn[gvmi]->initialised &&
						 !hca_is_dead(hca->fn[gvmi]);
	if (!ok)
		blank(hca);
	return ok;
}

/* ---- going on */

static void restore_fn(struct hca_fn *fn)
{
	bool waited = fn->withheld.on;

	fn->restore = false;
	hca_withheld_write(fn);
	hca_cqs_restore(fn);
	hca_srqs_restore(fn);
	hca_qps_restore(fn);
	hca_pool_restore(fn);
	if (waited && fn->s2.mode == HCA_S2_ON)
		hca_fault_retry_stage2(fn);
	hca_fn_wake(fn);
	/* What is not acknowledged may have been lost on the way: excuse it once. */
	fn->hca->sched.was_blocked = true;
}

/* A dead function has nothing to read; one that may make no DMA has to wait. */
void hca_restore(struct hca *hca)
{
	for (uint16_t gvmi = 0; gvmi < HCA_MAX_FNS; gvmi++) {
		struct hca_fn *fn = hca->fn[gvmi];

		if (!fn || !fn->restore)
			continue;
		if (hca_is_dead(fn)) {
			fn->restore = false;
			hca_withheld_forget(fn);
		} else if (hca_fn_may_dma(fn)) {
			restore_fn(fn);
		}
	}
}

void qhca_may_dma(struct qhca_hca *dev, uint64_t now)
{
	struct hca *hca = &dev->hca;

	/* At the latest qhca_thaw() sees it. */
	if (!hca_enter(hca, now))
		return;
	hca_restore(hca);
	hca_leave(hca);
}
