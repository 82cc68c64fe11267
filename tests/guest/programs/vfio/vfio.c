// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "vfio/vfio.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static int call(int fd, unsigned long request, void *arg)
{
	return ioctl(fd, request, arg) < 0 ? -errno : 0;
}

/* @path gets its name, for a message. */
static int try_group(const char *address, char path[128])
{
	char link[256];
	ssize_t len;

	snprintf(path, 128, "/sys/bus/pci/devices/%s/iommu_group", address);
	len = readlink(path, link, sizeof(link) - 1);
	if (len < 0)
		die(path);
	link[len] = 0;
	snprintf(path, 128, "/dev/vfio/%s", strrchr(link, '/') + 1);
	return open(path, O_RDWR | O_CLOEXEC);
}

static int open_group(const char *address)
{
	char path[128];
	int fd = try_group(address, path);

	if (fd < 0)
		die(path);
	return fd;
}

void vfio_wait_free(const char *address, unsigned int ms)
{
	char path[128];
	int fd;

	while ((fd = try_group(address, path)) < 0 && errno == EBUSY && ms--)
		usleep(1000);
	if (fd < 0)
		die(path);
	close(fd);
}

static struct vfio_region_info region_info(struct vfio *v, uint32_t index)
{
	struct vfio_region_info info = { .argsz = sizeof(info), .index = index };

	if (call(v->device, VFIO_DEVICE_GET_REGION_INFO, &info))
		die("VFIO_DEVICE_GET_REGION_INFO");
	return info;
}

static volatile uint8_t *map_region(struct vfio *v, uint32_t index, size_t *len)
{
	struct vfio_region_info info = region_info(v, index);
	void *p = mmap(NULL, info.size, PROT_READ | PROT_WRITE, MAP_SHARED,
		       v->device, (off_t)info.offset);

	if (p == MAP_FAILED)
		die("mmap of a BAR");
	*len = info.size;
	return p;
}

static void make_vectors(struct vfio *v)
{
	struct vfio_irq_info info = {
		.argsz = sizeof(info), .index = VFIO_PCI_MSIX_IRQ_INDEX,
	};

	if (call(v->device, VFIO_DEVICE_GET_IRQ_INFO, &info))
		die("VFIO_DEVICE_GET_IRQ_INFO");
	for (int i = 0; i < VFIO_VECTORS; i++)
		v->vector[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	v->num_vectors = info.count < VFIO_VECTORS ? info.count : VFIO_VECTORS;
	if (vfio_set_vectors(v))
		die("VFIO_DEVICE_SET_IRQS");
}

int vfio_set_vectors(struct vfio *v)
{
	struct {
		struct vfio_irq_set set;
		int32_t fd[VFIO_VECTORS];
	} irqs = {
		.set = {
			.argsz = sizeof(irqs),
			.flags = VFIO_IRQ_SET_DATA_EVENTFD |
				 VFIO_IRQ_SET_ACTION_TRIGGER,
			.index = VFIO_PCI_MSIX_IRQ_INDEX,
			.count = v->num_vectors,
		},
	};

	memcpy(irqs.fd, v->vector, sizeof(irqs.fd));
	return call(v->device, VFIO_DEVICE_SET_IRQS, &irqs);
}

int vfio_open_again(struct vfio *v)
{
	int fd = ioctl(v->group, VFIO_GROUP_GET_DEVICE_FD, v->address);

	return fd < 0 ? -errno : fd;
}

void vfio_open(struct vfio *v, const char *address, const struct vfio *beside)
{
	struct vfio_group_status status = { .argsz = sizeof(status) };

	memset(v, 0, sizeof(*v));
	snprintf(v->address, sizeof(v->address), "%s", address);
	v->container = beside ? dup(beside->container) :
				open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
	if (v->container < 0)
		die("/dev/vfio/vfio");
	v->group = open_group(address);
	if (call(v->group, VFIO_GROUP_GET_STATUS, &status) ||
	    !(status.flags & VFIO_GROUP_FLAGS_VIABLE))
		die("the group is not viable");
	if (call(v->group, VFIO_GROUP_SET_CONTAINER, &v->container))
		die("VFIO_GROUP_SET_CONTAINER");
	if (!beside && ioctl(v->container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU))
		die("VFIO_SET_IOMMU");
	v->device = vfio_open_again(v);
	if (v->device < 0)
		die("VFIO_GROUP_GET_DEVICE_FD");
	v->config = region_info(v, VFIO_PCI_CONFIG_REGION_INDEX).offset;
	v->regs = region_info(v, VFIO_PCI_BAR0_REGION_INDEX).offset;
	v->doorbells = map_region(v, VFIO_PCI_BAR2_REGION_INDEX, &v->doorbells_len);
	vfio_config_write(v, PCI_COMMAND, PCI_COMMAND_MEMORY);
	make_vectors(v);
}

void vfio_close(struct vfio *v)
{
	munmap((void *)v->doorbells, v->doorbells_len);
	for (int i = 0; i < VFIO_VECTORS; i++)
		close(v->vector[i]);
	close(v->device);
	close(v->group);
	close(v->container);
}

int vfio_map(struct vfio *v, uint64_t iova, void *memory, uint64_t len, bool writable)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = VFIO_DMA_MAP_FLAG_READ | (writable ? VFIO_DMA_MAP_FLAG_WRITE : 0),
		.vaddr = (uintptr_t)memory,
		.iova = iova,
		.size = len,
	};

	return call(v->container, VFIO_IOMMU_MAP_DMA, &map);
}

