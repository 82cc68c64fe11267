// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The machine moves: another HCA goes on with the state of this one. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* Accesses of all functions. */
static uint64_t accesses(const struct host *pf)
{
	uint64_t n = 0;

	for (unsigned int gvmi = 0; gvmi <= QHCA_MAX_VFS; gvmi++)
		if (pf->of_fn[gvmi])
			n += pf->of_fn[gvmi]->reads + pf->of_fn[gvmi]->writes;
	return n;
}

static void *save(struct host *pf, size_t *len)
{
	char err[300];
	void *image = qhca_save(pf->hca, len, err, sizeof(err));

	if (!image)
		host_die("qhca_save() fails: %s", err);
	return image;
}

/* What was loaded is what was saved. */
static void check_same(struct host *pf, const uint8_t *image, size_t len)
{
	size_t len_again, i;
	uint8_t *again = save(pf, &len_again);

	for (i = 0; i < len && i < len_again && image[i] == again[i]; i++)
		continue;
	if (len != len_again || i != len)
		host_die("saved again, the image of %zu bytes has %zu and differs in byte %zu",
			 len, len_again, i);
	free(again);
}

/* What is the host's own, and not in the image. */
static void take_settings(struct host *pf, struct qhca_hca *from)
{
	struct qhca_fetch_cost cost;
	char err[100];

	qhca_fetch_cost_get(from, &cost);
	qhca_fetch_cost_set(pf->hca, &cost, err, sizeof(err));
}

size_t host_migrate(struct host *pf, uint64_t skew)
{
	struct qhca_hca *old = pf->hca;
	uint64_t before;
	char err[300];
	size_t len;
	void *image;

	if (!qhca_is_frozen(old) &&
	    !qhca_freeze(old, host_clock(pf), err, sizeof(err)))
		host_die("qhca_freeze() fails: %s", err);
	before = accesses(pf);
	image = save(pf, &len);
	host_create(pf);
	take_settings(pf, old);
	qhca_destroy(old);
	pf->skew = skew;
	if (!qhca_load(pf->hca, image, len, err, sizeof(err)))
		host_die("qhca_load() fails: %s", err);
	check_same(pf, image, len);
	free(image);
	for (unsigned int gvmi = 1; gvmi <= QHCA_MAX_VFS; gvmi++)
		if (pf->of_fn[gvmi])
			pf->of_fn[gvmi]->hca = pf->hca;
	if (accesses(pf) != before)
		host_die("the HCA has accessed memory while it was frozen");
	qhca_thaw(pf->hca, host_clock(pf));
	return len;
}
