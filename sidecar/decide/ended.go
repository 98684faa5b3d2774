package decide

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
// again is told why it cannot be done.
type gone struct {
	ends map[string]end
	ring []string // ids, by when they ended
	next int
}

type end struct {
	caller string
	how    ending
}

func (g *gone) add(id, caller string, how ending) {
	if g.ends == nil {
		g.ends = make(map[string]end)
	}
	if len(g.ring) < remembered {
		g.ring = append(g.ring, id)
	} else {
		delete(g.ends, g.ring[g.next])
		g.ring[g.next] = id
		g.next = (g.next + 1) % remembered
	}
	g.ends[id] = end{caller, how}
}

// how is what became of a permit. Of those of others nobody is told.
func (g *gone) how(id, caller string) ending {
	if e, ok := g.ends[id]; ok && e.caller == caller {
		return e.how
	}
	return unknown
}
