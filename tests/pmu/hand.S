/*
 * Functions whose instructions can be counted by hand (x86-64).
 *
 *	leaf        3	mov, add, ret
 *	loopn(n)    2n + 3	mov; n times dec, jnz; xor, ret; plus nothing else
 *	twice       6 + 2 leaf	push, call, call, pop, nop, ret
 *	copy(n)     6	rep movsb counts once, whatever n is
 *	tail        2 + leaf	nop, jmp leaf
 */
	.text
	.globl leaf, loopn, twice, copy, tail, fib
	.type leaf, @function
leaf:
	mov	$1, %eax
	add	$2, %eax
	ret
	.size leaf, .-leaf

	.type loopn, @function
loopn:
	mov	%rdi, %rax
1:	dec	%rax
	jnz	1b
	xor	%eax, %eax
	ret
	.size loopn, .-loopn

	.type twice, @function
twice:
	push	%rbx
	call	leaf
	call	leaf
	pop	%rbx
	nop
	ret
	.size twice, .-twice

	.type copy, @function
copy:
	mov	%rdx, %rcx
	mov	%rdi, %rax
	cld
	rep	movsb
	nop
	ret
	.size copy, .-copy

	.type tail, @function
tail:
	nop
	jmp	leaf
	.size tail, .-tail

/*
 * fib(n): n < 2: cmp, jl, mov, ret = 4
 * else:   cmp jl push push mov | lea call | mov lea call | add pop pop ret
 *         = 14 plus both calls. fib(12) has 465 calls, 233 of them short:
 *         233 * 4 + 232 * 14 = 4180.
 */
	.type fib, @function
fib:
	cmp	$2, %edi
	jl	1f
	push	%rbx
	push	%rbp
	mov	%edi, %ebx
	lea	-1(%rbx), %edi
	call	fib
	mov	%eax, %ebp
	lea	-2(%rbx), %edi
	call	fib
	add	%ebp, %eax
	pop	%rbp
	pop	%rbx
	ret
1:	mov	%edi, %eax
	ret
	.size fib, .-fib
	.section .note.GNU-stack, "", @progbits
