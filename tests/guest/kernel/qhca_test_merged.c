// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_test_merged.ko: sends a frame that another interface has merged.
 *
 *   insmod qhca_test_merged.ko netdev=eth0
 *
 * An adapter that merges segments of TCP may verify their checksums and say no more
 * about them.  Forwarded, such a frame is one to be segmented whose checksum is complete
 * (CHECKSUM_UNNECESSARY).  No program can send one, so this module does: SEGMENTS
 * segments of PAYLOAD bytes, to everybody.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/tcp.h>
#include <net/ip.h>
#include <net/tcp.h>

#define SEGMENTS	2
#define PAYLOAD		1000
#define PORT		9	/* discard */

static char *netdev = "eth0";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "network interface that sends the frame");

/* Headers from 192.0.2.1 to 192.0.2.2, at the places that the stack knows. */
static void put_headers(struct sk_buff *skb, struct net_device *dev)
{
	unsigned int len = sizeof(struct tcphdr) + SEGMENTS * PAYLOAD;
	struct ethhdr *eth = skb_put_zero(skb, ETH_HLEN);
	struct iphdr *ip = skb_put_zero(skb, sizeof(*ip));
	struct tcphdr *tcp = skb_put_zero(skb, sizeof(*tcp));

	memset(skb_put(skb, SEGMENTS * PAYLOAD), 0x5a, SEGMENTS * PAYLOAD);
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, ETH_HLEN);
	skb_set_transport_header(skb, ETH_HLEN + sizeof(*ip));
	eth_broadcast_addr(eth->h_dest);
	ether_addr_copy(eth->h_source, dev->dev_addr);
	eth->h_proto = htons(ETH_P_IP);
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tot_len = htons(sizeof(*ip) + len);
	ip->ttl = 64;
	ip->protocol = IPPROTO_TCP;
	ip->saddr = htonl(0xc0000201);
	ip->daddr = htonl(0xc0000202);
	ip_send_check(ip);
	tcp->source = htons(PORT);
	tcp->dest = htons(PORT);
	tcp->doff = sizeof(*tcp) / 4;
	tcp->ack = 1;
	tcp->check = tcp_v4_check(len, ip->saddr, ip->daddr,
				  csum_partial(tcp, len, 0));
}

static int __init qhca_test_merged_init(void)
{
	struct net_device *dev = dev_get_by_name(&init_net, netdev);
	struct sk_buff *skb;
	int err = -ENOMEM;

	if (!dev)
		return -ENODEV;
	skb = alloc_skb(LL_RESERVED_SPACE(dev) + 256 + SEGMENTS * PAYLOAD,
			GFP_KERNEL);
	if (!skb)
		goto put;
	skb_reserve(skb, LL_RESERVED_SPACE(dev));
	put_headers(skb, dev);
	skb->dev = dev;
	skb->protocol = htons(ETH_P_IP);
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	skb_shinfo(skb)->gso_size = PAYLOAD;
	skb_shinfo(skb)->gso_segs = SEGMENTS;
	skb_shinfo(skb)->gso_type = SKB_GSO_TCPV4;
	err = dev_queue_xmit(skb);
	if (err > 0)
		err = net_xmit_errno(err);
put:
	dev_put(dev);
	return err;
}
module_init(qhca_test_merged_init);

static void __exit qhca_test_merged_exit(void)
{
}
module_exit(qhca_test_merged_exit);

MODULE_DESCRIPTION("Sends a frame that another interface has merged");
MODULE_LICENSE("Dual BSD/GPL");
