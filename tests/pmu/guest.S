/*
 * Functions with sleds whose instructions can be counted by hand (AArch64).
 *
 *	leaf		nop mov add ret: 4
 *	loopn(n)	nop, n (subs, b.ne), ret: 2n + 2
 *	twice		nop stp bl bl ldp ret: 6, and two leaves: 14
 */
	.macro sled
9:	nop
	.section __patchable_function_entries, "awo", @progbits, .text
	.p2align 3
	.xword 9b
	.text
	.endm
	.macro function name
	.globl \name
	.type \name, %function
	.p2align 2
\name:
	.endm

	.text
	function leaf
	sled
	mov	w0, #1
	add	w0, w0, #2
	ret
	.size leaf, .-leaf

	function loopn
	sled
1:	subs	x0, x0, #1
	b.ne	1b
	ret
	.size loopn, .-loopn

	function twice
	sled
	stp	x29, x30, [sp, #-16]!
	bl	leaf
	bl	leaf
	ldp	x29, x30, [sp], #16
	ret
	.size twice, .-twice
	.section .note.GNU-stack, "", @progbits
