// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory, DMA, interrupts and frames of the fake host, and the engine on it */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"

void md_die(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

uint32_t md_rand(struct md *md)
{
	md->rng ^= md->rng << 13;
	md->rng ^= md->rng >> 17;
	md->rng ^= md->rng << 5;
	return md->rng;
}

/* ---- host operations */

static bool dma_bad(struct md *md, uint64_t addr, size_t len)
{
	if (md->dma_hook)
		md->dma_hook(md);
	if (md->fail_dma && !--md->fail_dma) {
		md->fail_dma = md->fail_dma_on;
		md->dma_failed++;
		return true;
	}
	return addr < MD_PAGE || addr > md->mem_len ||
	       len > md->mem_len - addr;
}

static void count_watched(struct md *md, uint64_t addr, size_t len, bool write)
{
	for (struct md_watch *w = md->watches; w; w = w->next)
		if (addr < w->first + w->len && w->first < addr + len)
			(*(write ? &w->writes : &w->reads))++;
}

static int op_dma_read(void *host, uint16_t gvmi, uint64_t addr, void *buf,
		       size_t len)
{
	struct md *md = host;

	(void)gvmi;
	md->dma_reads++;
	count_watched(md, addr, len, false);
	if (dma_bad(md, addr, len))
		return -1;
	memcpy(buf, md->mem + addr, len);
	return 0;
}

static int op_dma_write(void *host, uint16_t gvmi, uint64_t addr,
			const void *buf, size_t len)
{
	struct md *md = host;

	(void)gvmi;
	md->dma_writes++;
	count_watched(md, addr, len, true);
	if (dma_bad(md, addr, len))
		return -1;
	memcpy(md->mem + addr, buf, len);
	return 0;
}

static void op_raise_irq(void *host, unsigned int vector)
{
	struct md *md = host;

	md->irqs |= 1ull << vector;
}

static void *op_tx_reserve(void *host, size_t len)
{
	struct md *md = host;

	if (len > sizeof(md->frame))
		md_die("frame of %zu bytes", len);
	if (md->tx_room && !md->tx_room(md->tx_arg))
		return NULL;
	/* nothing of an old frame may be sent again */
	memset(md->frame, 0xee, len);
	return md->frame;
}

static void op_tx_commit(void *host, size_t len)
{
	struct md *md = host;

	if (md->tx)
		md->tx(md->tx_arg, md->frame, len);
}

static void op_trace(void *host, enum qhca_trace_id id, uint64_t a, uint64_t b,
		     uint64_t c, uint64_t d)
{
	struct md *md = host;

	if (md->trace)
		md->trace(md, id, a, b, c, d);
}

/* ---- memory */

void *md_own(struct md *md, size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	md->owned = realloc(md->owned,
			    (md->num_owned + 1) * sizeof(*md->owned));
	md->owned[md->num_owned++] = p;
	return p;
}

uint64_t md_alloc(struct md *md, uint64_t len, uint64_t align)
{
	uint64_t addr = (md->brk + align - 1) & ~(align - 1);

	if (addr > md->mem_len || len > md->mem_len - addr)
		md_die("guest memory of %llu bytes is full",
		       (unsigned long long)md->mem_len);
	md->brk = addr + len;
	memset(md->mem + addr, 0, len);
	return addr;
}

void *md_ptr(struct md *md, uint64_t addr)
{
	return md->mem + addr;
}

struct md *md_create(unsigned int number, uint64_t mem_len,
		     const struct qhca_config *cfg)
{
	static const struct qhca_host_ops ops = {
		.dma_read = op_dma_read, .dma_write = op_dma_write,
		.dma_write_release = op_dma_write,
		.raise_irq = op_raise_irq,
		.tx_reserve = op_tx_reserve, .tx_commit = op_tx_commit,
		.trace = op_trace,
	};
	struct md *md = calloc(1, sizeof(*md));
	struct qhca_config c = *cfg;
	char err[200];

	md->mem_len = mem_len;
	md->mem = calloc(1, mem_len);
	md->rng = 0x9e3779b9u + number;
	memcpy(md->mac, (uint8_t[]){ 2, 0, 0, 0, 0, number }, 6);
	memcpy(md->gid, (uint8_t[16]){ [10] = 0xff, [11] = 0xff, [12] = 10,
				       [15] = number }, 16);
	memcpy(c.mac, md->mac, 6);
	md->hca = qhca_create(&c, &ops, md, err, sizeof(err));
	if (!md->hca)
		md_die("qhca_create: %s", err);
	qhca_set_link(md->hca, true, md->now);
	return md;
}

void md_destroy(struct md *md)
{
	qhca_destroy(md->hca);
	while (md->num_owned)
		free(md->owned[--md->num_owned]);
	free(md->owned);
	free(md->mem);
	free(md);
}

void md_settle(struct md *md)
{
	for (int i = 0; i < RUN_LIMIT; i++)
		if (!qhca_run(md->hca, md->now, 64).more)
			return;
	md_die("the engine does not come to rest");
}

bool md_dead(struct md *md)
{
	return qhca_reg_read(md->hca, QHCA_REG_STATUS, md->now) &
	       QHCA_STATUS_FATAL;
}
