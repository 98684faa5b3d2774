package fleet

import (
	"context"
	"errors"
	"sync"
)

// Flush returns leased units and reports debts, for all upstreams concurrently, and waits no longer than ctx.
// Call it before the process is frozen: afterwards its units would be worthless, and no other process could use
// them meanwhile. Leases that are not returned before ctx ends expire.
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
