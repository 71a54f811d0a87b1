/*
 * --host: what the machine is and how it is set, one scalar each. What cannot
 * be read is "unknown", never absent, so that two hosts can be compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "buf.h"
#include "facts.h"
#include "fpdump.h"
#include "sort.h"
#include "walk.h"

extern char **environ;

/* Values are settings, not data: what is longer is cut, with a note. */
enum { VALUE_MAX = 64 << 10 };

enum how {
	TEXT,  /* content of the one file */
	EACH,  /* one fact per match, named NAME.MATCH */
	SAME,  /* one fact: the distinct contents of all matches */
	FIELD, /* one fact: distinct values of `field` in a "key: value" file */
	LINK,  /* like EACH: last part of the symbolic link (a driver) */
};

struct probe {
	const char *name, *path;
	enum how how;
	const char *class;
	const char *field;
};

const char class_host[] = "host", class_container[] = "container",
	   class_volatile[] = "volatile";

#define HOST class_host
#define CONTAINER class_container
#define VOLATILE class_volatile

#define CPU "/sys/devices/system/cpu/"
#define NODE "/sys/devices/system/node/"
#define DMI "/sys/class/dmi/id/"
#define EDAC "/sys/devices/system/edac/mc/"

/* One `*` in a path at most: it gives the last part of the name. */
// clang-format off
static const struct probe probes[] = {
	{ "kernel.cmdline", "/proc/cmdline", TEXT, HOST, 0 },
	{ "kernel.release", "/proc/sys/kernel/osrelease", TEXT, HOST, 0 },
	{ "kernel.version", "/proc/sys/kernel/version", TEXT, HOST, 0 },
	{ "kernel.tainted", "/proc/sys/kernel/tainted", TEXT, HOST, 0 },
	{ "kernel.numa_balancing", "/proc/sys/kernel/numa_balancing",
		TEXT, HOST, 0 },
	{ "kernel.randomize_va_space", "/proc/sys/kernel/randomize_va_space",
		TEXT, HOST, 0 },
	{ "kernel.boot_id", "/proc/sys/kernel/random/boot_id",
		TEXT, VOLATILE, 0 },
	{ "kernel.clocksource", "/sys/devices/system/clocksource/clocksource0/"
		"current_clocksource", TEXT, HOST, 0 },

	{ "cpu.model", "/proc/cpuinfo", FIELD, HOST, "model name" },
	{ "cpu.stepping", "/proc/cpuinfo", FIELD, HOST, "stepping" },
	{ "cpu.microcode", "/proc/cpuinfo", FIELD, HOST, "microcode" },
	{ "cpu.flags", "/proc/cpuinfo", FIELD, HOST, "flags" },
	{ "cpu.features", "/proc/cpuinfo", FIELD, HOST, "Features" },
	{ "cpu.online", CPU "online", TEXT, HOST, 0 },
	{ "cpu.isolated", CPU "isolated", TEXT, HOST, 0 },
	{ "cpu.smt", CPU "smt/control", TEXT, HOST, 0 },
	{ "cpu.governor", CPU "cpu*/cpufreq/scaling_governor", SAME, HOST, 0 },
	{ "cpu.driver", CPU "cpu*/cpufreq/scaling_driver", SAME, HOST, 0 },
	{ "cpu.frequency.min", CPU "cpu*/cpufreq/scaling_min_freq",
		SAME, HOST, 0 },
	{ "cpu.frequency.max", CPU "cpu*/cpufreq/scaling_max_freq",
		SAME, HOST, 0 },
	{ "cpu.boost", CPU "cpufreq/boost", TEXT, HOST, 0 },
	{ "cpu.no_turbo", CPU "intel_pstate/no_turbo", TEXT, HOST, 0 },
	{ "cpu.vulnerability", CPU "vulnerabilities/*", EACH, HOST, 0 },

	{ "numa.online", NODE "online", TEXT, HOST, 0 },
	{ "numa.cpus", NODE "node*/cpulist", EACH, HOST, 0 },
	{ "numa.distance", NODE "node*/distance", EACH, HOST, 0 },

	{ "memory.total", "/proc/meminfo", FIELD, HOST, "MemTotal" },
	{ "memory.swap", "/proc/meminfo", FIELD, HOST, "SwapTotal" },
	{ "memory.overcommit", "/proc/sys/vm/overcommit_memory",
		TEXT, HOST, 0 },
	{ "memory.zone_reclaim", "/proc/sys/vm/zone_reclaim_mode",
		TEXT, HOST, 0 },
	{ "hugepages.transparent", "/sys/kernel/mm/transparent_hugepage/"
		"enabled", TEXT, HOST, 0 },
	{ "hugepages.defrag", "/sys/kernel/mm/transparent_hugepage/defrag",
		TEXT, HOST, 0 },
	{ "hugepages.reserved", "/sys/kernel/mm/hugepages/*/nr_hugepages",
		EACH, HOST, 0 },

	{ "ecc.controller", EDAC "mc*/mc_name", EACH, HOST, 0 },
	{ "ecc.corrected", EDAC "mc*/ce_count", EACH, VOLATILE, 0 },
	{ "ecc.uncorrected", EDAC "mc*/ue_count", EACH, VOLATILE, 0 },

	{ "firmware.vendor", DMI "bios_vendor", TEXT, HOST, 0 },
	{ "firmware.version", DMI "bios_version", TEXT, HOST, 0 },
	{ "firmware.date", DMI "bios_date", TEXT, HOST, 0 },
	{ "machine.vendor", DMI "sys_vendor", TEXT, HOST, 0 },
	{ "machine.product", DMI "product_name", TEXT, HOST, 0 },
	{ "machine.board", DMI "board_name", TEXT, HOST, 0 },
	{ "machine.board.version", DMI "board_version", TEXT, HOST, 0 },
	{ "machine.serial", DMI "product_serial", TEXT, HOST, 0 },
	{ "machine.uuid", DMI "product_uuid", TEXT, HOST, 0 },
	{ "machine.id", "/etc/machine-id", TEXT, CONTAINER, 0 },

	{ "module.version", "/sys/module/*/version", EACH, HOST, 0 },
	{ "module.srcversion", "/sys/module/*/srcversion", EACH, HOST, 0 },
	{ "module.state", "/sys/module/*/initstate", EACH, HOST, 0 },

	{ "net.driver", "/sys/class/net/*/device/driver", LINK, HOST, 0 },
	{ "net.address", "/sys/class/net/*/address", EACH, HOST, 0 },
	{ "net.mtu", "/sys/class/net/*/mtu", EACH, HOST, 0 },
	{ "infiniband.firmware", "/sys/class/infiniband/*/fw_ver",
		EACH, HOST, 0 },
	{ "infiniband.type", "/sys/class/infiniband/*/hca_type",
		EACH, HOST, 0 },
	{ "infiniband.board", "/sys/class/infiniband/*/board_id",
		EACH, HOST, 0 },

	{ "gpu.nvidia.driver", "/proc/driver/nvidia/version", TEXT, HOST, 0 },
	{ "gpu.nvidia.device", "/proc/driver/nvidia/gpus/*/information",
		EACH, HOST, 0 },
	{ "gpu.nvidia.params", "/proc/driver/nvidia/params", TEXT, HOST, 0 },
	{ "gpu.driver", "/sys/class/drm/card*/device/driver", LINK, HOST, 0 },
	{ "gpu.vendor", "/sys/class/drm/card*/device/vendor", EACH, HOST, 0 },
	{ "gpu.device", "/sys/class/drm/card*/device/device", EACH, HOST, 0 },
	{ "gpu.vbios", "/sys/class/drm/card*/device/vbios_version",
		EACH, HOST, 0 },
	{ "gpu.serial", "/sys/class/drm/card*/device/serial_number",
		EACH, HOST, 0 },
	{ "gpu.unique_id", "/sys/class/drm/card*/device/unique_id",
		EACH, HOST, 0 },
	{ "gpu.ras", "/sys/class/drm/card*/device/ras/features",
		EACH, HOST, 0 },
	{ "gpu.ecc", "/sys/class/drm/card*/device/ras/umc_err_count",
		EACH, VOLATILE, 0 },

	{ "os.release", "/etc/os-release", TEXT, CONTAINER, 0 },
	{ "limits.cpu", "/sys/fs/cgroup/cpu.max", TEXT, CONTAINER, 0 },
	{ "limits.memory", "/sys/fs/cgroup/memory.max", TEXT, CONTAINER, 0 },
	{ "limits.cpus", "/sys/fs/cgroup/cpuset.cpus.effective",
		TEXT, CONTAINER, 0 },
};

