/*
 * Every stack of one to three agents, in every order, through the PAM library
 * of this machine and through the rules of rcacompose: F as success, H as
 * auth_err, and U as ignore or as authinfo_unavail. Prints, for each of the
 * two, how many stacks PAM convicts (grants), how many the rules do, and how
 * many only one of them does, by the reason of the rules.
 *
 * usage: contrast DIR		an empty directory for the service files
 */
#include <security/pam_appl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../cmd/rcacompose/compose.h"

enum { AGENTS = 3, KINDS = ROLES * ANSWERS };

static const char *const returns[2][ANSWERS] = {
	{ [ANSWER_U] = "ignore",
	    [ANSWER_F] = "success",
	    [ANSWER_H] = "auth_err" },
	{ [ANSWER_U] = "authinfo_unavail",
	    [ANSWER_F] = "success",
	    [ANSWER_H] = "auth_err" },
};

static int
no_talk(int n, const struct pam_message **m, struct pam_response **r, void *u)
{
	(void)n, (void)m, (void)r, (void)u;
	return PAM_CONV_ERR;
}

static void
write_service(
    const char *dir, const struct vote *v, size_t n, const char *const *word)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/stack", dir);
	FILE *f = fopen(path, "w");
	for (size_t i = 0; f && i < n; i++)
		fprintf(f, "auth %s pam_debug.so auth=%s\n",
		    role_name((enum role)v[i].role), word[v[i].answer]);
	if (!f || fclose(f)) {
		perror(path);
		exit(2);
	}
}

static bool
pam_grants(const char *dir)
{
	const struct pam_conv talk = { no_talk, NULL };
	pam_handle_t *h;
	int r = pam_start_confdir("stack", "nobody", &talk, dir, &h);
	if (r != PAM_SUCCESS) {
		fprintf(stderr, "contrast: pam_start: %d\n", r);
		exit(2);
	}
	r = pam_authenticate(h, PAM_SILENT);
	pam_end(h, r);
	return r == PAM_SUCCESS;
}

struct counts {
	unsigned stacks, pam, rules, only_rules, only_pam;
	unsigned by_reason[RULE_NO_BINDING + 1];
};

static void
compare(const char *dir, const struct vote *v, size_t n,
    const char *const *word, struct counts *c)
{
	struct tally t = tally_of(v, n);
	struct opinion o = compose(&t, 0);
	bool faulty = o.result == RESULT_FAULTY;
	write_service(dir, v, n, word);
	bool granted = pam_grants(dir);
	c->stacks++;
	c->pam += granted;
	c->rules += faulty;
	c->only_rules += faulty && !granted;
	c->only_pam += granted && !faulty;
	c->by_reason[o.rule] += granted && !faulty;
}

static void
each_stack(const char *dir, const char *const *word, struct counts *c)
{
	unsigned stacks = KINDS;
	for (size_t n = 1; n <= AGENTS; n++, stacks *= KINDS)
		for (unsigned code = 0; code < stacks; code++) {
			struct vote v[AGENTS];
			unsigned rest = code;
			for (size_t i = 0; i < n; i++, rest /= KINDS)
				v[i] = (struct vote){
					(unsigned char)(rest % KINDS / ANSWERS),
					(unsigned char)(rest % ANSWERS),
					(uint32_t)i,
				};
			compare(dir, v, n, word, c);
		}
}

int
main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: contrast DIR\n");
		return 2;
	}
	for (int k = 0; k < 2; k++) {
		struct counts c = { 0 };
		each_stack(argv[1], returns[k], &c);
		printf("%s stacks %u pam %u rules %u only-rules %u "
		       "only-pam %u",
		    returns[k][ANSWER_U], c.stacks, c.pam, c.rules,
		    c.only_rules, c.only_pam);
		for (int r = 1; r <= RULE_NO_BINDING; r++)
			if (c.by_reason[r])
				printf(" %s %u", rule_name((enum rule)r),
				    c.by_reason[r]);
		putchar('\n');
	}
	return 0;
}
