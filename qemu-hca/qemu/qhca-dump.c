/*
 * qhca adapter: capture of a link without a netdev
 *
 * filter-dump captures what passes a netdev, which a link over shared memory
 * has not.  The property shm-dump names a file that gets a copy of each frame,
 * sent or received, in the format that filter-dump writes and other programs
 * read.  It may be set at any time; empty ends the capture.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/iov.h"
#include "qapi/error.h"
#include "qhca-dev.h"

#define QHCA_PCAP_MAGIC     0xa1b2c3d4
#define QHCA_PCAP_ETHERNET  1

typedef struct QhcaPcapHead {
    uint32_t magic;
    uint16_t major;
    uint16_t minor;
    int32_t zone;
    uint32_t sigfigs;
    uint32_t max_len;
    uint32_t link_type;
} QhcaPcapHead;

typedef struct QhcaPcapFrame {
    uint32_t seconds;
    uint32_t microseconds;
    uint32_t captured;
    uint32_t len;
} QhcaPcapFrame;

/*
 * The frame is in memory that the peer can change, and a packet may lack its
 * ICRC there, which whoever reads the capture wants to see.
 */
void qhca_dump_frame(QhcaState *s, const void *frame, size_t len)
{
    g_autofree void *copy = g_memdup2(frame, len);
    int64_t us = g_get_real_time();
    QhcaPcapFrame head = {
        .seconds = us / G_USEC_PER_SEC,
        .microseconds = us % G_USEC_PER_SEC,
        .captured = len,
        .len = len,
    };
    struct iovec iov[] = {
        { .iov_base = &head, .iov_len = sizeof(head) },
        { .iov_base = copy, .iov_len = len },
    };

    qhca_fill_icrc(s->hca, copy, len);

    if (writev(s->link.dump_fd, iov, 2) != sizeof(head) + len) {
        warn_report("qhca: shm-dump=%s: cannot write any more: %s",
                    s->link.dump, strerror(errno));
        close(s->link.dump_fd);
        s->link.dump_fd = -1;
    }
}

static int qhca_dump_open(const char *path, Error **errp)
{
    const QhcaPcapHead head = {
        .magic = QHCA_PCAP_MAGIC,
        .major = 2,
        .minor = 4,
        .max_len = 65536,
        .link_type = QHCA_PCAP_ETHERNET,
    };
    int fd = qemu_create(path, O_WRONLY | O_TRUNC | O_BINARY, 0644, errp);

    if (fd >= 0 && qemu_write_full(fd, &head, sizeof(head)) != sizeof(head)) {
        error_setg_errno(errp, errno, "shm-dump=%s: cannot write", path);
        close(fd);
        return -1;
    }
    return fd;
}

static char *qhca_dump_get(Object *obj, Error **errp)
{
    return g_strdup(QHCA(obj)->link.dump ?: "");
}

static void qhca_dump_replace(QhcaState *s, int fd, const char *path)
{
    bool entered = qhca_enter(s);       /* false: there is no engine yet */
    int old = s->link.dump_fd;

    s->link.dump_fd = fd;
    g_free(s->link.dump);
    s->link.dump = g_strdup(path);
    if (entered) {
        qhca_leave(s);
    }
    if (old >= 0) {
        close(old);
    }
}

static void qhca_dump_set(Object *obj, const char *value, Error **errp)
{
    int fd = -1;

    if (*value) {
        fd = qhca_dump_open(value, errp);
        if (fd < 0) {
            return;
        }
    }
    qhca_dump_replace(QHCA(obj), fd, value);
}

void qhca_dump_class_init(ObjectClass *klass)
{
    object_class_property_add_str(klass, "shm-dump", qhca_dump_get,
                                  qhca_dump_set);
    object_class_property_set_description(klass, "shm-dump",
        "file for a capture of the frames on the link of the property shm");
}

void qhca_dump_init(QhcaState *s)
{
    s->link.dump_fd = -1;
}

void qhca_dump_finalize(QhcaState *s)
{
    if (s->link.dump_fd >= 0) {
        close(s->link.dump_fd);
    }
    g_free(s->link.dump);
}
