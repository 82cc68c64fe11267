// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Asynchronous events of the device and of its port.
 */
#include <linux/netdevice.h>

#include "queue.h"

static void qhca_cq_async(struct qhca_ib_dev *dev, u32 cqn)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.event = IB_EVENT_CQ_ERR,
	};
	struct qhca_cq *cq;

	cq = qhca_cq_get(dev, cqn);
	if (!cq)
		return;
	event.element.cq = &cq->ibcq;
	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
	qhca_ref_put(&cq->ref);
}

static void qhca_srq_async(struct qhca_ib_dev *dev, u32 srqn,
			   enum ib_event_type type)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.event = type,
	};
	struct qhca_srq *srq;

	srq = qhca_srq_get(dev, srqn);
	if (!srq)
		return;
	event.element.srq = &srq->ibsrq;
	if (srq->ibsrq.event_handler)
		srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
	qhca_ref_put(&srq->ref);
}

void qhca_qp_event_work(struct work_struct *work)
{
	struct qhca_qp *qp = container_of(work, struct qhca_qp, event_work);
	struct ib_event event = {
		.device = qp->ibqp.device,
		.element.qp = &qp->ibqp,
	};
	unsigned long events = xchg(&qp->events, 0);
	unsigned int type;

	for_each_set_bit(type, &events, BITS_PER_LONG) {
		event.event = type;
		if (qp->ibqp.event_handler)
			qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
	}
	qhca_ref_put(&qp->ref);
}

/* Takes over a reference on @qp. */
static void qhca_qp_raise(struct qhca_ib_dev *dev, struct qhca_qp *qp,
			  enum ib_event_type type)
{
	set_bit(type, &qp->events);
	if (!queue_work(dev->event_wq, &qp->event_work))
		qhca_ref_put(&qp->ref);
}

/* The event handlers of QPs may sleep, so a work item calls them. */
static void qhca_qp_async(struct qhca_ib_dev *dev, u32 qpn,
			  enum ib_event_type type)
{
	struct qhca_qp *qp;

	qp = qhca_qp_get(dev, qpn);
	if (!qp)
		return;

	if (type == IB_EVENT_QP_FATAL || type == IB_EVENT_QP_REQ_ERR ||
	    type == IB_EVENT_QP_ACCESS_ERR ||
	    type == IB_EVENT_QP_LAST_WQE_REACHED)
		qhca_qp_in_error(qp, false);

	/*
	 * After the device's death qhca_qp_flush_events() has raised the event.
	 */
	if (test_and_set_bit(type, &qp->raised) && qhca_is_dead(dev) &&
	    type == IB_EVENT_QP_LAST_WQE_REACHED)
		qhca_ref_put(&qp->ref);
	else
		qhca_qp_raise(dev, qp, type);
}

/*
 * When the device is dead, a kernel QP in error has taken its last receive from
 * its SRQ.  The device cannot report that, and ib_drain_qp() waits for the
 * event.
 */
static bool qhca_qp_is_owed(struct qhca_qp *qp)
{
	return !qp->is_user && qp->flags & QHCA_QP_SRQ &&
	       READ_ONCE(qp->state) == IB_QPS_ERR &&
	       !test_and_set_bit(IB_EVENT_QP_LAST_WQE_REACHED, &qp->raised);
}

/**
 * qhca_qp_flush_events - raise the events that a dead device owes
 * @dev: the device
 *
 * Raises the events of QPs that are in error.  Putting another QP into error
 * rings its doorbell, which queues this work again; see qhca_ring_sq().
 */
void qhca_qp_flush_events(struct qhca_ib_dev *dev)
{
	struct qhca_qp *qp;
	unsigned long qpn;

	xa_for_each(&dev->qps, qpn, qp) {
		qp = qhca_qp_get(dev, qpn);
		if (!qp)
			continue;
		if (qhca_qp_is_owed(qp))
			qhca_qp_raise(dev, qp, IB_EVENT_QP_LAST_WQE_REACHED);
		else
			qhca_ref_put(&qp->ref);
	}
}

/*
 * Kernel consumers learn of the death by the event, and by their requests,
 * which complete as flushed.
 */
static void qhca_fatal(struct qhca_ib_dev *dev)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.event = IB_EVENT_DEVICE_FATAL,
		.element.port_num = QHCA_IB_PORT,
	};

	if (READ_ONCE(dev->registered))
		ib_dispatch_event(&event);
	schedule_work(&dev->flush_work);
}

