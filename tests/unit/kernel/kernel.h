/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What drivers/vfio/pci/qhca uses of the kernel, for a program that has one thread: a
 * lock knows whether it is held, work runs when the test says so, and what would wait
 * lets a function of the test run in the place of other threads. The headers in linux/ lead here.
 *
 * The test provides memory of the virtual machine (vfio_pin_pages() and its like) and
 * the physical function (qhca_stage2_*).
 */
#ifndef QHCA_TEST_KERNEL_H
#define QHCA_TEST_KERNEL_H

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define QHCA_HW_PLAIN_TYPES
#include "qhca/qhca_hw.h"

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;
typedef uint8_t u8;
typedef u64 dma_addr_t;

#define BIT(n)		(1ul << (n))
#define BIT_ULL(n)	(1ull << (n))
#define SZ_4K		4096
#define PAGE_SIZE	4096ul
#define min(a, b)	((a) < (b) ? (a) : (b))
#define max(a, b)	((a) > (b) ? (a) : (b))
#define check_add_overflow(a, b, sum)	__builtin_add_overflow(a, b, sum)
#define container_of(p, type, member) \
	((type *)((char *)(p) - offsetof(type, member)))
#define struct_size(p, member, n) (sizeof(*(p)) + sizeof((p)->member[0]) * (n))

/* The machine is little-endian, and the compiler does not reorder what it tests. */
#define cpu_to_le64(x)	((__le64)(x))
#define le64_to_cpu(x)	((u64)(x))
#define le32_to_cpu(x)	((u32)(x))
#define READ_ONCE(x)	(x)
#define WRITE_ONCE(x, value)		((x) = (value))
#define smp_store_release(p, value)	(*(p) = (value))
#define smp_load_acquire(p)		(*(p))
#define dma_wmb()	((void)0)
#define xchg(p, value) \
	({ __typeof__(*(p)) old_ = *(p); *(p) = (value); old_; })

/* ---- locks, and what waits */

struct mutex {
	bool held;
};

typedef struct mutex spinlock_t;

static inline void mutex_lock(struct mutex *lock)
{
	assert(!lock->held);
	lock->held = true;
}

static inline void mutex_unlock(struct mutex *lock)
{
	assert(lock->held);
	lock->held = false;
}

/* Nobody is killed here. */
static inline int mutex_lock_killable(struct mutex *lock)
{
	mutex_lock(lock);
	return 0;
}

#define spin_lock(lock)			mutex_lock(lock)
#define spin_unlock(lock)		mutex_unlock(lock)
#define lockdep_assert_held(lock)	assert((lock)->held)

struct srcu_struct {
	int readers;
};

typedef struct {
	int unused;
} wait_queue_head_t;

#define srcu_read_lock(srcu)		((srcu)->readers++)
#define srcu_read_unlock(srcu, idx)	((void)(idx), (void)(srcu)->readers--)
#define synchronize_srcu(srcu)		((void)(srcu))
/* Other threads run once, in the test's function. */
#define wait_event(queue, condition) \
	({ if (!(condition)) others_run(); assert(condition); })
void others_run(void);
#define wake_up_all(queue)		((void)(queue))

typedef struct {
	long value;
} atomic_long_t;

#define atomic_long_read(a)	((a)->value)
#define atomic_long_inc(a)	((void)(a)->value++)
#define atomic_long_dec(a)	((void)(a)->value--)

/* ---- lists */

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list->prev = list;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *list)
{
	entry->prev = list->prev;
	entry->next = list;
	list->prev->next = entry;
	list->prev = entry;
}

static inline void list_del(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
}

static inline bool list_empty(const struct list_head *list)
{
	return list->next == list;
}

#define list_for_each_entry(pos, list, member)				\
	for (pos = container_of((list)->next, __typeof__(*pos), member);	\
	     &pos->member != (list);					\
	     pos = container_of(pos->member.next, __typeof__(*pos), member))
#define list_first_entry_or_null(list, type, member) \
	((list)->next == (list) ? NULL : container_of((list)->next, type, member))

struct llist_node {
	struct llist_node *next;
};

struct llist_head {
	struct llist_node *first;
};

static inline void init_llist_head(struct llist_head *list)
{
	list->first = NULL;
}

static inline void llist_add(struct llist_node *node, struct llist_head *list)
{
	node->next = list->first;
	list->first = node;
}

static inline struct llist_node *llist_del_all(struct llist_head *list)
{
	struct llist_node *first = list->first;

	list->first = NULL;
	return first;
}

static inline struct llist_node *llist_reverse_order(struct llist_node *node)
{
	struct llist_node *reversed = NULL, *next;

	for (; node; node = next) {
		next = node->next;
		node->next = reversed;
		reversed = node;
	}
	return reversed;
}

#define llist_entry_or_null_(node, type, member) \
	((node) ? container_of(node, type, member) : NULL)
#define llist_for_each_entry_safe(pos, n, node, member)			\
	for (pos = llist_entry_or_null_(node, __typeof__(*pos), member);	\
	     pos && (n = llist_entry_or_null_(pos->member.next,		\
					      __typeof__(*pos), member), true); \
	     pos = n)

/* ---- memory */

#define GFP_KERNEL		0
#define GFP_KERNEL_ACCOUNT	0
#define GFP_ATOMIC		0
#define kzalloc(size, gfp)	calloc(1, size)
#define kvzalloc(size, gfp)	calloc(1, size)
#define kfree(p)		free(p)
#define kvfree(p)		free(p)

