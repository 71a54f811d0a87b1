/*
 * What a patched sled branches to, AArch64. The thunk beside the function's
 * code has put the site's address into x16 and ours into x17, which a veneer
 * may change anyway between a call and its target.
 *
 * A counted call is a call-through: the stub keeps the return address in the
 * shadow stack, *calls* the body, and returns itself. The slot is the stack
 * pointer at entry.
 */
/*
 * Unwinding through a counted call. Its return address is not on the stack
 * but in the thread's shadow stack; this rule (DW_CFA_val_expression) finds it
 * there, so exceptions, backtrace(), pthread_cancel and debuggers see the
 * frames that would be there without us:
 *
 *	B = the address of pmu_return, where the call's frame returns to
 *	t = *(B + 128 + *(int32_t *)(B + 128))            pmu_threads
 *	while (t && !(t->lo <= slot && slot < t->hi)) t = t->next
 *	for (f = t->frames + t->block->depth; --f >= t->frames; )
 *		if (f->slot == slot && f->ret != B) return f->ret - 1
 *	return 0
 *
 * (f->ret == B: entered by a tail call, the caller is further down. libgcc's
 * DW_OP_pick does not reach the bottom of its stack, so that is doubled.)
 *
 * The frame has the same CFA as the one above it, and libgcc tells frames
 * apart by CFA: so it is a signal frame, which libgcc takes one lower, and
 * whose caller's address is used as it is, not less one.
 */
	.macro unwind_rule
	.cfi_escape 0x16, 0x1e, 0x63, 0x12, 0x8e, 0x00, 0x23, 0x80, 0x01, 0x12, 0x94, 0x04
	.cfi_escape 0x22, 0x06, 0x12, 0x30, 0x29, 0x28, 0x51, 0x00, 0x14, 0x14, 0x23, 0x08
	.cfi_escape 0x06, 0x2a, 0x15, 0x02, 0x15, 0x02, 0x23, 0x10, 0x06, 0x2d, 0x1a, 0x28
	.cfi_escape 0x04, 0x00, 0x06, 0x2f, 0xe4, 0xff, 0x12, 0x23, 0x20, 0x06, 0x23, 0x04
	.cfi_escape 0x94, 0x04, 0x0a, 0x00, 0x01, 0x1e, 0x14, 0x23, 0x18, 0x06, 0x22, 0x0a
	.cfi_escape 0x00, 0x01, 0x1c, 0x12, 0x15, 0x02, 0x23, 0x18, 0x06, 0x2d, 0x28, 0x1c
	.cfi_escape 0x00, 0x12, 0x06, 0x15, 0x03, 0x2e, 0x28, 0xea, 0xff, 0x12, 0x23, 0x08
	.cfi_escape 0x06, 0x12, 0x8e, 0x00, 0x2e, 0x28, 0x04, 0x00, 0x13, 0x2f, 0xdb, 0xff
	.cfi_escape 0x31, 0x1c, 0x2f, 0x01, 0x00, 0x30
	.endm

	.text
	.hidden pmu_common, pmu_return, pmu_enter, pmu_exit, pmu_threads
	.globl pmu_common, pmu_return
	.type pmu_common, %function

	/* x0 to x15 and x18: arguments, and what IPA-RA callers rely on. */
	.macro save
	sub	sp, sp, #160
	stp	x0, x1, [sp]
	stp	x2, x3, [sp, #16]
	stp	x4, x5, [sp, #32]
	stp	x6, x7, [sp, #48]
	stp	x8, x9, [sp, #64]
	stp	x10, x11, [sp, #80]
	stp	x12, x13, [sp, #96]
	stp	x14, x15, [sp, #112]
	stp	x29, x30, [sp, #128]
	str	x18, [sp, #144]
	.endm
	.macro restore
	ldp	x0, x1, [sp]
	ldp	x2, x3, [sp, #16]
	ldp	x4, x5, [sp, #32]
	ldp	x6, x7, [sp, #48]
	ldp	x8, x9, [sp, #64]
	ldp	x10, x11, [sp, #80]
	ldp	x12, x13, [sp, #96]
	ldp	x14, x15, [sp, #112]
	ldr	x18, [sp, #144]
	.endm

	.p2align 6
pmu_common:
	.cfi_startproc
	hint	#34			/* bti c */
	save
	.cfi_def_cfa_offset 160
	.cfi_offset 30, -24
	.cfi_offset 29, -32
	mov	x0, x16			/* the site */
	add	x1, sp, #160		/* slot */
	mov	x2, x30
	bl	pmu_enter		/* x0: body, x1: count it? */
	mov	x16, x0
	mov	x17, x1
	restore
	ldp	x29, x30, [sp, #128]
	add	sp, sp, #160
	.cfi_def_cfa_offset 0
	.cfi_restore 29
	.cfi_restore 30
	cbz	x17, 1f
	.cfi_endproc
	.cfi_startproc
	.cfi_signal_frame
	unwind_rule
	blr	x16
pmu_return:
	save
	.cfi_def_cfa_offset 160
	add	x0, sp, #160
	bl	pmu_exit		/* the original return address */
	mov	x16, x0
	restore
	ldr	x29, [sp, #128]
	add	sp, sp, #160
	.cfi_def_cfa_offset 0
	mov	x30, x16
	.cfi_restore 30
	ret
	.cfi_endproc
	.cfi_startproc
1:	br	x16
	.cfi_endproc
	.size pmu_common, .-pmu_common
	.org pmu_return + 128
	.long	pmu_threads - .

/*
 * Calibration. These have their sled already replaced; the thunk is as long as
 * the real ones (ldr, ldr, br).
 *
 *	pmu_cal_leaf		nop, ret: 2
 *	pmu_cal_calls		nop, stp, mov, 1000 (bl, subs, b.ne), ldp, ret:
 *				3005, and 1000 times pmu_cal_leaf
 */
	.hidden pmu_cal_site
	.hidden pmu_cal_leaf, pmu_cal_calls, pmu_cal_bare_calls, pmu_cal_loop
	.globl pmu_cal_leaf, pmu_cal_calls, pmu_cal_bare_calls, pmu_cal_loop
	.globl pmu_cal_leaf_body, pmu_cal_calls_body
	.hidden pmu_cal_leaf_body, pmu_cal_calls_body
	.type pmu_cal_leaf, %function
	.type pmu_cal_calls, %function
	.type pmu_cal_bare_calls, %function
	.type pmu_cal_loop, %function

	.macro thunk site
	adrp	x16, pmu_cal_site
	add	x16, x16, :lo12:pmu_cal_site + 24 * \site
	b	pmu_common
	.endm

	.p2align 6
thunk0:	thunk	0
	.p2align 6
thunk1:	thunk	1

	.p2align 6
pmu_cal_leaf:
	b	thunk0
pmu_cal_leaf_body:
	ret
	.p2align 6
pmu_cal_calls:
	b	thunk1
pmu_cal_calls_body:
	stp	x19, x30, [sp, #-16]!
	mov	w19, #1000
1:	bl	pmu_cal_leaf
	subs	w19, w19, #1
	b.ne	1b
	ldp	x19, x30, [sp], #16
	ret

	.p2align 6
bare:	nop
	ret
	.p2align 6
pmu_cal_bare_calls:
	nop
	stp	x19, x30, [sp, #-16]!
	mov	w19, #1000
1:	bl	bare
	subs	w19, w19, #1
	b.ne	1b
	ldp	x19, x30, [sp], #16
	ret

	.p2align 6
pmu_cal_loop:
1:	subs	x0, x0, #1
	b.ne	1b
	ret
	.section .note.GNU-stack, "", %progbits
