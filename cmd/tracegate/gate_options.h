/* Options that filter shares with control: their ids, and who reads them. */
#ifndef GATE_OPTIONS_H
#define GATE_OPTIONS_H

#include "gate.h"

enum {
	OPT_F_LIVE = OPT_OWN,
	OPT_F_FILE,
	OPT_F_PRESET,
	OPT_F_SYNC,
	OPT_F_STEP,
	OPT_F_SLO,
	OPT_F_BASELINE,
	OPT_F_FLOOR,
	OPT_F_SENSITIVE,
	OPT_F_FAST,
	OPT_F_COST,
	OPT_F_STEADY,
	OPT_F_PEERS,
	OPT_F_SYNC_ONLY,
	OPT_F_BEAT,
	OPT_F_BEFORE,
	OPT_F_AFTER,
	OPT_F_LONGEST,
	OPT_F_COOLDOWN,
	OPT_F_RATE,
	OPT_F_MAX_BYTES,
	OPT_F_AUDIT,
	OPT_F_SEED,
	OPT_F_MEMORY,
	OPT_F_RING,
	OPT_F_HISTORY,
	OPT_F_LATENESS,
	OPT_F_ALL,
	OPT_F_TO,
	OPT_F_SPLIT,
	OPT_F_FIELDS,
	OPT_F_LAST, /* control numbers its own from here */
};

/* Set by SIGINT and SIGTERM after catch_signals(). */
extern volatile sig_atomic_t gate_stop;

void gate_defaults(struct gate_settings *s);
/* Takes one of these options; false if it is none. */
bool gate_option(struct gate_settings *s, int id, const struct opt_state *o);
void gate_settings_free(struct gate_settings *s);

#endif
