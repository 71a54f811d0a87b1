/*
 * Machine code of prologues, against encodings taken from the assembler: what
 * it prints for each is in the comment. At the end, this program's own
 * functions are walked from end to end.
 */
#include "test.h"

#include <string.h>

#include "../../cmd/pmucount/insn.h"
#include "../../cmd/pmucount/object.h"
#include "../../cmd/pmucount/rt/shared.h"

#define CODE(bytes) ((struct str){ bytes, sizeof bytes - 1 })

static void
test_lengths(void)
{
	// clang-format off
	static const struct {
		struct str code;
		unsigned len;
	} rows[] = {
		{ { "\xf3\x0f\x1e\xfa", 4 }, 4 }, /* endbr64 */
		{ { "\x55", 1 }, 1 }, /* push rbp */
		{ { "\x41\x57", 2 }, 2 }, /* push r15 */
		{ { "\x48\x89\xe5", 3 }, 3 }, /* mov rbp,rsp */
		{ { "\x48\x83\xec\x10", 4 }, 4 }, /* sub rsp,16 */
		{ { "\x48\x81\xec\x00\x10\0\0", 7 }, 7 }, /* sub rsp,4096 */
		{ { "\x89\xf8", 2 }, 2 }, /* mov eax,edi */
		{ { "\x8d\x47\x01", 3 }, 3 }, /* lea eax,[rdi+1] */
		{ { "\x8d\x04\x37", 3 }, 3 }, /* lea eax,[rdi+rsi] */
		{ { "\x8d\x04\xbd\0\0\0\0", 7 }, 7 }, /* lea eax,[rdi*4] */
		{ { "\x48\x8b\x05\1\2\3\4", 7 }, 7 }, /* mov rax,[rip+..] */
		{ { "\x8b\x87\1\2\3\4", 6 }, 6 }, /* mov eax,[rdi+..] */
		{ { "\x8b\x44\x24\x08", 4 }, 4 }, /* mov eax,[rsp+8] */
		{ { "\x8b\x84\x24\1\2\3\4", 7 }, 7 }, /* the same, 32 bits */
		{ { "\x8b\x45\x00", 3 }, 3 }, /* mov eax,[rbp] */
		{ { "\x31\xc0", 2 }, 2 }, /* xor eax,eax */
		{ { "\xb8\1\0\0\0", 5 }, 5 }, /* mov eax,1 */
		{ { "\x85\xff", 2 }, 2 }, /* test edi,edi */
		{ { "\x83\xff\x01", 3 }, 3 }, /* cmp edi,1 */
		{ { "\x0f\x1f\x44\x00\x00", 5 }, 5 }, /* nop5 */
		{ { "\x66\x90", 2 }, 2 }, /* xchg ax,ax */
		{ { "\x66\x0f\x1f\x84\0\0\0\0\0", 9 }, 9 }, /* nop9 */
		{ { "\xc7\x07\1\0\0\0", 6 }, 6 }, /* mov [rdi],1 */
		{ { "\xc6", 1 }, 0 }, /* not decoded */
		{ { "\x48\xb8\1\2\3\4\5\6\7\x08", 10 }, 0 }, /* movabs: not */
		{ { "\x66\x81\xc0\1\2", 5 }, 0 }, /* add ax,..: not */
		{ { "\xe8\0\0\0\0", 5 }, 5 }, /* call */
		{ { "\x74\x05", 2 }, 2 }, /* je */
		{ { "\x0f\x84\0\0\0\0", 6 }, 6 }, /* je near */
		{ { "\x0f\xb6\xc0", 3 }, 3 }, /* movzx eax,al */
		{ { "\xc3", 1 }, 1 }, /* ret */
		{ { "\xf0\x48\x0f\xc1\x07", 5 }, 0 }, /* lock xadd: not */
		{ { "\xc5\xf8\x77", 3 }, 0 }, /* vzeroupper: not */
		{ { "", 0 }, 0 },
	};
	// clang-format on
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct str c = rows[i].code;
		if (!CHECK(insn_length(c) == rows[i].len))
			fprintf(stderr, "row %zu: %u\n", i, insn_length(c));
		/* Cut short it has no length, and nothing is read behind. */
		for (size_t n = 0; n < c.len; n++)
			CHECK(insn_length((struct str){ c.p, n }) <= n);
	}
}

