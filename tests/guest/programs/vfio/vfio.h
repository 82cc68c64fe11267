/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A PCI function through VFIO: a group, a container of type 1, the device.
 *
 * A call that cannot fail in a test that makes sense ends the program with a
 * message; those that return int return 0 or a negative errno.
 */
#ifndef QHCA_TEST_VFIO_H
#define QHCA_TEST_VFIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VFIO_VECTORS	3

struct vfio {
	char address[32];		/* PCI */
	int container, group, device;
	uint64_t config;		/* offset of the configuration space */
	uint64_t regs;			/* of BAR 0, which cannot be mapped */
	volatile uint8_t *doorbells;	/* BAR 2 */
	size_t doorbells_len;
	int vector[VFIO_VECTORS];	/* eventfds */
	unsigned int num_vectors;	/* of these in use */
};

/* In the container of @beside, or without one in a container of its own. */
void vfio_open(struct vfio *v, const char *address, const struct vfio *beside);
void vfio_close(struct vfio *v);
/*
 * Wait up to @ms until the group of a process that was killed is free.  While the kernel
 * brings in a page of a process, it keeps the address space, and with it the mappings of
 * the device, whose file keeps the group open.
 */
void vfio_wait_free(const char *address, unsigned int ms);
/* Another descriptor of the device, which is open; or a negative errno. */
int vfio_open_again(struct vfio *v);

/* What the VMM does for its guest's memory. */
int vfio_map(struct vfio *v, uint64_t iova, void *memory, uint64_t len,
	     bool writable);
int vfio_unmap(struct vfio *v, uint64_t iova, uint64_t len);

/* Registers of BAR 0; all ones if the function does not answer. */
uint32_t vfio_reg_read(struct vfio *v, unsigned int offset);
void vfio_reg_write(struct vfio *v, unsigned int offset, uint32_t value);
/* Can the process reach BAR @index without a system call? */
bool vfio_mappable(struct vfio *v, unsigned int index);

uint16_t vfio_config_read(struct vfio *v, unsigned int offset);
int vfio_config_write(struct vfio *v, unsigned int offset, uint16_t value);
/* Bus mastering, in the command register. */
void vfio_set_master(struct vfio *v, bool on);
/* FLR: by the ioctl, or as a guest asks for it. */
int vfio_reset(struct vfio *v);
int vfio_flr(struct vfio *v);

/* Has the kernel free the interrupts and request them again. */
int vfio_set_vectors(struct vfio *v);
/* Interrupts of @vector since the last call; waits for one up to @ms. */
uint64_t vfio_interrupts(struct vfio *v, unsigned int vector, int ms);

/* An attribute of the driver: what is pinned, and why. */
unsigned long vfio_stat(const struct vfio *v, const char *name);

#endif
