package redisstore

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// First byte of take.lua's response. No text begins with such a byte.
const (
	answered = 248 + iota
	otherWindow
	repeated // the earlier response of a lane
)

// size returns the length of the response to an ask, in bytes.
func size(a *fleet.Ask) int {
	n := 40
	for i := range a.Claims {
		switch a.Claims[i].Rule.Shape {
		case limit.Bucket:
			n += 40
		case limit.Rolling:
			n += 72
		default:
			n += 48
		}
	}
	return n
}

// decode reads take.lua's response into the ask.
func decode(a *fleet.Ask, reply []byte) error {
	r := reader{reply}
	status := r.byte()
	now := r.number()
	a.Now = time.UnixMicro(now)
	if status == otherWindow && len(r.rest) == 0 {
		return fleet.ErrWindow
	}
	if status < answered || status > repeated || len(r.rest) != size(a) {
		return errReply
	}
	a.Granted = r.number()
	// The script has already added the units saved in parts to the weight of each bucket.
	at := fleet.Supply{Now: now, Z: r.number(), Out: r.number(), Saved: 1, Next: r.number(), Cold: r.number() >= fleet.Whole}
	a.Grants = a.Grants[:0]
	for i := range a.Claims {
		k := &a.Claims[i]
		g := r.grant(&at, k)
		if a.Granted*k.Cost+g.Extra == 0 {
			g.Mark = fleet.Mark{} // no granted unit can return
		}
		a.Grants = append(a.Grants, g)
	}
	return nil
}

// grant decodes the state of a limit after the charge, and computes the rest of the grant from it.
func (r *reader) grant(at *fleet.Supply, k *fleet.Claim) (g fleet.Grant) {
	g.Extra, g.Paused = r.number(), micros(r.number())
	switch k.Rule.Shape {
	case limit.Bucket:
		r.bucket(at, k, &g)
	case limit.Calendar:
		r.fixed(at.Now, k, &g)
	default:
		r.rolling(k, &g)
	}
	if k.Cost > k.Rule.Most() {
		g.Wait = bucket.Never
	}
	g.Wait = max(g.Wait, g.Paused)
	return g
}

func (r *reader) bucket(at *fleet.Supply, k *fleet.Claim, g *fleet.Grant) {
	m := &k.Rule.Meter
	f := bucket.Fill{Weight: r.number(), At: r.number()}
	g.Mark = fleet.Mark{At: f.At, Level: 1}
	f, g.Cold = m.Drained(f, at.Z), at.Cold && k.Cold < fleet.ColdFull
	g.Reset, g.Drain = micros(at.Reset(m, f)), micros(at.Drain(m, f))
	rested := min(0, f.Weight) // for a call that costs more than a full bucket has
	f.Weight = max(f.Weight, r.number())
	g.Left = m.Free(f)
	f.Weight += rested
	if k.Cost > g.Left && k.Cost <= k.Rule.Most() {
		g.Wait = micros(at.Wait(m, f, k.Cost))
	}
}

func (r *reader) fixed(now int64, k *fleet.Claim, g *fleet.Grant) {
	g.Left = max(0, k.Rule.Amount-r.number())
	g.Mark.At = r.number()
	g.Reset = micros(max(0, r.number()-now))
	if g.Back = r.number(); g.Back < 0 {
		g.Back, g.Cold = 0, true
	}
	if k.Cost > g.Left {
		g.Wait = g.Reset
	}
}

func (r *reader) rolling(k *fleet.Claim, g *fleet.Grant) {
	g.Left = max(0, k.Rule.Amount-r.number()-r.number())
	g.Mark = fleet.Mark{At: r.number(), Level: r.number()}
	g.Wait, g.Reset = micros(r.number()), micros(r.number())
	g.Cold = r.number() != 0
}

// micros converts microseconds to a Duration, Never if it overflows.
func micros(n int64) time.Duration {
	if n > math.MaxInt64/1000 {
		return bucket.Never
	}
	return time.Duration(n) * time.Microsecond
}

// A reader reads responses of scripts. Missing bytes read as 0.
type reader struct{ rest []byte }

func (r *reader) byte() byte {
	if len(r.rest) < 1 {
		return 0xff
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) number() int64 {
	if len(r.rest) < 8 {
		return 0
	}
	n := int64(math.Float64frombits(binary.LittleEndian.Uint64(r.rest)))
	r.rest = r.rest[8:]
	return n
}
