package fleet

import (
	"context"
	"errors"
	"sync"
)

// Flush gives back what is leased and not spent, and tells what is owed, for all upstreams at once, waiting at most as
// long as ctx. It is for a process that is about to be frozen: what it holds would be worth nothing after that, and
// nobody else could have it meanwhile. What is not told by the end of ctx ends with its lease.
func (f *Fleet) Flush(ctx context.Context) error {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for _, g := range f.all() {
		wg.Go(func() {
			if err := g.giveBack(ctx, true); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
