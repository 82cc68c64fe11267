/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What google/rdma-unit-test has to know of qhca, in the way its README asks for: it expects
 * of a device that it does not know what one vendor's does.
 */

#ifndef INTROSPECTION_QHCA_H
#define INTROSPECTION_QHCA_H

#include <string>

#include "infiniband/verbs.h"
#include "internal/introspection_registrar.h"
#include "public/introspection.h"

namespace rdma_unit_test {

class IntrospectionQhca : public NicIntrospection {
public:
	static void Register()
	{
		IntrospectionRegistrar::GetInstance().Register(
			"qhca", [](const std::string &name, const ibv_device_attr &attr) {
				return new IntrospectionQhca(name, attr);
			});
	}

	bool SupportsReRegMr() const override { return true; }

	/* Fewer messages of the same kinds, as for Soft-RoCE: guests are slow. */
	bool IsSlowNic() const override { return true; }

private:
	IntrospectionQhca(const std::string &name, const ibv_device_attr &attr)
		: NicIntrospection(name, attr) {}
};

}  // namespace rdma_unit_test

#endif
