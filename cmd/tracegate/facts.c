/* Facts of a slow period: see facts.h. */
#include "facts.h"

#include <math.h>
#include <stdlib.h>

#include "cli.h"
#include "glob.h"
#include "sort.h"

#define NEED_STEPS "more steps of the kind"
#define NEED_RANKS "the traces of all ranks"
#define NEED_DEVICE "device activity in the trace"
#define NEED_NORMAL "normal steps of the kind"
#define NEED_VALUE "the number, as a counter or an argument"
#define NEED_SLOW "more slow steps"

// clang-format off
const struct fact_kind fact_kinds[] = {
	[FACT_DUR] = { "dur", UNIT_TIME, false, "" },
	[FACT_EXCESS] = { "excess", UNIT_TIME, false, NEED_STEPS },
	[FACT_GAP_BEFORE] = { "gap_before", UNIT_TIME, false, "" },
	[FACT_HOLE] = { "hole", UNIT_TIME, false, "" },
	[FACT_IDLE] = { "idle", UNIT_TIME, false, "" },
	[FACT_LATE] = { "late", UNIT_TIME, false, NEED_RANKS },
	[FACT_SILENT] = { "silent", UNIT_TIME, false, NEED_RANKS },
	[FACT_PERIOD] = { "period", UNIT_TIME, false, NEED_SLOW },
	[FACT_COVERAGE] = { "coverage", UNIT_SHARE, false, "" },
	[FACT_GAP_SHARE] = { "gap_share", UNIT_SHARE, false, NEED_NORMAL },
	[FACT_HOLE_SHARE] = { "hole_share", UNIT_SHARE, false, NEED_NORMAL },
	[FACT_LOCK_SHARE] = { "lock_share", UNIT_SHARE, false, NEED_NORMAL },
	[FACT_LATE_SHARE] = { "late_share", UNIT_SHARE, false, NEED_RANKS },
	[FACT_LATE_STABLE] = { "late_stable", UNIT_SHARE, false, NEED_RANKS },
	[FACT_GPU_BUSY] = { "gpu_busy", UNIT_SHARE, false, NEED_DEVICE },
	[FACT_GAP_BUSY] = { "gap_busy", UNIT_SHARE, false, NEED_DEVICE },
	[FACT_STARVED] = { "starved", UNIT_SHARE, false, NEED_DEVICE },
	[FACT_RATIO] = { "ratio", UNIT_NUMBER, false, NEED_STEPS },
	[FACT_NTH] = { "nth", UNIT_NUMBER, false, "" },
	[FACT_STEP_PERIOD] = { "step_period", UNIT_NUMBER, false, NEED_SLOW },
	[FACT_LANES] = { "lanes", UNIT_NUMBER, false, "" },
	[FACT_LANES_LATE] = { "lanes_late", UNIT_NUMBER, false, NEED_RANKS },
	[FACT_KERNELS_X] = { "kernels_x", UNIT_NUMBER, false, NEED_DEVICE },
	[FACT_KERNEL_X] = { "kernel_x", UNIT_NUMBER, false, NEED_DEVICE },
	[FACT_KERNEL_SPREAD] =
	    { "kernel_spread", UNIT_NUMBER, false, NEED_DEVICE },
	[FACT_COLL_X] = { "coll_x", UNIT_NUMBER, false, NEED_RANKS },
	[FACT_UNFINISHED] = { "unfinished", UNIT_NUMBER, false, "" },
	[FACT_SILENT_X] = { "silent_x", UNIT_NUMBER, false, NEED_RANKS },
	[FACT_DROPS] = { "drops", UNIT_NUMBER, false, "" },
	[FACT_ON_PATH] = { "on_path", UNIT_SHARE, true, "" },
	[FACT_EXPLAINS] = { "explains", UNIT_SHARE, true, NEED_NORMAL },
	[FACT_EXTRA] = { "extra", UNIT_SHARE, true, NEED_NORMAL },
	[FACT_TIME] = { "time", UNIT_TIME, true, "" },
	[FACT_COUNT] = { "count", UNIT_NUMBER, true, "" },
	[FACT_COUNT_X] = { "count_x", UNIT_NUMBER, true, NEED_NORMAL },
	[FACT_MEAN_X] = { "mean_x", UNIT_NUMBER, true, NEED_NORMAL },
	[FACT_VALUE] = { "value", UNIT_NUMBER, true, NEED_VALUE },
	[FACT_VALUE_X] = { "value_x", UNIT_NUMBER, true, NEED_VALUE },
	[FACT_SEEN] = { "seen", UNIT_NUMBER, true, "" },
	[FACTS] = { NULL, UNIT_NUMBER, false, NULL },
};
// clang-format on

