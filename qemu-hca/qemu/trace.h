#include "trace/trace-hw_rdma_qhca_qemu.h"
