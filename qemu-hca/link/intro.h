/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The introduction of two processes that are to share queues of frames.
 *
 * They meet at a Unix socket (SOCK_SEQPACKET).  One of them, the listener, has the
 * memory made:
 *
 *   connecter -> listener    HELLO   what it needs: frames of so many bytes
 *   listener  -> connecter   MEMORY  how the queues lie in the memory, with its
 *                                    descriptor
 *   connecter -> listener    READY   it has checked and mapped them
 *
 * Either may send REFUSE instead, with a sentence, which the other one reports.  The
 * socket stays open: its end is the end of the link, and each further message is a
 * wake-up for an end that sleeps (slots.h).  Messages serve better than an eventfd:
 * an eventfd that both have is one object, which a peer could drain, or make
 * blocking; of a socket, each has its own end.
 *
 * The memory is a memfd whose size is sealed, so that access to it cannot raise SIGBUS
 * later.  The connecter checks the seals, since it need not believe the listener.  Each
 * connection gets new memory: what an earlier peer still has mapped is of no use to it.
 *
 * No function here blocks.
 */
#ifndef HCA_LINK_INTRO_H
#define HCA_LINK_INTRO_H

#include "slots.h"

#define HCA_INTRO_VERSION	1u
#define HCA_INTRO_MAX_SIZE	(256u << 20)	/* bytes of memory that two may share */
#define HCA_INTRO_TEXT		160

/*
 * What an end is willing to do.  What both are, they do: the connecter offers it, and the
 * listener answers with what it is willing to do of that.  An end of an earlier version
 * offers nothing, and ignores what it does not know.
 */
#define HCA_INTRO_NO_ICRC	0x1u	/* send and accept packets without ICRC */

enum hca_intro_result {
	HCA_INTRO_AGAIN,		/* wait until the socket is readable */
	HCA_INTRO_DONE,
	HCA_INTRO_FAILED,		/* see hca_intro.err */
};

/* What one end wants of the queues. */
struct hca_intro_wish {
	uint32_t slots;			/* in each queue; the listener's choice */
	uint32_t room;			/* bytes of the largest frame, at least */
	uint32_t offers;		/* HCA_INTRO_* */
};

/* An introduction under way.  Private to intro.c, but for fd and err. */
struct hca_intro {
	int fd;				/* the socket; the caller closes it */
	char err[HCA_INTRO_TEXT];	/* a sentence, after HCA_INTRO_FAILED */
	bool listener;
	bool memory_sent;
	struct hca_intro_wish wish;
	void *mem;
	size_t size;
	uint32_t slots, room;		/* as agreed, and the following */
	uint32_t offers;
	uint64_t to_connecter, to_listener;	/* where the queues begin */
};

/* Two queues in memory that is shared with a peer. */
struct hca_pair_memory {
	void *mem;
	size_t size;
	struct hca_slots tx, rx;
	uint32_t offers;		/* HCA_INTRO_* that both ends made */
};

/*
 * Listen at @path, or connect to it.  Returns a socket that does not block, or -1 with
 * a sentence in @err.  A socket at @path that nobody listens at is replaced; *@busy
 * (may be NULL) says that the failure is one that passes: another process listens, or
 * none does.
 */
int hca_intro_listen(const char *path, bool *busy, char *err, size_t err_len);
int hca_intro_connect(const char *path, bool *busy, char *err, size_t err_len);
/* The next connection of a listening socket, or -1: there is none. */
int hca_intro_accept(int fd);

/* Begin on a connected socket. */
enum hca_intro_result hca_intro_begin(struct hca_intro *i, int fd,
				      bool listener,
				      const struct hca_intro_wish *wish);
/* Go on: the socket is readable. */
enum hca_intro_result hca_intro_step(struct hca_intro *i);
/* After HCA_INTRO_DONE: the memory is the caller's, to be unmapped by hca_pair_free(). */
void hca_intro_take(struct hca_intro *i, struct hca_pair_memory *pair);
/* Release what an introduction holds that is not taken; the socket stays open. */
void hca_intro_end(struct hca_intro *i);

void hca_pair_free(struct hca_pair_memory *pair);

/*
 * Wake the peer: once for each flag that this end has cleared.  A message that finds no room
 * is lost.  Others wait there then, and a peer that leaves messages unread while it sleeps
 * must wake up by itself to read them.
 */
void hca_intro_wake(int fd);
/* Wake-ups that a socket holds at least, where the system grants it 16 KiB. */
#define HCA_INTRO_WAKES	16u
/*
 * Read the wake-ups that have come, up to 128 of them.  false: the peer has ended, and fewer
 * wake-ups than that were before its end; otherwise the caller learns of the end by EPOLLHUP.
 * An end that learns by other means that there are wake-ups may leave them, until it has asked
 * for HCA_INTRO_WAKES.
 */
bool hca_intro_woken(int fd);

#endif /* HCA_LINK_INTRO_H */
