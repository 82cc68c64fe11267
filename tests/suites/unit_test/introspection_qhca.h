/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What google/rdma-unit-test has to know of qhca, in the way its README asks for: it expects
 * of a device that it does not know what one vendor's does.
 */

#ifndef INTROSPECTION_QHCA_H
#define INTROSPECTION_QHCA_H

#include <string>

#include "absl/container/flat_hash_map.h"
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

protected:
	/* Tests that are skipped, and why. */
	const absl::flat_hash_map<TestcaseKey, std::string> &GetDeviations() const override
	{
		static const absl::flat_hash_map<TestcaseKey, std::string> deviations{
			{{"CompChannelTest", "RequestNotificationInvalidCq"},
			 "the device arms a CQ by a doorbell, which reports nothing"},
			{{"CompChannelTest", "RequestNotificationOnCqWithoutCompChannel"},
			 "the doorbell of a CQ without a channel reports nothing"},
			{{"DeviceLimitTest", "MaxPd"}, "the device has 16777215 PDs"},
			{{"MwType2AdvancedTest", "Rebind"},
			 "a QP in the error state drops requests (IBTA 10.3.1.7), so that "
			 "its peer, whose timeout is infinite, never ends"},
			{{"QpStateTest", "PostRecvReset"},
			 "a receive is refused in the Reset state (IBTA 10.3.1.1)"},
			{{"QpStateTest", "PostSendReset"},
			 "a send is refused before RTS (C10-96)"},
			{{"QpStateTest", "PostSendInit"},
			 "a send is refused before RTS (C10-96)"},
			{{"QpStateTest", "PostSendRtr"},
			 "a send is refused before RTS (C10-96)"},
		};
		return deviations;
	}

private:
	IntrospectionQhca(const std::string &name, const ibv_device_attr &attr)
		: NicIntrospection(name, attr) {}
};

}  // namespace rdma_unit_test

#endif