/*
 * Environment variables that change results, or which kernels make them.
 * Plain names are always printed; those with a star where they are set.
 */
static const char *const switches[] = {
	"CAUSAL_CONV1D_DETERMINISTIC", "CUBLASLT_*", "CUBLAS_*",
	"CUBLAS_WORKSPACE_CONFIG", "CUDA_*", "CUDA_DEVICE_MAX_CONNECTIONS",
	"CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES", "CUDNN_*", "DNNL_*",
	"FLASH_ATTENTION_*", "GLIBC_TUNABLES", "GOMP_*", "GPU_*",
	"HCCL_*", "HCCL_DETERMINISTIC", "HIPBLASLT_*", "HIP_*", "HSA_*",
	"JAX_*", "KMP_*", "KMP_DETERMINISTIC_REDUCTION", "LD_LIBRARY_PATH",
	"LD_PRELOAD", "MALLOC_*", "MAMBA_DETERMINISTIC", "MIOPEN_*",
	"MKL_*", "MKL_CBWR", "MKL_DYNAMIC", "MKL_NUM_THREADS",
	"NCCL_*", "NCCL_ALGO", "NCCL_NVLS_ENABLE", "NCCL_PROTO", "NVIDIA_*",
	"NVIDIA_TF32_OVERRIDE", "NVTE_*",
	"NVTE_ALLOW_NONDETERMINISTIC_ALGO", "OMP_*", "OMP_DYNAMIC",
	"OMP_NUM_THREADS", "OMP_PROC_BIND", "ONEAPI_*", "ONEDNN_*",
	"OPENBLAS_*", "OPENBLAS_NUM_THREADS", "POCL_*", "PRIMUS_*",
	"PYTHONHASHSEED", "PYTORCH_*", "RCCL_*", "ROCBLAS_*",
	"ROCBLAS_DEFAULT_ATOMICS_MODE", "ROCM_*", "ROCR_*", "SYCL_*", "TF_*",
	"TF_CUDNN_DETERMINISTIC", "TF_DETERMINISTIC_OPS", "TORCHINDUCTOR_*",
	"TORCH_*", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "TRITON_*",
	"XLA_*", "XLA_FLAGS", "ZE_*", NULL,
};
// clang-format on

