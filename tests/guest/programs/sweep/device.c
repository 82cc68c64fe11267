// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-sweep's cases of the device as a whole: the drivers' probe, what sets the
 * device up anew, and its network interface.  They are system calls of this
 * process, whose steps the kernel counts by process.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/devlink.h>
#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sweep.h"

#define PATIENCE 60000000000ull		/* ns */

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		rc = errno;
	close(fd);
	return rc;
}

static int bind_driver(struct sweep *s)
{
	return write_text("/sys/bus/pci/drivers/qhca/bind", s->pci);
}

static void unbind_driver(struct sweep *s)
{
	MUST(!write_text("/sys/bus/pci/drivers/qhca/unbind", s->pci));
}

/* The name that the function's network interface has now. */
static void find_netdev(struct sweep *s)
{
	uint64_t end = now_ns() + PATIENCE;
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/net", s->pci);
	for (s->netdev[0] = 0; !s->netdev[0]; usleep(10000)) {
		MUST(now_ns() < end);
		dir = opendir(path);
		while (dir && (entry = readdir(dir)))
			if (entry->d_name[0] != '.')
				snprintf(s->netdev, sizeof(s->netdev), "%.15s", entry->d_name);
		if (dir)
			closedir(dir);
	}
}

static int change_flags(struct sweep *s, int add, int drop)
{
	struct ifreq ifr = { };
	int rc, sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return errno;
	memcpy(ifr.ifr_name, s->netdev, sizeof(s->netdev));
	rc = ioctl(sock, SIOCGIFFLAGS, &ifr) ? errno : 0;
	ifr.ifr_flags = (ifr.ifr_flags | add) & ~drop;
	if (!rc && ioctl(sock, SIOCSIFFLAGS, &ifr))
		rc = errno;
	close(sock);
	return rc;
}

/* -- devlink -------------------------------------------------------------- */

struct message {
	struct nlmsghdr head;
	struct genlmsghdr genl;
	char attrs[512];
};

static void put(struct message *m, uint16_t type, const void *data, uint16_t len)
{
	struct nlattr *a = (void *)((char *)m + NLMSG_ALIGN(m->head.nlmsg_len));

	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	memcpy((char *)a + NLA_HDRLEN, data, len);
	m->head.nlmsg_len = NLMSG_ALIGN(m->head.nlmsg_len) + NLA_ALIGN(a->nla_len);
}

/* Sends a request; the answer, of whatever kind, replaces it. */
static int request(int sock, struct message *m)
{
	const struct nlmsgerr *error = (const void *)&m->genl;
	ssize_t n;

	if (send(sock, m, m->head.nlmsg_len, 0) < 0)
		return errno;
	n = recv(sock, m, sizeof(*m), 0);
	if (n < (ssize_t)sizeof(m->head))
		return n < 0 ? errno : EIO;
	return m->head.nlmsg_type == NLMSG_ERROR ? -error->error : 0;
}

static struct message begin(uint16_t family, uint16_t flags, uint8_t cmd)
{
	return (struct message){
		.head = { .nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN), .nlmsg_type = family,
			  .nlmsg_flags = NLM_F_REQUEST | flags },
		.genl = { .cmd = cmd, .version = 1 },
	};
}

static int devlink_family(int sock, uint16_t *family)
{
	struct message m = begin(GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY);
	const char *at = m.attrs;
	int rc;

	put(&m, CTRL_ATTR_FAMILY_NAME, DEVLINK_GENL_NAME, sizeof(DEVLINK_GENL_NAME));
	rc = request(sock, &m);
	while (!rc && at < (char *)&m + m.head.nlmsg_len) {
		const struct nlattr *a = (const void *)at;

		if (a->nla_type == CTRL_ATTR_FAMILY_ID) {
			memcpy(family, at + NLA_HDRLEN, sizeof(*family));
			return 0;
		}
		at += NLA_ALIGN(a->nla_len);
	}
	return rc ? rc : ENOENT;
}

