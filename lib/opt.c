/* Options: see opt.h. */
#include "opt.h"

#include <stdio.h>
#include <string.h>

#include "cli.h"

enum { HELP_COLUMN = 26 };

void
opt_start(struct opt_state *s, const struct opt *table, int argc, char **argv)
{
	*s = (struct opt_state){
		.table = table, .argv = argv, .argc = argc, .at = 1
	};
}

static const struct opt *
by_name(const struct opt *t, const char *name, size_t len)
{
	for (; t->name; t++)
		if (strlen(t->name) == len && !strncmp(t->name, name, len))
			return t;
	return NULL;
}

static const struct opt *
by_letter(const struct opt *t, char c)
{
	for (; t->name; t++)
		if (t->id == c && c > 1)
			return t;
	return NULL;
}

static const char *
next_argument(struct opt_state *s, const struct opt *o)
{
	if (s->at >= s->argc)
		cli_usage("option %s needs an argument: %s", s->name, o->arg);
	return s->argv[s->at++];
}

static int
long_option(struct opt_state *s, const char *word)
{
	const char *eq = strchr(word, '=');
	size_t len = eq ? (size_t)(eq - word) : strlen(word);
	snprintf(s->shown, sizeof s->shown, "--%.*s", (int)len, word);
	s->name = s->shown;
	const struct opt *o = by_name(s->table, word, len);
	if (!o)
		cli_usage("unknown option %s", s->name);
	s->arg = eq ? eq + 1 : NULL;
	if (!o->arg && eq)
		cli_usage("option %s takes no argument", s->name);
	if (o->arg && o->arg[0] != '[' && !eq)
		s->arg = next_argument(s, o);
	return o->id;
}

static int
short_option(struct opt_state *s)
{
	char c = *s->more++;
	snprintf(s->shown, sizeof s->shown, "-%c", c);
	s->name = s->shown;
	const struct opt *o = by_letter(s->table, c);
	if (!o)
		cli_usage("unknown option %s", s->name);
	s->arg = NULL;
	if (o->arg && o->arg[0] != '[') {
		s->arg = *s->more ? s->more : next_argument(s, o);
		s->more = "";
	}
	return o->id;
}

int
opt_next(struct opt_state *s)
{
	if (s->more && *s->more)
		return short_option(s);
	if (s->at >= s->argc)
		return OPT_END;
	const char *word = s->argv[s->at];
	bool operand = s->ended || word[0] != '-' || !word[1];
	if (operand && s->command)
		return OPT_END;
	s->at++;
	if (operand) {
		s->arg = word;
		return OPT_OPERAND;
	}
	if (!strcmp(word, "--")) {
		s->ended = true;
		return s->command ? OPT_END : opt_next(s);
	}
	if (word[1] == '-')
		return long_option(s, word + 2);
	s->more = word + 1;
	return short_option(s);
}

void
opt_list_verbs(const struct verb *v, const char *command)
{
	for (; v->name; v++)
		if (*v->name)
			printf("  %s %-*s  %s\n", command,
			    HELP_COLUMN - 3 - (int)strlen(command), v->name,
			    v->help);
	printf("\neach verb has its own --help\n");
}

/* What opt_help adds while the nameless verb runs; set once by opt_verbs. */
static const struct verb *listed;

static void
print_option(const struct opt *t)
{
	char left[80];
	const char *arg = t->arg ? t->arg : "";
	const char *gap = t->arg && t->arg[0] != '[' ? "=" : "";
	if (t->id < OPT_COLOR)
		snprintf(left, sizeof left, "  -%c, --%s%s%s", t->id, t->name,
		    gap, arg);
	else
		snprintf(
		    left, sizeof left, "      --%s%s%s", t->name, gap, arg);
	if (strlen(left) > HELP_COLUMN)
		printf("%s\n%*s  %s\n", left, HELP_COLUMN, "", t->help);
	else
		printf("%-*s  %s\n", HELP_COLUMN, left, t->help);
}

void
opt_help(const struct opt *t, const char *const *usage, const char *summary)
{
	for (int i = 0; usage[i]; i++)
		printf("%s %s\n", i ? "      " : "usage:", usage[i]);
	printf("%s\n\n", summary);
	for (; t->name; t++)
		print_option(t);
	if (listed) {
		printf("\n");
		opt_list_verbs(listed, cli_name());
	}
}

static const struct verb *
find_verb(const struct verb *v, const char *name)
{
	for (; v->name; v++)
		if (!strcmp(v->name, name))
			return v;
	return NULL;
}

int
opt_verbs(const struct verb *table, const char *command, const char *summary,
    int argc, char **argv)
{
	static char name[64]; /* cli_start keeps the pointer */
	const struct verb *plain = find_verb(table, "");
	const struct verb *v = argc > 1 ? find_verb(table, argv[1]) : NULL;
	bool help =
	    argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
	cli_start(command);
	if (v && *v->name) {
		snprintf(name, sizeof name, "%s %s", command, v->name);
		cli_start(name);
		return v->main(argc - 1, argv + 1);
	}
	if (help && !plain) {
		printf("usage: %s VERB ...\n%s\n\n", command, summary);
		opt_list_verbs(table, command);
		return cli_said();
	}
	listed = table;
	if (plain)
		return plain->main(argc, argv);
	if (argc == 2 &&
	    (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))) {
		printf("%s %s\n", command, VERSION);
		return cli_said();
	}
	if (argc < 2)
		cli_usage("expected a verb");
	cli_usage("unknown verb \"%s\"", argv[1]);
}
