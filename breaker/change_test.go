package breaker

import (
	"testing"
	"time"
)

// onChange may call the breaker: no lock is held then.
func TestChangesAreToldOutsideTheLock(t *testing.T) {
	var b *Breaker
	told := 0
	b = New("up", Config{Failures: 1}, func(Change) {
		if told++; !b.mu.TryLock() {
			t.Error("the breaker is locked while it tells of a change")
			return
		}
		b.mu.Unlock()
	})
	b.ForceOpen(0, time.Second)
	b.Reset(0)
	if told != 2 {
		t.Errorf("told of %d changes, want 2", told)
	}
}
