/* Machine code of prologues: see insn.h. Encodings: Intel SDM volume 2, Arm
 * ARM C6; what the kernel emulates: arch/x86/kernel/uprobes.c of 6.18. */
#define _GNU_SOURCE
#include "insn.h"

#include "cur.h"
#include "elf.h"
#include "rt/shared.h"

enum {
	SKIP_MAX = 4, /* instructions ahead of a probe */
	A64_NOP = 0xd503201f,
	A64_BTI = 0xd503241f, /* bti, with the kind in bits 6 and 7 */
	A64_BTI_MASK = 0xffffff3f,
};

static unsigned
byte(struct str s, size_t i)
{
	return i < s.len ? (unsigned char)s.p[i] : 0x100;
}

static bool
has(struct str s, size_t at, const char *bytes, size_t n)
{
	return at <= s.len && n <= s.len - at && !memcmp(s.p + at, bytes, n);
}

static uint32_t
word(struct str s, size_t at)
{
	struct cur c = cur_over(s.p, s.len);
	cur_take(&c, at);
	return cur_le32(&c);
}

unsigned
insn_skip_landing(unsigned machine, struct str code, unsigned *insns)
{
	bool pad = machine == ELF_X86_64
		       ? has(code, 0, "\xf3\x0f\x1e\xfa", 4)
		       : (word(code, 0) & A64_BTI_MASK) == A64_BTI;
	*insns = pad;
	return pad ? 4 : 0;
}

unsigned
insn_sled(unsigned machine, struct str code)
{
	if (machine == ELF_AARCH64)
		return word(code, 0) == A64_NOP ? PMU_A64 : 0;
	if (machine != ELF_X86_64)
		return 0;
	if (has(code, 0, "\x90\x90\x90\x90\x90", 5))
		return PMU_NOPS;
	if (has(code, 0, "\x0f\x1f\x44\x00", 4) && code.len >= 5)
		return PMU_NOP5;
	if (has(code, 0, "\xeb\x09", 2) && code.len >= 11)
		return PMU_XRAY;
	return 0;
}

unsigned
insn_sled_sure(unsigned machine, struct str code, bool others)
{
	unsigned kind = insn_sled(machine, code);
	if (kind == PMU_NOPS)
		return kind;
	/* Displacement 8: clang's sled. 0 could be a loop's alignment. */
	if (kind == PMU_NOP5 && (byte(code, 4) == 8 || others))
		return kind;
	/* One NOP may be a hint of the C library's start files. */
	bool two = word(code, 0) == A64_NOP && word(code, 4) == A64_NOP;
	return kind == PMU_A64 && others && two ? kind : 0;
}

/* ---- x86-64 lengths ------------------------------------------------------ */

/* Bytes of a ModRM operand from `at` on, 0 if the code ends before. */
static unsigned
modrm_length(struct str code, size_t at)
{
	unsigned m = byte(code, at);
	if (m > 0xff)
		return 0;
	unsigned mod = m >> 6, rm = m & 7, n = 1;
	if (mod == 3)
		return n;
	if (rm == 4) {
		unsigned sib = byte(code, at + 1);
		n += 1 + 4 * (mod == 0 && sib <= 0xff && (sib & 7) == 5);
	}
	if (mod == 0 && rm == 5)
		n += 4;
	n += mod == 1 ? 1 : mod == 2 ? 4 : 0;
	return at + n <= code.len ? n : 0;
}

/* What follows the opcode: 'm' ModRM, 'b' and 'd' immediates of 1 and 4. */
struct form {
	unsigned from, to; /* opcodes, two-byte ones as 0x0fXX */
	const char *parts;
};