static const struct fact unknown = { false, 0 };

static struct fact
known(double v)
{
	return (struct fact){ true, v };
}

/* ---- what it is compared with ------------------------------------------- */

static const struct measure *
measure_of(struct traces *t, struct period *p)
{
	if (!p->measure)
		p->measure = measure_make(&t->m[p->model], &t->s[p->model], p);
	return p->measure;
}

static bool
normal(const struct period *p, const struct period *subject)
{
	return p->key == subject->key && p->model == subject->model &&
	       !p->slow && !p->unfinished;
}

/* Evenly spaced over the normal periods of its kind and trace. */
static void
find_normals(struct facts *f)
{
	struct periods *p = &f->t->periods;
	uint64_t n = 0, i = 0;
	/* Periods lie by kind: those of this one are around it. */
	uint32_t first = f->slow->subject, end = first;
	while (first && p->period[first - 1].key == f->subject->key)
		first--;
	while (end < p->n && p->period[end].key == f->subject->key)
		end++;
	for (uint32_t k = first; k < end; k++)
		n += normal(&p->period[k], f->subject);
	uint64_t want = n < NORMALS_MAX ? n : NORMALS_MAX;
	for (uint32_t k = first; k < end && f->nnormal < want; k++)
		if (normal(&p->period[k], f->subject) &&
		    i++ * want >= f->nnormal * n)
			f->normal[f->nnormal++] =
			    measure_of(f->t, &p->period[k]);
}

static int
by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double
median(double *v, uint32_t n)
{
	sort_array(v, n, sizeof *v, by_double);
	return v[n / 2];
}

typedef double quantity(const struct measure *x, int set);

/* The median of a quantity over the normal periods. */
static struct fact
usual(const struct facts *f, quantity *q, int set)
{
	double v[NORMALS_MAX];
	uint32_t n = 0;
	for (uint32_t i = 0; i < f->nnormal; i++) {
		double d = q(f->normal[i], set);
		if (!isnan(d))
			v[n++] = d;
	}
	return n < NORMALS_MIN ? unknown : known(median(v, n));
}

static struct fact
times_usual(const struct facts *f, quantity *q, int set)
{
	struct fact u = usual(f, q, set);
	double now = q(f->now, set);
	if (!u.known || isnan(now))
		return unknown;
	if (u.v > 0)
		return known(now / u.v);
	return known(now > 0 ? INFINITY : 1);
}

static int64_t
excess(const struct facts *f)
{
	return f->subject->usual ? period_dur(f->subject) - f->subject->usual
				 : 0;
}

/* How much of the excess is what a quantity has more than usual. */
static struct fact
part_of_excess(const struct facts *f, quantity *q, int set)
{
	struct fact u = usual(f, q, set);
	if (!u.known || excess(f) <= 0)
		return unknown;
	return known((q(f->now, set) - u.v) / (double)excess(f));
}

static double
path_of(const struct measure *x, int set)
{
	return (double)x->on_path[set];
}

static double
time_of(const struct measure *x, int set)
{
	return (double)x->time[set];
}

static double
count_of(const struct measure *x, int set)
{
	return x->count[set];
}

static double
gap_of(const struct measure *x, int set)
{
	return (double)x->gap;
}

static double
hole_of(const struct measure *x, int set)
{
	return (double)x->hole;
}

static double
lock_of(const struct measure *x, int set)
{
	return (double)x->lock;
}

