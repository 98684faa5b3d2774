package limit

import "time"

// Join has what is used of one of the limits with the same Of counted in all of them.
// Limits that have lost theirs count for themselves.
func Join(all []*Registry) {
	for _, r := range all {
		var others []*Registry
		for _, other := range all {
			if of := r.Limit().Of; of != "" && other != r && other.Limit().Of == of {
				others = append(others, other)
			}
		}
		r.joined.Store(&others)
	}
}

// Joined reports whether other limits count what is used of this one.
func (r *Registry) Joined() bool {
	others := r.joined.Load()
	return others != nil && len(*others) > 0
}

// share counts in the other limits, under the same key, what was used of this one. It is used already, so
// they are not asked.
func (r *Registry) share(now time.Duration, key string, used int64) {
	others := r.joined.Load()
	if others == nil || used <= 0 {
		return
	}
	for _, other := range *others {
		other.Get(now, key).Owe(now, used)
	}
}
