/*
 * What is asked for by name and judged beside the durations: how often events
 * come (--steady), and how slices compare with those of their peers (--peers).
 */
#ifndef WATCH_H
#define WATCH_H

#include <stdint.h>

#include "gate.h"

/* A key that was just made: is it one of them? */
void watch_key(struct gate *g, uint32_t key);
/* An event, in order of time; a slice, in order of its end or its begin. */
void watch_event(struct gate *g, uint32_t key, uint32_t lane, int64_t ts);
void watch_slice(
    struct gate *g, uint32_t key, uint32_t lane, int64_t ts, int64_t dur);
/* No more events. */
void watch_end(struct gate *g);

#endif
