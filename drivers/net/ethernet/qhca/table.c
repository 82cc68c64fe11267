// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Object numbers and the tables behind them.
 *
 * The device keeps its contexts in host memory, in a table for each kind of
 * object, which consists of chunks of equal size.  The driver allocates and
 * maps a chunk when it allocates the first number in it.  The chunk stays until
 * the tables are freed: a number is likely to be used again, and reading a
 * chunk that never moves takes no lock.
 *
 * All chunks of a table have the same size, 128 KiB for the protection table.
 * If the page allocator has no such piece, a table that has chunks makes do
 * with these, and uses their numbers again sooner.
 */
#include <linux/bitmap.h>
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "core.h"

int qhca_bitmap_init(struct qhca_bitmap *map, u32 size, u32 first)
{
	map->bits = kvcalloc(BITS_TO_LONGS(size), sizeof(long), GFP_KERNEL);
	if (!map->bits)
		return -ENOMEM;
	spin_lock_init(&map->lock);
	map->size = size;
	map->first = min(first, size);
	map->next = map->first;
	return 0;
}

void qhca_bitmap_free(struct qhca_bitmap *map)
{
	kvfree(map->bits);
	map->bits = NULL;
}

int qhca_bitmap_get(struct qhca_bitmap *map, u32 *number)
{
	unsigned long irqflags;
	int err = -ENOSPC;
	u32 n;

	spin_lock_irqsave(&map->lock, irqflags);
	n = find_next_zero_bit(map->bits, map->size, map->next);
	if (n >= map->size)
		n = find_next_zero_bit(map->bits, map->size, map->first);
	if (n < map->size) {
		__set_bit(n, map->bits);
		map->next = n + 1;
		*number = n;
		err = 0;
	}
	spin_unlock_irqrestore(&map->lock, irqflags);
	return err;
}

int qhca_bitmap_take(struct qhca_bitmap *map, u32 number)
{
	unsigned long irqflags;
	int err = 0;

	if (number >= map->size)
		return -EINVAL;
	spin_lock_irqsave(&map->lock, irqflags);
	if (__test_and_set_bit(number, map->bits))
		err = -EBUSY;
	spin_unlock_irqrestore(&map->lock, irqflags);
	return err;
}

void qhca_bitmap_put(struct qhca_bitmap *map, u32 number)
{
	unsigned long irqflags;

	if (WARN_ON_ONCE(number >= map->size))
		return;
	spin_lock_irqsave(&map->lock, irqflags);
	WARN_ON_ONCE(!__test_and_clear_bit(number, map->bits));
	spin_unlock_irqrestore(&map->lock, irqflags);
}

/* Choose the smallest chunks of which QHCA_MAX_CHUNKS suffice. */
void qhca_table_layout(struct qhca_ctx_table *table, u32 entry_size,
		       u8 log_entries)
{
	const u8 log_max_chunks = ilog2(QHCA_MAX_CHUNKS);
	u8 log_bytes;

	table->log_entry = ilog2(entry_size);
	table->log_entries = min_t(u8, log_entries,
				   QHCA_MAX_LOG_CHUNK + log_max_chunks -
				   table->log_entry);
	log_bytes = table->log_entry + table->log_entries;
	table->log_chunk = max_t(int, QHCA_MIN_LOG_CHUNK,
				 log_bytes - log_max_chunks);
	table->num_chunks = log_bytes > table->log_chunk ?
			    1u << (log_bytes - table->log_chunk) : 1;
}

int qhca_table_init(struct qhca_ctx_table *table, u32 first)
{
	int err;

	mutex_init(&table->lock);
	table->chunk = kcalloc(table->num_chunks, sizeof(*table->chunk),
			       GFP_KERNEL);
	if (!table->chunk)
		return -ENOMEM;
	err = qhca_bitmap_init(&table->map, 1u << table->log_entries, first);
	if (err) {
		kfree(table->chunk);
		table->chunk = NULL;
	}
	return err;
}

/* Called when the device has forgotten the table, or is gone. */
void qhca_table_free(struct qhca_core *core, struct qhca_ctx_table *table)
{
	u32 i;

	if (!table->chunk)
		return;
	for (i = 0; i < table->num_chunks; i++)
		if (table->chunk[i].va)
			dma_free_coherent(qhca_device(core),
					  1u << table->log_chunk,
					  table->chunk[i].va,
					  table->chunk[i].dma);
	kfree(table->chunk);
	table->chunk = NULL;
	qhca_bitmap_free(&table->map);
	mutex_destroy(&table->lock);
}

static int qhca_chunk_map(struct qhca_core *core, enum qhca_table id, u32 c)
{
	struct qhca_ctx_table *table = &core->table[id];
	__le64 addr;
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_MAP_CHUNKS,
		.index = c,
		.param = id | 1 << 8,
		.in = &addr,
		.in_len = sizeof(addr),
	};
	dma_addr_t dma;
	void *va;
	int err;

	lockdep_assert_held(&table->lock);
	/*
	 * Zeroes mean in every table that there is no object.  A failure needs
	 * no warning, since qhca_index_alloc() can make do with other chunks.
	 */
	va = dma_alloc_coherent(qhca_device(core), 1u << table->log_chunk,
				&dma, GFP_KERNEL | __GFP_NOWARN);
	if (!va)
		return -ENOMEM;
	addr = cpu_to_le64(dma);
	err = qhca_core_exec(core, &cmd);
	if (err) {
		dma_free_coherent(qhca_device(core), 1u << table->log_chunk,
				  va, dma);
		return err;
	}
	table->chunk[c].dma = dma;
	/* A reader that finds the chunk may use it without the lock. */
	smp_store_release(&table->chunk[c].va, va);
	return 0;
}

