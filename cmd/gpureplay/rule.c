/* What a table of replays says about devices: see rule.h. */
#include "rule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const rule_reasons[] = {
	[RULE_NONE] = NULL,
	[RULE_NONDETERMINISTIC] = REASON_NONDETERMINISTIC,
	[RULE_TWO_DEVICES] = REASON_TWO_DEVICES,
	[RULE_NO_REFERENCE] = REASON_NO_REFERENCE,
	[RULE_THIN] = REASON_THIN,
	[RULE_CONSISTENT] = REASON_CONSISTENT,
	[RULE_FEW] = REASON_FEW,
	[RULE_PIN_UNVERIFIED] = REASON_PIN_UNVERIFIED,
	[RULE_FAILURES] = REASON_FAILURES,
	[RULE_NOTHING] = REASON_NOTHING,
};

enum { PROCESSES_MIN = 2 }; /* one divergence may be a transient */

/* ---- counting ----------------------------------------------------------- */

static bool
complete(const uint32_t *row, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!row[i])
			return false;
	return true;
}

/* The only result of device i in the complete rounds, or 0. */
static uint32_t
only_result(const uint32_t *signature, size_t rounds, size_t n, size_t i)
{
	uint32_t only = 0;
	for (size_t r = 0; r < rounds; r++) {
		const uint32_t *row = signature + r * n;
		if (!complete(row, n))
			continue;
		if (only && row[i] != only)
			return 0;
		only = row[i];
	}
	return only;
}

/* Devices that gave `want` and nothing else. */
static size_t
supporters(const uint32_t *signature, size_t rounds, size_t n, uint32_t want)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++)
		count += only_result(signature, rounds, n, i) == want;
	return count;
}

/* For printing rates when nobody has a majority. */
static uint32_t
most_frequent(const uint32_t *signature, size_t rounds, size_t n)
{
	size_t cells = rounds * n, best = 0;
	uint32_t value = 0;
	for (size_t i = 0; i < cells && best < cells; i++) {
		size_t count = 0;
		if (signature[i] == value || !signature[i])
			continue;
		for (size_t j = i; j < cells; j++)
			count += signature[j] == signature[i];
		if (count > best) {
			best = count;
			value = signature[i];
		}
	}
	return value;
}

static void
count_against(const uint32_t *signature, size_t rounds, size_t n, uint32_t want,
    struct rule_device *device)
{
	for (size_t i = 0; i < n; i++)
		device[i].processes = device[i].k = 0;
	for (size_t r = 0; r < rounds; r++) {
		const uint32_t *row = signature + r * n;
		if (!complete(row, n))
			continue;
		for (size_t i = 0; i < n; i++) {
			device[i].processes++;
			device[i].k += row[i] != want;
		}
	}
}

int
rule_tally(const uint32_t *signature, size_t rounds, size_t n,
    struct rule_device *device)
{
	for (size_t i = 0; n >= 3 && i < n; i++) {
		uint32_t s = only_result(signature, rounds, n, i);
		if (!s || 2 * supporters(signature, rounds, n, s) <= n)
			continue;
		count_against(signature, rounds, n, s, device);
		return (int)i;
	}
	count_against(
	    signature, rounds, n, most_frequent(signature, rounds, n), device);
	return -1;
}

/* ---- judging ------------------------------------------------------------ */

static double
share(const struct rule_setup *s, size_t n)
{
	return s->ratio / (s->ratio + (double)n - 1);
}

/* p = looks * f^k, the looks being how many devices could have been it. */
static double
chance(double f, double looks, uint64_t k)
{
	return fmin(1, looks * pow(f, (double)k));
}

static uint64_t
needed(double f, double looks, double alpha)
{
	double k = ceil(log(alpha / looks) / log(f) - 1e-9);
	return k > PROCESSES_MIN ? (uint64_t)k : PROCESSES_MIN;
}

uint64_t
rule_needed(const struct rule_setup *s, size_t n, size_t named)
{
	return n < 3 ? 0
		     : needed(share(s, n), named ? (double)named : (double)n,
			   s->alpha);
}