/* ---- facts ----------------------------------------------------------- */

void
facts_add(struct facts *f, const char *class, struct str name, struct str value,
    const char *note)
{
	if (f->n == f->cap) {
		f->cap = f->cap ? f->cap * 2 : 256;
		f->p = cli_realloc(f->p, f->cap, sizeof *f->p);
	}
	if (!value.p)
		value = STR_LIT("unknown");
	struct fact *to = &f->p[f->n++];
	*to = (struct fact){ arena_str(&f->arena, name),
		arena_str(&f->arena, value), class, note };
	if (!to->name.p || !to->value.p)
		cli_die("out of memory");
}

static int
by_name(const void *a, const void *b)
{
	const struct fact *x = a, *y = b;
	int c = str_order(x->name, y->name);
	return c ? c : str_order(x->value, y->value);
}

/* ---- reading --------------------------------------------------------- */

static const char too_long[] = "cut: the value is longer";

/* Content without the newlines at its end; false if it cannot be read. */
static bool
read_value(const char *path, struct buf *b, const char **note)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = 0;
	b->len = 0;
	*note = NULL;
	if (fd < 0)
		return false;
	do {
		char *to = buf_room(b, VALUE_MAX);
		n = to ? read(fd, to, VALUE_MAX) : -1;
		b->len += n > 0 ? (size_t)n : 0;
	} while ((n > 0 && b->len <= VALUE_MAX) || (n < 0 && errno == EINTR));
	close(fd);
	if (b->len > VALUE_MAX) {
		b->len = VALUE_MAX;
		*note = too_long;
	}
	while (b->len && (b->p[b->len - 1] == '\n' || b->p[b->len - 1] == 0))
		b->len--;
	return n >= 0 && b->p;
}

static void
add_text(struct facts *f, const struct probe *p)
{
	struct buf b = { 0 };
	const char *note;
	bool ok = read_value(p->path, &b, &note);
	facts_add(
	    f, p->class, str_c(p->name), ok ? buf_view(&b) : STR_NULL, note);
	buf_free(&b);
}

/* NAME.MATCH, where MATCH is what the star of the pattern stands for. */
static struct str
match_name(const struct probe *p, const char *path, struct buf *b)
{
	const char *star = strchr(p->path, '*');
	size_t before = (size_t)(star - p->path);
	/* All of the path's part that has the star: node0, not 0. */
	while (before && p->path[before - 1] != '/')
		before--;
	const char *part = path + before;
	b->len = 0;
	buf_puts(b, p->name);
	buf_putc(b, '.');
	buf_add(b, part, strcspn(part, "/"));
	return buf_view(b);
}