static double
kernels_of(const struct measure *x, int set)
{
	return x->kernels;
}

static double
mean_of(const struct measure *x, int set)
{
	return x->slices[set] ? (double)x->sum[set] / x->slices[set] : NAN;
}

static double
value_of(const struct measure *x, int set)
{
	return x->has_value >> set & 1 ? x->value[set] : NAN;
}

/* ---- kernels ------------------------------------------------------------ */

/* The median over normal periods of what kernels of a name took. */
static double
usual_kernel(const struct kernel *v, uint32_t n, uint32_t name)
{
	uint32_t lo = 0, hi = n;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (v[mid].name < name)
			lo = mid + 1;
		else
			hi = mid;
	}
	uint32_t end = lo;
	while (end < n && v[end].name == name)
		end++;
	return lo == end ? 0 : (double)v[lo + (end - lo) / 2].dur;
}

static int
by_kernel(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return (x->dur > y->dur) - (x->dur < y->dur);
}

static void
compare_kernels(struct facts *f)
{
	enum { KERNELS_MIN = 5 };
	uint32_t n = 0, ratios = 0;
	for (uint32_t i = 0; i < f->nnormal; i++)
		n += f->normal[i]->nkernel;
	struct kernel *v = cli_alloc(n, sizeof *v);
	double *ratio = cli_alloc(f->now->nkernel, sizeof *ratio);
	n = 0;
	for (uint32_t i = 0; i < f->nnormal; i++)
		for (uint32_t k = 0; k < f->normal[i]->nkernel; k++)
			v[n++] = f->normal[i]->kernel[k];
	sort_array(v, n, sizeof *v, by_kernel);
	for (uint32_t i = 0; i < f->now->nkernel; i++) {
		const struct kernel *k = &f->now->kernel[i];
		double u = usual_kernel(v, n, k->name);
		if (u > 0)
			ratio[ratios++] = (double)k->dur / u;
	}
	if (ratios >= KERNELS_MIN && f->nnormal >= NORMALS_MIN) {
		f->kernel_x = median(ratio, ratios);
		f->kernel_spread =
		    ratio[ratios - 1 - ratios / 10] / ratio[ratios / 10];
		f->kernels_known = ratio[ratios / 10] > 0;
	}
	free(v);
	free(ratio);
}

/* ---- ranks -------------------------------------------------------------- */

/* The period of a trace in a slow one, or NULL. */
static const struct period *
member_period(const struct facts *f, const struct slow *slow, uint32_t model)
{
	for (uint32_t i = 0; i < slow->n; i++) {
		const struct period *p = &f->t->periods.period[slow->first + i];
		if (p->model == model)
			return p;
	}
	return NULL;
}

/* A slow period of one trace. */
struct spot {
	uint32_t model, slow;
	int64_t from, until;
};

static int
by_spot(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;
	if (x->model != y->model)
		return x->model < y->model ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->slow < y->slow ? -1 : x->slow > y->slow;
}

/* The slow period that a time of a trace lies in, or -1. */
static int32_t
spot_at(const struct spot *v, uint32_t n, uint32_t model, int64_t ts)
{
	enum { OVERLAP = 8 }; /* kinds of steps side by side */
	uint32_t lo = 0, hi = n;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (v[mid].model < model ||
		    (v[mid].model == model && v[mid].from <= ts))
			lo = mid + 1;
		else
			hi = mid;
	}
	for (uint32_t i = lo; i && lo - i < OVERLAP; i--)
		if (v[i - 1].model == model && ts < v[i - 1].until)
			return (int32_t)v[i - 1].slow;
	return -1;
}

/* Are all ranks of the job here? The collectives say how many there are. */
static bool
all_ranks(const struct traces *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (t->s[i].group > (int64_t)t->n)
			return false;
	return t->n > 1;
}

static int64_t
start_of(const struct traces *t, const struct member *b)
{
	const struct model *m = &t->m[b->model];
	return m->slice[b->slice].ts + m->info.base_ns -
	       t->ranks.clock[b->model].offset;
}

