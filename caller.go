package weir

import "github.com/seed1158cd35/weir/outcome"

// A caller is what a permit keeps of its Call, for events, pauses, and limits that come anew.
type caller struct {
	id      string // Call.ID
	op      string // Call.Operation
	pool    string // Call.Pool
	keys    map[string]string
	attempt int32 // of the call, from 1
}

// subject says whose an event is. It is made only where somebody listens.
func (c *caller) subject(u *Upstream, p *plan) Subject { return subject(u, p, c.id, c.keys) }

// pausedBy reports whether an answer asks for a pause. A quota that does not say when it
// resets is asked again now and then; but not even that for what is not of a pool, of
// which nobody knows what else the quota is for, nor where the upstream wants no more
// attempts: what is missing then is no time but money.
func (c *caller) pausedBy(o *outcome.Outcome) bool {
	if o.Class != outcome.Throttled {
		return false
	}
	return o.Hint.Said && o.Hint.After > 0 || o.Hint.Quota && c.pool != "" && !o.Hint.Said && o.Hint.Advice != outcome.NotAgain
}
