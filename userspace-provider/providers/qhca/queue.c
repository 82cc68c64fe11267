/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queue attributes of the direct verbs that create queues.
 */
#include <errno.h>
#include <stddef.h>

#include "qhca.h"
#include "qhcadv.h"

static int read_threshold(struct ibv_context *context,
			  const struct qhcadv_queue_attr *attr, uint32_t inlen,
			  uint32_t *threshold)
{
	const uint8_t *bytes = (const uint8_t *)attr;
	uint32_t i;

	if (!qhcadv_is_supported(context->device))
		return EOPNOTSUPP;
	if (inlen < offsetofend(struct qhcadv_queue_attr, reserved))
		return EINVAL;
	if (!check_comp_mask(attr->comp_mask, QHCADV_QUEUE_ATTR_THRESHOLD) ||
	    attr->reserved)
		return EOPNOTSUPP;
	for (i = offsetofend(struct qhcadv_queue_attr, reserved); i < inlen;
	     i++)
		if (bytes[i])
			return EOPNOTSUPP;

	*threshold = 0;
	if (!(attr->comp_mask & QHCADV_QUEUE_ATTR_THRESHOLD))
		return 0;
	if (!attr->threshold)
		return EINVAL;
	*threshold = attr->threshold;
	return 0;
}

/**
 * qhca_queue_threshold - read the threshold that the caller asks for
 * @context: context of the queue to be created
 * @attr: attributes of the caller, in the caller's version of the structure
 * @inlen: bytes of @attr
 * @threshold: set to the threshold, or to 0 if none is given
 *
 * The kernel checks whether the threshold fits the queue.
 *
 * Return: whether @attr is valid; if not, errno is set
 */
bool qhca_queue_threshold(struct ibv_context *context,
			  const struct qhcadv_queue_attr *attr, uint32_t inlen,
			  uint32_t *threshold)
{
	int ret = read_threshold(context, attr, inlen, threshold);

	if (ret)
		errno = ret;
	return !ret;
}
