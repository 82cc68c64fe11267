// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory, DMA, interrupts and frames of the fake host, and the engine on it */
#include "host.h"
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void host_die(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

/* ---- what the engine calls */

static void meanwhile(struct host *h, enum host_call call)
{
	if (h->meanwhile)
		h->meanwhile(h, call);
}

static void count_watched(struct host *h, uint64_t addr, size_t len, bool write)
{
	for (struct host_watch *w = h->watches; w; w = w->next)
		if (addr < w->first + w->len && w->first < addr + len)
			(*(write ? &w->writes : &w->reads))++;
}

static bool dma_ok(struct host *h, uint64_t addr, size_t len)
{
	if (h->fail_in && !--h->fail_in) {
		h->fail_in = h->fail_on;
		h->failed++;
		return false;
	}
	if (h->bad_last && addr <= h->bad_last && addr + len > h->bad_first)
		return false;
	return len && addr >= HOST_PAGE && addr <= h->ram_len &&
	       len <= h->ram_len - addr;
}

/* The host of the function in whose name the device calls. */
static struct host *host_of(struct host *pf, uint16_t gvmi)
{
	if (gvmi > QHCA_MAX_VFS || !pf->of_fn[gvmi])
		host_die("the device calls in the name of GVMI %u, which does not exist",
			 gvmi);
	return pf->of_fn[gvmi];
}

/* Where the bytes at machine address @addr are; they do not leave their page. */
static uint8_t *frame_of(struct host *pf, struct qhca_requester who,
			 uint64_t addr, size_t *len)
{
	uint64_t index = (addr - HOST_FRAMES) / HOST_PAGE, in = addr % HOST_PAGE;
	const struct host_frame *f;

	if (addr < HOST_FRAMES || index >= pf->num_frames)
		host_die("function %u reaches machine address %#llx, which nobody gave it",
			 who.gvmi, (unsigned long long)addr);
	f = &pf->frames[index];
	if (f->gvmi != who.gvmi)
		host_die("function %u reaches a page of function %u (0: given up)",
			 who.gvmi, f->gvmi);
	if (who.uplink_attr != pf->of_fn[who.gvmi]->s2_attr)
		host_die("function %u has attribute %#x", who.gvmi,
			 who.uplink_attr);
	if (*len > HOST_PAGE - in)
		*len = HOST_PAGE - in;
	return pf->of_fn[who.gvmi]->ram + f->page + in;
}

static void frames_copy(struct host *pf, struct qhca_requester who,
			uint64_t addr, uint8_t *buf, size_t len, bool write)
{
	while (len) {
		size_t n = len;
		uint8_t *at = frame_of(pf, who, addr, &n);

		memcpy(write ? at : buf, write ? buf : at, n);
		addr += n;
		buf += n;
		len -= n;
	}
}

static bool access_begins(struct host *h, uint64_t addr, size_t len, bool write)
{
	(*(write ? &h->writes : &h->reads))++;
	count_watched(h, addr, len, write);
	meanwhile(h, HOST_DMA);
	return !h->no_dma && dma_ok(h, addr, len);
}

static bool may_dma(void *host, uint16_t gvmi)
{
	return !host_of(host, gvmi)->no_dma;
}

static int dma_read(void *host, struct qhca_requester who, uint64_t addr,
		    void *buf, size_t len)
{
	struct host *h = host_of(host, who.gvmi);

	if (h->s2_root && who.gvmi) {
		h->reads++;
		meanwhile(h, HOST_DMA);
		if (h->no_dma)
			return -1;
		frames_copy(host, who, addr, buf, len, false);
		return 0;
	}
	if (!access_begins(h, addr, len, false))
		return -1;
	memcpy(buf, h->ram + addr, len);
	return 0;
}

static int dma_write(void *host, struct qhca_requester who, uint64_t addr,
		     const void *buf, size_t len)
{
	struct host *h = host_of(host, who.gvmi);

	if (h->s2_root && who.gvmi) {
		h->writes++;
		meanwhile(h, HOST_DMA);
		if (h->no_dma)
			return -1;
		frames_copy(host, who, addr, (uint8_t *)buf, len, true);
		return 0;
	}
	if (!access_begins(h, addr, len, true))
		return -1;
	memcpy(h->ram + addr, buf, len);
	return 0;
}

static void raise_irq(void *host, uint16_t gvmi, unsigned int vector)
{
	struct host *h = host_of(host, gvmi);

	if (vector >= QHCA_MAX_VECTORS)
		host_die("the device raises vector %u, at most %u are allowed",
			 vector, QHCA_MAX_VECTORS - 1);
	h->irqs[vector]++;
	meanwhile(h, HOST_IRQ);
}

static void *tx_reserve(void *host, size_t len)
{
	struct host *h = host;

	if (len > sizeof(h->frame))
		host_die("the device asks for room for a frame of %zu bytes, at most %zu are allowed",
			 len, sizeof(h->frame));
	meanwhile(h, HOST_TX);
	h->reserved = 0;
	if (h->tx_full || (h->tx_room && !h->tx_room(h->tx_arg)))
		return NULL;
	h->reserved = len;
	/* An older frame must not leave octets here that the device could send again. */
	memset(h->frame, 0xee, len);
	return h->frame;
}

static void record(struct host *h, size_t len)
{
	if (!h->sent)
		h->sent = calloc(HOST_MAX_SENT, sizeof(*h->sent));
	if (h->num_sent < HOST_MAX_SENT) {
		h->sent[h->num_sent].len = len;
		memcpy(h->sent[h->num_sent].data, h->frame, len);
	}
	h->num_sent++;
}

static void tx_commit(void *host, size_t len)
{
	struct host *h = host;

	if (len > h->reserved)
		host_die("the device sends %zu bytes and has asked for room for %zu",
			 len, h->reserved);
	if (h->tx)
		h->tx(h->tx_arg, h->frame, len);
	else
		record(h, len);
	h->reserved = 0;
	meanwhile(h, HOST_TX);
}

static void trace(void *host, uint16_t gvmi, enum qhca_trace_id id, uint64_t a,
		  uint64_t b, uint64_t c, uint64_t d)
{
	struct host *h = host_of(host, gvmi);

	if (h->trace)
		h->trace(h, id, a, b, c, d);
}

/* ---- life */

static void open_memory(struct host *h, uint64_t ram_len, uint16_t gvmi)
{
	memset(h, 0, sizeof(*h));
	h->gvmi = gvmi;
	h->ram_len = ram_len;
	h->ram = calloc(1, ram_len);
	h->first = h->next = HOST_PAGE;
}

void host_create(struct host *h)
{
	static const struct qhca_host_ops ops = {
		.may_dma = may_dma,
		.dma_read = dma_read, .dma_write = dma_write,
		.dma_write_release = dma_write, .raise_irq = raise_irq,
		.tx_reserve = tx_reserve, .tx_commit = tx_commit,
		.trace = trace,
	};
	char err[200];

	h->hca = qhca_create(h->made[0], &ops, h, err, sizeof(err));
	if (!h->hca)
		host_die("qhca_create() fails: %s", err);
	for (uint16_t gvmi = 1; gvmi <= QHCA_MAX_VFS; gvmi++)
		if (h->made[gvmi] && !qhca_vf_create(h->hca, gvmi, h->made[gvmi],
						     err, sizeof(err)))
			host_die("qhca_vf_create() fails: %s", err);
}

static void make(struct host *pf, uint16_t gvmi, const struct qhca_config *cfg)
{
	free(pf->made[gvmi]);
	pf->made[gvmi] = malloc(sizeof(*cfg));
	*pf->made[gvmi] = *cfg;
}

void host_open(struct host *h, uint64_t ram_len, const struct qhca_config *cfg)
{
	open_memory(h, ram_len, 0);
	h->of_fn[0] = h;
	make(h, 0, cfg);
	host_create(h);
	qhca_set_link(h->hca, true, host_clock(h));
}

void host_close(struct host *h)
{
	qhca_destroy(h->hca);
	for (unsigned int gvmi = 0; gvmi <= QHCA_MAX_VFS; gvmi++)
		free(h->made[gvmi]);
	free(h->sent);
	free(h->frames);
	free(h->ram);
}

void host_open_vf(struct host *h, uint64_t ram_len, struct host *pf,
		  uint16_t gvmi, const struct qhca_config *cfg)
{
	char err[200];

	open_memory(h, ram_len, gvmi);
	make(pf, gvmi, cfg);
	h->now = pf->now;
	h->hca = pf->hca;
	h->of_fn[0] = pf;
	pf->of_fn[gvmi] = h;
	if (!qhca_vf_create(h->hca, gvmi, cfg, err, sizeof(err)))
		host_die("qhca_vf_create() fails: %s", err);
	qhca_vf_enable(h->hca, gvmi, true, host_clock(h));
}

void host_close_vf(struct host *h)
{
	qhca_vf_enable(h->hca, h->gvmi, false, host_clock(h));
	h->of_fn[0]->of_fn[h->gvmi] = NULL;
	free(h->ram);
}

/* ---- memory */

uint64_t host_alloc(struct host *h, uint64_t len, uint64_t align)
{
	uint64_t addr = (h->next + align - 1) & ~(align - 1);

	if (addr > h->ram_len || len > h->ram_len - addr)
		host_die("the host's memory of %llu bytes is full",
			 (unsigned long long)h->ram_len);
	h->next = addr + len;
	memset(h->ram + addr, 0, len);
	return addr;
}

void *host_ptr(struct host *h, uint64_t addr)
{
	if (addr < HOST_PAGE || addr >= h->ram_len)
		host_die("the host has no memory at address %#llx",
			 (unsigned long long)addr);
	return h->ram + addr;
}

void host_watch(struct host *h, struct host_watch *w, uint64_t addr,
		uint64_t len)
{
	*w = (struct host_watch){ .first = addr, .len = len, .next = h->watches };
	h->watches = w;
}

/* ---- time */

void host_run(struct host *h)
{
	for (int i = 0; i < HOST_RUN_LIMIT; i++)
		if (!qhca_run(h->hca, host_clock(h), 64).more &&
		    (!h->idle || !h->idle(h)))
			return;
	host_die("the engine does not become idle");
}

void host_run_at(struct host *h, uint64_t now)
{
	h->now = now;
	host_run(h);
}
