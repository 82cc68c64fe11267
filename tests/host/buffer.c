// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Buffers, contiguous or of scattered pages */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"

static void shuffle(struct md *md, uint64_t *v, uint32_t n)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = md_rand(md) % i;
		uint64_t t = v[i - 1];

		v[i - 1] = v[j];
		v[j] = t;
	}
}

/* A tree of nodes over @page[0 .. n); *levels as many as it takes. */
static uint64_t make_tree(struct md *md, const uint64_t *page, uint32_t n,
			  uint8_t *levels)
{
	uint32_t nodes = (n + 511) / 512;
	uint64_t *entry = calloc(nodes, sizeof(*entry)), root;

	for (uint32_t i = 0; i < nodes; i++) {
		uint32_t count = n - i * 512 < 512 ? n - i * 512 : 512;
		uint64_t node = md_alloc(md, count * 8, 64);

		for (uint32_t k = 0; k < count; k++)
			put_le64(md->host.ram + node + 8 * k, page[i * 512 + k]);
		entry[i] = node | QHCA_ATE_PRESENT;
	}
	++*levels;
	if (nodes == 1)
		root = entry[0] & QHCA_ATE_NODE;
	else
		root = make_tree(md, entry, nodes, levels);
	free(entry);
	return root;
}

void md_buf_alloc(struct md *md, struct md_buf *b, uint64_t len)
{
	uint32_t pages = (len + MD_PAGE - 1) / MD_PAGE;
	uint64_t base = md_alloc(md, (uint64_t)pages * MD_PAGE, MD_PAGE), *leaf;

	b->len = len;
	b->levels = 0;
	b->root = base;
	b->odp = NULL;
	b->num_pages = pages;
	b->page = md_own(md, b->num_pages, sizeof(*b->page));
	for (uint32_t i = 0; i < b->num_pages; i++)
		b->page[i] = base + (uint64_t)i * MD_PAGE;
	if (!md->init.scatter || !b->num_pages)
		return;
	shuffle(md, b->page, b->num_pages);
	leaf = calloc(b->num_pages, sizeof(*leaf));
	for (uint32_t i = 0; i < b->num_pages; i++)
		leaf[i] = b->page[i] | QHCA_ATE_PRESENT | QHCA_ATE_WRITE |
			  QHCA_ATE_LEAF;
	b->root = make_tree(md, leaf, b->num_pages, &b->levels);
	free(leaf);
}

static uint8_t *buf_at(struct md *md, const struct md_buf *b, uint64_t off,
		       uint64_t *len)
{
	uint64_t in_page = MD_PAGE - off % MD_PAGE;

	if (off >= b->len)
		host_die("driver: offset %llu of a buffer of %llu bytes",
			 (unsigned long long)off, (unsigned long long)b->len);
	if (*len > in_page)
		*len = in_page;
	if (b->odp && !md_odp_touch(b->odp, off / MD_PAGE))
		host_die("driver: no frame for the processor's access");
	return md->host.ram + b->page[off / MD_PAGE] + off % MD_PAGE;
}

void md_buf_write(struct md *md, const struct md_buf *b, uint64_t off,
		  const void *data, uint64_t len)
{
	const uint8_t *from = data;

	while (len) {
		uint64_t n = len;
		uint8_t *to = buf_at(md, b, off, &n);

		memcpy(to, from, n);
		from += n;
		off += n;
		len -= n;
	}
}

void md_buf_read(struct md *md, const struct md_buf *b, uint64_t off,
		 void *data, uint64_t len)
{
	uint8_t *to = data;

	while (len) {
		uint64_t n = len;
		const uint8_t *from = buf_at(md, b, off, &n);

		memcpy(to, from, n);
		to += n;
		off += n;
		len -= n;
	}
}

void md_watch(struct md *md, struct host_watch *watch, const struct md_buf *b,
	      uint64_t off, uint64_t len)
{
	uint64_t room = len;
	uint8_t *at = buf_at(md, b, off, &room);

	host_watch(&md->host, watch, at - md->host.ram, len);
}

uint32_t md_buf_get32(struct md *md, const struct md_buf *b, uint64_t off)
{
	uint32_t v;

	md_buf_read(md, b, off, &v, 4);
	return get_le32(&v);
}

void md_buf_put32(struct md *md, const struct md_buf *b, uint64_t off,
		  uint32_t v)
{
	uint32_t le;

	put_le32(&le, v);
	md_buf_write(md, b, off, &le, 4);
}

void md_buf_describe(const struct md_buf *b, struct qhca_buf *to)
{
	put_le64(&to->base, b->root);
	put_le32(&to->length, b->len);
	to->page_shift = 12;
	to->levels = b->levels;
}