/* Ranks that began much later than the first. */
static uint32_t
late_ranks(const struct traces *t, const struct meeting *g)
{
	int64_t first = INT64_MAX;
	uint32_t n = 0;
	for (uint32_t i = 0; i < g->n; i++) {
		int64_t ts = start_of(t, &t->ranks.member[g->first + i]);
		first = ts < first ? ts : first;
	}
	int64_t limit = t->late > g->late / 2 ? t->late : g->late / 2;
	for (uint32_t i = 0; i < g->n; i++) {
		const struct member *b = &t->ranks.member[g->first + i];
		n += start_of(t, b) - first >
		     limit + t->ranks.clock[b->model].uncertainty;
	}
	return n;
}

static void
find_meetings(struct traces *t)
{
	struct periods *p = &t->periods;
	struct spot *v = cli_alloc(p->n, sizeof *v);
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->nslow; i++)
		for (uint32_t k = 0; k < p->slow[i].n; k++) {
			const struct period *it =
			    &p->period[p->slow[i].first + k];
			v[n++] =
			    (struct spot){ it->model, i, it->from, it->until };
		}
	sort_array(v, n, sizeof *v, by_spot);
	for (uint32_t i = 0; i < t->ranks.nmeetings; i++) {
		const struct meeting *g = &t->ranks.meeting[i];
		t->slow_of[i] = -1;
		for (uint32_t k = 0; k < g->n && t->slow_of[i] < 0; k++) {
			const struct member *b = &t->ranks.member[g->first + k];
			t->slow_of[i] = spot_at(
			    v, n, b->model, t->m[b->model].slice[b->slice].ts);
		}
	}
	free(v);
}

void
traces_compare(struct traces *t)
{
	const struct ranks *r = &t->ranks;
	t->lateness = cli_alloc(t->periods.nslow, sizeof *t->lateness);
	t->slow_of = cli_alloc(r->nmeetings, sizeof *t->slow_of);
	find_meetings(t);
	/* Where there is no collective, nobody waits for another rank. */
	bool alone = true;
	for (uint32_t i = 0; i < t->n; i++)
		alone = alone && !t->s[i].collectives;
	for (uint32_t i = 0; i < t->periods.nslow && alone; i++)
		t->lateness[i].met = true;
	bool known_clocks = all_ranks(t);
	for (uint32_t i = 0; i < t->n && known_clocks; i++)
		known_clocks = r->clock[i].n >= OCC_MIN;
	for (uint32_t i = 0; i < r->nmeetings && known_clocks; i++) {
		const struct meeting *g = &r->meeting[i];
		if (g->n < t->n || t->slow_of[i] < 0)
			continue;
		struct lateness *l = &t->lateness[t->slow_of[i]];
		if (l->met && g->late <= l->late)
			continue;
		*l = (struct lateness){ true, g->certain, g->latest, 0,
			g->late };
		if (g->late > t->late)
			l->nlate = late_ranks(t, g);
	}
}

/* Of the slow periods in which one rank was late: how often was it this one? */
static struct fact
late_stable(const struct facts *f)
{
	enum { LATE_MIN = 3 };
	uint32_t n = 0, same = 0;
	if (!f->ranks->met)
		return unknown;
	for (uint32_t i = 0; i < f->t->periods.nslow; i++) {
		const struct lateness *l = &f->t->lateness[i];
		if (!l->met || !l->certain || l->nlate != 1)
			continue;
		n++;
		same += l->latest == f->ranks->latest;
	}
	return n < LATE_MIN ? unknown : known((double)same / n);
}

static int64_t
shortest(const struct facts *f, const struct meeting *g)
{
	int64_t d = INT64_MAX;
	for (uint32_t i = 0; i < g->n; i++) {
		const struct member *b = &f->t->ranks.member[g->first + i];
		const struct slice *s = &f->t->m[b->model].slice[b->slice];
		d = s->end - s->ts < d ? s->end - s->ts : d;
	}
	return d;
}

/*
 * The shortest member of a collective waits for nobody: what it takes is the
 * collective itself. The largest ratio of it to what is usual.
 */
