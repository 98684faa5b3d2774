package breaker

import "time"

// SetConfig replaces the config. The phase continues until its time is over, and a forced phase stays forced. Only a breaker that
// is turned off, and was not forced, closes immediately. Failures stay counted, unless the new config compares them with
// successes that were not counted.
func (b *Breaker) SetConfig(now time.Duration, c Config) { b.obey(now, new(c.WithDefaults())) }

// obey is SetConfig with all defaults filled in.
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

// SetConfig replaces the config of every key, as Breaker.SetConfig does.
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
