package redisstore

import (
	"context"
	_ "embed"
	"encoding/binary"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

var (
	//go:embed members.lua
	membersText string
	//go:embed beat.lua
	beatText string
	//go:embed load.lua
	loadText string
	//go:embed swap.lua
	swapText string
	//go:embed init.lua
	initText string
	//go:embed known.lua
	knownText string

	beat = newScript(membersText + beatText)
	load = newScript(loadText)
	swap = newScript(swapText)
	mark = newScript(membersText + initText)
	know = newScript(knownText)
)

// Init implements fleet.Store.
func (s *Store) Init(ctx context.Context, group string) error { return s.init(ctx, group, -1) }

// Known implements fleet.Store. A group that is missing from the store's register is new, so the store knows
// everything about it.
func (s *Store) Known(ctx context.Context, group string) (since time.Time, ok bool, err error) {
	since, ok, err = s.marked(ctx, group)
	if err == nil && !ok {
		ok, err = s.isNew(ctx, group)
	}
	return since, ok, err
}

// marked returns since when the store knows the state of a group, and whether it knows the group.
func (s *Store) marked(ctx context.Context, group string) (since time.Time, ok bool, err error) {
	c := s.call()
	s.tag(c, group)
	c.end()
	c.arg = append(c.arg, 0)
	err = s.do(ctx, c, know, func(r reader) error {
		if len(r.rest) != 8 {
			return errReply
		}
		since, ok = sinceOf(r.number())
		return nil
	})
	return since, ok, err
}

// do runs a script and returns the call to the pool after read.
func (s *Store) do(ctx context.Context, c *call, script *script, read func(reader) error) error {
	return s.doKeys(ctx, c, len(c.ends), script, read)
}

// doKeys is do for calls in which only the first texts are keys.
func (s *Store) doKeys(ctx context.Context, c *call, keys int, script *script, read func(reader) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.nkeys = keys
	if err := s.run(ctx, c, script); err != nil {
		return err
	}
	err := read(reader{c.reply})
	s.calls.Put(c)
	return err
}

// Beat implements fleet.Store.
func (s *Store) Beat(ctx context.Context, b *fleet.Beat) (a fleet.Standing, err error) {
	if err := b.Check(); err != nil {
		return a, err
	}
	if !b.Leave {
		_ = s.adopt(ctx, b.Group) // a failed adoption does not delay the heartbeat
	}
	c := s.call()
	s.tag(c, b.Group)
	c.end()
	s.members(c, b.Group)
	c.number(s.now(), b.Seq, b.Ack, b.Gen, b.Part, b.Until, b.Silence, b.Life, b.Window, b.Wish, b.Need)
	c.arg = append(append(c.arg, flags(b.Alone, b.Goes, b.None, b.Leave, b.Leave && b.Dead, b.Leave && b.Idle)), b.Client...)
	err = s.do(ctx, c, beat, func(r reader) error {
		if len(r.rest) != 10*8 {
			return errReply
		}
		a = fleet.Standing{No: r.number(), Gen: r.number(), Part: r.number(), Until: r.number(),
			Out: r.number(), Unknown: r.number(), Known: r.number(), Since: r.number(), Alive: r.number()}
		a.Now = time.UnixMicro(r.number())
		return nil
	})
	return a, err
}

// flags returns the flags as bits. The first is the lowest bit.
func flags(all ...bool) (b byte) {
	for i, f := range all {
		if f {
			b |= 1 << i
		}
	}
	return b
}

// Load implements fleet.Store.
func (s *Store) Load(ctx context.Context, group string, names []string) (records []fleet.Record, now time.Time, err error) {
	c := s.call()
	s.tag(c, group)
	c.end()
	for _, name := range names {
		s.key(c, group, 'r', name)
	}
	c.number(s.now())
	err = s.do(ctx, c, load, func(r reader) error {
		now = time.UnixMicro(r.number())
		for _, name := range names {
			if len(r.rest) < 4 {
				return errReply
			}
			size := binary.LittleEndian.Uint32(r.rest)
			if r.rest = r.rest[4:]; int(size) > len(r.rest) {
				return errReply
			}
			records = append(records, record(name, r.rest[:size]))
			r.rest = r.rest[size:]
		}
		return nil
	})
	return records, now, err
}

// record decodes a record that swap.lua wrote.
func record(name string, text []byte) fleet.Record {
	if len(text) < 24 {
		return fleet.Record{Name: name}
	}
	r := reader{text}
	version, _ := r.number(), r.number()
	return fleet.Record{
		Name:    name,
		Version: version,
		Keep:    time.Duration(binary.LittleEndian.Uint64(r.rest)),
		Value:   append([]byte(nil), r.rest[8:]...),
	}
}

// Swap implements fleet.Store.
func (s *Store) Swap(ctx context.Context, group string, r fleet.Record) (now fleet.Record, ok bool, err error) {
	c := s.call()
	s.key(c, group, 'r', r.Name)
	c.number(s.now(), r.Version, whole(r.Keep))
	c.arg = binary.LittleEndian.AppendUint64(c.arg, uint64(r.Keep))
	c.arg = append(c.arg, r.Value...)
	err = s.do(ctx, c, swap, func(answer reader) error {
		ok = answer.byte() == 1
		now = record(r.Name, answer.rest)
		return nil
	})
	return now, ok, err
}

// whole returns d in microseconds, from 0 to a century, so that scripts can add it exactly.
func whole(d time.Duration) int64 {
	const century = 100 * 366 * 24 * time.Hour
	return int64(max(0, min(d, century)) / time.Microsecond)
}
