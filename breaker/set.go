package breaker

import "time"

// SetConfig puts another config in force. The phase stays what it is until its
// time is over, and what was forced stays forced; only a breaker that is turned
// off, and was not forced, closes at once. Failures stay counted, unless they are
// now to be compared with successes that were not.
func (b *Breaker) SetConfig(now time.Duration, c Config) { b.obey(now, new(c.WithDefaults())) }

// obey is SetConfig with a config whose defaults are filled in.
func (b *Breaker) obey(now time.Duration, c *Config) {
	for {
		old := b.load()
		next := old.under(now, c)
		if next.Phase == old.Phase {
			if b.cur.CompareAndSwap(old, next) {
				return
			}
		} else if b.change(now, old, next) {
			b.tell()
			return
		}
	}
}

// under is the box under another config.
func (s *box) under(now time.Duration, c *Config) *box {
	next := &box{State: s.State, cfg: c}
	switch {
	case c.Off && s.Phase != Closed && !s.Held:
		next.State = s.closed(now, WasReset)
	case c.counts() && s.good != nil && s.cfg.Window == c.Window:
		next.good = s.good
	case c.counts() && s.Phase == Closed:
		next.good, next.Recent = c.counter(), Recent{}
	}
	return next
}

// SetConfig puts another config in force for every key, as Breaker.SetConfig
// does.
func (g *Group) SetConfig(now time.Duration, c Config) {
	g.mu.Lock()
	cfg := new(c.WithDefaults())
	g.cfg = cfg
	all := []*Breaker{g.other}
	for _, v := range g.live.Range {
		all = append(all, &v.(*member).Breaker)
	}
	g.mu.Unlock()
	for _, b := range all {
		b.obey(now, cfg)
	}
}
