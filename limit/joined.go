package limit

import "time"

// Join makes limits with the same Of count each other's usage. It replaces earlier joins.
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

// Joined reports whether other limits count the usage of this one.
func (r *Registry) Joined() bool {
	others := r.joined.Load()
	return others != nil && len(*others) > 0
}

// share charges the usage of this limit to the joined limits, under the same key. It is used already, so they cannot
// refuse.
func (r *Registry) share(now time.Duration, key string, used int64) {
	others := r.joined.Load()
	if others == nil || used <= 0 {
		return
	}
	for _, other := range *others {
		other.Get(now, key).Owe(now, used)
	}
}
