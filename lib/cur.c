/* A cursor over bytes in memory: see cur.h. */
#include "cur.h"

static uint64_t
take_le(struct cur *c, unsigned n)
{
	const unsigned char *p = cur_take(c, n);
	uint64_t v = 0;
	for (unsigned i = n; p && i > 0; i--)
		v = v << 8 | p[i - 1];
	return v;
}

uint8_t
cur_u8(struct cur *c)
{
	return (uint8_t)take_le(c, 1);
}

uint16_t
cur_le16(struct cur *c)
{
	return (uint16_t)take_le(c, 2);
}

uint32_t
cur_le32(struct cur *c)
{
	return (uint32_t)take_le(c, 4);
}

uint64_t
cur_le64(struct cur *c)
{
	return take_le(c, 8);
}

uint64_t
cur_be64(struct cur *c)
{
	const unsigned char *p = cur_take(c, 8);
	uint64_t v = 0;
	for (unsigned i = 0; p && i < 8; i++)
		v = v << 8 | p[i];
	return v;
}
