// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The engine's interface, as far as the small driver uses it, on a function that
 * VFIO passes to this process; and the memory of the guest.
 */
#include "guest.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bytes.h"

/* How long the device may take for a reset, and for a command. */
#define DEVICE_SECONDS	20
#define POLL_US		50

const char *guest_address;
struct host *guest_beside;

struct qhca_hca {
	struct vfio vfio;	/* first: guest.c */
	bool shares;		/* the memory of another one */
};

void host_die(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

uint32_t qhca_reg_read(struct qhca_hca *hca, uint16_t gvmi, uint32_t offset, uint64_t now)
{
	(void)gvmi;
	(void)now;
	return vfio_reg_read(&hca->vfio, offset);
}

static void wait_ready(struct qhca_hca *hca)
{
	for (int us = 0; us < DEVICE_SECONDS * 1000000; us += POLL_US) {
		uint32_t status = qhca_reg_read(hca, 0, QHCA_REG_STATUS, 0);

		if (status != UINT32_MAX && status & QHCA_STATUS_READY)
			return;
		usleep(POLL_US);
	}
	host_die("the function does not end its reset");
}

/* The driver expects that a reset is complete when this returns. */
void qhca_reg_write(struct qhca_hca *hca, uint16_t gvmi, uint32_t offset, uint32_t value,
		    uint64_t now)
{
	(void)gvmi;
	(void)now;
	vfio_reg_write(&hca->vfio, offset, value);
	if (offset == QHCA_REG_CONTROL && value & QHCA_CONTROL_RESET)
		wait_ready(hca);
}

void qhca_doorbell(struct qhca_hca *hca, uint16_t gvmi, uint32_t page, uint32_t offset,
		   uint64_t value, uint64_t now)
{
	(void)gvmi;
	(void)now;
	__sync_synchronize();
	*(volatile uint64_t *)(hca->vfio.doorbells + page * QHCA_DB_PAGE_SIZE + offset) = value;
}

/* The device works by itself: the driver calls this in loops that wait for it. */
struct qhca_run_result qhca_run(struct qhca_hca *hca, uint64_t now, unsigned int budget)
{
	(void)hca;
	(void)now;
	(void)budget;
	usleep(POLL_US);
	__sync_synchronize();
	return (struct qhca_run_result){ .deadline = QHCA_NEVER };
}

/* Called after a command in slot 0: waits for its end, or the function's. */
void host_run(struct host *h)
{
	const struct qhca_cmd_slot *slot = host_ptr(h, h->slots);

	for (int us = 0; us < DEVICE_SECONDS * 1000000; us += POLL_US) {
		if (!(get_le32(&slot->status) & QHCA_CMD_OWN) ||
		    qhca_reg_read(h->hca, 0, QHCA_REG_STATUS, 0) & QHCA_STATUS_FATAL)
			return;
		qhca_run(h->hca, 0, 0);
	}
}

void host_run_at(struct host *h, uint64_t now)
{
	h->now = now;
	host_run(h);
}

void host_open(struct host *h, uint64_t ram_len, const struct qhca_config *cfg)
{
	(void)cfg;
	h->of_fn[0] = h;
	h->ram_len = ram_len;
	h->hca = calloc(1, sizeof(*h->hca));
	h->hca->shares = guest_beside;
	vfio_open(&h->hca->vfio, guest_address, guest_beside ? &guest_beside->hca->vfio : NULL);
	if (guest_beside) {
		h->ram = guest_beside->ram;
		h->first = h->next = ram_len / 2;
		return;
	}
	h->ram = mmap(NULL, ram_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (h->ram == MAP_FAILED)
		host_die("no memory for the guest");
	h->first = h->next = HOST_PAGE;
}

void host_close(struct host *h)
{
	vfio_close(&h->hca->vfio);
	if (!h->hca->shares)
		munmap(h->ram, h->ram_len);
	free(h->hca);
}

/* A second function of the adapter; the process has the one that it has opened. */
void host_open_vf(struct host *h, uint64_t ram_len, struct host *pf, uint16_t gvmi,
		  const struct qhca_config *cfg)
{
	(void)h;
	(void)ram_len;
	(void)pf;
	(void)gvmi;
	(void)cfg;
	host_die("a process opens its function by host_open()");
}

void host_close_vf(struct host *h)
{
	host_close(h);
}

uint64_t host_alloc(struct host *h, uint64_t len, uint64_t align)
{
	uint64_t addr = (h->next + align - 1) & ~(align - 1);

	if (addr + len > h->ram_len)
		host_die("the guest has not enough memory");
	h->next = addr + len;
	memset(h->ram + addr, 0, len);
	return addr;
}

void *host_ptr(struct host *h, uint64_t addr)
{
	return h->ram + addr;
}

void host_watch(struct host *h, struct host_watch *w, uint64_t addr, uint64_t len)
{
	(void)h;
	(void)w;
	(void)addr;
	(void)len;
	host_die("accesses of a real device cannot be counted");
}