static struct fact
coll_x(const struct facts *f)
{
	const struct ranks *r = &f->t->ranks;
	double *v = cli_alloc(r->nmeetings, sizeof *v);
	uint32_t n = 0;
	int64_t now = -1;
	int32_t self = (int32_t)(f->slow - f->t->periods.slow);
	for (uint32_t i = 0; f->ranks->met && i < r->nmeetings; i++) {
		int64_t d = shortest(f, &r->meeting[i]);
		if (f->t->slow_of[i] == self)
			now = d > now ? d : now;
		else if (f->t->slow_of[i] < 0)
			v[n++] = (double)d;
	}
	double u = n < NORMALS_MIN ? 0 : median(v, n);
	free(v);
	return now < 0 || u <= 0 ? unknown : known((double)now / u);
}

/* How long one rank has been silent while others go on. */
static struct fact
silent(const struct facts *f, uint32_t *who)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	if (f->t->n < 2)
		return unknown;
	for (uint32_t i = 0; i < f->t->n; i++) {
		const struct model *m = &f->t->m[i];
		int64_t t = f->t->s[i].last + m->info.base_ns;
		if (t < first) {
			first = t;
			*who = i;
		}
		last = t > last ? t : last;
	}
	return known((double)(last - first));
}

/* ---- spacing ------------------------------------------------------------ */

/*
 * The spacing of the slow periods of this kind, if it is regular; 0 if it is
 * not.
 */
static struct fact
spacing(const struct facts *f, bool steps)
{
	const struct periods *p = &f->t->periods;
	double *v = cli_alloc(p->nslow, sizeof *v);
	const struct period *before = NULL;
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->nslow; i++) {
		const struct period *it = &p->period[p->slow[i].subject];
		if (it->key != f->subject->key)
			continue;
		if (before)
			v[n++] = steps ? (double)it->ordinal -
					     (double)before->ordinal
				       : (double)(p->slow[i].at -
						  (before->from +
						      f->t->m[before->model]
							  .info.base_ns));
		before = it;
	}
	struct fact r = unknown;
	if (n >= REGULAR_MIN - 1) {
		double mid = median(v, n);
		/* 10 %, or not at all for counts. */
		double slack = steps ? 0 : mid / 10;
		bool even = v[n - 1] - mid <= slack && mid - v[0] <= slack;
		r = known(even ? mid : 0);
	}
	free(v);
	return r;
}

/* ---- by number ---------------------------------------------------------- */

static struct fact
share_of(double part, double whole)
{
	return whole > 0 ? known(part / whole) : unknown;
}

static bool
has_device(const struct facts *f)
{
	return f->t->s[f->subject->model].devices > 0;
}

static struct fact
of_ranks(const struct facts *f, int fact)
{
	uint32_t who;
	struct fact s;
	switch (fact) {
	case FACT_LATE:
		return f->ranks->met ? known((double)f->ranks->late) : unknown;
	case FACT_LATE_SHARE:
		return f->ranks->met
			   ? share_of((double)f->ranks->late, (double)excess(f))
			   : unknown;
	case FACT_LATE_STABLE:
		return late_stable(f);
	case FACT_LANES_LATE:
		/* Who was the last is not certain, so neither is how many. */
		return f->ranks->met && (f->ranks->certain || !f->ranks->nlate)
			   ? known(f->ranks->nlate)
			   : unknown;
	case FACT_COLL_X:
		return coll_x(f);
	default:
		s = silent(f, &who);
		if (fact == FACT_SILENT || !s.known)
			return s;
		return share_of(s.v, (double)f->subject->usual);
	}
}

static struct fact
of_device(const struct facts *f, int fact)
{
	const struct measure *x = f->now;
	if (!has_device(f))
		return unknown;
	switch (fact) {
	case FACT_GPU_BUSY:
		return share_of((double)x->busy, (double)x->dur);
	case FACT_GAP_BUSY:
		return x->gap ? share_of((double)x->gap_busy, (double)x->gap)
			      : known(0);
	case FACT_STARVED:
		return share_of(x->starved, x->kernels);
	case FACT_KERNELS_X:
		return times_usual(f, kernels_of, 0);
	case FACT_KERNEL_X:
		return f->kernels_known ? known(f->kernel_x) : unknown;
	default:
		return f->kernels_known ? known(f->kernel_spread) : unknown;
	}
}