typedef struct {
	size_t size;
	long taken;
	bool empty;			/* the test has it fail */
} mempool_t;

static inline mempool_t *mempool_create_kmalloc_pool(int least, size_t size)
{
	mempool_t *pool = calloc(1, sizeof(*pool));

	(void)least;
	pool->size = size;
	return pool;
}

static inline void *mempool_alloc(mempool_t *pool, int gfp)
{
	(void)gfp;
	if (pool->empty)
		return NULL;
	pool->taken++;
	return malloc(pool->size);
}

static inline void mempool_free(void *p, mempool_t *pool)
{
	pool->taken--;
	free(p);
}

#define mempool_destroy(pool)	free(pool)

/* ---- work: the test calls work->function */

struct work_struct {
	void (*function)(struct work_struct *work);
};

struct workqueue_struct {
	int unused;
};

#define WQ_UNBOUND		0
#define INIT_WORK(work, f)	((work)->function = (f))
#define queue_work(queue, work)	((void)(queue), (void)(work))
#define flush_work(work)	((work)->function(work))
#define destroy_workqueue(queue)	free(queue)
#define alloc_workqueue(name, flags, most, arg) \
	((void)(arg), (struct workqueue_struct *)malloc(sizeof(struct workqueue_struct)))

/* ---- the thread: the test runs its work when it returns to user space */

struct task_struct {
	unsigned int flags;
};

struct callback_head {
	void (*func)(struct callback_head *work);
};

#define PF_KTHREAD	1
#define TWA_RESUME	0
#define init_task_work(work, f)	((work)->func = (f))
extern struct task_struct *current;
int task_work_add(struct task_struct *task, struct callback_head *work, int notify);

/* ---- devices */

struct device {
	int unused;
};

struct pci_dev {
	struct device dev;
	bool master;
	bool msix_enabled;		/* as the kernel believes */
	int msix_cap;
	u16 msix_control;
	unsigned int msix_restored;	/* times */
};

#define pci_name(pdev)			((void)(pdev), "0000:00:00.0")
#define pci_clear_master(pdev)		((void)((pdev)->master = false))
#define pci_set_master(pdev)		((void)((pdev)->master = true))
#define pci_restore_msi_state(pdev) \
	((void)((pdev)->msix_control |= PCI_MSIX_FLAGS_ENABLE), (void)(pdev)->msix_restored++)
#define PCI_COMMAND		4
#define PCI_COMMAND_MASTER	4
#define PCI_STATUS		6
#define PCI_MSIX_FLAGS		2
#define PCI_MSIX_FLAGS_ENABLE	0x8000
#define U16_MAX			UINT16_MAX
/* MSI-X has the only other register that is read. */
#define pci_read_config_word(pdev, where, value) \
	((void)(*(value) = (where) == PCI_COMMAND ? (pdev)->master ? PCI_COMMAND_MASTER : 0 : \
						   (pdev)->msix_control))
#define dev_dbg(dev, ...)		((void)(dev))
#define dev_err_ratelimited(dev, ...)	((void)(dev))

struct vfio_device {
	int unused;
};

struct vfio_pci_core_device {
	struct vfio_device vdev;
	struct pci_dev *pdev;
};

struct attribute_group;
struct page;

#define __user
#define VFIO_PCI_OFFSET_MASK	((1ull << 40) - 1)
#define get_user(x, p)		((x) = *(p), 0)

#define VFIO_DEVICE_SET_IRQS	110

ssize_t vfio_pci_core_write(struct vfio_device *vdev, const char *buf, size_t count, loff_t *ppos);
long vfio_pci_core_ioctl(struct vfio_device *vdev, unsigned int cmd, unsigned long arg);

#define IOMMU_READ	1
#define IOMMU_WRITE	2

int vfio_pin_pages(struct vfio_device *vdev, u64 iova, int num, int prot, struct page **pages);
void vfio_unpin_pages(struct vfio_device *vdev, u64 iova, int num);

enum dma_data_direction { DMA_BIDIRECTIONAL, DMA_TO_DEVICE };

#define dma_mapping_error(dev, addr)	((void)(dev), (void)(addr), false)
#define dma_need_sync(dev, addr)	((void)(dev), (void)(addr), false)
dma_addr_t dma_map_page(struct device *dev, struct page *page, size_t offset, size_t size,
			enum dma_data_direction dir);
void dma_unmap_page(struct device *dev, dma_addr_t addr, size_t size,
		    enum dma_data_direction dir);
void *dma_alloc_coherent(struct device *dev, size_t size, dma_addr_t *addr, int gfp);
void dma_free_coherent(struct device *dev, size_t size, void *p, dma_addr_t addr);

struct qhca_stage2 {
	int unused;
};

struct device *qhca_stage2_table_device(struct qhca_stage2 *s2);
int qhca_stage2_set(struct qhca_stage2 *s2, dma_addr_t root, u8 page_shift, u8 levels);
int qhca_stage2_unset(struct qhca_stage2 *s2);
int qhca_stage2_invalidate(struct qhca_stage2 *s2, u64 start, u64 length);
int qhca_stage2_resume(struct qhca_stage2 *s2, u32 token, bool ok);

#endif /* QHCA_TEST_KERNEL_H */
