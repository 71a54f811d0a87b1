/* What reruns say: see reruns.h. */
#include "reruns.h"

#include <math.h>
#include <stdlib.h>

#include "stats.h"

/* What the rows ask for. */
struct view {
	const struct reruns *r;
	size_t *set;
	size_t nsets;    /* S: sets that ran, references not counted */
	size_t all_sets; /* with the references */
	size_t k, sets_diverged;
	size_t one_set; /* a set that diverged, and the runs it did */
	size_t runs_of_set;
	bool same_boundary, same_point; /* in all that diverged */
	bool one_device;                /* always the same single one */
	size_t device;
	bool rotated;  /* it held at least two ranks */
	size_t common; /* D */
	size_t both;   /* devices that diverged and also ran clean */
	bool recorded, confirmed;
};

/* ---- sets ------------------------------------------------------------ */

static size_t
find(size_t *parent, size_t d)
{
	while (parent[d] != d) {
		parent[d] = parent[parent[d]];
		d = parent[d];
	}
	return d;
}

static void
unite(size_t *parent, const struct rerun_devices *d)
{
	for (size_t i = 1; i < d->n; i++)
		parent[find(parent, d->id[i])] = find(parent, d->id[0]);
}

/* Numbers the sets of these runs on; `number` is by parent. */
static void
number_sets(const struct rerun *run, size_t n, size_t *parent, size_t *number,
    size_t *next)
{
	for (size_t i = 0; i < n; i++) {
		if (!run[i].used.n)
			continue;
		size_t p = find(parent, run[i].used.id[0]);
		if (number[p] == SIZE_MAX)
			number[p] = (*next)++;
	}
}

static int
make_sets(struct view *v, struct err *e)
{
	const struct reruns *r = v->r;
	size_t n = r->ndevices ? r->ndevices : 1, next = 0;
	size_t *parent = malloc(n * sizeof *parent);
	size_t *number = malloc(n * sizeof *number);
	if (!parent || !number) {
		free(parent);
		free(number);
		return err_mem(e);
	}
	for (size_t i = 0; i < n; i++) {
		parent[i] = i;
		number[i] = SIZE_MAX;
	}
	for (size_t i = 0; i < r->nrefs; i++)
		unite(parent, &r->ref[i].used);
	for (size_t i = 0; i < r->n; i++)
		unite(parent, &r->run[i].used);
	number_sets(r->ref, r->nrefs, parent, number, &next);
	number_sets(r->run, r->n, parent, number, &next);
	for (size_t d = 0; d < r->ndevices; d++)
		v->set[d] = number[find(parent, d)];
	v->all_sets = next;
	free(parent);
	free(number);
	return 0;
}

static size_t
set_of(const struct view *v, const struct rerun *run)
{
	return run->used.n ? v->set[run->used.id[0]] : SIZE_MAX;
}

static bool
has(const struct rerun_devices *d, size_t id)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->id[i] == id)
			return true;
	return false;
}

/* Did some run like this use the set? */
static bool
set_ran(const struct view *v, size_t set, bool only_diverged)
{
	for (size_t i = 0; i < v->r->n; i++)
		if ((!only_diverged || v->r->run[i].diverged) &&
		    set_of(v, &v->r->run[i]) == set)
			return true;
	return false;
}

static void
count_sets(struct view *v)
{
	for (size_t s = 0; s < v->all_sets; s++) {
		v->nsets += set_ran(v, s, false);
		if (!set_ran(v, s, true))
			continue;
		v->sets_diverged++;
		v->one_set = s;
	}
	for (size_t i = 0; i < v->r->n; i++)
		v->runs_of_set += set_of(v, &v->r->run[i]) == v->one_set;
}

/*
 * The bits of the references came from at least two runs, on two sets or on
 * the only one there is. Who names no devices ran nobody knows where: it
 * confirms nothing.
 */
static bool
are_confirmed(const struct view *v)
{
	size_t good = 0, set = SIZE_MAX;
	bool two = false;
	const struct rerun *list[2] = { v->r->ref, v->r->run };
	size_t n[2] = { v->r->nrefs, v->r->n };
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < n[k]; i++) {
			size_t s = set_of(v, &list[k][i]);
			if (list[k][i].diverged || s == SIZE_MAX)
				continue;
			two |= set != SIZE_MAX && set != s;
			set = s;
			good++;
		}
	return two || (good >= 2 && v->all_sets == 1);
}

/* ---- points and devices ------------------------------------------------ */

static bool
same_point(const struct rerun *a, const struct rerun *b)
{
	return u128_same(a->boundary, b->boundary) &&
	       u128_same(a->step, b->step) && u128_same(a->hash, b->hash);
}