int vfio_unmap(struct vfio *v, uint64_t iova, uint64_t len)
{
	struct vfio_iommu_type1_dma_unmap unmap = {
		.argsz = sizeof(unmap), .iova = iova, .size = len,
	};
	int err = call(v->container, VFIO_IOMMU_UNMAP_DMA, &unmap);

	return err ? err : unmap.size == len ? 0 : -ENOENT;
}

uint32_t vfio_reg_read(struct vfio *v, unsigned int offset)
{
	uint32_t value;

	if (pread(v->device, &value, 4, (off_t)(v->regs + offset)) != 4)
		return UINT32_MAX;
	return value;
}

void vfio_reg_write(struct vfio *v, unsigned int offset, uint32_t value)
{
	/* A write to a function that does not answer is lost. */
	if (pwrite(v->device, &value, 4, (off_t)(v->regs + offset)) != 4 && errno != EIO)
		die("write to a register");
}

bool vfio_mappable(struct vfio *v, unsigned int index)
{
	struct vfio_region_info info = region_info(v, index);
	void *p = mmap(NULL, info.size, PROT_READ | PROT_WRITE, MAP_SHARED, v->device,
		       (off_t)info.offset);

	if (p != MAP_FAILED)
		munmap(p, info.size);
	return p != MAP_FAILED || info.flags & VFIO_REGION_INFO_FLAG_MMAP;
}

uint16_t vfio_config_read(struct vfio *v, unsigned int offset)
{
	uint16_t value;

	if (pread(v->device, &value, 2, (off_t)(v->config + offset)) != 2)
		die("read of the configuration space");
	return value;
}

int vfio_config_write(struct vfio *v, unsigned int offset, uint16_t value)
{
	return pwrite(v->device, &value, 2, (off_t)(v->config + offset)) == 2 ? 0 : -errno;
}

void vfio_set_master(struct vfio *v, bool on)
{
	uint16_t command = vfio_config_read(v, PCI_COMMAND) & ~PCI_COMMAND_MASTER;

	vfio_config_write(v, PCI_COMMAND, command | (on ? PCI_COMMAND_MASTER : 0));
}

int vfio_reset(struct vfio *v)
{
	return call(v->device, VFIO_DEVICE_RESET, NULL);
}

static unsigned int find_capability(struct vfio *v, uint8_t id)
{
	unsigned int at = vfio_config_read(v, PCI_CAPABILITY_LIST) & 0xfc;

	while (at) {
		uint16_t head = vfio_config_read(v, at);

		if ((head & 0xff) == id)
			return at;
		at = head >> 8 & 0xfc;
	}
	return 0;
}

int vfio_flr(struct vfio *v)
{
	unsigned int at = find_capability(v, PCI_CAP_ID_EXP) + PCI_EXP_DEVCTL;

	return vfio_config_write(v, at, vfio_config_read(v, at) | PCI_EXP_DEVCTL_BCR_FLR);
}

uint64_t vfio_interrupts(struct vfio *v, unsigned int vector, int ms)
{
	struct pollfd fd = { .fd = v->vector[vector], .events = POLLIN };
	uint64_t count;

	if (poll(&fd, 1, ms) < 1 || read(fd.fd, &count, sizeof(count)) != sizeof(count))
		return 0;
	return count;
}

unsigned long vfio_stat(const struct vfio *v, const char *name)
{
	char path[128];
	unsigned long value;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/stage2/%s", v->address, name);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%lu", &value) != 1)
		die(path);
	fclose(file);
	return value;
}