/*
 * The largest ratio R of rates with looks * (R / (R + n - 1))^k <= alpha: a
 * race that is that much likelier on the suspect is still excluded.
 */
static double
excluded_ratio(double looks, uint64_t k, size_t n, double alpha)
{
	double f = pow(alpha / looks, 1 / (double)k);
	return f * ((double)n - 1) / (1 - f);
}

static void
unknown(struct rule_verdict *v, int reason)
{
	v->result = RULE_UNKNOWN;
	v->reason = reason;
}

/* 95 % for all n devices at once: the rate that m clean ones exclude is this
 * over m. */
static double
clean_term(size_t n)
{
	return log((double)n / 0.05);
}

uint64_t
rule_clean(const struct rule_setup *s, size_t n)
{
	return (uint64_t)ceil(clean_term(n) / s->rate - 1e-9);
}

/* Nobody diverged: which rate does that exclude, for every device at once? */
static void
judge_clean(const struct rule_setup *s, const struct rule_device *d, size_t n,
    struct rule_verdict *v)
{
	double log_term = clean_term(n);
	uint64_t failed = 0;
	bool pinned = true;
	for (size_t i = 0; i < n; i++) {
		failed += d[i].failed;
		pinned &= d[i].pinned;
	}
	v->bound = fmin(1, log_term / (double)d[0].processes);
	v->bound_rep = v->bound;
	uint64_t least = d[0].repetitions;
	for (size_t i = 1; i < n; i++)
		least = d[i].repetitions < least ? d[i].repetitions : least;
	if (least)
		v->bound_rep = fmin(1, log_term / (double)least);
	uint64_t want = rule_clean(s, n);
	bool enough = d[0].processes >= want || v->bound_rep <= s->rate;
	if (enough && !failed && pinned) {
		v->result = RULE_HEALTHY;
		return;
	}
	unknown(v, !enough  ? RULE_FEW
		   : failed ? RULE_FAILURES
			    : RULE_PIN_UNVERIFIED);
	v->clean = enough ? 0 : want - d[0].processes;
}

static void
judge_suspect(const struct rule_setup *s, const struct rule_device *d, size_t n,
    struct rule_verdict *v)
{
	const struct rule_device *who = &d[v->suspect];
	size_t named = 0;
	for (size_t i = 0; i < n; i++)
		named += d[i].named;
	double looks = who->named ? (double)named : (double)n;
	v->f = share(s, n);
	v->p = chance(v->f, looks, who->k);
	v->ratio = excluded_ratio(looks, who->k, n, s->alpha);
	uint64_t want = needed(v->f, looks, s->alpha);
	v->more = who->k < want ? want - who->k : 0;
	if (who->k == who->processes)
		unknown(v, RULE_CONSISTENT);
	else if (v->more)
		unknown(v, RULE_THIN);
	else if (!who->pinned)
		unknown(v, RULE_PIN_UNVERIFIED);
	else
		v->result = RULE_FAULTY;
}

void
rule_judge(const struct rule_setup *s, const struct rule_device *d, size_t n,
    int majority, struct rule_verdict *v)
{
	*v = (struct rule_verdict){ .suspect = -1, .majority = majority };
	size_t deviating = 0;
	for (size_t i = 0; i < n; i++) {
		deviating += d[i].k > 0;
		if (d[i].k)
			v->suspect = (int)i;
	}
	if (!n || !d[0].processes) {
		v->suspect = -1;
		unknown(v, RULE_NOTHING);
	} else if (!deviating && n == 1) {
		judge_clean(s, d, n, v);
		unknown(v, RULE_NO_REFERENCE);
	} else if (!deviating) {
		judge_clean(s, d, n, v);
	} else if (n == 2) {
		v->suspect = -1;
		unknown(v, RULE_TWO_DEVICES);
	} else if (majority < 0 || deviating > 1) {
		v->suspect = -1;
		unknown(v, RULE_NONDETERMINISTIC);
	} else {
		judge_suspect(s, d, n, v);
	}
}

