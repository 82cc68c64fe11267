/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * qhca-sweep: what its files share.  sweep.c says what it is.
 */
#ifndef SWEEP_H
#define SWEEP_H

#include "lib/peer.h"

#define SMALL_MEMORY	4096u
#define LARGE_MEMORY	(8u << 20)	/* more translation entries than one page holds */

/* What exists before anything is to fail, made anew for each case. */
struct sweep {
	const char *device;
	int gid_index;
	struct ibv_context *ctx;
	struct ibv_device_attr_ex attr;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	uint8_t *mem;			/* LARGE_MEMORY */

	char pci[16];			/* address */
	char netdev[16];
};

/*
 * A case.  act() is what is to fail, or to succeed, and returns an error number;
 * prepare() is before and undo() after it if it has succeeded, and neither may
 * fail.  If it has failed, repair() says whether all is as if it had not been.
 */
struct sweep_case {
	const char *name;
	void (*prepare)(struct sweep *s);
	int (*act)(struct sweep *s);
	void (*undo)(struct sweep *s);
	void (*repair)(struct sweep *s);
	bool (*possible)(struct sweep *s);	/* NULL: always */
	bool no_context;		/* the device has no users meanwhile */
};

/* errno of a call that returns a pointer */
static inline int failed(const void *object)
{
	return object ? 0 : errno ? errno : EIO;
}

extern const struct sweep_case sweep_objects[], sweep_memory[], sweep_devices[];

#endif
