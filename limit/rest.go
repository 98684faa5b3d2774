package limit

import "sync"

// A rest is where the charges of a call are that has more than fit into Charges. Its memory is used by
// one call after the other, so that it grows once and is not made for every call.
type rest struct {
	entries []entry
	lent    uint32 // how often it was given to another call
}

// mostInRest is how many charges a rest keeps room for: it is not worth more memory than that.
const mostInRest = 256

var rests = sync.Pool{New: func() any { return &rest{entries: make([]entry, 0, 6)} }}

// another is where the next charge goes.
func (p *Charges) another() *entry {
	i := p.n
	if p.n++; i < len(p.first) {
		return &p.first[i]
	}
	if p.rest == nil {
		p.rest = rests.Get().(*rest)
		p.lent = p.rest.lent
	}
	r := p.rest
	r.entries = append(r.entries[:i-len(p.first)], entry{})
	return &r.entries[i-len(p.first)]
}

// Free ends the use of the charges of a call that is over: others use their memory. What they hold is not
// given back.
func (p *Charges) Free() {
	if p.n = 0; p.rest != nil {
		p.free()
	}
}

func (p *Charges) free() {
	r := p.rest
	p.rest = nil
	// A copy of the Charges may have been freed already: then the memory is another call's.
	if r.lent == p.lent && cap(r.entries) <= mostInRest {
		r.lent++
		rests.Put(r)
	}
}

// Keep has the memory of the charges used by no other call, ever: somebody else may look at it
// when this call is over.
func (p *Charges) Keep() {
	if p.rest != nil {
		p.rest.lent++
	}
}

// Clone is the same charges once more: of both, one at most may be settled or dropped.
func (p *Charges) Clone() Charges {
	c := *p
	if p.rest != nil {
		c.rest = rests.Get().(*rest)
		c.lent = c.rest.lent
		c.rest.entries = append(c.rest.entries[:0], p.rest.entries...)
	}
	return c
}
