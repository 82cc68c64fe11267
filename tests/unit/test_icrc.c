// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "unit.h"

#include "wire/icrc.h"
#include "wire/pkt.h"

/* A congestion notification that a ConnectX-4 Lx sent, from the IP header on. */
static const uint8_t cnp[] = {
	0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61,
	0x0a, 0x00, 0x11, 0x01, 0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7,
	0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x82, 0xfd, 0x00, 0x2a,
};

/* A UC SEND Only of 22 bytes between two ports of another adapter. */
static const uint8_t uc_send[] = {
	0x45, 0x01, 0x00, 0x40, 0x04, 0x78, 0x40, 0x00, 0x40, 0x11, 0xb4, 0xd5,
	0xc0, 0xa8, 0x00, 0x07, 0xc0, 0xa8, 0x00, 0x07, 0xc0, 0x00, 0x12, 0xb7,
	0x00, 0x2c, 0xac, 0xa2, 0x24, 0x60, 0xff, 0xff, 0x00, 0x00, 0x00, 0xd3,
	0x00, 0xcf, 0x17, 0x10, 'F', '0', 0x81, 0x8b, 0xe2, 0x89, '5', 0xd9,
	0x0e, 0x9a, 0x95, 'P', 'T', 0x01, 0xbe, 0x88, '^', 'P', 0x00, 0x00,
	0x78, 0xf3, 0x53, 0xf3,
};

/* A FLUSH of 160 bytes from Soft-RoCE of Linux 6.12. */
static const uint8_t rxe_flush[] = {
	0x45, 0x00, 0x00, 0x40, 0x7c, 0x71, 0x40, 0x00, 0x40, 0x11, 0xa9, 0x9f,
	0x0a, 0x4d, 0x00, 0x02, 0x0a, 0x4d, 0x00, 0x01, 0xc0, 0x22, 0x12, 0xb7,
	0x00, 0x2c, 0x00, 0x00, 0x1c, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x02,
	0x80, 0x6d, 0xf5, 0xc0, 0x00, 0x00, 0x00, 0x11, 0x00, 0x00, 0x7f, 0x00,
	0xf1, 0xde, 0x45, 0x26, 0x00, 0x00, 0x04, 0x01, 0x00, 0x00, 0x00, 0xa0,
	0x0e, 0x51, 0xe8, 0x10,
};

static void check(const uint8_t *packet, size_t len)
{
	size_t bth = len - 20 - 8 - HCA_ICRC_LEN;

	assert_int_equal(hca_icrc(packet, 20, bth),
			 get_le32(packet + len - HCA_ICRC_LEN));
}

static void test_captured(void **state)
{
	(void)state;
	check(cnp, sizeof(cnp));
	check(uc_send, sizeof(uc_send));
}

/* The ICRC that only Soft-RoCE computes for a FLUSH. */
static void test_rxe_flush(void **state)
{
	size_t bth = sizeof(rxe_flush) - 20 - 8 - HCA_ICRC_LEN;
	uint32_t icrc = get_le32(rxe_flush + sizeof(rxe_flush) - HCA_ICRC_LEN);

	(void)state;
	assert_int_equal(hca_icrc_rxe_flush(rxe_flush, 20, bth), icrc);
	assert_int_not_equal(hca_icrc(rxe_flush, 20, bth), icrc);
}

/* Does a change of octet @i of a packet with @ip_len bytes of IP change the ICRC? */
static bool covered(uint8_t *packet, size_t len, size_t ip_len, size_t i)
{
	size_t bth = len - ip_len - 8;
	uint32_t before = hca_icrc(packet, ip_len, bth), after;

	packet[i] ^= 0x11;
	after = hca_icrc(packet, ip_len, bth);
	packet[i] ^= 0x11;
	return before != after;
}

static bool variant(const size_t *list, size_t n, size_t i)
{
	while (n--)
		if (list[n] == i)
			return true;
	return false;
}

static void test_masked_ipv4(void **state)
{
	/* The ICRC ignores TOS, TTL, checksum, UDP checksum and resv8a. */
	static const size_t free_of[] = { 1, 8, 10, 11, 26, 27, 32 };
	uint8_t packet[100];

	(void)state;
	memset(packet, 0x21, sizeof(packet));
	packet[0] = 0x45;
	for (size_t i = 1; i < sizeof(packet); i++)
		assert_int_equal(covered(packet, sizeof(packet), 20, i),
				 !variant(free_of, 7, i));
}

static void test_masked_ipv6(void **state)
{
	/* The ICRC ignores class and label, hop limit, UDP checksum and resv8a. */
	static const size_t free_of[] = { 1, 2, 3, 7, 46, 47, 52 };
	uint8_t packet[100], v;

	(void)state;
	memset(packet, 0x21, sizeof(packet));
	packet[0] = 0x62;
	for (size_t i = 1; i < sizeof(packet); i++)
		assert_int_equal(covered(packet, sizeof(packet), 40, i),
				 !variant(free_of, 7, i));
	/* The ICRC covers the version in the first octet, and not the class. */
	v = packet[0];
	packet[0] = 0x6f;
	assert_int_equal(hca_icrc(packet, 40, 52),
			 (packet[0] = v, hca_icrc(packet, 40, 52)));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_captured),
	cmocka_unit_test(test_rxe_flush),
	cmocka_unit_test(test_masked_ipv4),
	cmocka_unit_test(test_masked_ipv6),
};

TEST_MAIN(tests)
