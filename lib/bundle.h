/*
 * Files of a directory that are one checkpoint: a safetensors index and its
 * shards, a torch distributed checkpoint and its data files. The file that
 * knows the others stays and stands for all of them.
 */
#ifndef BUNDLE_H
#define BUNDLE_H

#include "err.h"
#include "walk.h"

/*
 * Takes the files out of *w that an index or `.metadata` beside them speaks
 * for. Data files (*.distcp) without `.metadata` are left out and counted: the
 * save did not finish. An index whose shards are symbolic links or no
 * safetensors files speaks for none: it is then a plain file among others.
 */
int bundle_fold(struct walk *w, struct err *e);

#endif
