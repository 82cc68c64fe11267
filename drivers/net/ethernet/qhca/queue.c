// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * An Ethernet queue: rings, interrupt, NAPI context, and its life in the device.
 */
#define QHCA_COMPAT_NAPI

#include <linux/dma-mapping.h>
#include <linux/qhca/compat.h>

#include "netdev.h"

static int qhca_poll(struct napi_struct *napi, int budget)
{
	struct qhca_queue *q = container_of(napi, struct qhca_queue, napi);
	int done;

	qhca_tx_reclaim(q, budget);
	done = qhca_rx_poll(q, budget);
	if (done < budget && napi_complete_done(napi, done))
		qhca_queue_arm_later(q);
	return done;
}

/* The device raises the vector once for each arming: no need to mask it. */
static irqreturn_t qhca_queue_irq(int irq, void *data)
{
	struct qhca_queue *q = data;

	napi_schedule_irqoff(&q->napi);
	return IRQ_HANDLED;
}

static int qhca_queue_vector(struct qhca_queue *q)
{
	return qhca_vector(q->eth->core, QHCA_VECTOR_ETH + q->index);
}

static int qhca_queue_irq_number(struct qhca_queue *q)
{
	return pci_irq_vector(q->eth->core->qdev.pdev, qhca_queue_vector(q));
}

static int qhca_ethq_create(struct qhca_queue *q)
{
	struct qhca_ethq_config config = {
		.tx_base = cpu_to_le64(q->tx.dma),
		.rx_base = cpu_to_le64(q->rx.dma),
		.rxc_base = cpu_to_le64(q->rx.comp_dma),
		.rec_base = cpu_to_le64(q->rec_dma),
		.log_tx = q->eth->log_tx,
		.log_rx = q->eth->log_rx,
		.vector = cpu_to_le16(qhca_queue_vector(q)),
	};
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_CREATE_ETHQ,
		.index = q->index,
		.in = &config,
		.in_len = sizeof(config),
	};

	return qhca_cmd_exec(&q->eth->core->qdev, &cmd);
}

static void qhca_ethq_destroy(struct qhca_queue *q)
{
	int err = qhca_core_simple(q->eth->core, QHCA_CMD_DESTROY_ETHQ,
				   q->index, 0);

	/* A device that keeps the queue would write to freed memory. */
	if (err && err != -EIO)
		qhca_die(q->eth->core, "Ethernet queue not destroyed");
}

static int qhca_rings_alloc(struct qhca_queue *q)
{
	struct device *dev = qhca_device(q->eth->core);
	int err;

	q->rec = dma_alloc_coherent(dev, sizeof(*q->rec), &q->rec_dma,
				    GFP_KERNEL);
	if (!q->rec)
		return -ENOMEM;
	err = qhca_tx_alloc(q);
	if (err)
		goto free_rec;
	err = qhca_rx_alloc(q);
	if (err)
		goto free_tx;
	return 0;

free_tx:
	qhca_tx_free(q);
free_rec:
	dma_free_coherent(dev, sizeof(*q->rec), q->rec, q->rec_dma);
	return err;
}

/**
 * qhca_queue_free - free the rings
 * @q: queue, which the device, NAPI and the stack do not use
 *
 * A poll may start the timer after it has completed NAPI, thus after NAPI was disabled.  It
 * has returned now, as an RCU grace period has passed since.
 */
void qhca_queue_free(struct qhca_queue *q)
{
	qhca_coalesce_stop(q);
	qhca_rx_free(q);
	qhca_tx_free(q);
	dma_free_coherent(qhca_device(q->eth->core), sizeof(*q->rec), q->rec,
			  q->rec_dma);
}

/*
 * The netdev lists only contexts that are enabled.  The core waits for each that it finds
 * on the list when threads are no longer to poll, with the netdev locked, and for a
 * disabled one it waits for ever.  So the lock is held from when a context is added until
 * it is enabled, and from when it is disabled until it is deleted.
 *
 * The rings are made in between: nobody may poll before they exist, and a page pool that
 * is destroyed again complains of a context that is not disabled.
 */
