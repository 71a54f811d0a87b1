/*
 * What a patched sled jumps to, x86-64. The thunk beside the function's code
 * has pushed r11 and put the site's address into it.
 *
 * A counted call is a call-through: the stub takes the return address off the
 * stack, *calls* the body, and returns itself. Calls and returns stay paired,
 * as branch predictors and shadow stacks want them. Stack arguments stay where
 * they are: our return address lies in the slot of the original one.
 *
 * All registers are kept, also those a caller may not rely on: with IPA-RA it
 * does. Vector registers are kept by never being used.
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
	.cfi_escape 0x16, 0x10, 0x66, 0x12, 0x38, 0x1c, 0x12, 0x06, 0x23, 0x80, 0x01, 0x12
	.cfi_escape 0x94, 0x04, 0x22, 0x06, 0x12, 0x30, 0x29, 0x28, 0x52, 0x00, 0x14, 0x14
	.cfi_escape 0x23, 0x08, 0x06, 0x2a, 0x15, 0x02, 0x15, 0x02, 0x23, 0x10, 0x06, 0x2d
	.cfi_escape 0x1a, 0x28, 0x04, 0x00, 0x06, 0x2f, 0xe4, 0xff, 0x12, 0x23, 0x20, 0x06
	.cfi_escape 0x23, 0x04, 0x94, 0x04, 0x0a, 0x00, 0x01, 0x1e, 0x14, 0x23, 0x18, 0x06
	.cfi_escape 0x22, 0x0a, 0x00, 0x01, 0x1c, 0x12, 0x15, 0x02, 0x23, 0x18, 0x06, 0x2d
	.cfi_escape 0x28, 0x1d, 0x00, 0x12, 0x06, 0x15, 0x03, 0x2e, 0x28, 0xea, 0xff, 0x12
	.cfi_escape 0x23, 0x08, 0x06, 0x12, 0x15, 0x04, 0x06, 0x2e, 0x28, 0x04, 0x00, 0x13
	.cfi_escape 0x2f, 0xda, 0xff, 0x31, 0x1c, 0x2f, 0x01, 0x00, 0x30
	.endm

	.text
	.hidden pmu_common, pmu_return, pmu_enter, pmu_exit, pmu_threads
	.globl pmu_common, pmu_return
	.type pmu_common, @function
	.p2align 6
pmu_common:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	push	%rax
	push	%rcx
	push	%rdx
	push	%rsi
	push	%rdi
	push	%r8
	push	%r9
	push	%r10
	.cfi_def_cfa_offset 80
	mov	%r11, %rdi		/* the site */
	lea	72(%rsp), %rsi		/* slot: where the return address is */
	mov	72(%rsp), %rdx
	call	pmu_enter		/* rax: body, rdx: count it? */
	mov	%rax, -8(%rsp)		/* slot - 80: in the red zone below */
	test	%edx, %edx		/* pops and lea leave the flags alone */
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rdi
	pop	%rsi
	pop	%rdx
	pop	%rcx
	pop	%rax
	pop	%r11
	.cfi_def_cfa_offset 8
	jz	1f
	lea	8(%rsp), %rsp
	.cfi_endproc
	.cfi_startproc
	.cfi_signal_frame
	.cfi_def_cfa_offset 0
	unwind_rule
	call	*-88(%rsp)
pmu_return:
	lea	-8(%rsp), %rsp
	.cfi_def_cfa_offset 8
	push	%rax
	push	%rcx
	push	%rdx
	push	%rsi
	push	%rdi
	push	%r8
	push	%r9
	push	%r10
	push	%r11
	.cfi_def_cfa_offset 80
	lea	72(%rsp), %rdi
	call	pmu_exit		/* the original return address */
	mov	%rax, 72(%rsp)
	.cfi_restore 16
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rdi
	pop	%rsi
	pop	%rdx
	pop	%rcx
	pop	%rax
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.cfi_startproc
1:	jmp	*-80(%rsp)
	.cfi_endproc
	.size pmu_common, .-pmu_common
	.org pmu_return + 128, 0xcc
	.long	pmu_threads - .

/*
 * Calibration. These have their sled already replaced; the thunk is as long as
 * the real ones.
 *
 *	pmu_cal_leaf		nop, ret: 2
 *	pmu_cal_calls		nop, push, mov, 1000 (call, dec, jnz), pop, ret:
 *				3005, and 1000 times pmu_cal_leaf
 */
	.hidden pmu_cal_site
	.hidden pmu_cal_leaf, pmu_cal_calls, pmu_cal_bare_calls, pmu_cal_loop
	.globl pmu_cal_leaf, pmu_cal_calls, pmu_cal_bare_calls, pmu_cal_loop
	.type pmu_cal_leaf, @function
	.type pmu_cal_calls, @function
	.type pmu_cal_bare_calls, @function
	.type pmu_cal_loop, @function

	.macro thunk site
	push	%r11
	lea	pmu_cal_site + 24 * \site(%rip), %r11
	jmp	pmu_common
	.endm

	.p2align 6
thunk0:	thunk	0
	.p2align 6
thunk1:	thunk	1

	.p2align 6
pmu_cal_leaf:
	jmp	thunk0
	.globl pmu_cal_leaf_body
	.hidden pmu_cal_leaf_body
pmu_cal_leaf_body:
	ret
	.p2align 6
pmu_cal_calls:
	jmp	thunk1
	.globl pmu_cal_calls_body
	.hidden pmu_cal_calls_body
pmu_cal_calls_body:
	push	%rbx
	mov	$1000, %ebx
1:	call	pmu_cal_leaf
	dec	%ebx
	jnz	1b
	pop	%rbx
	ret

	.p2align 6
bare:	nopl	0(%rax,%rax,1)
	ret
	.p2align 6
pmu_cal_bare_calls:
	nopl	0(%rax,%rax,1)
	push	%rbx
	mov	$1000, %ebx
1:	call	bare
	dec	%ebx
	jnz	1b
	pop	%rbx
	ret

	.p2align 6
pmu_cal_loop:
1:	dec	%rdi
	jnz	1b
	ret
	.section .note.GNU-stack, "", @progbits