static struct fact
of_set(const struct facts *f, int fact, int set)
{
	const struct measure *x = f->now;
	switch (fact) {
	case FACT_ON_PATH:
		return share_of((double)x->on_path[set], (double)x->dur);
	case FACT_EXPLAINS:
		return part_of_excess(f, path_of, set);
	case FACT_EXTRA:
		return part_of_excess(f, time_of, set);
	case FACT_TIME:
		return known((double)x->time[set]);
	case FACT_COUNT:
		return known(x->count[set]);
	case FACT_COUNT_X:
		return times_usual(f, count_of, set);
	case FACT_MEAN_X:
		return times_usual(f, mean_of, set);
	case FACT_VALUE:
		return x->has_value >> set & 1 ? known(x->value[set]) : unknown;
	case FACT_VALUE_X:
		return times_usual(f, value_of, set);
	default:
		return known((double)f->t->s[f->subject->model].seen[set]);
	}
}

struct fact
facts_get(void *facts, int fact, int set)
{
	const struct facts *f = facts;
	const struct measure *x = f->now;
	switch (fact) {
	case FACT_DUR:
		return known((double)x->dur);
	case FACT_EXCESS:
		return f->subject->usual ? known((double)excess(f)) : unknown;
	case FACT_GAP_BEFORE:
		return known((double)x->gap);
	case FACT_HOLE:
		return known((double)x->hole);
	case FACT_IDLE:
		return known((double)x->idle);
	case FACT_PERIOD:
		return spacing(f, false);
	case FACT_STEP_PERIOD:
		return spacing(f, true);
	case FACT_COVERAGE:
		return share_of((double)x->covered, (double)x->dur);
	case FACT_GAP_SHARE:
		return part_of_excess(f, gap_of, 0);
	case FACT_HOLE_SHARE:
		return part_of_excess(f, hole_of, 0);
	case FACT_LOCK_SHARE:
		return part_of_excess(f, lock_of, 0);
	case FACT_RATIO:
		return share_of((double)x->dur, (double)f->subject->usual);
	case FACT_NTH:
		return known(f->subject->nth);
	case FACT_LANES:
		return known(f->t->n);
	case FACT_UNFINISHED:
		return known(f->subject->unfinished);
	case FACT_DROPS:
		return known((double)f->t->drops);
	case FACT_GPU_BUSY:
	case FACT_GAP_BUSY:
	case FACT_STARVED:
	case FACT_KERNELS_X:
	case FACT_KERNEL_X:
	case FACT_KERNEL_SPREAD:
		return of_device(f, fact);
	default:
		return fact_kinds[fact].of_set ? of_set(f, fact, set)
					       : of_ranks(f, fact);
	}
}

int64_t
facts_rank(const struct facts *f)
{
	return f->t->m[f->subject->model].rank;
}

/* The one that the others waited for; else the one that was slowest. */
static void
choose_subject(struct facts *f)
{
	const struct period *p = &f->t->periods.period[f->slow->subject];
	uint32_t who = p->model;
	if (f->ranks->met && f->ranks->certain && f->ranks->nlate == 1)
		who = f->ranks->latest;
	else if (p->unfinished)
		silent(f, &who);
	const struct period *own = member_period(f, f->slow, who);
	f->subject = own ? (struct period *)(uintptr_t)own
			 : &f->t->periods.period[f->slow->subject];
}

void
facts_make(struct facts *f, struct traces *t, const struct slow *slow)
{
	*f = (struct facts){ .t = t, .slow = slow };
	f->ranks = &t->lateness[slow - t->periods.slow];
	choose_subject(f);
	f->now = measure_of(t, f->subject);
	find_normals(f);
	compare_kernels(f);
}