// clang-format off
static const struct form forms[] = {
	{ 0x01, 0x01, "m" }, { 0x03, 0x03, "m" }, { 0x09, 0x09, "m" },
	{ 0x21, 0x21, "m" }, { 0x23, 0x23, "m" }, { 0x29, 0x29, "m" },
	{ 0x2b, 0x2b, "m" }, { 0x31, 0x31, "m" }, { 0x33, 0x33, "m" },
	{ 0x39, 0x39, "m" }, { 0x3b, 0x3b, "m" }, { 0x50, 0x5f, "" },
	{ 0x70, 0x7f, "b" }, { 0x81, 0x81, "md" }, { 0x83, 0x83, "mb" },
	{ 0x84, 0x85, "m" }, { 0x88, 0x8b, "m" }, { 0x8d, 0x8d, "m" },
	{ 0x90, 0x90, "" }, { 0xb8, 0xbf, "d" }, { 0xc3, 0xc3, "" },
	{ 0xc7, 0xc7, "md" }, { 0xe8, 0xe9, "d" }, { 0xeb, 0xeb, "b" },
	{ 0x0f0b, 0x0f0b, "" }, { 0x0f1f, 0x0f1f, "m" },
	{ 0x0f80, 0x0f8f, "d" }, { 0x0fb6, 0x0fb7, "m" },
	{ 0x0fbe, 0x0fbf, "m" },
};
// clang-format on

struct decoded {
	unsigned len;    /* 0: not decoded */
	unsigned opcode; /* two-byte ones as 0x0fXX */
	unsigned modrm;  /* if it has one */
	unsigned rex;
	bool has_modrm;
};

static const struct form *
form_of(unsigned opcode)
{
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (opcode >= forms[i].from && opcode <= forms[i].to)
			return &forms[i];
	return NULL;
}

static struct decoded
decode(struct str code)
{
	struct decoded d = { 0 };
	size_t at = 0;
	if (has(code, 0, "\xf3\x0f\x1e\xfa", 4))
		return (struct decoded){ .len = 4, .opcode = 0x0f1e };
	while (at < 4 && byte(code, at) == 0x66)
		at++;
	if ((byte(code, at) & ~0xfu) == 0x40)
		d.rex = byte(code, at++);
	d.opcode = byte(code, at++);
	if (d.opcode == 0x0f)
		d.opcode = 0x0f00 | byte(code, at++);
	const struct form *f = at <= code.len ? form_of(d.opcode) : NULL;
	if (!f || (at > 1 && byte(code, 0) == 0x66 && strchr(f->parts, 'd')))
		return d; /* 66 makes immediates shorter */
	/* REX.W with b8 to bf has an immediate of eight bytes. */
	if (d.opcode >= 0xb8 && d.opcode <= 0xbf && d.rex & 8)
		return d;
	for (const char *p = f->parts; *p; p++) {
		if (*p == 'm') {
			unsigned n = modrm_length(code, at);
			if (!n)
				return d;
			d.has_modrm = true;
			d.modrm = byte(code, at);
			at += n;
		} else {
			at += *p == 'b' ? 1 : 4;
		}
	}
	d.len = at <= code.len ? (unsigned)at : 0;
	return d;
}

unsigned
insn_length(struct str code)
{
	return decode(code).len;
}

bool
insn_is_call(struct str code)
{
	size_t at = 0;
	while (at < 4 && (byte(code, at) == 0xf2 || byte(code, at) == 0x66 ||
			     byte(code, at) == 0x3e))
		at++; /* bnd, notrack, padding */
	if ((byte(code, at) & ~0xfu) == 0x40)
		at++;
	if (byte(code, at) == 0xe8)
		return true;
	return byte(code, at) == 0xff && (byte(code, at + 1) >> 3 & 7) == 2;
}

bool
insn_is_rep(struct str code)
{
	size_t at = 0;
	bool rep = false;
	for (; at < 4; at++) {
		unsigned b = byte(code, at);
		if (b == 0xf2 || b == 0xf3)
			rep = true;
		else if (b != 0x66 && b != 0x67)
			break;
	}
	if ((byte(code, at) & ~0xfu) == 0x40)
		at++;
	unsigned op = byte(code, at);
	bool string = (op >= 0xa4 && op <= 0xa7) ||
		      (op >= 0xaa && op <= 0xaf) || (op >= 0x6c && op <= 0x6f);
	return rep && string;
}

