/*
 * As much of x86-64 and A64 machine code as function prologues need: sleds,
 * landing pads, and which instruction a kernel probe should sit on.
 */
#ifndef INSN_H
#define INSN_H

#include <stdbool.h>
#include <stdint.h>

#include "str.h"

/* Bytes of endbr64 or bti at the start, and their number of instructions. */
unsigned insn_skip_landing(unsigned machine, struct str code, unsigned *insns);

/* enum pmu_site of the sled at the start of `code`, 0 if there is none. */
unsigned insn_sled(unsigned machine, struct str code);
/*
 * The same where no list says that it is one: only what a compiler emits for
 * nothing else. `others`: the object has listed sleds.
 */
unsigned insn_sled_sure(unsigned machine, struct str code, bool others);

/* What the kernel does at a probe on this instruction. */
enum insn_cost {
	INSN_STEPPED = 0,  /* single-stepped: microseconds */
	INSN_EMULATED = 1, /* emulated in the trap */
	INSN_NOP5 = 2,     /* replaced by a call where the kernel can */
};

struct insn_place {
	unsigned skip;  /* bytes behind the function's start */
	unsigned insns; /* instructions skipped, to be added back */
	enum insn_cost cost;
};

/*
 * The best place for an entry probe: at most four instructions in, none of
 * which touches the stack pointer, transfers control or is jumped to.
 */
struct insn_place insn_probe_place(unsigned machine, struct str code);

/* Length of a prologue instruction (x86-64), 0 for what is not decoded. */
unsigned insn_length(struct str code);
/* Has this x86-64 instruction a REP prefix with a string operation? */
bool insn_is_rep(struct str code);
bool insn_is_call(struct str code);

#endif
