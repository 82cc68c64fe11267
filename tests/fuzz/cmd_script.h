/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The script of fuzz_cmd, and the mailboxes of its commands.
 */
#ifndef QHCA_FUZZ_CMD_SCRIPT_H
#define QHCA_FUZZ_CMD_SCRIPT_H

#include "guard.h"
#include "input.h"

#define MAX_OPS		300
#define NUM_BUFS	12
#define BUF_LEN		12288u
#define REC_OFFSET	(BUF_LEN - 128)
#define CHUNK_ROOM	(1u << 19)

struct script {
	struct guard *g;
	struct md *md;
	struct in *in;
	uint64_t slots, mailbox, out, chunks;
	struct md_buf buf[NUM_BUFS];	/* every second one scattered */
};

struct template {
	uint8_t opcode, weight;
	uint32_t (*fill)(struct script *s, uint8_t *to);
	uint16_t out_len;
};

/* cmd_mailbox.c */
uint32_t num_of(struct script *s);
uint32_t fill_ethq(struct script *s, uint8_t *to);
uint32_t fill_qp(struct script *s, uint8_t *to);
const struct template *pick_template(struct script *s);

#endif /* QHCA_FUZZ_CMD_SCRIPT_H */