static u32 qhca_chunk_of(const struct qhca_ctx_table *table, u32 index)
{
	return index >> (table->log_chunk - table->log_entry);
}

static int qhca_chunk_need(struct qhca_core *core, enum qhca_table id,
			   u32 index)
{
	struct qhca_ctx_table *table = &core->table[id];
	u32 c = qhca_chunk_of(table, index);
	int err = 0;

	/* Pairs with the release in qhca_chunk_map(). */
	if (smp_load_acquire(&table->chunk[c].va))
		return 0;
	mutex_lock(&table->lock);
	if (!table->chunk[c].va)
		err = qhca_chunk_map(core, id, c);
	mutex_unlock(&table->lock);
	return err;
}

/* Find the first free number of [n, end) whose chunk is mapped, or end. */
static u32 qhca_find_mapped(const struct qhca_ctx_table *table, u32 n, u32 end)
{
	u8 log_per_chunk = table->log_chunk - table->log_entry;
	u32 c, stop;

	for (; n < end; n = stop) {
		c = qhca_chunk_of(table, n);
		stop = min(end, (c + 1) << log_per_chunk);
		/* Pairs with the release in qhca_chunk_map(). */
		if (!smp_load_acquire(&table->chunk[c].va))
			continue;
		n = find_next_zero_bit(table->map.bits, stop, n);
		if (n < stop)
			return n;
	}
	return end;
}

/* As qhca_bitmap_get(), but only for numbers that need no more memory. */
static int qhca_index_get_mapped(struct qhca_ctx_table *table, u32 *number)
{
	struct qhca_bitmap *map = &table->map;
	unsigned long irqflags;
	int err = -ENOMEM;
	u32 n;

	spin_lock_irqsave(&map->lock, irqflags);
	n = qhca_find_mapped(table, map->next, map->size);
	if (n == map->size)
		n = qhca_find_mapped(table, map->first, map->size);
	if (n < map->size) {
		__set_bit(n, map->bits);
		map->next = n + 1;
		*number = n;
		err = 0;
	}
	spin_unlock_irqrestore(&map->lock, irqflags);
	return err;
}

int qhca_index_alloc(struct qhca_dev *qdev, enum qhca_table table, u32 *index)
{
	struct qhca_core *core = qhca_core_of(qdev);
	struct qhca_ctx_table *t = &core->table[table];
	u32 n;
	int err;

	err = qhca_bitmap_get(&t->map, &n);
	if (err)
		return err;
	err = qhca_chunk_need(core, table, n);
	if (err) {
		qhca_bitmap_put(&t->map, n);
		if (err == -ENOMEM)
			err = qhca_index_get_mapped(t, &n);
	}
	if (!err)
		*index = n;
	return err;
}
EXPORT_SYMBOL_GPL(qhca_index_alloc);

int qhca_index_take(struct qhca_dev *qdev, enum qhca_table table, u32 index)
{
	struct qhca_core *core = qhca_core_of(qdev);
	int err;

	err = qhca_bitmap_take(&core->table[table].map, index);
	if (err)
		return err;
	err = qhca_chunk_need(core, table, index);
	if (err)
		qhca_bitmap_put(&core->table[table].map, index);
	return err;
}
EXPORT_SYMBOL_GPL(qhca_index_take);

void qhca_index_free(struct qhca_dev *qdev, enum qhca_table table, u32 index)
{
	qhca_bitmap_put(&qhca_core_of(qdev)->table[table].map, index);
}
EXPORT_SYMBOL_GPL(qhca_index_free);

struct qhca_pte *qhca_pte(struct qhca_dev *qdev, u32 index)
{
	struct qhca_ctx_table *table = &qhca_core_of(qdev)->table[QHCA_TABLE_PT];
	u32 per_chunk = 1u << (table->log_chunk - table->log_entry);
	struct qhca_pte *pte;

	/* Pairs with the release in qhca_chunk_map(). */
	pte = smp_load_acquire(&table->chunk[qhca_chunk_of(table, index)].va);
	return pte + (index & (per_chunk - 1));
}
EXPORT_SYMBOL_GPL(qhca_pte);

int qhca_db_page_alloc(struct qhca_dev *qdev, u32 *page)
{
	return qhca_bitmap_get(&qhca_core_of(qdev)->db_pages, page);
}
EXPORT_SYMBOL_GPL(qhca_db_page_alloc);

void qhca_db_page_free(struct qhca_dev *qdev, u32 page)
{
	qhca_bitmap_put(&qhca_core_of(qdev)->db_pages, page);
}
EXPORT_SYMBOL_GPL(qhca_db_page_free);
