package limit

import "sync"

// A rest has the charges of a call that do not fit into Charges. Its memory is reused by later calls.
type rest struct {
	entries []entry
	lent    uint32 // how often it was given to another call
}

// mostInRest is the largest number of charges for which a rest is reused.
const mostInRest = 256

var rests = sync.Pool{New: func() any { return &rest{entries: make([]entry, 0, 6)} }}

// another returns the entry of the next charge.
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

// Free releases the memory of the charges of a finished call for other calls. It does not return what they hold.
func (p *Charges) Free() {
	if p.n = 0; p.rest != nil {
		p.free()
	}
}

func (p *Charges) free() {
	r := p.rest
	p.rest = nil
	// A copy of the Charges may have been freed already. Then another call uses the memory.
	if r.lent == p.lent && cap(r.entries) <= mostInRest {
		r.lent++
		rests.Put(r)
	}
}

// Keep prevents other calls from ever reusing the memory, because another goroutine may read it after this call.
func (p *Charges) Keep() {
	if p.rest != nil {
		p.rest.lent++
	}
}

// Clone returns a copy of the charges. At most one of the two may be settled or dropped.
func (p *Charges) Clone() Charges {
	c := *p
	if p.rest != nil {
		c.rest = rests.Get().(*rest)
		c.lent = c.rest.lent
		c.rest.entries = append(c.rest.entries[:0], p.rest.entries...)
	}
	return c
}