/* ---- where to put a probe ------------------------------------------------ */

static enum insn_cost
cost_of(struct str code, const struct decoded *d)
{
	unsigned op = d->opcode;
	if (d->len == 5 && has(code, 0, "\x0f\x1f\x44\x00", 4))
		return INSN_NOP5;
	bool push = op >= 0x50 && op <= 0x57 && byte(code, 0) != 0x66;
	bool jump = (op >= 0x70 && op <= 0x7f) || (op & ~0xfu) == 0x0f80 ||
		    op == 0xe8 || op == 0xe9 || op == 0xeb;
	return push || jump || op == 0x90 ? INSN_EMULATED : INSN_STEPPED;
}

/* May a probe sit behind it, as if it had sat in front of it? */
static bool
may_skip(const struct decoded *d)
{
	unsigned op = d->opcode;
	if (!d->len || op == 0xc3 || op == 0x0f0b || (op >= 0x50 && op <= 0x5f))
		return false;
	if (op == 0x0f1e || op == 0x0f1f || (op >= 0xb8 && op <= 0xbf))
		return op < 0xb8 || (op & 7) != 4 || d->rex & 1;
	unsigned reg = d->modrm >> 3 & 7, rm = d->modrm & 7;
	bool to_rm = op == 0x81 || op == 0x83 || op == 0xc7 || op == 0x88 ||
		     op == 0x89 || (op < 0x40 && !(op & 2));
	if (op == 0x39 || op == 0x3b || op == 0x84 || op == 0x85)
		return true; /* compares write nothing */
	if (to_rm)
		return d->modrm >> 6 != 3 || rm != 4 || d->rex & 1;
	return reg != 4 || d->rex & 4;
}

/*
 * Could any short or near jump in the function land on bytes 1 to `upto`?
 * Every byte is tried as an opcode: too careful, never too bold.
 */
static bool
is_jumped_to(struct str code, size_t upto)
{
	for (size_t i = 0; i + 2 <= code.len; i++) {
		unsigned op = byte(code, i);
		int64_t target = -1;
		if ((op >= 0x70 && op <= 0x7f) || op == 0xeb ||
		    (op >= 0xe0 && op <= 0xe3))
			target = (int64_t)i + 2 + (int8_t)byte(code, i + 1);
		if (target > 0 && (uint64_t)target <= upto)
			return true;
		bool near = op == 0xe9 ||
			    (op == 0x0f && (byte(code, i + 1) & ~0xfu) == 0x80);
		size_t at = i + (op == 0x0f ? 2 : 1);
		if (!near || at + 4 > code.len)
			continue;
		target = (int64_t)at + 4 + (int32_t)word(code, at);
		if (target > 0 && (uint64_t)target <= upto)
			return true;
	}
	return false;
}

static struct insn_place
probe_x86(struct str code)
{
	struct insn_place first = { 0 }, p = { 0 };
	for (unsigned i = 0; i <= SKIP_MAX; i++) {
		struct str at = { code.p + p.skip, code.len - p.skip };
		struct decoded d = decode(at);
		p.insns = i;
		p.cost = d.len ? cost_of(at, &d) : INSN_STEPPED;
		/* The kernel's call for a NOP writes below the stack pointer,
		 * into the red zone: harmless at the function's entry only. */
		if (p.cost != INSN_STEPPED)
			return is_jumped_to(code, p.skip) ? first : p;
		if (!may_skip(&d))
			break;
		p.skip += d.len;
	}
	return first;
}

struct insn_place
insn_probe_place(unsigned machine, struct str code)
{
	if (machine == ELF_X86_64)
		return probe_x86(code);
	/* A64: probes on bti and nop are simulated; never past paciasp. */
	return (struct insn_place){ 0, 0, INSN_STEPPED };
}
