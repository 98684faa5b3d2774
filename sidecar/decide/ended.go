package decide

import "hash/maphash"

// An ending is how a permit ended.
type ending uint8

const (
	unknown  ending = iota // unknown to this process, or forgotten
	reported               // the caller reported the attempt
	expired                // the caller did not report in time
)

// remembered is the number of ended permits that are remembered.
const remembered = 1 << 16

// gone remembers the latest ended permits, so that a caller that reports one again gets a precise error. It contains
// no pointers, which the garbage collector would have to scan.
type gone struct {
	ends map[permitID]end
	ring []permitID // in order of their end
	next int
}

// permitID is the id of a permit, which has 26 letters.
type permitID [26]byte

func idOf(text string) (id permitID) {
	copy(id[:], text)
	return id
}

type end struct {
	caller uint64 // hash of its name
	how    ending
}

func (g *gone) add(id, caller string, how ending) {
	if g.ends == nil {
		g.ends = make(map[permitID]end)
	}
	at := idOf(id)
	if len(g.ring) < remembered {
		g.ring = append(g.ring, at)
	} else {
		delete(g.ends, g.ring[g.next])
		g.ring[g.next] = at
		g.next = (g.next + 1) % remembered
	}
	g.ends[at] = end{maphash.String(seed, caller), how}
}

// how returns how a permit of the caller ended. It returns unknown for permits of other callers.
func (g *gone) how(id, caller string) ending {
	if len(id) > len(permitID{}) {
		return unknown
	}
	if e, ok := g.ends[idOf(id)]; ok && e.caller == maphash.String(seed, caller) {
		return e.how
	}
	return unknown
}