/* ---- many sessions ------------------------------------------------------- */

/* P(X >= k) of a Poisson variable. */
static double
poisson_tail(uint64_t k, double mean)
{
	double below = 0, x = (double)k;
	if (!k)
		return 1;
	if (mean <= 0)
		return 0;
	if (x > mean) {
		/* The terms from k on fall: sum them, smallest error first. */
		double term = exp(x * log(mean) - mean - lgamma(x + 1));
		double sum = 0;
		for (double i = x; term > sum * 1e-17; i++) {
			sum += term;
			term *= mean / (i + 1);
		}
		return fmin(1, sum);
	}
	for (double i = 0; i < x; i++)
		below += exp(i * log(mean) - mean - lgamma(i + 1));
	return fmax(0, 1 - below);
}

struct workload {
	uint64_t processes, k;
	bool voided;
};

static bool
counts(const struct rule_row *r, const struct workload *w)
{
	return !w[r->workload].voided && (!r->k || r->k < r->processes);
}

static void
pool(const struct rule_row *row, size_t n, struct workload *w)
{
	for (size_t i = 0; i < n; i++)
		w[row[i].workload].voided |= row[i].voids;
	for (size_t i = 0; i < n; i++) {
		if (!counts(&row[i], w))
			continue;
		w[row[i].workload].processes += row[i].processes;
		w[row[i].workload].k += row[i].k;
	}
}

/* Of one device on one workload: own[device] is what it did there. */
struct own {
	uint64_t processes, k;
};

static int
by_place(const void *a, const void *b)
{
	const struct rule_row *x = *(const struct rule_row *const *)a;
	const struct rule_row *y = *(const struct rule_row *const *)b;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return (x->workload > y->workload) - (x->workload < y->workload);
}

/* Adds what one device did on one workload, of which the others did `w`. */
static void
add_place(const struct rule_setup *s, struct own own, const struct workload *w,
    struct rule_standing *to)
{
	uint64_t processes = w->processes - own.processes;
	uint64_t k = w->k - own.k;
	to->processes += own.processes;
	to->k += own.k;
	/* One more than was seen: no divergence is not the rate zero. */
	double rate =
	    processes ? fmin(1, (double)(k + 1) / (double)processes) : 1;
	to->expected += s->ratio * rate * (double)own.processes;
}

int
rule_ledger(const struct rule_setup *s, const struct rule_row *row,
    size_t nrows, size_t ndevices, size_t nworkloads,
    struct rule_standing *standing, struct err *e)
{
	struct workload *w = calloc(nworkloads + 1, sizeof *w);
	const struct rule_row **sorted = calloc(nrows + 1, sizeof *sorted);
	if (!w || !sorted) {
		free(w);
		free(sorted);
		return err_mem(e);
	}
	pool(row, nrows, w);
	for (size_t i = 0; i < ndevices; i++)
		standing[i] = (struct rule_standing){ .product = 1, .p = 1 };
	for (size_t i = 0; i < nrows; i++)
		sorted[i] = &row[i];
	sort_array(sorted, nrows, sizeof *sorted, by_place);
	for (size_t i = 0; i < nrows;) {
		const struct rule_row *r = sorted[i];
		struct rule_standing *to = &standing[r->device];
		struct own own = { 0, 0 };
		for (; i < nrows && !by_place(&sorted[i], &r); i++) {
			if (!counts(sorted[i], w)) {
				to->voided++;
				continue;
			}
			own.processes += sorted[i]->processes;
			own.k += sorted[i]->k;
			to->product *= pow(sorted[i]->f, (double)sorted[i]->k);
		}
		if (own.processes)
			add_place(s, own, &w[r->workload], to);
	}
	for (size_t i = 0; i < ndevices; i++) {
		struct rule_standing *to = &standing[i];
		to->p = poisson_tail(to->k, to->expected);
		to->faulty = to->k >= PROCESSES_MIN &&
			     to->product * (double)ndevices <= s->alpha &&
			     to->p <= s->alpha;
	}
	free(w);
	free(sorted);
	return 0;
}