static void
test_kinds(void)
{
	unsigned n;
	CHECK(insn_is_call(CODE("\xe8\0\0\0\0")));
	CHECK(insn_is_call(CODE("\xff\xd0")));         /* call rax */
	CHECK(insn_is_call(CODE("\x41\xff\xd4")));     /* call r12 */
	CHECK(insn_is_call(CODE("\xff\x15\0\0\0\0"))); /* call [rip] */
	CHECK(insn_is_call(CODE("\x3e\xff\xd0")));     /* notrack */
	CHECK(insn_is_call(CODE("\xf2\xe8\0\0\0\0"))); /* bnd */
	CHECK(!insn_is_call(CODE("\xff\xe0")));        /* jmp rax */
	CHECK(!insn_is_call(CODE("\xff\x30")));        /* push [rax] */
	CHECK(!insn_is_call(CODE("\xe9\0\0\0\0")));
	CHECK(!insn_is_call(CODE("")));
	CHECK(insn_is_rep(CODE("\xf3\xa4")));     /* rep movsb */
	CHECK(insn_is_rep(CODE("\xf3\x48\xa5"))); /* rep movsq */
	CHECK(insn_is_rep(CODE("\xf3\x66\xab"))); /* rep stosw */
	CHECK(insn_is_rep(CODE("\xf2\xae")));     /* repne scasb */
	CHECK(insn_is_rep(CODE("\xf3\x6c")));     /* rep insb */
	CHECK(!insn_is_rep(CODE("\xa4")));
	CHECK(!insn_is_rep(CODE("\xf3\x0f\x1e\xfa")));     /* endbr64 */
	CHECK(!insn_is_rep(CODE("\xf3\x90")));             /* pause */
	CHECK(!insn_is_rep(CODE("\xf3\xa8")));             /* test */
	CHECK(!insn_is_rep(CODE("\xf3\x0f\x10\x07")));     /* movss */
	CHECK(!insn_is_rep(CODE("\xf3\x48\x0f\xb8\xc0"))); /* popcnt */
	CHECK(insn_skip_landing(ELF_X86_64, CODE("\xf3\x0f\x1e\xfa\x55"), &n) ==
		  4 &&
	      n == 1);
	CHECK(!insn_skip_landing(ELF_X86_64, CODE("\xf3\x0f\x1e"), &n) && !n);
	/* bti c; bti j; paciasp is none. */
	CHECK(
	    insn_skip_landing(ELF_AARCH64, CODE("\x5f\x24\x03\xd5"), &n) == 4 &&
	    n == 1);
	CHECK(
	    insn_skip_landing(ELF_AARCH64, CODE("\x9f\x24\x03\xd5"), &n) == 4);
	CHECK(!insn_skip_landing(ELF_AARCH64, CODE("\x3f\x23\x03\xd5"), &n));
}

static void
test_sleds(void)
{
	CHECK(insn_sled(ELF_X86_64, CODE("\x90\x90\x90\x90\x90")) == PMU_NOPS);
	CHECK(!insn_sled(ELF_X86_64, CODE("\x90\x90\x90\x90")));
	CHECK(!insn_sled(ELF_X86_64, CODE("\x90\x90\x90\x90\x55")));
	CHECK(insn_sled(ELF_X86_64, CODE("\x0f\x1f\x44\0\0")) == PMU_NOP5);
	CHECK(insn_sled(ELF_X86_64, CODE("\x0f\x1f\x44\0\x08")) == PMU_NOP5);
	CHECK(!insn_sled(ELF_X86_64, CODE("\x0f\x1f\x44\0")));
	CHECK(insn_sled(ELF_X86_64,
		  CODE("\xeb\x09\x66\x0f\x1f\x84\0\0\2\0\0")) == PMU_XRAY);
	CHECK(!insn_sled(ELF_X86_64, CODE("\xeb\x09\x66")));
	CHECK(insn_sled(ELF_AARCH64, CODE("\x1f\x20\x03\xd5")) == PMU_A64);
	CHECK(!insn_sled(ELF_AARCH64, CODE("\x1f\x20\x03")));
	CHECK(!insn_sled(ELF_AARCH64, CODE("\x90\x90\x90\x90\x90")));
	CHECK(!insn_sled(40, CODE("\x90\x90\x90\x90\x90"))); /* 32-bit Arm */
	/* Without a list only what nothing else emits. */
	CHECK(insn_sled_sure(ELF_X86_64, CODE("\x90\x90\x90\x90\x90"), false) ==
	      PMU_NOPS);
	CHECK(insn_sled_sure(ELF_X86_64, CODE("\x0f\x1f\x44\0\x08"), false) ==
	      PMU_NOP5);
	CHECK(!insn_sled_sure(ELF_X86_64, CODE("\x0f\x1f\x44\0\0"), false));
	CHECK(insn_sled_sure(ELF_X86_64, CODE("\x0f\x1f\x44\0\0"), true) ==
	      PMU_NOP5);
	CHECK(!insn_sled_sure(
	    ELF_X86_64, CODE("\xeb\x09\x66\x0f\x1f\x84\0\0\2\0\0"), true));
	CHECK(!insn_sled_sure(ELF_AARCH64, CODE("\x1f\x20\x03\xd5"), true));
	CHECK(insn_sled_sure(ELF_AARCH64,
		  CODE("\x1f\x20\x03\xd5\x1f\x20\x03\xd5"), true) == PMU_A64);
}