/* Called in hard interrupts, or wherever qhca.ko has noticed the death. */
static int qhca_async_event(struct notifier_block *nb, unsigned long type,
			    void *data)
{
	struct qhca_ib_dev *dev = container_of(nb, struct qhca_ib_dev,
					       events_nb);
	const struct qhca_eqe *eqe = data;
	u32 number = le32_to_cpu(eqe->number);

	ibdev_dbg(&dev->ibdev, "event %#x of %u, detail %#x\n", eqe->type,
		  number, le32_to_cpu(eqe->detail));
	switch (eqe->type) {
	case QHCA_EVENT_CQ_ERROR:
		qhca_cq_async(dev, number);
		break;
	case QHCA_EVENT_QP_FATAL:
		qhca_qp_async(dev, number, IB_EVENT_QP_FATAL);
		break;
	case QHCA_EVENT_QP_REQ_ERROR:
		qhca_qp_async(dev, number, IB_EVENT_QP_REQ_ERR);
		break;
	case QHCA_EVENT_QP_ACCESS_ERROR:
		qhca_qp_async(dev, number, IB_EVENT_QP_ACCESS_ERR);
		break;
	case QHCA_EVENT_QP_COMM_EST:
		qhca_qp_async(dev, number, IB_EVENT_COMM_EST);
		break;
	case QHCA_EVENT_QP_SQ_DRAINED:
		qhca_qp_async(dev, number, IB_EVENT_SQ_DRAINED);
		break;
	case QHCA_EVENT_QP_LAST_WQE:
		qhca_qp_async(dev, number, IB_EVENT_QP_LAST_WQE_REACHED);
		break;
	case QHCA_EVENT_SRQ_ERROR:
		qhca_srq_async(dev, number, IB_EVENT_SRQ_ERR);
		break;
	case QHCA_EVENT_SRQ_LIMIT:
		qhca_srq_async(dev, number, IB_EVENT_SRQ_LIMIT_REACHED);
		break;
	case QHCA_EVENT_PAGE_FAULT:
		qhca_odp_event(dev, eqe);
		break;
	case QHCA_EVENT_DEVICE_FATAL:
		qhca_fatal(dev);
		break;
	default:
		/* The state of the link is that of the netdev's carrier. */
		return NOTIFY_DONE;
	}
	return NOTIFY_OK;
}

#if !QHCA_CORE_PORT_EVENTS
static int qhca_netdev_event(struct notifier_block *nb, unsigned long type,
			     void *data)
{
	struct qhca_ib_dev *dev = container_of(nb, struct qhca_ib_dev,
					       netdev_nb);
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = QHCA_IB_PORT,
	};
	enum ib_port_state state;

	if (netdev_notifier_info_to_dev(data) != dev->qdev->netdev)
		return NOTIFY_DONE;
	if (type != NETDEV_UP && type != NETDEV_DOWN && type != NETDEV_CHANGE)
		return NOTIFY_DONE;

	state = qhca_port_state(dev);
	if (state == dev->port_state)
		return NOTIFY_DONE;
	dev->port_state = state;
	event.event = state == IB_PORT_ACTIVE ? IB_EVENT_PORT_ACTIVE :
						IB_EVENT_PORT_ERR;
	ib_dispatch_event(&event);
	return NOTIFY_OK;
}

int qhca_port_watch(struct qhca_ib_dev *dev)
{
	dev->port_state = qhca_port_state(dev);
	dev->netdev_nb.notifier_call = qhca_netdev_event;
	return register_netdevice_notifier(&dev->netdev_nb);
}

void qhca_port_unwatch(struct qhca_ib_dev *dev)
{
	unregister_netdevice_notifier(&dev->netdev_nb);
}
#else
int qhca_port_watch(struct qhca_ib_dev *dev)
{
	return 0;
}

void qhca_port_unwatch(struct qhca_ib_dev *dev)
{
}
#endif

int qhca_events_start(struct qhca_ib_dev *dev)
{
	int err;

	/*
	 * The queue is ordered, so that the handlers of a consumer's QPs are
	 * called one after the other, in the order of the events.  It has a
	 * rescuer, because the destruction of a QP waits for its events, and a
	 * consumer with storage at the other end may destroy QPs in order to
	 * write memory out.
	 */
	dev->event_wq = alloc_ordered_workqueue("qhca_ib_events",
						WQ_MEM_RECLAIM);
	if (!dev->event_wq)
		return -ENOMEM;

	dev->events_nb.notifier_call = qhca_async_event;
	err = qhca_notifier_register(dev->qdev, &dev->events_nb);
	if (err)
		destroy_workqueue(dev->event_wq);
	return err;
}

void qhca_events_stop(struct qhca_ib_dev *dev)
{
	qhca_notifier_unregister(dev->qdev, &dev->events_nb);
	destroy_workqueue(dev->event_wq);
}