static bool
read_link(const char *path, struct buf *b)
{
	char target[4096];
	ssize_t n = readlink(path, target, sizeof target);
	if (n <= 0)
		return false;
	struct str s = { target, (size_t)n };
	for (size_t i = s.len; i > 0; i--)
		if (s.p[i - 1] == '/') {
			s.p += i;
			s.len -= i;
			break;
		}
	b->len = 0;
	buf_str(b, s);
	return true;
}

static void
add_each(struct facts *f, const struct probe *p, const glob_t *g)
{
	struct buf value = { 0 }, name = { 0 };
	for (size_t i = 0; i < g->gl_pathc; i++) {
		const char *path = g->gl_pathv[i], *note = NULL;
		bool ok = p->how == LINK ? read_link(path, &value)
					 : read_value(path, &value, &note);
		facts_add(f, p->class, match_name(p, path, &name),
		    ok ? buf_view(&value) : STR_NULL, note);
	}
	buf_free(&value);
	buf_free(&name);
}

/* Distinct values, "; " between them, in byte order. */
static void
add_distinct(
    struct facts *f, const struct probe *p, struct fact *list, size_t n)
{
	struct buf b = { 0 };
	if (n)
		sort_array(list, n, sizeof *list, by_name);
	for (size_t i = 0; i < n; i++) {
		if (i && str_same(list[i].name, list[i - 1].name))
			continue;
		if (b.len)
			buf_puts(&b, "; ");
		buf_str(&b, list[i].name);
	}
	bool any = n && !b.failed;
	facts_add(f, p->class, str_c(p->name),
	    any ? (struct str){ b.p ? b.p : "", b.len } : STR_NULL, NULL);
	buf_free(&b);
}

static void
add_same(struct facts *f, const struct probe *p, const glob_t *g)
{
	struct facts all = { 0 };
	struct buf b = { 0 };
	const char *note;
	for (size_t i = 0; i < g->gl_pathc; i++)
		if (read_value(g->gl_pathv[i], &b, &note))
			facts_add(
			    &all, p->class, buf_view(&b), STR_LIT(""), NULL);
	add_distinct(f, p, all.p, all.n);
	arena_free(&all.arena);
	free(all.p);
	buf_free(&b);
}

static struct str
trim(struct str s)
{
	while (s.len && (*s.p == ' ' || *s.p == '\t')) {
		s.p++;
		s.len--;
	}
	while (s.len && (s.p[s.len - 1] == ' ' || s.p[s.len - 1] == '\t'))
		s.len--;
	return s;
}

static bool
read_whole(const char *path, struct buf *b)
{
	struct src *src;
	size_t n = 0;
	if (src_open(&src, path, NULL, SRC_PLAIN, NULL))
		return false;
	int r;
	do {
		char *to = buf_room(b, VALUE_MAX);
		r = to ? src_read_some(src, b->len, to, VALUE_MAX, &n, NULL)
		       : SE_ENOMEM;
		b->len += r ? 0 : n;
	} while (!r && n);
	src_close(src);
	return !r;
}

static void
add_field(struct facts *f, const struct probe *p)
{
	struct facts all = { 0 };
	struct buf b = { 0 };
	struct str rest, line, key;
	if (read_whole(p->path, &b) && b.p) {
		rest = buf_view(&b);
		while (str_cut(&rest, '\n', &line)) {
			str_cut(&line, ':', &key);
			if (line.p && str_is(trim(key), p->field))
				facts_add(&all, p->class, trim(line),
				    STR_LIT(""), NULL);
		}
	}
	add_distinct(f, p, all.p, all.n);
	arena_free(&all.arena);
	free(all.p);
	buf_free(&b);
}

static void
add_matches(struct facts *f, const struct probe *p)
{
	glob_t g;
	if (glob(p->path, GLOB_NOSORT, NULL, &g)) {
		facts_add(f, p->class, str_c(p->name), STR_NULL, NULL);
		return;
	}
	if (p->how == SAME)
		add_same(f, p, &g);
	else
		add_each(f, p, &g);
	globfree(&g);
}

static void
add_probe(struct facts *f, const struct probe *p)
{
	switch (p->how) {
	case TEXT:
		add_text(f, p);
		break;
	case FIELD:
		add_field(f, p);
		break;
	case EACH:
	case SAME:
	case LINK:
		add_matches(f, p);
		break;
	}
}

/* ---- what no file says -------------------------------------------------- */

