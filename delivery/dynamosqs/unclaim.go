package dynamosqs

import (
	"context"

	"github.com/seed1158cd35/weir/delivery"
)

// mostUnsure limits the claims to be given back. Beyond it, claims end with their leases.
const mostUnsure = 1000

// unclaimLater makes the next sweep give back a claim whose outcome is unknown. r is the record that may be written.
func (s *Store) unclaimLater(r *record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unsure) < mostUnsure {
		s.unsure = append(s.unsure, r)
	}
}

// unclaim gives back claims whose callers did not learn of them. No attempt was sent, so none counts. A claim that is
// not stored yet may be stored later, so the next sweep checks it again. After its lease a sweep ends it.
func (s *Store) unclaim(ctx context.Context, w *work) error {
	s.mu.Lock()
	all := s.unsure
	s.unsure = nil
	s.mu.Unlock()
	return each(all, func(_ int, c *record) error {
		r, changed, err := w.change(ctx, c.seq, func(r *record) bool {
			if r.version != c.version {
				return false
			}
			r.Status, r.Lease, r.Worker, r.Changed = delivery.Queued, 0, "", now()
			r.Attempts, r.Starts = r.Attempts-1, r.Starts-1
			r.after()
			return true
		})
		switch {
		case changed:
			w.moves(string(r.Upstream), delivery.Queued, delivery.Processing) // the claim was not counted
			s.then(ctx, w, r)
		case now() < c.Lease && (err != nil || r != nil && r.Fence < c.Fence):
			s.unclaimLater(c)
		}
		return err
	})
}