static int qhca_queue_prepare(struct qhca_queue *q)
{
	struct net_device *netdev = q->eth->netdev;
	int err;

	netdev_lock(netdev);
	netif_napi_add_config_locked(netdev, &q->napi, qhca_poll, q->index);
	err = qhca_rings_alloc(q);
	if (err)
		netif_napi_del_locked(&q->napi);
	else
		napi_enable_locked(&q->napi);
	netdev_unlock(netdev);
	return err;
}

/* Who has found the context before may use it until an RCU grace period has passed. */
static void qhca_queue_end_napi(struct qhca_queue *q)
{
	struct net_device *netdev = q->eth->netdev;

	netdev_lock(netdev);
	napi_disable_locked(&q->napi);
	__netif_napi_del_locked(&q->napi);
	netdev_unlock(netdev);
}

/* Say who serves the rings, for busy polling and for tools. */
static void qhca_queue_show_napi(struct qhca_queue *q, int irq)
{
	struct napi_struct *napi = irq < 0 ? NULL : &q->napi;

	netif_napi_set_irq(&q->napi, irq);
	netif_queue_set_napi(q->eth->netdev, q->index, NETDEV_QUEUE_TYPE_RX,
			     napi);
	netif_queue_set_napi(q->eth->netdev, q->index, NETDEV_QUEUE_TYPE_TX,
			     napi);
}

/* Whoever frees a shared interrupt must not find a hint. */
static void qhca_queue_set_affinity(struct qhca_queue *q, int irq)
{
	struct qhca_core *core = q->eth->core;
	unsigned int cpu;

	if (qhca_irq_flags(core) & IRQF_SHARED || q->eth->num_queues == 1)
		return;
	cpu = cpumask_local_spread(q->index, dev_to_node(qhca_device(core)));
	irq_set_affinity_and_hint(irq, cpumask_of(cpu));
}

static void qhca_queue_free_irq(struct qhca_queue *q)
{
	int irq = qhca_queue_irq_number(q);

	irq_update_affinity_hint(irq, NULL);
	free_irq(irq, q);
}

/**
 * qhca_queue_start - create the queue in the device
 * @q: queue
 *
 * It does not interrupt before qhca_queue_open().
 *
 * Context: process, RTNL held.
 * Return: 0 or a negative errno.
 */
int qhca_queue_start(struct qhca_queue *q)
{
	int irq = qhca_queue_irq_number(q);
	int err;

	err = qhca_queue_prepare(q);
	if (err)
		return err;
	err = request_irq(irq, qhca_queue_irq, qhca_irq_flags(q->eth->core),
			  q->irq_name, q);
	if (err)
		goto end_napi;
	err = qhca_ethq_create(q);
	if (err)
		goto free_irq;
	qhca_queue_set_affinity(q, irq);
	return 0;

free_irq:
	free_irq(irq, q);
end_napi:
	qhca_queue_end_napi(q);
	synchronize_net();
	qhca_queue_free(q);
	return err;
}

/**
 * qhca_queue_open - allow the queue to interrupt, and the stack to send
 * @q: queue, which has been started
 */
void qhca_queue_open(struct qhca_queue *q)
{
	qhca_queue_arm(q);
	qhca_queue_show_napi(q, qhca_queue_irq_number(q));
	qhca_tx_open(q);
}

/**
 * qhca_queue_close - undo qhca_queue_open()
 * @q: queue
 */
void qhca_queue_close(struct qhca_queue *q)
{
	qhca_tx_close(q);
	qhca_queue_show_napi(q, -1);
}

/**
 * qhca_queue_silence - destroy the queue in the device, and end NAPI
 * @q: queue, which is closed or was never opened
 *
 * The caller waits for an RCU grace period before it frees or starts the queue.
 */
void qhca_queue_silence(struct qhca_queue *q)
{
	qhca_ethq_destroy(q);
	qhca_queue_free_irq(q);
	qhca_queue_end_napi(q);
}

void qhca_queue_init(struct qhca_eth *eth, unsigned int index)
{
	struct qhca_queue *q = &eth->queue[index];

	q->eth = eth;
	q->index = index;
	qhca_coalesce_init(q);
	u64_stats_init(&q->tx_stats.sync);
	u64_stats_init(&q->rx_stats.sync);
	snprintf(q->irq_name, sizeof(q->irq_name), "%s-eth%u@%s", QHCA_DRV_NAME,
		 index, pci_name(eth->core->qdev.pdev));
}
