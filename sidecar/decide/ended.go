package decide

import "hash/maphash"

// An ending says what became of a permit that is not out.
type ending uint8

const (
	unknown  ending = iota // nobody here knows it, or not any more
	reported               // its holder told of the attempt
	expired                // nobody did
)

// remembered is how many permits are remembered after their end.
const remembered = 1 << 16

// gone remembers the latest permits that have ended, so that whoever reports one
// again is told why it cannot be done. It has no pointers, which a collection of memory
// would have to follow, however many there are.
type gone struct {
	ends map[permitID]end
	ring []permitID // by when they ended
	next int
}

// permitID is the id of a permit, whose text has 26 letters.
type permitID [26]byte

func idOf(text string) (id permitID) {
	copy(id[:], text)
	return id
}

type end struct {
	caller uint64 // a hash of its name
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

// how is what became of a permit. Of those of others nobody is told.
func (g *gone) how(id, caller string) ending {
	if len(id) > len(permitID{}) {
		return unknown
	}
	if e, ok := g.ends[idOf(id)]; ok && e.caller == maphash.String(seed, caller) {
		return e.how
	}
	return unknown
}