static void
add_names(struct facts *f)
{
	struct utsname u;
	bool ok = !uname(&u);
	facts_add(f, VOLATILE, STR_LIT("machine.host"),
	    ok ? str_c(u.nodename) : STR_NULL, NULL);
	facts_add(f, HOST, STR_LIT("machine.architecture"),
	    ok ? str_c(u.machine) : STR_NULL, NULL);
	char libc[128];
	size_t n = 0;
#ifdef _CS_GNU_LIBC_VERSION
	n = confstr(_CS_GNU_LIBC_VERSION, libc, sizeof libc);
#endif
	facts_add(f, CONTAINER, STR_LIT("os.libc"),
	    n && n <= sizeof libc ? str_c(libc) : STR_NULL, NULL);
	bool inside =
	    !access("/run/.containerenv", F_OK) || !access("/.dockerenv", F_OK);
	facts_add(f, CONTAINER, STR_LIT("os.container"),
	    inside ? STR_LIT("yes") : STR_LIT("not seen"), NULL);
}

static bool
is_switch(struct str name)
{
	for (int i = 0; switches[i]; i++) {
		struct str s = str_c(switches[i]);
		if (!str_ends(s, "*"))
			continue;
		s.len--;
		if (name.len >= s.len && !memcmp(name.p, s.p, s.len))
			return true;
	}
	return false;
}

static void
add_variable(struct facts *f, struct str name, struct str value)
{
	struct buf b = { 0 };
	buf_puts(&b, "env.");
	buf_str(&b, name);
	facts_add(f, CONTAINER, buf_view(&b), value, NULL);
	buf_free(&b);
}

static void
add_environment(struct facts *f)
{
	for (int i = 0; switches[i]; i++) {
		struct str name = str_c(switches[i]);
		const char *v = getenv(switches[i]);
		if (!str_ends(name, "*"))
			add_variable(
			    f, name, v ? str_c(v) : STR_LIT("not set"));
	}
	for (char **p = environ; *p; p++) {
		struct str value = str_c(*p), name;
		str_cut(&value, '=', &name);
		bool listed = false;
		for (int i = 0; switches[i]; i++)
			listed |= str_is(name, switches[i]);
		if (!listed && value.p && is_switch(name))
			add_variable(f, name, value);
	}
}

/* ---- all ------------------------------------------------------------- */

static void
write_facts(struct rec_out *o, const struct settings *s, struct facts *f,
    struct outcome *out)
{
	struct err e;
	sort_array(f->p, f->n, sizeof *f->p, by_name);
	for (size_t i = 0; i < f->n; i++) {
		struct fp r = { .scalar = true,
			.name = f->p[i].name,
			.vtype = STR_LIT("text"),
			.value = f->p[i].value,
			.class = str_c(f->p[i].class),
			.note = str_c(f->p[i].note) };
		if (dump_record(o, &r, &s->dump, &out->count, &e))
			cli_die("%s", e.msg);
	}
}

/* Operands, and the libraries under the names they are asked for by. */
static void
dump_also(struct rec_out *o, const struct settings *s, const struct libs *l,
    struct outcome *out)
{
	struct walk w = { .skip = warn_left_out };
	struct err e;
	int r = 0;
	for (size_t i = 0; i < s->noperands; i++)
		if (walk_add(&w, s->operand[i], &e)) {
			cli_warn_err(s->operand[i], &e);
			out->unread++;
		}
	for (size_t i = 0; !r && i < l->n; i++) {
		r = walk_add(&w, l->path[2 * i + 1], &e);
		if (!r && w.n) {
			w.file[w.n - 1].as = str_c(l->path[2 * i]);
			w.file[w.n - 1].format = "bytes";
		}
	}
	out->count.skipped += w.skipped;
	if (!r && w.n)
		r = dump_files(o, w.file, w.n, &s->dump, &out->count, &e);
	if (r)
		cli_die("%s", e.msg);
	walk_close(&w);
}

void
host_dump(struct rec_out *o, const struct settings *s, struct outcome *out)
{
	struct facts f = { 0 };
	struct libs l = { .facts = &f };
	for (size_t i = 0; i < sizeof probes / sizeof *probes; i++)
		add_probe(&f, &probes[i]);
	add_names(&f);
	add_environment(&f);
	if (s->libs)
		libs_collect(&l, s->libs);
	head_write(o, s, "set", true);
	write_facts(o, s, &f, out);
	dump_also(o, s, &l, out);
	libs_free(&l);
	arena_free(&f.arena);
	free(f.p);
}