static bool
place(struct str code, unsigned skip, unsigned insns, enum insn_cost cost)
{
	struct insn_place p = insn_probe_place(ELF_X86_64, code);
	if (p.skip == skip && p.insns == insns && p.cost == cost)
		return true;
	fprintf(stderr, "skip %u insns %u cost %d\n", p.skip, p.insns, p.cost);
	return false;
}

static void
test_places(void)
{
	/* endbr64; push rbp: behind the pad. */
	CHECK(place(CODE("\xf3\x0f\x1e\xfa\x55\xc3"), 4, 1, INSN_EMULATED));
	CHECK(place(CODE("\x55\xc3"), 0, 0, INSN_EMULATED));
	/* mov eax,edi; push rbx. */
	CHECK(place(CODE("\x89\xf8\x53\xc3"), 2, 1, INSN_EMULATED));
	/* cmp edi,1; jle: the jump itself can be emulated. */
	CHECK(place(CODE("\x83\xff\x01\x7e\x0c\x90"), 3, 1, INSN_EMULATED));
	/* nop5, the kernel's best. */
	CHECK(place(CODE("\x0f\x1f\x44\0\0\xc3"), 0, 0, INSN_NOP5));
	/* sub rsp,8 moves the stack pointer: a probe behind it would take
	 * another word for the return address. */
	CHECK(place(CODE("\x48\x83\xec\x08\x90\xc3"), 0, 0, INSN_STEPPED));
	CHECK(
	    place(CODE("\x48\x89\xfc\x90"), 0, 0, INSN_STEPPED)); /* mov rsp */
	CHECK(place(CODE("\x48\x8d\x64\x24\xf8\x90"), 0, 0, INSN_STEPPED));
	CHECK(place(CODE("\xbc\1\0\0\0\x90"), 0, 0, INSN_STEPPED)); /* esp */
	/* r12 has the same bits in ModRM, with REX. */
	CHECK(place(CODE("\x49\x89\xfc\x90"), 3, 1, INSN_EMULATED));
	CHECK(place(CODE("\x41\xbc\1\0\0\0\x90"), 6, 1, INSN_EMULATED));
	/* A return, a trap or an unknown instruction ends the search. */
	CHECK(place(CODE("\x89\xf8\xc3\x55"), 0, 0, INSN_STEPPED));
	CHECK(place(CODE("\x0f\x0b\x55"), 0, 0, INSN_STEPPED));
	CHECK(place(CODE("\xc5\xf8\x77\x55"), 0, 0, INSN_STEPPED));
	/* Four instructions ahead at most. */
	CHECK(place(
	    CODE("\x89\xf8\x89\xf8\x89\xf8\x89\xf8\x55"), 8, 4, INSN_EMULATED));
	CHECK(place(CODE("\x89\xf8\x89\xf8\x89\xf8\x89\xf8\x89\xf8\x55"), 0, 0,
	    INSN_STEPPED));
	/* A loop back to what would be probed counts each round. */
	CHECK(place(CODE("\x89\xf8\x55\x5d\xeb\xfc"), 0, 0, INSN_STEPPED));
	CHECK(place(CODE("\x89\xf8\x55\x5d\x0f\x85\xf8\xff\xff\xff"), 0, 0,
	    INSN_STEPPED));
	/* Back to the very start is a call's business, not a jump's. */
	CHECK(place(CODE("\x89\xf8\x55\x5d\xeb\xfa"), 2, 1, INSN_EMULATED));
	CHECK(place(CODE(""), 0, 0, INSN_STEPPED));
}

/* A probe's place in each function here lies on an instruction: the decoder
 * and the symbol table agree on where code begins. */
static void
test_self(void)
{
	struct object *o;
	struct err e;
	size_t emulated = 0, n = 0;
	if (!CHECK(!object_open(&o, "/proc/self/exe", &e)))
		return;
	for (size_t i = 0; i < o->nfuncs; i++) {
		const struct func *f = &o->func[i];
		struct str code = object_code(o, f->vaddr, f->size);
		struct insn_place p = insn_probe_place(o->elf.machine, code);
		n += f->size > 16;
		emulated += f->size > 16 && p.cost != INSN_STEPPED;
		CHECK(p.skip <= f->size && p.insns <= 4);
	}
	CHECK(n > 20 && (o->elf.machine != ELF_X86_64 || emulated > n / 4));
	object_close(o);
}

int
main(void)
{
	test_lengths();
	test_kinds();
	test_sleds();
	test_places();
	test_self();
	return test_done("pmucount_insn");
}