static int reload(struct sweep *s)
{
	int rc, sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	struct message m;
	uint16_t family;

	if (sock < 0)
		return errno;
	rc = devlink_family(sock, &family);
	if (!rc) {
		m = begin(family, NLM_F_ACK, DEVLINK_CMD_RELOAD);
		put(&m, DEVLINK_ATTR_BUS_NAME, "pci", 4);
		put(&m, DEVLINK_ATTR_DEV_NAME, s->pci, strlen(s->pci) + 1);
		rc = request(sock, &m);
	}
	close(sock);
	return rc;
}

/* -- whether the device works --------------------------------------------- */

static bool has_rdma(struct sweep *s)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/infiniband", s->pci);
	return !access(path, F_OK);
}

/*
 * Waits until the interface, which is up, has a link.  The RDMA device is there,
 * too; or its driver's probe has failed, which the bus reports to nobody but the
 * log, and a reload brings it back.
 */
static void works(struct sweep *s)
{
	uint64_t end = now_ns() + PATIENCE;
	struct ifreq ifr;

	if (!has_rdma(s))
		MUST(!reload(s) && has_rdma(s));
	do {
		int rc, sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		if (now_ns() > end)
			die("%s has no link", s->netdev);
		ifr = (struct ifreq){ };
		memcpy(ifr.ifr_name, s->netdev, sizeof(s->netdev));
		rc = ioctl(sock, SIOCGIFFLAGS, &ifr);
		close(sock);
		if (rc)
			die("%s: %s", s->netdev, strerror(errno));
		usleep(1000);
	} while (!(ifr.ifr_flags & IFF_RUNNING));
}

static void bound(struct sweep *s)
{
	find_netdev(s);
	MUST(!change_flags(s, IFF_UP, 0));
	works(s);
}

/*
 * A probe that has failed leaves the function without a driver, and the driver does
 * not try again: whoever binds it does, as often as it takes.
 */
static void bind_again(struct sweep *s)
{
	MUST(!bind_driver(s));
	bound(s);
}

/*
 * The driver makes up for a reload that has failed, but only after a while: until
 * then the device is down, unless another one succeeds.
 */
static void reload_again(struct sweep *s)
{
	MUST(!reload(s));
	works(s);
}

/* -- resets and the network interface ------------------------------------- */

static int function_reset(struct sweep *s)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/reset", s->pci);
	return write_text(path, "1");
}

static int change_mtu(struct sweep *s)
{
	int rc, sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = { };

	if (sock < 0)
		return errno;
	memcpy(ifr.ifr_name, s->netdev, sizeof(s->netdev));
	rc = ioctl(sock, SIOCGIFMTU, &ifr) ? errno : 0;
	ifr.ifr_mtu = ifr.ifr_mtu == 1500 ? 4200 : 1500;
	if (!rc && ioctl(sock, SIOCSIFMTU, &ifr))
		rc = errno;
	close(sock);
	return rc;
}

static int change_rings(struct sweep *s)
{
	struct ethtool_ringparam ring = { .cmd = ETHTOOL_GRINGPARAM };
	int rc, sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = { .ifr_data = (void *)&ring };

	if (sock < 0)
		return errno;
	memcpy(ifr.ifr_name, s->netdev, sizeof(s->netdev));
	rc = ioctl(sock, SIOCETHTOOL, &ifr) ? errno : 0;
	ring.cmd = ETHTOOL_SRINGPARAM;
	ring.tx_pending = ring.tx_pending == 128 ? 512 : 128;
	ring.rx_pending = ring.tx_pending;
	if (!rc && ioctl(sock, SIOCETHTOOL, &ifr))
		rc = errno;
	close(sock);
	return rc;
}

static void take_down(struct sweep *s)
{
	find_netdev(s);
	MUST(!change_flags(s, 0, IFF_UP));
}

static int bring_up(struct sweep *s)
{
	return change_flags(s, IFF_UP, 0);
}

const struct sweep_case sweep_devices[] = {
	{ "bind", unbind_driver, bind_driver, bound, bind_again, NULL, true },
	{ "reload", find_netdev, reload, works, reload_again, NULL, true },
	{ "reset", find_netdev, function_reset, works, works, NULL, true },
	{ "mtu", find_netdev, change_mtu, works, works, NULL, true },
	{ "rings", find_netdev, change_rings, works, works, NULL, true },
	{ "up", take_down, bring_up, works, NULL, NULL, true },
	{ }
};
