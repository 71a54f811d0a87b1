/* The verbs of tracegate, one file each. */
#ifndef VERBS_H
#define VERBS_H

#include "keys.h"
#include "opt.h"
#include "reader.h"

/* SIGINT and SIGTERM end the input. */
void catch_signals(void);

int verb_filter(int argc, char **argv);
int verb_path(int argc, char **argv);
int verb_classify(int argc, char **argv);
int verb_control(int argc, char **argv);
int verb_baseline(int argc, char **argv);

/* Thresholds that an earlier run froze; dies if they cannot be read. */
void baseline_load(struct keys *k, const char *path);
/* --fields ts=A,dur=B,name=C,cost=D,unit=us */
void fields_free(struct fields *f);
void fields_parse(struct fields *f, const struct opt_state *o);

#endif
