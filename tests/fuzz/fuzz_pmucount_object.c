/*
 * Any bytes as a program: its functions, their sleds, and where a probe would
 * go. What is handed out lies inside the file.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../cmd/pmucount/insn.h"
#include "../../cmd/pmucount/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);

static void
look(const struct object *o, const struct func *f, size_t len)
{
	unsigned n;
	struct str code = object_code(o, f->vaddr, 64);
	if (!*f->name || f->off >= len || code.len > len ||
	    (f->alias_of && f->alias_of > o->nfuncs))
		abort();
	struct insn_place at = insn_probe_place(o->elf.machine, code);
	if (at.skip >= code.len && at.skip)
		abort();
	if (insn_length(code) > code.len)
		abort();
	insn_skip_landing(o->elf.machine, code, &n);
	insn_is_rep(code);
	insn_is_call(code);
	func_matches(f, "ma?n*");
	if (!object_at(o, f->vaddr))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	struct object *o;
	struct err e;
	/* The bytes themselves as code, too. */
	struct str code = { (const char *)p, len };
	struct insn_place at = insn_probe_place(ELF_X86_64, code);
	if (at.skip && at.skip >= len)
		abort();
	if (object_open_mem(&o, p, len, &e))
		return 0;
	object_demangle(o);
	for (size_t i = 0; i < o->nfuncs; i++)
		look(o, &o->func[i], len);
	for (size_t i = 0; i < o->nsites; i++) {
		const struct site *s = &o->site[i];
		if (s->func >= o->nfuncs || !s->kind ||
		    (i && s->func <= o->site[i - 1].func))
			abort();
	}
	object_close(o);
	return 0;
}