static void
view_points(struct view *v)
{
	const struct rerun *first = NULL;
	v->same_boundary = v->same_point = v->one_device = true;
	for (size_t i = 0; i < v->r->n; i++) {
		const struct rerun *run = &v->r->run[i];
		if (!run->diverged)
			continue;
		if (!first) {
			first = run;
			v->device = run->roots.n ? run->roots.id[0] : 0;
		}
		v->same_boundary &= u128_same(run->boundary, first->boundary);
		v->same_point &= same_point(run, first);
		v->one_device &=
		    run->roots.n == 1 && run->roots.id[0] == v->device;
		v->rotated |= run->rank != first->rank;
	}
}

/* Devices that ran the boundary in every run that diverged. */
static size_t
count_common(const struct view *v)
{
	size_t n = 0;
	for (size_t d = 0; d < v->r->ndevices; d++) {
		bool always = true;
		for (size_t i = 0; i < v->r->n && always; i++)
			always =
			    !v->r->run[i].diverged || has(&v->r->run[i].ran, d);
		n += always;
	}
	return n;
}

static size_t
count_both(const struct view *v)
{
	size_t n = 0;
	for (size_t d = 0; d < v->r->ndevices; d++) {
		bool diverged = false, clean = false;
		for (size_t i = 0; i < v->r->n; i++) {
			const struct rerun *run = &v->r->run[i];
			if (run->diverged)
				diverged |= has(&run->roots, d);
			else
				clean |= has(&run->used, d);
		}
		n += diverged && clean;
	}
	return n;
}

static int
look(struct view *v, struct err *e)
{
	int r = make_sets(v, e);
	if (r)
		return r;
	v->recorded = true;
	for (size_t i = 0; i < v->r->n; i++) {
		const struct rerun *run = &v->r->run[i];
		v->k += run->diverged;
		v->recorded &= run->used.n &&
			       (!run->diverged || (run->roots.n && run->ran.n));
	}
	count_sets(v);
	view_points(v);
	v->common = count_common(v);
	v->both = count_both(v);
	v->confirmed = are_confirmed(v);
	return 0;
}

/* ---- the rows ---------------------------------------------------------- */

static enum rerun_row
several_sets(const struct view *v)
{
	if (v->same_point && v->k == v->r->n)
		return RERUN_CODE;
	if (v->same_boundary && v->both >= 3)
		return RERUN_RACE;
	return v->same_boundary ? RERUN_RACE_OR_DEVICE : RERUN_NONDETERMINISTIC;
}

static bool
is_device(const struct view *v)
{
	return !v->same_point && v->one_device && v->rotated &&
	       v->common >= 3 &&
	       pow((double)v->common, 1 - (double)v->k) <= v->r->alpha;
}

static enum rerun_row
other_sets_clean(const struct view *v)
{
	double share = (double)v->runs_of_set / (double)v->r->n;
	double chance = (double)v->nsets * pow(share, (double)v->k);
	return chance <= v->r->alpha ? RERUN_SET : RERUN_THIN_SETS;
}

static enum rerun_row
only_set(const struct view *v)
{
	if (!v->one_device)
		return v->same_boundary ? RERUN_ONE_SET_RACE_OR_DEVICE
					: RERUN_ONE_SET_NONDETERMINISTIC;
	if (v->common < 3 || (!v->same_point && !v->rotated))
		return RERUN_ROLE_CONFOUNDED;
	if (!v->same_point)
		return RERUN_THIN_DEVICE;
	return v->k == v->r->n ? RERUN_CONSISTENT : RERUN_INTERMITTENT;
}

static enum rerun_row
row_of(const struct view *v)
{
	if (!v->r->agree)
		return RERUN_REFERENCE_UNSTABLE;
	if (!v->k)
		return RERUN_SAME;
	if (!v->recorded)
		return RERUN_NO_DEVICES;
	if (!v->confirmed)
		return RERUN_REFERENCE_SUSPECT;
	if (v->k == 1)
		return RERUN_THIN_ONE;
	if (v->sets_diverged > 1)
		return several_sets(v);
	if (is_device(v))
		return RERUN_DEVICE;
	return v->nsets > 1 ? other_sets_clean(v) : only_set(v);
}

int
reruns_judge(const struct reruns *r, size_t *set, struct rerun_verdict *out,
    struct err *e)
{
	struct view v = { .r = r, .set = set };
	int err = look(&v, e);
	if (err)
		return err;
	*out = (struct rerun_verdict){
		.row = row_of(&v),
		.device = v.device,
		.set = v.one_set,
		/* The rate that n clean runs exclude at 95 %. */
		.bound = stats_clean(r->n, 0.05),
		.k = v.k,
		.nsets = v.nsets,
		.sets_diverged = v.sets_diverged,
		.common = v.common,
	};
	return 0;
}
