// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * drivers/vfio/pci/qhca: the configuration space, which the user, VFIO's library and the
 * driver write.
 */
#include "vfio_model.h"

static ssize_t write_command(u16 value)
{
	const char bytes[2] = { (char)(value & 0xff), (char)(value >> 8) };
	loff_t pos = PCI_COMMAND;

	return qhca_vfio_write_config(&vf, bytes, sizeof(bytes), &pos);
}

static void pf_dies(void)
{
	fault(0, PAGE_SIZE, true, false);
	work();
	pf_dead = true;
	qhca_s2_unmap(&vf.core.vdev, 0, PAGE_SIZE);
	assert_true(vf.broken && !pdev.master);
	return_to_user();
}

static void pf_is_back(void)
{
	pf_dead = false;
	root = 0;
	qhca_s2_restart(&vf);
	assert_false(vf.broken);
}

/* What the user writes while the driver does is in force when both are done. */
static void test_command(void **state)
{
	const char header[8] = { 0 };
	loff_t pos = PCI_STATUS;

	(void)state;
	start();
	new_memory(true);
	assert_int_equal(qhca_s2_open(&vf), 0);
	assert_int_equal(write_command(PCI_COMMAND_MASTER), 2);
	assert_true(pdev.master);

	/* Bus mastering is switched on as the function breaks, and waits for its end. */
	assert_int_equal(write_command(0), 2);
	meanwhile = pf_dies;
	assert_int_equal(write_command(PCI_COMMAND_MASTER), 2);
	assert_true(vf.broken && !pdev.master);
	assert_int_equal(write_command(PCI_COMMAND_MASTER), -EIO);
	pf_is_back();
	assert_true(pdev.master);

	/* It is switched off as the driver switches it on again. */
	meanwhile = pf_is_back;
	assert_int_equal(write_command(0), 2);
	assert_false(pdev.master);
	pf_is_back();
	assert_false(pdev.master);

	/* One write is beside the register, and one is longer. */
	assert_int_equal(write_command(PCI_COMMAND_MASTER), 2);
	assert_int_equal(qhca_vfio_write_config(&vf, header, 2, &pos), 2);
	assert_true(pdev.master);
	pos = 0;
	assert_int_equal(qhca_vfio_write_config(&vf, header, sizeof(header), &pos),
			 sizeof(header));
	assert_false(pdev.master);
	pf_is_back();
	assert_false(pdev.master);
	qhca_s2_close(&vf);
	qhca_s2_faults_exit(&vf);
}

/* VFIO's library writes the register back while the driver changes it. */
static void test_interrupts(void **state)
{
	(void)state;
	start();
	new_memory(true);
	assert_int_equal(qhca_s2_open(&vf), 0);
	assert_int_equal(write_command(PCI_COMMAND_MASTER), 2);
	assert_int_equal(qhca_vfio_set_irqs(&vf, 77), 77);
	assert_true(pdev.master);

	meanwhile = pf_dies;
	assert_int_equal(qhca_vfio_set_irqs(&vf, 0), 0);
	assert_true(vf.broken && !pdev.master);
	meanwhile = pf_is_back;
	assert_int_equal(qhca_vfio_set_irqs(&vf, 0), 0);
	assert_true(!vf.broken && pdev.master);

	/* Whoever waits for a silence does not end a life that has begun meanwhile. */
	qhca_s2_silence(&vf);
	assert_true(!vf.broken && pdev.master);
	qhca_s2_close(&vf);
	qhca_s2_faults_exit(&vf);
}

/* Only a reset of the configuration space loses MSI-X; all other times it is in use. */
static void test_msix(void **state)
{
	(void)state;
	start();
	assert_int_equal(qhca_s2_open(&vf), 0);
	pdev.msix_restored = 0;
	pdev.msix_control = 0;
	pf_is_back();
	assert_int_equal(pdev.msix_restored, 0);
	pdev.msix_enabled = true;
	pdev.msix_control = PCI_MSIX_FLAGS_ENABLE;
	pf_is_back();
	assert_int_equal(pdev.msix_restored, 0);
	pdev.msix_control = 0;
	pf_is_back();
	assert_int_equal(pdev.msix_restored, 1);
	pdev.msix_enabled = false;
	qhca_s2_close(&vf);
	qhca_s2_faults_exit(&vf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_msix),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
